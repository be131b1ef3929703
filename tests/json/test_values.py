"""Values of each type: their JSON text, or the error for those that are refused."""

from __future__ import annotations

import collections
import dataclasses
import datetime as dt
import enum
import json as standard
import math
import sys
import uuid
from decimal import Decimal
from typing import Any, NamedTuple

import pytest

from onecopy import json


class Colour(enum.Enum):
    RED = "red"
    ONE = 1
    PAIR = (1, 2)


class Level(enum.IntEnum):
    LOW = 1


class Word(str, enum.Enum):
    A = "a"


class Text(str):
    pass


class Whole(int):
    pass


class Real(float):
    pass


class Mapping(dict[str, int]):
    pass


class Items(list[int]):
    pass


class Point(NamedTuple):
    x: int
    y: str


@dataclasses.dataclass
class Address:
    street: str
    number: int = 7


@dataclasses.dataclass
class Person:
    name: str
    address: Address
    tags: list[str] = dataclasses.field(default_factory=list)


@dataclasses.dataclass(frozen=True)
class Slotted:
    __slots__ = ("a", "б")
    a: int
    б: str


UTC = dt.timezone.utc
INDIA = dt.timezone(dt.timedelta(hours=5, minutes=30))
WEST = dt.timezone(-dt.timedelta(hours=3, minutes=30))

CASES: list[tuple[Any, str]] = [
    (None, "null"),
    (True, "true"),
    (False, "false"),
    (0, "0"),
    (2**63, "9223372036854775808"),
    (-(2**63), "-9223372036854775808"),
    (2**64, "18446744073709551616"),
    (-(2**200), str(-(2**200))),
    (1.0, "1.0"),
    (-0.0, "-0.0"),
    (0.1, "0.1"),
    (1e22, "1e+22"),
    (1e-7, "1e-7"),
    ((), "[]"),
    ((1, (2,)), "[1,[2]]"),
    (Decimal("1.50"), "1.50"),
    (Decimal("-0.00"), "-0.00"),
    (Decimal("123456789012345678901234567890.123456789"), "123456789012345678901234567890.123456789"),
    (dt.datetime(2026, 11, 21, 22, 30), '"2026-11-21T22:30:00"'),
    (dt.datetime(1, 1, 1, 0, 0, 0, 5), '"0001-01-01T00:00:00.000005"'),
    (dt.datetime(2026, 11, 21, 22, 30, 1, 120000, UTC), '"2026-11-21T22:30:01.120000+00:00"'),
    (dt.datetime(2026, 11, 21, 22, 30, tzinfo=INDIA), '"2026-11-21T22:30:00+05:30"'),
    (dt.datetime(2026, 11, 21, 22, 30, tzinfo=WEST), '"2026-11-21T22:30:00-03:30"'),
    (dt.datetime(9999, 12, 31, 23, 59, 59, 999999), '"9999-12-31T23:59:59.999999"'),
    (dt.date(2026, 2, 3), '"2026-02-03"'),
    (dt.time(1, 2, 3), '"01:02:03"'),
    (dt.time(1, 2, 3, 40), '"01:02:03.000040"'),
    (uuid.UUID("12345678-1234-5678-1234-56789abcdef0"), '"12345678-1234-5678-1234-56789abcdef0"'),
    (Colour.RED, '"red"'),
    (Colour.ONE, "1"),
    (Colour.PAIR, "[1,2]"),
    (Level.LOW, "1"),
    (Word.A, '"a"'),
    (Text('a"'), '"a\\""'),
    (Whole(3), "3"),
    (Real(1.5), "1.5"),
    (Mapping(a=1), '{"a":1}'),
    (Items([1]), "[1]"),
    (collections.OrderedDict(b=1, a=2), '{"b":1,"a":2}'),
    (collections.defaultdict(int, a=1), '{"a":1}'),
    (Address("Köln", 1), '{"street":"Köln","number":1}'),
    (Person("я", Address("a"), ["b"]), '{"name":"я","address":{"street":"a","number":7},"tags":["b"]}'),
    (Slotted(1, "ж"), '{"a":1,"б":"ж"}'),
    (json.Fragment(b'{"a" : 1}'), '{"a" : 1}'),
    (json.Fragment('["я"]'), '["я"]'),
]


@pytest.mark.parametrize(("value", "wanted"), CASES, ids=[repr(value)[:60] for value, _ in CASES])
def test_a_value_becomes(value: Any, wanted: str) -> None:
    assert json.dumps(value) == wanted.encode()
    assert json.dumps_str(value) == wanted
    assert json.dumps([value, {"k": value}]) == f'[{wanted},{{"k":{wanted}}}]'.encode()
    standard.loads(wanted)


def test_a_named_tuple_is_an_array_as_in_the_standard_library() -> None:
    assert json.dumps(Point(1, "a")) == standard.dumps(Point(1, "a"), separators=(",", ":")).encode()


@pytest.mark.parametrize("value", [object(), {1, 2}, b"x", bytearray(b"x"), 1j, range(3), int, len, iter([1]), ...])
def test_a_type_without_a_form_is_a_type_error_with_the_path(value: Any) -> None:
    with pytest.raises(TypeError) as caught:
        json.dumps({"rows": [1, 2, {"price": value}]})
    assert "$.rows[2].price" in str(caught.value) and type(value).__name__ in str(caught.value)


@pytest.mark.parametrize(
    "number", [math.nan, -math.inf, Real("nan"), Decimal("nan"), Decimal("-inf"), Decimal("sNaN12")]
)
def test_a_number_that_json_does_not_have_is_refused_or_null_or_text(number: Any) -> None:
    with pytest.raises(json.JSONEncodeError, match=r"\$\.a\[1\]"):
        json.dumps({"a": [1, number]})
    assert issubclass(json.JSONEncodeError, ValueError)
    assert json.dumps([number], nan="null") == b"[null]"
    name = "NaN" if "nan" in str(number).lower() else "Infinity" if number > 0 else "-Infinity"
    # A string: a bare `NaN` would not be valid JSON.
    assert json.dumps([number], nan="text") == f'["{name}"]'.encode()


def test_the_path_of_an_error_has_keys_and_indexes() -> None:
    for value, path in (
        (object(), "$"),
        ([object()], "$[0]"),
        ({"a": {"b": [[], [object()]]}}, "$.a.b[1][0]"),
        ([{"x": 1}] * 3 + [{"y": 2, "price": object()}], "$[3].price"),
        ({"a b": object()}, "a b"),
    ):
        with pytest.raises(TypeError) as caught:
            json.dumps(value)
        assert path in str(caught.value), str(caught.value)


KEYS: list[tuple[Any, str]] = [
    (1, "1"),
    (-(2**70), str(-(2**70))),
    (True, "true"),
    (None, "null"),
    (uuid.UUID(int=1), "00000000-0000-0000-0000-000000000001"),
    (dt.date(2026, 1, 2), "2026-01-02"),
    (dt.datetime(2026, 1, 2, 3, 4, 5), "2026-01-02T03:04:05"),
    (Colour.RED, "red"),
    (Level.LOW, "1"),
]


@pytest.mark.parametrize(("key", "wanted"), KEYS, ids=[repr(key) for key, _ in KEYS])
def test_a_key_that_is_not_text_is_refused_or_written_by_option(key: Any, wanted: str) -> None:
    with pytest.raises(TypeError, match="non_str_keys"):
        json.dumps({"a": 1, key: 2})
    assert json.dumps({key: 1}, non_str_keys=True) == f'{{"{wanted}":1}}'.encode()


def test_a_key_of_another_type_is_passed_to_default() -> None:
    given: list[Any] = []

    def default(value: Any) -> Any:
        given.append(value)
        return "k"

    assert json.dumps({(1, 2): 3}, default=default, non_str_keys=True) == b'{"k":3}'
    assert given == [(1, 2)]
    with pytest.raises(TypeError):
        json.dumps({(1, 2): 3}, non_str_keys=True)


def test_keys_of_a_str_subclass_are_text() -> None:
    assert json.dumps({Text("b"): 1, Word.A: 2}) == b'{"b":1,"a":2}'


def test_big_ints_by_option() -> None:
    assert json.dumps(2**64, big_ints="exact") == b"18446744073709551616"
    assert json.dumps(2**64, big_ints="text53") == b'"18446744073709551616"'
    with pytest.raises(json.JSONEncodeError, match=r"\$\[0\]"):
        json.dumps([2**64], big_ints="error")
    assert json.dumps([1, -1], big_ints="error") == b"[1,-1]"


@pytest.mark.parametrize("n_digits", [640, 641, 4300, 4301, 5916, 100_001])
def test_an_int_of_any_number_of_digits_comes_back(n_digits: int) -> None:
    number = 7**20 + 10 ** (n_digits - 1)
    for value in (number, -number):
        text = json.dumps(value)
        assert len(text) == n_digits + (value < 0)
        assert json.loads(text) == value
        assert json.loads(text.decode()) == value


def test_default_is_called_for_values_without_a_json_form() -> None:
    class Money:
        pass

    money = Money()
    assert json.dumps([money], default=lambda value: {"is": value is money}) == b'[{"is":true}]'
    assert json.dumps(money, default=lambda value: [1, "a", None, {"b": ()}]) == b'[1,"a",null,{"b":[]}]'
    assert json.dumps([1, "a", None, 1.5, {}, []], default=lambda value: 1 / 0) == b'[1,"a",null,1.5,{},[]]'


def test_parse_float_and_object_hook_get_the_parsed_values() -> None:
    assert json.loads(b"[1.10, 1e400, 2]", parse_float=Decimal) == [Decimal("1.10"), Decimal("1e400"), 2]
    assert json.loads(b'{"a":{"b":1}}', object_hook=lambda d: sorted(d.items())) == [("a", [("b", 1)])]
    assert json.loads(b'[{},{"a":1}]', object_hook=len) == [0, 1]
    with pytest.raises(ZeroDivisionError):
        json.loads(b'[{"a":1}]', object_hook=lambda d: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        json.loads(b"[1.5]", parse_float=lambda digits: 1 / 0)


def test_parse_float_gets_ascii_strings() -> None:
    for text in ("[-1.5]", b"[-1.5]", bytearray(b"[-1.5]"), '["é", -1.5]', '["東", -1.5]', '["😀", -1.5]'):
        given: list[str] = []
        json.loads(text, parse_float=given.append)
        # A `str` stored as Latin-1 would be equal.
        assert given == ["-1.5"] and given[0].isascii() and sys.getsizeof(given[0]) == sys.getsizeof("-1.5")


def test_a_replacement_object_does_not_count_as_a_level() -> None:
    for value in (Text("a"), Word.A, Whole(7), Real(0.5)):
        text = json.dumps(value)
        assert json.dumps(value, max_depth=0) == text
        for sort_keys in (False, True):
            rows = [value, {"b": value}]
            assert json.dumps(rows, max_depth=2, sort_keys=sort_keys) == b'[%b,{"b":%b}]' % (text, text)
            with pytest.raises(json.JSONEncodeError, match="max_depth"):
                json.dumps(rows, max_depth=1, sort_keys=sort_keys)
    assert json.dumps([object()], default=lambda value: [1], max_depth=2) == b"[[1]]"
    # A replacement does not contain itself, at any depth.
    with pytest.raises(json.JSONEncodeError, match="max_depth"):
        json.dumps([object()], default=lambda value: [1], max_depth=1)
    with pytest.raises(json.JSONEncodeError, match="contains itself"):
        json.dumps([object()], default=lambda value: value)


def test_wrong_options_are_refused() -> None:
    untyped: Any = json
    wrong: list[dict[str, Any]] = [
        {"nan": "zero"}, {"errors": "?"}, {"big_ints": "round"}, {"default": 3}, {"max_depth": -1},
        {"indent": "x"}, {"what": 1},
    ]  # fmt: skip
    for options in wrong:
        with pytest.raises((TypeError, ValueError, OverflowError)):
            untyped.dumps([object()], **options)
    wrong = [
        {"nan": "zero"}, {"errors": "?"}, {"big_ints": "round"}, {"duplicate_keys": "first"},
        {"object_hook": 3}, {"what": 1},
    ]  # fmt: skip
    for options in wrong:
        with pytest.raises((TypeError, ValueError)):
            untyped.loads(b'{"a":1.5}', **options)
