"""Rows that are longer than the receive buffer.

Streams write long values in parts while the row arrives, and memory does not grow with the length
of a value.
"""

from __future__ import annotations

import asyncio
import base64
import json
import subprocess
import sys
from typing import Any

import pytest

import onecopy
from onecopy import aio
from tests.conftest import Database
from tests.postgres.test_lifetime import of_port
from tests.support.secured import Secured

#: A character of two bytes at each odd offset, so that parts end inside of characters.
TEXT = "repeat('xäöü€😀', {})"
BYTES = "decode(repeat('00ff10', {}), 'hex')"

#: Columns of rows with long values. In the first five psqlodbc reads each type as we do.
ROWS = [
    ["1", TEXT.format(60_000), "'end'"],
    [TEXT.format(90_000), "2"],
    ["1", "null", TEXT.format(60_000)],
    [BYTES.format(300_000)],
    [TEXT.format(50_000), BYTES.format(250_000), "null", TEXT.format(1_000), TEXT.format(70_000), "'end'"],
    ["1.5::numeric", "date '2026-11-26'", BYTES.format(200_000), "array[1, 2]", "'infinity'::date"],
    [f"({TEXT.format(70_000)})::xml", TEXT.format(60_000), "'$1.50'::money", "time '12:30'"],
    [f"to_jsonb({TEXT.format(60_000)})", TEXT.format(60_000)],
]


def sql_of(columns: list[str], n_rows: int = 3) -> str:
    named = ", ".join(f"{column} as c{i}" for i, column in enumerate(columns))
    return f"select n, {named} from generate_series(1, {n_rows}) as n"


@pytest.fixture
def con(postgres_native: Database) -> Any:
    connection = onecopy.connect(postgres_native.odbc, datetime_range="text")
    yield connection
    connection.close()


def as_json(value: object) -> object:
    return base64.b64encode(value).decode() if isinstance(value, bytes) else value


@pytest.mark.parametrize("columns", ROWS)
def test_json_is_that_of_the_whole_values(con: onecopy.Connection, columns: list[str]) -> None:
    rows = con.execute(sql_of(columns)).fetchall()
    found = json.loads(con.execute(sql_of(columns)).json().read())
    lines = con.execute(sql_of(columns)).ndjson().read().splitlines()
    assert [json.loads(line) for line in lines] == found
    assert len(found) == len(rows)
    is_json = ["jsonb" in column for column in ("", *columns)]
    for row, object_ in zip(rows, found, strict=True):
        for value, in_json, is_document in zip(row, object_.values(), is_json, strict=True):
            if is_document:
                assert json.loads(value) == in_json
            elif isinstance(value, str | bytes | int):
                assert in_json == as_json(value)


@pytest.mark.parametrize("format", ["csv", "json", "ndjson", "bson"])
@pytest.mark.parametrize("columns", ROWS[:5])
def test_each_format_is_that_of_odbc(
    con: onecopy.Connection, psqlodbc: Database, columns: list[str], format: str
) -> None:
    """The expected bytes are those of the same rows read through psqlodbc."""
    with onecopy.connect(psqlodbc.odbc) as other:
        expected = getattr(other.execute(sql_of(columns)), format)().read()
    assert getattr(con.execute(sql_of(columns)), format)().read() == expected


@pytest.mark.parametrize("columns", ROWS)
def test_chunks_of_an_event_loop_are_the_same(secured: Secured, columns: list[str]) -> None:
    target = of_port(secured.port, "require")
    with onecopy.connect(target, datetime_range="text") as con:
        expected = con.execute(sql_of(columns)).json().read()

    async def read() -> bytes:
        async with await aio.connect(target, datetime_range="text") as con:
            stream = (await con.execute(sql_of(columns))).json()
            return b"".join([chunk async for chunk in stream])

    assert asyncio.run(read()) == expected


@pytest.mark.parametrize("n_read", [0, 1, 3])
def test_other_statements_may_run_between_two_parts(con: onecopy.Connection, n_read: int) -> None:
    sql = sql_of([TEXT.format(300_000), "2", TEXT.format(100_000)], 2)
    expected = con.execute(sql).ndjson().read()
    chunks = iter(con.execute(sql).ndjson())
    found = [next(chunks) for _ in range(n_read)]
    assert len(b"".join(found)) < len(expected) / 2
    assert con.execute("select 7").fetchall() == [(7,)]
    found += chunks
    assert b"".join(found) == expected


def test_a_stream_may_end_between_two_parts(con: onecopy.Connection) -> None:
    for _ in range(3):
        stream = con.execute(sql_of([TEXT.format(500_000)], 2)).ndjson()
        next(iter(stream))
        stream.close()
        assert con.execute("select 7").fetchall() == [(7,)]


def test_a_cancel_between_two_parts_ends_the_stream(con: onecopy.Connection) -> None:
    # The second row is not sent before a minute has passed.
    sql = f"select {TEXT.format(300_000)}, case when n = 2 then pg_sleep(60)::text end from generate_series(1, 2) as n"
    chunks = iter(con.execute(sql).ndjson())
    next(chunks)
    con.cancel()
    with pytest.raises(onecopy.OperationalError) as raised:
        list(chunks)
    assert raised.value.sqlstate == "57014"
    con.rollback()
    assert con.execute("select 7").fetchall() == [(7,)]


def test_a_lost_connection_between_two_parts_is_an_error(postgres_native: Database, con: onecopy.Connection) -> None:
    ((pid,),) = con.execute("select pg_backend_pid()").fetchall()
    chunks = iter(con.execute(sql_of([TEXT.format(4_000_000)], 2)).ndjson())
    next(chunks)
    with onecopy.connect(postgres_native.odbc, autocommit=True) as other:
        other.execute("select pg_terminate_backend(?)", [pid]).fetchall()
    with pytest.raises(onecopy.OperationalError, match=r"lost|terminat"):
        list(chunks)
    assert not con.usable


PEAK = """
import os, sys
import onecopy

def peak():
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmHWM:"))

url, sql, format = sys.argv[1:]
con = onecopy.connect(url)
with open(os.devnull, "wb") as target:
    getattr(con.execute(sql.replace("REPEAT", "1000")), format)().write_to(target)
    before = peak()
    n = getattr(con.execute(sql.replace("REPEAT", "100000")), format)().write_to(target)
print(n, peak() - before)
"""


@pytest.mark.parametrize("format", ["json", "ndjson", "csv"])
@pytest.mark.parametrize(
    "value", ["repeat(repeat('xä', 1000), REPEAT)", "decode(repeat(repeat('00ff', 500), REPEAT), 'hex')"]
)
def test_memory_does_not_grow_with_a_value(postgres_native: Database, format: str, value: str) -> None:
    command = [sys.executable, "-c", PEAK, postgres_native.odbc, f"select 1 as a, {value} as v, 2 as b", format]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    n_bytes, n_kib = map(int, done.stdout.split())
    # Values of 100 MB and more, in 4 MiB.
    assert n_bytes > 100_000_000
    assert n_kib < 4096
