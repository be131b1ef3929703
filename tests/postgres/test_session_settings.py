"""Values after a statement has changed a setting of the session that determines their text form."""

from __future__ import annotations

import base64
import datetime as dt
import json
from collections.abc import Iterator
from typing import Any

import bson
import pytest

import onecopy
from onecopy import Range
from tests.conftest import Database


@pytest.fixture
def con(postgres_native: Database) -> Iterator[onecopy.Connection]:
    # A rollback would undo the settings.
    connection = onecopy.connect(postgres_native.odbc, autocommit=True)
    connection.execute("set timezone = 'Europe/Berlin'")
    yield connection
    connection.close()


@pytest.mark.parametrize("form", ["escape", "hex"])
def test_bytes_in_an_array_are_bytes(con: onecopy.Connection, form: str) -> None:
    con.execute(f"set bytea_output = '{form}'")
    expected = [b"\0\xff", b"a\\b", b'"{,}', b"\\x", b"", None, bytes(range(256))]
    assert con.execute("select ?::bytea[] as x, ?::bytea as y", [expected, expected[-1]]).fetchall() == [
        (expected, expected[-1])
    ]
    sql = "select ?::bytea[] as x"
    (row,) = json.loads(con.execute(sql, [expected]).json().read())
    assert [v and base64.b64decode(v) for v in row["x"]] == [v and bytes(v) for v in expected[:4]] + ["", *expected[5:]]
    assert bson.decode(con.execute(sql, [expected]).bson().read())["x"] == expected


DATES = [
    "array[date '2024-02-03']",
    "array[timestamp '2024-02-03 04:05:06']",
    "array[timestamptz '2024-02-03 04:05:06+01']",
    "timestamptz '2024-02-03 04:05:06+01'",
]
RANGES = [
    "daterange('2024-02-03', null)",
    "tsrange('2024-02-03', null)",
    "tstzmultirange(tstzrange('2024-02-03', null))",
]


@pytest.mark.parametrize("style", ["German", "SQL, DMY", "SQL, MDY", "Postgres, DMY", "Postgres, MDY"])
@pytest.mark.parametrize("sql", [*DATES, *RANGES])
def test_a_date_in_another_style_is_an_error(con: onecopy.Connection, style: str, sql: str) -> None:
    con.execute(f"set datestyle = '{style}'")
    query = f"select {sql} as x"
    readers: list[Any] = [lambda cur: cur.fetchall()]
    if sql in DATES:
        readers += [
            lambda cur: cur.json().read(),
            lambda cur: cur.bson().read(),
        ]
    for read in readers:
        with pytest.raises(onecopy.DataError, match="DateStyle") as caught:
            read(con.execute(query))
        assert "x" in str(caught.value)


def test_dates_in_binary_format_do_not_depend_on_the_style(con: onecopy.Connection) -> None:
    con.execute("set datestyle = 'German'")
    values = con.execute("select date '2024-02-03', timestamp '2024-02-03 04:05', array[time '04:05']").fetchall()
    assert values == [(dt.date(2024, 2, 3), dt.datetime(2024, 2, 3, 4, 5), [dt.time(4, 5)])]
    con.execute("set datestyle = 'ISO, DMY'")
    values = con.execute("select array[date '2024-02-03', null], daterange('2024-02-03', null)").fetchall()
    assert values == [([dt.date(2024, 2, 3), None], Range(dt.date(2024, 2, 3)))]


def test_a_date_in_another_style_can_be_the_text_of_the_server(postgres_native: Database) -> None:
    with onecopy.connect(postgres_native.odbc, datetime_range="text") as con:
        con.execute("set timezone = 'Europe/Berlin'")
        con.execute("set datestyle = 'German'")
        sql = "select timestamptz '2024-02-03 04:05:06+01', daterange('2024-02-03', null)"
        assert con.execute(sql).fetchall() == [("03.02.2024 04:05:06 CET", "[03.02.2024,)")]
