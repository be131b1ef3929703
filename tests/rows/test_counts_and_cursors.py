"""Statements for which PostgreSQL has no server-side cursor, RETURNING without rows, and
`rowcount`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import onecopy
from tests.conftest import Database

pytestmark = pytest.mark.filterwarnings("ignore::onecopy.DriverWarning")


@pytest.fixture(params=[None, True, False], ids=["default", "stream", "whole"])
def streamed(request: pytest.FixtureRequest, postgres: Database) -> Iterator[onecopy.Connection]:
    """A connection to PostgreSQL with a table `t`, with and without server-side cursors."""
    con = onecopy.connect(postgres.odbc, stream=request.param)
    con.execute("create temporary table t (id integer, s text)")
    con.execute("insert into t values (1, 'a'), (2, 'b')")
    yield con
    con.close()


@pytest.mark.parametrize("autocommit", [False, True])
@pytest.mark.parametrize(
    "sql",
    [
        "update t set s = 'c' where id > ? returning id, s",
        "delete from t where id > ? returning id, s",
        "insert into t select id, s from t where id > ? returning id, s",
        "with x as (delete from t where id > ? returning *) select * from x",
    ],
)
def test_returning_that_matches_no_row_returns_no_rows(
    streamed: onecopy.Connection, sql: str, autocommit: bool
) -> None:
    streamed.commit()
    streamed.autocommit = autocommit
    for given in ((sql, [7]), (sql.replace("?", "7"), [])):
        cur = streamed.execute(*given)
        assert cur.description is not None and [column[0] for column in cur.description] == ["id", "s"]
        assert cur.fetchone() is None and cur.fetchall() == []
        assert list(streamed.execute(*given)) == []
        assert streamed.execute(*given).json().read() == b"[]"
        assert not streamed.execute(*given).nextset()
    assert streamed.executemany(sql, [(7,), (8,)]).rowcount in (0, -1)
    assert streamed.execute("select count(*) from t").fetchone() == (2,)
    assert streamed.execute(sql, [1]).fetchall() == [(2, "c" if sql.startswith("update") else "b")]


@pytest.mark.parametrize("sql", ["values (?, 1), (?, 2)", "with c(a, b) as (values (?, 1), (?, 2)) select a, b from c"])
def test_parameters_that_mariadb_would_read_as_empty_are_refused(mariadb: Database, sql: str) -> None:
    with onecopy.connect(mariadb.odbc) as con:
        with pytest.raises(onecopy.NotSupportedError, match="UNION ALL"):
            con.execute(sql, ["a", "b"])
        again = "select ?, 1 union all select ?, 2"
        assert con.execute(again, ["a", "b"]).fetchall() == [("a", 1), ("b", 2)]
    con.close()


@pytest.mark.parametrize(
    "sql",
    [
        "delete from not_returning",
        "delete from not_returning where id > ?",
        "with x as (delete from t returning id) insert into not_returning select id from x",
        "with x as (delete from t where id > ? returning id) insert into not_returning select id from x",
        "update not_returning set id = 1 /* returning */",
    ],
)
def test_a_statement_that_contains_returning_and_has_no_columns_can_be_repeated(
    streamed: onecopy.Connection, sql: str
) -> None:
    streamed.execute("create temporary table not_returning (id integer)")
    for _ in range(3):
        cur = streamed.execute(sql, [0] * sql.count("?"))
        assert cur.description is None and cur.rowcount in (0, 2)
        cur.close()


def test_a_with_that_writes_is_executed_without_a_cursor(streamed: onecopy.Connection) -> None:
    assert streamed.execute("with x as (select 3 a) insert into t select a from x").rowcount == 1
    assert (
        streamed.execute(
            "with x as (select cast(? as integer) a) update t set s = 'x' from x where id = a", [3]
        ).rowcount
        == 1
    )
    found = streamed.execute("with x as (insert into t values (?) returning id) select * from x", [4]).fetchall()
    assert found == [(4,)]
    assert streamed.execute("with x as (delete from t where id = 4 returning id) select * from x").fetchall() == [(4,)]
    merge = "with x as (select 3 a) merge into t using x on t.id = x.a when matched then delete"
    assert streamed.execute(merge).rowcount == 1
    many = "with x as (select cast(? as integer) a) insert into t select a from x"
    streamed.executemany(many, [(k,) for k in range(10, 20)])
    assert streamed.execute("select count(*) from t").fetchone() == (12,)


def test_select_into_makes_a_table(streamed: onecopy.Connection) -> None:
    streamed.execute("select 1 a into temporary made")
    assert streamed.execute("select a from made").fetchall() == [(1,)]


@pytest.mark.parametrize(
    "sql",
    [
        "select 1 -- x",
        "(select 1) -- x",
        "with x as (select 1) select * from x -- x",
        "select 1\n-- the end",
        "select 1; -- x",
        "select 1 -- x\n",
    ],
)
def test_a_query_may_end_with_a_comment(streamed: onecopy.Connection, sql: str) -> None:
    assert streamed.execute(sql).fetchall() == [(1,)]
    parameter = sql.replace("1", "cast(? as integer)", 1)
    for k in range(6):
        assert streamed.execute(parameter, [k]).fetchall() == [(k,)]


def test_a_query_for_update_locks_its_rows(streamed: onecopy.Connection) -> None:
    assert streamed.execute("select id from t order by id for update").fetchall() == [(1,), (2,)]


def test_a_plain_query_is_still_streamed(postgres: Database) -> None:
    con = onecopy.connect(postgres.odbc)
    # The division fails in a row that is not reached: a server that sent the whole result would
    # fail.
    con.execute("with x as (select 1 a) select * from x").fetchall()
    cur = con.execute("select 1 / (100000 - i) from generate_series(1, 100000) i")
    assert cur.fetchone() == (0,)
    con.close()


@pytest.mark.parametrize("profile", ["postgres_native", "postgres", "postgres_ansi", "mariadb", "sqlite_odbc"])
def test_ddl_has_no_rowcount(request: pytest.FixtureRequest, profile: str) -> None:
    con = onecopy.connect(request.getfixturevalue(profile).odbc)
    for sql in ("drop table if exists counted", "create table counted (a integer)", "drop table counted"):
        assert con.execute(sql).rowcount == -1
    con.close()


def test_the_sqlite_driver_does_not_count_the_rows_of_a_query(sqlite_odbc: Database) -> None:
    con = onecopy.connect(sqlite_odbc.odbc)
    con.execute("create temporary table uncounted (a integer)")
    assert con.execute("insert into uncounted values (1), (2)").rowcount == 2
    for sql in ("select * from uncounted", "select * from uncounted where a = 3", "pragma user_version"):
        cur = con.execute(sql)
        assert cur.rowcount == -1
        cur.fetchall()
        assert cur.rowcount == -1
    assert con.execute("update uncounted set a = 3 returning a").rowcount == 2
    assert con.execute("delete from uncounted where a = 9").rowcount == 0
    con.close()


@pytest.mark.parametrize("profile", ["postgres_native", "postgres", "mariadb", "sqlite_odbc"])
def test_an_update_counts_the_rows_that_match(request: pytest.FixtureRequest, profile: str) -> None:
    con = onecopy.connect(request.getfixturevalue(profile).odbc)
    con.execute("create temporary table matched (a integer, b integer)")
    con.execute("insert into matched values (1, 5), (2, 5), (3, 6)")
    assert con.execute("update matched set b = 5 where b = 5").rowcount == 2
    assert con.execute("update matched set b = ? where b = ?", [5, 5]).rowcount == 2
    assert con.executemany("update matched set b = ? where a = ?", [(5, k) for k in range(6)]).rowcount == 3
    con.close()


def test_sqlite_counts_the_rows_of_returning_after_they_were_read(con: onecopy.Connection) -> None:
    con.execute("create table t (id integer)")
    read: list[tuple[str, list[Any], int]] = [
        ("insert into t values (1), (2) returning id", [(1,), (2,)], 2),
        ("update t set id = 3 where id = 2 returning id", [(3,)], 1),
        ("delete from t where id > 3 returning id", [], 0),
    ]
    for sql, rows, count in read:
        cur = con.execute(sql)
        assert cur.fetchall() == rows and cur.rowcount == count
    cur = con.cursor()
    cur.execute("insert into t values (7) returning id")
    assert cur.fetchone() == (7,) and cur.fetchone() is None and cur.rowcount == 1
