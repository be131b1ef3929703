"""Parameters: decimals are exact, timedeltas are intervals, and operators may contain a question
mark."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from decimal import Decimal

import pytest

import onecopy
from tests.conftest import Database

pytestmark = pytest.mark.filterwarnings("ignore::onecopy.DriverWarning")
INDIA = dt.timezone(dt.timedelta(hours=5, minutes=30))


@pytest.fixture
def maria(mariadb: Database) -> Iterator[onecopy.Connection]:
    """A connection to MariaDB with a table of exact decimals that would be equal as doubles."""
    con = onecopy.connect(mariadb.odbc)
    con.execute("create temporary table d (id integer, a decimal(40,0))")
    con.executemany("insert into d values (?, ?)", [(k, Decimal(10**30 + k)) for k in range(3)])
    yield con
    con.close()


def test_mariadb_computes_exactly_with_decimals(maria: onecopy.Connection) -> None:
    for _ in range(3):
        assert maria.execute("select 0.1 + ?", [Decimal("0.2")]).fetchone() == (Decimal("0.3"),)
        assert maria.execute("select round(?, 1)", [Decimal("0.25")]).fetchone() == (Decimal("0.3"),)
    sql = "select count(*) from d where a in (?, ?)"
    assert maria.execute(sql, [Decimal(10**30), Decimal(10**30 + 1)]).fetchone() == (2,)
    assert maria.execute(sql, [10**30, 10**30]).fetchone() == (1,)
    assert maria.execute("select :a, '?', :a", {"a": Decimal("-1.50")}).fetchone() == (
        Decimal("-1.50"),
        "?",
        Decimal("-1.50"),
    )


def test_mariadb_computes_exactly_in_executemany(maria: onecopy.Connection) -> None:
    given = [(Decimal("0.2"), k) for k in range(3)]
    assert maria.executemany("update d set a = a + ? * 5 where id = ?", given).rowcount == 3
    assert maria.execute("select a from d order by id").fetchall() == [(Decimal(10**30 + k + 1),) for k in range(3)]
    with pytest.raises(onecopy.ProgrammingError) as failed:
        maria.executemany("update d set a = a + ? where id = ?", [*given, (Decimal(1),)])
    assert failed.value.row == 3


@pytest.mark.parametrize("profile", ["sqlite", "sqlite_odbc"])
def test_sqlite_compares_decimals_as_numbers(request: pytest.FixtureRequest, profile: str) -> None:
    target = "sqlite::memory:" if profile == "sqlite" else request.getfixturevalue(profile).odbc
    con = onecopy.connect(target)
    for value, stored, name in [
        (Decimal("3"), 3, "integer"),
        (Decimal("-1E+3"), -1000, "integer"),
        (Decimal("3.00"), 3, "integer"),
        (Decimal("0.5"), 0.5, "real"),
        (Decimal("-123.0625"), -123.0625, "real"),
    ]:
        assert con.execute("select 5 > ?, ?, typeof(?)", [value] * 3).fetchone() == (1, stored, name)
    con.execute("create temporary table exact (a)")
    con.executemany("insert into exact values (?)", [(Decimal(k),) for k in range(5)])
    assert con.execute("select sum(a) > ? from exact", [Decimal(9)]).fetchone() == (1,)
    for inexact in (Decimal("0.1"), Decimal("1E-7"), Decimal(2**63), 2**63, -(2**63) - 1):
        with pytest.raises(onecopy.DataError, match=r"parameter 2 is `.*`, which SQLite has no exact number for"):
            con.execute("select ?, ?", [1, inexact])
        with pytest.raises(onecopy.DataError):
            con.executemany("insert into exact values (?)", [(inexact,)])
    # As text by option.
    con.adapters[Decimal] = str
    assert con.execute("select ?", [Decimal("0.10")]).fetchone() == ("0.10",)
    con.close()


@pytest.fixture(params=["postgres_native", "postgres", "postgres_ansi"])
def pg(request: pytest.FixtureRequest) -> Iterator[onecopy.Connection]:
    """A connection to PostgreSQL, through each of its drivers."""
    con = onecopy.connect(request.getfixturevalue(request.param).odbc)
    yield con
    con.close()


def test_a_timedelta_is_an_interval_in_expressions(pg: onecopy.Connection) -> None:
    two_days = dt.timedelta(days=2)
    moment = dt.datetime(2026, 1, 3, 4, 5, 6)
    for _ in range(5):
        assert pg.execute("select now() - ? < now()", [two_days]).fetchone() == (True,)
        assert pg.execute("select cast(? as timestamp) - ?", [moment, two_days]).fetchone() == (moment - two_days,)
        assert pg.execute("select :span", {"span": -two_days}).fetchone() == (-two_days,)


def test_a_timedelta_is_an_interval_in_executemany(pg: onecopy.Connection) -> None:
    pg.execute("create temporary table spans (id integer, at timestamp, span interval)")
    start = dt.datetime(2026, 1, 1)
    spans = [None if k % 3 == 0 else dt.timedelta(k, 5, 6) for k in range(40)]
    pg.executemany("insert into spans values (?, ?, ?)", [(k, start, span) for k, span in enumerate(spans)])
    pg.executemany("update spans set at = at + ? where id = ?", [(span, k) for k, span in enumerate(spans)])
    found = pg.execute("select at, span from spans order by id").fetchall()
    assert found == [(None if span is None else start + span, span) for span in spans]


def test_a_time_with_a_zone_is_a_timetz_of_postgresql(pg: onecopy.Connection) -> None:
    for zone, text in ((INDIA, "+05:30"), (dt.timezone.utc, "+00")):
        value = dt.time(1, 2, 3, 500000, tzinfo=zone)
        sql = "select ?, ? = cast(? as time with time zone)"
        expected = value if pg.driver_name == "onecopy" else f"01:02:03.5{text}"
        assert pg.execute(sql, [value, value, f"01:02:03.5{text}"]).fetchone() == (expected, True)


def test_a_time_with_a_zone_is_refused_by_other_databases(con: onecopy.Connection) -> None:
    with pytest.raises(TypeError, match="a type in PostgreSQL only"):
        con.execute("select ?", [dt.time(1, tzinfo=INDIA)])


def test_a_doubled_question_mark_is_part_of_an_operator(pg: onecopy.Connection) -> None:
    value = """cast('{"a": 1}' as jsonb)"""
    for _ in range(5):
        assert pg.execute(f"select {value} ?? 'a', {value}??'z'").fetchone() == (True, False)
        sql = f"select {value} ?? ?, {value} ??| array[?, 'z'], {value} ??& array['a', ?], {value} @?? '$.a'"
        assert pg.execute(sql, ["a", "a", "z"]).fetchone() == (True, True, False, True)
        assert pg.execute(f"select {value} ?? :key, '??' -- ??\n", {"key": "a"}).fetchone() == (True, "??")
    pg.execute("create temporary table keys (a jsonb)")
    pg.executemany(f"insert into keys select {value} where {value} ?? ?", [("a",), ("z",), ("a",)])
    assert pg.execute("select count(*) from keys").fetchone() == (2,)


def test_a_question_mark_that_is_not_doubled_is_a_parameter(pg: onecopy.Connection) -> None:
    with pytest.raises(onecopy.ProgrammingError, match="1 parameters, 0 were given"):
        pg.execute("""select cast('{"a": 1}' as jsonb) ? 'a'""")
    with pytest.raises(onecopy.ProgrammingError, match=r"written with `\?\?`"):
        pg.execute("select cast(:a as jsonb) ? :b", {"a": "{}", "b": "c"})
