"""`callproc`: stored procedures and functions, their output parameters and their results."""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from decimal import Decimal

import pytest

import onecopy
from tests.conftest import Database

pytestmark = pytest.mark.filterwarnings("ignore::onecopy.DriverWarning")


@pytest.fixture
def of_postgres(postgres: Database) -> Iterator[onecopy.Connection]:
    con = onecopy.connect(postgres.odbc)
    con.execute("create schema if not exists calls")
    con.execute("set local search_path = calls, public")
    con.execute(
        "create procedure mixed(a int, out b text, inout c bigint, out d numeric) language plpgsql as "
        "$$ begin b := 'é ' || a; c := c * 2; d := a / 4.0; end $$"
    )
    con.execute("create table seen (a int)")
    con.execute("create procedure quiet(a int) language sql as $$ insert into seen values (a) $$")
    con.execute("create function add(a int, b int default 1) returns int language sql as $$ select a + b $$")
    con.execute("create function parts(a int, out b int, out c text) language sql as $$ select a + 1, 'x' || a $$")
    con.execute("create function many(n int) returns setof int language sql as $$ select generate_series(1, n) $$")
    con.execute('create procedure "Odd ""name"(inout a int) language plpgsql as $$ begin a := a + 1; end $$')
    yield con
    con.rollback()
    con.close()


def test_output_parameters_of_postgresql(of_postgres: onecopy.Connection) -> None:
    cur = of_postgres.cursor()
    given = (5, None, 21, None)
    got = cur.callproc("mixed", given)
    assert got == [5, "é 5", 42, Decimal("1.25")]
    assert type(got[3]) is Decimal
    assert given == (5, None, 21, None)
    assert cur.description is None
    assert cur.nextset() is None
    assert cur.callproc("calls.mixed", [None, "ignored", 1, None]) == [None, None, 2, None]
    assert cur.callproc('calls."Odd ""name"', [1]) == [2]


def test_a_procedure_without_outputs_of_postgresql(of_postgres: onecopy.Connection) -> None:
    cur = of_postgres.cursor()
    assert cur.callproc("quiet", [7]) == [7]
    assert cur.description is None
    assert of_postgres.execute("select * from seen").fetchall() == [(7,)]


def test_functions_of_postgresql_give_rows(of_postgres: onecopy.Connection) -> None:
    cur = of_postgres.cursor()
    assert cur.callproc("add", [2, 3]) == [2, 3]
    assert cur.fetchall() == [(5,)]
    assert cur.callproc("add", (2,)) == [2]
    assert cur.fetchall() == [(3,)]
    assert cur.callproc("parts", [1]) == [1]
    assert cur.fetchall() == [(2, "x1")]
    # With places for the outputs they come back in these.
    assert cur.callproc("parts", [1, None, None]) == [1, 2, "x1"]
    assert cur.callproc("many", [3]) == [3]
    assert cur.fetchall() == [(1,), (2,), (3,)]


@pytest.mark.parametrize(
    ("name", "parameters", "words"),
    [
        ("mixed", [1], "4 parameters, 1 were given"),
        ("add", [1, 2, 3], "2 parameters, 3 were given"),
        ("nowhere", [], "nowhere"),
        ("mixed(1); drop table seen", [], "not the name"),
        ("", [], "not the name"),
        ("a.", [], "not the name"),
    ],
)
def test_wrong_calls_are_programming_errors(
    of_postgres: onecopy.Connection, name: str, parameters: list[object], words: str
) -> None:
    with pytest.raises(onecopy.ProgrammingError, match=words) as caught:
        of_postgres.cursor().callproc(name, parameters)
    if "were given" in words:
        assert caught.value.sqlstate == "07002"


@pytest.fixture
def of_mariadb(mariadb: Database) -> Iterator[onecopy.Connection]:
    con = onecopy.connect(mariadb.odbc)
    for name in ("mixed", "rows_first", "quiet"):
        con.execute(f"drop procedure if exists {name}")
    con.execute("drop function if exists twice")
    con.execute(
        "create procedure mixed(in a int, out b varchar(20), inout c bigint, out d decimal(10, 2), out e datetime(6)) "
        "begin set b = concat('é ', a); set c = c * 2; set d = a / 4; set e = '2026-01-02 03:04:05.000006'; end"
    )
    con.execute(
        "create procedure rows_first(in n int, out b int) begin select n as b; select n + 1 as x, 'y' as y; "
        "set b = n * 10; end"
    )
    con.execute("create procedure quiet(in a int) begin set @onecopy_seen = a; end")
    con.execute("create function twice(a int) returns int deterministic return a * 2")
    yield con
    con.close()


def test_output_parameters_of_mariadb(of_mariadb: onecopy.Connection) -> None:
    cur = of_mariadb.cursor()
    got = cur.callproc("mixed", [5, None, 21, None, None])
    assert got == [5, "é 5", 42, Decimal("1.25"), datetime.datetime(2026, 1, 2, 3, 4, 5, 6)]
    assert (cur.description, cur.nextset()) == (None, None)
    assert of_mariadb.execute("select 1").fetchall() == [(1,)]
    assert cur.callproc("`quiet`", [3]) == [3]
    assert of_mariadb.execute("select @onecopy_seen").fetchall() == [(3,)]


def test_output_parameters_behind_results_of_mariadb(of_mariadb: onecopy.Connection) -> None:
    cur = of_mariadb.cursor()
    got = cur.callproc("rows_first", [4, None])
    # The first result has the name of the parameter, and is none.
    assert (got, cur.fetchall()) == ([4, None], [(4,)])
    assert cur.nextset() is True
    assert (got, cur.fetchall()) == ([4, None], [(5, "y")])
    assert cur.nextset() is None
    assert got == [4, 40]


def test_functions_and_wrong_calls_of_mariadb(of_mariadb: onecopy.Connection) -> None:
    cur = of_mariadb.cursor()
    assert cur.callproc("twice", [4]) == [4]
    assert cur.fetchall() == [(8,)]
    with pytest.raises(onecopy.ProgrammingError, match="5 parameters, 1 were given"):
        cur.callproc("mixed", [1])
    with pytest.raises(onecopy.ProgrammingError, match="nowhere"):
        cur.callproc("nowhere")


def test_sqlite_has_no_procedures(con: onecopy.Connection) -> None:
    with pytest.raises(onecopy.NotSupportedError, match="no stored procedures"):
        con.cursor().callproc("x")
