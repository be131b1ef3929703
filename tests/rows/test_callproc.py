"""`Cursor.callproc`: stored procedures and functions, their output parameters and their results."""

from __future__ import annotations

import asyncio
import datetime
import uuid
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import pytest

import onecopy
from onecopy import _tsql, aio
from onecopy.rows import dict_row
from tests.conftest import Database

pytestmark = pytest.mark.filterwarnings("ignore::onecopy.DriverWarning")


@pytest.fixture(params=["postgres", "postgres_native"])
def of_postgres(request: pytest.FixtureRequest) -> Iterator[onecopy.Connection]:
    con = onecopy.connect(request.getfixturevalue(request.param).odbc)
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
    con.execute(
        "create function total(a text, variadic b int[]) returns text language sql as "
        "$$ select a || (select sum(i) from unnest(b) i) $$"
    )
    con.execute("create function total(a text) returns text language sql as $$ select a $$")
    con.execute(
        "create function span(variadic b int[], out low int, out high int) language sql as "
        "$$ select min(i), max(i) from unnest(b) i $$"
    )
    con.execute("create procedure later(a int, inout b int default 5) language plpgsql as $$ begin b := a + b; end $$")
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


def test_a_row_factory_does_not_change_the_look_up_of_a_procedure(of_postgres: onecopy.Connection) -> None:
    of_postgres.row_factory = dict_row
    cur = of_postgres.cursor()
    assert cur.callproc("parts", [1, None, None]) == [1, 2, "x1"]
    assert cur.callproc("add", [2, 3]) == [2, 3]
    assert cur.fetchall() == [{"add": 5}]


def test_functions_of_postgresql_return_rows(of_postgres: onecopy.Connection) -> None:
    cur = of_postgres.cursor()
    assert cur.callproc("add", [2, 3]) == [2, 3]
    assert cur.fetchall() == [(5,)]
    assert cur.callproc("add", (2,)) == [2]
    assert cur.fetchall() == [(3,)]
    assert cur.callproc("parts", [1]) == [1]
    assert cur.fetchall() == [(2, "x1")]
    # If the outputs have items in the sequence, they are returned there.
    assert cur.callproc("parts", [1, None, None]) == [1, 2, "x1"]
    assert cur.callproc("many", [3]) == [3]
    assert cur.fetchall() == [(1,), (2,), (3,)]


def test_variadic_functions_of_postgresql(of_postgres: onecopy.Connection) -> None:
    cur = of_postgres.cursor()
    for given in (["x", 1], ["x", 1, 2, 3], ["x", *range(50)]):
        assert cur.callproc("total", given) == given
        assert cur.fetchall() == [(f"x{sum(given[1:])}",)]
    assert cur.callproc("total", ["x"]) == ["x"]
    assert cur.fetchall() == [("x",)]
    assert cur.callproc("span", [4, 9, 2]) == [4, 9, 2]
    assert cur.fetchall() == [(2, 9)]


def test_parameters_of_postgresql_with_defaults_may_be_omitted(of_postgres: onecopy.Connection) -> None:
    cur = of_postgres.cursor()
    assert cur.callproc("later", [1]) == [1, 6]
    assert cur.callproc("later", [1, 2]) == [1, 3]
    assert cur.callproc("later", {"a": 1}) == [1]
    assert cur.fetchall() == [(6,)]


def test_parameters_of_postgresql_by_name(of_postgres: onecopy.Connection) -> None:
    cur = of_postgres.cursor()
    assert cur.callproc("add", {"b": 3, "a": 2}) == [3, 2]
    assert cur.fetchall() == [(5,)]
    assert cur.callproc("add", {"a": 2}) == [2]
    assert cur.fetchall() == [(3,)]
    assert cur.callproc("mixed", {"d": None, "c": 21, "a": 5, "b": None}) == [Decimal("1.25"), 42, 5, "é 5"]
    assert cur.callproc("parts", {"c": None, "a": 1, "b": None}) == ["x1", 1, 2]
    with pytest.raises(onecopy.ProgrammingError, match="names a, x"):
        cur.callproc("add", {"a": 1, "x": 2})
    with onecopy.connect("sqlite::memory:") as con, pytest.raises(TypeError, match="by name"):
        con.cursor().callproc("add", {"a": 1})


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


def test_output_parameters_after_results_of_mariadb(of_mariadb: onecopy.Connection) -> None:
    cur = of_mariadb.cursor()
    got = cur.callproc("rows_first", [4, None])
    # The first result has the name of the parameter, but is not the output.
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


@pytest.fixture(params=["tds_freetds", "tds_msodbc", "tds_rust"])
def of_sql_server(request: pytest.FixtureRequest) -> Iterator[onecopy.Connection]:
    """A connection to the TDS responder, through each driver of SQL Server.

    `tests/support/tds/declared.py` has its procedures.
    """
    database: Database = request.getfixturevalue(request.param)
    con = onecopy.connect(database.odbc)
    yield con
    con.close()


def test_output_parameters_of_sql_server(of_sql_server: onecopy.Connection) -> None:
    cur = of_sql_server.cursor()
    given = (5, None, 21, None, "2001-01-01")
    got = cur.callproc("calls.mixed", given)
    assert got == [5, "é 5", 42, Decimal("1.25"), datetime.datetime(2026, 1, 2, 3, 4, 5, 6)]
    assert type(got[3]) is Decimal
    assert given == (5, None, 21, None, "2001-01-01")
    # Messages that it prints are kept; its return value (7) is not a parameter.
    assert [str(message).rpartition("]")[2] for _, message in cur.messages] == ["mixed ran"]
    assert (cur.description, cur.nextset()) == (None, None)
    assert of_sql_server.execute("select 1").fetchall() == [(1,)]
    # Conversion to the declared type truncates and rounds, as an assignment does.
    assert cur.callproc("calls.mixed", [5, "x" * 5000, None, None, None])[:3] == [5, "é 5", None]


def test_a_call_without_values_is_not_prepared_and_returns_the_same(of_sql_server: onecopy.Connection) -> None:
    cur = of_sql_server.cursor()
    for _ in range(2):
        assert cur.callproc("calls.[every int]", [None]) == [None]
        assert cur.callproc("calls.[every int]", [-7]) == [-7]
    assert cur.callproc("calls.quiet", [None]) == [None]
    assert cur.callproc("calls.quiet", [1]) == [1]
    assert cur.description is None


def test_output_parameters_after_results_of_sql_server(of_sql_server: onecopy.Connection) -> None:
    cur = of_sql_server.cursor()
    got = cur.callproc("calls.rows_first", [4, None])
    # The first result has the name of the parameter, but is not the output. Row counts come before
    # and between the results.
    assert (got, cur.fetchall()) == ([4, None], [(4,)])
    assert cur.nextset() is True
    assert (got, cur.fetchall()) == ([4, None], [(5, "y"), (5, "y")])
    assert cur.nextset() is None
    assert got == [4, 40]
    # Rows that were not fetched are skipped.
    got = cur.callproc("calls.rows_first", [5, None])
    assert (cur.nextset(), cur.nextset(), got) == (True, None, [5, 50])


def test_row_counts_do_not_hide_output_parameters_of_sql_server(of_sql_server: onecopy.Connection) -> None:
    cur = of_sql_server.cursor()
    assert cur.callproc("calls.counts", [4]) == [5]
    assert cur.description is None


def test_a_call_ends_the_rows_of_its_own_cursor(of_sql_server: onecopy.Connection) -> None:
    cur = of_sql_server.execute("select * from t31000")
    assert cur.fetchone() is not None
    assert cur.callproc("calls.counts", [1]) == [2]
    cur.execute("select * from t31000")
    with pytest.raises(onecopy.ProgrammingError):
        cur.callproc("calls.none", [1])
    assert cur.description is None


INDIA = datetime.timezone(datetime.timedelta(hours=5, minutes=30))
TYPES: list[tuple[str, Any, Any]] = [
    ("bit", True, True),
    ("tinyint", 255, 255),
    ("smallint", -(2**15), -(2**15)),
    ("int", 2**31 - 1, 2**31 - 1),
    ("bigint", -(2**63), -(2**63)),
    ("real", 1.5, 1.5),
    ("float", 0.1, 0.1),
    ("money", Decimal("-1.2345"), Decimal("-1.2345")),
    ("decimal(38,10)", Decimal("1234567890123456789012345678.0123456789"), None),
    ("decimal(38,10)", 3, Decimal("3.0000000000")),
    ("nvarchar(20)", "Zoë 東京 😀", "Zoë 東京 😀"),
    ("nvarchar(20)", "x" * 30, "x" * 20),
    ("nvarchar(max)", "я" * 100_000, None),
    ("varchar(20)", "Zoë", "Zoë"),
    ("varchar(max)", "y" * 9_000, None),
    ("nchar(4)", "é", "é   "),
    ("char(4)", "é", "é   "),
    ("binary(3)", b"\x01", b"\x01\0\0"),
    ("varbinary(20)", b"\0\xff", b"\0\xff"),
    ("varbinary(max)", b"\x01" * 100_001, None),
    ("date", datetime.date(2024, 2, 29), None),
    ("time(3)", "23:59:59.123", datetime.time(23, 59, 59, 123_000)),
    ("datetime", datetime.datetime(2024, 2, 29, 23, 59, 58, 130_000), None),
    ("datetime2(6)", datetime.datetime(9999, 12, 31, 23, 59, 59, 999_999), None),
    ("datetimeoffset(6)", "2024-02-29T23:59:58.123456+05:30", None),
    ("uniqueidentifier", uuid.UUID("00112233-4455-6677-8899-aabbccddeeff"), None),
    ("xml", "<a>é</a>", "<a>é</a>"),
    ("sql_variant", "é 東", "é 東"),
    ("sql_variant", 12, "12"),
]


@pytest.mark.parametrize(("of_type", "value", "expected"), TYPES, ids=lambda v: str(v)[:24])
def test_a_value_of_each_type_is_returned_by_sql_server(
    of_sql_server: onecopy.Connection, of_type: str, value: Any, expected: Any
) -> None:
    cur = of_sql_server.cursor()
    (found,) = cur.callproc(f"calls.[every {of_type}]", [value])
    if of_type == "datetimeoffset(6)":
        expected = datetime.datetime(2024, 2, 29, 23, 59, 58, 123456, INDIA)
        assert found.utcoffset() == expected.utcoffset()
    expected = value if expected is None else expected
    assert (found, type(found)) == (expected, type(expected))
    # NULL is accepted for each type, including binary, to which text does not convert.
    assert cur.callproc(f"calls.[every {of_type}]", [None]) == [None]


@pytest.mark.parametrize("version", ["7.2", "7.3"])
def test_older_protocol_versions_call_procedures_too(tds_freetds: Database, version: str) -> None:
    con = onecopy.connect(tds_freetds.odbc.replace("TDS_Version=7.4", f"TDS_Version={version}"))
    got = con.cursor().callproc("calls.mixed", [1, None, 2, None, None])
    assert got[:4] == [1, "é 1", 4, Decimal("0.25")]
    con.close()


@pytest.mark.parametrize(
    "name",
    [
        *("plain", "dbo.plain", "onecopy.dbo.plain", "onecopy..plain", '[dbo]."plain"', "[odd d].[a]]b.c]"),
        *("#passing", "tempdb..#passing", "elsewhere.dbo.far", "elsewhere..far"),
        *("sp_everywhere", "master..sp_everywhere", "sp_of_the_system"),
    ],
)
def test_procedures_of_sql_server_may_have_qualified_names(of_sql_server: onecopy.Connection, name: str) -> None:
    assert of_sql_server.cursor().callproc(name, [1]) == [2]


def test_synonyms_and_user_defined_types_of_sql_server(of_sql_server: onecopy.Connection) -> None:
    cur = of_sql_server.cursor()
    assert cur.callproc("calls.other_name", [1, None, 3, None, None])[:3] == [1, "é 1", 6]
    assert cur.callproc("calls.labels", ["a" * 12, "text", "b"]) == ["a" * 10, "text", "b"]
    # The parameters of an extended procedure are not in the catalog: they are passed, without
    # outputs.
    assert cur.callproc("xp_extended", [1, "two"]) == [1, "two"]


def test_parameters_with_defaults_may_be_omitted_with_sql_server(of_sql_server: onecopy.Connection) -> None:
    cur = of_sql_server.cursor()
    assert cur.callproc("calls.optional", [1]) == [1]
    assert cur.callproc("calls.optional", [1, 2, None]) == [1, 2, 3]
    with pytest.raises(onecopy.ProgrammingError, match="'@a', which was not supplied") as caught:
        cur.callproc("calls.optional")
    assert caught.value.native_code == 201
    with pytest.raises(onecopy.ProgrammingError, match="3 parameters, 4 were given") as caught:
        cur.callproc("calls.optional", [1, 2, 3, 4])
    assert caught.value.sqlstate == "07002"


def test_functions_of_sql_server_return_rows(of_sql_server: onecopy.Connection) -> None:
    cur = of_sql_server.cursor()
    # Scalar functions need their schema, which the catalog has.
    for name in ("calls.add_up", "add_up", "sum_of"):
        assert cur.callproc(name, [2, 3]) == [2, 3]
        assert cur.fetchall() == [(5,)]
    assert cur.callproc("calls.add_up", [2, None]) == [2, None]
    assert cur.fetchall() == [(None,)]
    assert cur.callproc("calls.many", [3]) == [3]
    assert ([column[0] for column in cur.description or ()], cur.fetchall()) == (["n"], [(1,), (2,), (3,)])
    assert cur.nextset() is None
    with pytest.raises(onecopy.ProgrammingError, match="2 parameters, 3 were given"):
        cur.callproc("calls.add_up", [1, 2, 3])


@pytest.mark.parametrize("how", ["throw", "raise", "count throw", "count raise"])
def test_an_error_of_a_procedure_of_sql_server_is_raised(of_sql_server: onecopy.Connection, how: str) -> None:
    cur = of_sql_server.cursor()
    with pytest.raises(onecopy.ProgrammingError, match="Ошибка: ") as caught:
        cur.callproc("calls.fails", [how, None])
    assert (caught.value.sqlstate, caught.value.native_code) == ("42000", 50_123 if "throw" in how else 50_000)
    assert cur.callproc("calls.counts", [1]) == [2]


@pytest.mark.parametrize("how", ["rows throw", "rows raise"])
def test_an_error_after_rows_of_sql_server_is_raised_in_order(of_sql_server: onecopy.Connection, how: str) -> None:
    cur = of_sql_server.cursor()
    got = cur.callproc("calls.fails", [how, None])
    assert [cur.fetchone() for _ in range(3)] == [(1,)] * 3
    with pytest.raises(onecopy.ProgrammingError, match="Ошибка: "):
        cur.nextset()
    assert got == [how, None]
    assert of_sql_server.cursor().callproc("calls.counts", [1]) == [2]


@pytest.mark.parametrize(
    ("name", "parameters", "error", "words"),
    [
        ("calls.none", [1], onecopy.ProgrammingError, "none"),
        ("calls.mixed", ["no number", None, None, None, None], onecopy.DataError, "converting"),
        ("calls.[every varbinary(20)]", ["text"], onecopy.DatabaseError, "not allowed"),
        ("calls.tables", [[1]], onecopy.NotSupportedError, "`@rows` of `calls.tables` is a table"),
        ("calls.cursors", [1, None], onecopy.NotSupportedError, "`@c` of `calls.cursors` is a cursor"),
        ("there.a.b.c", [1], onecopy.NotSupportedError, "another server"),
        ("calls.beyond", [1], onecopy.NotSupportedError, "another server"),
        ("plain; drop table kept", [], onecopy.ProgrammingError, "not the name"),
        ("plain;1", [1], onecopy.ProgrammingError, "not the name"),
        ("[plain", [1], onecopy.ProgrammingError, "not the name"),
        ("[]", [1], onecopy.ProgrammingError, "not the name"),
        (".plain", [1], onecopy.ProgrammingError, "not the name"),
        ("dbo.", [1], onecopy.ProgrammingError, "not the name"),
        ("", [], onecopy.ProgrammingError, "not the name"),
    ],
)
def test_wrong_calls_of_sql_server_are_refused(
    of_sql_server: onecopy.Connection, name: str, parameters: list[Any], error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words):
        of_sql_server.cursor().callproc(name, parameters)
    assert of_sql_server.cursor().callproc("plain", [1]) == [2]


def test_a_procedure_of_sql_server_with_asyncio(tds_msodbc: Database) -> None:
    async def main() -> None:
        con = await aio.connect(tds_msodbc.odbc)
        cur = con.cursor()
        got = await cur.callproc("calls.rows_first", [4, None])
        assert await cur.fetchall() == [(4,)]
        assert (await cur.nextset(), await cur.nextset(), got) == (True, None, [4, 40])
        await con.close()

    asyncio.run(main())


@pytest.mark.parametrize(
    ("of_catalog", "declared"),
    [
        (("nvarchar", "sys", False, False, "nvarchar", -1, 0, 0), "nvarchar(max)"),
        (("nchar", "sys", False, False, "nchar", 8, 0, 0), "nchar(4)"),
        (("numeric", "sys", False, False, "numeric", 9, 12, 3), "numeric(12, 3)"),
        (("float", "sys", False, False, "float", 8, 53, 0), "float"),
        (("timestamp", "sys", False, False, "timestamp", 8, 0, 0), "timestamp"),
        (("image", "sys", False, False, "image", 16, 0, 0), "varbinary(max)"),
        (("label", "calls", True, False, "varchar", 10, 0, 0), "varchar(10)"),
        # CLR types: those of the system are in sys, and not based on a system type.
        (("hierarchyid", "sys", False, False, None, 892, 0, 0), "hierarchyid"),
        (("po]int", "dbo", True, False, None, 20, 0, 0), "[dbo].[po]]int]"),
    ],
)
def test_a_variable_has_the_type_in_the_catalog(of_catalog: tuple[Any, ...], declared: str) -> None:
    assert _tsql.Parameter._make(("@a", *of_catalog, True, False)).declared() == declared
