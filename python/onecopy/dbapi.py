"""What PEP 249 asks of a module: its globals, type objects, and constructors."""

from __future__ import annotations

import datetime
from typing import Final

__all__ = [
    "BINARY",
    "DATETIME",
    "NUMBER",
    "ROWID",
    "STRING",
    "Binary",
    "DBAPIType",
    "Date",
    "DateFromTicks",
    "Time",
    "TimeFromTicks",
    "Timestamp",
    "TimestampFromTicks",
    "apilevel",
    "paramstyle",
    "threadsafety",
]

apilevel: Final = "2.0"
"""The level of PEP 249."""

threadsafety: Final = 1
"""Threads may share the module; a connection shared by threads is safe but its calls wait for each other."""

paramstyle: Final = "qmark"
"""Parameters are written ``?``."""


class DBAPIType:
    """A type object: equal to the type codes in ``Cursor.description`` that belong to it.

    >>> NUMBER == "decimal", NUMBER == "text"
    (True, False)
    """

    def __init__(self, name: str, *type_codes: str) -> None:
        self.name = name
        self.type_codes = frozenset(type_codes)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, str):
            return other in self.type_codes
        return self is other

    def __hash__(self) -> int:
        return hash(self.name)

    def __repr__(self) -> str:
        return f"onecopy.{self.name}"


STRING: Final = DBAPIType("STRING", "text", "uuid")
"""Columns of text, and UUIDs."""

BINARY: Final = DBAPIType("BINARY", "binary")
"""Columns of bytes."""

NUMBER: Final = DBAPIType("NUMBER", "bool", "integer", "real", "double", "decimal")
"""Columns of numbers and booleans."""

DATETIME: Final = DBAPIType("DATETIME", "date", "time", "timestamp", "timestamptz", "interval")
"""Columns of dates, times and spans of time."""

ROWID: Final = DBAPIType("ROWID")
"""Columns of row ids: none of the databases has a type for them."""

Date = datetime.date
Time = datetime.time
Timestamp = datetime.datetime
Binary = bytes


def DateFromTicks(ticks: float) -> datetime.date:
    """The local date of a time in seconds since the epoch."""
    return datetime.date.fromtimestamp(ticks)


def TimeFromTicks(ticks: float) -> datetime.time:
    """The local time of day of a time in seconds since the epoch."""
    return datetime.datetime.fromtimestamp(ticks).time()


def TimestampFromTicks(ticks: float) -> datetime.datetime:
    """The local date and time of a time in seconds since the epoch."""
    return datetime.datetime.fromtimestamp(ticks)
