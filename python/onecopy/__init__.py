"""Rows of any ODBC database and of SQLite, converted once and copied at most once.

| module | what it holds |
|---|---|
| ``onecopy`` | `connect`, `Connection`, `Cursor`, `RowStream`, `ArrowStream`, `Column`, `Blob`, `Pool`, `ledger`, `send_file`, `recv_file`, `copy_file`, all of ``dbapi`` and ``errors`` |
| ``onecopy.dbapi`` | what PEP 249 asks of a module: globals, type objects, constructors |
| ``onecopy.errors`` | the exception classes |
| ``onecopy.text`` | text between buffers and `str` |
| ``onecopy.json`` | JSON to objects and back |
| ``onecopy.bson`` | objects to BSON and back |
| ``onecopy.rows`` | rows as dicts, named tuples, dataclasses; row streams in asyncio |
| ``onecopy.observe`` | `AccessLog`, `Metrics`: what is seen of a server from outside |
| ``onecopy.static`` | `files`: a folder as a WSGI application |
| ``onecopy.server`` | `Server`, `serve`, `Limits`, `Tls`: WSGI applications over HTTP/1.1 |
| ``onecopy.gunicorn`` | a worker class of gunicorn's over that server |
| ``onecopy.aio`` | connections, cursors and pools for asyncio, backed by threads |
| ``onecopy.web`` | row streams as answers of Flask, Django, Falcon, Starlette and FastAPI |
| ``onecopy.compat`` | other libraries' names: pyodbc, mssql_python, orjson, ujson, bson |
| ``onecopy.sqlalchemy`` | dialects of SQLAlchemy, which finds them by itself |

>>> import onecopy
>>> con = onecopy.connect("sqlite::memory:")
>>> cur = con.execute("select 1 as id, 'Zoë' as name union all select 2, '東京'")
>>> for row in cur:
...     print(row)
(1, 'Zoë')
(2, '東京')
"""

from typing import TYPE_CHECKING, Any

from onecopy import json, rows, text
from onecopy._core import (
    ArrowStream,
    Blob,
    Column,
    Connection,
    Cursor,
    Ledger,
    RowStream,
    __version__,
    connect,
    copy_file,
    ledger,
    recv_file,
    send_file,
)
from onecopy.dbapi import (
    BINARY,
    DATETIME,
    NUMBER,
    ROWID,
    STRING,
    Binary,
    Date,
    DateFromTicks,
    DBAPIType,
    Time,
    TimeFromTicks,
    Timestamp,
    TimestampFromTicks,
    apilevel,
    paramstyle,
    threadsafety,
)
from onecopy.errors import (
    DatabaseError,
    DataError,
    DriverWarning,
    Error,
    IntegrityError,
    InterfaceError,
    InternalError,
    NotSupportedError,
    OperationalError,
    ProgrammingError,
    Warning,
)

if TYPE_CHECKING:
    from onecopy import aio, bson, web
    from onecopy.observe import AccessLog, Metrics
    from onecopy.pool import Pool, PoolStats, PoolTimeout
    from onecopy.server import Limits, Server, Tls, serve
    from onecopy.static import files

__all__ = [
    "BINARY",
    "DATETIME",
    "NUMBER",
    "ROWID",
    "STRING",
    "AccessLog",
    "ArrowStream",
    "Binary",
    "Blob",
    "Column",
    "Connection",
    "Cursor",
    "DBAPIType",
    "DataError",
    "DatabaseError",
    "Date",
    "DateFromTicks",
    "DriverWarning",
    "Error",
    "IntegrityError",
    "InterfaceError",
    "InternalError",
    "Ledger",
    "Limits",
    "Metrics",
    "NotSupportedError",
    "OperationalError",
    "Pool",
    "PoolStats",
    "PoolTimeout",
    "ProgrammingError",
    "RowStream",
    "Server",
    "Time",
    "TimeFromTicks",
    "Timestamp",
    "TimestampFromTicks",
    "Tls",
    "Warning",
    "__version__",
    "aio",
    "apilevel",
    "bson",
    "connect",
    "copy_file",
    "files",
    "json",
    "ledger",
    "paramstyle",
    "recv_file",
    "rows",
    "send_file",
    "serve",
    "text",
    "threadsafety",
    "web",
]


def __getattr__(name: str) -> Any:
    # Loaded when they are asked for: a program without asyncio, BSON, a pool or a framework does not pay for them.
    import importlib

    if name in ("aio", "bson", "web"):
        return importlib.import_module(f"onecopy.{name}")
    if name in ("Pool", "PoolStats", "PoolTimeout"):
        return getattr(importlib.import_module("onecopy.pool"), name)
    if name in ("AccessLog", "Metrics"):
        return getattr(importlib.import_module("onecopy.observe"), name)
    if name in ("Limits", "Server", "Tls", "serve"):
        return getattr(importlib.import_module("onecopy.server"), name)
    if name == "files":
        return importlib.import_module("onecopy.static").files
    raise AttributeError(f"module `onecopy` has no attribute `{name}`")
