"""mssql-python's exceptions. The attribute `driver_error` is ODBC's description of the SQLSTATE, and
`ddbc_error` is the driver's message.

Each class also inherits from the class of the same name in `onecopy.errors`, and has the attributes
of this class (`sqlstate`, `native_code`, …).
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar

from onecopy import errors

F = TypeVar("F", bound=Callable[..., Any])
C = TypeVar("C", bound=type)

#: Descriptions of SQLSTATEs from the ODBC reference (Appendix A).
_WORDS = {
    "01002": "Disconnect error",
    "07002": "COUNT field incorrect",
    "08001": "Client unable to establish connection",
    "08003": "Connection not open",
    "08004": "Server rejected the connection",
    "08007": "Connection failure during transaction",
    "08S01": "Communication link failure",
    "22001": "String data, right truncation",
    "22003": "Numeric value out of range",
    "22007": "Invalid datetime format",
    "22008": "Datetime field overflow",
    "22012": "Division by zero",
    "22018": "Invalid character value for cast specification",
    "23000": "Integrity constraint violation",
    "24000": "Invalid cursor state",
    "25000": "Invalid transaction state",
    "28000": "Invalid authorization specification",
    "40001": "Serialization failure",
    "42000": "Syntax error or access violation",
    "42S01": "Base table or view already exists",
    "42S02": "Base table or view not found",
    "42S22": "Column not found",
    "HY000": "General error",
    "HY008": "Operation canceled",
    "HY010": "Function sequence error",
    "HY105": "Invalid parameter type",
    "HYC00": "Optional feature not implemented",
    "HYT00": "Timeout expired",
    "HYT01": "Connection timeout expired",
}


class Exception(errors.Error):
    """The base class of all errors of this module."""

    def __init__(self, driver_error: str, ddbc_error: str = "", **parts: Any) -> None:
        self.driver_error, self.ddbc_error = driver_error, ddbc_error
        self.message = f"Driver Error: {driver_error}" + (f"; DDBC Error: {ddbc_error}" if ddbc_error else "")
        super().__init__(self.message, **parts)


class Warning(Exception):
    """The class `Warning` of PEP 249. Nothing raises it."""


class Error(Exception):
    """The base class of PEP 249's errors."""


class InterfaceError(Error, errors.InterfaceError):
    """Raised if the library was used incorrectly."""


class DatabaseError(Error, errors.DatabaseError):
    """The base class of errors that concern the database."""


class DataError(DatabaseError, errors.DataError):
    """Raised if a value is out of range or malformed."""


class OperationalError(DatabaseError, errors.OperationalError):
    """Raised if the connection failed or was lost, or a time limit expired."""


class IntegrityError(DatabaseError, errors.IntegrityError):
    """Raised if a constraint was violated."""


class InternalError(DatabaseError, errors.InternalError):
    """Raised if the driver has an internal error."""


class ProgrammingError(DatabaseError, errors.ProgrammingError):
    """Raised if the statement or the call is incorrect."""


class NotSupportedError(DatabaseError, errors.NotSupportedError):
    """Raised if the driver or the database does not support the operation."""


_KINDS: list[type[Error]] = [DataError, OperationalError, IntegrityError, InternalError, ProgrammingError]
_KINDS += [NotSupportedError, DatabaseError, InterfaceError]


def translated(error: errors.Error) -> Error:
    """Return an exception of this module for an exception of `onecopy` or of
    `onecopy.compat.pyodbc`. Its class has the meaning of the original class."""
    kind = next((k for k in _KINDS if isinstance(error, getattr(errors, k.__name__))), Error)
    state = error.sqlstate or (str(error.args[0]) if len(error.args) == 2 else "HY000")
    if state == "28000":
        kind = OperationalError
    text = str(error.args[1]) if len(error.args) == 2 else str(error)
    text = text.removeprefix(f"[{state}] ").removesuffix(f" ({error.native_code})")
    parts: dict[str, Any] = {"sqlstate": error.sqlstate, "native_code": error.native_code}
    return kind(_WORDS.get(state, f"SQLSTATE {state}"), text, column=error.column, row=error.row, **parts)


def translating(function: F) -> F:
    """Wrap a function so that it raises the exceptions of this module."""

    @functools.wraps(function)
    def call(*args: Any, **keywords: Any) -> Any:
        try:
            return function(*args, **keywords)
        except errors.Error as error:
            if isinstance(error, Exception):
                raise
            raise translated(error) from None

    return call  # type: ignore[return-value]


def translating_class(cls: C) -> C:
    """Replace the methods and properties of ``cls``, a subclass of a class of
    `onecopy.compat.pyodbc`, by wrappers that raise the exceptions of this module."""
    for name in dir(cls):
        member = getattr(cls, name)
        if name.startswith("_") and name not in ("__next__", "__enter__", "__exit__"):
            continue
        if isinstance(member, property):
            wrapped: Any = property(
                translating(member.fget) if member.fget else None,
                translating(member.fset) if member.fset else None,
                doc=member.__doc__,
            )
            setattr(cls, name, wrapped)
        elif callable(member) and not isinstance(member, type):
            setattr(cls, name, translating(member))
    return cls
