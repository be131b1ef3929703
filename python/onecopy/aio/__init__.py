"""Connections, cursors, pools and non-blocking file transfers for asyncio.

The event loop watches the socket of a connection to PostgreSQL: statements, rows and streams need
no thread. ODBC drivers and SQLite block, so each of their connections has its own thread. The
thread runs the calls on the connection one after the other, while the event loop continues. A call
costs two thread switches (about 50 µs), which is why up to 256 rows are fetched per call.

With any database, calls on the same connection run one after the other. Cancelling a task cancels
the statement that it waits for. The cancelled task continues immediately, but the next call on the
connection waits until the database has ended the statement.

>>> import asyncio
>>> async def main():
...     con = await connect("sqlite::memory:")
...     cur = await con.execute("select 1 as id, 'Zoë' as name union all select 2, '東京'")
...     async for row in cur:
...         print(row)
...     await con.close()
>>> asyncio.run(main())
(1, 'Zoë')
(2, '東京')
"""

from __future__ import annotations

from onecopy._pool_core import PoolStats, PoolTimeout
from onecopy.aio._connection import Connection, connect
from onecopy.aio._cursor import Cursor
from onecopy.aio._files import recv_file, send_file
from onecopy.aio._pool import Pool
from onecopy.aio._stream import RowStream

__all__ = ["Connection", "Cursor", "Pool", "PoolStats", "PoolTimeout", "RowStream", "connect", "recv_file", "send_file"]
