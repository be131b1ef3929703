"""Random values for comparisons of onecopy's JSON encoder with orjson.

The same seed gives equal values; each library encodes values that were generated only for it.
"""

from __future__ import annotations

import collections
import dataclasses
import datetime as dt
import decimal
import enum
import functools
import random
import uuid
import zoneinfo
from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple, TypedDict

import pytz
from dateutil import tz


class Colour(enum.Enum):
    RED = "red"
    ONE = 1
    NONE = None
    PAIR = (1, 2)
    DICT = {"x": 1}  # noqa: RUF012
    STRANGE = object()


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2**40


class Name(str, enum.Enum):
    A = "ä"


class Bits(enum.IntFlag):
    ONE = 1
    TWO = 2


class Real(float, enum.Enum):
    HALF = 0.5


class Meta(enum.EnumMeta):
    pass


class Choices(enum.Enum, metaclass=Meta):
    """An enumeration as in Django, which orjson does not recognize as one."""

    A = "a"


class Text(str):
    def __str__(self) -> str:
        return "no"


class Whole(int):
    def __int__(self) -> int:
        return 7


class Fraction(float):
    pass


class Items(list[Any]):
    def __iter__(self) -> Any:
        return iter([9])


class Fixed(tuple[Any, ...]):
    pass


class Mapping(dict[Any, Any]):
    def items(self) -> Any:
        return [("other", 1)]


class Moment(dt.datetime):
    pass


class Day(dt.date):
    pass


class Clock(dt.time):
    pass


class Id(uuid.UUID):
    pass


class Pair(NamedTuple):
    a: Any
    b: Any


class Typed(TypedDict):
    a: Any


@dataclasses.dataclass
class Person:
    name: Any
    _hidden: Any = 2
    tags: Any = None
    everywhere: ClassVar[int] = 3

    @functools.cached_property
    def computed(self) -> int:
        return 7


@dataclasses.dataclass
class Employee(Person):
    z: Any = 1
    a: Any = 2


@dataclasses.dataclass(slots=True)
class Slotted:
    b: Any
    a: Any
    _hidden: Any = 1


@dataclasses.dataclass
class Unslotted(Slotted):
    c: Any = 5


@dataclasses.dataclass(frozen=True)
class Frozen:
    z: Any
    a: Any = 1


@dataclasses.dataclass
class Initial:
    given: dataclasses.InitVar[int] = 4
    constant: Any = dataclasses.field(init=False, default=3)
    g: Any = 1


@dataclasses.dataclass
class Late:
    c: Any = dataclasses.field(init=False)
    b: Any = 1

    def __post_init__(self) -> None:
        self.c = self.b


@dataclasses.dataclass
class Empty:
    pass


class Undecorated(Frozen):
    pass


@dataclasses.dataclass
class DataDict(dict[str, Any]):
    a: Any = 1


class Strange:
    pass


UTC = dt.timezone.utc
ZONES: list[Any] = [
    None, UTC, dt.timezone(-dt.timedelta(hours=3, minutes=30)), dt.timezone(dt.timedelta(seconds=-90)),
    zoneinfo.ZoneInfo("Europe/Berlin"), zoneinfo.ZoneInfo("America/St_Johns"),
    pytz.timezone("Asia/Shanghai"), pytz.timezone("America/New_York"), pytz.utc, pytz.FixedOffset(90),
    tz.gettz("Europe/Amsterdam"), tz.tzutc(), tz.tzoffset(None, -12345),
]  # fmt: skip
OTHERS: list[Any] = [
    decimal.Decimal("1.50"), 1j, b"x", bytearray(b"x"), {1}, frozenset(), range(3), len, Strange, Person, Colour,
    dt.timedelta(1),
    Moment(2020, 1, 1), Day(2020, 1, 1), Clock(1, 2), Id(int=3), Choices.A, Items([1]), Mapping(a=1), Mapping(),
    Fixed((1,)), Text("t"), Whole(5),
    Whole(2**63), Whole(2**70), Fraction(1.5), collections.UserDict(a=1), collections.deque([1]), Undecorated(1),
    Initial(), Empty(), DataDict(),
]  # fmt: skip
ENUMS: list[Any] = [*Colour, *Level, *Name, *Bits, *Real, Bits.ONE | Bits.TWO]
TEXTS = ["", "a", "é", "я", "東", "😀", '"\\\b\n\x00\x1f\x7f/', "a" * 70 + "é", "x" * 300]
INTS = [0, -1, 2**53, 2**53 - 1, -(2**53), 2**63 - 1, 2**63, 2**64 - 1, -(2**63), 2**64, -(2**63) - 1, 2**100]
FLOATS = [0.0, -0.0, 0.1, 1e16, 1e22, 1e-7, 5e-324, float("nan"), float("inf")]


class Maker:
    """A generator of random values; two generators with the same seed give equal values."""

    def __init__(self, seed: int, fragment: Callable[[bytes], Any]) -> None:
        self._random = random.Random(seed)
        self._fragment = fragment

    def _moment(self) -> dt.datetime:
        rng = self._random
        made = dt.datetime(
            rng.choice([2, 1850, 1900, 1920, 1970, 2021, 2024, 9998]), rng.randint(1, 12), rng.randint(1, 28),
            rng.randint(0, 23), rng.randint(0, 59), rng.randint(0, 59), rng.choice([0, 1, 999_999, 120_000]),
            fold=rng.randint(0, 1),
        )  # fmt: skip
        zone = rng.choice(ZONES)
        if hasattr(zone, "localize") and rng.random() < 0.3:
            localized: dt.datetime = zone.localize(made)
            return localized
        return made.replace(tzinfo=zone)

    def scalar(self) -> Any:
        rng = self._random
        kinds: list[Callable[[], Any]] = [
            lambda: None, lambda: rng.choice([True, False]), lambda: rng.choice(INTS),
            lambda: rng.randint(-(10**6), 10**6),
            lambda: rng.choice(FLOATS), lambda: rng.random() * 10 ** rng.randint(-20, 20),
            lambda: rng.choice(TEXTS), self._moment, self._moment,
            lambda: self._moment().date(),
            lambda: rng.choice([dt.time(1, 2, 3), dt.time(1, 2, 3, 4), dt.time(1, tzinfo=UTC)]),
            lambda: uuid.UUID(int=rng.getrandbits(128)), lambda: rng.choice(ENUMS), lambda: rng.choice(OTHERS),
            lambda: self._fragment(b'[ "\xc3\xa9" ]'), lambda: rng.choice([1, 2, "k"]), lambda: rng.choice(TEXTS),
        ]  # fmt: skip
        return rng.choice(kinds)()

    def key(self) -> Any:
        """A random dict key of a type that orjson accepts, by default or with an option."""
        rng = self._random
        kinds: list[Callable[[], Any]] = [
            lambda: rng.choice(TEXTS), lambda: rng.choice(TEXTS), lambda: None, lambda: rng.choice([True, False]),
            lambda: rng.choice(INTS[:9]),
            lambda: rng.choice(FLOATS[:7]), self._moment, lambda: self._moment().date(), lambda: dt.time(1, 2, 3),
            lambda: uuid.UUID(int=7),
            lambda: rng.choice([Colour.RED, Colour.ONE, Level.LOW, Bits.TWO, Real.HALF]),
        ]  # fmt: skip
        return rng.choice(kinds)()

    def value(self, depth: int = 0) -> Any:
        rng = self._random
        if depth > 4 or rng.random() < 0.3:
            return self.scalar()

        def inner() -> Any:
            return self.value(depth + 1)

        n = rng.choice([0, 1, 1, 2, 3, 5])
        kinds: list[Callable[[], Any]] = [
            lambda: [inner() for _ in range(n)], lambda: [inner() for _ in range(n)],
            lambda: tuple(inner() for _ in range(n)),
            lambda: {rng.choice(TEXTS): inner() for _ in range(n)},
            lambda: {rng.choice("abcé_"): inner() for _ in range(n)},
            lambda: {self.key(): inner() for _ in range(n)}, lambda: Pair(inner(), inner()), lambda: Typed(a=inner()),
            lambda: collections.OrderedDict(b=inner(), a=inner()),
            lambda: collections.defaultdict(list, {"a": inner()}),
            lambda: Person(inner(), inner(), inner()), lambda: Employee(inner(), inner(), inner()),
            lambda: Slotted(inner(), inner()),
            lambda: Unslotted(inner(), inner(), c=inner()), lambda: Frozen(inner(), inner()), lambda: Late(inner()),
            lambda: self._changed(Person(inner())), lambda: [Frozen(n) for _ in range(n)],
        ]  # fmt: skip
        return rng.choice(kinds)()

    def _changed(self, person: Any) -> Any:
        """The instance ``person`` with a random change: an attribute is added, removed, replaced or
        computed."""
        how = self._random.randrange(4)
        if how == 0:
            person.extra = [1]
        elif how == 1:
            del person.tags
        elif how == 2:
            assert person.computed == 7
        else:
            del person.name
            person.name = 1
        return person
