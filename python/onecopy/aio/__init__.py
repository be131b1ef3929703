"""Connections, cursors and pools for asyncio; and non-blocking file transfers.

The event loop watches the socket of a connection to PostgreSQL: statements, rows and streams need no
thread. ODBC drivers and SQLite block, so each of their connections has its own thread. The thread
runs the calls of the connection one after the other while the event loop continues. A call costs
two thread switches (some 50 µs), which is why rows are fetched in batches of up to several hundred.

With any database, the calls of a connection run one after the other. Cancelling a task cancels the
statement that it waits for. The task does not wait until the database has ended the statement; the
next call on that connection waits.

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
