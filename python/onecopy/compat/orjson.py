"""The API of orjson on top of `onecopy.json`: `from onecopy.compat import orjson`.

`dumps`, `loads`, `Fragment`, the exceptions and the options `OPT_*` are those of orjson 3; options
are combined with `|`. `docs/guide/move-from-orjson.md` in the repository lists the differences and
their reasons.

>>> from onecopy.compat import orjson
>>> orjson.dumps({"b": 1, "a": [None, 0.1]}, option=orjson.OPT_SORT_KEYS)
b'{"a":[null,0.1],"b":1}'
>>> orjson.loads(b'["\\\\u00e9"]')
['é']
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

from onecopy import json as _json
from onecopy.json import Fragment, JSONDecodeError

__all__ = [
    "OPT_APPEND_NEWLINE",
    "OPT_INDENT_2",
    "OPT_NAIVE_UTC",
    "OPT_NON_STR_KEYS",
    "OPT_OMIT_MICROSECONDS",
    "OPT_PASSTHROUGH_DATACLASS",
    "OPT_PASSTHROUGH_DATETIME",
    "OPT_PASSTHROUGH_SUBCLASS",
    "OPT_SERIALIZE_DATACLASS",
    "OPT_SERIALIZE_NUMPY",
    "OPT_SERIALIZE_UUID",
    "OPT_SORT_KEYS",
    "OPT_STRICT_INTEGER",
    "OPT_UTC_Z",
    "Fragment",
    "JSONDecodeError",
    "JSONEncodeError",
    "dumps",
    "loads",
]

OPT_INDENT_2 = 1 << 0
OPT_NAIVE_UTC = 1 << 1
OPT_NON_STR_KEYS = 1 << 2
OPT_OMIT_MICROSECONDS = 1 << 3
OPT_SERIALIZE_NUMPY = 1 << 4
OPT_SORT_KEYS = 1 << 5
OPT_STRICT_INTEGER = 1 << 6
OPT_UTC_Z = 1 << 7
OPT_PASSTHROUGH_SUBCLASS = 1 << 8
OPT_PASSTHROUGH_DATETIME = 1 << 9
OPT_APPEND_NEWLINE = 1 << 10
OPT_PASSTHROUGH_DATACLASS = 1 << 11
#: Options without an effect: they are always enabled, as in orjson 3.
OPT_SERIALIZE_DATACLASS = 0
OPT_SERIALIZE_UUID = 0

#: In orjson too, this name is `TypeError` itself.
JSONEncodeError = TypeError

_KNOWN = (1 << 12) - 1
_dumps = _json.dumps


#: Maps a combination of options that was used before to keyword arguments. A program uses one or
#: two combinations.
_asked: dict[int, dict[str, Any]] = {}


def _keywords(option: int) -> dict[str, Any]:
    """Return the keyword arguments of `onecopy.json` for a combination of orjson's options."""
    passed = []
    if option & OPT_PASSTHROUGH_DATACLASS:
        passed.append("dataclass")
    if option & OPT_PASSTHROUGH_DATETIME:
        passed.append("datetime")
    if option & OPT_PASSTHROUGH_SUBCLASS:
        passed.append("subclass")
    if not option & OPT_SERIALIZE_NUMPY:
        passed.append("numpy")
    words: dict[str, Any] = {"compat": "orjson", "passthrough": tuple(passed)}
    if option & OPT_STRICT_INTEGER:
        words["big_ints"] = "error53"
    if option & OPT_INDENT_2:
        words["indent"] = 2
    if option & OPT_NAIVE_UTC:
        words["naive_utc"] = True
    if option & OPT_NON_STR_KEYS:
        words["non_str_keys"] = True
    if option & OPT_OMIT_MICROSECONDS:
        words["omit_microseconds"] = True
    if option & OPT_SORT_KEYS:
        words["sort_keys"] = True
    if option & OPT_UTC_Z:
        words["utc_z"] = True
    _asked[option] = words
    return words


_NONE = _keywords(0)


def dumps(
    obj: Any,
    /,
    default: Callable[[Any], Any] | None = None,
    option: int | None = None,
) -> bytes:
    """Serialize an object as JSON in UTF-8.

    Args:
        obj: the object.
        default: called with each object that JSON cannot represent; its result is encoded instead.
        option: `OPT_*`, combined with `|`.

    Raises:
        JSONEncodeError: (a `TypeError`) a type cannot be represented, a string has a lone
            surrogate, an int exceeds 64 bits, or the nesting is too deep; or `default` raised an
            exception, which is then the `__cause__`.

    Copies: none; each string is converted once, into the result. Source: orjson's documentation,
    RFC 8259.

    >>> dumps({"a": (1, None, float("nan"))})
    b'{"a":[1,null,null]}'
    """
    try:
        if option is None:
            return _dumps(obj, default=default, **_NONE)
        if type(option) is not int or not 0 <= option <= _KNOWN:
            raise JSONEncodeError("Invalid opts")
        made = _dumps(obj, default=default, **(_asked.get(option) or _keywords(option)))
    except TypeError:
        raise
    except Exception as error:
        raise JSONEncodeError(str(error)) from error
    return made + b"\n" if option & OPT_APPEND_NEWLINE else made


def loads(obj: bytes | bytearray | memoryview | str, /) -> Any:
    """Parse JSON.

    Args:
        obj: UTF-8 in any buffer, or a `str`.

    Raises:
        JSONDecodeError: invalid JSON, or malformed text. `pos`, `lineno` and `colno` are the
            position.

    Copies: none; each string is converted once, into its new `str`. Source: orjson's documentation,
    RFC 8259.

    >>> loads('{"a":[18446744073709551616]}')
    {'a': [1.8446744073709552e+19]}
    """
    try:
        return _json.loads(obj, big_ints="float", max_depth=1024)
    except TypeError:
        _no_text()


def _no_text() -> NoReturn:
    raise JSONDecodeError("Input must be bytes, bytearray, memoryview, or str", "", 0, 1, 1, 0)
