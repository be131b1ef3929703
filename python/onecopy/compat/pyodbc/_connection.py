"""The classes and functions of pyodbc's API that concern connections."""

from __future__ import annotations

import re
import threading
import warnings
from collections.abc import Callable, Iterable
from decimal import Decimal
from types import TracebackType
from typing import Any, TypeVar

from onecopy import _core, errors
from onecopy.compat.pyodbc import _constants as sql
from onecopy.compat.pyodbc import _decimals, _errors, _raw
from onecopy.compat.pyodbc._cursor import Cursor
from onecopy.compat.pyodbc._errors import NotSupportedError, OperationalError, ProgrammingError, translating

T = TypeVar("T")

_ISOLATION = {
    sql.SQL_TXN_READ_UNCOMMITTED: "read uncommitted",
    sql.SQL_TXN_READ_COMMITTED: "read committed",
    sql.SQL_TXN_REPEATABLE_READ: "repeatable read",
    sql.SQL_TXN_SERIALIZABLE: "serializable",
}
#: Dialect -> the statement that sets the session's isolation level.
_SET_ISOLATION = {
    "postgresql": "set session characteristics as transaction isolation level {}",
    "mysql": "set session transaction isolation level {}",
    "mssql": "set transaction isolation level {}",
}
#: Dialect -> the statements that set transactions to read-write, and to read-only.
_SET_ACCESS = {
    "postgresql": tuple(f"set session characteristics as transaction read {mode}" for mode in ("write", "only")),
    "mysql": tuple(f"set session transaction read {mode}" for mode in ("write", "only")),
    "sqlite": ("pragma query_only = off", "pragma query_only = on"),
}
#: Dialect -> the quotes of a catalog's name in `use`. Other databases have one catalog per
#: connection.
_USE = {"mysql": ("`", "`"), "mssql": ("[", "]")}
#: Integer results of `SQLGetInfo`: for PostgreSQL, MariaDB and MySQL, SQL Server, SQLite.
_DIALECTS = ("postgresql", "mysql", "mssql", "sqlite")
_INTEGERS = {
    sql.SQL_CONCAT_NULL_BEHAVIOR: (0, 0, 0, 0),
    sql.SQL_CORRELATION_NAME: (2, 2, 2, 2),
    sql.SQL_CURSOR_COMMIT_BEHAVIOR: (1, 1, 1, 1),
    sql.SQL_CURSOR_ROLLBACK_BEHAVIOR: (0, 1, 0, 0),
    sql.SQL_DEFAULT_TXN_ISOLATION: (2, 4, 2, 8),
    sql.SQL_FILE_USAGE: (0, 0, 0, 2),
    sql.SQL_GROUP_BY: (2, 3, 2, 3),
    sql.SQL_IDENTIFIER_CASE: (2, 4, 4, 4),
    sql.SQL_MAX_CATALOG_NAME_LEN: (63, 64, 128, 255),
    sql.SQL_MAX_COLUMN_NAME_LEN: (63, 64, 128, 255),
    sql.SQL_MAX_COLUMNS_IN_SELECT: (1664, 4096, 4096, 2000),
    sql.SQL_MAX_COLUMNS_IN_TABLE: (1600, 4096, 1024, 2000),
    sql.SQL_MAX_CONCURRENT_ACTIVITIES: (0, 0, 1, 0),
    sql.SQL_MAX_DRIVER_CONNECTIONS: (0, 0, 0, 0),
    sql.SQL_MAX_SCHEMA_NAME_LEN: (63, 0, 128, 0),
    sql.SQL_MAX_TABLE_NAME_LEN: (63, 64, 128, 255),
    sql.SQL_NON_NULLABLE_COLUMNS: (1, 1, 1, 1),
    sql.SQL_NULL_COLLATION: (0, 1, 1, 1),
    sql.SQL_QUOTED_IDENTIFIER_CASE: (3, 4, 4, 4),
    sql.SQL_TXN_ISOLATION_OPTION: (15, 15, 15, 8),
}
_DATABASE = {"postgresql": "current_database()", "mysql": "database()", "mssql": "db_name()", "sqlite": "'main'"}
_USER = {"postgresql": "current_user", "mysql": "substring_index(user(), '@', 1)", "mssql": "user_name()"}
_NAMES = (("PostgreSQL", "postgresql"), ("MariaDB", "mysql"), ("MySQL", "mysql"), ("Microsoft SQL", "mssql"))


class Connection:
    """A connection. As a context manager it commits when the block ends, rolls back when the block
    raises an exception, and stays open."""

    Warning = _errors.Warning
    Error = _errors.Error
    InterfaceError = _errors.InterfaceError
    DatabaseError = _errors.DatabaseError
    DataError = _errors.DataError
    OperationalError = _errors.OperationalError
    IntegrityError = _errors.IntegrityError
    InternalError = _errors.InternalError
    ProgrammingError = _errors.ProgrammingError
    NotSupportedError = _errors.NotSupportedError

    maxwrite = 0

    def __init__(self, con: _core.Connection) -> None:
        self._con: _core.Connection | None = con
        self._timeout = 0
        self._readvar_initsize = 4096
        self._decimal_mode = ""
        self._converters: dict[int, Callable[[Any], Any]] = {}
        #: The arguments of `setencoding` and `setdecoding`, which have no effect.
        self._encodings: dict[int | None, tuple[str | None, int | None]] = {}
        # `SQLGetInfo` is not available: the database and the driver are taken from the connection's
        # repr.
        self._about = repr(con)
        match = re.match(r"<onecopy\.Connection: (.+?) ([\d.]+)(?: through (\S+) (\S+))?", self._about)
        dbms, version, driver, driver_version = match.groups("") if match else ("", "", "", "")
        # Without an ODBC driver, the name and version of onecopy are those of the driver.
        self._facts = (dbms, version, driver or "onecopy", driver_version or _own_version())
        found = [dialect for name, dialect in _NAMES if self._facts[0].startswith(name)]
        self._dialect = "sqlite" if self._facts[0].startswith("SQLite") else found[0] if found else ""
        con.converters["uuid"] = _uuid
        if self._dialect == "sqlite":
            con.adapters[Decimal] = str  # As pyodbc binds decimals.
        elif self._dialect == "postgresql":
            con.adapters[Decimal] = _decimals.parameter
            con.converters["decimal"] = _decimals.cell

    @property
    def _open(self) -> _core.Connection:
        if self._con is None:
            raise ProgrammingError("HY000", "Attempt to use a closed connection.")
        return self._con

    @property
    def readvar_initsize(self) -> int:
        """A number that can be set for compatibility, but has no effect, because onecopy chooses
        the size of the buffers for long values from the driver's description of the column."""
        return self._readvar_initsize

    @readvar_initsize.setter
    def readvar_initsize(self, size: int) -> None:
        if size < 0:
            raise TypeError("Cannot set readvar_initsize to a negative value.")
        self._readvar_initsize = size

    @property
    def searchescape(self) -> str:
        """The escape character in LIKE patterns."""
        self._open  # noqa: B018, it raises if the connection is closed
        return "\\"

    @property
    def decimal_mode(self) -> str:
        """The way in which decimals are read: ``"binary"``, ``"text"`` or ``"locale"``. Unlike in
        pyodbc, all three return every digit, in every locale.

        With PostgreSQL and ``"binary"``, a decimal that needs more than 128 bits raises an error. A
        change of this attribute takes effect at the next statement.
        """
        return self._decimal_mode or ("text" if self._dialect == "postgresql" else "binary")

    @decimal_mode.setter
    def decimal_mode(self, mode: str) -> None:
        if isinstance(mode, bool):
            self._warn("decimal_mode")
            mode = "locale" if mode else "binary"
        elif not isinstance(mode, str):
            raise TypeError("decimal_mode must be a str")
        if mode not in ("binary", "text", "locale"):
            raise ValueError("decimal_mode must be 'binary', 'text' or 'locale'")
        self._set_decimal_mode(mode)

    @decimal_mode.deleter
    def decimal_mode(self) -> None:
        raise TypeError("decimal_mode cannot be deleted")

    def _set_decimal_mode(self, mode: str) -> None:
        self._decimal_mode = mode
        converters = self._open.converters
        if converters.get("decimal") in (_decimals.cell, _decimals.cell_in_struct):
            converters["decimal"] = self._of_decimals

    @property
    def _of_decimals(self) -> Callable[[Any], Any]:
        return _decimals.cell_in_struct if self._decimal_mode == "binary" else _decimals.cell

    @property
    def fetch_decimal_as_string(self) -> bool:
        """Deprecated, as in pyodbc: true if `decimal_mode` is not ``"binary"``."""
        self._warn("fetch_decimal_as_string")
        return self.decimal_mode != "binary"

    @fetch_decimal_as_string.setter
    def fetch_decimal_as_string(self, on: bool) -> None:
        # If the current value is assigned, the mode remains unchanged.
        self._warn("fetch_decimal_as_string")
        if not on or self.decimal_mode != "text" or self._decimal_mode:
            self._set_decimal_mode("locale" if on else "binary")

    @staticmethod
    def _warn(name: str) -> None:
        message = f"{name} of type bool is deprecated: set decimal_mode to 'binary', 'text' or 'locale'"
        warnings.warn(message, FutureWarning, stacklevel=3)

    @property
    def onecopy(self) -> _core.Connection:
        """The underlying `onecopy.Connection`."""
        return self._open

    def _within(self, function: Callable[..., T], *args: Any) -> T:
        """Call a function of the connection. If it has not returned after `timeout` seconds, cancel
        its statement."""
        if not self._timeout:
            return function(*args)
        fired = threading.Event()
        con = self._open

        def stop() -> None:
            fired.set()
            con.cancel()

        timer = threading.Timer(self._timeout, stop)
        timer.daemon = True
        timer.start()
        try:
            return function(*args)
        except errors.OperationalError:
            if fired.is_set():
                raise OperationalError("HYT00", "[HYT00] Query timeout expired (0)", sqlstate="HYT00") from None
            raise
        finally:
            timer.cancel()

    def cursor(self) -> Cursor:
        """Create a cursor on this connection."""
        return Cursor(self, self._open.cursor())

    def execute(self, sql: str, *params: Any) -> Cursor:
        """Run one statement on a new cursor, and return the cursor."""
        return self.cursor().execute(sql, *params)

    @translating
    def commit(self) -> None:
        """Commit the transaction."""
        self._open.commit()

    @translating
    def rollback(self) -> None:
        """Roll the transaction back."""
        self._open.rollback()

    @translating
    def close(self) -> None:
        """Close the connection; an open transaction is rolled back."""
        con, self._con = self._open, None
        con.close()

    @property
    def closed(self) -> bool:
        """True if the connection was closed."""
        return self._con is None

    @property
    def autocommit(self) -> bool:
        """True if each statement is its own transaction."""
        return self._open.autocommit

    @autocommit.setter
    @translating
    def autocommit(self, on: bool) -> None:
        self._open.autocommit = bool(on)

    @property
    def timeout(self) -> int:
        """The time limit of a statement in seconds, 0 for no limit; a statement that exceeds the
        limit is cancelled and raises an error with SQLSTATE HYT00."""
        return self._timeout

    @timeout.setter
    def timeout(self, seconds: int) -> None:
        if seconds < 0:
            raise ValueError("Cannot set a negative timeout.")
        self._timeout = seconds

    def setencoding(self, encoding: str | None = None, ctype: int | None = None) -> None:
        """Has no effect: text needs no configuration. The arguments are accepted for
        compatibility."""
        self._encodings[None] = (encoding, ctype)

    def setdecoding(self, sqltype: int, encoding: str | None = None, ctype: int | None = None) -> None:
        """Has no effect: text needs no configuration. The arguments are accepted for
        compatibility."""
        self._encodings[sqltype] = (encoding, ctype)

    def add_output_converter(self, sqltype: int, func: Callable[[Any], Any] | None) -> None:
        """Register a function that converts the bytes of values of an SQL type; `None` removes it.

        Types that onecopy does not distinguish (all integer types, all text types) share one
        converter. NULL is not converted.

        Raises:
            NotSupportedError: no column of the database can have this type.
        """
        if func is None:
            return self.remove_output_converter(sqltype)
        if sqltype not in _raw.CODES:
            raise NotSupportedError("HYC00", f"[HYC00] columns never have the SQL type {sqltype}")
        self._converters[sqltype] = func
        for code in _raw.CODES[sqltype]:
            self._open.converters[code] = lambda value: func(_raw.raw(sqltype, value, self._dialect))

    def get_output_converter(self, sqltype: int) -> Callable[[Any], Any] | None:
        """Return the function that is registered for values of an SQL type, or `None`."""
        return self._converters.get(sqltype)

    def remove_output_converter(self, sqltype: int) -> None:
        """Remove the function registered for an SQL type."""
        if self._converters.pop(sqltype, None) is not None:
            self._restore(_raw.CODES[sqltype])

    def clear_output_converters(self) -> None:
        """Remove all registered functions."""
        for sqltype in [*self._converters]:
            self.remove_output_converter(sqltype)

    def _restore(self, codes: Iterable[str]) -> None:
        for code in codes:
            self._open.converters.pop(code, None)
            if code == "uuid":
                self._open.converters[code] = _uuid
            elif code == "decimal" and self._dialect == "postgresql":
                self._open.converters[code] = self._of_decimals

    @translating
    def set_attr(self, attr_id: int, value: int | str | bytes) -> None:
        """Set an attribute of the connection.

        `SQL_ATTR_AUTOCOMMIT` and `SQL_ATTR_CURRENT_CATALOG` take effect immediately.
        `SQL_ATTR_TXN_ISOLATION` (the isolation level) and `SQL_ATTR_ACCESS_MODE` apply to future
        transactions. For PostgreSQL and SQLite the current catalog is ignored, as it is by their
        ODBC drivers. For SQL Server the access mode is ignored, because the server has no such
        setting.

        Raises:
            NotSupportedError: the attribute is none of these.
            OverflowError: the value has more than 64 bits.
        """
        con = self._open
        if isinstance(value, str):
            value.encode("utf-16-le")
        elif isinstance(value, (bytes, bytearray)):
            value = value.decode()
        elif not -(2**63) <= value < 2**64:
            raise OverflowError("the value is not a 64-bit integer")
        if attr_id == sql.SQL_ATTR_AUTOCOMMIT:
            self.autocommit = bool(value)
            return
        if attr_id == sql.SQL_ATTR_CURRENT_CATALOG and isinstance(value, str):
            if self._dialect in _USE:
                opening, closing = _USE[self._dialect]
                con.execute(f"use {opening}{value.replace(closing, closing * 2)}{closing}")
            return
        statement = None
        if attr_id == sql.SQL_ATTR_TXN_ISOLATION and value in _ISOLATION and self._dialect in _SET_ISOLATION:
            statement = _SET_ISOLATION[self._dialect].format(_ISOLATION[value])
        elif attr_id == sql.SQL_ATTR_ACCESS_MODE and value in (0, 1):
            statement = _SET_ACCESS.get(self._dialect, ("", ""))[value]
        if statement is not None:
            # The setting is made outside of a transaction, because a rollback would undo it.
            con.rollback()
            if statement:
                con.execute(statement)
            con.commit()
            return
        raise NotSupportedError("HYC00", f"[HYC00] connection attribute {attr_id} cannot be set")

    @translating
    def getinfo(self, infotype: int) -> Any:
        """Return the result of ODBC's `SQLGetInfo` for names, versions and similar information.

        Raises:
            NotSupportedError: the kind of information is not supported.
        """
        dbms, version, driver, driver_version = self._facts
        quote = "`" if self._dialect == "mysql" else '"'
        known: dict[int, Any] = {
            sql.SQL_DBMS_NAME: dbms,
            sql.SQL_DBMS_VER: version,
            sql.SQL_DRIVER_NAME: driver,
            sql.SQL_DRIVER_VER: driver_version,
            sql.SQL_IDENTIFIER_QUOTE_CHAR: quote,
            sql.SQL_SEARCH_PATTERN_ESCAPE: self.searchescape,
            sql.SQL_CATALOG_NAME_SEPARATOR: ".",
            sql.SQL_DATA_SOURCE_NAME: "",
            sql.SQL_DATA_SOURCE_READ_ONLY: False,
            sql.SQL_ODBC_VER: "03.80",
            sql.SQL_DRIVER_ODBC_VER: "03.80",
            sql.SQL_TXN_CAPABLE: 2,
            sql.SQL_MULT_RESULT_SETS: self._dialect != "sqlite",
            sql.SQL_ACCESSIBLE_TABLES: False,
            sql.SQL_PROCEDURES: self._dialect != "sqlite",
            sql.SQL_MAX_IDENTIFIER_LEN: {"postgresql": 63, "mysql": 64, "mssql": 128}.get(self._dialect, 0),
        }
        if infotype in _INTEGERS and self._dialect in _DIALECTS:
            known[infotype] = _INTEGERS[infotype][_DIALECTS.index(self._dialect)]
        if infotype in known:
            return known[infotype]
        expression = {sql.SQL_DATABASE_NAME: _DATABASE, sql.SQL_USER_NAME: _USER}.get(infotype, {}).get(self._dialect)
        if expression is None:
            raise NotSupportedError("HYC00", f"[HYC00] information {infotype} is not supported")
        row: tuple[Any, ...] = self._open.execute(f"select {expression}").fetchone()
        return row[0]

    def __enter__(self) -> Connection:
        return self

    def __exit__(
        self,
        exception_type: type[BaseException] | None,
        exception: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._con is not None:
            (self.commit if exception_type is None else self.rollback)()

    def __repr__(self) -> str:
        return self._about.replace("<onecopy.", "<onecopy.compat.pyodbc.", 1)


def _own_version() -> str:
    major, minor, patch = map(int, re.findall(r"\d+", _core.__version__)[:3])
    return f"{major:02}.{minor:02}.{patch:04}"


def _uuid(value: Any) -> Any:
    from onecopy.compat import pyodbc

    return value if pyodbc.native_uuid else str(value).upper()
