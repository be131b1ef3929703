"""JSON (RFC 8259): parsing and serialization, in which each value is converted once.

| function | what it does |
|---|---|
| `loads` | parse any buffer or `str` |
| `load` | parse a file |
| `loads_lines` | parse one value per line |
| `dumps`, `dumps_str` | serialize to `bytes` or `str` |
| `dumps_into` | serialize into a given buffer |
| `dump` | serialize to a file or socket, in chunks |
| `dumps_rows` | serialize rows as tuples, or columns, with one header |
| `dumps_lines` | serialize the items of an iterable, one per line |
| `iter_chunks` | serialize the items of an iterable as chunks of bounded size |

A value that JSON cannot represent raises `JSONEncodeError`, or `TypeError` if JSON cannot represent
the type of the value; both errors contain the path to the value. Invalid JSON raises
`JSONDecodeError`, which inherits from the class of the same name in the standard library.

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
    """Raised if a value cannot be represented in JSON, for example NaN, a lone surrogate, or too
    deep nesting."""


class JSONDecodeError(json.JSONDecodeError):
    """Raised if a text is not valid JSON, or exceeds the limits of the call.

    `msg` describes the error; `pos` is the index of the character, from 0, `lineno` and `colno` are
    its line and column, from 1, as in the standard library's class, from which this one inherits.
    `offset_bytes` is the position in bytes of the UTF-8 text, from 0.
    """

    #: Offset of the error in bytes of UTF-8, from 0.
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
        """The text that was parsed, as a `str`. It is decoded at the first access; malformed parts
        are replaced by U+FFFD."""
        if isinstance(self._data, str):
            return self._data
        return bytes(self._data).decode("utf-8", "replace")

    def __reduce__(self) -> tuple[type[JSONDecodeError], tuple[str, str, int, int, int, int]]:
        return self.__class__, (self.msg, self.doc, self.pos, self.lineno, self.colno, self.offset_bytes)
