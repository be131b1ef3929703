"""Text between buffers and `str`, converted once.

| function | what it does |
|---|---|
| `decode`, `utf_8_decode`, … | any buffer to `str` |
| `encode`, `utf_8_encode`, … | `str` to `bytes` |
| `encode_into`, `encoded_length` | `str` into a buffer that is there |
| `decode_column` | a column of fixed stride to a list |
| `is_valid`, `find_invalid` | whether text is well-formed, and where it is not |
| `utf8_view`, `slices` | views, without a copy |

Well-formed text is converted by vector kernels, straight into the new object; what is malformed is handed to the codecs of
CPython, so that exceptions, positions and replacements are the same.

>>> import onecopy
>>> onecopy.text.decode(b"Z\\x00\\xfc\\x00", "utf-16-le")
'Zü'
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from onecopy._core import (
    ascii_decode,
    ascii_encode,
    decode,
    decode_column,
    encode,
    encode_into,
    encoded_length,
    is_valid,
    latin_1_decode,
    latin_1_encode,
    utf8_view,
    utf_8_decode,
    utf_8_encode,
    utf_16_be_decode,
    utf_16_be_encode,
    utf_16_decode,
    utf_16_encode,
    utf_16_le_decode,
    utf_16_le_encode,
    utf_32_be_decode,
    utf_32_be_encode,
    utf_32_decode,
    utf_32_encode,
    utf_32_le_decode,
    utf_32_le_encode,
)

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

__all__ = [
    "Invalid",
    "ascii_decode",
    "ascii_encode",
    "decode",
    "decode_column",
    "encode",
    "encode_into",
    "encoded_length",
    "find_invalid",
    "is_valid",
    "latin_1_decode",
    "latin_1_encode",
    "slices",
    "utf8_view",
    "utf_8_decode",
    "utf_8_encode",
    "utf_16_be_decode",
    "utf_16_be_encode",
    "utf_16_decode",
    "utf_16_encode",
    "utf_16_le_decode",
    "utf_16_le_encode",
    "utf_32_be_decode",
    "utf_32_be_encode",
    "utf_32_decode",
    "utf_32_encode",
    "utf_32_le_decode",
    "utf_32_le_encode",
]


class Invalid(NamedTuple):
    """Where a text is malformed, as `UnicodeDecodeError` tells it."""

    #: First byte of what is malformed, from 0.
    start: int
    #: First byte behind it.
    end: int
    #: Why, in the words of CPython's codec.
    reason: str


def find_invalid(buffer: ReadableBuffer, encoding: str = "utf-8") -> Invalid | None:
    """The first malformed sequence of a buffer; None where the text is well-formed.

    >>> find_invalid(b"ab\\xff")
    Invalid(start=2, end=3, reason='invalid start byte')
    """
    if is_valid(buffer, encoding):
        return None
    try:
        decode(buffer, encoding)
    except UnicodeDecodeError as error:
        return Invalid(error.start, error.end, error.reason)
    return None  # Another thread has changed the buffer since.


def slices(buffer: ReadableBuffer, size: int) -> Iterator[memoryview]:
    """Views of `size` elements each of a buffer, the last one shorter: no bytes are copied.

    The views keep format and shape of the buffer, along whose first dimension they are cut, and are writable where it is.

    >>> [bytes(part) for part in slices(b"abcde", 2)]
    [b'ab', b'cd', b'e']
    """
    if size < 1:
        raise ValueError(f"size must be at least 1, not {size}")
    view = memoryview(buffer)
    return (view[start : start + size] for start in range(0, len(view), size))
