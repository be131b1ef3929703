"""Compares `onecopy.json.dumps` and related functions with the standard library's `json`.

Options, types and number formats that the standard library does not support are implemented here;
comments have the reasons.
"""

from __future__ import annotations

import datetime
import decimal
import enum
import json as standard
import re
import sys
import uuid
from collections.abc import Callable
from typing import Any, NoReturn

import onecopy
from objects import MOST_CHARS, Maker, Plain, Raised, Slotted, Source, Strange, change, check_text
from onecopy import json

#: Objects and characters that are written at most: one container in another many times is soon too
#: many.
_MOST_VISITED = 20_000
_MOST_TEXT = 20 * MOST_CHARS
#: CPython's limit for the digits of an int; onecopy has no such limit.
_LEAST_DIGITS_LIMIT = 640

_RAW = re.compile('"raw-7f3a9c-([0-9]+)-"')
_SURROGATE = re.compile("[\ud800-\udfff]")
_ESCAPE = re.compile(r"\\(u007f|.)", re.S)

#: Values of 20,000 characters in UCS-2 and in ASCII, from which `dumps_str` predicts the next kind.
_WIDE, _NARROW = ["Ж" * 100] * 200, ["a" * 100] * 200

sys.setrecursionlimit(12_000)
sys.set_int_max_str_digits(0)


class TooMuch(Exception):
    """The object is too large to be compared."""


class Refused(Exception):
    """The object cannot be encoded as JSON; the argument is the class of the expected error."""


def _not_json() -> NoReturn:
    raise Refused(json.JSONEncodeError)


class Pairs(dict):  # type: ignore[type-arg]
    """A dict for the standard library's encoder that may have duplicate keys."""

    def __init__(self, members: list[tuple[str, Any]]) -> None:
        super().__init__(members)
        self._members = members

    def items(self) -> Any:
        return self._members


class Model:
    """Replaces an object by plain objects, which the standard library encodes as expected."""

    def __init__(self, options: dict[str, Any]) -> None:
        self._options = options
        self._max_depth = options.get("max_depth", 1000)
        self._nan = options.get("nan", "error")
        self._errors = options.get("errors", "strict")
        self._big_ints = options.get("big_ints", "exact")
        self._passed = options.get("passthrough", ())
        self._default = options.get("default")
        self._raw: list[str] = []
        self._n_visited = 0
        self._n_text = 0
        self._n_held = 0

    def text_of(self, value: Any) -> bytes:
        """The expected JSON of an object."""
        plain = self._of(value, 0)
        indent = self._options.get("indent")
        escaped = bool(self._options.get("ensure_ascii"))
        text = standard.dumps(
            plain,
            ensure_ascii=escaped,
            indent=indent,
            # With line breaks the standard library writes no space after a comma.
            separators=(",", ":") if indent is None else (",", ": "),
        )
        if escaped:
            # DEL is ASCII, and nothing that JSON wants escaped.
            text = _ESCAPE.sub(lambda found: "\x7f" if found[1] == "u007f" else found[0], text)
        # The standard library puts surrogates as they are where it escapes nothing.
        text = _SURROGATE.sub(lambda found: f"\\u{ord(found[0]):04x}", text)
        return _RAW.sub(lambda found: self._raw[int(found[1])], text).encode()

    def _token(self, text: str) -> str:
        """A placeholder for text that is JSON already; it is replaced at the end."""
        self._raw.append(text)
        return f"raw-7f3a9c-{len(self._raw) - 1}-"

    def _text(self, text: str) -> str:
        text = str.__str__(text)
        self._n_text += len(text)
        if self._n_text > _MOST_TEXT:
            raise TooMuch
        if _SURROGATE.search(text) is None or self._errors == "backslashreplace":
            return text
        if self._errors == "strict":
            _not_json()
        return _SURROGATE.sub("\ufffd", text)

    def _not_finite(self, name: str) -> Any:
        """NaN or an infinity as the option `nan` requires, since RFC 8259 has no such numbers."""
        if self._nan == "error":
            _not_json()
        if self._nan == "literal":
            return self._token(name)
        return None if self._nan == "null" else name

    def _float(self, value: float) -> Any:
        if value != value:
            return self._not_finite("NaN")
        if value in (float("inf"), -float("inf")):
            return self._not_finite("Infinity" if value > 0 else "-Infinity")
        # The fewest digits, as the standard library has them; but `0.00001` for `1e-05`, and `1e-6`
        # for `1e-06`.
        digits, e, exponent = repr(value).partition("e-0")
        if not e:
            return value
        if exponent != "5":
            return self._token(f"{digits}e-{exponent}")
        sign = "-" if digits[0] == "-" else ""
        return self._token(f"{sign}0.0000{digits.lstrip('-').replace('.', '')}")

    def _int(self, value: int) -> Any:
        if self._big_ints in ("text53", "error53") and abs(value) >= 1 << 53:
            return str(value) if self._big_ints == "text53" else _not_json()
        if self._big_ints == "error" and not -(1 << 63) <= value < 1 << 64:
            _not_json()
        return value

    def _temporal(self, value: Any) -> str | None:
        """The expected text of a date or time; None for other objects.

        RFC 3339 allows only offsets of whole minutes, less than a day, so an offset is rounded. It
        has no times of day with an offset.
        """
        if isinstance(value, datetime.datetime):
            offset = value.utcoffset()
            if value.tzinfo is None and self._options.get("naive_utc"):
                offset = datetime.timedelta(0)
            text = self._seconds(value.replace(tzinfo=None))
            if offset is not None:
                micros = offset // datetime.timedelta(microseconds=1)
                minutes = min((abs(micros) + 30_000_000) // 60_000_000, 24 * 60 - 1)
                sign = "-" if micros < 0 and minutes else "+"
                zone = f"{sign}{minutes // 60:02}:{minutes % 60:02}"
                text += "Z" if self._options.get("utc_z") and zone == "+00:00" else zone
            return text
        if isinstance(value, datetime.date):
            return value.isoformat()
        if isinstance(value, datetime.time):
            if value.tzinfo is not None:
                _not_json()
            return self._seconds(value)
        return None

    def _seconds(self, value: Any) -> str:
        if self._options.get("omit_microseconds"):
            value = value.replace(microsecond=0)
        return str(value.isoformat())

    def _key(self, key: Any, times: int = 0) -> str:
        """A key as text. onecopy converts keys by an option, and more types than the standard
        library."""
        if isinstance(key, str):
            return str.__str__(key)
        if not self._options.get("non_str_keys"):
            raise Refused(TypeError)
        if key is None or isinstance(key, bool):
            return {None: "null", True: "true", False: "false"}[key]
        if isinstance(key, enum.Enum):
            return self._key(key.value, times + 1)
        if isinstance(key, int):
            return int.__repr__(key)
        if isinstance(key, float):
            made = self._float(float(key))
            if isinstance(made, str):
                return self._raw[int(made.split("-")[2])] if made.startswith("raw-") else made
            return "null" if made is None else repr(made)
        temporal = self._temporal(key)
        if temporal is not None:
            return temporal
        if isinstance(key, (uuid.UUID, decimal.Decimal)):
            return str(key)
        if self._default is not None and times < 16:
            return self._key(self._default(key), times + 1)
        raise Refused(TypeError)

    def _pairs(self, members: Any, depth: int) -> Any:
        """The members in order. With `sort_keys` all keys are converted first, since they may have
        any type."""
        if self._options.get("sort_keys"):
            members = sorted(((self._key(key), value) for key, value in members), key=lambda member: member[0])
        return Pairs([(self._text(self._key(key)), self._of(value, depth + 1)) for key, value in members])

    def _enter(self, depth: int) -> None:
        if depth >= self._max_depth:
            _not_json()

    def _instead(self, value: Any, depth: int) -> Any:
        """The expected form of an object's replacement, which may be replaced again, up to the
        nesting limit."""
        if self._n_held > self._max_depth:
            _not_json()
        self._n_held += 1
        made = self._of(value, depth)
        self._n_held -= 1
        return made

    def _of(self, value: Any, depth: int) -> Any:
        self._n_visited += 1
        if self._n_visited > _MOST_VISITED:
            raise TooMuch
        kind = type(value)
        if kind is str:
            return self._text(value)
        if value is None or kind is bool:
            return value
        if kind is int:
            return self._int(value)
        if kind is float:
            return self._float(value)
        if kind is dict:
            self._enter(depth)
            return self._pairs(value.items(), depth)
        if kind in (list, tuple):
            self._enter(depth)
            return [self._of(item, depth + 1) for item in value]
        return self._other(value, depth)

    def _other(self, value: Any, depth: int) -> Any:
        """The expected form of an object that the standard library does not support or encodes
        differently.

        The order of the checks is the encoder's.
        """
        passed = self._passed
        if "datetime" not in passed and (temporal := self._temporal(value)) is not None:
            return temporal
        if "uuid" not in passed and type(value) is uuid.UUID:
            return str(value)
        if "decimal" not in passed and isinstance(value, decimal.Decimal):
            if value.is_finite():
                return self._token(str(value))
            return self._not_finite("NaN" if value.is_nan() else "Infinity" if value > 0 else "-Infinity")
        if isinstance(value, json.Fragment):
            contents = value.contents
            return self._token(contents if isinstance(contents, str) else bytes(contents).decode())
        if "enum" not in passed and isinstance(value, enum.Enum):
            return self._instead(value.value, depth)
        if "subclass" not in passed:
            if isinstance(value, str):
                return self._instead(str.__str__(value), depth)
            if isinstance(value, int):
                return self._instead(int.__int__(value), depth)
            if isinstance(value, float):
                if "float" not in passed:
                    return self._instead(float.__float__(value), depth)
            elif isinstance(value, list) or (isinstance(value, tuple) and "tuple" not in passed):
                self._enter(depth)
                return [self._of(item, depth + 1) for item in value]
            elif isinstance(value, dict):
                # All keys come first, since `items` is called.
                members = [(self._key(key), item) for key, item in value.items()]
                self._enter(depth)
                return self._pairs(members, depth)
        if "dataclass" not in passed and isinstance(value, (Plain, Slotted)):
            names = ("one", "_other") if isinstance(value, Plain) else ("größe", "zwei")
            private = self._options.get("private_fields", True)
            self._enter(depth)
            return self._pairs([(name, getattr(value, name)) for name in names if private or name[0] != "_"], depth)
        if self._default is not None:
            return self._instead(self._default(value), depth)
        raise Refused(TypeError)


def default(value: Any) -> Any:
    """The replacement of an object that cannot be encoded as JSON."""
    if isinstance(value, Strange):
        return value.act()
    # The result depends only on the object's type.
    return [type(value).__name__, 0]


def _unchanged(value: Any) -> Any:
    """As `default`, but without changing a container."""
    return None if isinstance(value, Strange) and value.changes else default(value)


def options_of(source: Source) -> dict[str, Any]:
    """Keyword arguments: none, a few, or any combination."""
    options: dict[str, Any] = {}
    head = source.byte()
    if head & 1:
        options["default"] = default
    if head & 6 == 0:
        return options
    choices: list[tuple[str, Any]] = [
        ("sort_keys", (True, False)),
        ("indent", (None, 0, 1, 2, 4, "\t", " \n", 9)),
        ("ensure_ascii", (True, False)),
        ("nan", ("null", "text", "error", "literal")),
        ("errors", ("backslashreplace", "replace", "strict")),
        ("big_ints", ("text53", "error", "error53", "exact")),
        ("non_str_keys", (True, False)),
        ("max_depth", (0, 1, 2, 3, 8, 9, 1000, 1500)),
        ("naive_utc", (True, False)),
        ("utc_z", (True, False)),
        ("omit_microseconds", (True, False)),
        ("private_fields", (False, True)),
    ]
    # Bits say which: two options at a time are as likely as all.
    bits = source.byte() | source.byte() << 8
    for i, (name, values) in enumerate(choices):
        if bits >> i & 1:
            options[name] = source.pick(values)
    if bits >> 12 & 1:
        names = ("dataclass", "datetime", "decimal", "enum", "float", "numpy", "subclass", "tuple", "uuid")
        which = source.byte() | source.byte() << 8
        options["passthrough"] = tuple(name for i, name in enumerate(names) if which >> i & 1)
    return options


def outcome(call: Callable[[], Any]) -> Any:
    """The result of a call, or the class of its exception.

    The exception itself would hold references to the objects.
    """
    try:
        return call()
    except (json.JSONEncodeError, TypeError, Raised, RuntimeError, BufferError) as error:
        return _class_of(error)


def _class_of(error: Exception) -> type[Exception]:
    assert str(error) or isinstance(error, Raised), "an error without a word"
    return type(error)


class _File:
    """A file object that may change the encoded value during a write."""

    def __init__(self, act: Callable[[], Any] | None) -> None:
        self.parts: list[bytes] = []
        self._act = act

    def write(self, data: bytes) -> None:
        self.parts.append(bytes(data))
        if self._act is not None:
            self._act()


def _written(value: Any, options: dict[str, Any], act: Callable[[], Any] | None = None) -> bytes:
    """The bytes that `json.dump` writes to a file."""
    file = _File(act)
    n = json.dump(value, file, **options)
    assert n == sum(map(len, file.parts))
    return b"".join(file.parts)


def _into(value: Any, options: dict[str, Any], len_bytes: int, at: int) -> bytes:
    place = bytearray(at + len_bytes)
    n = json.dumps_into(value, place, at, **options)
    assert isinstance(n, int) and place[:at] == bytes(at)
    return bytes(place[at : at + n])


def _same_everywhere(value: Any, options: dict[str, Any], ours: Any, source: Source) -> None:
    """Asserts that all encoding functions return the bytes `ours`, or raise the same class of
    error."""
    # `dumps_str` predicts the storage kind from the previous result; both predictions are tested.
    for before in (_WIDE, _NARROW):
        json.dumps_str(before)
        guessed = outcome(lambda: json.dumps_str(value, **options))
        if before is _WIDE:
            text = guessed
        else:
            assert guessed == text, f"dumps_str, guessed narrow: {guessed!r}"
    if isinstance(text, str) and isinstance(ours, bytes):
        check_text(text, ours.decode())
    else:
        assert ours == text, f"dumps_str: {text!r}"
    assert ours == (written := outcome(lambda: _written(value, options))), f"dump: {written!r}"
    if options.get("indent") is None:
        lines = outcome(lambda: json.dumps_lines((value,), **options))
        assert lines == (ours + b"\n" if isinstance(ours, bytes) else ours), f"dumps_lines: {lines!r}"
    with onecopy.ledger():
        counted = outcome(lambda: json.dumps(value, **options))
    assert ours == counted, f"with a ledger: {counted!r}"
    if not isinstance(ours, bytes):
        return
    at, more = source.below(70), source.pick((0, 0, 1, 60, 1000))
    into = outcome(lambda: _into(value, options, len(ours) + more, at))
    assert ours == into, f"dumps_into: {into!r}"
    if len(ours) > 1:
        assert outcome(lambda: _into(value, options, len(ours) - 1, at)) is BufferError
    if type(value) is list and options.get("indent") is None:
        size = source.pick((1, 7, 100, 5000))
        chunks = outcome(lambda: list(json.iter_chunks(iter(value), chunk_bytes=size, **options)))
        assert isinstance(chunks, list) and all(chunks) and b"".join(chunks) == ours, f"iter_chunks: {chunks!r}"
    if type(value) is list and value and all(type(row) is dict for row in value):
        names = list(value[0])
        same_names = all(list(row) == names and all(type(name) is str for name in row) for row in value)
        if names and same_names and not any(_SURROGATE.search(name) for name in names):
            rows = [tuple(row.values()) for row in value]
            columns = [[row[i] for row in rows] for i in range(len(names))]
            made = outcome(lambda: json.dumps_rows(names, rows, **options))
            assert made == ours, f"dumps_rows: {made!r}"
            made = outcome(lambda: json.dumps_rows(names, columns, columns=True, **options))
            assert made == ours, f"dumps_rows of columns: {made!r}"


def _is_json_or_refused(value: Any, options: dict[str, Any], act: Callable[[], Any] | None) -> None:
    """Encodes a value that changes meanwhile: asserts that the result is valid JSON or a known
    error."""
    calls: list[Callable[[], Any]] = [
        lambda: json.dumps(value, **options),
        lambda: json.dumps_str(value, **options).encode(),
        lambda: _written(value, options, act),
        lambda: _into(value, options, 5000, 3),
    ]
    for call in calls:
        ours = outcome(call)
        if isinstance(ours, bytes):
            standard.loads(ours)


def _expected(value: Any, options: dict[str, Any]) -> Any:
    """The expected JSON, or the class of the expected error."""
    try:
        return Model(options).text_of(value)
    except Refused as error:
        return error.args[0]
    except Raised:
        return Raised


def _is_of_this_input(one: Any) -> bool:
    """Returns true if only this input has references to the object, so that they can be counted.

    Earlier inputs may have left references to usual keys, and CPython has references to small ints.
    """
    if isinstance(one, str):
        return len(one) > 40
    if isinstance(one, (int, tuple)):
        return not isinstance(one, enum.Enum) and sys.getsizeof(one) > 60
    return isinstance(one, (list, dict, float, Strange, Plain, Slotted, uuid.UUID, datetime.date))


def check(data: bytes) -> None:
    """Checks one input of the fuzzer; raises if a result is wrong."""
    source = Source(data)
    options = options_of(source)
    maker = Maker(source)
    value = maker.value()
    made = maker.made
    try:
        # If it is to change, only its size is compared.
        expected = _expected(value, options | {"default": _unchanged} if maker.changes else options)
    except TooMuch:
        return
    if maker.changes:
        containers = [one for one in made if isinstance(one, (list, dict))]
        at, how, more = source.byte(), source.below(8), source.byte()
        act = (lambda: change(containers[at % len(containers)], how, more)) if containers else None
        _is_json_or_refused(value, options, act)
        return
    counted = [one for one in made if _is_of_this_input(one)]
    counts = [sys.getrefcount(one) for one in counted]
    sizes = [sys.getsizeof(one) for one in made if isinstance(one, str)]
    sys.set_int_max_str_digits(_LEAST_DIGITS_LIMIT)
    try:
        ours = outcome(lambda: json.dumps(value, **options))
        assert ours == expected, f"{options}\nours {ours!r}\nexpected {expected!r}"
        _same_everywhere(value, options, ours, source)
    finally:
        sys.set_int_max_str_digits(0)
    assert counts == [sys.getrefcount(one) for one in counted], "references are not given back"
    # The size of a `str` that is not ASCII includes its cached UTF-8.
    assert sizes == [sys.getsizeof(one) for one in made if isinstance(one, str)], "a cache of UTF-8 was left"
