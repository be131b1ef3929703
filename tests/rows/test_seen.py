"""Equal short texts of a column may share one `str`: the values are correct for any order of
texts."""

from __future__ import annotations

import random
from typing import Any

import pytest

import onecopy
from tests.conftest import Database

pytestmark = pytest.mark.filterwarnings("ignore::onecopy.DriverWarning")

ALPHABETS = ("ab", "0123456789", "äöüß", "шжыъ", "東京都北海道", "🙂🙃", "aä東🙂")


def text(choose: random.Random) -> str:
    """A random text of up to 49 characters of one script; some exceed the length up to which a
    `str` is shared."""
    return "".join(choose.choices(choose.choice(ALPHABETS), k=choose.choice((0, 1, 2, 3, 8, 12, 16, 24, 47, 48, 49))))


def column(choose: random.Random, n_texts: int, n_rows: int) -> list[Any]:
    """``n_rows`` random values of one column: texts from a pool of ``n_texts``, and some other
    values."""
    pool = [text(choose) for _ in range(n_texts)]
    others = (None, 7, 2.5, b"ab", "")
    return [choose.choice(others) if choose.random() < 0.05 else choose.choice(pool) for _ in range(n_rows)]


@pytest.mark.parametrize("seed", range(12))
def test_repeated_texts_are_equal(con: onecopy.Connection, seed: int) -> None:
    choose = random.Random(seed)
    sizes = (1, 2, 60, 300, 20_000)
    # In the middle of a result a column may start to repeat values, or stop.
    halves = [[column(choose, choose.choice(sizes), 6000) for _ in sizes] for _ in range(2)]
    rows = [row for half in halves for row in zip(*half, strict=True)]
    con.execute("create table s (a, b, c, d, e)")
    con.executemany("insert into s values (?, ?, ?, ?, ?)", rows)
    cur = con.execute("select * from s order by rowid")
    got = [next(cur) for _ in range(choose.choice((0, 1, 20, 500)))]
    got += cur.fetchmany(choose.choice((0, 3, 700)))
    got += cur.fetchall()
    assert [[(type(v), v) for v in row] for row in got] == [[(type(v), v) for v in row] for row in rows]


def test_a_column_of_few_words_has_few_strings(con: onecopy.Connection) -> None:
    words = [f"städtchen {i}" for i in range(40)]
    con.execute("create table s (word)")
    con.executemany("insert into s values (?)", ((words[i * 7 % 40],) for i in range(5000)))
    for rows in (con.execute("select word from s").fetchall(), list(con.execute("select word from s"))):
        assert len({id(word) for (word,) in rows}) < 500


def test_texts_are_distinguished_by_their_encoding(database: Database) -> None:
    cur = onecopy.connect(database.odbc).execute("select city, id from t31000 order by id")
    rows = cur.fetchall()
    cities = [city for city, _ in rows]
    assert len(cities) == 31_000 and len({id(city) for city in cities}) < 6000
    assert cities[:1000] == [
        city for (city,) in onecopy.connect(database.odbc).execute("select city from t1000 order by id").fetchall()
    ]


def test_malformed_texts_that_repeat(con: onecopy.Connection, tmp_path: Any) -> None:
    path = tmp_path / "m.db"
    broken = onecopy.connect(f"sqlite:{path}", errors="replace")
    broken.execute("create table s (word)")
    broken.execute(
        "with recursive n(i) as (select 1 union all select i + 1 from n where i < 3000)"
        " insert into s select cast(x'61ff62' as text) from n"
    )
    broken.commit()
    assert set(broken.execute("select word from s").fetchall()) == {("a\N{REPLACEMENT CHARACTER}b",)}
    strict = onecopy.connect(f"sqlite:{path}")
    with pytest.raises(onecopy.DataError) as caught:
        strict.execute("select word from s").fetchall()
    assert caught.value.row == 0
