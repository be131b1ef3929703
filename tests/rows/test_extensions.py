"""Extensions of PEP 249: the database's name, time limits, and the types and number of
parameters."""

from __future__ import annotations

import datetime
import uuid
from decimal import Decimal
from typing import Any

import pytest

import onecopy
from tests.conftest import Database

pytestmark = pytest.mark.filterwarnings("ignore::onecopy.DriverWarning")

DIALECTS = {
    "postgres_native": "postgresql",
    "postgres": "postgresql",
    "mariadb": "mysql",
    "sqlite_odbc": "sqlite",
    "tds_freetds": "mssql",
}


@pytest.mark.parametrize("profile", list(DIALECTS))
def test_the_connection_knows_its_database_and_driver(request: pytest.FixtureRequest, profile: str) -> None:
    con = onecopy.connect(request.getfixturevalue(profile).odbc)
    assert con.dialect == DIALECTS[profile]
    for name in (con.dbms_name, con.dbms_version, con.driver_name, con.driver_version):
        assert name
        assert name in repr(con)
    con.close()


def test_sqlite_is_its_own_driver(con: onecopy.Connection) -> None:
    assert (con.dialect, con.dbms_name, con.driver_name) == ("sqlite", "SQLite", "onecopy")
    assert con.execute("select sqlite_version()").fetchone() == (con.dbms_version,)
    assert con.driver_version == onecopy.__version__


FOREVER = "with recursive n(i) as (select 1 union all select i + 1 from n) select max(i) from n"


@pytest.mark.parametrize("profile", ["sqlite", "postgres_native", "postgres", "mariadb"])
def test_a_statement_beyond_its_time_limit_is_cancelled(request: pytest.FixtureRequest, profile: str) -> None:
    if profile == "sqlite":
        con = onecopy.connect("sqlite::memory:", query_timeout=0.05)
        sql = FOREVER
    else:
        con = onecopy.connect(request.getfixturevalue(profile).odbc, query_timeout=0.05)
        sql = "select pg_sleep(600)" if profile.startswith("postgres") else "select benchmark(1000000000000, md5('x'))"
    assert con.query_timeout == 0.05
    with pytest.raises(onecopy.OperationalError, match=r"time limit of 0\.05 s") as caught:
        con.execute(sql).fetchall()
    assert caught.value.sqlstate == "HYT00"
    con.rollback()
    # The connection survives, and a cursor has its own limit.
    cur = con.cursor()
    cur.query_timeout = None
    assert (cur.query_timeout, con.query_timeout) == (None, 0.05)
    assert cur.execute("select 1").fetchall() == [(1,)]
    con.query_timeout = None
    assert con.cursor().query_timeout is None
    con.close()


def test_rows_that_take_too_long_are_cancelled(con: onecopy.Connection) -> None:
    cur = con.cursor()
    cur.query_timeout = 0.05
    # The first row comes at once, the second never.
    cur.execute(f"select 1 union all select * from ({FOREVER})")
    assert cur.fetchone() == (1,)
    with pytest.raises(onecopy.OperationalError, match="time limit"):
        cur.fetchone()
    assert con.execute("select 1").fetchall() == [(1,)]


@pytest.mark.parametrize("seconds", [0, -1, float("nan"), float("inf")])
def test_a_limit_must_be_above_zero(con: onecopy.Connection, seconds: float) -> None:
    with pytest.raises(ValueError, match="time limit"):
        con.query_timeout = seconds
    with pytest.raises(ValueError, match="time limit"):
        onecopy.connect("sqlite::memory:", query_timeout=seconds)


def test_a_limit_that_is_not_reached_changes_nothing(con: onecopy.Connection) -> None:
    con.query_timeout = 3600
    assert con.execute("select 1").fetchall() == [(1,)]
    con.execute("create table t (a)")
    assert con.executemany("insert into t values (?)", [[1], [2]]).rowcount == 2
    with pytest.raises(onecopy.ProgrammingError):
        con.execute("selec 1")


def test_read_only_and_autocommit_exclude_each_other(psqlodbc: Database) -> None:
    with pytest.raises(onecopy.NotSupportedError, match="no autocommit"):
        onecopy.connect(psqlodbc.odbc, read_only=True, autocommit=True)


@pytest.mark.parametrize("given", [[], [1], [1, 2, 3]])
def test_a_wrong_number_of_parameters_names_both_counts(any_odbc: Database, given: list[int]) -> None:
    con = onecopy.connect(any_odbc.odbc)
    with pytest.raises(onecopy.ProgrammingError) as caught:
        con.execute("select ?, ?", given)
    assert f"the statement has 2 parameters, {len(given)} were given" in str(caught.value)
    assert caught.value.sqlstate == "07002"
    con.rollback()
    assert con.execute("select 1").fetchall() == [(1,)]
    con.close()


@pytest.mark.parametrize("given", [[], [1], [1, 2, 3]])
def test_a_wrong_number_of_parameters_in_sqlite(con: onecopy.Connection, given: list[int]) -> None:
    with pytest.raises(onecopy.ProgrammingError, match=f"2 parameters, {len(given)} were given") as caught:
        con.execute("select ?, ?", given)
    assert caught.value.sqlstate == "07002"


SIZES: list[tuple[Any, str, Any, Any]] = [
    (onecopy.NUMBER, "bigint", None, None),
    (onecopy.NUMBER, "bigint", 7, 7),
    ("decimal", "numeric(10, 2)", None, None),
    (("decimal", 10, 2), "numeric(10, 2)", Decimal("1.5"), Decimal("1.50")),
    (("decimal", 10, 1), "numeric(10, 3)", Decimal("123456.125"), Decimal("123456.125")),
    ("decimal", "numeric(10, 2)", 12, Decimal("12.00")),
    (str, "text", None, None),
    (3, "text", "longer than said", "longer than said"),
    ((str, 100), "text", "é", "é"),
    (onecopy.DATETIME, "timestamp", None, None),
    ("date", "date", datetime.date(2026, 11, 20), datetime.date(2026, 11, 20)),
    (float, "double precision", 0.1, 0.1),
    (bytes, "bytea", b"\0\xff", b"\0\xff"),
    (onecopy.BINARY, "bytea", None, None),
    (bool, "boolean", None, None),
    (uuid.UUID, "uuid", None, None),
    (None, "int", 5, 5),
]


@pytest.mark.parametrize(("size", "sql_type", "given", "expected"), SIZES)
def test_types_of_parameters_are_reported(
    postgres: Database, size: Any, sql_type: str, given: Any, expected: Any
) -> None:
    con = onecopy.connect(postgres.odbc)
    cur = con.cursor()
    cur.setinputsizes([size])
    cur.execute(f"create temporary table given_types (a {sql_type})")  # A statement without parameters uses them up.
    cur.setinputsizes([size])
    cur.execute("insert into given_types values (?)", [given])
    assert cur.execute("select a from given_types").fetchall() == [(expected,)]
    cur.setinputsizes([size])
    cur.executemany("insert into given_types values (?)", [[given]] * 5)
    assert con.execute("select a from given_types").fetchall() == [(expected,)] * 6
    con.close()


@pytest.mark.parametrize("profile", ["tds_freetds", "tds_msodbc", "tds_rust"])
def test_a_null_with_a_declared_type_is_sent_to_sql_server(request: pytest.FixtureRequest, profile: str) -> None:
    con = onecopy.connect(request.getfixturevalue(profile).odbc)
    cur = con.cursor()
    for size, sql_type in [(bytes, "varbinary(9)"), (str, "nvarchar(9)"), ("integer", "bigint"), ("date", "date")]:
        cur.setinputsizes([size])
        assert cur.execute("select ?", [None]).fetchall() == [(None,)], sql_type
    con.close()


def test_sizes_change_nothing_in_sqlite(con: onecopy.Connection) -> None:
    cur = con.cursor()
    cur.setinputsizes([("decimal", 3, 1), None, str])
    assert cur.execute("select ?, ?, ?", [1.25, None, "é"]).fetchall() == [(1.25, None, "é")]
    cur.setoutputsize(100)
    cur.setoutputsize(100, 1)


@pytest.mark.parametrize("wrong", [object(), "no such type", ("decimal", "x"), complex, (str, -1), ("text", 1, 2, 3)])
def test_a_wrong_size_is_a_type_error(con: onecopy.Connection, wrong: Any) -> None:
    with pytest.raises(TypeError):
        con.cursor().setinputsizes([wrong])
