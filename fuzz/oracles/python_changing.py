"""Checks reads of a buffer to which another thread writes: each result must be canonical text,
valid objects or an error.

The readers are those of `tests/support/changing.py`. The input selects a reader and the texts that
the writer alternates between, and contains one more text.
"""

from __future__ import annotations

import contextlib
import functools
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).resolve().parents[2]))

from tests.support import changing

_READERS = [pair for pair in changing.readers() if pair[0] != "insert_arrow"]
#: The number of reads for each input.
_TURNS = 6


@functools.cache
def _prepared(reader: str, encoding: str) -> tuple[changing.Read, list[bytes]]:
    return changing.prepare(reader, encoding)


@contextlib.contextmanager
def _written_to(buffer: bytearray, texts: list[bytes], first: int) -> Iterator[None]:
    """Lets a thread write to the buffer: the fuzz target's own one, or a Python thread without a
    fuzzer."""
    native: Any = sys.modules.get("native_writer")
    if native is None:
        with changing.writing(buffer, texts, first):
            yield
        return
    native.start(buffer, texts, first)
    try:
        yield
    finally:
        native.stop()


def check(data: bytes) -> None:
    """Checks one input of the fuzzer; raises if a resulting text is wrong."""
    if len(data) < 8:
        return
    read, texts = _prepared(*_READERS[data[0] % len(_READERS)])
    first = changing.first_change(texts)
    # The end is unchanged, since it may be a guard that is never written to.
    end = changing.N - changing.GUARD
    start = first + int.from_bytes(data[1:3], "little") % (end - first)
    own = data[6:]
    text = texts[data[3] % len(texts)]
    mixed = text[:start] + (own * (changing.N // len(own) + 1))[: end - start] + text[end:]
    buffer = bytearray(text)
    with _written_to(buffer, [*texts[data[4] % 3 :], mixed], first):
        for turn in range(data[5], data[5] + _TURNS):
            changing.attempt(read, buffer, turn)
