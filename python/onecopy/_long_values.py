"""File objects for the deferred values of a row: the results of `Cursor.open_text` and
`Cursor.open_binary`.

A file reads its value from the driver in parts of 64 KiB. It cannot seek, and after the cursor has
moved to the next row, reading raises `InterfaceError`.

>>> cur = onecopy.connect("sqlite::memory:").execute("select 'one' || char(10) || 'two' as lines").defer("lines")
>>> for _ in cur:
...     print(list(cur.open_text("lines")))
['one\\n', 'two']
"""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from onecopy._core import LongValue

__all__ = ["BinaryValue", "TextValue", "open_binary", "open_text"]


class _Value(io.IOBase):
    """The base class of the file objects `TextValue` and `BinaryValue`, which read a deferred
    value."""

    def __init__(self, value: LongValue) -> None:
        self._value: LongValue | None = value

    def _open(self) -> LongValue:
        if self._value is None:
            raise ValueError("I/O operation on closed file.")
        return self._value

    def readable(self) -> bool:
        """Return true: a deferred value can be read."""
        self._open()
        return True

    def close(self) -> None:
        """Close the file; the remaining part of the value is not read."""
        self._value = None
        super().close()


class TextValue(_Value, io.TextIOBase):
    """The file object of a deferred text, read sequentially. Lines end with LF, and line ends are
    not translated."""

    def __init__(self, value: LongValue) -> None:
        super().__init__(value)
        self._part = ""
        self._at = 0

    def read(self, size: int | None = -1, /) -> str:
        """Return up to ``size`` characters, or all remaining characters if ``size`` is negative or
        ``None``. The result is shorter than ``size`` only at the end of the value."""
        value = self._open()
        left = -1 if size is None or size < 0 else size
        parts = []
        while left:
            if self._at == len(self._part):
                self._part, self._at = value.read_text(), 0
                if not self._part:
                    break
            end = len(self._part) if left < 0 else min(len(self._part), self._at + left)
            # A slice that covers the whole string is the string itself, so it is not copied.
            parts.append(self._part[self._at : end])
            if left > 0:
                left -= end - self._at
            self._at = end
        return "".join(parts)

    def readline(self, size: int | None = -1, /) -> str:  # type: ignore[override]  # the stub has no None
        """Return the characters up to and including the next LF, but at most ``size``
        characters."""
        value = self._open()
        left = -1 if size is None or size < 0 else size
        parts = []
        while left:
            if self._at == len(self._part):
                self._part, self._at = value.read_text(), 0
                if not self._part:
                    break
            end = self._part.find("\n", self._at) + 1
            stop = end or len(self._part)
            if left > 0:
                stop = min(stop, self._at + left)
                left -= stop - self._at
            parts.append(self._part[self._at : stop])
            self._at = stop
            if stop == end:
                break
        return "".join(parts)

    def close(self) -> None:
        """Close the file; the remaining part of the value is not read."""
        self._part = ""
        super().close()


class BinaryValue(_Value, io.RawIOBase):
    """A file object that reads a deferred binary value sequentially."""

    def readinto(self, buffer: Any, /) -> int:
        """Fill ``buffer`` from its start; return the number of bytes written to it, 0 at the end of
        the value."""
        return self._open().read_into(buffer)


def open_text(value: LongValue) -> TextValue:
    """Return a file that reads a deferred text."""
    return TextValue(value)


def open_binary(value: LongValue) -> io.BufferedReader:
    """Return a file that reads a deferred value of type `bytes`. The file has a buffer, which
    reads of 64 KiB or more bypass."""
    return io.BufferedReader(BinaryValue(value), 64 << 10)
