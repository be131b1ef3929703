"""The exception classes of PEP 249, with what the driver said as attributes.

    Warning
    Error
        InterfaceError          the library was used wrongly: closed cursor, another process
        DatabaseError
            DataError           a value does not fit, or text is malformed
            OperationalError    no connection, connection lost, cancelled, time limit
            IntegrityError      a constraint was broken
            InternalError       the driver's state broke
            ProgrammingError    the statement is wrong
            NotSupportedError   the driver or the database cannot do this

    DriverWarning               what one should know about the driver found, told at connect

Which class an error of the database becomes is decided in one table (``crates/py/src/errors.rs``) by its kind, never by
reading its message.
"""

from __future__ import annotations

__all__ = [
    "DataError",
    "DatabaseError",
    "DriverWarning",
    "Error",
    "IntegrityError",
    "InterfaceError",
    "InternalError",
    "NotSupportedError",
    "OperationalError",
    "ProgrammingError",
    "Warning",
]


class Warning(Exception):
    """What a database said beside a result: a warning, a notice, what a procedure printed. It stands in ``Cursor.messages``;
    nothing here raises it, and what one should know about a driver is a `DriverWarning`.

    Attributes:
        sqlstate: SQLSTATE, five characters.
        native_code: the database's own code; 0 where there is none.
    """

    sqlstate: str
    native_code: int

    def __init__(self, message: str = "", *, sqlstate: str = "", native_code: int = 0) -> None:
        super().__init__(message)
        self.sqlstate = sqlstate
        self.native_code = native_code


class DriverWarning(UserWarning):
    """What one should know about the driver found: it holds the whole result in memory, it cuts doubles.

    A warning of Python's `warnings`, given once at `onecopy.connect`.
    """


class Error(Exception):
    """The base of all errors. ``str()`` gives the driver's whole message.

    Attributes:
        sqlstate: SQLSTATE, five characters; empty where the database gives none (SQLite).
        native_code: the database's own code (SQLite: the extended result code); 0 where there is none.
        column: index (from 0) and name of the column at fault, where a value is.
        row: row of the result at fault (from 0), or row of parameters of ``executemany``.
    """

    sqlstate: str
    native_code: int
    column: tuple[int, str] | None
    row: int | None

    def __init__(
        self,
        message: str = "",
        *,
        sqlstate: str = "",
        native_code: int = 0,
        column: tuple[int, str] | None = None,
        row: int | None = None,
    ) -> None:
        super().__init__(message)
        self.sqlstate = sqlstate
        self.native_code = native_code
        self.column = column
        self.row = row


class InterfaceError(Error):
    """The library was used wrongly: a closed cursor or connection, a connection of another process."""


class DatabaseError(Error):
    """The base of errors that concern the database."""


class DataError(DatabaseError):
    """A value does not fit: overflow, a date Python does not have, malformed text."""


class OperationalError(DatabaseError):
    """The database does not work for us: no connection, connection lost, cancelled, a time limit."""


class IntegrityError(DatabaseError):
    """A constraint was broken."""


class InternalError(DatabaseError):
    """The driver's state broke, or the driver broke ODBC's rules."""


class ProgrammingError(DatabaseError):
    """The statement is wrong: syntax, an unknown table, a wrong number of parameters, no rows to fetch."""


class NotSupportedError(DatabaseError):
    """The driver or the database cannot do this."""
