"""The exception classes of PEP 249, with details from the driver as attributes.

    Warning
    Error
        InterfaceError          incorrect use of the library: closed cursor, another process
        DatabaseError
            DataError           a value is out of range, or text is malformed
            OperationalError    connection failed or lost, cancelled, time limit expired
            IntegrityError      a constraint was violated
            InternalError       the driver has an internal error
            ProgrammingError    the statement is incorrect
            NotSupportedError   not supported by the driver or the database

    DriverWarning               known defects of the driver, reported at connect

One table (``crates/py/src/errors.rs``) maps each kind of error to its class. The message of an
error is never parsed.
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
    """A message of the database other than an error: a warning, a notice, the output of a
    procedure. It is in ``Cursor.messages`` and is never raised. Known defects of a driver are
    reported by `DriverWarning` instead.

    Attributes:
        sqlstate: SQLSTATE, five characters.
        native_code: the database's own code; 0 if there is none.
    """

    sqlstate: str
    native_code: int

    def __init__(self, message: str = "", *, sqlstate: str = "", native_code: int = 0) -> None:
        super().__init__(message)
        self.sqlstate = sqlstate
        self.native_code = native_code


class DriverWarning(UserWarning):
    """A known defect of the driver in use, for example that the driver holds the whole result in
    memory, or truncates doubles.

    `onecopy.connect` issues the warning once, through Python's module `warnings`.
    """


class Error(Exception):
    """The base class of all errors. ``str()`` is the whole message of the driver.

    Attributes:
        sqlstate: SQLSTATE, five characters; empty if the database reports none (SQLite).
        native_code: the database's own code (SQLite: the extended result code); 0 if there is none.
        column: index (from 0) and name of the column whose value caused the error, if any.
        row: index (from 0) of the row that caused the error, in the result or in the parameters of
            ``executemany``.
        details: the fields of PostgreSQL's error report (native protocol): ``severity``,
            ``detail``, ``hint``, ``position`` (a character of the statement, from 1), ``context``,
            ``schema``, ``table``, ``column``, ``data_type``, ``constraint``; only those that are
            present.
    """

    sqlstate: str
    native_code: int
    column: tuple[int, str] | None
    row: int | None
    details: dict[str, str]

    def __init__(
        self,
        message: str = "",
        *,
        sqlstate: str = "",
        native_code: int = 0,
        column: tuple[int, str] | None = None,
        row: int | None = None,
        details: dict[str, str] | None = None,
    ) -> None:
        super().__init__(message)
        self.sqlstate = sqlstate
        self.native_code = native_code
        self.column = column
        self.row = row
        self.details = details or {}


class InterfaceError(Error):
    """Raised if the library was used incorrectly, for example a closed cursor or connection, or a
    connection of another process."""


class DatabaseError(Error):
    """The base class of errors that concern the database."""


class DataError(DatabaseError):
    """Raised if a value is out of range or malformed: overflow, a date outside of Python's range,
    malformed text."""


class OperationalError(DatabaseError):
    """Raised if the connection failed or was lost, the statement was cancelled, or a time limit
    expired."""


class IntegrityError(DatabaseError):
    """Raised if a constraint was violated."""


class InternalError(DatabaseError):
    """Raised if the driver has an internal error, or violated the rules of ODBC."""


class ProgrammingError(DatabaseError):
    """Raised if the statement or the call is incorrect: a syntax error, an unknown table, a wrong
    number of parameters, no rows to fetch."""


class NotSupportedError(DatabaseError):
    """Raised if the driver or the database does not support the operation."""
