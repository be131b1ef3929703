"""Collations of SQLite that are functions in Python."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import onecopy


@pytest.fixture
def con() -> Iterator[onecopy.Connection]:
    connection = onecopy.connect("sqlite::memory:")
    yield connection
    connection.close()


def test_a_collation_orders_texts(con: onecopy.Connection) -> None:
    con.create_collation("reverse", lambda a, b: (a < b) - (a > b))
    con.execute("create table t (x text)")
    con.executemany("insert into t values (?)", [("a",), ("ç",), ("b",), ("",)])
    sql = "select x from t order by x collate reverse"
    assert con.execute(sql).fetchall() == [("ç",), ("b",), ("a",), ("",)]
    con.create_collation("reverse", None)
    with pytest.raises(onecopy.DatabaseError, match="no such collation"):
        con.execute(sql)


def _run(con: onecopy.Connection, sql: str) -> None:
    cur = con.execute(sql)
    if cur.description:
        cur.fetchall()


@pytest.mark.parametrize(
    "sql",
    [
        "select x from t order by x collate bad",
        "select max(x collate bad) from t",
        "select x from t where x < 'b' collate bad",
        "create index i on t (x collate bad)",
        "insert into keyed select x from t",
    ],
)
def test_a_collation_that_raises_fails_its_statement(con: onecopy.Connection, sql: str) -> None:
    calls = []

    def bad(a: str, b: str) -> int:
        calls.append((a, b))
        return 1 // 0

    con.create_collation("bad", bad)
    con.execute("create table t (x text)")
    con.execute("create table keyed (x text collate bad primary key)")
    con.executemany("insert into t values (?)", [(str(n),) for n in range(100)])
    with pytest.raises(onecopy.OperationalError, match="the collation `bad` raised ZeroDivisionError"):
        _run(con, sql)
    assert len(calls) == 1
    assert con.execute("select count(*) from t").fetchone() == (100,)
    con.execute("drop index if exists i")
    con.execute("delete from keyed")
    con.create_collation("bad", lambda a, b: (a > b) - (a < b))
    _run(con, sql)


def test_other_cursors_continue_after_a_collation_that_raises(con: onecopy.Connection) -> None:
    con.create_collation("bad", lambda a, b: 1 // 0)
    con.execute("create table t (x text)")
    con.executemany("insert into t values (?)", [(str(n),) for n in range(5000)])
    other = con.execute("select x from t")
    assert other.fetchone() == ("0",)
    with pytest.raises(onecopy.OperationalError, match="`bad`"):
        con.execute("select x from t order by x collate bad")
    assert len(other.fetchall()) == 4999


@pytest.mark.parametrize("keys", [["a", "b"], ["b", "a", "c"]])
def test_executemany_reports_a_collation_that_raises(con: onecopy.Connection, keys: list[str]) -> None:
    con.create_collation("bad", lambda a, b: 1 // 0)
    con.execute("create table keyed (x text collate bad primary key)")
    with pytest.raises(onecopy.OperationalError, match=r"the collation `bad` raised.*row 1"):
        con.executemany("insert into keyed values (?)", [(key,) for key in keys])
    con.rollback()


def test_with_autocommit_nothing_is_stored_if_a_collation_raises() -> None:
    con = onecopy.connect("sqlite::memory:", autocommit=True)
    con.create_collation("bad", lambda a, b: (a > b) - (a < b) if "x" not in a + b else 1 // 0)
    con.execute("create table keyed (x text collate bad primary key)")
    con.execute("insert into keyed values ('b')")
    for sql in ("insert into keyed values ('x')", "insert into keyed values ('a'), ('x')", "update keyed set x = 'x'"):
        with pytest.raises(onecopy.OperationalError, match="`bad` raised ZeroDivisionError"):
            con.execute(sql)
        assert con.execute("select x from keyed").fetchall() in ([("b",)], [])
    con.execute("insert into keyed values ('c')")
    assert con.execute("select count(*) from keyed where x = 'c'").fetchall() == [(1,)]
    assert con.execute("pragma integrity_check").fetchall() == [("ok",)]
