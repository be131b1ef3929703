"""Deferred long values: file objects that read the texts and bytes of the current row."""

from __future__ import annotations

import hashlib
import io
import shutil
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest

import onecopy

pytestmark = pytest.mark.filterwarnings("ignore::onecopy.DriverWarning")

#: Its length has no common divisor with a part's, so parts end inside of characters; a lone CR is
#: kept.
LINE = "Zürich 東京 😀\r, x\n"
N_LINES = 40_000


@pytest.fixture(params=["sqlite", "postgres_native", "postgres", "postgres_ansi", "mariadb"])
def stored(request: pytest.FixtureRequest) -> Iterator[onecopy.Connection]:
    """A connection with a temporary table ``doc``, whose texts and bytes are long, short, null or
    empty."""
    if request.param == "sqlite":
        con = onecopy.connect("sqlite::memory:")
        types = ("text", "blob")
    else:
        con = onecopy.connect(request.getfixturevalue(request.param).odbc)
        types = ("longtext", "longblob") if request.param == "mariadb" else ("text", "bytea")
    con.execute(f"create temporary table doc (id int, body {types[0]}, picture {types[1]}, note varchar(20))")
    blob = bytes(range(256)) * 3000
    rows: list[tuple[Any, ...]] = [
        (1, LINE * N_LINES, blob, "a"),
        (2, "short", b"\0\xff", "b"),
        (3, None, None, "c"),
        (4, "", b"", "d"),
    ]
    for row in rows:
        con.execute("insert into doc values (?, ?, ?, ?)", row)
    yield con
    con.close()


def both(con: onecopy.Connection) -> onecopy.Cursor:
    return con.execute("select id, note, body, picture from doc order by id", defer=["body", "picture"])


def text_of(cur: onecopy.Cursor, column: str | int = "body") -> io.TextIOBase:
    file = cur.open_text(column)
    assert file is not None
    return file


def test_values_are_read_in_parts_unchanged(stored: onecopy.Connection) -> None:
    got = []
    for row in (cur := both(stored)):
        assert row[2:] == (..., ...)
        text = cur.open_text("body")
        kept = None if text is None else text.read()
        binary = cur.open_binary("picture")
        got.append((*row[:2], kept, None if binary is None else binary.read()))
    assert got == stored.execute("select id, note, body, picture from doc order by id").fetchall()


def test_text_is_read_by_characters_and_by_lines(stored: onecopy.Connection) -> None:
    cur = both(stored)
    cur.fetchone()
    with text_of(cur) as file:
        assert (file.read(3), file.read(0), file.readline(), file.readline(2)) == (LINE[:3], "", LINE[3:], LINE[:2])
        assert list(file) == [LINE[2:], *[LINE] * (N_LINES - 2)]
        assert (file.read(), file.read(5), file.readline()) == ("", "", "")
    cur = both(stored)
    cur.fetchone()
    sizes, file = [], text_of(cur, 2)
    while part := file.read(70_001):
        sizes.append(len(part))
    assert set(sizes[:-1]) == {70_001}
    assert sum(sizes) == len(LINE) * N_LINES


def test_bytes_are_a_buffered_file(stored: onecopy.Connection) -> None:
    cur = stored.execute("select id, picture from doc order by id").defer(1)
    cur.fetchone()
    file = cur.open_binary("picture")
    assert file is not None
    assert (file.read(3), file.peek(1)[:1], file.readable(), file.seekable()) == (b"\0\1\2", b"\3", True, False)
    buffer = bytearray(300_000)
    assert file.readinto(buffer) == 300_000
    assert buffer[:2] == b"\3\4"
    copied = io.BytesIO()
    shutil.copyfileobj(file, copied)
    assert len(copied.getvalue()) == 768_000 - 300_003


def test_a_value_is_closed_after_its_row(stored: onecopy.Connection) -> None:
    cur = both(stored)
    cur.fetchone()
    first = text_of(cur)
    assert first.read(4) == LINE[:4]
    cur.fetchone()
    with pytest.raises(onecopy.InterfaceError, match="has passed"):
        first.read()
    second = text_of(cur)
    assert second.read() == "short"
    cur.execute("select 1")
    # The part that was read already is returned; no more is fetched.
    assert second.read() == ""
    third = both(stored)
    third.fetchone()
    file = text_of(third)
    third.close()
    with pytest.raises(onecopy.InterfaceError, match="closed"):
        file.read()


def test_a_closed_file_raises(stored: onecopy.Connection) -> None:
    cur = both(stored)
    cur.fetchone()
    file = text_of(cur)
    file.close()
    assert file.closed
    with pytest.raises(ValueError, match="closed file"):
        file.read()
    with pytest.raises(ValueError, match="closed file"):
        file.readline()


def test_a_value_is_opened_once_and_one_at_a_time(stored: onecopy.Connection) -> None:
    cur = both(stored)
    with pytest.raises(onecopy.ProgrammingError, match="no row was fetched"):
        cur.open_text("body")
    cur.fetchone()
    text = text_of(cur)
    with pytest.raises(onecopy.ProgrammingError, match="opened before"):
        cur.open_text("body")
    binary = cur.open_binary("picture")
    assert binary is not None
    with pytest.raises(onecopy.InterfaceError, match="another value"):
        text.read()
    assert len(binary.read()) == 768_000


def test_wrong_columns_are_refused(stored: onecopy.Connection) -> None:
    cur = stored.execute("select id, body, picture from doc order by id")
    with pytest.raises(onecopy.ProgrammingError, match="no column `nothing`"):
        cur.defer("nothing")
    with pytest.raises(onecopy.ProgrammingError, match="no column 3"):
        cur.defer(3)
    with pytest.raises(TypeError):
        cur.defer(1.5)  # type: ignore[arg-type]
    cur.defer("body")
    cur.fetchone()
    with pytest.raises(onecopy.ProgrammingError, match=r"is not deferred.*\n.*defer"):
        cur.open_binary("picture")
    with pytest.raises(onecopy.ProgrammingError, match="open_text"):
        cur.open_binary("body")
    with pytest.raises(onecopy.ProgrammingError, match="before the first"):
        cur.defer("picture")


def test_a_number_is_not_a_long_value(stored: onecopy.Connection) -> None:
    cur = stored.execute("select id, body from doc order by id")

    def opened() -> object:
        cur.defer("id").fetchone()
        return cur.open_text("id")

    with pytest.raises((onecopy.ProgrammingError, onecopy.DataError), match="text and bytes"):
        opened()


def test_fetchmany_and_factories_omit_the_values(stored: onecopy.Connection) -> None:
    cur = both(stored)
    cur.row_factory = onecopy.rows.dict_row
    cur.execute("select id, body from doc order by id", defer=["body"])
    cur.converters["body"] = str.upper
    assert cur.fetchmany(2) == [{"id": 1, "body": ...}, {"id": 2, "body": ...}]
    # The current row is the last one.
    assert text_of(cur).read() == "short"
    assert cur.rownumber == 2
    assert cur.fetchall() == [{"id": 3, "body": ...}, {"id": 4, "body": ...}]


def test_a_stream_of_deferred_columns_includes_them(stored: onecopy.Connection) -> None:
    sql = "select id, body from doc where id > 1 order by id"
    assert stored.execute(sql, defer=["body"]).csv().read() == b'id,body\n2,short\n3,\n4,""\n'


def test_nothing_is_deferred_in_the_next_statement(stored: onecopy.Connection) -> None:
    cur = both(stored)
    cur.fetchone()
    assert cur.execute("select body from doc where id = 2").fetchall() == [("short",)]


def test_malformed_text_is_an_error_with_its_position_or_replaced() -> None:
    bad = bytes([0x61] * 100_000 + [0xFF, 0x62])
    for errors, expected in (("strict", None), ("replace", "a" * 100_000 + "\ufffdb")):
        con = onecopy.connect("sqlite::memory:", errors=errors)  # type: ignore[arg-type]
        cur = con.execute("select cast(? as text) as body", [bad], defer=["body"])
        cur.fetchone()
        if expected is None:
            with pytest.raises(onecopy.DataError, match="byte 100000"):
                text_of(cur).read()
        else:
            assert text_of(cur).read() == expected


def test_the_ledger_counts_one_conversion(con: onecopy.Connection) -> None:
    text = "é" * 300_000
    with onecopy.ledger() as ledger:
        cur = con.execute("select ? as body", [text], defer=["body"])
        before = ledger.stages["decode"]["converted"] if "decode" in ledger.stages else 0
        cur.fetchone()
        assert text_of(cur).read() == text
        assert ledger.stages["decode"]["converted"] - before == 600_000
        # SQLite's own memory in addition to one part.
        assert ledger.stages["fetch"]["copied"] == 600_000


@pytest.mark.parametrize("profile", ["tds_freetds", "tds_msodbc", "tds_rust"])
def test_drivers_of_sql_server_return_long_values_last(request: pytest.FixtureRequest, profile: str) -> None:
    con = onecopy.connect(request.getfixturevalue(profile).odbc)
    piece = "Zürich 東京 😀"
    cur = con.execute(f"select 7 as id, replicate(N'{piece}', 30000) as body", defer=["body"])
    assert cur.fetchone() == (7, ...)
    assert text_of(cur).read() == piece * 30000
    cur.close()
    cur = con.execute(f"select replicate(N'{piece}', 30000) as body, 7 as id", defer=["body"])
    with pytest.raises(onecopy.NotSupportedError, match="last") as caught:
        cur.fetchone()
    assert caught.value.column == (1, "id")
    con.close()


MEASURED = """
import hashlib, sys, warnings
import onecopy
warnings.simplefilter("ignore", onecopy.DriverWarning)

def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096

target, setup, query = sys.argv[1:]
con = onecopy.connect(target)
if setup:
    con.execute(setup)
cur = con.execute(query, defer=["body"])
cur.fetchone()
digest = hashlib.md5()
with cur.open_text("body") as file:
    # The driver has the value now, as it holds it: what is read on top of that is ours.
    for _ in range(20):
        digest.update(file.read(50_000).encode())
    before = resident()
    while part := file.read(50_000):
        digest.update(part.encode())
print(resident() - before, digest.hexdigest())
"""


@pytest.mark.parametrize("profile", ["sqlite", "postgres_native", "postgres", "mariadb", "tds_msodbc", "tds_rust"])
def test_memory_does_not_grow_with_the_value(request: pytest.FixtureRequest, profile: str) -> None:
    piece, n = "Zürich 東京 😀 " * 6, 200_000
    setup, query = "", f"select repeat('{piece}', {n}) as body"
    if profile == "mariadb":
        n = 100_000  # `repeat` of more than max_allowed_packet is NULL; two values in a row are not one packet
        query = f"select repeat('{piece}', {n}) as body"
    if profile.startswith("tds"):
        query = f"select replicate(N'{piece}', {n}) as body"
    target = "sqlite::memory:"
    if profile == "sqlite":
        query = f"select replace(hex(zeroblob({n // 2})), '0', '{piece}') as body"
    else:
        target = request.getfixturevalue(profile).odbc
    done = subprocess.run(
        [sys.executable, "-c", MEASURED, target, setup, query], capture_output=True, text=True, check=True
    )
    grown, digest = done.stdout.split()
    assert digest == hashlib.md5((piece * n).encode()).hexdigest()
    assert int(grown) < 4 << 20
