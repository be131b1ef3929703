"""The API of mssql-python on top of onecopy: `from onecopy.compat import mssql_python`.

`connect`, `Connection`, `Cursor`, `Row`, the exceptions, settings and constants are those of
mssql-python 1. `docs/guide/from-mssql-python.md` in the repository lists the differences and their
reasons.

>>> from onecopy.compat import mssql_python
>>> with mssql_python.connect("sqlite::memory:") as con:
...     row = con.execute("select ? as id, 'Zoë' as name", 7).fetchone()
>>> row.id, row["name"], dict(row._mapping)
(7, 'Zoë', {'id': 7, 'name': 'Zoë'})
"""

# ruff: isort: skip_file, since one name per line, twice, would hide the list of names.

from __future__ import annotations

import datetime
from typing import Final

from onecopy.compat.mssql_python._connection import Connection as Connection
from onecopy.compat.mssql_python._connection import Cursor as Cursor
from onecopy.compat.mssql_python._connection import connect as connect
from onecopy.compat.mssql_python._constants import *  # noqa: F403, all of them are public
from onecopy.compat.mssql_python._errors import (
    DatabaseError as DatabaseError,
)
from onecopy.compat.mssql_python._errors import (
    DataError as DataError,
)
from onecopy.compat.mssql_python._errors import (
    Error as Error,
)
from onecopy.compat.mssql_python._errors import (
    Exception as Exception,
)
from onecopy.compat.mssql_python._errors import (
    IntegrityError as IntegrityError,
)
from onecopy.compat.mssql_python._errors import (
    InterfaceError as InterfaceError,
)
from onecopy.compat.mssql_python._errors import (
    InternalError as InternalError,
)
from onecopy.compat.mssql_python._errors import (
    NotSupportedError as NotSupportedError,
)
from onecopy.compat.mssql_python._errors import (
    OperationalError as OperationalError,
)
from onecopy.compat.mssql_python._errors import (
    ProgrammingError as ProgrammingError,
)
from onecopy.compat.mssql_python._errors import (
    Warning as Warning,
)
from onecopy.compat.mssql_python._row import Row as Row
from onecopy.compat.mssql_python._row import RowMapping as RowMapping

apilevel: Final = "2.0"
paramstyle: Final = "pyformat"
threadsafety: Final = 1
__version__: Final = "1.16.0"
"""The version of mssql-python that this API follows."""

lowercase = False
"""If true, column names are lower-cased."""
native_uuid = True
"""If true, UUIDs are `uuid.UUID`; if false, upper-case `str`."""

STRING = str
BINARY = bytes
NUMBER = float
DATETIME = datetime.datetime
ROWID = int
Date = datetime.date
Time = datetime.time
Timestamp = datetime.datetime


class Settings:
    """The settings of the module, as the object that `get_settings` returns."""

    decimal_separator = "."

    @property
    def lowercase(self) -> bool:
        """If true, column names are lower-cased."""
        return lowercase

    @lowercase.setter
    def lowercase(self, on: bool) -> None:
        globals()["lowercase"] = on

    @property
    def native_uuid(self) -> bool:
        """If true, UUIDs are returned as `uuid.UUID`, otherwise as `str`."""
        return native_uuid

    @native_uuid.setter
    def native_uuid(self, on: bool) -> None:
        globals()["native_uuid"] = on


_settings = Settings()


def get_settings() -> Settings:
    """Return the settings of the module, which all connections share."""
    return _settings


def Binary(value: str | bytes | bytearray | memoryview) -> bytes:
    """Convert a value to `bytes`; a `str` is encoded as UTF-8."""
    return value.encode() if isinstance(value, str) else bytes(value)


def DateFromTicks(ticks: float) -> datetime.date:
    """Convert a time in seconds since the epoch to the date in the local time zone."""
    return datetime.date.fromtimestamp(ticks)


def TimeFromTicks(ticks: float) -> datetime.time:
    """Convert a time in seconds since the epoch to the time of day in the local time zone."""
    return datetime.datetime.fromtimestamp(ticks).time()


def TimestampFromTicks(ticks: float) -> datetime.datetime:
    """Convert a time in seconds since the epoch to a naive `datetime` in UTC."""
    return datetime.datetime.fromtimestamp(ticks, datetime.timezone.utc).replace(tzinfo=None)


def getDecimalSeparator() -> str:
    """Return `"."`: decimals never depend on the locale."""
    return "."


def setDecimalSeparator(separator: str) -> None:
    """Has no effect, since decimals never depend on the locale."""


def pooling(max_size: int = 100, idle_timeout: int = 600, enabled: bool = True) -> None:
    """Has no effect. For pooling, use `onecopy.Pool`."""
