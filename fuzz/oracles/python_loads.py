"""Compares the objects that `onecopy.json.loads` creates with those of the standard library's
`json`.

Where the standard library is more lenient than RFC 8259, or lacks an option, it is adapted here;
comments have the reasons.
"""

from __future__ import annotations

import gc
import json as standard
import math
import re
import sys
from collections.abc import Callable
from typing import Any

import onecopy
from objects import Raised, Source, check_text
from onecopy import json

#: Bytes of a text at most, once parts of it are repeated: past the reader's place for strings, of
#: 32 KiB.
_MOST_BYTES = 100_000
_SURROGATE = re.compile("[\ud800-\udfff]")
_BRACKETS = re.compile(r'"(?:[^"\\]|\\.)*"|[\[\]{}]', re.S)

sys.setrecursionlimit(12_000)
sys.set_int_max_str_digits(0)


class Refused(Exception):
    """The text is not valid JSON, or is not accepted with these options."""


class Hooked:
    """The object that a hook returns."""

    def __init__(self, of: Any) -> None:
        self.of = of


class Oracle:
    """The standard library's decoder, extended by onecopy's options."""

    def __init__(self, options: dict[str, Any]) -> None:
        self._errors = options.get("errors", "strict")
        self._big_ints = options.get("big_ints", "exact")
        self._accepts_nan = options.get("nan") == "literal"
        self._refuses_twice = options.get("duplicate_keys") == "error"
        self._object_hook = options.get("object_hook")
        self._parse_float = options.get("parse_float")
        self._max_depth = options.get("max_depth", 1000)

    def value(self, text: str) -> Any:
        """The value of a JSON text.

        Raises:
            Refused: the text is not accepted. A hook may raise other exceptions.
        """
        try:
            value = standard.loads(
                text,
                object_pairs_hook=self._object,
                parse_int=self._int,
                parse_float=self._float,
                parse_constant=self._constant,
            )
        except (ValueError, RecursionError):
            # The interpreter's limit is past any `max_depth` here.
            raise Refused from None
        if self._depth(text) > self._max_depth:
            raise Refused
        return self._with_surrogates(value)

    def _depth(self, text: str) -> int:
        """The nesting depth of arrays and objects; the standard library has no limit except the
        stack."""
        depth = most = 0
        for found in _BRACKETS.finditer(text):
            depth += {"[": 1, "{": 1, "]": -1, "}": -1}.get(found[0], 0)
            most = max(most, depth)
        return most

    def _with_surrogates(self, value: Any) -> Any:
        """Applies the option `errors` to the lone surrogates of a value, which the standard library
        accepts."""
        if isinstance(value, str):
            if self._errors == "surrogatepass" or _SURROGATE.search(value) is None:
                return value
            if self._errors == "strict":
                raise Refused
            return _SURROGATE.sub("\ufffd", value)
        if isinstance(value, list):
            value[:] = [self._with_surrogates(item) for item in value]
        return value

    def _object(self, members: list[tuple[str, Any]]) -> Any:
        made: dict[str, Any] = {}
        for key, value in members:
            made[self._with_surrogates(key)] = self._with_surrogates(value)
        if self._refuses_twice and len(made) < len(members):
            raise Refused
        return made if self._object_hook is None else self._object_hook(made)

    def _int(self, digits: str) -> Any:
        value = int(digits)
        if self._big_ints == "exact" or -(1 << 63) <= value < 1 << 64:
            return value
        if self._big_ints == "error":
            raise Refused
        return self._finite(digits)

    def _float(self, digits: str) -> Any:
        return self._finite(digits) if self._parse_float is None else self._parse_float(digits)

    def _finite(self, digits: str) -> float:
        """The float of some digits; a number that is too large is refused."""
        value = float(digits)
        if math.isinf(value):
            raise Refused
        return value

    def _constant(self, name: str) -> float:
        if not self._accepts_nan:
            raise Refused
        return float(name)


def _same(ours: Any, theirs: Any) -> None:
    """Asserts that two values have the same types and contents, and that the internals of ours are
    valid.

    The bits of floats and the order of keys are compared too.
    """
    stack = [(ours, theirs)]
    while stack:
        a, b = stack.pop()
        assert type(a) is type(b), f"{a!r} for {b!r}"
        if isinstance(a, list):
            assert len(a) == len(b), f"{a!r} for {b!r}"
            stack.extend(zip(a, b, strict=True))
        elif isinstance(a, dict):
            assert len(a) == len(b) and list(a) == list(b), f"keys {list(a)!r} for {list(b)!r}"
            for key, same_key in zip(a, b, strict=True):
                check_text(key, same_key)
                # Found by the hash of another object, too.
                stack.append((a[same_key], b[key]))
            if any(gc.is_tracked(item) for item in a.values()):
                assert gc.is_tracked(a), "the collector does not know a dict"
        elif isinstance(a, Hooked):
            stack.append((a.of, b.of))
        elif isinstance(a, str):
            check_text(a, b)
        else:
            assert repr(a) == repr(b) and sys.getsizeof(a) == sys.getsizeof(b), f"{a!r} for {b!r}"


def _change(value: Any) -> None:
    """Changes all dicts and lists, since their tables may be copies of others."""
    stack = [value]
    while stack:
        one = stack.pop()
        if isinstance(one, Hooked):
            stack.append(one.of)
        elif isinstance(one, list):
            stack.extend(one)
            one.append(None)
            one.insert(0, one[-1])
        elif isinstance(one, dict):
            stack.extend(one.values())
            n = len(one)
            assert len(one.copy()) == n
            for key in list(one)[::2]:
                del one[key]
            for i in range(6):
                one[f"new {i}"] = i
            assert len(one) == n // 2 + 6


def _check_error(error: json.JSONDecodeError, data: Any, text: str | None) -> None:
    """Asserts that an error's position is inside of the text, and that its four positions agree."""
    assert error.msg and error.pos >= 0 and error.lineno >= 1 and error.colno >= 1, error
    if text is None:
        # Malformed: the text before the position is well-formed, or the position is before it.
        assert error.offset_bytes <= len(data) and error.pos <= error.offset_bytes, error
        return
    assert error.pos <= len(text), error
    before = text[: error.pos]
    assert error.offset_bytes == len(before.encode("utf-8", "surrogatepass")), error
    assert error.lineno == before.count("\n") + 1, error
    assert error.colno == error.pos - before.rfind("\n"), error
    assert error.doc == text


def _text_of(source: Source, n_more: int) -> bytes:
    """The rest of the input as a text.

    A byte 1 repeats the end of the text before it: the next two bytes are the number of bytes minus
    1 and the square root of the count.
    """
    out = bytearray()
    rest = source.data[source.at :]
    at = 0
    while at < len(rest):
        if rest[at] == 1 and at + 2 < len(rest) and out:
            part = bytes(out[-1 - rest[at + 1] :])
            out += part * min(rest[at + 2] ** 2, (_MOST_BYTES - len(out)) // len(part))
            at += 3
        else:
            out.append(rest[at])
            at += 1
    if n_more:
        n_more = min(n_more, _MOST_BYTES // (len(out) + 1))
        return b"[" + b",".join([bytes(out)] * (n_more + 1)) + b"]"
    return bytes(out)


def _hook_of(kind: int) -> Callable[[Any], Any] | None:
    def hook(of: Any) -> Any:
        # Code of others may read as well, and collect.
        json.loads('{"a":[1,"é",{"b":2}]}')
        if kind == 2 and len(of) % 4 == 3:
            raise Raised
        return Hooked(of)

    return hook if kind else None


def options_of(source: Source) -> dict[str, Any]:
    """Keyword arguments: often none."""
    head = source.byte()
    options: dict[str, Any] = {}
    if head & 3 == 0:
        return options
    choices: list[tuple[str, Any]] = [
        ("big_ints", ("float", "error", "exact")),
        ("duplicate_keys", ("error", "last")),
        ("errors", ("replace", "surrogatepass", "strict")),
        ("nan", ("literal", "error")),
        ("max_depth", (0, 1, 2, 8, 64, 65, 3000)),
        ("object_hook", (_hook_of(1), _hook_of(2), None)),
        ("parse_float", (_hook_of(1), _hook_of(2), None)),
    ]
    bits = source.byte()
    for i, (name, values) in enumerate(choices):
        if bits >> i & 1:
            options[name] = source.pick(values)
    return options


def _outcome(data: Any, text: str | None, options: dict[str, Any]) -> Any:
    """The value that `loads` returns, or the class of the error."""
    try:
        return json.loads(data, **options)
    except json.JSONDecodeError as error:
        _check_error(error, data, text)
        return Refused
    except Raised:
        return Raised


def _expected(text: str | None, options: dict[str, Any]) -> Any:
    """The value that the oracle expects, or the class of the error."""
    try:
        return Refused if text is None else Oracle(options).value(text)
    except (Refused, Raised) as error:
        return type(error)


def _compare(data: Any, text: str | None, options: dict[str, Any]) -> None:
    """Decodes the data, and compares the result with the oracle's.

    `text` is the decoded data; it is `None` if the data is malformed and must be refused.
    """
    count = sys.getrefcount(data)
    size = sys.getsizeof(data)
    ours = _outcome(data, text, options)
    assert sys.getrefcount(data) == count, "a reference to the text is not given back"
    assert sys.getsizeof(data) == size, "a cache of UTF-8 was left"
    theirs = _expected(text, options)
    if text is None and ours is Raised:
        # A hook was called for a value before the malformed sequence.
        return
    if theirs is Raised and ours is Refused:
        # Ours refuses depth and surrogates at their position, the oracle after the end: no hook may
        # raise before it.
        theirs = _expected(
            text, options | {name: _hook_of(1) for name in ("object_hook", "parse_float") if name in options}
        )
    if isinstance(ours, type) or isinstance(theirs, type):
        assert ours is theirs, f"{options}\nours {ours!r}\ntheirs {theirs!r}\n{data!r}"
    else:
        _same(ours, theirs)
        _change(ours)


def _lines(data: Any, options: dict[str, Any]) -> None:
    """Asserts that `loads_lines` returns the values that `loads` returns for each line."""
    feed, blanks = (b"\n", b" \t\r") if isinstance(data, bytes) else ("\n", " \t\r")
    ours, theirs = [], []
    try:
        for value in json.loads_lines(data, **options):
            ours.append(value)
    except (json.JSONDecodeError, Raised) as error:
        ours.append(type(error))
    try:
        for line in data.split(feed):
            if line.strip(blanks):
                theirs.append(json.loads(line, **options))
    except (json.JSONDecodeError, Raised) as error:
        theirs.append(type(error))
    _same(
        [repr(one) if isinstance(one, type) else one for one in ours],
        [repr(one) if isinstance(one, type) else one for one in theirs],
    )


def check(data: bytes) -> None:
    """Checks one input of the fuzzer; raises if a result is wrong."""
    source = Source(data)
    options = options_of(source)
    head = source.byte()
    raw = _text_of(source, (0, 0, 0, 0, 1, 2, 11, 90)[head & 7])
    try:
        text = raw.decode()
    except UnicodeDecodeError:
        text = None
    _compare(raw, text, options)
    form = head >> 3 & 3
    if form == 0:
        _compare(bytearray(raw), text, options)
    elif form == 1:
        at = head >> 5
        _compare(memoryview(bytes(at) + raw + b'"]}0')[at : at + len(raw)], text, options)
    elif form == 2:
        with onecopy.ledger():
            _compare(raw, text, options)
    # As a `str`, and where it is none, as one of Latin-1 or with surrogates.
    string = text
    if string is None and head >> 5 & 1:
        string = raw.decode("latin-1")
    elif string is None:
        string = raw.decode("utf-8", "surrogatepass" if _is_wtf8(raw) else "replace")
    _compare(string, string, options)
    if head >> 6 & 1:
        _lines(raw if head >> 7 else string, options)


def _is_wtf8(raw: bytes) -> bool:
    try:
        raw.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        return False
    return True
