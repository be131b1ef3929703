"""The rows of `make bench NAME=text`: for each text, one call of onecopy and one of CPython."""

from __future__ import annotations

import array
import random
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from benches.engines.compiled import peer
from onecopy import text


class Row(NamedTuple):
    """A comparison of one call of onecopy with one of CPython."""

    name: str
    ours: Callable[[], Any]
    peer: Callable[[], Any]
    at_least: float | None = None
    aim: float | None = None
    #: Only the creation of the result is timed, not its deallocation.
    apart: bool = False


#: Characters of each script; texts are drawn from them with a fixed seed.
SCRIPTS = {
    "ASCII": "abcdefghij klmnopq",
    "Latin-1": "abcdefghij éüñßç",
    "Cyrillic": "абвгдежзийклмноп ",
    "CJK": "東京都漢字語文中国人一二三",
    "emoji": "😀😁😂🤣😃😄 a",
}


def sample(script: str, n: int, seed: int = 1) -> str:
    """A text of `n` characters that contains at least one character of the script's widest kind."""
    draw = random.Random(seed)
    alphabet = SCRIPTS[script]
    widest = max(alphabet)
    block = "".join(draw.choices(alphabet, k=min(n, 4096)))
    return (widest + (block * (n // max(len(block), 1) + 1)))[:n]


def _short() -> Iterator[Row]:
    targets = {
        "ASCII": (1.8, 2.3),
        "Cyrillic": (2.8, 5.0),
        "CJK": (2.8, 5.0),
        "emoji": (2.2, 5.0),
        "Latin-1": (None, None),
    }
    for n in (8, 16, 32):
        for script in SCRIPTS:
            string = sample(script, n)
            wide, utf8 = string.encode("utf-16-le"), string.encode()
            yield Row(
                f"utf-16-le decode, {n} chars, {script}",
                lambda f=text.utf_16_le_decode, b=wide: f(b),
                lambda b=wide: b.decode("utf-16-le"),
                14,
                18,
            )
            yield Row(
                f"general decode, {n} chars, {script}",
                lambda f=text.decode, b=wide: f(b, "utf-16-le"),
                lambda b=wide: b.decode("utf-16-le"),
            )
            yield Row(
                f"utf-16-le encode, {n} chars, {script}",
                lambda f=text.utf_16_le_encode, s=string: f(s),
                lambda s=string: s.encode("utf-16-le"),
                9,
                12,
            )
            yield Row(
                f"utf-8 decode, {n} chars, {script}",
                lambda f=text.utf_8_decode, b=utf8: f(b),
                lambda b=utf8: b.decode("utf-8"),
                *targets[script],
            )
            yield Row(
                f"utf-8 encode, {n} chars, {script}",
                lambda f=text.utf_8_encode, s=string: f(s),
                lambda s=string: s.encode("utf-8"),
            )


#: Bytes of a cell: 60 code units and a terminator, as a driver binds NVARCHAR(60).
STRIDE = 122

#: One `str` in a thousand of each column is kept alive. CPython returns an empty arena to the
#: system, and a new column would pay for its pages again; in a long-running process some object
#: remains.
_left: list[str] = []


def _column(cells: list[bytes]) -> tuple[bytes, Any]:
    lengths = array.array("q", map(len, cells))
    return b"".join(cell.ljust(STRIDE, b"\0") for cell in cells), lengths


def _cut(whole: bytes, at: int, n: int) -> bytes:
    """About `n` code units of UTF-16 text, from the unit `at` on; no surrogate pair is split."""
    units = array.array("H", whole[2 * at : 2 * (at + n)])
    if 0xDC00 <= units[0] < 0xE000:
        units = units[1:]
    if 0xD800 <= units[-1] < 0xDC00:
        units = units[:-1]
    return units.tobytes()


def _columns() -> Iterator[Row]:
    decode_cells = peer("decode_cells").decode_cells
    draw = random.Random(2)
    n = 100_000

    def row(name: str, cells: list[bytes], at_least: float, aim: float) -> Row:
        data, lengths = _column(cells)
        _left.extend(decode_cells(data, lengths, STRIDE)[::1000])
        return Row(
            name,
            lambda: text.decode_column(data, lengths, STRIDE),
            lambda: decode_cells(data, lengths, STRIDE),
            at_least,
            aim,
            apart=True,
        )

    for script, (at_least, aim) in {
        "ASCII": (3.4, 4.5),
        "Cyrillic": (5.5, 7.5),
        "CJK": (5.5, 7.5),
        "emoji": (2.5, 5),
    }.items():
        whole = sample(script, 200_000, 3).encode("utf-16-le")
        cells = [_cut(whole, draw.randrange(190_000), draw.randint(5, 60)) for _ in range(n)]
        yield row(f"decode_column, 100,000 cells of 5 to 60, {script}", cells, at_least, aim)
    few = [sample("Cyrillic", 5 + 6 * k, 10 + k).encode("utf-16-le") for k in range(10)]
    chosen = draw.choices(few, k=n)
    yield row("decode_column, 10 distinct values, random", chosen, 4, 8)
    yield row("decode_column, 10 distinct values, sorted", sorted(chosen), 10, 17)


def _long() -> Iterator[Row]:
    n = 100_000
    to_str_16 = {"ASCII": (8, 10), "Latin-1": (8, 10), "Cyrillic": (1.5, 1.7), "CJK": (8, 13), "emoji": (4, 10)}
    to_str_8 = {"ASCII": (None, None), "Latin-1": (10, 16), "Cyrillic": (6, 10), "CJK": (4, 8), "emoji": (4, 8)}
    from_str_8 = {"ASCII": (None, None), "Latin-1": (10, 15), "Cyrillic": (5, 8), "CJK": (4, 7), "emoji": (2, 4)}
    for script in SCRIPTS:
        string = sample(script, n)
        wide, utf8 = string.encode("utf-16-le"), string.encode()
        yield Row(
            f"utf-16-le to str, 100,000 chars, {script}",
            lambda b=wide: text.utf_16_le_decode(b),
            lambda b=wide: b.decode("utf-16-le"),
            *to_str_16[script],
        )
        yield Row(
            f"utf-8 to str, 100,000 chars, {script}",
            lambda b=utf8: text.utf_8_decode(b),
            lambda b=utf8: b.decode("utf-8"),
            *to_str_8[script],
        )
        yield Row(
            f"str to utf-8, 100,000 chars, {script}",
            lambda s=string: text.utf_8_encode(s),
            lambda s=string: s.encode("utf-8"),
            *from_str_8[script],
        )


def rows() -> Iterator[Row]:
    """All rows of the benchmark, in the order of its table."""
    yield from _short()
    yield from _columns()
    yield from _long()
