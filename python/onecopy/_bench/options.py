"""The arguments of `onecopy bench`."""

from __future__ import annotations

import argparse
from collections.abc import Callable

from onecopy._bench.engines.peers import WAYS

__all__ = ["DEFAULT_WAYS", "parser"]

#: The ways that are measured by default.
DEFAULT_WAYS = ("rows", "iterate", "json", "csv", "arrow")
_ROWS = 100_000
#: The largest value that `--time-limit` accepts, in seconds.
_MOST_SECONDS = 86_400


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command's arguments."""
    lines = "\n".join(f"  {way:9} {title}" for way, title in WAYS.items())
    made = argparse.ArgumentParser(
        prog="onecopy bench",
        description="Read the rows of a database with onecopy and with the installed libraries for this database,\n"
        "and compare time, memory and results.",
        epilog=f"Ways:\n{lines}\n\nExit codes: 0 ok, 1 failed, 2 usage, 3 cannot connect, 130 stopped.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = made.add_argument
    add("database", metavar="DATABASE", help="as for `onecopy query`; @FILE reads it from a file")
    add("sql", metavar="SQL", nargs="?", help="a query, or @FILE (default: the rows of the largest table)")
    rows = f"read the first N rows, by `limit`; `all` reads all rows (default: {_ROWS})"
    add("--rows", type=_rows, default=_ROWS, metavar="N", help=rows)
    add(
        "--ways",
        type=_ways,
        default=list(DEFAULT_WAYS),
        metavar="WAY,…",
        help=f"the ways to read, or `all` (default: {','.join(DEFAULT_WAYS)})",
    )
    add("--rounds", type=_count, default=5, metavar="N", help="number of measured runs of each engine (default: 5)")
    add(
        "--time-limit",
        type=_seconds,
        default=60.0,
        metavar="S",
        help="longest time of one answer of an engine, in seconds (default: 60)",
    )
    add("--svg", metavar="FILE", help="write a plot to this file")
    add("--json", action="store_true", help="print the figures as JSON")
    add("-q", "--quiet", action="store_true", help="write only errors to stderr")
    return made


def _number(kind: Callable[[str], float], text: str, low: float, high: float, form: str) -> float:
    try:
        value = kind(text)
    except ValueError:
        value = low - 1
    if not low <= value <= high:
        raise argparse.ArgumentTypeError(f"`{text}` is not {form}")
    return value


def _rows(text: str) -> int | None:
    return None if text == "all" else int(_number(int, text, 1, 2**62, "a number of rows, or `all`"))


def _count(text: str) -> int:
    return int(_number(int, text, 1, 1000, "a number from 1 to 1000"))


def _seconds(text: str) -> float:
    return _number(float, text, 0.001, _MOST_SECONDS, f"a number of seconds from 0.001 to {_MOST_SECONDS}")


def _ways(text: str) -> list[str]:
    if text == "all":
        return list(WAYS)
    chosen = [way.strip() for way in text.split(",")]
    for way in chosen:
        if way not in WAYS:
            raise argparse.ArgumentTypeError(f"`{way}` is not a way\nuse {', '.join(WAYS)}, or `all`")
    return list(dict.fromkeys(chosen))
