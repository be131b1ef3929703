"""Ranges of rows, and the number of rows that a set of ranges loses or doubles."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import accumulate, pairwise
from typing import NamedTuple


class Range(NamedTuple):
    """The rows from `start` to `stop` (excluded) of the exported result, in the order of the key."""

    start: int
    stop: int

    @property
    def n_rows(self) -> int:
        """The number of rows."""
        return self.stop - self.start


def ranges_of(sizes: Iterable[int]) -> tuple[Range, ...]:
    """Consecutive ranges of the given sizes, from row 0."""
    return tuple(Range(a, b) for a, b in pairwise(accumulate(sizes, initial=0)))


def split(rows: Range, n: int) -> tuple[Range, ...]:
    """Divides a range into at most `n` ranges of similar size; an empty range remains one."""
    n = max(1, min(n, rows.n_rows))
    return tuple(Range(a, b) for a, b in pairwise(rows.start + rows.n_rows * i // n for i in range(n + 1)))


def difference(found: Iterable[Range], n_rows: int) -> tuple[int, int]:
    """Compares ranges with the rows from 0 to `n_rows`; returns the lost and the doubled rows.

    A row in no range is lost. A row in n ranges is doubled n - 1 times, and a row outside of the
    result counts as doubled.
    """
    n_distinct = n_total = end = 0
    for start, stop in sorted(found):
        n_total += stop - start
        inside = min(stop, n_rows)
        n_distinct += max(0, inside - max(start, end))
        end = max(end, inside)
    return n_rows - n_distinct, n_total - n_distinct
