"""The API of UltraJSON on top of `onecopy.json`: `from onecopy.compat import ujson`.

`dumps` (also as `encode`), `loads` (`decode`), `dump`, `load` and `JSONDecodeError` are those of
ujson 6. `docs/guide/move-from-ujson.md` in the repository lists the differences and their reasons.

>>> from onecopy.compat import ujson
>>> ujson.dumps({"path": "a/b", "é": [1, float("nan")]})
'{"path":"a\\\\/b","\\\\u00e9":[1,NaN]}'
>>> ujson.loads('{"a":[NaN,2]}')
{'a': [nan, 2]}
"""

from __future__ import annotations

import operator as _operator
import re as _re
from collections.abc import Callable
from typing import Any, Protocol

from onecopy import json as _json
from onecopy.json import JSONDecodeError

__all__ = ["JSONDecodeError", "decode", "dump", "dumps", "encode", "load", "loads"]

#: The largest `indent`, as in ujson 6.1.
_MOST_INDENT = 1000
_INT_MAX = 2**31 - 1

_TOKEN = _re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"|,|: ?', _re.DOTALL)
#: A string, or a float from 1e-5 to 1e-4, which ujson writes with an exponent.
_SMALL = _re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"|(?<!\d)0\.0000(\d)(\d*)', _re.DOTALL)
_dumps_str = _json.dumps_str
_HTML = str.maketrans({"&": "\\u0026", "<": "\\u003c", ">": "\\u003e"})


class _Writable(Protocol):
    def write(self, text: str, /) -> object: ...


class _Readable(Protocol):
    def read(self) -> str | bytes: ...


class _Hook:
    """The function that is passed to `onecopy.json` as `default=`. It converts an object as ujson
    does: by the object's method `toDict`; without that, by its method `__json__`; without both, by
    the caller's `default`."""

    __slots__ = ("_default", "_reject_bytes", "raw")

    def __init__(self, default: Callable[[Any], Any] | None, reject_bytes: bool) -> None:
        self._default, self._reject_bytes, self.raw = default, reject_bytes, False

    def __call__(self, value: Any) -> Any:
        if isinstance(value, bytes) and not self._reject_bytes:
            return value.decode()
        if hasattr(value, "toDict"):
            made = value.toDict()
            if not isinstance(made, dict):
                raise TypeError("toDict() should return a dict")
            return made
        if hasattr(value, "__json__"):
            self.raw = True
            made = value.__json__()
            if isinstance(made, bytes):
                made = made.decode()
            if not isinstance(made, str):
                raise TypeError("expected string")
            return _json.Fragment(made)
        if self._default is None:
            raise TypeError(f"{value!r} is not JSON serializable")
        return self._default(value)


def _with_exponent(token: _re.Match[str]) -> str:
    first, rest = token.groups()
    return token[0] if first is None else f"{first}.{rest}e-5" if rest else f"{first}e-5"


def _checked_indent(indent: int) -> int:
    indent = _operator.index(indent)
    if not ~_INT_MAX <= indent <= _INT_MAX:
        raise OverflowError("`indent` does not fit into a C int")
    if indent > _MOST_INDENT:
        raise ValueError(f"`indent` is at most {_MOST_INDENT}")
    return indent


def _checked_separators(separators: tuple[str, str] | None) -> tuple[str, str]:
    if separators is None:
        return ",", ": "  # For an indent below 0.
    if not isinstance(separators, tuple):
        raise TypeError("`separators` must be a tuple or None")
    if len(separators) != 2:
        raise ValueError("`separators` must be a tuple of two")
    item, key = separators
    if not isinstance(item, str) or not isinstance(key, str):
        raise TypeError("`separators` must be two str")
    return item, key


def dumps(
    obj: Any,
    ensure_ascii: bool = True,
    encode_html_chars: bool = False,
    escape_forward_slashes: bool = True,
    sort_keys: bool = False,
    indent: int = 0,
    allow_nan: bool = True,
    reject_bytes: bool = True,
    default: Callable[[Any], Any] | None = None,
    separators: tuple[str, str] | None = None,
) -> str:
    """Serialize an object as JSON in a `str`.

    Args:
        obj: the object; its `toDict` or `__json__` is called if it has one.
        ensure_ascii: escape non-ASCII characters as `\\uXXXX`.
        encode_html_chars: escape `<`, `>` and `&` in the same way.
        escape_forward_slashes: escape `/` as `\\/`.
        sort_keys: sort keys by code point.
        indent: spaces per level, up to 1000; 0: one line; below 0: one line with a space after each
            colon.
        allow_nan: write `NaN`, `Infinity` and `-Infinity`, which RFC 8259 does not allow.
        reject_bytes: raise `TypeError` for `bytes`; otherwise they are decoded from UTF-8.
        default: called with each object that JSON cannot represent; its result is encoded instead.
        separators: the separators of items and of keys as a tuple; None: `(",", ":")`, with a space
            after the colon if there is an indent.

    Raises:
        TypeError: a type cannot be represented in JSON; `separators` is not a tuple of `str`.
        ValueError: `indent` is over 1000; `separators` does not have two items.
        OverflowError: NaN or an infinity if `allow_nan` is false; the nesting is too deep; `indent`
            does not fit into a C int.

    Copies: one for each given option that rewrites the JSON text (slashes, HTML characters,
    separators); otherwise none. Source: ujson's documentation, and RFC 8259.

    >>> dumps(["/é"], ensure_ascii=False, escape_forward_slashes=False)
    '["/é"]'
    """
    hook = _Hook(default, bool(reject_bytes))
    escape_forward_slashes, encode_html_chars = bool(escape_forward_slashes), bool(encode_html_chars)
    words: dict[str, Any] = {"nan": "literal"} if allow_nan else {}
    if sort_keys:
        words["sort_keys"] = True
    if type(indent) is not int or indent != 0:
        indent = _checked_indent(indent)
        if indent > 0:
            words["indent"] = indent
    texts = None
    if separators is not None or indent < 0:
        item, key = _checked_separators(separators)
        if (item, key) != (",", ": " if indent > 0 else ":"):
            texts = {",": item, ":": key, ": ": key}
    try:
        made = _dumps_str(obj, default=hook, ensure_ascii=ensure_ascii, compat="ujson", **words)
    except _json.JSONEncodeError as error:
        raise OverflowError(str(error)) from error
    if "0.0000" in made and not hook.raw:
        made = _SMALL.sub(_with_exponent, made)
    # In JSON, the characters that are replaced here occur only in strings.
    if escape_forward_slashes and "/" in made:
        made = (made.replace("\\/", "/") if hook.raw else made).replace("/", "\\/")
    if encode_html_chars:
        made = made.translate(_HTML)
    if texts is not None:
        made = _TOKEN.sub(lambda token: texts.get(token[0], token[0]), made)
    return made


def loads(obj: str | bytes | bytearray) -> Any:
    """Parse JSON; `NaN`, `Infinity`, `-Infinity` and lone surrogates are accepted.

    Args:
        obj: UTF-8 in any buffer, or a `str`.

    Raises:
        JSONDecodeError: invalid JSON.

    Copies: none; each string is converted once, into its new `str`. Source: ujson's documentation,
    RFC 8259.

    >>> loads(b'[1, "\\\\u00e9"]')
    [1, 'é']
    """
    return _json.loads(obj, nan="literal", errors="surrogatepass")


def dump(
    obj: Any,
    fp: _Writable,
    /,
    *,
    ensure_ascii: bool = True,
    encode_html_chars: bool = False,
    escape_forward_slashes: bool = True,
    sort_keys: bool = False,
    indent: int = 0,
    allow_nan: bool = True,
    reject_bytes: bool = True,
    default: Callable[[Any], Any] | None = None,
    separators: tuple[str, str] | None = None,
) -> None:
    """Serialize an object as JSON to a text file.

    Args:
        obj: the object.
        fp: its `write` is called once, with a `str`.
        ensure_ascii, encode_html_chars, escape_forward_slashes, sort_keys, indent, allow_nan,
        reject_bytes, default, separators: as in `dumps`.

    Raises:
        TypeError: `fp` has no `write`; otherwise as in `dumps`.

    Copies: those of `dumps`, and those of the file's `write`. Source: ujson's documentation.

    >>> import io
    >>> out = io.StringIO()
    >>> dump({"a": 1}, out)
    >>> out.getvalue()
    '{"a":1}'
    """
    write = getattr(fp, "write", None)
    if not callable(write):
        raise TypeError("expected file")
    write(
        dumps(
            obj,
            ensure_ascii=ensure_ascii,
            encode_html_chars=encode_html_chars,
            escape_forward_slashes=escape_forward_slashes,
            sort_keys=sort_keys,
            indent=indent,
            allow_nan=allow_nan,
            reject_bytes=reject_bytes,
            default=default,
            separators=separators,
        )
    )


def load(fp: _Readable, /) -> Any:
    """Parse JSON from a file.

    Args:
        fp: its `read` is called once.

    Raises:
        TypeError: `fp` has no `read`; otherwise as in `loads`.

    Copies: those of the file's `read`, and those of `loads`. Source: ujson's documentation.

    >>> import io
    >>> load(io.StringIO('{"a":[]}'))
    {'a': []}
    """
    read = getattr(fp, "read", None)
    if not callable(read):
        raise TypeError("expected file")
    return loads(read())


#: ujson's other names.
encode = dumps
decode = loads
