"""Random values of each column type of each database, with NULLs between them, and the value in each output format.

The same seed gives the same values. Expected values are those that an independent client reads.
"""

from __future__ import annotations

import base64
import ipaddress
import json
import string
import uuid
from collections.abc import Callable, Iterator
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal
from random import Random
from typing import Any, NamedTuple

import numpy as np

SEED = 20261124
NULL_SHARE = 0.25
#: Rows of the tables that are read.
ROW_COUNTS = (1, 2, 3, 1000)

Row = tuple[Any, ...]


def _same(value: Any) -> Any:
    return value


class Column(NamedTuple):
    """A column: its SQL type, a source of random values, and how the independent client writes and reads it."""

    sql: str
    make: Callable[[Random], Any]
    #: Placeholder of the independent client, and of onecopy.
    write: str = "%s"
    ours: str = "?"
    #: Expression that the independent client reads, and its conversion to the value that onecopy returns.
    read: str = "{}"
    convert: Callable[[Any], Any] = _same
    #: Expression for the text in JSON and CSV, if it is not that of `plain_text`.
    text: str = ""


_ALPHABETS = ("abc xyz", "Zürich é", "Москва", "東京都", "tea 🍵🌱", 'it\'s \\ "q" , ; $$ ? :x %s \n\t')


def words(draw: Random, longest: int = 40) -> str:
    """Text of one alphabet."""
    return "".join(draw.choices(draw.choice(_ALPHABETS), k=draw.randrange(longest + 1)))


def _text(draw: Random) -> str:
    return words(draw, 3000 if draw.random() < 0.05 else 40)


def _bytes(draw: Random) -> bytes:
    return draw.randbytes(3000 if draw.random() < 0.05 else draw.randrange(40))


def _integer(bits: int, *, unsigned: bool = False) -> Callable[[Random], int]:
    low, high = (0, 2**bits - 1) if unsigned else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
    return lambda draw: draw.choice((low, high, draw.randint(low, high), draw.randint(0, 100)))


def _decimal(digits: int, scale: int) -> Callable[[Random], Decimal]:
    limit = 10**digits - 1
    return lambda draw: Decimal(draw.randint(-limit, limit) // 10 ** draw.randrange(digits)).scaleb(-scale)


def _float(draw: Random) -> float:
    return draw.choice((0.0, 0.1, -1.5, draw.uniform(-1e6, 1e6), draw.uniform(-1, 1) * 10.0 ** draw.randint(-290, 290)))


def shortest_float32(value: float | None) -> float | None:
    """The double of the shortest decimal that rounds to this 32-bit float, as `real` is read."""
    return None if value is None else float(str(np.float32(value)))


def _float32(draw: Random) -> float:
    found = shortest_float32(draw.choice((0.1, -1.5, draw.uniform(-1e6, 1e6), draw.uniform(-1, 1) * 1e30)))
    assert found is not None
    return found


def _date(draw: Random) -> date:
    return date(draw.choice((1, 1582, 1970, 9999, draw.randint(1000, 9999))), draw.randint(1, 12), draw.randint(1, 28))


def _time(draw: Random) -> time:
    return time(draw.randrange(24), draw.randrange(60), draw.randrange(60), draw.choice((0, 1, draw.randrange(10**6))))


def _whole_time(draw: Random) -> time:
    return _time(draw).replace(microsecond=0)


def _datetime(draw: Random) -> datetime:
    return datetime.combine(_date(draw), _time(draw))


def _whole_datetime(draw: Random) -> datetime:
    return _datetime(draw).replace(microsecond=0)


def _utc(draw: Random) -> datetime:
    return datetime(1970, 1, 2, tzinfo=timezone.utc) + timedelta(microseconds=draw.randrange(2_000_000_000_000_000))


def _span(draw: Random) -> timedelta:
    return timedelta(days=draw.randint(-99, 99), microseconds=draw.randint(-(10**11), 10**11))


def _bits(length: int) -> Callable[[Random], str]:
    return lambda draw: f"{draw.getrandbits(length):0{length}b}"


def _json(draw: Random) -> str:
    return json.dumps({"a": words(draw), "b": [draw.randrange(9), None]})


def _array(draw: Random) -> str:
    return "{" + ",".join(str(draw.randrange(99)) for _ in range(draw.randrange(5))) + "}"


def _network(draw: Random) -> str:
    return str(ipaddress.ip_network((draw.getrandbits(32) & 0xFFFFFF00, 24)))


def _uuid(draw: Random) -> uuid.UUID:
    return uuid.UUID(int=draw.getrandbits(128), version=4)


def _ascii(longest: int) -> Callable[[Random], str]:
    return lambda draw: "".join(draw.choices(string.ascii_letters, k=draw.randint(1, longest)))


def _of_cast(sql: str, make: Callable[[Random], str]) -> Column:
    """A type whose values are text in Python."""
    return Column(sql, make, f"%s::text::{sql}", f"cast(? as {sql})", "{}::text")


POSTGRES = [
    Column("boolean", lambda draw: draw.random() < 0.5),
    Column("smallint", _integer(16)),
    Column("integer", _integer(32)),
    Column("bigint", _integer(64)),
    Column("oid", _integer(32, unsigned=True)),
    Column("real", _float32),
    Column("double precision", _float),
    Column("numeric(30,4)", _decimal(30, 4)),
    Column("numeric", _decimal(30, 8)),
    Column("money", _decimal(16, 2), "%s::numeric::money", "cast(? as numeric)::money", "{}::numeric"),
    Column("text", _text),
    Column("varchar(40)", words),
    Column("char(5)", lambda draw: words(draw, 5)),
    Column("name", _ascii(20)),
    _of_cast("xml", lambda draw: f"<a>{draw.randrange(10**9)} é</a>"),
    _of_cast("json", _json),
    _of_cast("jsonb", _json),
    Column("bytea", _bytes),
    Column("date", _date),
    Column("time", _time),
    Column("time(0)", _whole_time),
    _of_cast("timetz", lambda draw: f"{_time(draw).isoformat()}+05:30"),
    Column("timestamp", _datetime),
    Column("timestamp(0)", _whole_datetime),
    Column("timestamptz", _utc),
    Column("interval", _span, text="{}::text"),
    _of_cast("interval", lambda draw: f"{draw.randint(1, 9)} years {draw.randint(1, 11)} mons 3 days"),
    Column("uuid", _uuid),
    _of_cast("bit(3)", _bits(3)),
    _of_cast("bit varying", _bits(9)),
    _of_cast("inet", lambda draw: str(ipaddress.ip_address(draw.getrandbits(32))))._replace(read="host({})"),
    _of_cast("cidr", _network),
    _of_cast("macaddr", lambda draw: draw.randbytes(6).hex(":")),
    _of_cast("integer[]", _array),
    _of_cast("text[]", _array),
    _of_cast("point", lambda draw: f"({draw.randrange(9)},{draw.randrange(9)})"),
    _of_cast("int4range", lambda draw: f"[{draw.randrange(9)},{draw.randint(10, 99)})"),
    _of_cast("tsvector", lambda draw: f"'{_ascii(8)(draw)}'"),
]


def _time_of_day(value: Any) -> Any:
    """PyMySQL reads each `time` as a span."""
    if not isinstance(value, timedelta) or not timedelta() <= value < timedelta(1):
        return value
    return (datetime.min + value).time()


def _mariadb_span(draw: Random) -> timedelta:
    return timedelta(seconds=draw.choice((draw.randrange(86_400), draw.randint(-3_020_399, 3_020_399))))


def _fine_mariadb_span(draw: Random) -> timedelta:
    return timedelta(microseconds=draw.choice((draw.randrange(86_400 * 10**6), draw.randint(-(10**12), 10**12))))


MARIADB = [
    Column("tinyint", _integer(8)),
    Column("tinyint unsigned", _integer(8, unsigned=True)),
    Column("smallint", _integer(16)),
    Column("smallint unsigned", _integer(16, unsigned=True)),
    Column("mediumint", _integer(24)),
    Column("mediumint unsigned", _integer(24, unsigned=True)),
    Column("int", _integer(32)),
    Column("int unsigned", _integer(32, unsigned=True)),
    Column("bigint", _integer(64)),
    Column("bigint unsigned", _integer(64, unsigned=True)),
    Column("year", lambda draw: draw.randint(1901, 2155)),
    Column("bit(1)", lambda draw: draw.random() < 0.5, read="{} + 0", convert=lambda v: None if v is None else bool(v)),
    Column("bit(10)", lambda draw: draw.getrandbits(10)),
    # The text protocol rounds a FLOAT to 6 digits.
    Column("float", _float32, read="cast({} as double)", convert=shortest_float32),
    Column("double", _float),
    Column("decimal(30,0)", _decimal(30, 0)),
    Column("decimal(34,30)", _decimal(34, 30)),
    Column("decimal(5,2)", _decimal(5, 2)),
    Column("char(5)", lambda draw: words(draw, 5).rstrip()),
    Column("varchar(40)", words),
    Column("text", _text),
    Column("longtext", _text),
    Column("enum('a','b')", lambda draw: draw.choice("ab")),
    Column("set('a','b')", lambda draw: draw.choice(("", "a", "b", "a,b"))),
    Column("json", _json),
    Column("binary(4)", lambda draw: draw.randbytes(4)),
    Column("varbinary(40)", lambda draw: draw.randbytes(draw.randrange(41))),
    Column("longblob", _bytes),
    Column("date", _date),
    Column("time", _mariadb_span, convert=_time_of_day, text="cast({} as char)"),
    Column("time(6)", _fine_mariadb_span, convert=_time_of_day, text="cast({} as char)"),
    Column("datetime", _whole_datetime),
    Column("datetime(6)", _datetime),
    Column("timestamp(3) null", lambda draw: _utc(draw).replace(tzinfo=None, microsecond=4000)),
    Column("uuid", lambda draw: str(_uuid(draw))),
    Column("inet6", lambda draw: str(ipaddress.IPv6Address(draw.getrandbits(128)))),
    Column(
        "point",
        lambda draw: f"POINT({draw.randrange(9)} {draw.randrange(9)})",
        "st_pointfromtext(%s)",
        "st_pointfromtext(?)",
    ),
]


def _any(draw: Random) -> Any:
    return draw.choice((_integer(64), _float, _text, _bytes))(draw)


SQLITE = [
    Column("integer", _integer(64)),
    Column("real", _float),
    Column("text", _text),
    Column("blob", _bytes),
    Column("", _any),
    Column("numeric", lambda draw: draw.choice((_integer(40), _float))(draw)),
]

#: The driver cuts doubles to 15 digits, and a column has one type: that of its declaration.
SQLITE_ODBC = [
    Column("integer", _integer(32)),
    Column("bigint", lambda draw: draw.randint(-(2**63) + 1, 2**63 - 1)),
    Column("double", lambda draw: draw.randint(-(10**9), 10**9) / 8),
    Column("float", lambda draw: draw.randint(-(10**6), 10**6) / 8),
    Column("text", lambda draw: words(draw, 2000 if draw.random() < 0.05 else 40)),
    Column("varchar(40)", words),
    Column("blob", _bytes),
]


def rows(columns: list[Column], n_rows: int) -> list[Row]:
    """Rows of random values, numbered from 0 in their first column."""
    draw = Random(SEED)
    return [
        (i, *(None if draw.random() < NULL_SHARE else column.make(draw) for column in columns)) for i in range(n_rows)
    ]


def definition(table: str, columns: list[Column]) -> str:
    """CREATE TABLE with the columns `i`, `c0`, `c1`, …"""
    defined = ", ".join(f"c{k} {column.sql}" for k, column in enumerate(columns))
    return f"create table {table} (i integer, {defined})"


def insertion(table: str, columns: list[Column], *, ours: bool = False, mark: str = "%s") -> str:
    """INSERT of one row, with the placeholders of onecopy or of the independent client."""
    marks = ", ".join(column.ours if ours else column.write for column in columns)
    return f"insert into {table} values ({'?' if ours else mark}, {marks})"


def selection(table: str, columns: list[Column], n_rows: int, *, of_text: bool = False) -> str:
    """The query of the independent client for the values, or for the texts of those that have an expression of their own."""
    reads = (column.text if of_text and column.text else column.read for column in columns)
    selected = ", ".join(read.format(f"c{k}") for k, read in enumerate(reads))
    return f"select i, {selected} from {table} where i < {n_rows} order by i"


def converted(columns: list[Column], found: list[Row]) -> list[Row]:
    """The rows of the independent client as onecopy returns them."""
    return [(row[0], *(column.convert(value) for column, value in zip(columns, row[1:], strict=True))) for row in found]


def plain_text(value: Any) -> str:
    """The text of a value in JSON and CSV, floats and times excepted."""
    match value:
        case bool():
            return "true" if value else "false"
        case Decimal():
            return format(value, "f")
        case bytes():
            return base64.b64encode(value).decode()
    return str(value)


def is_text_of(text: str | None, value: Any) -> bool:
    """Whether `text`, of a JSON value or a CSV field, is right for `value`."""
    match value:
        case None:
            return not text
        case float():
            return text is not None and float(text) == value
        case date() | time():
            return text is not None and type(value).fromisoformat(text) == value
    return text == plain_text(value)


def json_cells(data: bytes) -> Iterator[list[str | None]]:
    """The values of each row of a JSON array, each as text."""
    for row in json.loads(data, parse_int=str, parse_float=str):
        yield [plain_text(value) if isinstance(value, bool) else value for value in row.values()]
