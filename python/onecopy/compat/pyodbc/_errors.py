"""pyodbc's exceptions. The ``args`` of an exception are two strings: its SQLSTATE, and a message
that starts with the SQLSTATE.

Each class also inherits from the class of the same name in `onecopy.errors`, so that handlers for
either class catch the exception.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar

from onecopy import errors

F = TypeVar("F", bound=Callable[..., Any])


class Warning(errors.Warning):
    """The class `Warning` of PEP 249. Nothing raises it."""


class Error(errors.Error):
    """The base class of all errors: ``args[0]`` is the SQLSTATE, ``args[1]`` the message,
    ``[SQLSTATE] … (native code)``."""

    def __init__(self, *args: Any, **parts: Any) -> None:
        super().__init__("", **parts)
        self.args = args


class InterfaceError(Error, errors.InterfaceError):
    """Raised if the driver was not found, or the server rejected the login (IM00x, 28000)."""


class DatabaseError(Error, errors.DatabaseError):
    """The base class of errors that concern the database."""


class DataError(DatabaseError, errors.DataError):
    """Raised if a value is out of range or malformed (22xxx)."""


class OperationalError(DatabaseError, errors.OperationalError):
    """Raised if the connection failed or was lost, or a time limit expired (08xxx, HYT0x)."""


class IntegrityError(DatabaseError, errors.IntegrityError):
    """Raised if a constraint was violated (23xxx, 40002)."""


class InternalError(DatabaseError, errors.InternalError):
    """Raised if the driver has an internal error."""


class ProgrammingError(DatabaseError, errors.ProgrammingError):
    """Raised if the statement or the call is incorrect (24xxx, 25xxx, 42xxx)."""


class NotSupportedError(DatabaseError, errors.NotSupportedError):
    """Raised if the driver or the database does not support the operation (0Axxx)."""


#: SQLSTATEs, or their prefixes, for which pyodbc's class differs from onecopy's.
_BY_STATE: dict[str, type[Error]] = {
    "28000": InterfaceError,
    "IM001": InterfaceError,
    "IM002": InterfaceError,
    "IM003": InterfaceError,
    "40002": IntegrityError,
    "24": ProgrammingError,
    "25": ProgrammingError,
}
#: The exception classes of onecopy, most derived first. Each has the class of this module, and the
#: SQLSTATE for errors that have none, such as those of SQLite.
_BY_CLASS: list[tuple[type[errors.Error], type[Error], str]] = [
    (errors.DataError, DataError, "22000"),
    (errors.OperationalError, OperationalError, "HY000"),
    (errors.IntegrityError, IntegrityError, "23000"),
    (errors.InternalError, InternalError, "HY000"),
    (errors.ProgrammingError, ProgrammingError, "42000"),
    (errors.NotSupportedError, NotSupportedError, "HYC00"),
    (errors.DatabaseError, DatabaseError, "HY000"),
    (errors.InterfaceError, InterfaceError, "HY000"),
    (errors.Error, Error, "HY000"),
]
_OURS = {of for of, _, _ in _BY_CLASS}


def translated(error: errors.Error) -> Error:
    """Convert an exception of `onecopy` to the exception of this module with the same
    attributes."""
    kind, state = next((kind, state) for of, kind, state in _BY_CLASS if isinstance(error, of))
    state = error.sqlstate or state
    kind = _BY_STATE.get(state) or _BY_STATE.get(state[:2]) or kind
    text = f"[{state}] {error} ({error.native_code})"
    return kind(state, text, sqlstate=error.sqlstate, native_code=error.native_code, column=error.column, row=error.row)


def translating(function: F) -> F:
    """Wrap a method so that an exception of `onecopy` that it raises is converted to an exception
    of this module."""

    @functools.wraps(function)
    def call(*args: Any, **keywords: Any) -> Any:
        try:
            return function(*args, **keywords)
        except errors.Error as error:
            if type(error) not in _OURS:
                raise  # Already translated by an inner call, or by a module that builds on this one.
            raise translated(error) from None

    return call  # type: ignore[return-value]
