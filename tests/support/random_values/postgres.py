"""Columns of PostgreSQL."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from . import draw as d
from .column import Column

#: JSON and CSV have no NaN and no infinities.
_NOT_FINITE = frozenset({"json", "ndjson", "csv"})


def _of_cast(sql: str, make: Callable[[Random], str], equal: str = "") -> Column:
    """A type whose values are text in Python."""
    return Column(sql, make, f"%s::text::{sql}", f"cast(? as {sql})", "{}::text", equal=equal)


def _range(low: str, high: str) -> Callable[[Random], str]:
    return lambda draw: f"[{low.format(draw.randrange(9))},{high.format(draw.randint(10, 28))})"


def _pair(form: str) -> Callable[[Random], str]:
    return lambda draw: form.format(*(draw.randint(1, 99) for _ in range(6)))


def _multirange(draw: Random) -> str:
    return f"{{[{draw.randrange(9)},9),[10,{draw.randint(11, 99)})}}"


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
    _of_cast("json", d.json_text),
    _of_cast("jsonb", d.json_text),
    Column("bytea", d.octets),
    Column("date", d.day),
    Column("time", d.time_of_day),
    Column("time(0)", d.whole_time),
    _of_cast("timetz", lambda draw: f"{d.time_of_day(draw).isoformat()}+05:30", "{} = {}::timetz"),
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
    _of_cast("integer[]", d.integer_array, "{} = {}::integer[]"),
    _of_cast("text[]", d.integer_array, "{} = {}::text[]"),
    _of_cast("timestamptz[]", lambda draw: '{"' + d.utc(draw).isoformat(" ") + '"}'),
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
