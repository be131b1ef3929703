"""Converts values to the bytes that pyodbc passes to output converters (ODBC's `SQL_C_BINARY`)."""

from __future__ import annotations

import datetime
import struct
import uuid
from decimal import Decimal
from typing import Any

from onecopy.compat.pyodbc import _constants as sql

#: SQL type -> type code of its columns in onecopy. SQL types with the same code are not
#: distinguished.
CODES: dict[int, tuple[str, ...]] = {
    sql.SQL_BIT: ("bool",),
    **dict.fromkeys((sql.SQL_TINYINT, sql.SQL_SMALLINT, sql.SQL_INTEGER, sql.SQL_BIGINT), ("integer",)),
    sql.SQL_REAL: ("real",),
    **dict.fromkeys((sql.SQL_FLOAT, sql.SQL_DOUBLE), ("double",)),
    **dict.fromkeys((sql.SQL_DECIMAL, sql.SQL_NUMERIC), ("decimal",)),
    **dict.fromkeys(
        (sql.SQL_CHAR, sql.SQL_VARCHAR, sql.SQL_LONGVARCHAR, sql.SQL_WCHAR, sql.SQL_WVARCHAR, sql.SQL_WLONGVARCHAR),
        ("text",),
    ),
    sql.SQL_SS_XML: ("text",),
    **dict.fromkeys((sql.SQL_BINARY, sql.SQL_VARBINARY, sql.SQL_LONGVARBINARY), ("binary",)),
    sql.SQL_TYPE_DATE: ("date",),
    **dict.fromkeys((sql.SQL_TYPE_TIME, sql.SQL_SS_TIME2), ("time",)),
    sql.SQL_TYPE_TIMESTAMP: ("timestamp",),
    -155: ("timestamptz",),  # SQL_SS_TIMESTAMPOFFSET, for which pyodbc has no constant.
    sql.SQL_GUID: ("uuid",),
}
_WIDE = (sql.SQL_WCHAR, sql.SQL_WVARCHAR, sql.SQL_WLONGVARCHAR, sql.SQL_SS_XML)
_INTEGERS = {sql.SQL_TINYINT: "<B", sql.SQL_SMALLINT: "<h", sql.SQL_INTEGER: "<i", sql.SQL_BIGINT: "<q"}


def raw(sqltype: int, value: Any, dialect: str) -> bytes:
    """Return the bytes that pyodbc would pass to an output converter for ``value``, a value of the
    SQL type ``sqltype``. Text is UTF-16 for SQL Server, otherwise UTF-8.
    """
    if isinstance(value, str):
        is_wide = dialect == "mssql" and sqltype in _WIDE
        return value.encode("utf-16-le" if is_wide else "utf-8", "surrogatepass")
    if isinstance(value, bool):
        return bytes([value])
    if isinstance(value, int):
        return struct.pack(_INTEGERS.get(sqltype, "<q"), value)
    if isinstance(value, float):
        return struct.pack("<f" if sqltype == sql.SQL_REAL else "<d", value)
    if isinstance(value, Decimal):
        return format(value, "f").encode()
    if isinstance(value, uuid.UUID):
        return value.bytes_le
    if isinstance(value, datetime.datetime):
        parts = struct.pack("<hHHHHHI", *value.timetuple()[:6], value.microsecond * 1000)
        offset = value.utcoffset()
        if offset is None:
            return parts
        minutes = int(offset.total_seconds()) // 60
        hours = abs(minutes) // 60 * (1 if minutes >= 0 else -1)
        return parts + struct.pack("<hh", hours, minutes - hours * 60)
    if isinstance(value, datetime.date):
        return struct.pack("<hHH", value.year, value.month, value.day)
    if isinstance(value, datetime.time):
        parts = struct.pack("<HHH", value.hour, value.minute, value.second)
        return parts + struct.pack("<HI", 0, value.microsecond * 1000) if sqltype == sql.SQL_SS_TIME2 else parts
    return bytes(value)
