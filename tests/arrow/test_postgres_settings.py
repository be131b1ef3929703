"""Arrow columns of PostgreSQL after a statement has changed a setting of the session."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator

import pyarrow as pa
import pytest

import onecopy
from tests.conftest import Database


@pytest.fixture
def con(postgres_native: Database) -> Iterator[onecopy.Connection]:
    connection = onecopy.connect(postgres_native.odbc, autocommit=True)
    connection.execute("set timezone = 'Europe/Berlin'")
    yield connection
    connection.close()


@pytest.mark.parametrize("text", ["0001-01-01 00:00:00", "1890-06-01 12:30:15.25"])
def test_a_timestamp_with_seconds_in_its_offset_is_its_instant(con: onecopy.Connection, text: str) -> None:
    instant = dt.datetime.fromisoformat(text + "+00:00")
    table = pa.table(con.execute(f"select timestamptz '{text}+00' as a, array[timestamptz '{text}+00'] as b").arrow())
    assert table.to_pylist() == [{"a": instant, "b": [instant]}]


def test_bytes_in_an_array_are_bytes(con: onecopy.Connection) -> None:
    con.execute("set bytea_output = 'escape'")
    expected = [b"\0\xff", b"a\\b", b"", None, bytes(range(256))]
    assert pa.table(con.execute("select ?::bytea[] as x", [expected]).arrow()).to_pylist() == [{"x": expected}]


@pytest.mark.parametrize("style", ["German", "SQL, DMY", "Postgres, MDY"])
@pytest.mark.parametrize("sql", ["array[date '2024-02-03']", "timestamptz '2024-02-03 04:05:06+01'"])
@pytest.mark.parametrize("types", [None, "string"])
def test_a_date_in_another_style_is_an_error(con: onecopy.Connection, style: str, sql: str, types: str | None) -> None:
    con.execute(f"set datestyle = '{style}'")
    requested = {"x": "list<string>" if sql.startswith("array") else "string"} if types else None
    cur = con.execute(f"select {sql} as x")
    with pytest.raises(pa.ArrowInvalid, match="DateStyle"):
        pa.table(cur.arrow(types=requested))


def test_infinity_is_its_name_in_a_text_column(con: onecopy.Connection) -> None:
    query = "select timestamptz 'infinity' as x, array[date '-infinity'] as y"
    types = {"x": "string", "y": "list<string>"}
    assert pa.table(con.execute(query).arrow(types=types)).to_pylist() == [{"x": "infinity", "y": ["-infinity"]}]


@pytest.mark.parametrize("of", ["timestamp(0)", "timestamptz(0)", "date", "timestamp"])
@pytest.mark.parametrize("types", [None, {"x": "timestamp[s]"}], ids=str)
def test_an_infinity_in_any_unit_is_an_error(con: onecopy.Connection, of: str, types: dict[str, str] | None) -> None:
    for name in ("infinity", "-infinity"):
        with pytest.raises(pa.ArrowInvalid, match=r"outside|does not go"):
            pa.table(con.execute(f"select '{name}'::{of} as x").arrow(types=types))
    if "timestamp" in of:
        with pytest.raises(onecopy.DataError, match="outside"):
            con.execute(f"select '-infinity'::{of} as x").fetch_columns()
