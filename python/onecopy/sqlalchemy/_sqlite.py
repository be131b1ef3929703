"""`sqlite+onecopy`."""

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
    """onecopy with the version of SQLite, which SQLAlchemy's dialect looks for in the module."""

    def __init__(self) -> None:
        with onecopy.connect("sqlite::memory:") as con:
            self.sqlite_version_info = _version(con.execute("select sqlite_version()").fetchone()[0])
        con.close()

    def __getattr__(self, name: str) -> Any:
        return getattr(onecopy, name)


class _Context(OnecopyContext, SQLiteExecutionContext):
    pass


class SQLiteDialectOnecopy(OnecopyDialect, SQLiteDialect):
    """SQLite, built into onecopy."""

    supports_statement_cache = True
    execution_ctx_cls = _Context
    # It has no type for them: SQLAlchemy's own conversions do it.
    supports_native_decimal = False

    @classmethod
    def import_dbapi(cls) -> Any:
        """onecopy, with the version of SQLite."""
        return _Module()

    @classmethod
    def get_pool_class(cls, url: URL) -> Any:
        """A file has connections like any database; one in memory has one a thread."""
        return QueuePool if cls._is_url_file_db(url) else SingletonThreadPool

    @classmethod
    def _is_url_file_db(cls, url: URL) -> bool:
        """Whether it is a file: SQLAlchemy's own name, which its test suite calls."""
        return bool(url.database) and url.database != ":memory:"

    def create_connect_args(self, url: URL) -> Any:
        """``sqlite:`` and the path."""
        if url.host or url.username or url.password or url.port:
            raise ArgumentError("SQLite has no host and no user\nwrite `sqlite+onecopy:///file.db`")
        options, rest = self._options(url)
        path = urllib.parse.quote(url.database or ":memory:", safe="/:")
        query = urllib.parse.urlencode(rest)
        return [f"sqlite:{path}" + (f"?{query}" if query else "")], options

    def _get_server_version_info(self, connection: Any) -> Any:
        return self.dbapi.sqlite_version_info  # type: ignore[union-attr]

    def set_isolation_level(self, dbapi_connection: Any, level: Any) -> None:
        """By a pragma, which must stand outside of a transaction."""
        dbapi_connection.rollback()
        super().set_isolation_level(dbapi_connection, level)
