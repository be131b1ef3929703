"""`onecopy.compat.ujson` beside ujson: the same calls, the same answers; the differences are those that the guide names."""

from __future__ import annotations

import collections
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


Pair = collections.namedtuple("Pair", "a b")
VALUES: list[Any] = [
    None, True, 0, -1, 2**63, 2**64, -(2**70), 0.0, -0.0, 0.1, 1.0, 1e15, 1e16, 1e22, 1e-7, 5e-324, float("nan"), float("inf"), -float("inf"),
    "", "a", "é", "я", "東", "😀", '"\\\b\f\n\r\t\x00\x1f\x7f</&>\u2028', "a/b", [], (), {}, [[]], [{}], {"a": []}, (1, (2,)),
    {"b": 1, "a": [1, {}]}, {1: 2}, {1.5: 2}, {None: 1}, {True: 1}, Level.LOW, Text("x"), Mapping(a=1), Pair(1, 2), collections.OrderedDict(b=1),
    Strange(), Raw(), RawBytes(), AsDict(), [Raw(), "c/d"], b"x", {1, 2}, range(3), Colour.RED, len,
]  # fmt: skip
KEYWORDS: list[dict[str, Any]] = [
    {}, {"ensure_ascii": False}, {"escape_forward_slashes": False}, {"encode_html_chars": True}, {"sort_keys": True}, {"indent": 1}, {"indent": 4},
    {"allow_nan": False}, {"reject_bytes": False}, {"separators": (", ", ": ")}, {"separators": (",", ":")}, {"default": lambda value: "given"},
    {"default": lambda value: ["a/b", 1]}, {"ensure_ascii": False, "encode_html_chars": True, "escape_forward_slashes": False},
]  # fmt: skip


def outcome(call: Callable[[], Any]) -> Any:
    """What a call gives, or the class of its error."""
    try:
        return call()
    except (TypeError, OverflowError, UnicodeError) as error:
        return type(error)
    except (ours.JSONDecodeError, theirs.JSONDecodeError):
        return ValueError


#: Written in another way, with the same meaning: `1e-5` and `0.00001`, U+007F where the standard library writes, the slashes
#: of what `__json__` gives.
_FLOAT = re.compile(r"-?\d+(?:\.\d+(?:e[+-]?\d+)?|e[+-]?\d+)")


def _plain(made: Any) -> Any:
    if not isinstance(made, str):
        return made
    return (
        _FLOAT.sub(lambda match: repr(float(match[0])), made)
        .replace("\\/", "/")
        .replace("\\u007f", "\x7f")
        .replace(" ", "")
    )


@pytest.mark.parametrize("value", VALUES, ids=lambda value: ascii(value)[:50])
def test_a_value_is_written_as_by_ujson_with_each_keyword(value: Any) -> None:
    for keywords in KEYWORDS:
        for one in (value, [value, {"k": value}]):
            mine = outcome(lambda o=one, k=keywords: ours.dumps(o, **k))  # type: ignore[misc]
            wanted = outcome(lambda o=one, k=keywords: theirs.dumps(o, **k))  # type: ignore[misc]
            assert _plain(mine) == _plain(wanted), (one, keywords)


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
    ["1", b"[1]", bytearray(b"1"), "", " ", "[1,]", None, 1, [], b"\xff", '"\ud800"', b"\xef\xbb\xbf1", "1 2", "NaN", "-Infinity", "Infinity",
     '"\\ud800"', "18446744073709551616", "-0", "-0.0", '{"a":1,"a":2}', "nul", '"abc', '{"a":1,}', "{1:2}", '"\\x"', "[" * 3000 + "]" * 3000],
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


def test_an_error_of_default_is_raised_as_it_is() -> None:
    untyped: list[Any] = [ours, theirs]
    for module in untyped:
        with pytest.raises(ZeroDivisionError):
            module.dumps([Strange()], default=lambda value: 1 / 0)


def test_what_holds_itself_is_an_overflow() -> None:
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


def test_what_the_guide_names_as_stricter_is_refused() -> None:
    for text in ("01", "[-]", "1.", "2.e3", '"\n"', "1e400"):
        theirs.loads(text)
        with pytest.raises(ours.JSONDecodeError):
            ours.loads(text)
    assert (ours.dumps(decimal.Decimal("1.50")), theirs.dumps(decimal.Decimal("1.50"))) == ("1.50", "1.5")


def test_the_names_are_those_of_ujson() -> None:
    public = {name for name in dir(theirs) if not name.startswith("_")}
    assert public == set(ours.__all__)
    assert issubclass(ours.JSONDecodeError, ValueError)
    assert ours.encode("é") == theirs.encode("é")
