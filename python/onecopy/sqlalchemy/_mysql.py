"""`mysql+onecopy` and `mariadb+onecopy`."""

from __future__ import annotations

from typing import Any

from sqlalchemy import types
from sqlalchemy.dialects.mysql import base, mariadb
from sqlalchemy.dialects.mysql.types import TIME

from onecopy.sqlalchemy._common import OnecopyContext, OnecopyDialect


class _Context(OnecopyContext, base.MySQLExecutionContext):
    def get_lastrowid(self) -> int:
        """The id that the last INSERT of this connection made."""
        cursor = self.create_cursor()
        try:
            cursor.execute("select last_insert_id()")
            row = cursor.fetchone()
        finally:
            cursor.close()
        return int(row[0]) if row else 0


class _Time(TIME):
    def result_processor(self, dialect: Any, coltype: object) -> Any:
        """None: it is a `datetime.time` already."""
        return None


class MySQLDialectOnecopy(OnecopyDialect, base.MySQLDialect):
    """MySQL and MariaDB, through MariaDB's or MySQL's driver."""

    supports_statement_cache = True
    execution_ctx_cls = _Context
    colspecs = {**base.MySQLDialect.colspecs, types.Time: _Time}  # noqa: RUF012, as SQLAlchemy has it

    def _detect_charset(self, connection: Any) -> str:
        # onecopy sets it in the connection string.
        return "utf8mb4"

    def _extract_error_code(self, exception: Any) -> int | None:
        return getattr(exception, "native_code", None) or None


class MariaDBDialectOnecopy(MySQLDialectOnecopy, mariadb.MariaDBDialect):
    """MariaDB, with its own types and RETURNING."""

    supports_statement_cache = True
    colspecs = {**mariadb.MariaDBDialect.colspecs, types.Time: _Time}  # noqa: RUF012, as SQLAlchemy has it
