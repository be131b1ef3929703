"""The rows of `make bench NAME=lengths`: conversions in each direction, encoding and script, of
texts from 8 to ten million characters."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from benches.engines.text import SCRIPTS, Row, sample
from onecopy import text

LENGTHS = (8, 16, 32, 64, 100, 128, 256, 512, 1000, 4096, 10_000, 100_000, 1_000_000, 10_000_000)

#: The encodings and their scripts.
ENCODINGS = {
    "utf-8": tuple(SCRIPTS),
    "utf-16-le": tuple(SCRIPTS),
    "utf-16-be": tuple(SCRIPTS),
    "utf-32-le": tuple(SCRIPTS),
    "utf-32-be": tuple(SCRIPTS),
    "latin-1": ("ASCII", "Latin-1"),
    "ascii": ("ASCII",),
}


def _pair(function: Callable[[Any], Any], method: Callable[[str], Any], encoding: str, value: Any) -> tuple[Any, Any]:
    return partial(function, value), partial(method, encoding)


def rows() -> Iterator[Row]:
    """All rows; the target of each is not to be slower than CPython."""
    for n in LENGTHS:
        for encoding, scripts in ENCODINGS.items():
            name = encoding.replace("-", "_")
            decode, encode = getattr(text, f"{name}_decode"), getattr(text, f"{name}_encode")
            for script in scripts:
                string = sample(script, n)
                encoded = string.encode(encoding)
                ours, peer = _pair(decode, encoded.decode, encoding, encoded)
                yield Row(f"{encoding} to str, {n:,}, {script}", ours, peer, 1)
                ours, peer = _pair(encode, string.encode, encoding, string)
                yield Row(f"str to {encoding}, {n:,}, {script}", ours, peer, 1)
