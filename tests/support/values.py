"""Example values of each type in docs/reference/values.md, for each database: as SQL, in Python, in
JSON and in CSV.

The SQL is a literal or expression of the database; every driver must return exactly the Python
value.
"""

from __future__ import annotations

import uuid
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal
from typing import Any, NamedTuple


class Value(NamedTuple):
    """One example value; ``csv`` is given only if it differs from the JSON text without quotes."""

    sql: str
    python: Any
    json: str
    csv: str | None = None

    def in_csv(self) -> str:
        """The value as a field of a CSV record."""
        if self.csv is not None:
            return self.csv
        if self.python is None:
            return ""
        return self.json.removeprefix('"').removesuffix('"') or '""'


_UUID = "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"
_TEXT = "Zürich 東京 😀"
_INDIA = timezone(timedelta(hours=5, minutes=30))
_WEST = timezone(-timedelta(hours=12, minutes=59))
#: Characters that JSON and CSV must escape, each in its own way.
_ESCAPED = ('say "hi", ok', '"say \\"hi\\", ok"', '"say ""hi"", ok"')
_LINES = ("a\nb", '"a\\nb"', '"a\nb"')

TDS = [
    Value("cast(1 as bit)", True, "true"),
    Value("cast(0 as bit)", False, "false"),
    Value("cast(255 as tinyint)", 255, "255"),
    Value("cast(-32768 as smallint)", -32768, "-32768"),
    Value("cast(2147483647 as int)", 2**31 - 1, "2147483647"),
    Value("9223372036854775807", 2**63 - 1, "9223372036854775807"),
    Value("cast('-9223372036854775808' as bigint)", -(2**63), "-9223372036854775808"),
    Value("cast('1.5' as real)", 1.5, "1.5"),
    Value("cast('0.1' as real)", 0.1, "0.1"),
    Value("cast('0.1' as float)", 0.1, "0.1"),
    Value("cast('-1829.3043138126723' as float)", -1829.3043138126723, "-1829.3043138126723"),
    Value("cast('1e300' as float)", 1e300, "1e+300"),
    Value(
        "cast('123456789012345678901234567890.12345678' as decimal(38,8))",
        Decimal("123456789012345678901234567890.12345678"),
        "123456789012345678901234567890.12345678",
    ),
    Value("cast('-0.01' as decimal(5,2))", Decimal("-0.01"), "-0.01"),
    Value("cast('0.00' as decimal(5,2))", Decimal("0.00"), "0.00"),
    Value("cast('922337203685477.5807' as money)", Decimal("922337203685477.5807"), "922337203685477.5807"),
    Value("cast('-214748.3648' as smallmoney)", Decimal("-214748.3648"), "-214748.3648"),
    Value(f"N'{_TEXT}'", _TEXT, f'"{_TEXT}"'),
    Value("N''", "", '""'),
    Value(f"N'{_ESCAPED[0]}'", *_ESCAPED),
    Value(f"N'{_LINES[0]}'", *_LINES),
    Value("'café €'", "café €", '"café €"'),
    Value("''", "", '""'),
    Value(f"replicate(N'{_TEXT}', 3000)", _TEXT * 3000, f'"{_TEXT * 3000}"', f'"{_TEXT * 3000}"'),
    Value("cast('y' as varchar(max))", "y", '"y"'),
    Value("0x00ff10", b"\x00\xff\x10", '"AP8Q"'),
    Value("0x", b"", '""'),
    Value("cast(0xff as varbinary(max))", b"\xff", '"/w=="'),
    Value("cast('0001-01-01' as date)", date(1, 1, 1), '"0001-01-01"'),
    Value("cast('9999-12-31' as date)", date(9999, 12, 31), '"9999-12-31"'),
    Value("cast('23:59:59' as time(0))", time(23, 59, 59), '"23:59:59"'),
    Value("cast('23:59:59.123' as time(3))", time(23, 59, 59, 123000), '"23:59:59.123"'),
    Value("cast('23:59:59.123456' as time(7))", time(23, 59, 59, 123456), '"23:59:59.1234560"'),
    Value("cast('1753-01-01T00:00:00' as datetime)", datetime(1753, 1, 1), '"1753-01-01T00:00:00.000"'),
    Value("cast('2026-11-20T01:02:03.12' as datetime2(2))", datetime(2026, 11, 20, 1, 2, 3, 120000),
        '"2026-11-20T01:02:03.12"'),
    Value("cast('2026-11-20T01:02:03.123456' as datetime2(7))", datetime(2026, 11, 20, 1, 2, 3, 123456),
        '"2026-11-20T01:02:03.1234560"'),
    Value("cast('0001-01-01T00:00:00' as datetime2(0))", datetime(1, 1, 1), '"0001-01-01T00:00:00"'),
    Value("cast('2026-11-20T01:02:03.000004+05:30' as datetimeoffset(7))",
        datetime(2026, 11, 20, 1, 2, 3, 4, _INDIA), '"2026-11-20T01:02:03.0000040+05:30"'),
    Value("cast('2026-11-20T01:02:03-12:59' as datetimeoffset(0))", datetime(2026, 11, 20, 1, 2, 3, tzinfo=_WEST),
        '"2026-11-20T01:02:03-12:59"'),
    Value(f"cast('{_UUID}' as uniqueidentifier)", uuid.UUID(_UUID), f'"{_UUID}"'),
    *(
        Value(f"cast(null as {name})", None, "null")
        for name in ("bit", "int", "float", "decimal(5,2)", "money", "nvarchar(9)", "nvarchar(max)", "varbinary(9)",
            "date", "time(7)", "datetime2(7)", "datetimeoffset(7)", "uniqueidentifier")
    ),
]  # fmt: skip

POSTGRES = [
    Value("cast(1 as smallint)", 1, "1"),
    Value("cast(-2147483648 as int)", -(2**31), "-2147483648"),
    Value("cast(9223372036854775807 as bigint)", 2**63 - 1, "9223372036854775807"),
    Value("true", True, "true"),
    Value("false", False, "false"),
    Value(
        "cast('123456789012345678901234567890.12345678' as numeric(38, 8))",
        Decimal("123456789012345678901234567890.12345678"),
        "123456789012345678901234567890.12345678",
    ),
    Value("cast('-0.01' as numeric)", Decimal("-0.01"), "-0.01"),
    Value("cast('12345678.90' as numeric(18, 2))", Decimal("12345678.90"), "12345678.90"),
    Value("cast('1.5' as real)", 1.5, "1.5"),
    Value("cast('0.1' as real)", 0.1, "0.1"),
    Value("cast('0.1' as double precision)", 0.1, "0.1"),
    Value("cast('-1829.3043138126723' as double precision)", -1829.3043138126723, "-1829.3043138126723"),
    Value("cast('1e300' as double precision)", 1e300, "1e+300"),
    Value(f"cast('{_TEXT}' as text)", _TEXT, f'"{_TEXT}"'),
    Value("cast('' as varchar(10))", "", '""'),
    Value("cast('ab' as char(5))", "ab   ", '"ab   "', '"ab   "'),
    Value(f"cast('{_ESCAPED[0]}' as text)", *_ESCAPED),
    Value(f"cast('{_LINES[0]}' as text)", *_LINES),
    Value(f"repeat('{_TEXT}', 3000)", _TEXT * 3000, f'"{_TEXT * 3000}"', f'"{_TEXT * 3000}"'),
    Value("decode('00ff10', 'hex')", b"\x00\xff\x10", '"AP8Q"'),
    Value("decode('', 'hex')", b"", '""'),
    Value("date '0001-01-01'", date(1, 1, 1), '"0001-01-01"'),
    Value("date '9999-12-31'", date(9999, 12, 31), '"9999-12-31"'),
    Value("time '23:59:59.123456'", time(23, 59, 59, 123456), '"23:59:59.123456"'),
    Value("timestamp '2026-11-20 01:02:03.000004'", datetime(2026, 11, 20, 1, 2, 3, 4), '"2026-11-20T01:02:03.000004"'),
    Value("cast('1970-01-01 00:00:00' as timestamp(0))", datetime(1970, 1, 1), '"1970-01-01T00:00:00"'),
    Value(f"cast('{_UUID}' as uuid)", uuid.UUID(_UUID), f'"{_UUID}"'),
    *(
        Value(f"cast(null as {name})", None, "null")
        for name in ("int", "boolean", "numeric", "double precision", "text", "bytea", "date", "time", "timestamp",
            "timestamptz", "uuid")
    ),
]  # fmt: skip

MARIADB = [
    Value("cast(1 as signed)", 1, "1"),
    Value("cast(-9223372036854775808 as signed)", -(2**63), "-9223372036854775808"),
    Value("cast(18446744073709551615 as unsigned)", 2**64 - 1, "18446744073709551615"),
    Value("cast(1.50 as decimal(10, 2))", Decimal("1.50"), "1.50"),
    Value(
        "cast(-99999999999999999999999999999999999.123 as decimal(38, 3))",
        Decimal("-99999999999999999999999999999999999.123"),
        "-99999999999999999999999999999999999.123",
    ),
    Value("cast(1.5 as float)", 1.5, "1.5"),
    Value("cast(0.1 as float)", 0.1, "0.1"),
    Value("cast(0.1 as double)", 0.1, "0.1"),
    Value("-1829.3043138126723e0", -1829.3043138126723, "-1829.3043138126723"),
    Value("1e300", 1e300, "1e+300"),
    Value(f"'{_TEXT}'", _TEXT, f'"{_TEXT}"'),
    Value("''", "", '""'),
    Value(f"'{_ESCAPED[0]}'", *_ESCAPED),
    Value(f"'{_LINES[0]}'", *_LINES),
    Value(f"repeat('{_TEXT}', 3000)", _TEXT * 3000, f'"{_TEXT * 3000}"', f'"{_TEXT * 3000}"'),
    Value("x'00ff10'", b"\x00\xff\x10", '"AP8Q"'),
    Value("x''", b"", '""'),
    Value("date '1000-01-01'", date(1000, 1, 1), '"1000-01-01"'),
    Value("date '9999-12-31'", date(9999, 12, 31), '"9999-12-31"'),
    Value("time '23:59:59.123456'", time(23, 59, 59, 123456), '"23:59:59.123456"'),
    Value("time '23:59:59'", time(23, 59, 59), '"23:59:59"'),
    Value("timestamp '2026-11-20 01:02:03.000004'", datetime(2026, 11, 20, 1, 2, 3, 4), '"2026-11-20T01:02:03.000004"'),
    Value("timestamp '2026-11-20 01:02:03'", datetime(2026, 11, 20, 1, 2, 3), '"2026-11-20T01:02:03"'),
    Value(f"cast('{_UUID}' as uuid)", _UUID, f'"{_UUID}"'),
    Value("null", None, "null"),
]

#: Through ODBC, SQLite has storage classes; its doubles have 15 digits, which a warning reports.
SQLITE_ODBC = [
    Value("1", 1, "1"),
    Value("-9223372036854775807", -(2**63) + 1, "-9223372036854775807"),
    Value("9223372036854775807", 2**63 - 1, "9223372036854775807"),
    Value("0.5", 0.5, "0.5"),
    Value("0.1", 0.1, "0.1"),
    Value("-1829.3043138126723", -1829.30431381267, "-1829.30431381267"),
    Value(f"'{_TEXT}'", _TEXT, f'"{_TEXT}"'),
    Value("''", "", '""'),
    Value(f"'{_ESCAPED[0]}'", *_ESCAPED),
    Value(f"'{_LINES[0]}'", *_LINES),
    Value(f"replace(hex(zeroblob(9000)), '0', '{_TEXT}')", _TEXT * 18000, f'"{_TEXT * 18000}"', f'"{_TEXT * 18000}"'),
    Value("x'00ff10'", b"\x00\xff\x10", '"AP8Q"'),
    Value("x''", b"", '""'),
    Value("null", None, "null"),
]

#: A value is not split, which would change its quoting.
_POSTGRES_NATIVE = [value._replace(csv=None) if value.sql.startswith("repeat") else value for value in POSTGRES]

#: By profile.
VALUES = {
    "postgres_native": _POSTGRES_NATIVE,
    "postgres": POSTGRES,
    "postgres_ansi": POSTGRES,
    "mariadb": MARIADB,
    "sqlite_odbc": SQLITE_ODBC,
    "tds_freetds": TDS,
    "tds_msodbc": TDS,
    "tds_rust": TDS,
}


def select(values: list[Value]) -> str:
    """SQL that returns the values as one row, in columns ``c0``, ``c1``, …"""
    return "select " + ", ".join(f"{value.sql} as c{k}" for k, value in enumerate(values))


def as_ndjson(values: list[Value]) -> str:
    """The row of `select` as NDJSON."""
    return "{" + ",".join(f'"c{k}":{value.json}' for k, value in enumerate(values)) + "}\n"


def as_json(values: list[Value]) -> str:
    """The row of `select` as JSON."""
    return f"[{as_ndjson(values)[:-1]}]"


def as_csv(values: list[Value]) -> str:
    """The row of `select` as CSV, with its header."""
    names = ",".join(f"c{k}" for k in range(len(values)))
    return f"{names}\n{','.join(value.in_csv() for value in values)}\n"


def differences(got: tuple[Any, ...], values: list[Value]) -> list[tuple[str, Any, Any]]:
    """The values of a row that differ from the expected ones, with the SQL and both values.

    Values differ by value, by type, or by the UTC offset of a timestamp.
    """
    assert len(got) == len(values)

    def form(value: Any) -> tuple[Any, ...]:
        return (
            type(value),
            repr(value) if isinstance(value, (float, Decimal)) else value,
            getattr(value, "utcoffset", lambda: None)(),
        )

    return [(value.sql, a, value.python) for a, value in zip(got, values, strict=True) if form(a) != form(value.python)]
