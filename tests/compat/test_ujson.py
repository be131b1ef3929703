"""`onecopy.compat.ujson` compared with ujson: the same calls give the same results.

docs/guide/move-from-ujson.md lists the differences.
"""

from __future__ import annotations

import collections
import datetime as dt
import decimal
import enum
import io
import json as standard
import re
from collections.abc import Callable
from typing import Any

import pytest
import ujson as theirs
from hypothesis import given
from hypothesis import strategies as st

from onecopy.compat import ujson as ours
from tests.json.values import anything, same
from tests.support.properties import tried


class Level(enum.IntEnum):
    LOW = 1


class Colour(enum.Enum):
    RED = "red"


class Text(str):
    pass


class Mapping(dict[str, Any]):
    pass


class Strange:
    def __repr__(self) -> str:
        return "strange"


class Raw:
    def __json__(self) -> str:
        return '{"x":"a/b"}'


class RawBytes:
    def __json__(self) -> bytes:
        return b"[1]"


class AsDict:
    def toDict(self) -> dict[str, int]:
        return {"x": 1}


class Both(AsDict, Raw):
    pass


class DictOf:
    def __init__(self, made: Any) -> None:
        self._made = made

    def toDict(self) -> Any:
        return self._made


class RawOf(DictOf):
    toDict = None  # type: ignore[assignment]

    def __json__(self) -> Any:
        return self._made


class Unprintable:
    def __repr__(self) -> str:
        raise ZeroDivisionError("mine")


class Order(str):
    """A subclass of `str` whose comparison is reversed, for sorted keys."""

    def __lt__(self, other: str) -> bool:
        return str.__gt__(self, other)


class Digits(int):
    def __str__(self) -> str:
        return "digits"


class OtherItems(dict[str, Any]):
    def items(self) -> Any:
        return [("other", 1)]


class Index:
    def __init__(self, value: int) -> None:
        self._value = value

    def __index__(self) -> int:
        return self._value


class Undecided:
    def __bool__(self) -> bool:
        raise ZeroDivisionError("mine")


Pair = collections.namedtuple("Pair", "a b")
VALUES: list[Any] = [
    None, True, 0, -1, 2**63, 2**64, -(2**70), 0.0, -0.0, 0.1, 1.0, 1e15, 1e16, 1e22, 1e-7, 5e-324, float("nan"),
    float("inf"), -float("inf"), [1e-4, -1e-5, 1.5e-5, -9.75e-5, 10.00001, 9e-6], {"0.00001": 1e-5, '"0.00002': "\\"},
    "", "a", "é", "я", "東", "😀", '"\\\b\f\n\r\t\x00\x1f\x7f</&>\u2028', "a/b", [], (), {}, [[]], [{}], {"a": []},
    (1, (2,)),
    {"b": 1, "a": [1, {}]}, {1: 2}, {1.5: 2}, {None: 1}, {True: 1}, Level.LOW, Text("x"), Mapping(a=1), Pair(1, 2),
    collections.OrderedDict(b=1),
    Strange(), Raw(), RawBytes(), AsDict(), Both(), DictOf(3), DictOf({"a": AsDict()}), RawOf(b"\xff"), RawOf(3),
    RawOf("text"),
    [Raw(), "c/d"], b"x", b"\xff", {1, 2}, range(3), Colour.RED, len,
    {b"k": 1}, {b"\xff": 1}, {(1, 2): 3}, {float("nan"): 1}, {float("inf"): 1}, {1e16: 1}, {Colour.RED: 1},
    {Level.LOW: 1}, {Digits(3): 1},
    {dt.datetime(2026, 1, 2, 3): 1}, {frozenset(): 1}, {10: 1, 9: 2, 1.5: 3}, {"b": 1, 1: 2}, {None: 1, "a": 2},
    {Order("a"): 1, Order("b"): 2},
    {b"b": 1, b"a": 2}, OtherItems(a=1), collections.OrderedDict({2: 1, 10: 2}), collections.Counter(b=1, a=2),
    decimal.Decimal("NaN"), decimal.Decimal("-Infinity"), [float("nan"), {"a": float("inf"), (1,): -float("inf")}],
]  # fmt: skip
KEYWORDS: list[dict[str, Any]] = [
    {}, {"ensure_ascii": False}, {"escape_forward_slashes": False}, {"encode_html_chars": True},
    {"sort_keys": True}, {"indent": 1}, {"indent": 4},
    {"allow_nan": False}, {"reject_bytes": False}, {"separators": (", ", ": ")}, {"separators": (",", ":")},
    {"default": lambda value: "given"},
    {"separators": (" , ", ":  "), "sort_keys": True}, {"separators": (" ,", " :"), "indent": 2}, {"indent": -1},
    {"indent": 1000},
    {"default": lambda value: ["a/b", 1]},
    {"ensure_ascii": False, "encode_html_chars": True, "escape_forward_slashes": False},
]  # fmt: skip


def outcome(call: Callable[[], Any]) -> Any:
    """The result of a call; if it raises, the class of the exception."""
    try:
        return call()
    except (TypeError, OverflowError, UnicodeError, ZeroDivisionError) as error:
        return type(error)
    except (ours.JSONDecodeError, theirs.JSONDecodeError):
        return ValueError


#: Different text with the same meaning: digits of a `Decimal`, slashes in the result of `__json__`.
_FLOAT = re.compile(r"-?\d+(?:\.\d+(?:e[+-]?\d+)?|e[+-]?\d+)")


def _plain(made: Any) -> Any:
    if not isinstance(made, str):
        return made
    return _FLOAT.sub(lambda match: repr(float(match[0])), made).replace("\\/", "/").replace(" ", "")


@pytest.mark.parametrize("value", VALUES, ids=lambda value: ascii(value)[:50])
def test_a_value_is_written_as_by_ujson_with_each_keyword(value: Any) -> None:
    for keywords in KEYWORDS:
        for one in (value, [value, {"k": value}]):
            mine = outcome(lambda o=one, k=keywords: ours.dumps(o, **k))  # type: ignore[misc]
            wanted = outcome(lambda o=one, k=keywords: theirs.dumps(o, **k))  # type: ignore[misc]
            assert _plain(mine) == _plain(wanted), (one, keywords)


@given(st.floats(1, 10, exclude_max=True), st.integers(-9, 20), st.integers(0, 16))
@tried(500)
def test_any_float_is_written_as_by_ujson(mantissa: float, exponent: int, n_places: int) -> None:
    value = float(f"{mantissa:.{n_places}f}e{exponent}")
    for one in (value, -value):
        assert ours.dumps(one) == theirs.dumps(one)


@given(anything)
@tried(300)
def test_any_value_is_written_and_read_as_by_ujson(value: Any) -> None:
    options: list[dict[str, Any]] = [
        {},
        {"ensure_ascii": False},
        {"indent": 2},
        {"sort_keys": True},
        {"encode_html_chars": True},
    ]
    for keywords in options:
        assert _plain(ours.dumps(value, **keywords)) == _plain(theirs.dumps(value, **keywords))
    data = standard.dumps(value)
    assert same(ours.loads(data), theirs.loads(data))
    assert same(ours.loads(data.encode()), theirs.loads(data.encode()))


@pytest.mark.parametrize(
    "given",
    ["1", b"[1]", bytearray(b"1"), "", " ", "[1,]", None, 1, [], b"\xff", '"\ud800"', b"\xef\xbb\xbf1", "1 2",
        "NaN", "-Infinity", "Infinity",
     '"\\ud800"', "18446744073709551616", "-0", "-0.0", '{"a":1,"a":2}', "nul", '"abc', '{"a":1,}', "{1:2}",
     '"\\x"', "[" * 3000 + "]" * 3000],
    ids=lambda given: repr(given)[:40],
)  # fmt: skip
def test_a_text_is_read_as_by_ujson(given: Any) -> None:
    for mine, wanted in ((ours.loads, theirs.loads), (ours.decode, theirs.decode)):
        one, other = outcome(lambda f=mine: f(given)), outcome(lambda f=wanted: f(given))  # type: ignore[misc]
        assert (one is other) if isinstance(other, type) else same(one, other)


def test_files_are_written_and_read_as_by_ujson() -> None:
    untyped: list[Any] = [ours, theirs]
    for module in untyped:
        out = io.StringIO()
        assert module.dump({"é": ["a/b"]}, out, ensure_ascii=False) is None
        assert out.getvalue() == '{"é":["a\\/b"]}'
        assert module.load(io.StringIO("[1]")) == module.load(io.BytesIO(b"[1]")) == [1]
        wrong: list[tuple[str, tuple[Any, ...]]] = [("dump", ([1], 3)), ("load", (3,)), ("dump", ([1],))]
        for name, arguments in wrong:
            with pytest.raises(TypeError):
                getattr(module, name)(*arguments)


#: Arguments of wrong types, and unusual ones.
ODD: list[Any] = [
    None, 0, 1, -1, 2.5, "", "x", b"", (), [], {}, object(), (",",), (",", ":"), (",", ":", ""), [",", ":"], (1, 2),
    (b",", b":"), (",", 1), 1000,
    1001, 1 << 30, 1 << 31, -(1 << 31), 1 << 63, 1 << 64, -(1 << 70), True, False, Index(2), Index(1 << 40),
    Undecided(), float("nan"), ("é", "я"),
    (", ", ": "), (",\n", ":"),
]  # fmt: skip
NAMES = [
    "ensure_ascii", "encode_html_chars", "escape_forward_slashes", "sort_keys", "indent",
    "allow_nan", "reject_bytes", "default", "separators", "nonsense",
]  # fmt: skip


def _kind(call: Callable[[], Any]) -> Any:
    """The result of a call; if it raises, the class of the exception.

    `JSONDecodeError` counts as its base class `ValueError`, since each library has its own.
    """
    try:
        return call()
    except ValueError as error:
        return ValueError if isinstance(error, (ours.JSONDecodeError, theirs.JSONDecodeError)) else type(error)
    except Exception as error:
        return type(error)


@pytest.mark.parametrize("name", NAMES)
def test_odd_arguments_are_accepted_or_refused_as_by_ujson(name: str) -> None:
    for odd in ODD:
        for value in ({"b": "/é<", "a": [1, 2]}, [Strange()], [b"x", float("nan")]):
            mine = _kind(lambda v=value, o=odd: ours.dumps(v, **{name: o}))  # type: ignore[misc]
            wanted = _kind(lambda v=value, o=odd: theirs.dumps(v, **{name: o}))  # type: ignore[misc]
            assert mine == wanted, (value, name, odd)
        outs = io.StringIO(), io.StringIO()
        mine = _kind(lambda o=odd, f=outs[0]: ours.dump(["/"], f, **{name: o}))  # type: ignore[misc]
        wanted = _kind(lambda o=odd, f=outs[1]: theirs.dump(["/"], f, **{name: o}))  # type: ignore[misc]
        assert (mine, outs[0].getvalue()) == (wanted, outs[1].getvalue()), (name, odd)


def test_arguments_are_passed_as_to_ujson() -> None:
    calls: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = [
        ("dumps", (), {}), ("dumps", (1, 2, 3), {}),
        ("dumps", ([1], True, False, True, True, 2, True, True, None, None), {}),
        ("dumps", ([1], True, False, True, True, 2, True, True, None, None, 5), {}), ("dumps", (), {"obj": 1}),
        ("encode", (), {"obj": {"a": 1}}),
        ("loads", (), {}), ("loads", ("1", 2), {}), ("loads", (), {"obj": "1"}),
        ("loads", ("1",), {"precise_float": True}),
        ("decode", (), {"obj": "2"}), ("load", (), {}), ("load", (io.StringIO("1"), 1), {}),
        ("load", (), {"fp": io.StringIO("1")}),
        ("dump", (1,), {}), ("dump", (1,), {"fp": io.StringIO()}), ("dump", (), {"obj": 1, "fp": io.StringIO()}),
        ("dump", (1, io.StringIO(), True), {}),
        ("dump", (1, io.BytesIO()), {}), ("dump", (1, None), {}), ("load", (None,), {}),
    ]  # fmt: skip
    for name, arguments, keywords in calls:
        mine = _kind(lambda n=name, a=arguments, k=keywords: getattr(ours, n)(*a, **k))  # type: ignore[misc]
        wanted = _kind(lambda n=name, a=arguments, k=keywords: getattr(theirs, n)(*a, **k))  # type: ignore[misc]
        assert mine == wanted, (name, arguments, keywords)


def test_separators_are_written_between_items_and_not_inside_of_strings() -> None:
    value = {"a:b": [1, ",", '\\",:"', {"é": [], "/": {}}], "": [[1, 2.5], ": "]}
    for separators in ((",", ":"), ("", ""), ("é", "/"), ("\\", '"'), (" , ", " : "), ("\n", "<")):
        for keywords in ({}, {"indent": 3}, {"indent": -3}, {"ensure_ascii": False, "encode_html_chars": True}):
            mine = ours.dumps(value, separators=separators, **keywords)
            assert mine == theirs.dumps(value, separators=separators, **keywords)


def test_members_that_ujson_loses_when_it_sorts_are_written() -> None:
    assert theirs.dumps(Strange(), default=lambda value: {"b": 1, "a": 2}, sort_keys=True) == "{}"
    assert ours.dumps(Strange(), default=lambda value: {"b": 1, "a": 2}, sort_keys=True) == '{"a":2,"b":1}'


def test_an_object_whose_repr_raises_raises_that_as_a_value_and_as_a_key() -> None:
    untyped: list[Any] = [ours, theirs]
    for module in untyped:
        for value in (Unprintable(), [Unprintable()], {Unprintable(): 1}):
            with pytest.raises(ZeroDivisionError, match="mine"):
                module.dumps(value)


def test_an_exception_of_default_is_raised_unchanged() -> None:
    untyped: list[Any] = [ours, theirs]
    for module in untyped:
        with pytest.raises(ZeroDivisionError):
            module.dumps([Strange()], default=lambda value: 1 / 0)


def test_a_value_that_contains_itself_is_an_overflow() -> None:
    own: list[Any] = []
    own.append(own)
    untyped: list[Any] = [ours, theirs]
    for module in untyped:
        with pytest.raises(OverflowError):
            module.dumps(own)
    own.clear()


def test_slashes_and_html_are_escaped_as_by_ujson() -> None:
    for text in ("a/b", "//", "\\/", "<a href='/'>&amp;</a>", 'x"/'):
        options: list[dict[str, Any]] = [
            {},
            {"escape_forward_slashes": False},
            {"encode_html_chars": True},
            {"ensure_ascii": False},
        ]
        for keywords in options:
            assert ours.dumps({text: text}, **keywords) == theirs.dumps({text: text}, **keywords)
    assert standard.loads(ours.dumps([Raw(), "c/d"])) == [{"x": "a/b"}, "c/d"]


def test_a_lone_surrogate_is_always_escaped() -> None:
    assert ours.dumps("\ud800") == theirs.dumps("\ud800") == '"\\ud800"'
    assert ours.dumps("\ud83d\ude00") == theirs.dumps("\ud83d\ude00")
    assert ours.dumps("\ud800", ensure_ascii=False) == '"\\ud800"'
    assert theirs.dumps("\ud800", ensure_ascii=False) == '"\ud800"'


def test_cases_that_the_guide_lists_as_stricter_are_refused() -> None:
    for text in ("01", "[-]", "1.", "2.e3", '"\n"', "1e400", b'"\xed\xa0\x80"'):
        theirs.loads(text)
        with pytest.raises(ours.JSONDecodeError):
            ours.loads(text)
    # With more digits than `sys.get_int_max_str_digits()` allows.
    digits = "1" * 5000
    for call in (lambda: theirs.loads(digits), lambda: theirs.dumps(10**5000), lambda: theirs.dumps({"a": [10**5000]})):
        with pytest.raises(ValueError, match="Exceeds the limit"):
            call()
    assert ours.dumps(ours.loads(digits)) == digits
    assert (ours.dumps(decimal.Decimal("1.50")), theirs.dumps(decimal.Decimal("1.50"))) == ("1.50", "1.5")


def test_the_names_are_those_of_ujson() -> None:
    public = {name for name in dir(theirs) if not name.startswith("_")}
    assert public == set(ours.__all__)
    assert issubclass(ours.JSONDecodeError, ValueError)
    assert ours.encode("é") == theirs.encode("é")
