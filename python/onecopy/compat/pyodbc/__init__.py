"""pyodbc's names over onecopy: `from onecopy.compat import pyodbc`.

`connect`, `Connection`, `Cursor`, `Row`, the exceptions and the constants `SQL_*` are those of pyodbc 5. What differs, and why,
stands in `docs/guide/from-pyodbc.md` in the repository.

>>> from onecopy.compat import pyodbc
>>> con = pyodbc.connect("sqlite::memory:")
>>> row = con.execute("select ? as id, 'Zoë' as name", 7).fetchone()
>>> row.id, row[1], row
(7, 'Zoë', (7, 'Zoë'))
"""

# ruff: isort: skip_file, a name a line twice over would hide which names there are.

from __future__ import annotations

import datetime
from typing import Final

from onecopy.compat.pyodbc._connect import (
    connect as connect,
)
from onecopy.compat.pyodbc._connect import (
    dataSources as dataSources,
)
from onecopy.compat.pyodbc._connect import (
    drivers as drivers,
)
from onecopy.compat.pyodbc._connection import (
    Connection as Connection,
)
from onecopy.compat.pyodbc._constants import *  # noqa: F403, all of them are public
from onecopy.compat.pyodbc._cursor import (
    Cursor as Cursor,
)
from onecopy.compat.pyodbc._errors import (
    DatabaseError as DatabaseError,
)
from onecopy.compat.pyodbc._errors import (
    DataError as DataError,
)
from onecopy.compat.pyodbc._errors import (
    Error as Error,
)
from onecopy.compat.pyodbc._errors import (
    IntegrityError as IntegrityError,
)
from onecopy.compat.pyodbc._errors import (
    InterfaceError as InterfaceError,
)
from onecopy.compat.pyodbc._errors import (
    InternalError as InternalError,
)
from onecopy.compat.pyodbc._errors import (
    NotSupportedError as NotSupportedError,
)
from onecopy.compat.pyodbc._errors import (
    OperationalError as OperationalError,
)
from onecopy.compat.pyodbc._errors import (
    ProgrammingError as ProgrammingError,
)
from onecopy.compat.pyodbc._errors import (
    Warning as Warning,
)
from onecopy.compat.pyodbc._row import (
    Row as Row,
)
from onecopy.dbapi import (
    DateFromTicks as DateFromTicks,
)
from onecopy.dbapi import (
    TimeFromTicks as TimeFromTicks,
)
from onecopy.dbapi import (
    TimestampFromTicks as TimestampFromTicks,
)

version: Final = "5.5.0"
"""The version of pyodbc whose names these are."""
apilevel: Final = "2.0"
paramstyle: Final = "qmark"
threadsafety: Final = 1
odbcversion = "3.X"
SQLWCHAR_SIZE: Final = 2

pooling = True
"""Accepted: `onecopy.Pool` is the pool."""
lowercase = False
"""Whether the names of columns are given in lower case."""
native_uuid = False
"""Whether UUIDs are `uuid.UUID`, and not `str` in upper case."""

STRING = str
BINARY = Binary = bytearray
NUMBER = float
DATETIME = Timestamp = datetime.datetime
ROWID = int
Date = datetime.date
Time = datetime.time
BinaryNull: Final = None
"""A NULL for a binary column."""


def getDecimalSeparator() -> str:
    """A point: decimals are never read by a locale."""
    return "."


def setDecimalSeparator(separator: str) -> None:
    """Accepted: decimals are never read by a locale."""
