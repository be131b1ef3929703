"""Helpers of the JSON tests: cases in data files, values of all kinds, and the standard library as
an oracle."""

from __future__ import annotations

import ast
import json
import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from hypothesis import strategies as st

HERE = Path(__file__).resolve().parent


def cases(name: str) -> Iterator[list[str]]:
    """The fields of each line in the data file ``name``."""
    for line in (HERE / "data" / f"{name}.txt").read_text(encoding="utf-8").splitlines():
        if line and not line.startswith("#"):
            # The text is a Python literal and may contain a bar; the following fields are separated
            # by ` | `.
            end = line.index(" | ")
            while not _is_literal(line[:end]):
                end = line.index(" | ", end + 1)
            yield [line[:end], *line[end + 3 :].split(" | ")]


def _is_literal(text: str) -> bool:
    try:
        ast.literal_eval(text)
    except SyntaxError:
        return False
    return True


class Refused(NamedTuple):
    """A text that is not valid JSON, with the offset and the reason of the expected error."""

    data: bytes
    offset: int
    reason: str


ACCEPTED: list[tuple[bytes, Any]] = [(ast.literal_eval(a), ast.literal_eval(b)) for a, b in cases("accepted")]
REFUSED = [Refused(ast.literal_eval(a), int(b), c) for a, b, c in cases("refused")]
OPEN: list[tuple[bytes, dict[str, Any], str]] = [
    (ast.literal_eval(a), ast.literal_eval(b), c) for a, b, c in cases("open")
]


def same(one: Any, other: Any) -> bool:
    """Returns true if two nested values have equal types and contents, also NaN and the sign of
    zero.

    The comparison uses no recursion, so that deep values are possible.
    """
    stack = [(one, other)]
    while stack:
        a, b = stack.pop()
        if type(a) is not type(b):
            return False
        if isinstance(a, list):
            if len(a) != len(b):
                return False
            stack.extend(zip(a, b, strict=True))
        elif isinstance(a, dict):
            if list(a) != list(b):
                return False
            stack.extend((a[key], b[key]) for key in a)
        elif repr(a) != repr(b):
            return False
    return True


class NotJson(Exception):
    """The exception of `oracle` for text that is not valid JSON."""


def _refuse(name: str) -> float:
    raise NotJson(name)


def _finite(digits: str) -> float:
    number = float(digits)
    if math.isinf(number):
        raise NotJson(digits)
    return number


def _no_surrogates(value: Any) -> None:
    stack = [value]
    while stack:
        one = stack.pop()
        if isinstance(one, str):
            one.encode()
        elif isinstance(one, list):
            stack.extend(one)
        elif isinstance(one, dict):
            stack.extend(one)
            stack.extend(one.values())


def oracle(data: bytes) -> Any:
    """The value of a JSON text by RFC 8259 and onecopy's defaults: the standard library, made
    strict.

    Raises:
        NotJson: the text is not valid JSON.
    """
    try:
        text = data.decode()
        value = json.loads(text, parse_constant=_refuse, parse_float=_finite)
        _no_surrogates(value)
    except (ValueError, RecursionError) as error:
        raise NotJson(str(error)) from None
    return value


def outcome(call: Callable[[], Any]) -> Any:
    """The result of a call, or the class `NotJson` if it raises a `ValueError`."""
    try:
        return call()
    except (NotJson, ValueError):
        return NotJson


#: Characters of one kind and width, and mixtures, to reach each kernel and each change of kinds.
ALPHABETS = (
    "ab", "aé", "éÿ\x80", "Жя", "Ж a", "東京", "東a\ud7ff\ue000\uffff", "😀", "😀a",
    "\U0010ffff\U00010000Ж", 'a"\\', "\x00\x1f\n\t/\x7f", "é\"東\\😀\n",
)  # fmt: skip
runs = st.sampled_from(ALPHABETS).flatmap(lambda alphabet: st.text(alphabet, max_size=70))
texts = st.one_of(runs, st.text(max_size=20), st.lists(runs, max_size=3).map("".join))
ints = st.one_of(
    st.integers(-20, 20),
    st.integers(-(2**63), 2**64),
    st.integers(-(10**40), 10**40),
    st.sampled_from([10**k + d for k in range(22) for d in (-1, 0, 1)]),
)
floats = st.one_of(
    st.floats(allow_nan=False, allow_infinity=False),
    st.decimals(-10000, 10000, allow_nan=False, allow_infinity=False, places=2).map(float),
    st.sampled_from(
        [
            0.0,
            -0.0,
            5e-324,
            2.2250738585072014e-308,
            1.7976931348623157e308,
            1e15,
            1e16,
            1e17,
            1e21,
            1e22,
            1e-4,
            1e-5,
            0.1,
        ]
    ),
)
plain = st.one_of(st.none(), st.booleans(), ints, floats, texts)
documents = st.recursive(
    plain,
    lambda inner: st.one_of(st.lists(inner, max_size=6), st.dictionaries(texts, inner, max_size=6)),
    max_leaves=40,
)
#: Rows with the same keys, as databases return them.
rows = st.lists(
    st.sampled_from(["id", "name", "город", "名前", 'a"b', ""]), min_size=1, max_size=5, unique=True
).flatmap(
    lambda names: st.lists(
        st.tuples(*[plain] * len(names)).map(lambda row: dict(zip(names, row, strict=True))), max_size=12
    )
)
anything = st.one_of(documents, rows)
#: Corruptions of a text: some bytes removed at a position, and others inserted.
harms = st.lists(
    st.tuples(
        st.integers(0, 400),
        st.integers(0, 3),
        st.sampled_from(
            [
                b"",
                b",",
                b"]",
                b"}",
                b"[",
                b"{",
                b'"',
                b"\\",
                b":",
                b"0",
                b"-",
                b".",
                b"e",
                b" ",
                b"\n",
                b"\x00",
                b"\x80",
                b"\xff",
                b"\xc3",
                b"\xed\xa0\x80",
                b"u",
                b"\\ud800",
                b"nul",
                b"\xef\xbb\xbf",
            ]
        ),
    ),
    max_size=3,
)


def harmed(data: bytes, changes: list[tuple[int, int, bytes]]) -> bytes:
    """The text with some bytes changed."""
    for at, cut, put in changes:
        at %= len(data) + 1
        data = data[:at] + put + data[at + cut :]
    return data
