"""Rows of PostgreSQL, SQLite and any ODBC database; text is converted once and copied at most once.

| module | contents |
|---|---|
| ``onecopy`` | `connect`, `Connection`, `Cursor`, `RowStream`, `ArrowStream`, `Column`, `Blob` |
| | `Pool`, `ledger`, `send_file`, `recv_file`, `copy_file`, all of ``dbapi`` and ``errors`` |
| ``onecopy.dbapi`` | the globals, type objects and constructors that PEP 249 requires |
| ``onecopy.errors`` | the exception classes |
| ``onecopy.text`` | conversions between buffers and `str` |
| ``onecopy.json`` | JSON parsing and serialization |
| ``onecopy.bson`` | BSON encoding and decoding |
| ``onecopy.rows`` | row factories: dicts, named tuples, dataclasses; row streams in asyncio |
| ``onecopy.observe`` | `AccessLog`, `Metrics`: the access log and the metrics of a server |
| ``onecopy.static`` | `files`: a WSGI application that serves a folder |
| ``onecopy.server`` | `Server`, `serve`, `Limits`, `Tls`: WSGI applications over HTTP/1.1 |
| ``onecopy.gunicorn`` | a gunicorn worker class that uses this server |
| ``onecopy.aio`` | connections, cursors and pools for asyncio |
| ``onecopy.web`` | row streams as responses of Flask, Django, Falcon, Starlette and FastAPI |
| ``onecopy.compat`` | the APIs of other libraries: pyodbc, mssql_python, orjson, ujson, bson |
| ``onecopy.sqlalchemy`` | SQLAlchemy dialects, registered as entry points |

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
    CopyOut,
    Cursor,
    Json,
    Ledger,
    Notification,
    Range,
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
    "CopyOut",
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
    "Json",
    "Ledger",
    "Limits",
    "Metrics",
    "NotSupportedError",
    "Notification",
    "OperationalError",
    "Pool",
    "PoolStats",
    "PoolTimeout",
    "ProgrammingError",
    "Range",
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
    # These modules are imported at the first access, so that a program without asyncio, BSON, a
    # pool or a framework does not load them.
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
