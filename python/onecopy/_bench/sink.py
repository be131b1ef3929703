"""`Sink`: the destination of the bytes that an engine writes."""

from __future__ import annotations

import io
import os
from typing import Any

__all__ = ["Sink"]


class Sink(io.RawIOBase):
    """A file object that counts the bytes that are written to it. With ``keep``, it also keeps the
    bytes.

    Engines that can only write to a named file write to the file ``path`` instead.
    """

    def __init__(self, path: str = os.devnull, *, keep: bool = False) -> None:
        self.path = path
        self._kept: list[bytes] | None = [] if keep else None

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        if self._kept is not None:
            self._kept.append(bytes(data))
        return len(data)

    def contents(self) -> bytes:
        """Return the bytes that were written to this object. If it kept none, return the contents
        of the file ``path``."""
        if self._kept:
            return b"".join(self._kept)
        with open(self.path, "rb") as file:
            return file.read()
