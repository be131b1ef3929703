"""JSON of standard-library types and custom classes, compared with the text that their own methods
return."""

import dataclasses
import datetime as dt
import decimal
import enum
import gc
import json as standard
import random
import uuid
import zoneinfo
from typing import Any, ClassVar

import pytest

from onecopy import bson, json

ZONES = [
    None,
    dt.timezone.utc,
    dt.timezone(dt.timedelta(hours=5, minutes=45)),
    dt.timezone(-dt.timedelta(hours=3, minutes=30)),
    zoneinfo.ZoneInfo("Europe/Berlin"),
    zoneinfo.ZoneInfo("America/St_Johns"),
    zoneinfo.ZoneInfo("UTC"),
]


def moments(n: int) -> list[dt.datetime]:
    rng = random.Random(19)
    made = []
    for _ in range(n):
        moment = dt.datetime(2, 1, 1) + dt.timedelta(
            days=rng.randrange(3_600_000),
            seconds=rng.randrange(86_400),
            microseconds=rng.choice([0, 1, 999_999, 120_000]),
        )
        zone = rng.choice(ZONES)
        # Local mean times have seconds, which RFC 3339 does not support.
        if zone is not None and moment.year < 1950:
            zone = dt.timezone.utc
        made.append(moment.replace(tzinfo=zone, fold=rng.randrange(2)))
    return made


def test_datetimes_are_written_as_isoformat_returns_them() -> None:
    values = moments(20_000)
    assert json.loads(json.dumps(values)) == [value.isoformat() for value in values]
    days = [value.date() for value in values]
    assert json.loads(json.dumps(days)) == [day.isoformat() for day in days]
    times = [value.time() for value in values]
    assert json.loads(json.dumps(times)) == [time.isoformat() for time in times]
    assert json.loads(json.dumps({str(n): value for n, value in enumerate(values)})) == {
        str(n): value.isoformat() for n, value in enumerate(values)
    }


def test_datetimes_round_trip_through_bson_in_milliseconds() -> None:
    values = [value for value in moments(5000) if value.year > 2]
    for value, read in zip(values, bson.decode(bson.encode({"a": values}))["a"], strict=True):
        instant = value if value.tzinfo else value.replace(tzinfo=dt.timezone.utc)
        floored = instant.astimezone(dt.timezone.utc)
        floored = floored.replace(microsecond=floored.microsecond // 1000 * 1000)
        assert read.replace(tzinfo=dt.timezone.utc) == floored


def test_uuids_are_written_as_str_returns_them() -> None:
    rng = random.Random(3)
    values = [uuid.UUID(int=rng.getrandbits(128) >> rng.choice([0, 64, 127])) for _ in range(2000)]
    assert json.loads(json.dumps(values)) == [str(value) for value in values]
    assert bson.decode(bson.encode({"a": values}))["a"] == values


class Color(enum.Enum):
    RED = "red"
    PAIR = (1, "two")
    WIDE = 1 << 62


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2**40


class Name(str, enum.Enum):
    A = "ä"
    QUOTED = 'a "name"\n'


class Flags(enum.Flag):
    A = 1
    B = 2


def test_members_of_enumerations_are_written_as_their_values() -> None:
    members = [*Color, *Level, *Name, Flags.A, Flags.A | Flags.B]
    expected = [list(m.value) if isinstance(m.value, tuple) else m.value for m in members]
    for _ in range(3):
        assert json.loads(json.dumps(members)) == expected
        assert bson.decode(bson.encode({"a": members}))["a"] == expected


@dataclasses.dataclass
class Base:
    a: int
    b: str = "ü"
    everywhere: ClassVar[int] = 5


@dataclasses.dataclass
class Derived(Base):
    inner: Any = None
    items: list[int] = dataclasses.field(default_factory=list)


@dataclasses.dataclass(slots=True)
class Slotted:
    a: int
    moment: dt.datetime


@dataclasses.dataclass(frozen=True)
class Frozen:
    text: str
    members: dict[str, int]


@dataclasses.dataclass
class WithProperty:
    a: int
    _private: int = 2

    @property
    def other(self) -> int:
        return 7


def instances() -> list[Any]:
    moment = dt.datetime(2024, 2, 29, 12, 30)
    return [
        Base(1),
        Derived(2, "b", Slotted(3, moment), [1, 2, 3]),
        Derived(2, "b", Derived(1, "x", Color.RED)),
        Slotted(1 << 40, moment),
        Frozen('"', {"a": 1}),
        WithProperty(1),
    ]


def plain(value: Any) -> Any:
    if dataclasses.is_dataclass(value):
        return {field.name: plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, enum.Enum):
        return plain(value.value)
    return value.isoformat() if isinstance(value, dt.datetime) else value


def test_dataclasses_are_written_by_their_fields() -> None:
    values = instances() * 50
    assert json.loads(json.dumps(values)) == [plain(value) for value in values]
    for value in values:
        assert json.loads(json.dumps({"a": value})) == {"a": plain(value)}


@dataclasses.dataclass
class Two:
    a: Any = 1
    b: Any = 2


@dataclasses.dataclass(slots=True)
class TwoSlots:
    a: Any = 1
    b: Any = 2


@pytest.mark.parametrize("key", ["k" * 300, "é" * 200, "я" * 70, "a" * 5000, 1, None, 2.5, Level.LOW])
@pytest.mark.parametrize("two", [Two, TwoSlots])
def test_dicts_inside_of_a_dataclass_may_have_any_keys(two: Any, key: Any) -> None:
    inner: list[dict[Any, Any]] = [{key: 3}, {"x": 4, key: [5]}, {key: {}, "y": 6}, {"z": {key: {key: 7}}}]
    wraps: list[Any] = [lambda v: v, lambda v: [v], lambda v: (0, v, 1), lambda v: two(v), lambda v: two(0, [v])]
    values = [
        made
        for member in inner
        for wrap in wraps
        for made in (two(wrap(member)), two(0, wrap(member)), two(wrap(member), wrap(member)))
    ]

    def as_dicts(value: Any) -> Any:
        if isinstance(value, two):
            return {"a": as_dicts(value.a), "b": as_dicts(value.b)}
        if isinstance(value, dict):
            return {key: as_dicts(member) for key, member in value.items()}
        return [as_dicts(item) for item in value] if isinstance(value, (list, tuple)) else value

    choices: list[dict[str, Any]] = [{}, {"indent": 1}, {"ensure_ascii": True}, {"max_depth": 9}]
    for value in [*values, values, {"k": values}]:
        for options in choices:
            expected = json.dumps(as_dicts(value), non_str_keys=True, **options)
            assert json.dumps(value, non_str_keys=True, **options) == expected
            assert json.dumps_str(value, non_str_keys=True, **options).encode() == expected
            if not isinstance(key, str):
                with pytest.raises(TypeError, match="a key is of type"):
                    json.dumps(value, **options)
    if isinstance(key, str):
        assert bson.decode(bson.encode({"v": values}))["v"] == as_dicts(values)


def test_an_instance_is_written_with_its_current_attributes() -> None:
    value: Any = Base(1)
    assert json.dumps(value) == b'{"a":1,"b":"\xc3\xbc"}'
    value.extra = 3  # not a field
    value.__dict__["a"] = 2
    assert json.dumps(value) == b'{"a":2,"b":"\xc3\xbc"}'
    del value.b  # the attribute of the class is found instead
    assert json.dumps(value) == b'{"a":2,"b":"\xc3\xbc"}'
    del value.a
    with pytest.raises((json.JSONEncodeError, AttributeError)):
        json.dumps(value)


def test_a_class_that_changes_is_inspected_again() -> None:
    @dataclasses.dataclass
    class Changing:
        a: int

    changing: Any = Changing
    value = changing(1)
    assert json.dumps([value, value]) == b'[{"a":1},{"a":1}]'
    changing.a = property(lambda self: 5)
    assert json.dumps([value]) == b'[{"a":5}]'
    del changing.a
    assert json.dumps([value]) == b'[{"a":1}]'
    changing.__getattribute__ = lambda self, name: 6 if name == "a" else object.__getattribute__(self, name)
    assert json.dumps([value]) == b'[{"a":6}]'


def test_many_short_lived_classes_are_distinguished() -> None:
    for n in range(1200):
        names = [f"f{(n * 7 + k) % 13}" for k in range(n % 4 + 1)]
        made = dataclasses.make_dataclass(f"Made{n}", names, slots=n % 3 == 0)
        value = made(*range(len(names)))
        expected = dict(zip(names, range(len(names)), strict=True))
        assert json.loads(json.dumps([value, value])) == [expected, expected]
        if n % 100 == 0:
            gc.collect()


def test_decimals_are_written_as_str_returns_them() -> None:
    rng = random.Random(12)
    values = [
        decimal.Decimal((rng.randrange(2), digits, -rng.randrange(25)))
        for n in (1, 2, 5, 18, 19, 20, 30)
        for digits in [tuple(rng.randrange(10) for _ in range(n)) for _ in range(200)]
    ]
    values += [decimal.Decimal(text) for text in ("0", "-0", "-0.00", "0.1", "123.450", "0.000001")]
    values += [decimal.Decimal(10**19 - 1), decimal.Decimal(10**19), -decimal.Decimal(10**19 - 1)]
    for _ in range(2):  # the second time it is read from memory
        written = json.dumps(values).decode()[1:-1].split(",")
        assert [decimal.Decimal(text).as_tuple() for text in written] == [v.as_tuple() for v in values]
        plain = [(text, str(v)) for text, v in zip(written, values, strict=True) if "E" not in str(v)]
        assert all(text == expected for text, expected in plain)
        assert len(plain) > 500
    assert json.dumps({"a": values[0]}, indent=1, sort_keys=True) == b'{\n "a": %s\n}' % str(values[0]).encode()
    assert json.dumps([values[0]], default=lambda v: "passed", passthrough=("decimal",)) == b'["passed"]'
    with pytest.raises(ValueError, match="NaN"):
        json.dumps([decimal.Decimal(1), decimal.Decimal("NaN")])


class Priced(decimal.Decimal):
    def __str__(self) -> str:
        return "7"


def test_a_subclass_of_decimal_is_written_by_its_own_str() -> None:
    for _ in range(2):
        assert json.dumps([decimal.Decimal("1.5"), Priced("2")]) == b"[1.5,7]"


def test_lists_of_none_and_bools_are_written_between_others() -> None:
    rng = random.Random(13)
    for n in (0, 1, 2, 3, 50, 5000):
        values: list[Any] = rng.choices([None, True, False, 1, "a", 1.5, []], [20, 20, 20, 1, 1, 1, 1], k=n)
        for given in (values, tuple(values), [values], {"a": values}):
            assert json.loads(json.dumps(given)) == json.loads(standard.dumps(given))


def test_control_characters_are_escaped_as_by_the_standard_library() -> None:
    rng = random.Random(14)
    alphabet = [*map(chr, range(32)), *'abcdefgh"\\', "é", "я", "東", "😀", "\x7f"]
    for weights in ([1] * 32 + [9] * 10 + [0] * 5, [1] * 32 + [99] * 10 + [1] * 5, [1] * 47):
        values = ["".join(rng.choices(alphabet, weights, k=rng.randrange(300))) for _ in range(500)]
        text = json.dumps(values)
        assert standard.loads(text) == values
        assert text.decode() == standard.dumps(values, ensure_ascii=False, separators=(",", ":"))
        assert json.dumps_str(values) == text.decode()


class Text(str):
    pass


class Number(int):
    pass


class Fraction(float):
    pass


class Members(dict):  # type: ignore[type-arg]
    pass


class OtherItems(dict):  # type: ignore[type-arg]
    def items(self) -> Any:
        return [("other", 1)]


class Items(list):  # type: ignore[type-arg]
    pass


def test_subclasses_are_written_by_their_contents() -> None:
    values = [
        Text("täxt" * 30),
        Text(""),
        Number(-5),
        Number(1 << 62),
        Fraction(0.5),
        Members(a=Text("b")),
        Items([1, Items()]),
    ]
    expected = ["täxt" * 30, "", -5, 1 << 62, 0.5, {"a": "b"}, [1, []]]
    assert json.loads(json.dumps(values)) == expected
    assert bson.decode(bson.encode({"a": values}))["a"] == expected
    assert json.dumps(OtherItems(a=5)) == b'{"other":1}'


def test_subclasses_of_int_are_written_like_ints_of_any_size() -> None:
    rng = random.Random(8)
    numbers = [sign * (rng.getrandbits(n + 1) | 1 << n) for n in range(63) for sign in (1, -1)] + [
        2**63,
        2**64 - 1,
        -(2**63),
    ]
    levels = enum.IntEnum("levels", {f"n{k}": n for k, n in enumerate(numbers)})  # type: ignore[misc]
    for made in ([Number(n) for n in numbers], [levels(n) for n in numbers]):
        choices: list[dict[str, Any]] = [{}, {"indent": 1}, {"sort_keys": True}, {"big_ints": "text53"}]
        for options in choices:
            assert json.dumps(made, **options) == json.dumps(numbers, **options)
            assert json.dumps({"a": made[-1]}, **options) == json.dumps({"a": numbers[-1]}, **options)
    short = [Number(n) for n in numbers if abs(n) < 2**63]
    assert bson.decode(bson.encode({"a": short}))["a"] == short
