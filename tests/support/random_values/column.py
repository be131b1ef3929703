"""A column of random values, and the statements that both clients run for a table of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from typing import Any, NamedTuple

SEED = 20261124
NULL_SHARE = 0.25
#: Rows of the tables that the tests read.
ROW_COUNTS = (1, 2, 3, 1000)

Row = tuple[Any, ...]


def _same(value: Any) -> Any:
    return value


class Column(NamedTuple):
    """A column: its SQL type, a source of random values, and how each client writes and reads it."""

    sql: str
    make: Callable[[Random], Any]
    #: Placeholder of the independent client, and of onecopy.
    write: str = "%s"
    ours: str = "?"
    #: Expression that the independent client reads, and its conversion to onecopy's value.
    read: str = "{}"
    convert: Callable[[Any], Any] = _same
    #: Expression for the text in JSON and CSV, if it is not that of `plain_text`.
    text: str = ""
    #: Comparison of the column with a parameter of onecopy; empty if the type has none that is exact.
    equal: str = "{} = {}"
    #: Readers whose documentation refuses values of this column.
    refused_by: frozenset[str] = frozenset()
    #: Type to be requested of Arrow, if it is not the one of the column.
    arrow: str = ""


def rows(columns: Sequence[Column], n_rows: int, seed: int = SEED) -> list[Row]:
    """Rows of random values, numbered from 0 in their first column."""
    draw = Random(seed)
    return [
        (i, *(None if draw.random() < NULL_SHARE else column.make(draw) for column in columns)) for i in range(n_rows)
    ]


def definition(table: str, columns: Sequence[Column]) -> str:
    """CREATE TABLE with the columns `i`, `c0`, `c1`, …"""
    defined = ", ".join(f"c{k} {column.sql}" for k, column in enumerate(columns))
    return f"create table {table} (i integer, {defined})"


def insertion(table: str, columns: Sequence[Column], *, ours: bool = False, mark: str = "%s") -> str:
    """INSERT of one row, with the placeholders of onecopy or of the independent client."""
    marks = ", ".join(column.ours if ours else column.write for column in columns)
    return f"insert into {table} values ({'?' if ours else mark}, {marks})"


def selection(table: str, columns: Sequence[Column], n_rows: int, *, of_text: bool = False) -> str:
    """The independent client's query for the values, or for the texts of those with a `text`."""
    reads = (column.text if of_text and column.text else column.read for column in columns)
    selected = ", ".join(read.format(f"c{k}") for k, read in enumerate(reads))
    return f"select i, {selected} from {table} where i < {n_rows} order by i"


def converted(columns: Sequence[Column], found: Sequence[Row]) -> list[Row]:
    """The rows of the independent client as onecopy returns them."""
    return [
        (
            row[0],
            *(c.convert(value) for c, value in zip(columns, row[1:], strict=True)),
        )
        for row in found
    ]
