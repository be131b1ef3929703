"""Python and Arrow values as parameters of PostgreSQL's native protocol."""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from decimal import Decimal

import pytest

import onecopy
from tests.conftest import Database


@pytest.fixture
def con(postgres_native: Database) -> Iterator[onecopy.Connection]:
    connection = onecopy.connect(postgres_native.odbc)
    yield connection
    connection.close()


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (datetime.timedelta(3), "3 days"),
        (datetime.timedelta(1, 7384, 500), "1 day 02:03:04.0005"),
        (datetime.timedelta(hours=25), "1 day 01:00:00"),
        (datetime.timedelta(0), "00:00:00"),
        (datetime.timedelta(hours=-1), "-01:00:00"),
        (datetime.timedelta(-2, 3600), "-1 days -23:00:00"),
        (datetime.timedelta(microseconds=-1), "-00:00:00.000001"),
        (datetime.timedelta(10**8), "100000000 days"),
    ],
)
def test_a_timedelta_keeps_its_days(con: onecopy.Connection, value: datetime.timedelta, text: str) -> None:
    ((written, read, one_of_list),) = con.execute("select (?)::text, ?, (?)[1]", [value, value, [value]]).fetchall()
    assert (written, read, one_of_list) == (text, value, value)


def test_the_longest_timedelta_is_sent(con: onecopy.Connection) -> None:
    spans = [datetime.timedelta.max, datetime.timedelta.min]
    assert con.execute("select (?)::text, (?)::text", spans).fetchall() == [
        ("999999999 days 23:59:59.999999", "-999999999 days")
    ]


@pytest.mark.parametrize(
    "text", ["1 day", "-1 day", "24:00:00", "-00:00:01", "3 days 04:05:06.789", "-2 days -00:00:01"]
)
def test_an_interval_that_is_written_back_is_unchanged_or_normal(con: onecopy.Connection, text: str) -> None:
    ((value, normal),) = con.execute(f"select i, justify_hours(i)::text from (select interval '{text}') as t (i)")
    assert con.execute("select (?)::text", [value]).fetchall() == [(normal,)]


@pytest.mark.parametrize("text", ["NaN", "Infinity", "-Infinity"])
def test_a_decimal_without_digits_is_sent(con: onecopy.Connection, text: str) -> None:
    assert con.execute("select (?)::text, (?)[1]::text", [Decimal(text), [Decimal(text)]]).fetchall() == [(text, text)]
    con.execute("create temporary table z (a numeric)")
    con.executemany("insert into z values (?)", [[Decimal(text)], [Decimal("1.5")]] * 200)
    assert con.execute("select count(*) from z where a = ?", [Decimal(text)]).fetchall() == [(200,)]


def test_a_signalling_nan_is_nan(con: onecopy.Connection) -> None:
    values = [Decimal("sNaN"), Decimal("-NaN12")]
    assert con.execute("select (?)::text, (?)::text", values).fetchall() == [("NaN", "NaN")]
