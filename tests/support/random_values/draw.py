"""Generators of random values. Each draws a value of one kind with the given `Random`."""

from __future__ import annotations

import ipaddress
import json
import math
import string
import struct
import uuid
from collections.abc import Callable
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal
from random import Random
from typing import Any

import numpy as np

#: Alphabets: each width of UTF-8, and characters that are special in SQL, CSV and JSON.
_ALPHABETS = (
    "abc xyz",
    "Zürich é",
    "Москва",
    "東京都",
    "tea 🍵🌱",
    'it\'s \\ "q" , ; $$ ? :x %s \n\t',
    "e\u0301\u200d\ufeff\u202e\ufffd",
    "\x01\x1f\x7f\x80\xff\u2028",
)
#: Lengths around the buffer sizes of drivers and blocks.
_LENGTHS = (0, 1, 127, 128, 255, 256, 257, 1023, 1024, 2047, 2048, 4095, 4096, 4097)
_FLOATS = (0.0, -0.0, 0.1, -1.5, 5e-324, -2.2250738585072014e-308, 1.7976931348623157e308, 1e15, 1e16)


def words(draw: Random, longest: int = 40) -> str:
    """A text of up to ``longest`` characters, mostly of one alphabet, sometimes of any."""
    n = draw.randrange(longest + 1)
    if draw.random() < 0.1:
        return "".join(any_character(draw) for _ in range(n))
    return "".join(draw.choices(draw.choice(_ALPHABETS), k=n))


def any_character(draw: Random) -> str:
    """A character of any Unicode plane."""
    point = draw.choice((draw.randint(1, 0x7FF), draw.randint(1, 0xFFFF), draw.randint(1, 0x10FFFF)))
    return "?" if 0xD800 <= point < 0xE000 else chr(point)


def text(draw: Random) -> str:
    """A text of up to 40 characters, occasionally of some thousand."""
    if draw.random() < 0.02:
        n = draw.choice(_LENGTHS)
        return "".join(draw.choices(draw.choice(_ALPHABETS), k=n))
    return words(draw)


def octets(draw: Random) -> bytes:
    """Bytes: up to 40, occasionally some thousand."""
    return draw.randbytes(draw.choice(_LENGTHS) if draw.random() < 0.02 else draw.randrange(40))


def integer(bits: int, *, unsigned: bool = False) -> Callable[[Random], int]:
    """A generator of integers with ``bits`` bits, the smallest and the largest one included."""
    low, high = (0, 2**bits - 1) if unsigned else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
    return lambda draw: draw.choice((low, high, draw.randint(low, high), draw.randint(0, 100)))


def decimals(digits: int, scale: int) -> Callable[[Random], Decimal]:
    """A generator of decimals with up to ``digits`` digits, of which ``scale`` are after the
    point."""
    limit = 10**digits - 1

    def make(draw: Random) -> Decimal:
        value = draw.choice((draw.randint(-limit, limit), limit, -limit, 0))
        # As text, since arithmetic would round to the 28 digits of the context.
        return Decimal(f"{value // 10 ** draw.randrange(digits)}E-{scale}")

    return make


def free_decimals(draw: Random) -> Decimal:
    """A decimal with up to 60 digits before and 30 after the point."""
    scale = draw.randrange(31)
    return decimals(scale + draw.randint(1, 60), scale)(draw)


def double(draw: Random) -> float:
    """A finite double of any magnitude."""
    if draw.random() < 0.3:
        return draw.choice(_FLOATS)
    (value,) = struct.unpack("<d", draw.randbytes(8))
    finite = value if math.isfinite(value) else 1.5
    return draw.choice((finite, draw.uniform(-1e6, 1e6), draw.uniform(-1, 1)))


def double_or_not_finite(draw: Random) -> float:
    """A double, NaN or an infinity."""
    return draw.choice((double(draw), math.nan, math.inf, -math.inf))


def shortest_float32(value: float | None) -> float | None:
    """The double of the shortest decimal text that rounds to this 32-bit float: onecopy's value of
    a `real`.

    If that decimal is equally close to another 32-bit float, PostgreSQL's text has one more digit,
    and so has the result.
    """
    if value is None or not math.isfinite(value):
        return value
    exact = float(np.float32(value))
    texts = (f"{exact:.{digits}e}" for digits in range(9))
    return next((float(text) for text in texts if float(np.float32(float(text))) == exact), exact)


def single(draw: Random) -> float:
    """A finite 32-bit float that is not subnormal."""
    (value,) = struct.unpack("<f", draw.randbytes(4))
    normal = value if 2e-38 < abs(value) < 3e38 else 0.1
    found = shortest_float32(draw.choice((0.0, 0.1, normal, draw.uniform(-1e6, 1e6))))
    assert found is not None
    return found


def day(draw: Random) -> date:
    """A date in the years 1 to 9999."""
    year = draw.choice((1, 1582, 1970, 9999, draw.randint(1, 9999), draw.randint(1900, 2100)))
    return date(year, 1, 1) + timedelta(draw.randrange(365))


def day_from_1000(draw: Random) -> date:
    """A date in the years 1000 to 9999, the range for which MariaDB documents its `date`."""
    return max(day(draw), date(1000, 1, 1))


def time_of_day(draw: Random) -> time:
    """A time of day to the microsecond."""
    fraction = draw.choice((0, 1, 999_999, draw.randrange(10**6)))
    return time(draw.randrange(24), draw.randrange(60), draw.randrange(60), fraction)


def time_with_offset(draw: Random) -> time:
    """A time to the microsecond, with an offset from UTC of up to 15 hours, usually of whole
    hours."""
    unit = draw.choice((3600, 3600, 900, 1))
    offset = draw.randint(-15 * 3600 // unit, 15 * 3600 // unit) * unit
    return time_of_day(draw).replace(tzinfo=timezone(timedelta(seconds=offset)))


def whole_time(draw: Random) -> time:
    """A time of day in whole seconds."""
    return time_of_day(draw).replace(microsecond=0)


def moment(draw: Random) -> datetime:
    """A timestamp without time zone, to the microsecond."""
    return datetime.combine(day(draw), time_of_day(draw))


def moment_to(digits: int, since: date = date.min) -> Callable[[Random], datetime]:
    """A generator of timestamps with ``digits`` fractional digits, none before the day
    ``since``."""
    unit = 10 ** (6 - digits)

    def make(draw: Random) -> datetime:
        at = datetime.combine(max(day(draw), since), time_of_day(draw))
        return at.replace(microsecond=at.microsecond // unit * unit)

    return make


def utc(draw: Random) -> datetime:
    """A timestamp in UTC."""
    return moment(draw).replace(tzinfo=timezone.utc)


def unix_moment(digits: int) -> Callable[[Random], datetime]:
    """A generator of timestamps that fit MariaDB's `timestamp` (31 bits), with ``digits``
    fractional digits."""
    unit = 10 ** (6 - digits)
    ends = 2**31 - 2 * 86_400

    def make(draw: Random) -> datetime:
        us = draw.randrange(ends * 10**6) // unit * unit
        return datetime(1970, 1, 2) + timedelta(microseconds=us)

    return make


def span(draw: Random) -> timedelta:
    """A positive or negative interval, from a microsecond to 200 years."""
    days = draw.choice((0, draw.randint(-99, 99), draw.randint(-70_000, 70_000)))
    us = draw.choice((0, 1, -1, draw.randint(-(10**11), 10**11)))
    return timedelta(days=days, microseconds=us)


def range_text(make: Callable[[Random], Any]) -> Callable[[Random], str]:
    """A generator of ranges in PostgreSQL's text format; some are empty or lack a bound.

    ``make`` generates the bounds.
    """

    def text_of(draw: Random) -> str:
        if draw.random() < 0.1:
            return "empty"
        lower, upper = (f'"{value}"' for value in sorted((make(draw), make(draw))))
        lower, upper = ("" if draw.random() < 0.15 else bound for bound in (lower, upper))
        return f"{draw.choice('[(')}{lower},{upper}{draw.choice('])')}"

    return text_of


def multirange_text(make: Callable[[Random], Any]) -> Callable[[Random], str]:
    """A generator of multiranges, each of up to four ranges that may overlap."""
    one = range_text(make)
    return lambda draw: "{" + ",".join(one(draw) for _ in range(draw.randrange(5))) + "}"


def day_to_9000(draw: Random) -> date:
    """A date in the years 1 to 9000, so that the following day can be represented too."""
    return min(day(draw), date(9000, 1, 1))


def bits(length: int) -> Callable[[Random], str]:
    """A generator of texts with ``length`` binary digits."""
    return lambda draw: f"{draw.getrandbits(length):0{length}b}"


def json_text(draw: Random) -> str:
    """The text of a JSON object."""
    return json.dumps({"a": words(draw), "b": [draw.randrange(9), None]})


def integer_array(draw: Random) -> str:
    """An array of integers in PostgreSQL's text format."""
    return "{" + ",".join(str(draw.randrange(99)) for _ in range(draw.randrange(5))) + "}"


def network(draw: Random) -> str:
    """An IP network of 256 addresses, as text."""
    return str(ipaddress.ip_network((draw.getrandbits(32) & 0xFFFFFF00, 24)))


def ipv4(draw: Random) -> str:
    """An IPv4 address."""
    return str(ipaddress.IPv4Address(draw.getrandbits(32)))


def ipv6(draw: Random) -> str:
    """An IPv6 address."""
    return str(ipaddress.IPv6Address(draw.getrandbits(128)))


def random_uuid(draw: Random) -> uuid.UUID:
    """A UUID of version 4."""
    return uuid.UUID(int=draw.getrandbits(128), version=4)


def letters(longest: int) -> Callable[[Random], str]:
    """A generator of texts with up to ``longest`` ASCII letters."""
    return lambda draw: "".join(draw.choices(string.ascii_letters, k=draw.randint(1, longest)))


def any_of(*sources: Callable[[Random], Any]) -> Callable[[Random], Any]:
    """A generator that uses a random one of ``sources`` for each value."""
    return lambda draw: draw.choice(sources)(draw)
