"""Random values of each column type of each database, with NULLs between them.

The same seed gives the same values. The expected values are those that an independent client
(psycopg, PyMySQL or `sqlite3`) reads from the same table. The command `python -m
tests.support.random_values` compares millions of values.

``draw`` has the generators of values, ``column`` the statements of a table, ``postgres``,
``mariadb`` and ``sqlite`` the columns, ``texts`` the values in JSON and CSV, ``readers`` each way
in which onecopy reads a table, ``clients`` the connections and each way of writing a table.
"""

from __future__ import annotations

from .column import (
    ROW_COUNTS,
    SEED,
    Column,
    Row,
    converted,
    definition,
    insertion,
    rows,
    selection,
)
from .draw import shortest_float32, words
from .mariadb import MARIADB
from .postgres import POSTGRES, POSTGRES_NATIVE
from .sqlite import SQLITE, SQLITE_ODBC
from .texts import is_text_of, json_cells, plain_text

__all__ = [
    "MARIADB",
    "POSTGRES",
    "POSTGRES_NATIVE",
    "ROW_COUNTS",
    "SEED",
    "SQLITE",
    "SQLITE_ODBC",
    "Column",
    "Row",
    "converted",
    "definition",
    "insertion",
    "is_text_of",
    "json_cells",
    "plain_text",
    "rows",
    "selection",
    "shortest_float32",
    "words",
]
