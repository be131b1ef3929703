"""`onecopy.compat.pyodbc` compared with pyodbc: the same calls give the same results.

docs/guide/from-pyodbc.md lists the differences.
"""

from __future__ import annotations

import datetime
import pathlib
import pickle
import struct
import sys
import uuid
from collections.abc import Callable, Iterator
from decimal import Decimal
from typing import Any

import pytest

import onecopy
from onecopy.compat import pyodbc as ours
from onecopy.compat.pyodbc import _connect, _raw
from tests.conftest import Database

theirs = pytest.importorskip("pyodbc", exc_type=ImportError)

pytestmark = pytest.mark.filterwarnings("ignore::onecopy.DriverWarning")

#: Names of pyodbc 5.5 that we do not have: handles, and an internal setting.
LEFT_OUT = {
    "Connection": {"compat_diagrec_byte_length", "hdbc"},
    "Cursor": {"hstmt"},
    "Row": set[str](),
}


@pytest.fixture
def con() -> Iterator[ours.Connection]:
    connection = ours.connect("sqlite::memory:")
    yield connection
    connection.close()


@pytest.fixture
def both(postgres: Database, psqlodbc: Database) -> Iterator[tuple[Any, Any]]:
    """A connection of onecopy to PostgreSQL, and one of pyodbc through psqlodbc."""
    mine, other = ours.connect(postgres.odbc), theirs.connect(psqlodbc.odbc)
    other.setdecoding(theirs.SQL_CHAR, encoding="utf-8")
    yield mine, other
    mine.close()
    other.close()


@pytest.fixture
def both_by_odbc(psqlodbc: Database) -> Iterator[tuple[Any, Any]]:
    """A connection of onecopy and one of pyodbc, both through psqlodbc.

    It is used where the driver determines sizes and messages.
    """
    mine, other = ours.connect(psqlodbc.odbc), theirs.connect(psqlodbc.odbc)
    other.setdecoding(theirs.SQL_CHAR, encoding="utf-8")
    yield mine, other
    mine.close()
    other.close()


def test_every_name_exists() -> None:
    assert {n for n in dir(theirs) if not n.startswith("_")} - set(dir(ours)) == set()
    for name in (n for n in dir(theirs) if n.startswith("SQL_")):
        assert getattr(ours, name) == getattr(theirs, name), name
    for name, left_out in LEFT_OUT.items():
        assert set(dir(getattr(theirs, name))) - set(dir(getattr(ours, name))) == left_out
    for name in ("apilevel", "paramstyle", "threadsafety", "version", "odbcversion", "lowercase", "native_uuid"):
        assert getattr(ours, name) == getattr(theirs, name)
    for name in ("STRING", "BINARY", "NUMBER", "DATETIME", "ROWID", "Binary", "Date", "Time", "Timestamp"):
        assert getattr(ours, name) is getattr(theirs, name)
    assert ours.getDecimalSeparator() == "."
    ours.setDecimalSeparator(",")


def test_exceptions_inherit_as_in_pyodbc_and_from_ours() -> None:
    for name in (n for n in onecopy.errors.__all__ if n != "DriverWarning"):
        mine, other = getattr(ours, name), getattr(theirs, name)
        parents = [p.__name__ for p in other.__mro__ if p.__module__ == "pyodbc"]
        assert [p.__name__ for p in mine.__mro__ if p.__module__.startswith("onecopy.compat")] == parents
        assert issubclass(mine, getattr(onecopy, name))


SAME = [
    "select 1 as a, 'Zürich 東京 😀' as b, null::text as c",
    "select 1.50::numeric(10,2) as d, '2020-01-02'::date as e, '2020-01-02 03:04:05.000006'::timestamp as f",
    "select '\\x00ff'::bytea as g, '7b3f1c1e-0000-4000-8000-000000000001'::uuid as h, 0.1::float8 as i",
    "select 9223372036854775807 as j, '{}'::jsonb as k, '01:02:03'::time as l, 'x'::varchar(7) as m",
]


@pytest.mark.parametrize("sql", SAME)
def test_rows_and_descriptions_are_the_same(both_by_odbc: tuple[Any, Any], sql: str) -> None:
    mine, other = (c.execute(sql) for c in both_by_odbc)
    assert mine.description == tuple(
        # pyodbc returns the type's scale if it has one, and 0 for the size of unlimited types.
        (*d[:3], d[3] or None, d[4] or None, *d[5:])
        for d in other.description
    )
    a, b = mine.fetchone(), other.fetchone()
    assert tuple(a) == tuple(b)
    assert [type(v) for v in a] == [type(v) for v in b]
    assert repr(a) == repr(b)
    assert mine.fetchone() is None and other.fetchone() is None


ERRORS = [
    "selec 1",
    "select * from nowhere",
    "select 1 / 0",
    "select 'x'::int",
    "insert into once values (1)",
    "insert into once values (null)",
    "commit and chain nonsense",
]


@pytest.mark.parametrize("sql", ERRORS)
def test_errors_have_the_same_class_and_arguments(both_by_odbc: tuple[Any, Any], sql: str) -> None:
    caught = []
    for con in both_by_odbc:
        con.execute("create temporary table once (a int primary key)")
        con.execute("insert into once values (1)")
        with pytest.raises((ours.Error, theirs.Error)) as error:
            con.execute(sql).fetchall()
        caught.append(error.value)
        con.rollback()
    mine, other = caught
    assert type(mine).__name__ == type(other).__name__
    assert mine.args[0] == other.args[0]
    assert mine.args[1].partition(" (1)")[0] == other.args[1].partition(" (1)")[0]
    assert isinstance(mine, onecopy.Error) and mine.sqlstate == mine.args[0]


CALLS: list[Callable[[Any], Any]] = [
    lambda cur: cur.execute("select ?::int, ?", 1, "x").fetchall(),
    lambda cur: cur.execute("select ?::int, ?", (1, "x")).fetchall(),
    lambda cur: cur.execute("select ?::int, ?", [1, "x"]).fetchall(),
    lambda cur: cur.execute("select ?::int, ?", cur.execute("select 1, 'x'").fetchone()).fetchall(),
    lambda cur: cur.execute("select ?::text", None).fetchall(),
    lambda cur: cur.execute("select 1", ()).fetchval(),
    lambda cur: cur.execute("select 1 where false").fetchval(),
    lambda cur: cur.executemany("insert into t values (?, ?)", [(5, "a"), (6, "b")]),
    lambda cur: cur.executemany("insert into t values (?, ?)", ((i, None) for i in range(3))),
    lambda cur: cur.execute("insert into t values (7, 'c')").rowcount,
    lambda cur: [cur.execute("select generate_series(1, 5)").rowcount, cur.fetchone(), cur.rowcount, cur.fetchall()],
    lambda cur: cur.execute("create temporary table third (a int)").rowcount,
    lambda cur: cur.execute("drop table t").rowcount,
    lambda cur: cur.execute("select generate_series(1, 10)").skip(3) or cur.fetchmany(2) + cur.fetchall(),
    lambda cur: cur.execute("select 1").skip(9) or cur.fetchone(),
    lambda cur: [*cur.execute("select generate_series(1, 3)")],
    lambda cur: next(cur.execute("select 4")),
    lambda cur: [cur.execute("select 1; select 2").fetchall(), cur.nextset(), cur.fetchall(), cur.nextset()],
    lambda cur: cur.execute("create temporary table other (a int)").description,
    lambda cur: (cur.arraysize, cur.messages, cur.fast_executemany, cur.connection.closed),
    lambda cur: cur.setinputsizes([(12, 50, 0)]),
    lambda cur: (cur.connection.searchescape, cur.connection.timeout, cur.connection.autocommit),
    lambda cur: cur.connection.getinfo(theirs.SQL_DBMS_NAME),
    lambda cur: cur.connection.getinfo(theirs.SQL_DATABASE_NAME),
    lambda cur: cur.connection.getinfo(theirs.SQL_USER_NAME),
    lambda cur: cur.connection.getinfo(theirs.SQL_MAX_IDENTIFIER_LEN),
    lambda cur: (lambda row: (row.a, row[-1], len(row), 2 in row))(cur.execute("select 1 as a, 2 as a").fetchone()),
    lambda cur: cur.execute("select 1").fetchone() == (1,),
    lambda cur: cur.execute("select 1").fetchone() == cur.execute("select 1").fetchone(),
    lambda cur: cur.execute("select ?", object()),
    lambda cur: cur.executemany("insert into t values (?, ?)", []),
    lambda cur: cur.executemany("insert into t values (?, ?)", None),
    lambda cur: cur.connection.cursor().fetchone(),
    lambda cur: cur.execute("create temporary table other (a int)").fetchall(),
    lambda cur: cur.close() or cur.execute("select 1"),
    lambda cur: cur.execute("select 1 as a").fetchone().b,
    lambda cur: hash(cur.execute("select 1 as a").fetchone()),
]


@pytest.mark.parametrize("call", CALLS, ids=range(len(CALLS)))
def test_calls_return_the_same(both: tuple[Any, Any], call: Callable[[Any], Any]) -> None:
    outcomes: list[Any] = []
    for con in both:
        cur = con.cursor()
        cur.execute("create temporary table t (a int, b text)")
        try:
            outcomes.append(repr(call(cur)))
        except Exception as error:
            outcomes.append(type(error).__name__)
        con.rollback()
    assert outcomes[0] == outcomes[1]


CONVERTED = [
    ("SQL_INTEGER", "select 1, null::int"),
    ("SQL_VARCHAR", "select 'xя'::varchar(9)"),
    ("SQL_VARBINARY", "select '\\x00ff'::bytea"),
    ("SQL_DOUBLE", "select 0.1::float8"),
    ("SQL_TYPE_DATE", "select '2020-01-02'::date"),
    ("SQL_TYPE_TIMESTAMP", "select '2020-01-02 03:04:05.000006'::timestamp"),
]


@pytest.mark.parametrize(("name", "sql"), CONVERTED)
def test_output_converters_get_the_same_bytes(both: tuple[Any, Any], name: str, sql: str) -> None:
    number = getattr(theirs, name)
    seen = []
    for con in both:
        # Some of our types are several in pyodbc.
        for same in _raw.CODES if con is both[1] else [number]:
            if _raw.CODES[same] == _raw.CODES[number]:
                con.add_output_converter(same, bytes.hex)
        assert con.get_output_converter(number) is bytes.hex
        try:
            seen.append([*con.execute(sql).fetchone()])
        except theirs.Error:
            seen.append([])  # psqlodbc refuses to return some types as bytes.
        con.clear_output_converters()
        assert con.get_output_converter(number) is None
        con.rollback()
    assert seen[0] == seen[1] or not seen[1]


def test_output_converters_of_datetimeoffset_have_its_struct(tds_msodbc: Database) -> None:
    con = ours.connect(tds_msodbc.odbc)
    sql = "select cast('2020-01-02 03:04:05.6 -05:30' as datetimeoffset(7))"
    con.add_output_converter(-155, lambda raw: struct.unpack("<6hI2h", raw))
    assert con.execute(sql).fetchval() == (2020, 1, 2, 3, 4, 5, 600_000_000, -5, -30)
    con.remove_output_converter(-155)
    zone = datetime.timezone(-datetime.timedelta(hours=5, minutes=30))
    assert con.execute(sql).fetchval() == datetime.datetime(2020, 1, 2, 3, 4, 5, 600_000, zone)
    with pytest.raises(ours.NotSupportedError):
        con.add_output_converter(4711, bytes)
    con.close()


def test_a_row_has_attributes_and_can_be_changed_and_pickled(con: ours.Connection) -> None:
    row: Any = con.execute("select 1 as id, 'x' as name, 3 as count, 4 as \"a b\"").fetchone()
    assert (row.id, row.name, row.count, getattr(row, "a b")) == (1, "x", 3, 4)
    row.name = "y"
    row[0] = 7
    assert (row[1], row.id, tuple(row)) == ("y", 7, (7, "y", 3, 4))
    with pytest.raises(AttributeError):
        row.other = 1
    again = pickle.loads(pickle.dumps(row))
    assert again == row and again.name == "y"
    assert [c[0] for c in again.cursor_description] == ["id", "name", "count", "a b"]
    assert isinstance(row, ours.Row)


def test_a_row_is_created_from_its_description_indexes_and_values() -> None:
    for row in (made.Row((("a",), ("b",)), {"a": 0, "z": 1}, 1, "x") for made in (ours, theirs)):
        assert (row.a, row.z, row[1], tuple(row), len(row)) == (1, "x", "x", (1, "x"), 2)
        assert row.cursor_description == (("a",), ("b",))
        again = pickle.loads(pickle.dumps(row))
        assert again == row and again.z == "x"
        with pytest.raises(AttributeError):
            _ = row.b
    for make in (ours.Row, theirs.Row):
        assert isinstance(make(("x",), {"a": 0}, 1), make)
        for index in (1, -1, 2**40):
            with pytest.raises(IndexError):
                _ = make(("x",), {"a": index}, 1).a
        wrong: list[tuple[Any, ...]] = [(), ((1,),), (("x",), {}), (("x",), {}, 1, 2), (["x"], {}, 1), (("x",), [], 1)]
        for args in wrong:
            with pytest.raises(TypeError):
                make(*args)


def test_a_row_that_pyodbc_has_pickled_can_be_loaded(both: tuple[Any, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    pickled = pickle.dumps(both[1].execute("select 1 as a, 'x' as b").fetchall())
    monkeypatch.setitem(sys.modules, "pyodbc", ours)
    [row] = pickle.loads(pickled)
    assert isinstance(row, ours.Row) and (row.a, row.b, len(row)) == (1, "x", 2)


def test_settings_of_the_module(con: ours.Connection, monkeypatch: pytest.MonkeyPatch, postgres: Database) -> None:
    monkeypatch.setattr(ours, "lowercase", True)
    cur = con.execute("select 1 as ID")
    assert cur.description is not None and cur.description[0][0] == "id"
    assert getattr(cur.fetchone(), "id") == 1  # noqa: B009
    monkeypatch.setattr(ours, "native_uuid", True)
    other = ours.connect(postgres.odbc)
    cur = other.execute("select '7b3f1c1e-0000-4000-8000-000000000001'::uuid")
    assert cur.fetchval() == uuid.UUID("7b3f1c1e-0000-4000-8000-000000000001")
    assert cur.description is not None and cur.description[0][1] is uuid.UUID
    other.close()


def test_rows_as_dicts(con: ours.Connection) -> None:
    cur = con.cursor()
    cur.rows_as_dicts = True
    assert cur.execute("select 1 as a").fetchall() == [{"a": 1}]
    assert cur.execute("select 1 as a").fetchval() == 1
    assert cur.rows_as_dicts
    cur.rows_as_dicts = False
    assert isinstance(cur.execute("select 1 as a").fetchone(), ours.Row)


def test_contexts_commit_and_stay_open(tmp_path: pathlib.Path) -> None:
    target = f"sqlite:{tmp_path / 't.db'}"
    with ours.connect(target) as con:
        con.execute("create table t (a)")
    with con.cursor() as cur:
        cur.execute("insert into t values (1)")
    con.rollback()
    assert not con.closed
    rows: list[Any] = con.execute("select a from t").fetchall()
    assert rows[0].a == 1

    def fail() -> None:
        with con:
            con.execute("delete from t")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert con.execute("select count(*) from t").fetchval() == 1
    con.close()
    assert con.closed
    with pytest.raises(ours.ProgrammingError, match="closed connection"):
        con.execute("select 1")


def test_a_statement_past_its_time_limit_is_hyt00(con: ours.Connection) -> None:
    con.timeout = 1
    with pytest.raises(ours.OperationalError) as caught:
        con.execute("with recursive c(i) as (select 1 union all select i + 1 from c) select count(*) from c")
    assert caught.value.args[0] == "HYT00"
    assert con.execute("select 1").fetchval() == 1
    with pytest.raises(ValueError, match="negative"):
        con.timeout = -1


def test_keywords_are_joined_to_the_string(psqlodbc: Database) -> None:
    head, _, _ = psqlodbc.odbc.partition("Uid=")
    con = ours.connect(head, user=psqlodbc.native["user"], password=psqlodbc.password, autocommit=True)
    assert con.autocommit
    assert con.execute("select current_user").fetchval() == psqlodbc.native["user"]
    con.close()
    assert _connect.joined("Driver=x;", {"host": "h", "PWD": "a;b}c"}) == "Driver=x;server=h;PWD={a;b}}c};"
    assert _connect.joined("", {"DSN": "d", "Trusted_Connection": "yes"}) == "DSN=d;Trusted_Connection=yes;"
    with pytest.raises(ours.ProgrammingError):
        ours.connect("sqlite::memory:", uid="x")


@pytest.mark.parametrize(
    ("string", "kind", "state"),
    [
        ("DSN=no-such-dsn;PWD=s3cr3t-Passw0rd", ours.InterfaceError, "IM002"),
        ("sqlite:/no/such/dir/x.db", ours.OperationalError, "HY000"),
    ],
)
def test_a_connection_that_fails_shows_no_password(string: str, kind: type[ours.Error], state: str) -> None:
    with pytest.raises(kind) as caught:
        ours.connect(string)
    assert caught.value.args[0] == state
    assert "s3cr3t-Passw0rd" not in repr(caught.value)


def test_attributes_of_the_connection(postgres: Database) -> None:
    before = {ours.SQL_ATTR_LOGIN_TIMEOUT: 3, ours.SQL_ATTR_AUTOCOMMIT: 1}
    con = ours.connect(postgres.odbc, attrs_before=before, ansi=True, encoding="utf-8")
    assert con.autocommit
    con.set_attr(ours.SQL_ATTR_AUTOCOMMIT, 0)
    con.set_attr(ours.SQL_ATTR_TXN_ISOLATION, ours.SQL_TXN_SERIALIZABLE)
    assert con.execute("show transaction isolation level").fetchval() == "serializable"
    con.setencoding("utf-8")
    con.setdecoding(ours.SQL_CHAR, "utf-8")
    with pytest.raises(ours.NotSupportedError):
        con.set_attr(ours.SQL_ATTR_TRACE, 1)
    with pytest.raises(ours.NotSupportedError):
        con.getinfo(ours.SQL_KEYWORDS)
    con.close()
    with pytest.raises(ours.NotSupportedError, match="1256"):
        ours.connect(postgres.odbc, attrs_before={1256: b"token"})
    readonly = ours.connect(postgres.odbc, readonly=True)
    with pytest.raises(ours.ProgrammingError, match="read-only"):
        readonly.execute("create table never (a int)")
    readonly.close()


def test_drivers_and_data_sources_are_those_of_the_ini_files(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "odbcinst.ini").write_text("[ODBC]\nTrace=no\n[Mine]\nDriver = /x.so\n; [not]\n[Other]\n")
    (tmp_path / "odbc.ini").write_text("[ODBC Data Sources]\na=Mine\n[a]\nDriver = Mine\n")
    (tmp_path / "user.ini").write_text("[b]\ndriver=Other\n")
    monkeypatch.setenv("ODBCSYSINI", str(tmp_path))
    monkeypatch.setenv("ODBCINI", str(tmp_path / "user.ini"))
    assert ours.drivers() == ["Mine", "Other"]
    assert ours.dataSources() == {"a": "Mine", "b": "Other"}
    monkeypatch.delenv("ODBCSYSINI")
    assert ours.drivers() == theirs.drivers()


def test_values_of_sqlite_are_those_of_its_cells(con: ours.Connection) -> None:
    cur = con.execute("select ?, ?, ?, ?", 1, 0.5, "я", b"\0")
    assert cur.fetchone() == cur.execute("select ?, ?, ?, ?", 1, 0.5, "я", b"\0").fetchone()
    assert con.execute("select ?", Decimal("1.50")).fetchval() == "1.50"
    assert (con.getinfo(ours.SQL_DBMS_NAME), con.getinfo(ours.SQL_DATABASE_NAME)) == ("SQLite", "main")


def test_slices_of_a_row_are_tuples_and_all_of_it_is_the_row(con: ours.Connection) -> None:
    row = con.execute("select 1, 2, 3, 4").fetchone()
    assert row is not None
    assert row[:] is row and row[0:4] is row and row[:9] is row
    assert row[:-1] == (1, 2, 3) and type(row[1:]) is tuple and row[::2] == (1, 3)
    assert (str(row[:1]), str(row[:-1]), str(row)) == ("(1,)", "(1, 2, 3)", "(1, 2, 3, 4)")
    assert row[-1] == 4


def test_a_set_is_not_a_row(con: ours.Connection) -> None:
    con.execute("create table sets (a)")
    with pytest.raises(ours.ProgrammingError):
        con.execute("insert into sets values (?)", {1})


@pytest.mark.parametrize("profile", ["postgres_native", "postgres", "mariadb", "sqlite"])
def test_the_access_mode_can_be_set(request: pytest.FixtureRequest, profile: str) -> None:
    con = ours.connect("sqlite::memory:" if profile == "sqlite" else request.getfixturevalue(profile).odbc)
    con.execute("drop table if exists access")
    con.execute("create table access (a integer)")
    con.commit()
    con.set_attr(ours.SQL_ATTR_ACCESS_MODE, 1)
    with pytest.raises(ours.DatabaseError):
        con.execute("insert into access values (1)")
    con.rollback()
    con.set_attr(ours.SQL_ATTR_ACCESS_MODE, 0)
    assert con.execute("insert into access values (1)").rowcount == 1
    con.execute("drop table access")
    con.commit()
    con.close()


INFORMATION = [
    "SQL_DEFAULT_TXN_ISOLATION",
    "SQL_FILE_USAGE",
    "SQL_IDENTIFIER_CASE",
    "SQL_MAX_COLUMN_NAME_LEN",
    "SQL_MAX_TABLE_NAME_LEN",
    "SQL_NON_NULLABLE_COLUMNS",
    "SQL_TXN_ISOLATION_OPTION",
]


@pytest.mark.parametrize("name", INFORMATION)
def test_integers_of_information_are_those_of_pyodbc(both: tuple[Any, Any], name: str) -> None:
    found = [con.getinfo(getattr(theirs, name)) for con in both]
    assert found[0] == found[1] and type(found[1]) is int


def test_all_integers_of_information_are_integers(con: ours.Connection) -> None:
    for code in (ours.SQL_CONCAT_NULL_BEHAVIOR, ours.SQL_CURSOR_COMMIT_BEHAVIOR, ours.SQL_MAX_COLUMNS_IN_TABLE):
        assert type(con.getinfo(code)) is int


def test_a_converter_of_wvarchar_gets_utf8_from_databases_with_utf8(both: tuple[Any, Any]) -> None:
    for con in both:
        con.add_output_converter(theirs.SQL_WVARCHAR, lambda value: b"X" + value)
        assert con.execute("select 'a é'::varchar(9)").fetchone()[0] == b"X" + "a é".encode()
        con.clear_output_converters()
        con.rollback()


def test_the_first_size_of_buffers_is_accepted(con: ours.Connection) -> None:
    assert con.readvar_initsize == 4096
    con.readvar_initsize = 0
    assert con.readvar_initsize == 0
    with pytest.raises(TypeError, match="negative"):
        con.readvar_initsize = -1


def test_a_row_cannot_be_indexed_by_name(con: ours.Connection) -> None:
    row: Any = con.execute("select 1 as a").fetchone()
    with pytest.raises(TypeError, match="row indices must be integers"):
        row["a"]


@pytest.mark.parametrize("row", [{"a"}, frozenset("a"), "a"])
def test_rows_of_parameters_are_lists_or_tuples(con: ours.Connection, row: object) -> None:
    con.execute("create table t (a)")
    with pytest.raises(TypeError, match="list, tuple, or Row"):
        con.cursor().executemany("insert into t values (?)", [row])


def test_a_packet_size_is_only_a_hint(postgres: Database) -> None:
    con = ours.connect(postgres.odbc, attrs_before={ours.SQL_PACKET_SIZE: 4096})
    assert con.execute("select 1").fetchval() == 1
    con.close()
