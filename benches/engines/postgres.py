"""Jobs with PostgreSQL's native protocol, for onecopy and the clients with which it is compared.

Each function prepares a job and returns it, as in `rows.py`.
"""

from __future__ import annotations

import asyncio
import os
import socket
import struct
import time
from collections.abc import Callable
from typing import Any

from benches.engines.rows import _decimal, _query, _url, onecopy_csv, onecopy_fetchall, onecopy_json
from benches.engines.rows import _onecopy as _connected
from benches.engines.statements import POINT, _keys, _psycopg, onecopy_points

__all__ = ["onecopy_csv", "onecopy_fetchall", "onecopy_json", "onecopy_points"]

Job = Callable[[], Any]

#: The number of connections that a round opens.
N_CONNECTS = 20

#: Tasks of an event loop, each with its own connection.
N_TASKS = 50


def psycopg_orjson(target: dict[str, Any], size: int) -> Job:
    import orjson
    from psycopg.rows import dict_row

    cursor, sql = _psycopg(target).cursor(row_factory=dict_row), _query(size)
    return lambda: orjson.dumps(cursor.execute(sql).fetchall(), default=_decimal)


def undecoded(target: dict[str, Any], size: int) -> Job:
    """Receives the rows in PostgreSQL's binary format, and decodes nothing.

    It pauses before a read if it is faster than the server, as onecopy does: then the server needs
    the least time.
    """
    connection = _psycopg(target)
    sock = socket.socket(fileno=os.dup(connection.pgconn.socket))
    sock.setblocking(True)
    request = b"".join(
        (
            _message(b"P", b"\0" + _query(size).encode() + b"\0" + struct.pack("!h", 0)),
            # No parameters; all columns in the binary format.
            _message(b"B", b"\0\0" + struct.pack("!hhhh", 0, 0, 1, 1)),
            _message(b"E", b"\0" + struct.pack("!i", 0)),
            _message(b"S", b""),
        )
    )
    buffer = bytearray(1 << 16)

    def job() -> int:
        sock.sendall(request)
        end = b""
        # ReadyForQuery, outside of a transaction.
        while end != b"Z\0\0\0\x05I":
            n_bytes = sock.recv_into(buffer)
            if n_bytes == 0:
                raise ConnectionError(f"{connection.info.host} closed the connection")
            end = (end + buffer[max(n_bytes - 6, 0) : n_bytes])[-6:]
            if 16 << 10 <= n_bytes < len(buffer):
                time.sleep(1e-6)
        return size

    return job


def _message(kind: bytes, body: bytes) -> bytes:
    return kind + struct.pack("!i", len(body) + 4) + body


def psycopg_copy_csv(target: dict[str, Any], size: int) -> Job:
    cursor, sql = _psycopg(target).cursor(), _query(size)

    def job() -> bytes:
        with cursor.copy(f"copy ({sql}) to stdout (format csv, header)") as copy:
            return b"".join(copy)

    return job


def _asyncpg(target: dict[str, Any]) -> tuple[Any, Any]:
    """A new event loop, and a connection of asyncpg that uses it."""
    import asyncpg

    loop = asyncio.new_event_loop()
    return loop, loop.run_until_complete(asyncpg.connect(_url("postgresql", target["native"])))


def asyncpg_fetchall(target: dict[str, Any], size: int) -> Job:
    loop, connection = _asyncpg(target)
    sql = _query(size)
    return lambda: loop.run_until_complete(connection.fetch(sql))


def asyncpg_points(target: dict[str, Any], size: int) -> Job:
    loop, connection = _asyncpg(target)
    sql = POINT.format("$1")

    async def points() -> int:
        found = 0
        for key in _keys(size):
            found += await connection.fetchrow(sql, key) is not None
        return found

    return lambda: loop.run_until_complete(points())


def onecopy_tasks(target: dict[str, Any], size: int) -> Job:
    from onecopy import aio

    loop, url = asyncio.new_event_loop(), _url("postgresql", target["native"])
    sql = POINT.format("?")

    async def open_all() -> list[aio.Connection]:
        return [await aio.connect(url) for _ in range(N_TASKS)]

    async def task(connection: aio.Connection) -> int:
        found = 0
        for key in _keys(size // N_TASKS):
            found += await (await connection.execute(sql, [key])).fetchone() is not None
        return found

    async def tasks() -> int:
        return sum(await asyncio.gather(*map(task, connections)))

    connections = loop.run_until_complete(open_all())
    return lambda: loop.run_until_complete(tasks())


def asyncpg_tasks(target: dict[str, Any], size: int) -> Job:
    import asyncpg

    loop, url = asyncio.new_event_loop(), _url("postgresql", target["native"])
    sql = POINT.format("$1")

    async def open_all() -> list[Any]:
        return [await asyncpg.connect(url) for _ in range(N_TASKS)]

    async def task(connection: Any) -> int:
        found = 0
        for key in _keys(size // N_TASKS):
            found += await connection.fetchrow(sql, key) is not None
        return found

    async def tasks() -> int:
        return sum(await asyncio.gather(*map(task, connections)))

    connections = loop.run_until_complete(open_all())
    return lambda: loop.run_until_complete(tasks())


def onecopy_connects(target: dict[str, Any], size: int) -> Job:
    def job() -> int:
        for _ in range(N_CONNECTS):
            _connected(target).close()
        return N_CONNECTS

    return job


def psycopg_connects(target: dict[str, Any], size: int) -> Job:
    def job() -> int:
        for _ in range(N_CONNECTS):
            _psycopg(target).close()
        return N_CONNECTS

    return job


def _table(size: int) -> Any:
    import pyarrow

    numbers = range(size)
    return pyarrow.table(
        {
            "i": pyarrow.array(numbers, pyarrow.int64()),
            "t": pyarrow.array((f"name {k} é" for k in numbers), pyarrow.string()),
            "x": pyarrow.array((k * 0.37 for k in numbers), pyarrow.float64()),
            "b": pyarrow.array((k % 3 == 0 for k in numbers), pyarrow.bool_()),
        }
    )


_CREATE = "create table {} (i bigint, t text, x double precision, b boolean)"


def onecopy_insert_arrow(target: dict[str, Any], size: int) -> Job:
    connection, table = _connected(target), _table(size)
    connection.execute("drop table if exists ingested_ours")
    connection.commit()

    def job() -> int:
        connection.rollback()
        connection.execute(_CREATE.format("ingested_ours"))
        return int(connection.cursor().insert_arrow("ingested_ours", table).rowcount)

    job.before = connection.rollback  # type: ignore[attr-defined]
    return job


def adbc_ingest(target: dict[str, Any], size: int) -> Job:
    from adbc_driver_postgresql import dbapi

    connection, table = dbapi.connect(_url("postgresql", target["native"])), _table(size)
    cursor = connection.cursor()
    cursor.execute("drop table if exists ingested_theirs")
    connection.commit()

    def job() -> int:
        connection.rollback()
        cursor.execute(_CREATE.format("ingested_theirs"))
        cursor.adbc_ingest("ingested_theirs", table, mode="append")
        return size

    return job
