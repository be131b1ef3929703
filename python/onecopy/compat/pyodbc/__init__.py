"""The API of pyodbc on top of onecopy: `from onecopy.compat import pyodbc`.

`connect`, `Connection`, `Cursor`, `Row`, the exceptions and the constants `SQL_*` are those of
pyodbc 5. `docs/guide/from-pyodbc.md` in the repository lists the differences and their reasons.

>>> from onecopy.compat import pyodbc
>>> con = pyodbc.connect("sqlite::memory:")
>>> row = con.execute("select ? as id, 'Zoë' as name", 7).fetchone()
>>> row.id, row[1], row
(7, 'Zoë', (7, 'Zoë'))
"""

# ruff: isort: skip_file, since one name per line, twice, would hide the list of names.

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
    TimestampFromTicks as TimestampFromTicks,
)

version: Final = "5.5.0"
"""The version of pyodbc that this API follows."""
apilevel: Final = "2.0"
paramstyle: Final = "qmark"
threadsafety: Final = 1
odbcversion = "3.X"
SQLWCHAR_SIZE: Final = 2

pooling = True
"""Has no effect. For pooling, use `onecopy.Pool`."""
lowercase = False
"""If true, column names are lower-cased."""
native_uuid = False
"""If true, UUIDs are `uuid.UUID`; if false, upper-case `str`."""

STRING = str
BINARY = Binary = bytearray
NUMBER = float
DATETIME = Timestamp = datetime.datetime
ROWID = int
Date = datetime.date
Time = datetime.time
BinaryNull: Final = None
"""A NULL that is bound as a binary value."""


_separator = "."


def getDecimalSeparator() -> str:
    """Return the argument of the last call of `setDecimalSeparator`; initially `"."`."""
    return _separator


def setDecimalSeparator(separator: str) -> None:
    """Store the argument for `getDecimalSeparator`. It has no other effect, since decimals never
    depend on the locale."""
    global _separator
    _separator = separator


def TimeFromTicks(ticks: float) -> datetime.time:
    """Convert a time in seconds since the epoch to the time of day in the local time zone.

    Raises:
        OverflowError: the time is out of range for the machine's clock.
    """
    try:
        return datetime.datetime.fromtimestamp(ticks).time()
    except (OSError, ValueError) as error:
        raise OverflowError(str(error)) from None
