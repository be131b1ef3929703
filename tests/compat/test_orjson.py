"""`onecopy.compat.orjson` compared with orjson: the same calls give the same results.

docs/guide/move-from-orjson.md lists the differences.
"""

from __future__ import annotations

import collections
import dataclasses
import datetime as dt
import decimal
import enum
import itertools
import json as standard
import uuid
from collections.abc import Callable
from typing import Any

import orjson as theirs
import pytest
from hypothesis import given

from onecopy.compat import orjson as ours
from tests.json.values import anything, harmed, harms, same
from tests.support.properties import tried

OPTIONS = [name for name in dir(theirs) if name.startswith("OPT_")]


class Colour(enum.Enum):
    RED = "red"
    ONE = 1
    NONE = None


class Level(enum.IntEnum):
    LOW = 1


class Text(str):
    pass


class Whole(int):
    pass


class Real(float):
    pass


class Items(list[Any]):
    pass


class Fixed(tuple[Any, ...]):
    pass


class Mapping(dict[str, Any]):
    pass


class Strange:
    pass


Pair = collections.namedtuple("Pair", "a b")


@dataclasses.dataclass
class Person:
    name: str
    _hidden: int = 2
    tags: list[str] = dataclasses.field(default_factory=list)


@dataclasses.dataclass
class Slotted:
    __slots__ = ("a", "b")
    a: int
    b: str


UTC = dt.timezone.utc
EAST = dt.timezone(dt.timedelta(hours=5, minutes=30))
VALUES: list[Any] = [
    None, True, 0, -1, 2**53, 2**53 - 1, -(2**53), 2**63 - 1, 2**63, 2**64 - 1, -(2**63), 2**64, -(2**63) - 1, 2**100,
    0.0, -0.0, 0.1, 1.0, 1e15, 1e16, 1e17, 1e21, 1e22, 1e-5, 1e-7, 5e-324, 1.7976931348623157e308, 123456789.125,
    float("nan"), float("inf"), -float("inf"),
    "", "a", "é", "я", "東", "😀", '"\\\b\f\n\r\t\x00\x1f\x7f/</\u2028', "\ud800", "a" * 100 + "é",
    [], (), {}, [[]], [{}], {"a": []}, (1, (2,)), {"b": 1, "a": 2, "": 3}, {"é": 1, "я": 2, "z": 3},
    dt.datetime(2026, 1, 2, 3, 4, 5), dt.datetime(2026, 1, 2, 3, 4, 5, 6), dt.datetime(1, 1, 1, tzinfo=UTC),
    dt.datetime(2026, 1, 2, tzinfo=EAST), dt.datetime(2026, 1, 2, 3, 4, 5, 60, tzinfo=UTC), dt.date(2026, 1, 2),
    dt.time(1, 2, 3), dt.time(1, 2, 3, 4), dt.time(1, 2, tzinfo=UTC), uuid.UUID(int=7),
    Colour.RED, Colour.ONE, Colour.NONE, Level.LOW, Text("x"), Whole(3), Real(1.5), Items([1]), Fixed((1,)),
    Mapping(a=1), Pair(1, 2),
    collections.OrderedDict(b=1, a=2), Person("a"), Slotted(1, "b"), Person, Strange(), decimal.Decimal("1.50"),
    b"x", bytearray(b"x"),
    {1, 2}, frozenset(), range(3), len, 1j, ours.Fragment(b"[ 1 ]"), ours.Fragment('"я"'),
    {1: 2}, {"a": 1, 2: 3}, {1.5: 1}, {None: 1}, {True: 1, False: 2}, {Colour.RED: 1}, {Colour.ONE: 1},
    {Level.LOW: 1}, {dt.date(2026, 1, 2): 1},
    {dt.datetime(2026, 1, 2): 1}, {dt.time(1): 1}, {uuid.UUID(int=1): 1}, {2: 1, 10: 2, "1": 3}, {"\ud800": 1},
    {float("nan"): 1},
]  # fmt: skip
#: Keys that orjson never accepts: the guide lists them.
MORE_KEYS: list[Any] = [{(1,): 2}, {b"x": 1}, {Strange(): 1}, {2**64: 1}, {decimal.Decimal(1): 2}]

DEFAULTS: dict[str, Callable[[Any], Any] | None] = {
    "none": None,
    "name": lambda value: type(value).__name__,
    "list": lambda value: [type(value).__name__, {"a": (1, None)}],
    "none given": lambda value: None,
}


def outcome(call: Callable[[], Any]) -> Any:
    """The result of a call; if it raises, `TypeError` or `JSONDecodeError`."""
    try:
        return call()
    except TypeError:
        return TypeError
    except standard.JSONDecodeError:
        return standard.JSONDecodeError


def _theirs(value: Any) -> Any:
    """The value with each `Fragment` of onecopy replaced by one of orjson."""
    if isinstance(value, ours.Fragment):
        return theirs.Fragment(ours.dumps(value))
    if type(value) is list:
        return [_theirs(item) for item in value]
    if type(value) is dict:
        return {key: _theirs(item) for key, item in value.items()}
    return value


def _same_dumps(value: Any, default: Any = None, option: int | None = None) -> None:
    mine = outcome(lambda: ours.dumps(value, default, option))
    wanted = outcome(lambda: theirs.dumps(_theirs(value), default, option))
    assert mine == wanted, (value, option)


def test_the_names_are_those_of_orjson() -> None:
    assert {name for name in dir(theirs) if not name.startswith("_")} - {"orjson"} <= set(ours.__all__)
    assert {name: getattr(ours, name) for name in OPTIONS} == {name: getattr(theirs, name) for name in OPTIONS}
    assert ours.JSONEncodeError is theirs.JSONEncodeError is TypeError
    assert issubclass(ours.JSONDecodeError, standard.JSONDecodeError)


@pytest.mark.parametrize("value", VALUES, ids=lambda value: ascii(value)[:50])
def test_a_value_is_written_as_by_orjson_with_each_option(value: Any) -> None:
    for default in DEFAULTS.values():
        _same_dumps(value, default)
        _same_dumps([value, {"k": value}], default)
        for name in OPTIONS:
            _same_dumps(value, default, getattr(theirs, name))
            _same_dumps({"k": [value]}, default, getattr(theirs, name))


@pytest.mark.parametrize("names", list(itertools.combinations(OPTIONS, 2)), ids="|".join)
def test_two_options_together(names: tuple[str, str]) -> None:
    option = getattr(theirs, names[0]) | getattr(theirs, names[1])
    for value in VALUES:
        _same_dumps(value, None, option)
        _same_dumps(value, DEFAULTS["name"], option)


def test_more_keys_are_accepted_than_by_orjson() -> None:
    for value in MORE_KEYS:
        for default in (None, DEFAULTS["name"]):
            given = (value, default, theirs.OPT_NON_STR_KEYS)
            result = outcome(lambda given=given: theirs.dumps(*given))  # type: ignore[misc]
            assert result is TypeError
        assert outcome(lambda v=value: ours.dumps(v)) is TypeError  # type: ignore[misc]
        assert ours.dumps(value, DEFAULTS["name"], ours.OPT_NON_STR_KEYS).startswith(b'{"')
    assert ours.dumps({Text("k"): 1}) == b'{"k":1}' == theirs.dumps({Text("k"): 1}, option=theirs.OPT_NON_STR_KEYS)
    # A hook that never returns a key ends with an error.
    assert outcome(lambda: ours.dumps({(1,): 2}, lambda value: [value], ours.OPT_NON_STR_KEYS)) is TypeError


@given(anything)
@tried(300)
def test_any_value_is_written_and_read_as_by_orjson(value: Any) -> None:
    for option in (None, ours.OPT_INDENT_2, ours.OPT_SORT_KEYS, ours.OPT_APPEND_NEWLINE | ours.OPT_INDENT_2):
        _same_dumps(value, None, option)
    data = standard.dumps(value, ensure_ascii=False)
    assert same(ours.loads(data), theirs.loads(data))
    assert same(ours.loads(data.encode()), theirs.loads(data.encode()))


@given(anything, harms)
@tried(300)
def test_corrupted_text_is_accepted_or_refused_as_by_orjson(value: Any, changes: Any) -> None:
    data = harmed(standard.dumps(value, ensure_ascii=False).encode(), changes)
    mine, wanted = outcome(lambda: ours.loads(data)), outcome(lambda: theirs.loads(data))
    assert (mine is standard.JSONDecodeError) == (wanted is standard.JSONDecodeError)
    assert wanted is standard.JSONDecodeError or same(mine, wanted)


@pytest.mark.parametrize(
    "given",
    [b"", "", b" ", b"1", bytearray(b"[1]"), memoryview(b'{"a":1}'), "1", None, 1, [], b"\xff", '"\ud800"',
        b"\xef\xbb\xbf1", b"1 2",
     b"1e400", b"NaN", b'"\\ud800"', b"18446744073709551615", b"18446744073709551616", b"-9223372036854775809",
     b'{"a":1,"a":2}',
     b"-0", b"-0.0", b"[" * 1024 + b"]" * 1024, b"[" * 1025 + b"]" * 1025],
    ids=lambda given: repr(given)[:40],
)  # fmt: skip
def test_a_text_is_read_as_by_orjson(given: Any) -> None:
    mine, wanted = outcome(lambda: ours.loads(given)), outcome(lambda: theirs.loads(given))
    assert (mine is wanted) if isinstance(wanted, type) else same(mine, wanted)


def test_an_error_of_default_is_the_cause() -> None:
    def default(value: Any) -> Any:
        raise KeyError("mine")

    for module in (ours, theirs):
        with pytest.raises(module.JSONEncodeError) as caught:
            module.dumps([Strange()], default=default)
        assert isinstance(caught.value.__cause__, KeyError)


def test_default_that_never_ends_is_an_error() -> None:
    for module in (ours, theirs):
        for default in (lambda value: value, lambda value: Strange()):
            with pytest.raises(module.JSONEncodeError):
                module.dumps(Strange(), default=default)


def test_arguments_are_accepted_as_by_orjson() -> None:
    untyped: list[Any] = [ours, theirs]
    for module in untyped:
        assert module.dumps([], None, 0) == module.dumps([], default=None, option=None) == b"[]"
        wrong: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = [
            ("dumps", (), {}),
            ("dumps", (), {"obj": []}),
            ("dumps", ([],), {"foo": 1}),
            ("dumps", ([],), {"option": "x"}),
            ("dumps", ([],), {"option": -1}),
            ("loads", (), {}),
        ]
        for name, arguments, keywords in wrong:
            with pytest.raises(TypeError):
                getattr(module, name)(*arguments, **keywords)


def test_a_default_that_is_not_callable_is_refused_at_once() -> None:
    untyped: list[Any] = [ours, theirs]
    for module in untyped:
        with pytest.raises(TypeError):
            module.dumps([Strange()], default=3)
    with pytest.raises(TypeError, match="must be callable"):
        untyped[0].dumps([], default=3)
    assert untyped[1].dumps([], default=3) == b"[]"


def test_the_position_of_an_error_is_reported() -> None:
    untyped: list[Any] = [ours, theirs]
    for module in untyped:
        with pytest.raises(module.JSONDecodeError) as caught:
            module.loads('["é😀",\nx]')
        assert (caught.value.pos, caught.value.lineno, caught.value.colno) == (7, 2, 1)
