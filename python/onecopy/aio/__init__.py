"""Connections, cursors and pools for asyncio, backed by threads; files and sockets, by the loop itself.

ODBC drivers and SQLite block. So each connection has one thread of its own, in which its calls run one after the other
while the event loop goes on: it costs two switches of threads a call (some 50 µs), and rows are fetched by the hundred for
that reason. Cancelling a task cancels the statement that it waits for; the task does not wait for the database to obey, but
the next call on that connection does.

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

from onecopy.aio._connection import Connection, connect
from onecopy.aio._cursor import Cursor, RowStream
from onecopy.aio._files import recv_file, send_file
from onecopy.aio._pool import Pool
from onecopy.keeper import PoolStats, PoolTimeout

__all__ = ["Connection", "Cursor", "Pool", "PoolStats", "PoolTimeout", "RowStream", "connect", "recv_file", "send_file"]
