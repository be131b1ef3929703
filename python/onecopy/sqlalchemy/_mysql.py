"""The SQLAlchemy dialects `mysql+onecopy` and `mariadb+onecopy`."""

from __future__ import annotations

from typing import Any

from sqlalchemy import types
from sqlalchemy.dialects.mysql import base, mariadb
from sqlalchemy.dialects.mysql.types import TIME

from onecopy.sqlalchemy._common import OnecopyContext, OnecopyDialect


class _Context(OnecopyContext, base.MySQLExecutionContext):
    def get_lastrowid(self) -> int:
        """Return the value of `last_insert_id()`: the auto-increment id that the database generated
        for the last INSERT of this connection."""
        cursor = self.create_cursor()
        try:
            cursor.execute("select last_insert_id()")
            row = cursor.fetchone()
        finally:
            cursor.close()
        return int(row[0]) if row else 0


class _Compiler(base.MySQLCompiler):
    """Writes literal values into the statement in the two positions in which MariaDB does not
    support parameters: it reads parameters in a ``VALUES`` list as empty, and rejects parameters in
    a window frame."""

    def _render_values(self, element: Any, **kw: Any) -> str:
        kw["literal_execute"] = True
        return str(super()._render_values(element, **kw))  # type: ignore[no-untyped-call]

    def visit_frame_clause(self, frameclause: Any, **kw: Any) -> str:
        """Write the numbers of a window frame into the SQL text as literals, because MariaDB
        rejects parameters there."""
        kw["literal_execute"] = True
        return str(super().visit_frame_clause(frameclause, **kw))  # type: ignore[no-untyped-call]


class _Time(TIME):
    def result_processor(self, dialect: Any, coltype: object) -> Any:
        """Return None: SQLAlchemy then converts no values of the column. onecopy already returns
        them as `datetime.time`."""
        return None


class MySQLDialectOnecopy(OnecopyDialect, base.MySQLDialect):
    """The dialect for MySQL and MariaDB, through the ODBC driver of MariaDB or of MySQL."""

    supports_statement_cache = True
    execution_ctx_cls = _Context
    statement_compiler = _Compiler
    colspecs = {**base.MySQLDialect.colspecs, types.Time: _Time}  # noqa: RUF012, as in SQLAlchemy

    def _detect_charset(self, connection: Any) -> str:
        # onecopy sets this character set in the connection string.
        return "utf8mb4"

    def _extract_error_code(self, exception: Any) -> int | None:
        return getattr(exception, "native_code", None) or None


class MariaDBDialectOnecopy(MySQLDialectOnecopy, mariadb.MariaDBDialect):
    """The dialect for MariaDB, with MariaDB's own types and RETURNING."""

    supports_statement_cache = True
    colspecs = {**mariadb.MariaDBDialect.colspecs, types.Time: _Time}  # noqa: RUF012, as in SQLAlchemy
