"""`onecopy.compat.pyodbc`: `Cursor.rowcount` after queries and DDL is that of pyodbc."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

import onecopy
from onecopy.compat import pyodbc
from tests.conftest import Database

pytestmark = pytest.mark.filterwarnings("ignore::onecopy.DriverWarning")

#: More rows than are fetched at once.
MANY = 3_000


@pytest.fixture(params=["postgres_native", "postgres"])
def cur(request: pytest.FixtureRequest) -> Iterator[pyodbc.Cursor]:
    con = pyodbc.connect(request.getfixturevalue(request.param).odbc)
    yield con.cursor()
    con.close()


@pytest.mark.parametrize("n_before", [0, 1, 2, MANY])
def test_the_rows_of_a_query_are_counted_and_none_is_lost(cur: pyodbc.Cursor, n_before: int) -> None:
    cur.execute(f"select generate_series(1, {MANY})")
    rows = cur.fetchmany(n_before)
    assert [cur.rowcount, cur.rowcount] == [MANY, MANY]
    assert [row[0] for row in rows + cur.fetchall()] == [*range(1, MANY + 1)]
    assert cur.rowcount == MANY
    assert cur.fetchone() is None and cur.fetchval() is None and cur.fetchmany() == cur.fetchall() == [*cur] == []


def test_each_way_to_fetch_continues_after_the_count(cur: pyodbc.Cursor) -> None:
    cur.execute("select generate_series(1, 12)")
    rows: list[Any] = [cur.fetchone(), *cur.fetchmany(2)]
    assert cur.rowcount == 12
    rows += [cur.fetchone(), *cur.fetchmany(), *cur.fetchmany(2), next(cur)]
    cur.skip(1)
    assert [row[0] for row in rows] == [1, 2, 3, 4, 5, 6, 7, 8]
    assert [cur.fetchval(), *(row[0] for row in cur)] == [10, 11, 12]


def test_the_count_is_that_of_the_current_result(cur: pyodbc.Cursor) -> None:
    assert cur.rowcount == -1
    assert cur.execute("select 1 as a where false").rowcount == 0
    assert cur.execute("values (1), (2), (3)").rowcount == 3
    assert cur.execute("select 4").fetchall() == cur.execute("select 4").fetchall()
    cur.execute("select 1 as a; select 2 union all select 3")
    assert [cur.rowcount, cur.nextset(), cur.rowcount] == [1, True, 2]
    assert [row[0] for row in cur.fetchall()] == [2, 3]
    cur.execute("create temporary table counted (a int)")
    assert cur.execute("insert into counted values (1), (2)").rowcount == 2
    with pytest.raises(pyodbc.ProgrammingError):
        cur.execute("select * from nowhere")
    assert cur.rowcount == -1


def test_rows_as_dicts_are_counted_as_well(cur: pyodbc.Cursor) -> None:
    cur.rows_as_dicts = True
    cur.execute("select 1 as a union all select 2")
    assert cur.rowcount == 2
    assert cur.fetchval() == 1
    assert cur.fetchall() == [{"a": 2}]


def test_a_stream_of_bytes_after_the_count_is_an_error_and_not_empty(cur: pyodbc.Cursor) -> None:
    cur.execute("select 1 as a")
    assert cur.rowcount == 1
    with pytest.raises(onecopy.ProgrammingError, match="fetched already"):
        cur.onecopy.json()


DDL: list[tuple[str, int, int, int]] = [
    # PostgreSQL, MariaDB, SQLite
    ("create table ddl (a integer)", 0, 0, 0),
    ("alter table ddl add column b integer", -1, 0, 0),
    ("drop table ddl", -1, 0, 0),
]


@pytest.mark.parametrize(
    ("profile", "of"), [("postgres_native", 1), ("postgres", 1), ("mariadb", 2), ("sqlite_odbc", 3)]
)
def test_ddl_has_the_row_count_of_the_driver(request: pytest.FixtureRequest, profile: str, of: int) -> None:
    con = pyodbc.connect(request.getfixturevalue(profile).odbc)
    cur = con.cursor()
    cur.execute("drop table if exists ddl")
    counts = [(cur.execute(statement[0]).rowcount, statement[of]) for statement in DDL]
    con.commit()
    con.close()
    assert [ours for ours, _ in counts] == [expected for _, expected in counts]


@pytest.mark.parametrize(
    "make", [lambda cur: cur.execute("truncate uncounted"), lambda cur: cur.execute("lock uncounted")]
)
def test_statements_that_psqlodbc_counts_as_none(cur: pyodbc.Cursor, make: Callable[[Any], Any]) -> None:
    cur.execute("create temporary table uncounted (a int)")
    assert make(cur).rowcount == 0


def test_mariadb_counts_the_rows_of_a_query(mariadb: Database) -> None:
    con = pyodbc.connect(mariadb.odbc)
    cur = con.execute("select 1 union select 2")
    assert cur.rowcount == 2 and len(cur.fetchall()) == 2
    con.close()
