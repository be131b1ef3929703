"""The columns with random values for PostgreSQL."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

from psycopg.types.multirange import Multirange
from psycopg.types.range import Range

import onecopy

from . import draw as d
from .column import Column

#: JSON and CSV have no NaN and no infinities.
_NOT_FINITE = frozenset({"json", "ndjson", "csv"})


def _of_cast(sql: str, make: Callable[[Random], str], equal: str = "") -> Column:
    """A column whose values are str in Python and are written by a cast from text."""
    return Column(sql, make, f"%s::text::{sql}", f"cast(? as {sql})", "{}::text", equal=equal)


def _range(low: str, high: str) -> Callable[[Random], str]:
    return lambda draw: f"[{low.format(draw.randrange(9))},{high.format(draw.randint(10, 28))})"


def _pair(form: str) -> Callable[[Random], str]:
    return lambda draw: form.format(*(draw.randint(1, 99) for _ in range(6)))


def _multirange(draw: Random) -> str:
    return f"{{[{draw.randrange(9)},9),[10,{draw.randint(11, 99)})}}"


#: Through psqlodbc.
_JSON = [_of_cast("json", d.json_text), _of_cast("jsonb", d.json_text)]
_ARRAYS_AS_TEXT = [
    _of_cast("integer[]", d.integer_array, "{} = {}::integer[]"),
    _of_cast("text[]", d.integer_array, "{} = {}::text[]"),
    _of_cast("timestamptz[]", lambda draw: '{"' + d.utc(draw).isoformat(" ") + '"}'),
]

_TIMETZ_AS_TEXT = _of_cast("timetz", lambda draw: d.time_with_offset(draw).isoformat(), "{} = {}::timetz")

POSTGRES = [
    Column("boolean", lambda draw: draw.random() < 0.5),
    Column("smallint", d.integer(16)),
    Column("integer", d.integer(32)),
    Column("bigint", d.integer(64)),
    Column("oid", d.integer(32, unsigned=True)),
    Column("real", d.single, convert=d.shortest_float32, equal=""),
    Column("double precision", d.double),
    Column("double precision", d.double_or_not_finite, refused_by=_NOT_FINITE),
    Column("numeric(30,4)", d.decimals(30, 4)),
    Column("numeric(38,38)", d.decimals(38, 38), refused_by=frozenset({"bson"})),
    Column("numeric", d.decimals(30, 8)),
    Column("numeric", d.free_decimals, refused_by=frozenset({"bson"}), arrow="string"),
    Column(
        "money", d.decimals(16, 2), "%s::numeric::money", "cast(? as numeric)::money", "{}::numeric",
        equal="{}::numeric = {}::numeric",
    ),
    Column("text", d.text),
    Column("varchar(40)", d.words),
    Column("varchar", d.text),
    Column("char(5)", lambda draw: d.words(draw, 5), equal=""),
    Column("name", d.letters(20)),
    _of_cast('"char"', d.letters(1)),
    _of_cast("xml", lambda draw: f"<a>{draw.randrange(10**9)} é</a>"),
    *_JSON,
    Column("bytea", d.octets),
    Column("date", d.day),
    Column("time", d.time_of_day),
    Column("time(0)", d.whole_time),
    _TIMETZ_AS_TEXT,
    Column("timestamp", d.moment),
    Column("timestamp(0)", d.moment_to(0)),
    Column("timestamp(3)", d.moment_to(3)),
    Column("timestamptz", d.utc),
    Column("interval", d.span, text="{}::text"),
    _of_cast("interval", lambda draw: f"{draw.randint(1, 9)} years {draw.randint(1, 11)} mons 3 days"),
    Column("uuid", d.random_uuid),
    _of_cast("bit(3)", d.bits(3)),
    _of_cast("bit(64)", d.bits(64)),
    _of_cast("bit varying", d.bits(9)),
    _of_cast("inet", d.ipv4)._replace(read="host({})"),
    _of_cast("inet", d.ipv6)._replace(read="host({})"),
    _of_cast("cidr", d.network),
    _of_cast("macaddr", lambda draw: draw.randbytes(6).hex(":")),
    _of_cast("macaddr8", lambda draw: draw.randbytes(8).hex(":")),
    *_ARRAYS_AS_TEXT,
    _of_cast("point", _pair("({},{})")),
    _of_cast("box", _pair("({},{}),({},{})")),
    _of_cast("lseg", _pair("[({},{}),({},{})]")),
    _of_cast("path", _pair("[({},{}),({},{}),({},{})]")),
    _of_cast("polygon", _pair("(({},{}),({},{}),({},{}))")),
    _of_cast("circle", _pair("<({},{}),{}>")),
    _of_cast("line", _pair("{{{},{},{}}}")),
    _of_cast("int4range", _range("{}", "{}"), "{} = {}::int4range"),
    _of_cast("int8range", _range("{}", "{}"), "{} = {}::int8range"),
    _of_cast("numrange", _range("{}.5", "{}.25"), "{} = {}::numrange"),
    _of_cast("daterange", _range("2026-01-01", "2026-02-{}"), "{} = {}::daterange"),
    _of_cast("tsrange", _range("2026-01-01 00:00:0{}", "2026-02-{}"), "{} = {}::tsrange"),
    _of_cast("int4multirange", _multirange),
    _of_cast("tsvector", lambda draw: f"'{d.letters(8)(draw)}'"),
    _of_cast("tsquery", lambda draw: f"'{d.letters(8)(draw)}' & !'b'"),
    _of_cast("jsonpath", lambda draw: f'$."{d.letters(8)(draw)}"'),
    _of_cast("pg_lsn", lambda draw: f"{draw.randrange(16**4):X}/{draw.randrange(16**6):X}"),
    _of_cast("xid8", lambda draw: str(draw.getrandbits(60))),
    _of_cast("tid", lambda draw: f"({draw.randrange(10**6)},{draw.randrange(100)})"),
]  # fmt: skip


#: Range types, and generators of their bounds.
RANGES: dict[str, Callable[[Random], object]] = {
    "int4range": lambda draw: draw.choice((-(2**31), draw.randint(-(2**31), 2**31 - 2), draw.randrange(20))),
    "int8range": lambda draw: draw.choice((-(2**63), draw.randint(-(2**63), 2**63 - 2), draw.randrange(20))),
    "numrange": d.decimals(30, 8),
    "daterange": d.day_to_9000,
    "tsrange": d.moment,
    "tstzrange": d.utc,
}


def as_range(value: Any) -> Any:
    """Converts psycopg's ranges and multiranges, also those in a list, to onecopy's."""
    match value:
        case list():
            return [as_range(item) for item in value]
        case Multirange():
            return tuple(map(as_range, value))
        case Range():
            bounds: Any = value.bounds
            return onecopy.Range(value.lower, value.upper, bounds, value.isempty)
    return value


def _of_range(sql: str, make: Callable[[Random], str]) -> Column:
    return _of_cast(sql, make, "{} = {}::" + sql)._replace(read="{}", convert=as_range, text="{}::text")


def _list_of(make: Callable[[Random], object]) -> Callable[[Random], list[object]]:
    return lambda draw: [None if draw.random() < 0.2 else make(draw) for _ in range(draw.randrange(6))]


def _table_of(make: Callable[[Random], object]) -> Callable[[Random], list[list[object]]]:
    def of(draw: Random) -> list[list[object]]:
        width = draw.randint(1, 3)
        return [[make(draw) for _ in range(width)] for _ in range(draw.randint(1, 3))]

    return of


#: Their JSON differs in the server: without a fraction of zeros, or with an escape for bytes.
_OTHER_JSON = frozenset({"json", "ndjson"})


def _array(
    sql: str, make: Callable[[Random], object], refused_by: frozenset[str] = frozenset(), arrow: str = "list"
) -> Column:
    """A column of an array type, whose values are lists in Python; ``sql`` is the element type."""
    name = f"{sql}[]"
    return Column(
        name,
        make,
        f"%s::{name}",
        f"cast(? as {name})",
        text="{}::text",
        json="array_to_json({})::text",
        equal="{} = {}::" + name,
        refused_by=refused_by,
        arrow=arrow,
    )


_DATES_AND_TIMES = {
    "date": d.day,
    "time": d.time_of_day,
    "timetz": d.time_with_offset,
    "timestamp": d.moment,
    "timestamptz": d.utc,
    "interval": d.span,
}
_ARRAYS = [
    *(_array(name, _list_of(d.integer(bits))) for name, bits in (("smallint", 16), ("integer", 32), ("bigint", 64))),
    _array("integer", _table_of(d.integer(32)), arrow="list<list<int32>>"),
    _array("text", _list_of(d.text)),
    _array("text", _table_of(d.words), arrow="list<list<string>>"),
    _array("varchar", _list_of(d.words)),
    _array("boolean", _list_of(lambda draw: draw.random() < 0.5)),
    _array("double precision", _list_of(d.double), _OTHER_JSON),
    _array("numeric", _list_of(d.decimals(30, 8))),
    _array("bytea", _list_of(d.octets), _OTHER_JSON),
    _array("uuid", _list_of(d.random_uuid)),
    *(
        _array(name, _list_of(make), _OTHER_JSON if name.startswith("time") and name != "timetz" else frozenset())
        for name, make in _DATES_AND_TIMES.items()
    ),
    *(
        _array(name, _list_of(d.range_text(make)))._replace(
            write=f"%s::text[]::{name}[]", ours=f"cast(cast(? as text[]) as {name}[])", convert=as_range
        )
        for name, make in RANGES.items()
    ),
]

#: By the native protocol: JSON is a value in JSON, arrays are lists.
POSTGRES_NATIVE = [
    *(
        column._replace(json="{}::text") if column.sql in ("json", "jsonb") else column
        for column in POSTGRES
        if column not in (*_ARRAYS_AS_TEXT, _TIMETZ_AS_TEXT) and "range" not in column.sql
    ),
    Column("timetz", d.time_with_offset, text="{}::text"),
    *(_of_range(name, d.range_text(make)) for name, make in RANGES.items()),
    *(
        _of_range(name.replace("range", "multirange"), d.multirange_text(make))
        for name, make in RANGES.items()
    ),
    *_ARRAYS,
]  # fmt: skip
