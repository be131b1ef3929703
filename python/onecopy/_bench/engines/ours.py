"""Prepares and runs statements with onecopy."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from typing import Any

import onecopy
from onecopy._bench.database import Database
from onecopy._bench.engines.job import Job, module
from onecopy._bench.sink import Sink

__all__ = ["connect", "open_job"]


def connect(database: Database) -> onecopy.Connection:
    """Connect read-only, so that a statement that writes is rejected before another library
    executes it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Limits of ODBC drivers.
        return onecopy.connect(database.text, read_only=True)


def open_job(database: Database, sql: str, way: str, encoder: str) -> Job:
    """Prepare the statement in onecopy."""
    if way == "parquet":
        return Job(lambda sink: _parquet(database, sql, sink), note="connects in each run")
    cursor = connect(database).cursor()
    if way == "arrow":
        # Imported here, so that its memory belongs to the idle process.
        pyarrow = module("pyarrow")
        return Job(lambda sink: pyarrow.RecordBatchReader.from_stream(cursor.execute(sql)).read_all())
    if way == "rows":
        return Job(lambda sink: _rows(cursor, sql))
    if way == "iterate":
        return Job(lambda sink: _iterate(cursor, sql))
    streams: dict[str, Callable[[], onecopy.RowStream]] = {
        "json": cursor.json,
        "ndjson": cursor.ndjson,
        "csv": cursor.csv,
    }
    return Job(lambda sink: _write(cursor, sql, streams[way], sink))


def _rows(cursor: onecopy.Cursor, sql: str) -> Any:
    rows = cursor.execute(sql).fetchall()
    return [column[0] for column in cursor.description or ()], rows


def _iterate(cursor: onecopy.Cursor, sql: str) -> int:
    n_rows = 0
    for _ in cursor.execute(sql):
        n_rows += 1
    return n_rows


def _write(cursor: onecopy.Cursor, sql: str, stream: Callable[[], onecopy.RowStream], sink: Sink) -> None:
    cursor.execute(sql)
    for chunk in stream():
        sink.write(chunk)


def _parquet(database: Database, sql: str, sink: Sink) -> None:
    """Run `onecopy export` in this process, with the sink's file as stdout."""
    from onecopy._core import run_command

    with open(sink.path, "wb") as file:
        os.dup2(file.fileno(), 1)
    arguments = ["export", database.text, sql, "--output", "-", "--format", "parquet", "--quiet"]
    code = run_command(["onecopy", *arguments])
    if code != 0:
        raise RuntimeError(f"`onecopy export` has ended with exit code {code}")
