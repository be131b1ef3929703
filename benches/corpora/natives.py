"""Values of standard-library types and custom classes as inputs of the codec benchmarks, generated
with fixed seeds."""

from __future__ import annotations

import collections
import dataclasses
import datetime as dt
import decimal
import enum
import random
import uuid
import zoneinfo
from typing import Any, NamedTuple

from benches.corpora import values

N = 20_000
BERLIN = zoneinfo.ZoneInfo("Europe/Berlin")


@dataclasses.dataclass
class Point:
    """A dataclass with three fields."""

    id: int
    name: str
    price: float


@dataclasses.dataclass(slots=True)
class SlottedPoint:
    """A dataclass with three fields and `__slots__`."""

    id: int
    name: str
    price: float


class NamedPoint(NamedTuple):
    """A named tuple with three fields."""

    id: int
    name: str
    price: float


class Color(enum.Enum):
    """An enumeration whose values are strings."""

    RED = "red"
    GREEN = "green"
    BLUE = "blue"


class Level(enum.IntEnum):
    """An enumeration whose values are numbers."""

    LOW = 1
    MIDDLE = 20
    HIGH = 300


class Unit(str, enum.Enum):
    """An enumeration whose members are instances of `str`."""

    METER = "m"
    SECOND = "s"
    KELVIN = "K"


class Text(str):
    """A subclass of `str`, which encoders encode like a text."""


class Number(int):
    """A subclass of `int`, which encoders encode like an int."""


class Members(dict[str, Any]):
    """A subclass of `dict`, which encoders encode like a dict."""


class Items(list[Any]):
    """A subclass of `list`, which encoders encode like a list."""


def _moments(zone: dt.tzinfo | None) -> list[dt.datetime]:
    draw = random.Random(31)
    begun = dt.datetime(2000, 1, 1)
    return [
        (begun + dt.timedelta(microseconds=draw.randrange(800_000_000_000_000))).replace(tzinfo=zone) for _ in range(N)
    ]


def datetimes() -> list[dt.datetime]:
    """Naive datetimes, to the microsecond."""
    return _moments(None)


def datetimes_utc() -> list[dt.datetime]:
    """Datetimes in `timezone.utc`."""
    return _moments(dt.timezone.utc)


def datetimes_zoneinfo() -> list[dt.datetime]:
    """Datetimes in a `zoneinfo` time zone with daylight saving time."""
    return _moments(BERLIN)


def datetimes_fixed() -> list[dt.datetime]:
    """Datetimes in a time zone with a fixed offset."""
    return _moments(dt.timezone(dt.timedelta(hours=5, minutes=45)))


def dates() -> list[dt.date]:
    """Random dates."""
    return [moment.date() for moment in _moments(None)]


def times() -> list[dt.time]:
    """Times of day, to the microsecond. Their fractions have no leading zero, which orjson 3.13
    omits."""
    times = [moment.time() for moment in _moments(None)]
    return [time.replace(microsecond=100_000 + time.microsecond * 9 // 10) for time in times]


def uuids() -> list[uuid.UUID]:
    """Random UUIDs."""
    draw = random.Random(32)
    return [uuid.UUID(int=draw.getrandbits(128)) for _ in range(N)]


def _fields() -> list[tuple[int, str, float]]:
    draw = random.Random(33)
    return [(n, text, draw.randrange(100_000) / 100) for n, text in enumerate(values.ascii_short()[:N])]


def dataclasses_of_three() -> list[Point]:
    """Instances of a dataclass with three fields."""
    return [Point(*fields) for fields in _fields()]


def dataclasses_slotted() -> list[SlottedPoint]:
    """Instances of a dataclass with three fields and `__slots__`."""
    return [SlottedPoint(*fields) for fields in _fields()]


def ordered_dicts() -> list[collections.OrderedDict[str, Any]]:
    """Objects of class `OrderedDict` with three members."""
    return [collections.OrderedDict(zip(("x", "name", "price"), fields, strict=True)) for fields in _fields()]


def dicts_of_three() -> list[dict[str, Any]]:
    """Dicts whose three keys are not in alphabetical order."""
    return [dict(zip(("x", "name", "price"), fields, strict=True)) for fields in _fields()]


def int_keys() -> list[dict[int, int]]:
    """Dicts of 20 integers with integers as keys."""
    draw = random.Random(38)
    return [{draw.randrange(10**6): n for n in range(20)} for _ in range(N // 20)]


def uuid_keys() -> list[dict[uuid.UUID, int]]:
    """Dicts of 20 integers with UUIDs as keys."""
    keys = iter(uuids())
    return [{next(keys): n for n in range(20)} for _ in range(N // 20)]


class Thing:
    """An object that no encoder supports."""

    __slots__ = ("value",)

    def __init__(self, value: int) -> None:
        self.value = value


def things() -> list[Thing]:
    """Objects that a function of the caller replaces by integers."""
    return [Thing(n) for n in range(N)]


def named_tuples() -> list[NamedPoint]:
    """Named tuples with three fields."""
    return [NamedPoint(*fields) for fields in _fields()]


def enums() -> list[Color]:
    """Random members of the enumeration `Color`, whose values are strings."""
    return random.Random(34).choices(list(Color), k=N)


def int_enums() -> list[Level]:
    """Random members of the enumeration `Level`, whose values are numbers."""
    return random.Random(34).choices(list(Level), k=N)


def str_enums() -> list[Unit]:
    """Random members of the enumeration `Unit`, which are instances of `str`."""
    return random.Random(34).choices(list(Unit), k=N)


def nones() -> list[None]:
    """A list that contains only `None`."""
    return [None] * N


def bools() -> list[bool]:
    """Random booleans."""
    return random.Random(35).choices([True, False], k=N)


def small_ints() -> list[int]:
    """Integers of one to five digits."""
    draw = random.Random(36)
    return [draw.randrange(10 ** draw.randint(1, 5)) for _ in range(N)]


def str_subclasses() -> list[Text]:
    """Instances of a subclass of `str`."""
    return [Text(text) for text in values.ascii_short()[:N]]


def int_subclasses() -> list[Number]:
    """Instances of a subclass of `int`."""
    return [Number(number) for number in values.ints()[:N]]


def dict_subclasses() -> list[Members]:
    """Instances of a subclass of `dict`."""
    return [Members(id=number, name=text, price=price) for number, text, price in _fields()]


def list_subclasses() -> list[Items]:
    """Instances of a subclass of `list`."""
    return [Items(fields) for fields in _fields()]


def decimals_exact() -> list[decimal.Decimal]:
    """Prices as `Decimal` objects."""
    draw = random.Random(37)
    return [decimal.Decimal(draw.randrange(10_000_000)) / 100 for _ in range(N)]


def rows_with_datetime() -> list[dict[str, Any]]:
    """The rows of `values.rows_mixed` with a naive `datetime` instead of its text."""
    rows = values.rows_mixed()
    for row in rows:
        row["created"] = dt.datetime.fromisoformat(row["created"])
    return rows


def rows_with_aware_datetime() -> list[dict[str, Any]]:
    """The rows of `values.rows_mixed` with a `datetime` in UTC instead of its text."""
    rows = rows_with_datetime()
    for row in rows:
        row["created"] = row["created"].replace(tzinfo=dt.timezone.utc)
    return rows


def dicts_of_natives() -> list[dict[str, Any]]:
    """Dicts with a value of each type, similar to the records of a web API."""
    columns = zip(_fields(), uuids(), datetimes_utc(), dates(), enums(), bools(), strict=True)
    return [
        {"id": key, "name": text, "price": price, "at": moment, "day": day, "color": color, "on": flag, "none": None}
        for (_, text, price), key, moment, day, color, flag in columns
    ]


def controls() -> list[str]:
    """Texts with control characters for which JSON has no short escape."""
    draw = random.Random(38)
    return ["".join(draw.choices("abcdefgh \x01\x02\x1f", k=draw.randint(20, 200))) for _ in range(N)]


def controls_sparse() -> list[str]:
    """Texts in which one character in forty is a control character."""
    draw = random.Random(38)
    alphabet = "abcdefghij klmnopqrs" * 2 + "\x01"
    return ["".join(draw.choices(alphabet, k=draw.randint(20, 200))) for _ in range(N)]


def escapes_in_60() -> list[str]:
    """Texts in which one character in sixty must be escaped."""
    draw = random.Random(39)
    alphabet = "abcdefghijklmnopqrst uvwxyz,ABCDEFGHIJKLMNOPQRSTUVWXYZ.0123" + '"'
    return ["".join(draw.choices(alphabet, k=draw.randint(40, 300))) for _ in range(N)]
