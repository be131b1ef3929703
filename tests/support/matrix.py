"""The rows of the tables in docs/reference/values.md: each SQL type of each database with its form
in Python, JSON, CSV, Arrow and BSON, and example values.

`tests/rows/test_matrix.py` and `tests/arrow/test_matrix.py` compare the example values with those
that the database returns, and the tables of the page with this file.
"""

from __future__ import annotations

import uuid
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal
from typing import NamedTuple

from onecopy import Range
from tests.support.values import Value


class Type(NamedTuple):
    """A row of a table in docs/reference/values.md: an SQL type, its forms, and example values."""

    sql: str
    python: str
    json: str
    csv: str
    bson: str
    values: tuple[Value, ...]
    arrow: str


class Refused(NamedTuple):
    """A value that some formats cannot represent.

    ``words`` is a part of the message of the resulting `DataError`. ``json`` is the value in JSON
    if JSON can represent it.
    """

    sql: str
    value: str
    words: str
    json: str | None = None


_UUID = "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"
_TEXT = "Zürich 東京 😀"
_INDIA = timezone(timedelta(hours=5, minutes=30))
_WEST = timezone(-timedelta(hours=12, seconds=15))
_38 = "12345678901234567890123456789012345678"
_NUMBER, _STRING, _DIGITS = "number", "string", "digits"
_SAME = "the same, bare"


def _number(sql: str, value: object) -> Value:
    return Value(sql, value, str(value))


def _string(sql: str, value: object, text: str, csv: str | None = None) -> Value:
    return Value(sql, value, f'"{text}"', csv)


_INT = ("int", "number, all digits", _DIGITS, "int32 where it fits, else int64")
_DECIMAL = ("decimal.Decimal", "number, all digits", _DIGITS, "decimal128; an error past 34 digits")
_FLOAT = ("float", "number, shortest that round-trips", "the same", "double")
_STR = ("str", _STRING, "text, quoted where needed", "string")
_RANGE = ("onecopy.Range", *_STR[1:])
_LIST = ("list", "array of the elements", "its text, quoted where needed", "array")
_BYTES = ("bytes", "base64 string", "base64", "binary")
_DATE = ("datetime.date", "string, RFC 3339", _SAME, "datetime, midnight in UTC")
_TIME = ("datetime.time", "string, RFC 3339", _SAME, "string, as in JSON")
_NAIVE = ("datetime.datetime", "string, RFC 3339 without an offset", _SAME, "datetime, floored to milliseconds")
_AWARE = (
    "datetime.datetime, aware",
    "string, RFC 3339 with its offset",
    _SAME,
    "datetime, the instant, floored to milliseconds",
)
_UTC_AWARE = (
    "datetime.datetime, aware, in UTC",
    "string, RFC 3339 with +00:00",
    _SAME,
    "datetime, the instant, floored to milliseconds",
)
_SPAN = (
    "datetime.timedelta; str where it has months or years",
    "string, as the server writes it",
    _SAME,
    "string, as in JSON",
)
_UUID_ROW = ("uuid.UUID", _STRING, _SAME, "binary of subtype 4")
_BOOL = ("bool", "true, false", "true, false", "boolean")

POSTGRES = [
    Type("boolean", *_BOOL, (Value("true", True, "true"), Value("false", False, "false")), "`bool`"),
    Type("smallint", *_INT, (_number("-32768", -32768), _number("32767", 32767)), "`int16`"),
    Type("integer", *_INT, (_number("-2147483648", -(2**31)), _number("2147483647", 2**31 - 1)), "`int32`"),
    Type("bigint", *_INT, (_number("'-9223372036854775808'", -(2**63)), _number("9223372036854775807", 2**63 - 1)),
        "`int64`"),
    Type("oid", *_INT, (_number("4294967295", 4294967295),), "`uint32`"),
    Type("real", *_FLOAT, (_number("1.5", 1.5), _number("0.1", 0.1)), "`float`"),
    Type("double precision", *_FLOAT,
        (_number("0.1", 0.1), _number("'-1829.3043138126723'", -1829.3043138126723),
            Value("1e300", 1e300, "1e+300")), "`double`"),
    Type("numeric(38, 0)", *_DECIMAL, (_number(_38, Decimal(_38)), _number(f"-{_38}", Decimal(f"-{_38}"))),
        "`decimal128(38, 0)`"),
    Type("numeric", *_DECIMAL,
        (_number("-0.01", Decimal("-0.01")), Value("'1e-20'", Decimal("1E-20"), "0.00000000000000000001"),
            _number("1" * 300, Decimal("1" * 300))),
            "`decimal128`, `decimal256`, by the values; `string` past 76 digits"),
    Type("money", *_DECIMAL,
        (_number("'-1234.50'", Decimal("-1234.50")),
            _number("'92233720368547758.07'", Decimal("92233720368547758.07"))), "`decimal128(19, 2)`"),
    Type("text", *_STR, (_string(f"'{_TEXT}'", _TEXT, _TEXT), _string("''", "", "")), "`string`"),
    Type("varchar(10)", *_STR, (_string("'a,b'", "a,b", "a,b", '"a,b"'),), "`string`"),
    Type("char(3)", "str, padded", _STRING, "text, quoted where needed", "string",
        (_string("'x'", "x  ", "x  ", '"x  "'),), "`string`"),
    Type("name", *_STR, (_string("'n'", "n", "n"),), "`string`"),
    Type("xml", *_STR, (_string("'<a>é</a>'", "<a>é</a>", "<a>é</a>"),), "`string`"),
    Type("json", "str", "the value itself, checked", *_STR[2:],
        (Value("'[1, 2]'", "[1, 2]", "[1, 2]", '"[1, 2]"'),), "`string`"),
    Type("jsonb", "str", "the value itself, checked", *_STR[2:],
        (Value("""'{"a":1}'""", '{"a": 1}', '{"a": 1}', '"{""a"": 1}"'),), "`string`"),
    Type("bytea", *_BYTES, (_string(r"'\x00ff10'", b"\x00\xff\x10", "AP8Q"), _string(r"'\x'", b"", "")), "`binary`"),
    Type("date", *_DATE, (_string("'0001-01-01'", date(1, 1, 1), "0001-01-01"),
        _string("'9999-12-31'", date(9999, 12, 31), "9999-12-31"),
        _string("'2024-02-29'", date(2024, 2, 29), "2024-02-29")), "`date32`"),
    Type("time", *_TIME, (_string("'23:59:59.123456'", time(23, 59, 59, 123456), "23:59:59.123456"),), "`time64[us]`"),
    Type("time(0)", *_TIME, (_string("'23:59:59'", time(23, 59, 59), "23:59:59"),), "`time32[s]`"),
    Type("time with time zone", "datetime.time, aware", "string, as the server writes it", _SAME,
        "string, as in JSON", (
        _string("'01:02:03.5+05:30'", time(1, 2, 3, 500000, _INDIA), "01:02:03.5+05:30"),
        _string("'23:59:59-12:00:15'", time(23, 59, 59, tzinfo=_WEST), "23:59:59-12:00:15"),
        _string("'00:00+00'", time(tzinfo=timezone.utc), "00:00:00+00"),
    ), "`string`"),
    Type("timestamp", *_NAIVE, (
        _string("'2026-11-20 01:02:03.000004'", datetime(2026, 11, 20, 1, 2, 3, 4), "2026-11-20T01:02:03.000004"),
        _string("'0001-01-01 00:00:00'", datetime(1, 1, 1), "0001-01-01T00:00:00.000000"),
        _string("'9999-12-31 23:59:59'", datetime(9999, 12, 31, 23, 59, 59), "9999-12-31T23:59:59.000000"),
        _string("'9999-12-31 23:59:59.999999'", datetime(9999, 12, 31, 23, 59, 59, 999999),
            "9999-12-31T23:59:59.999999"),
    ), "`timestamp[us]`"),
    Type("timestamp(0)", *_NAIVE, (_string("'1970-01-01 00:00:00'", datetime(1970, 1, 1), "1970-01-01T00:00:00"),),
        "`timestamp[s]`"),
    Type("timestamp with time zone", *_UTC_AWARE,
        (_string("'2026-11-20 01:02:03.000004+05:30'", datetime(2026, 11, 19, 19, 32, 3, 4, timezone.utc),
            "2026-11-19T19:32:03.000004+00:00"),), "`timestamp[us, tz=UTC]`"),
    Type("interval", *_SPAN, (
        _string("'0'", timedelta(), "00:00:00"),
        _string("'1 day 02:03:04.5'", timedelta(1, 7384, 500000), "1 day 02:03:04.5"),
        _string("'-1 day +02:03:04'", timedelta(-1, 7384), "-1 days +02:03:04"),
        _string("'-0.000001 s'", timedelta(0, 0, -1), "-00:00:00.000001"),
        _string("'100000000 hours'", timedelta(hours=100000000), "100000000:00:00"),
        _string("'1 year 2 mons 3 days'", "1 year 2 mons 3 days", "1 year 2 mons 3 days"),
    ), "`string`"),
    Type("interval day to second", *_SPAN, (_string("'3 04:05:06'", timedelta(3, 14706), "3 days 04:05:06"),),
        "`string`"),
    Type("uuid", *_UUID_ROW, (_string(f"'{_UUID}'", uuid.UUID(_UUID), _UUID),), "`arrow.uuid`"),
    Type("bit(3)", *_STR, (_string("B'101'", "101", "101"),), "`string`"),
    Type("bit varying", *_STR, (_string("B'1011'", "1011", "1011"),), "`string`"),
    Type("inet", *_STR, (_string("'127.0.0.1'", "127.0.0.1", "127.0.0.1"), _string("'::1'", "::1", "::1")), "`string`"),
    Type("cidr", *_STR, (_string("'10.0.0.0/8'", "10.0.0.0/8", "10.0.0.0/8"),), "`string`"),
    Type("macaddr", *_STR, (_string("'08:00:2b:01:02:03'", "08:00:2b:01:02:03", "08:00:2b:01:02:03"),), "`string`"),
    Type("integer[]", *_LIST,
        (Value("array[1, 2]", [1, 2], "[1,2]", '"{1,2}"'), Value("'{}'", [], "[]", "{}")), "`list<int32>`"),
    Type("text[]", *_LIST, (Value("array['a', 'b']", ["a", "b"], '["a","b"]', '"{a,b}"'),), "`list<string>`"),
    Type("point", *_STR, (_string("'(1,2)'", "(1,2)", "(1,2)", '"(1,2)"'),), "`string`"),
    Type("int4range", *_RANGE, (_string("'[1,4]'", Range(1, 5), "[1,5)", '"[1,5)"'),
        _string("'(,5)'", Range(None, 5), "(,5)", '"(,5)"'),
        _string("'[1,1)'", Range(empty=True), "empty")), "`string`"),
    Type("daterange", *_RANGE,
        (_string("'[2026-03-01,)'", Range(date(2026, 3, 1)), "[2026-03-01,)", '"[2026-03-01,)"'),), "`string`"),
    Type("int4multirange", "tuple of onecopy.Range", *_RANGE[1:],
        (_string("'{[1,5),[7,9)}'", (Range(1, 5), Range(7, 9)), "{[1,5),[7,9)}", '"{[1,5),[7,9)}"'),
            _string("'{}'", (), "{}")), "`string`"),
    Type("tsvector", *_STR, (_string("'a'", "'a'", "'a'"),), "`string`"),
]  # fmt: skip

#: Types of PostgreSQL that are text through psqlodbc.
_OF_PSQLODBC = [
    Type("int4range", *_STR, (_string("'[1,5)'", "[1,5)", "[1,5)", '"[1,5)"'),), "`string`"),
    Type("daterange", *_STR, (_string("'(,)'", "(,)", "(,)", '"(,)"'),), "`string`"),
    Type("int4multirange", *_STR, (_string("'{[1,5)}'", "{[1,5)}", "{[1,5)}", '"{[1,5)}"'),), "`string`"),
    Type("time with time zone", *_STR, (_string("'01:02:03.5+05:30'", "01:02:03.5+05:30", "01:02:03.5+05:30"),),
        "`string`"),
    Type("json", *_STR, (Value("'[1, 2]'", "[1, 2]", '"[1, 2]"', '"[1, 2]"'),), "`string`"),
    Type("jsonb", *_STR, (Value("""'{"a":1}'""", '{"a": 1}', r'"{\"a\": 1}"', '"{""a"": 1}"'),), "`string`"),
    Type("integer[]", *_STR,
        (_string("array[1, 2]", "{1,2}", "{1,2}", '"{1,2}"'), _string("'{}'", "{}", "{}")), "`string`"),
    Type("text[]", *_STR, (_string("array['a', 'b']", "{a,b}", "{a,b}", '"{a,b}"'),), "`string`"),
]  # fmt: skip


def of_postgres(profile: str, row: Type) -> Type:
    """The table row for ``row``'s PostgreSQL type when it is read through ``profile``.

    Some types have other forms through psqlodbc than by the native protocol.
    """
    if profile == "postgres_native":
        return row
    return next((other for other in _OF_PSQLODBC if other.sql == row.sql), row)


#: The time 24:00, and values outside of Python's range of years.
POSTGRES_REFUSED = [
    Refused("date", "'infinity'", "`infinity`"),
    Refused("date", "'-infinity'", "`-infinity`"),
    Refused("date", "'12020-03-04'", "12020"),
    Refused("timestamp", "'infinity'", "`infinity`"),
    Refused("timestamp", "'-infinity'", "`-infinity`"),
    Refused("timestamp", "'12020-03-04 01:02:03'", "year"),
    # psqlodbc counts years before Christ from -1, without a year 0.
    Refused("timestamp", "'0044-03-15 01:02:03 BC'", "-4"),
    Refused("timestamp with time zone", "'infinity'", "`infinity`"),
    Refused("timestamp with time zone", "'-infinity'", "`-infinity`"),
    Refused("time", "'24:00:00'", "hour must be in 0..23", '"24:00:00.000000"'),
]

MARIADB = [
    Type("tinyint", *_INT, (_number("-128", -128), _number("127", 127)), "`int8`"),
    Type("boolean", "int: it is a tinyint", "number, all digits", _DIGITS, "int32", (_number("true", 1),), "`int8`"),
    Type("tinyint unsigned", *_INT, (_number("255", 255),), "`uint8`"),
    Type("smallint unsigned", *_INT, (_number("65535", 65535),), "`uint16`"),
    Type("mediumint", *_INT, (_number("-8388608", -8388608),), "`int32`"),
    Type("mediumint unsigned", *_INT, (_number("16777215", 16777215),), "`uint32`"),
    Type("int", *_INT, (_number("-2147483648", -(2**31)),), "`int32`"),
    Type("int unsigned", *_INT, (_number("4294967295", 2**32 - 1),), "`uint32`"),
    Type("bigint", *_INT, (_number("-9223372036854775808", -(2**63)), _number("9223372036854775807", 2**63 - 1)),
        "`int64`"),
    Type("bigint unsigned", *_INT[:3], "int32, int64; decimal128 from 2^63 on",
        (_number("18446744073709551615", 2**64 - 1), _number("0", 0)), "`uint64`"),
    Type("year", *_INT, (_number("2026", 2026), _number("1901", 1901)), "`uint16`"),
    Type("bit(1)", *_BOOL, (Value("b'1'", True, "true"), Value("b'0'", False, "false")), "`bool`"),
    Type("bit(10)", *_BYTES, (_string("b'1000000001'", b"\x02\x01", "AgE="),), "`binary`"),
    Type("float", *_FLOAT, (_number("0.1", 0.1), _number("1.5", 1.5)), "`float`"),
    Type("double", *_FLOAT,
        (_number("-1829.3043138126723", -1829.3043138126723),
            Value("1.7976931348623157e308", 1.7976931348623157e308, "1.7976931348623157e+308")), "`double`"),
    Type("decimal(38, 0)", *_DECIMAL, (_number(_38, Decimal(_38)),), "`decimal128(38, 0)`"),
    Type("decimal(65, 30)", *_DECIMAL,
        (_number(f"12345678901234567890123456789012345.{_38[:30]}",
            Decimal(f"12345678901234567890123456789012345.{_38[:30]}")),), "`decimal256(65, 30)`"),
    Type("decimal(5, 2)", *_DECIMAL, (_number("-0.01", Decimal("-0.01")), _number("0.00", Decimal("0.00"))),
        "`decimal128(5, 2)`"),
    Type("char(5)", *_STR, (_string("'ab'", "ab", "ab"),), "`string`"),
    Type("varchar(20)", *_STR, (_string(f"'{_TEXT}'", _TEXT, _TEXT), _string("''", "", "")), "`string`"),
    Type("text", *_STR, (_string(f"'{_TEXT}'", _TEXT, _TEXT),), "`string`"),
    Type("longtext", *_STR, (_string(f"repeat('{_TEXT}', 3000)", _TEXT * 3000, _TEXT * 3000, f'"{_TEXT * 3000}"'),),
        "`string`"),
    Type("enum('a', 'b')", *_STR, (_string("'b'", "b", "b"),), "`string`"),
    Type("set('a', 'b')", *_STR, (_string("'a,b'", "a,b", "a,b", '"a,b"'), _string("''", "", "")), "`string`"),
    Type("json", *_STR, (Value("'[1, 2]'", "[1, 2]", '"[1, 2]"', '"[1, 2]"'),), "`string`"),
    Type("binary(4)", *_BYTES, (_string("x'0102'", b"\x01\x02\x00\x00", "AQIAAA=="),), "`binary`"),
    Type("varbinary(4)", *_BYTES, (_string("x'00ff'", b"\x00\xff", "AP8="), _string("x''", b"", "")), "`binary`"),
    Type("longblob", *_BYTES, (_string("x'00ff10'", b"\x00\xff\x10", "AP8Q"),), "`binary`"),
    Type("date", *_DATE, (_string("'0001-01-01'", date(1, 1, 1), "0001-01-01"),
        _string("'9999-12-31'", date(9999, 12, 31), "9999-12-31")), "`date32`"),
    Type("time", "datetime.time; datetime.timedelta below 0 and from 24 hours on", "string", _SAME,
        "string, as in JSON", (
        _string("'23:59:59'", time(23, 59, 59), "23:59:59"),
        _string("'24:00:00'", timedelta(1), "24:00:00"),
        _string("'838:59:59'", timedelta(hours=838, minutes=59, seconds=59), "838:59:59"),
        _string("'-838:59:59'", -timedelta(hours=838, minutes=59, seconds=59), "-838:59:59"),
    ), "`time32[s]`; an error below 0 and from 24 hours on"),
    Type("time(6)", "datetime.time; datetime.timedelta below 0 and from 24 hours on", "string", _SAME,
        "string, as in JSON", (
        _string("'23:59:59.000001'", time(23, 59, 59, 1), "23:59:59.000001"),
        _string("'-00:00:00.000001'", timedelta(0, 0, -1), "-00:00:00.000001"),
    ), "`time64[us]`; an error below 0 and from 24 hours on"),
    Type("datetime", *_NAIVE,
        (_string("'2026-11-20 01:02:03'", datetime(2026, 11, 20, 1, 2, 3), "2026-11-20T01:02:03"),
            _string("'9999-12-31 23:59:59'", datetime(9999, 12, 31, 23, 59, 59), "9999-12-31T23:59:59")),
            "`timestamp[s]`"),
    Type("datetime(6)", *_NAIVE,
        (_string("'2026-11-20 01:02:03.000004'", datetime(2026, 11, 20, 1, 2, 3, 4), "2026-11-20T01:02:03.000004"),
            _string("'0001-01-01 00:00:00'", datetime(1, 1, 1), "0001-01-01T00:00:00.000000")), "`timestamp[us]`"),
    Type("timestamp(3)", *_NAIVE,
        (_string("'2026-11-20 01:02:03.004'", datetime(2026, 11, 20, 1, 2, 3, 4000), "2026-11-20T01:02:03.004"),),
        "`timestamp[ms]`"),
    Type("uuid", "str: the driver calls it char", _STRING, _SAME, "string", (_string(f"'{_UUID}'", _UUID, _UUID),),
        "`string`"),
    Type("inet6", *_STR, (_string("'::1'", "::1", "::1"),), "`string`"),
    Type("point", *_BYTES,
        (_string("point(1, 2)", bytes.fromhex("000000000101000000000000000000f03f0000000000000040"),
            "AAAAAAEBAAAAAAAAAAAA8D8AAAAAAAAAQA=="),), "`binary`"),
]  # fmt: skip

MARIADB_REFUSED = [
    Refused("date", "'2026-00-00'", "month"),
    Refused("date", "'2026-02-31'", "out of range for month"),
    Refused("datetime", "'2026-00-01 00:00:00'", "month"),
]

SQLITE = [
    Type("INTEGER", *_INT,
        (_number("9223372036854775807", 2**63 - 1),
            Value("-9223372036854775807 - 1", -(2**63), "-9223372036854775808")), "`int64`"),
    Type("REAL", *_FLOAT, (_number("0.1", 0.1), _number("-1829.3043138126723", -1829.3043138126723)), "`double`"),
    Type("TEXT", *_STR, (_string(f"'{_TEXT}'", _TEXT, _TEXT), _string("''", "", ""),
        _string("'2026-11-20'", "2026-11-20", "2026-11-20")), "`string`"),
    Type("BLOB", *_BYTES, (_string("x'00ff10'", b"\x00\xff\x10", "AP8Q"), _string("x''", b"", "")), "`binary`"),
    Type("NULL", "None", "null", "nothing", "null", (Value("null", None, "null"),), "`null`"),
]  # fmt: skip

SQL_SERVER = [
    Type("bit", *_BOOL, (Value("cast(1 as bit)", True, "true"),), "`bool`"),
    Type("tinyint", *_INT, (_number("cast(255 as tinyint)", 255),), "`uint8`"),
    Type("smallint", *_INT, (_number("cast(-32768 as smallint)", -32768),), "`int16`"),
    Type("int", *_INT, (_number("cast(2147483647 as int)", 2**31 - 1),), "`int32`"),
    Type("bigint", *_INT, (_number("cast('-9223372036854775808' as bigint)", -(2**63)),), "`int64`"),
    Type("real", *_FLOAT, (_number("cast('0.1' as real)", 0.1),), "`float`"),
    Type("float", *_FLOAT, (_number("cast('-1829.3043138126723' as float)", -1829.3043138126723),), "`double`"),
    Type("decimal(38, 8)", *_DECIMAL,
        (_number("cast('123456789012345678901234567890.12345678' as decimal(38,8))",
            Decimal("123456789012345678901234567890.12345678")),
            _number("cast('-0.01' as decimal(5,2))", Decimal("-0.01"))), "`decimal128`, by its digits"),
    Type("money", *_DECIMAL, (_number("cast('922337203685477.5807' as money)", Decimal("922337203685477.5807")),),
        "`decimal128(19, 4)`"),
    Type("smallmoney", *_DECIMAL, (_number("cast('-214748.3648' as smallmoney)", Decimal("-214748.3648")),),
        "`decimal128(10, 4)`"),
    Type("nvarchar, nvarchar(max)", *_STR,
        (_string(f"N'{_TEXT}'", _TEXT, _TEXT), _string("N''", "", ""),
            _string(f"replicate(N'{_TEXT}', 3000)", _TEXT * 3000, _TEXT * 3000, f'"{_TEXT * 3000}"')), "`string`"),
    Type("varchar, varchar(max)", *_STR,
        (_string("'café €'", "café €", "café €"), _string("cast('y' as varchar(max))", "y", "y")), "`string`"),
    Type("varbinary, varbinary(max)", *_BYTES,
        (_string("0x00ff10", b"\x00\xff\x10", "AP8Q"), _string("cast(0xff as varbinary(max))", b"\xff", "/w==")),
        "`binary`"),
    Type("date", *_DATE, (_string("cast('0001-01-01' as date)", date(1, 1, 1), "0001-01-01"),
        _string("cast('9999-12-31' as date)", date(9999, 12, 31), "9999-12-31")), "`date32`"),
    Type("time(0) to time(7)", *_TIME,
        (_string("cast('23:59:59.123' as time(3))", time(23, 59, 59, 123000), "23:59:59.123"),
            _string("cast('23:59:59.123456' as time(7))", time(23, 59, 59, 123456), "23:59:59.1234560")),
            "`time32[s]`, `time32[ms]`, `time64[us]`, `time64[ns]`, by its digits"),
    Type("datetime", *_NAIVE,
        (_string("cast('1753-01-01T00:00:00' as datetime)", datetime(1753, 1, 1), "1753-01-01T00:00:00.000"),),
        "`timestamp[ms]`"),
    Type("datetime2(0) to datetime2(7)", *_NAIVE,
        (_string("cast('2026-11-20T01:02:03.123456' as datetime2(7))", datetime(2026, 11, 20, 1, 2, 3, 123456),
            "2026-11-20T01:02:03.1234560"),
            _string("cast('0001-01-01T00:00:00' as datetime2(0))", datetime(1, 1, 1), "0001-01-01T00:00:00")),
            "`timestamp[s]`, `timestamp[ms]`, `timestamp[us]`, `timestamp[ns]`, by its digits"),
    Type("datetimeoffset", *_AWARE,
        (_string("cast('2026-11-20T01:02:03-12:59' as datetimeoffset(0))",
            datetime(2026, 11, 20, 1, 2, 3, tzinfo=timezone(-timedelta(hours=12, minutes=59))),
            "2026-11-20T01:02:03-12:59"),),
            "`timestamp[s, tz=UTC]`, `timestamp[ms, tz=UTC]`, `timestamp[us, tz=UTC]`, "
            "`timestamp[ns, tz=UTC]`, by its digits"),
    Type("uniqueidentifier", *_UUID_ROW,
        (_string(f"cast('{_UUID}' as uniqueidentifier)", uuid.UUID(_UUID), _UUID),), "`arrow.uuid`"),
]  # fmt: skip

#: Headings of the page, each with the rows of its table.
PAGE = {"PostgreSQL": POSTGRES, "MariaDB and MySQL": MARIADB, "SQL Server": SQL_SERVER, "SQLite": SQLITE}


def table(types: list[Type]) -> str:
    """The types as a Markdown table."""
    lines = ["| SQL type | Python | JSON | CSV | Arrow | BSON |", "|---|---|---|---|---|---|"]
    lines += [f"| `{t.sql}` | {t.python} | {t.json} | {t.csv} | {t.arrow} | {t.bson} |" for t in types]
    return "\n".join(lines)
