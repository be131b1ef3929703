"""SQLite's values, compared cell by cell with those of Python's sqlite3."""

from __future__ import annotations

import pathlib
import sqlite3
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import onecopy
from tests.support import table
from tests.support.properties import tried

# Without surrogates, since SQLite stores UTF-8. NUL characters inside of a text are included:
# sqlite3 keeps them too.
TEXT = st.text(st.characters(codec="utf-8"), max_size=90)
VALUE = st.one_of(
    st.none(),
    st.integers(-(2**63), 2**63 - 1),
    st.floats(allow_nan=False),
    TEXT,
    st.binary(max_size=90),
)


def same(ours: list[tuple[Any, ...]], theirs: list[tuple[Any, ...]]) -> None:
    """Asserts that two lists of rows have equal values of equal types: 1 differs from 1.0, -0.0
    from 0.0."""
    assert [[(type(v), repr(v)) for v in row] for row in ours] == [[(type(v), repr(v)) for v in row] for row in theirs]


@tried(150)
@given(st.integers(1, 6).flatmap(lambda n: st.lists(st.tuples(*[VALUE] * n), min_size=1, max_size=40)))
def test_random_tables_match_sqlite3(tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[Any, ...]]) -> None:
    file = tmp_path_factory.getbasetemp() / "random.db"
    file.unlink(missing_ok=True)
    marks = ", ".join("?" * len(rows[0]))
    native = sqlite3.connect(file)
    native.execute(f"create table t ({', '.join(f'c{i}' for i in range(len(rows[0])))})")
    native.executemany(f"insert into t values ({marks})", rows)
    native.commit()
    theirs = native.execute("select * from t").fetchall()
    native.close()
    con = onecopy.connect(f"sqlite:{file}")
    same(con.execute("select * from t").fetchall(), theirs)
    same(list(con.execute("select * from t")), theirs)
    # And the other direction: sqlite3 reads the values that we write.
    con.execute("delete from t")
    con.executemany(f"insert into t values ({marks})", rows)
    con.commit()
    con.close()
    native = sqlite3.connect(file)
    same(native.execute("select * from t").fetchall(), theirs)
    native.close()


def test_the_table_t_matches_sqlite3(tmp_path: pathlib.Path) -> None:
    file = tmp_path / "t.db"
    native = sqlite3.connect(file)
    native.execute(f"create table t ({', '.join(table.COLUMNS)})")
    rows = [
        (*(str(v) if name in {"amount", "created"} else v for name, v in zip(table.COLUMNS, row, strict=True)),)
        for row in table.rows(5000)
    ]
    native.executemany(f"insert into t values ({', '.join('?' * len(table.COLUMNS))})", rows)
    native.commit()
    native.close()
    con = onecopy.connect(f"sqlite:{file}")
    same(con.execute("select * from t").fetchall(), rows)
    con.close()


@pytest.mark.parametrize("n_chars", [0, 1, 2, 15, 16, 17, 31, 32, 33, 63, 64, 65, 127, 128, 129, 1000, 100_000])
@pytest.mark.parametrize("character", ["a", "ä", "я", "東", "😀"])
def test_text_of_every_kind_and_length_is_complete(con: onecopy.Connection, character: str, n_chars: int) -> None:
    for text in (character * n_chars, "a" * n_chars + character, character + "a" * n_chars):
        ((got,),) = con.execute("select ?", (text,)).fetchall()
        assert got == text
        assert got.isascii() == text.isascii()
        # The narrowest storage kind, as for every `str`: otherwise comparison and hash would fail
        # too.
        assert hash(got) == hash(text)
        assert {got: 1}[text] == 1


def test_a_long_value_is_not_truncated(con: onecopy.Connection) -> None:
    text, binary = "дом" * 3_000_000, bytes(range(256)) * 40_000
    assert con.execute("select ?, ?", (text, binary)).fetchall() == [(text, binary)]


def test_empty_text_and_bytes_are_not_null(con: onecopy.Connection) -> None:
    assert con.execute("select '', x'', null").fetchall() == [("", b"", None)]


def test_text_with_a_nul_is_kept(con: onecopy.Connection) -> None:
    assert con.execute("select ?", ("a\0b",)).fetchall() == [("a\0b",)]
