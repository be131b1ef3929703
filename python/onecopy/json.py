"""JSON (RFC 8259): Python objects to text and back, converted once.

| function | what it does |
|---|---|
| `loads` | any buffer or `str` to objects |
| `load` | what a file holds |
| `loads_lines` | a value for each line |
| `dumps`, `dumps_str` | an object as `bytes` or `str` |
| `dumps_into` | an object into a buffer that is there |
| `dump` | an object to a file or socket, in chunks |
| `dumps_rows` | rows as tuples, or columns, with one header |
| `dumps_lines` | the items of an iterable, a line each |
| `iter_chunks` | the items of an iterable, in chunks of bounded size |

What has no form in JSON raises `JSONEncodeError` or, for its type, `TypeError`, both with the path to it. What is not JSON raises `JSONDecodeError`, which is one of the standard library's.

>>> import onecopy
>>> onecopy.json.loads(b'{"name": "Z\\\\u00fcrich"}')
{'name': 'Zürich'}
>>> onecopy.json.dumps({"at": [47.37, 8.54]})
b'{"at":[47.37,8.54]}'
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from onecopy._core import (
    Fragment,
    JSONChunks,
    JSONLines,
    dump,
    dumps,
    dumps_into,
    dumps_lines,
    dumps_rows,
    dumps_str,
    iter_chunks,
    load,
    loads,
    loads_lines,
)

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

__all__ = [
    "Fragment",
    "JSONChunks",
    "JSONDecodeError",
    "JSONEncodeError",
    "JSONLines",
    "dump",
    "dumps",
    "dumps_into",
    "dumps_lines",
    "dumps_rows",
    "dumps_str",
    "iter_chunks",
    "load",
    "loads",
    "loads_lines",
]


class JSONEncodeError(ValueError):
    """A value has no form in JSON: NaN, a lone surrogate, containers too deep inside of each other."""


class JSONDecodeError(json.JSONDecodeError):
    """A text is no JSON, or not for who reads it.

    `msg` says what is wrong; `pos` is the character where, from 0, `lineno` and `colno` are its line and column, from 1, as in
    the standard library's class, of which this is one. `offset_bytes` is where it stands in UTF-8.
    """

    #: Byte of the text in UTF-8 where it went wrong, from 0.
    offset_bytes: int

    def __init__(
        self, msg: str, doc: str | ReadableBuffer, pos: int, lineno: int, colno: int, offset_bytes: int
    ) -> None:
        ValueError.__init__(self, f"{msg}: line {lineno} column {colno} (char {pos})")
        self.msg = msg
        self.pos = pos
        self.lineno = lineno
        self.colno = colno
        self.offset_bytes = offset_bytes
        self._data = doc

    @property
    def doc(self) -> str:  # type: ignore[override]
        """The text, decoded when it is asked for; what is malformed in it is replaced by U+FFFD."""
        if isinstance(self._data, str):
            return self._data
        return bytes(self._data).decode("utf-8", "replace")

    def __reduce__(self) -> tuple[type[JSONDecodeError], tuple[str, str, int, int, int, int]]:
        return self.__class__, (self.msg, self.doc, self.pos, self.lineno, self.colno, self.offset_bytes)
