"""Several open results on one connection: the unread rows of an earlier result are stored in
bounded memory."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import onecopy
from onecopy import aio
from tests.conftest import Database

ROWS = "select k, repeat(k::text || 'ä', 400) from generate_series(1, {}) as k"


def rows_of(n: int) -> list[tuple[int, str]]:
    return [(k, f"{k}ä" * 400) for k in range(1, n + 1)]


@pytest.fixture
def con(postgres_native: Database) -> Any:
    connection = onecopy.connect(postgres_native.odbc)
    yield connection
    connection.close()


@pytest.mark.parametrize("n", [1, 3000, 40_000])
@pytest.mark.parametrize("n_read", [0, 1, 700])
def test_the_rest_of_a_result_is_unchanged(con: onecopy.Connection, n: int, n_read: int) -> None:
    first = con.execute(ROWS.format(n))
    rows = first.fetchmany(n_read)
    assert con.execute("select 'x'").fetchall() == [("x",)]
    rows += first.fetchall()
    assert rows == rows_of(n)


def test_results_are_read_in_turns(con: onecopy.Connection) -> None:
    cursors = [con.execute(ROWS.format(20_000)) for _ in range(3)]
    rows: list[list[Any]] = [[], [], []]
    while len(rows[2]) < 20_000:
        for cur, mine in zip(cursors, rows, strict=True):
            mine += cur.fetchmany(777)
    assert rows == [rows_of(20_000)] * 3


@pytest.mark.parametrize("read", ["ndjson", "iterate", "columns"])
def test_each_way_to_read_the_rest(con: onecopy.Connection, read: str) -> None:
    first = con.execute(ROWS.format(20_000))
    con.execute("select 1").fetchall()
    expected = rows_of(20_000)
    if read == "ndjson":
        lines = b"".join(first.ndjson()).splitlines()
        assert [tuple(json.loads(line).values()) for line in lines] == expected
    elif read == "iterate":
        assert list(first) == expected
    else:
        numbers, texts = first.fetch_columns()
        assert list(zip(memoryview(numbers).tolist(), texts, strict=True)) == expected


def test_a_long_row_of_which_a_part_was_read(con: onecopy.Connection) -> None:
    first = con.execute("select k, repeat('ä', 5000000) from generate_series(1, 3) as k", defer=[1])
    assert first.fetchone() is not None
    file = first.open_text(1)
    assert file is not None
    begun = file.read(10)
    con.execute("select 1").fetchall()
    assert begun + file.read() == "ä" * 5_000_000
    assert [row[0] for row in first] == [2, 3]


def test_a_later_error_of_the_statement_comes_after_its_rows(con: onecopy.Connection) -> None:
    first = con.execute("select 1 / (30000 - k), repeat('x', 1000) from generate_series(1, 40000) as k")
    with pytest.raises(onecopy.DatabaseError):
        con.execute("select 1")
    con.rollback()
    assert len(first.fetchmany(29_999)) == 29_999
    with pytest.raises(onecopy.DataError, match="division by zero"):
        first.fetchone()


MEASURED = """
import hashlib, resource, sys
import onecopy
con = onecopy.connect(sys.argv[1])
con.execute("select 1").fetchall()
first = con.execute("select repeat(chr(65 + k % 26), 100000) from generate_series(1, 2000) as k")
row = first.fetchone()
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
con.execute("select 1").fetchall()
stored = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
found = hashlib.sha256(row[0].encode())
n = 1
for (text,) in first:
    found.update(text.encode())
    n += 1
print(stored - before, n, found.hexdigest())
"""


def measured(target: str, directory: Path) -> list[str]:
    done = subprocess.run(
        [sys.executable, "-c", MEASURED, target],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"TMPDIR": str(directory)},
    )
    return done.stdout.split() or done.stderr.splitlines()


def test_the_rest_of_a_result_of_200_mb_is_not_in_memory(postgres_native: Database, tmp_path: Path) -> None:
    grown_kb, n, digest = measured(postgres_native.odbc, tmp_path)
    expected = hashlib.sha256()
    for k in range(1, 2001):
        expected.update((chr(65 + k % 26) * 100_000).encode())
    assert (n, digest) == ("2000", expected.hexdigest())
    assert int(grown_kb) < 12_000
    assert list(tmp_path.iterdir()) == []


def test_rows_that_cannot_be_stored_are_an_error_of_their_result(postgres_native: Database, tmp_path: Path) -> None:
    lines = measured(postgres_native.odbc, tmp_path / "missing")
    assert "OperationalError: rows of an open result cannot be stored in a temporary file" in "\n".join(lines)


def test_the_event_loop_reads_results_in_turns(postgres_native: Database) -> None:
    async def main() -> None:
        con = await aio.connect(postgres_native.odbc)
        first = await con.execute(ROWS.format(20_000))
        assert await (await con.execute("select 2")).fetchall() == [(2,)]
        assert await first.fetchall() == rows_of(20_000)
        await con.close()

    asyncio.run(main())
