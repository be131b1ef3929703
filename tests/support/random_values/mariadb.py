"""The columns with random values for MariaDB."""

from __future__ import annotations

from datetime import date, datetime, timedelta
from random import Random
from typing import Any

from . import draw as d
from .column import Column

#: An interval of a day and more is not a time of day.
_SPAN_TEXT = "cast({} as char)"
#: BSON's decimals have 34 digits.
_LONG = frozenset({"bson"})
_SINCE = date(1000, 1, 1)


def _time_of_day(value: Any) -> Any:
    """Converts a `time` value of PyMySQL, a timedelta, to a `datetime.time`."""
    if not isinstance(value, timedelta) or not timedelta() <= value < timedelta(1):
        return value
    return (datetime.min + value).time()


def _span(draw: Random) -> timedelta:
    return timedelta(seconds=draw.choice((draw.randrange(86_400), draw.randint(-3_020_399, 3_020_399))))


def _fine_span(draw: Random) -> timedelta:
    us = draw.choice((draw.randrange(86_400 * 10**6), draw.randint(-(10**12), 10**12)))
    return timedelta(microseconds=us)


def _milli_span(draw: Random) -> timedelta:
    return timedelta(milliseconds=draw.choice((draw.randrange(86_400_000), draw.randint(-(10**9), 10**9))))


def _bit(value: Any) -> Any:
    return None if value is None else bool(value)


def _geometry(sql: str, form: str) -> Column:
    def make(draw: Random) -> str:
        return form.format(*(draw.randint(0, 99) for _ in range(4)))

    return Column(sql, make, "st_geomfromtext(%s)", "st_geomfromtext(?)", equal="")


MARIADB = [
    Column("tinyint", d.integer(8)),
    Column("tinyint unsigned", d.integer(8, unsigned=True)),
    Column("smallint", d.integer(16)),
    Column("smallint unsigned", d.integer(16, unsigned=True)),
    Column("mediumint", d.integer(24)),
    Column("mediumint unsigned", d.integer(24, unsigned=True)),
    Column("int", d.integer(32)),
    Column("int unsigned", d.integer(32, unsigned=True)),
    Column("int(5) zerofill", lambda draw: draw.randrange(10**7)),
    Column("bigint", d.integer(64)),
    Column("bigint unsigned", d.integer(64, unsigned=True)),
    Column("year", lambda draw: draw.randint(1901, 2155)),
    Column("boolean", lambda draw: draw.randrange(2)),
    Column("bit(1)", lambda draw: draw.random() < 0.5, read="{} + 0", convert=_bit),
    Column("bit(10)", lambda draw: draw.getrandbits(10), equal=""),
    Column("bit(64)", lambda draw: draw.getrandbits(63), equal=""),
    # The text protocol rounds a FLOAT to 6 digits.
    Column("float", d.single, read="cast({} as double)", convert=d.shortest_float32, equal=""),
    Column("double", d.double),
    Column("double(20,3)", lambda draw: draw.randint(-(10**12), 10**12) / 8),
    Column("decimal(30,0)", d.decimals(30, 0)),
    Column("decimal(34,30)", d.decimals(34, 30)),
    Column("decimal(5,2)", d.decimals(5, 2)),
    Column("decimal(65,0)", d.decimals(65, 0), refused_by=_LONG),
    Column("decimal(65,30)", d.decimals(65, 30), refused_by=_LONG),
    Column("decimal(10,2) unsigned", lambda draw: abs(d.decimals(10, 2)(draw))),
    Column("char(5)", lambda draw: d.words(draw, 5).rstrip(" "), equal="binary {} = {}"),
    Column("varchar(40)", d.words, equal="binary {} = {}"),
    Column("varchar(20) character set latin1", d.letters(20)),
    Column("tinytext", d.words, equal="binary {} = {}"),
    Column("text", d.text, equal="binary {} = {}"),
    Column("mediumtext", d.text, equal="binary {} = {}"),
    Column("longtext", d.text, equal="binary {} = {}"),
    Column("enum('a','b','Ж')", lambda draw: draw.choice("abЖ")),
    Column("set('a','b')", lambda draw: draw.choice(("", "a", "b", "a,b"))),
    Column("json", d.json_text, equal="binary {} = {}"),
    Column("binary(4)", lambda draw: draw.randbytes(4)),
    Column("varbinary(40)", lambda draw: draw.randbytes(draw.randrange(41))),
    Column("tinyblob", lambda draw: draw.randbytes(draw.randrange(256))),
    Column("blob", d.octets),
    Column("mediumblob", d.octets),
    Column("longblob", d.octets),
    Column("date", d.day_from_1000),
    Column("time", _span, convert=_time_of_day, text=_SPAN_TEXT),
    Column("time(3)", _milli_span, convert=_time_of_day, text=_SPAN_TEXT),
    Column("time(6)", _fine_span, convert=_time_of_day, text=_SPAN_TEXT),
    Column("datetime", d.moment_to(0, _SINCE)),
    Column("datetime(3)", d.moment_to(3, _SINCE)),
    Column("datetime(6)", d.moment_to(6, _SINCE)),
    Column("timestamp null", d.unix_moment(0)),
    Column("timestamp(3) null", d.unix_moment(3)),
    Column("timestamp(6) null", d.unix_moment(6)),
    Column("uuid", lambda draw: str(d.random_uuid(draw))),
    Column("inet4", d.ipv4),
    Column("inet6", d.ipv6),
    _geometry("point", "POINT({} {})"),
    _geometry("linestring", "LINESTRING({} {},{} {})"),
    _geometry("geometry", "MULTIPOINT({} {},{} {})"),
]
