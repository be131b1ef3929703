"""The SQLAlchemy dialect `sqlite+onecopy`."""

from __future__ import annotations

import urllib.parse
from typing import TYPE_CHECKING, Any

from sqlalchemy.dialects.sqlite.base import SQLiteDialect, SQLiteExecutionContext
from sqlalchemy.exc import ArgumentError
from sqlalchemy.pool import QueuePool, SingletonThreadPool

import onecopy
from onecopy.sqlalchemy._common import OnecopyContext, OnecopyDialect, _version

if TYPE_CHECKING:
    from sqlalchemy.engine import URL


class _Module:
    """The attributes of the module onecopy, and the version of SQLite. SQLAlchemy's SQLite dialect
    reads this version from the DB-API module."""

    def __init__(self) -> None:
        with onecopy.connect("sqlite::memory:") as con:
            self.sqlite_version_info = _version(con.execute("select sqlite_version()").fetchone()[0])
        con.close()

    def __getattr__(self, name: str) -> Any:
        return getattr(onecopy, name)


class _Context(OnecopyContext, SQLiteExecutionContext):
    _lastrowid: Any = None

    def post_exec(self) -> None:
        """Save the id of the inserted row, because it is not available after the cursor is
        closed."""
        self._lastrowid = self.cursor.lastrowid
        super().post_exec()

    def get_lastrowid(self) -> Any:
        """Return the row id of the last INSERT."""
        return self._lastrowid


class SQLiteDialectOnecopy(OnecopyDialect, SQLiteDialect):
    """The dialect for the SQLite that is built into onecopy."""

    supports_statement_cache = True
    execution_ctx_cls = _Context
    # SQLite has no decimal type, so SQLAlchemy's own conversions are used.
    supports_native_decimal = False

    @classmethod
    def import_dbapi(cls) -> Any:
        """Return the DB-API module: onecopy with SQLite's version."""
        return _Module()

    @classmethod
    def get_pool_class(cls, url: URL) -> Any:
        """Return the class of the connection pool: the default pool for a file; a pool with one
        connection per thread for a database in memory."""
        return QueuePool if cls._is_url_file_db(url) else SingletonThreadPool

    @classmethod
    def _is_url_file_db(cls, url: URL) -> bool:
        """Return true if the database is a file. SQLAlchemy's test suite calls this function."""
        return bool(url.database) and url.database != ":memory:"

    def create_connect_args(self, url: URL) -> Any:
        """Convert a URL to the arguments of `connect`: the target (``sqlite:PATH``) and options."""
        if url.host or url.username or url.password or url.port:
            raise ArgumentError("SQLite has no host and no user\nwrite `sqlite+onecopy:///file.db`")
        options, rest = self._options(url)
        path = urllib.parse.quote(url.database or ":memory:", safe="/:")
        query = urllib.parse.urlencode(rest)
        return [f"sqlite:{path}" + (f"?{query}" if query else "")], options

    def _get_server_version_info(self, connection: Any) -> Any:
        return self.dbapi.sqlite_version_info  # type: ignore[union-attr]

    def set_isolation_level(self, dbapi_connection: Any, level: Any) -> None:
        """Set the isolation level by a pragma, which must be executed outside of a transaction."""
        dbapi_connection.rollback()
        super().set_isolation_level(dbapi_connection, level)
