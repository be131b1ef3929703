"""Statements of which the connection must not forget a result, an error, or a changed setting."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Literal

import bson
import psycopg
import pytest

import onecopy
from tests.conftest import Database


@pytest.fixture
def con(postgres_native: Database) -> Iterator[onecopy.Connection]:
    with onecopy.connect(postgres_native.odbc, autocommit=True) as connection:
        yield connection


@pytest.fixture
def oracle(postgres_native: Database) -> Iterator[psycopg.Connection[Any]]:
    parts = {"dbname" if k == "database" else k: v for k, v in postgres_native.native.items()}
    with psycopg.connect(**parts, autocommit=True) as connection:
        yield connection


@pytest.mark.parametrize("prepare", ["auto", "always"])
@pytest.mark.parametrize("fetch", ["fetch all from cu", "/* all */ FETCH ALL cu"])
def test_fetch_returns_the_columns_of_the_current_cursor(
    postgres_native: Database, prepare: Literal["auto", "always"], fetch: str
) -> None:
    with onecopy.connect(postgres_native.odbc, prepare=prepare) as con:
        for query, row in [
            ("1::int8 as id", (1,)),
            ("1::int8 as id", (1,)),
            ("1.5::float8 as price", (1.5,)),
            ("'abcdefgh'::text as name", ("abcdefgh",)),
            ("1 as a, null::text as b", (1, None)),
        ]:
            con.execute(f"declare cu cursor for select {query}")
            cur = con.execute(fetch)
            assert cur.description is not None
            assert [column[0] for column in cur.description] == [part.split()[-1] for part in query.split(",")]
            assert cur.fetchall() == [row]
            con.execute("close cu")


def test_execute_returns_the_columns_of_the_current_prepared_statement(con: onecopy.Connection) -> None:
    for query, row in [("1::int8", (1,)), ("1::int8", (1,)), ("'abcdefgh'::text", ("abcdefgh",))]:
        con.execute(f"prepare own as select {query}")
        assert con.execute("execute own").fetchall() == [row]
        # Without a tag that invalidates the prepared statements of the connection.
        con.execute("select 1, 'deallocate'")
        con.execute("deallocate own")


def test_an_unknown_prepared_statement_of_the_caller_changes_nothing(con: onecopy.Connection) -> None:
    count = "select count(*) from pg_prepared_statements where name like 'onecopy%'"
    con.execute("select 1, 2, 3")
    con.execute("select 1, 2, 3")
    for sql in ("execute missing", "deallocate missing"):
        with pytest.raises(onecopy.ProgrammingError, match="missing") as caught:
            con.execute(sql)
        assert caught.value.sqlstate == "26000"
    assert con.execute(count).fetchall() == [(1,)]
    con.execute("select 3, 2, 1")
    con.execute("select 3, 2, 1")
    assert con.execute(f"{count} -- again").fetchall() == [(2,)]


def test_an_error_after_a_statement_without_rows_is_raised(con: onecopy.Connection) -> None:
    con.execute("create temp table made (i int)")
    with pytest.raises(onecopy.ProgrammingError, match="missing"):
        con.execute("insert into made values (1); insert into missing values (1); insert into made values (2)")
    assert con.execute("select i from made").fetchall() == [(1,)]


def test_execute_advances_to_the_first_statement_with_rows(con: onecopy.Connection) -> None:
    cur = con.execute("set work_mem = '4MB'; select 7 as seven; select 8")
    assert cur.description is not None
    assert cur.description[0][0] == "seven"
    assert cur.fetchall() == [(7,)]
    assert cur.nextset() is True
    assert cur.fetchall() == [(8,)]
    assert cur.nextset() is None
    cur = con.execute("create temp table a (i int); insert into a values (1), (2)")
    assert (cur.description, cur.nextset()) == (None, None)
    assert con.execute("select count(*) from a").fetchall() == [(2,)]


@pytest.mark.parametrize("n_rows", [1, 100_000])
def test_the_error_of_a_later_statement_is_raised_by_the_next_call(con: onecopy.Connection, n_rows: int) -> None:
    for sql in ("select 1", "select 2"):
        con.execute(f"select * from generate_series(1, {n_rows}); insert into missing values (1)").fetchall()
        with pytest.raises(onecopy.ProgrammingError, match=r"(?s)missing.*later statement"):
            con.execute(sql)
        assert len(con.execute(sql).fetchall()) == 1
    # `nextset` reports it at once, and then it is not repeated.
    cur = con.execute("select 1; insert into missing values (1)")
    with pytest.raises(onecopy.ProgrammingError, match="missing"):
        cur.nextset()
    assert con.execute("select 3").fetchall() == [(3,)]


def test_text_is_unchanged_after_client_encoding_was_set(postgres_native: Database) -> None:
    text = "é 東京"
    with onecopy.connect(postgres_native.odbc) as con:
        con.execute("create temp table t (t text)")
        con.commit()
        for change in (
            "set client_encoding = 'LATIN1'",
            "set names 'EUC_JP'",
            "select set_config('client_encoding', 'SJIS', false)",
        ):
            con.execute(change)
            con.execute("insert into t values (?)", [text])
            assert con.execute("select t, 'é' from t").fetchall() == [(text, "é")]
            con.rollback()
            assert con.execute("select '東京'").fetchall() == [("東京",)]
            con.commit()
        con.execute("set client_encoding = 'LATIN1'; insert into t values ('é')")
        con.cursor().copy_in("copy t from stdin", ["東京\n".encode()])
        con.executemany("insert into t values (?)", [("Ж",), ("ж",)])
        rows = con.execute("select t from t order by ctid").fetchall()
        assert rows == [("é",), ("東京",), ("Ж",), ("ж",)]
        con.execute("set client_encoding = 'LATIN1'")
        with pytest.raises(onecopy.ProgrammingError):
            con.execute("select missing")
        con.rollback()
        assert con.execute("select 'é'").fetchall() == [("é",)]


@pytest.mark.parametrize("state", ["08006", "08003", "57P01", "08P01", "25P03"])
def test_an_error_that_names_another_session_leaves_the_connection_usable(con: onecopy.Connection, state: str) -> None:
    with pytest.raises(onecopy.Error) as caught:
        con.execute(f"do $$ begin raise sqlstate '{state}'; end $$")
    assert (caught.value.sqlstate, con.usable) == (state, True)
    assert con.execute("select 1").fetchall() == [(1,)]


@pytest.mark.parametrize("n", [0, 1, 3, 100_000])
def test_rows_without_columns_are_counted(con: onecopy.Connection, oracle: psycopg.Connection[Any], n: int) -> None:
    sql = f"select from generate_series(1, {n})"
    rows = oracle.execute(sql).fetchall()
    assert rows == [()] * n
    for _ in range(3):
        assert con.execute(sql).fetchall() == rows
    cur = con.execute(sql)
    assert (cur.description, cur.rowcount) == ((), -1)
    assert list(cur) == rows
    cur = con.execute(sql)
    assert cur.fetchmany(2) == rows[:2]
    assert cur.fetchone() == (() if n > 2 else None)
    assert (cur.fetchall(), cur.rownumber, cur.nextset()) == (rows[3:], n, None)
    assert con.execute(sql).fetch_columns() == []
    assert json.loads(con.execute(sql).json().read()) == [{}] * n
    assert con.execute(sql).ndjson().read() == b"{}\n" * n
    assert con.execute(sql).csv().read() == b"\n" * (n + 1)
    assert bson.decode_all(con.execute(sql).bson().read()) == [{}] * n
    with con.cursor() as cur:
        cur.row_factory = onecopy.rows.dict_row
        assert cur.execute(sql).fetchall() == [{}] * n


def test_a_result_without_columns_is_a_result(con: onecopy.Connection) -> None:
    cur = con.execute("create temp table made (); select; select from made; select 7")
    assert (cur.description, cur.fetchall(), cur.nextset()) == ((), [()], True)
    assert (cur.description, cur.fetchall(), cur.nextset()) == ((), [], True)
    assert (cur.fetchall(), cur.nextset()) == ([(7,)], None)
    assert con.execute("insert into made default values").description is None
    assert con.execute("table made").fetchall() == [()]
    assert con.executemany("select where ? = 1", [(1,), (2,), (1,)]).rowcount == -1


@pytest.mark.parametrize(
    "sql",
    [
        "create table {} as select g from generate_series(1, 5) g",
        "create table {} as select 1 where false",
        "create temporary table {} as values (1), (2)",
        "create table {} as select 1 with no data",
        "select g into {} from generate_series(1, 3) g",
        "create materialized view {} as select 1",
        "create view {} as select 1",
    ],
)
def test_rowcount_of_a_query_that_fills_a_table_is_that_of_psycopg(
    con: onecopy.Connection, oracle: psycopg.Connection[Any], sql: str
) -> None:
    with oracle.transaction(force_rollback=True):
        expected = oracle.execute(sql.format("counted_rows")).rowcount
    for prefix in ("", "/* again */ "):
        con.execute("begin")
        cur = con.execute(prefix + sql.format("counted_rows"))
        assert (cur.rowcount, cur.description) == (expected, None)
        con.execute("rollback")


def test_rowcount_of_move_is_that_of_psycopg(con: onecopy.Connection, oracle: psycopg.Connection[Any]) -> None:
    counts = []
    for connection in (con, oracle):
        connection.execute("begin")
        connection.execute("declare c cursor for select generate_series(1, 5)")
        counts.append([connection.execute(f"move {n} in c").rowcount for n in (3, 4, 4)])
        connection.execute("rollback")
    assert counts == [[3, 2, 0]] * 2
