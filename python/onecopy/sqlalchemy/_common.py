"""The shared base classes of the SQLAlchemy dialects."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from sqlalchemy.engine import cursor as _cursor
from sqlalchemy.engine.default import DefaultDialect, DefaultExecutionContext
from sqlalchemy.exc import ArgumentError

import onecopy

if TYPE_CHECKING:
    from sqlalchemy.engine import URL

#: SQLSTATEs, or their prefixes, that mean a lost connection: connection exceptions, and
#: PostgreSQL's shutdowns.
_GONE = ("08", "57P01", "57P02", "57P03", "01002")
_TRUE = ("1", "true", "yes", "on")


class OnecopyContext(DefaultExecutionContext):
    """An execution context for which every cursor is a server-side cursor: all cursors of onecopy
    fetch rows in blocks instead of reading the whole result first."""

    def create_server_side_cursor(self) -> Any:
        """Return a new cursor; like every cursor of onecopy, it fetches rows in blocks."""
        return self._dbapi_connection.cursor()

    def post_exec(self) -> None:
        """Do not prefetch rows if the statement returns none, even with the option
        `stream_results`."""
        super().post_exec()  # type: ignore[no-untyped-call]
        if self.cursor.description is None and self.cursor_fetch_strategy is _cursor._DEFAULT_FETCH:
            self.cursor_fetch_strategy = _cursor._NO_CURSOR_DQL


class OnecopyDialect(DefaultDialect):
    """The base class of dialects that use onecopy as their DB-API module. A dialect lists this
    class before SQLAlchemy's own dialect in its base classes."""

    driver = "onecopy"
    default_paramstyle = "qmark"
    supports_statement_cache = True
    supports_native_decimal = True
    supports_sane_rowcount = True
    supports_sane_multi_rowcount = True
    supports_server_side_cursors = True
    returns_native_bytes = True

    @classmethod
    def import_dbapi(cls) -> Any:
        """Return the DB-API module, `onecopy`."""
        return onecopy

    def retrieve_dbapi_version(self, dbapi: Any) -> Any:
        """Return the version of onecopy."""
        return _version(dbapi.__version__)

    def _options(self, url: URL) -> tuple[dict[str, Any], dict[str, Any]]:
        """Split a URL's query into options of `onecopy.connect` and the remaining items."""
        rest = dict(url.query)
        options: dict[str, Any] = {}
        for name in ("read_only", "autocommit"):
            if name in rest:
                options[name] = str(rest.pop(name)).lower() in _TRUE
        if "connect_timeout" in rest:
            options["connect_timeout"] = float(str(rest.pop("connect_timeout")))
        if "errors" in rest:
            options["errors"] = rest.pop("errors")
        return options, rest

    def create_connect_args(self, url: URL) -> Any:
        """Convert a URL to the target and the options for `onecopy.connect`."""
        options, rest = self._options(url)
        whole = rest.pop("odbc_connect", None)
        if whole is not None:
            return [whole], options
        if not url.host:
            raise ArgumentError("the URL has no host\nadd one, or a connection string: `…:///?odbc_connect=…`")
        target = url.set(drivername=url.get_backend_name(), query=rest)
        return [target.render_as_string(hide_password=False)], options

    def get_isolation_level_values(self, dbapi_connection: Any) -> Any:
        """Return the isolation levels of the database, and AUTOCOMMIT."""
        levels = [*super().get_isolation_level_values(dbapi_connection)]
        return levels if "AUTOCOMMIT" in levels else [*levels, "AUTOCOMMIT"]

    def set_isolation_level(self, dbapi_connection: Any, level: Any) -> None:
        """Set the isolation level with a `SET` statement of the database; the level AUTOCOMMIT
        sets the attribute `autocommit` of the connection instead."""
        dbapi_connection.autocommit = level == "AUTOCOMMIT"
        if level != "AUTOCOMMIT":
            super().set_isolation_level(dbapi_connection, level)

    def detect_autocommit_setting(self, dbapi_conn: Any) -> bool:
        """Return true if autocommit is on, so that each statement is its own transaction."""
        return bool(dbapi_conn.autocommit)

    def is_disconnect(self, e: Any, connection: Any, cursor: Any) -> bool:
        """Return true if the connection is lost: its attribute `usable` is false, or `e` is an
        OperationalError with an SQLSTATE for a lost connection."""
        if isinstance(connection, onecopy.Connection) and not connection.usable:
            return True
        if isinstance(e, onecopy.OperationalError) and e.sqlstate.startswith(_GONE):
            return True
        return bool(super().is_disconnect(e, connection, cursor))


def _version(text: Any) -> tuple[int, ...]:
    return tuple(int(number) for number in re.findall(r"\d+", str(text))[:4])
