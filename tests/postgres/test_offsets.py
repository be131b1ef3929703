"""Timestamps with an offset from UTC that is not whole minutes: the local mean time of a city."""

from __future__ import annotations

import datetime as dt
import json
from typing import Any
from zoneinfo import ZoneInfo

import bson
import pytest

import onecopy
from onecopy import Range
from tests.conftest import Database

UTC = dt.timezone.utc
# A time zone, and an instant before that zone had an offset of whole minutes.
INSTANTS = [
    ("Europe/Berlin", dt.datetime(1, 1, 1, tzinfo=UTC)),
    ("Europe/Berlin", dt.datetime(1890, 6, 1, 12, 30, 15, 250_000, tzinfo=UTC)),
    ("Asia/Kolkata", dt.datetime(1850, 2, 28, 23, 59, 59, tzinfo=UTC)),
    ("America/New_York", dt.datetime(1883, 11, 18, 16, 56, 2, tzinfo=UTC)),
]
# There the local date is in the year 1 BC, which Python's `datetime` does not support.
BEFORE_YEAR_1 = ("America/New_York", dt.datetime(1, 1, 1, tzinfo=UTC))


def _connect(database: Database, zone: str, **options: Any) -> onecopy.Connection:
    con = onecopy.connect(database.odbc, **options)
    con.execute(f"set timezone = '{zone}'")
    return con


@pytest.mark.parametrize(("zone", "instant"), [*INSTANTS, BEFORE_YEAR_1])
def test_a_timestamp_is_its_instant_in_every_form(postgres_native: Database, zone: str, instant: dt.datetime) -> None:
    with _connect(postgres_native, zone) as con:
        literal = f"timestamptz '{instant.isoformat()}'"
        sql = f"select {literal} as a, array[{literal}] as b, tstzrange({literal}, null) as c"
        ((a, b, c),) = con.execute(sql).fetchall()
        assert (a, b, c) == (instant, [instant], Range(instant))
        assert isinstance(a, dt.datetime) and a.utcoffset() == dt.timedelta(0)
        (row,) = json.loads(con.execute(sql).json().read())
        assert dt.datetime.fromisoformat(row["a"]) == instant == dt.datetime.fromisoformat(row["b"][0])
        aware: bson.CodecOptions[dict[str, Any]] = bson.CodecOptions(tz_aware=True)
        document = bson.decode(con.execute(sql).bson().read(), aware)
        assert document["a"] == instant == document["b"][0]
        (line,) = con.execute(f"select {literal} as a").csv().read().decode().splitlines()[1:]
        assert dt.datetime.fromisoformat(line) == instant


def test_an_instant_before_the_year_1_is_an_error_or_the_text_of_the_server(postgres_native: Database) -> None:
    # The local date is in the year 1, the instant in UTC is not.
    sql = "select timestamptz '0001-01-01 00:00:00'"
    with _connect(postgres_native, "Europe/Berlin") as con, pytest.raises(onecopy.DataError, match="year"):
        con.execute(sql).fetchall()
    with _connect(postgres_native, "Europe/Berlin", datetime_range="text") as con:
        assert con.execute(sql).fetchall() == [("0001-01-01 00:00:00+00:53:28",)]


@pytest.mark.parametrize(("zone", "instant"), INSTANTS)
def test_a_datetime_parameter_is_sent_as_its_instant(postgres: Database, zone: str, instant: dt.datetime) -> None:
    local = instant.astimezone(ZoneInfo(zone))
    assert local.utcoffset() != dt.timedelta(minutes=round((local.utcoffset() or dt.timedelta()).total_seconds() / 60))
    # psqlodbc reads timestamps in the time zone of a new session, which is UTC.
    with onecopy.connect(postgres.odbc) as con:
        assert con.execute("select extract(epoch from ?::timestamptz)::float8", [local]).fetchall() == [
            ((instant - dt.datetime(1970, 1, 1, tzinfo=UTC)).total_seconds(),)
        ]
        assert con.execute("select ?::timestamptz", [local]).fetchall() == [(instant,)]


def test_a_datetime_parameter_before_the_year_1_in_utc_is_sent(postgres_native: Database) -> None:
    local = dt.datetime(1, 1, 1, tzinfo=ZoneInfo("Europe/Amsterdam"))
    with _connect(postgres_native, "UTC") as con:
        ((text,),) = con.execute("select ?::timestamptz::text", [local]).fetchall()
        assert text == "0001-12-31 23:40:28+00 BC"
