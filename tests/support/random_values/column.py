"""Columns of random values, and the SQL statements of both clients for a table of such columns."""

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
    """A column: its SQL type, a generator of random values, and the SQL expressions with which each
    client writes and reads them."""

    sql: str
    make: Callable[[Random], Any]
    #: The placeholder of the independent client, and of onecopy.
    write: str = "%s"
    ours: str = "?"
    #: The expression that the independent client reads, and its conversion to onecopy's value.
    read: str = "{}"
    convert: Callable[[Any], Any] = _same
    #: The expression for the text in JSON and CSV, if it differs from `plain_text`.
    text: str = ""
    #: The expression for the JSON value of a type whose JSON is not text.
    json: str = ""
    #: The comparison of the column with a parameter of onecopy; empty if none is exact for the
    #: type.
    equal: str = "{} = {}"
    #: Readers that refuse values of this column, as documented.
    refused_by: frozenset[str] = frozenset()
    #: The type to request of Arrow, if it differs from the column's; `list` for the column's own.
    arrow: str = ""


def rows(columns: Sequence[Column], n_rows: int, seed: int = SEED) -> list[Row]:
    """Rows of random values, each preceded by its number from 0; the same seed gives the same
    rows."""
    draw = Random(seed)
    return [
        (i, *(None if draw.random() < NULL_SHARE else column.make(draw) for column in columns)) for i in range(n_rows)
    ]


def definition(table: str, columns: Sequence[Column]) -> str:
    """The CREATE TABLE statement of a table with the columns `i`, `c0`, `c1`, …"""
    defined = ", ".join(f"c{k} {column.sql}" for k, column in enumerate(columns))
    return f"create table {table} (i integer, {defined})"


def insertion(table: str, columns: Sequence[Column], *, ours: bool = False, mark: str = "%s") -> str:
    """The INSERT statement of one row.

    The placeholders are onecopy's if ``ours`` is true, otherwise the independent client's.
    """
    marks = ", ".join(column.ours if ours else column.write for column in columns)
    return f"insert into {table} values ({'?' if ours else mark}, {marks})"


def selection(table: str, columns: Sequence[Column], n_rows: int, *, of: str = "value") -> str:
    """The query with which the independent client reads the first ``n_rows`` rows.

    ``of`` selects the form of the values: ``value``, ``text``, ``json`` or ``arrow``.
    """

    def expression(column: Column) -> str:
        is_list = of == "arrow" and column.arrow.startswith("list")
        text = column.text if of != "value" and not is_list else ""
        return (column.json if of == "json" else "") or text or column.read

    reads = map(expression, columns)
    selected = ", ".join(read.format(f"c{k}") for k, read in enumerate(reads))
    return f"select i, {selected} from {table} where i < {n_rows} order by i"


def converted(columns: Sequence[Column], found: Sequence[Row]) -> list[Row]:
    """Converts rows of the independent client to the values that onecopy returns."""
    return [
        (
            row[0],
            *(c.convert(value) for c, value in zip(columns, row[1:], strict=True)),
        )
        for row in found
    ]
