"""The names that PEP 249 requires of a module: its globals, type objects, and constructors."""

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
"""The version of PEP 249 that the module supports."""

threadsafety: Final = 1
"""Threads may share the module. They may also share a connection, whose calls are serialized."""

paramstyle: Final = "qmark"
"""Parameters are written as ``?``."""


class DBAPIType:
    """A type object of PEP 249: it compares equal to each type code of its kind in
    ``Cursor.description``.

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
"""The type object of text columns, and of UUID columns."""

BINARY: Final = DBAPIType("BINARY", "binary")
"""The type object of binary columns."""

NUMBER: Final = DBAPIType("NUMBER", "bool", "integer", "real", "double", "decimal")
"""The type object of numeric and boolean columns."""

DATETIME: Final = DBAPIType("DATETIME", "date", "time", "timetz", "timestamp", "timestamptz", "interval")
"""The type object of date, time and interval columns."""

ROWID: Final = DBAPIType("ROWID")
"""The type object of row id columns. No column has it, since none of the databases has a type for
row ids."""

Date = datetime.date
Time = datetime.time
Timestamp = datetime.datetime
Binary = bytes


def DateFromTicks(ticks: float) -> datetime.date:
    """Convert a time in seconds since the epoch to the date in the local time zone."""
    return datetime.date.fromtimestamp(ticks)


def TimeFromTicks(ticks: float) -> datetime.time:
    """Convert a time in seconds since the epoch to the time of day in the local time zone."""
    return datetime.datetime.fromtimestamp(ticks).time()


def TimestampFromTicks(ticks: float) -> datetime.datetime:
    """Convert a time in seconds since the epoch to the date and time in the local time zone."""
    return datetime.datetime.fromtimestamp(ticks)
