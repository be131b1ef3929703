"""Connections and cursors of mssql-python: `connect`, `Connection` and `Cursor`."""

from __future__ import annotations

import contextlib
import importlib.util
import platform
import re
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from types import TracebackType
from typing import Any, NoReturn

from onecopy import _core, errors
from onecopy.compat.mssql_python import _constants as sql
from onecopy.compat.mssql_python import _errors
from onecopy.compat.mssql_python._errors import NotSupportedError, translating, translating_class
from onecopy.compat.mssql_python._row import Row, row_class
from onecopy.compat.pyodbc import _connect as _pyodbc_connect
from onecopy.compat.pyodbc._connection import Connection as _Connection
from onecopy.compat.pyodbc._cursor import Cursor as _Cursor
from onecopy.compat.pyodbc._cursor import _description
from onecopy.compat.pyodbc._row import Description

#: Python classes that may select a converter, instead of an SQL type.
_BY_CLASS = {str: -9, bytes: -3, int: 4, float: 8, Decimal: 3, uuid.UUID: -11}


def _described(cur: _core.Cursor) -> Description:
    from onecopy.compat import mssql_python

    kinds: dict[int, Any] = {i: bytes for i, c in enumerate(cur.description or ()) if c[1] == "binary"}
    if mssql_python.native_uuid:
        kinds |= {i: uuid.UUID for i, c in enumerate(cur.description or ()) if c[1] == "uuid"}
    lower = mssql_python.lowercase
    return tuple((c[0].lower() if lower else c[0], kinds.get(i, c[1]), *c[2:]) for i, c in enumerate(_description(cur)))


def _rows(cur: _core.Cursor) -> Callable[[tuple[Any, ...]], Row]:
    return row_class(_described(cur))


def _uuid(value: uuid.UUID) -> Any:
    from onecopy.compat import mssql_python

    return value if mssql_python.native_uuid else str(value).upper()


@translating_class
class Cursor(_Cursor):
    """A cursor. As a context manager it is closed when the block ends."""

    def __init__(self, connection: Connection, cur: _core.Cursor) -> None:
        super().__init__(connection, cur)
        cur.row_factory = _rows

    @property
    def description(self) -> Description | None:
        """The description of the columns (PEP 249), seven items for each, with the type as a Python
        class; `None` for a statement without rows."""
        cur = self._open
        return None if cur.description is None else _described(cur)

    @property
    def rownumber(self) -> int:
        """The index of the row fetched last; -1 before the first row."""
        fetched = self._open.rownumber
        return -1 if fetched is None else fetched - 1

    def execute(self, operation: str, *parameters: Any, use_prepare: bool = True, reset_cursor: bool = True) -> Cursor:
        """Run one statement. Parameters for ``?`` are separate arguments or one sequence; those for
        ``%(name)s`` are a dict."""
        if len(parameters) == 1 and isinstance(parameters[0], Mapping):
            self._run(self._open.execute, operation, parameters[0])
        else:
            super().execute(operation, *parameters)
        return self

    def executemany(self, operation: str, seq_of_parameters: Iterable[Any]) -> None:
        """Run one statement for each sequence, or dict, of parameters."""
        self._run(self._open.executemany, operation, seq_of_parameters)

    def next(self) -> Row:
        """Return the next row; raise `StopIteration` after the last."""
        row: Any = self.__next__()
        return row  # type: ignore[no-any-return]

    def scroll(self, value: int, mode: str = "relative") -> None:
        """Skip ``value`` rows, or move to the row with the index ``value``; the cursor moves only
        forward."""
        self._with_rows.scroll(value, mode)  # type: ignore[arg-type, union-attr]

    def close(self) -> None:
        """Close the cursor; closing twice is not an error."""
        if self._cur is not None:
            super().close()

    def _not_there(self, name: str, instead: str) -> NoReturn:
        raise NotSupportedError(f"{name}() is not supported", instead)

    def callproc(self, procname: str, parameters: Sequence[Any] | None = None) -> Sequence[Any] | None:
        """Not supported, as in mssql-python: raises `NotSupportedError`."""
        self._not_there("callproc", "execute a statement that calls the procedure")

    def bulkcopy(self, table_name: str, data: Iterable[Any], *_: Any, **__: Any) -> Any:
        """Not supported: raises `NotSupportedError`."""
        self._not_there("bulkcopy", "use `executemany`")

    def bulkcopy_arrow(self, table_name: str, source: Any, *_: Any, **__: Any) -> Any:
        """Not supported: raises `NotSupportedError`."""
        self._not_there("bulkcopy_arrow", "use `executemany`")

    def arrow(self, batch_size: int = 8192) -> Any:
        """Not supported: raises `NotSupportedError`."""
        self._not_there("arrow", "use `fetchall`, or the rows as bytes: `cursor.onecopy.json()`")

    def arrow_batch(self, batch_size: int = 8192) -> Any:
        """Not supported: raises `NotSupportedError`."""
        self._not_there("arrow_batch", "use `fetchmany`")

    def arrow_reader(self, batch_size: int = 8192) -> Any:
        """Not supported: raises `NotSupportedError`."""
        self._not_there("arrow_reader", "use `fetchmany`")

    def __enter__(self) -> Cursor:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


@translating_class
class Connection(_Connection):
    """A connection. As a context manager it commits when the block ends, or rolls back when the
    block raises an exception; then it is closed."""

    Warning = _errors.Warning  # type: ignore[assignment]
    Error = _errors.Error  # type: ignore[assignment]
    InterfaceError = _errors.InterfaceError  # type: ignore[assignment]
    DatabaseError = _errors.DatabaseError  # type: ignore[assignment]
    DataError = _errors.DataError  # type: ignore[assignment]
    OperationalError = _errors.OperationalError  # type: ignore[assignment]
    IntegrityError = _errors.IntegrityError  # type: ignore[assignment]
    InternalError = _errors.InternalError  # type: ignore[assignment]
    ProgrammingError = _errors.ProgrammingError  # type: ignore[assignment]
    NotSupportedError = _errors.NotSupportedError  # type: ignore[assignment]

    def __init__(self, con: _core.Connection) -> None:
        super().__init__(con)
        con.converters["uuid"] = _uuid

    @property
    def _open(self) -> _core.Connection:
        if self._con is None:
            raise _errors.InterfaceError("Connection not open", "the connection is closed")
        return self._con

    def cursor(self) -> Cursor:
        """Create a cursor on this connection."""
        return Cursor(self, self._open.cursor())

    def execute(self, sql: str, *args: Any) -> Cursor:
        """Run one statement on a new cursor, and return the cursor."""
        return self.cursor().execute(sql, *args)

    def batch_execute(
        self,
        statements: list[str],
        params: list[Any] | None = None,
        reuse_cursor: Cursor | None = None,
        auto_close: bool = False,
    ) -> tuple[list[list[Row] | int], Cursor]:
        """Run all statements on one cursor. Return the cursor, and a list with the rows or the row
        count of each statement."""
        if not isinstance(statements, list) or not (params is None or isinstance(params, list)):
            raise TypeError("`statements` and `params` are lists")
        if params is not None and len(params) != len(statements):
            raise ValueError("`params` has one item for each of `statements`")
        cur = reuse_cursor or self.cursor()
        results: list[list[Row] | int] = []
        for statement, given in zip(statements, params or [None] * len(statements), strict=True):
            cur.execute(statement, *([] if given is None else [given]))
            rows: Any = cur.fetchall() if cur.description is not None else cur.rowcount
            results.append(rows)
        if auto_close and reuse_cursor is None:
            cur.close()
        return results, cur

    def setautocommit(self, value: bool = False) -> None:
        """Switch autocommit on or off."""
        self.autocommit = value

    def getencoding(self) -> dict[str, str | int]:
        """Return the arguments of the last `setencoding`, which have no effect."""
        encoding, ctype = self._encodings.get(None, (None, None))
        return {"encoding": encoding or "utf-16le", "ctype": ctype or -8}

    def getdecoding(self, sqltype: int) -> dict[str, str | int]:
        """Return the arguments of the last `setdecoding` for an SQL type, which have no effect."""
        encoding, ctype = self._encodings.get(sqltype, (None, None))
        return {"encoding": encoding or "utf-16le", "ctype": ctype or -8}

    def add_output_converter(self, sqltype: int | type, func: Callable[[Any], Any] | None) -> None:
        """Register a function that converts values of an SQL type or a class from their bytes: see
        `onecopy.compat.pyodbc`."""
        super().add_output_converter(_number(sqltype), func)

    def get_output_converter(self, sqltype: int | type) -> Callable[[Any], Any] | None:
        """Return the function that is registered for values of an SQL type, or `None`."""
        return super().get_output_converter(_number(sqltype))

    def remove_output_converter(self, sqltype: int | type) -> None:
        """Remove the function registered for an SQL type."""
        super().remove_output_converter(_number(sqltype))

    def _restore(self, codes: Iterable[str]) -> None:
        super()._restore(codes)
        self._open.converters["uuid"] = self._open.converters["uuid"] if -11 in self._converters else _uuid

    def getinfo(self, info_type: int | sql.GetInfoConstants) -> Any:
        """Return the result of ODBC's `SQLGetInfo` for names, versions and similar information."""
        return super().getinfo(info_type.value if isinstance(info_type, sql.GetInfoConstants) else info_type)

    def close(self) -> None:
        """Close the connection; an open transaction is rolled back. Closing twice is not an
        error."""
        if self._con is not None:
            super().close()

    def __enter__(self) -> Connection:
        return self

    def __exit__(
        self,
        exception_type: type[BaseException] | None,
        exception: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if exception_type is None:
            try:
                self.commit()
            finally:
                self.close()
        else:
            with contextlib.suppress(errors.Error):
                self.rollback()
            with contextlib.suppress(errors.Error):
                self.close()

    def __repr__(self) -> str:
        return self._about.replace("<onecopy.", "<onecopy.compat.mssql_python.", 1)


def _number(sqltype: int | type) -> int:
    return _BY_CLASS.get(sqltype, 0) if isinstance(sqltype, type) else sqltype


@translating
def connect(
    connection_str: str = "",
    autocommit: bool = False,
    attrs_before: dict[int, Any] | None = None,
    timeout: int = 0,
    native_uuid: bool | None = None,
    token_provider: Any = None,
    **kwargs: Any,
) -> Connection:
    """Open a connection to SQL Server, or to any other target that `onecopy.connect` accepts.

    Args:
        connection_str: ``Server=…;Database=…;…``; if it names no driver, an installed one is used.
        autocommit: each statement is its own transaction.
        attrs_before: as in `onecopy.compat.pyodbc.connect`.
        timeout: the time limit for connecting in seconds; 0 means 15 seconds.
        native_uuid: return UUIDs as `uuid.UUID`; changes the setting of the module.
        token_provider: not supported.
        kwargs: appended to the string as ``key=value;``.

    Raises:
        OperationalError: the connection failed.
        NotSupportedError: an attribute or a token provider was given that is not supported.

    >>> with connect("sqlite::memory:") as con:
    ...     con.execute("select %(name)s as name", {"name": "Zoë"}).fetchone()["name"]
    'Zoë'
    """
    if token_provider is not None:
        raise NotSupportedError(
            "`token_provider` is not supported", "write `Authentication=…` into the connection string"
        )
    if native_uuid is not None:
        from onecopy.compat import mssql_python

        mssql_python.native_uuid = native_uuid
    target = connection_str
    if not re.match(r"\w+:|.*\b(driver|dsn)\s*=", connection_str, re.I) and not {"driver", "dsn"} & {
        *map(str.lower, kwargs)
    }:
        target = f"Driver={_driver()};{connection_str}"
    keywords: dict[str, Any] = {"autocommit": autocommit, "attrs_before": attrs_before, "timeout": timeout}
    return _pyodbc_connect.connected(Connection, target, **keywords, keywords=kwargs)


def _driver() -> str:
    """Return an installed driver for SQL Server: a registered driver, or one that is part of a
    Python package of Microsoft."""
    registered = sorted(
        (n for n in _pyodbc_connect.drivers() if re.match(r"ODBC Driver \d+ for SQL Server", n)), reverse=True
    )
    if registered:
        return "{" + registered[0] + "}"
    for package, pattern in (
        ("mssql_python_odbc", "libs/linux/*/*/lib/libmsodbcsql-*"),
        ("mssql_py_core", "libs/linux/*/*/lib/mssqlodbc.so"),
    ):
        spec = importlib.util.find_spec(package)
        for place in spec.submodule_search_locations or () if spec else ():
            found = [path for path in sorted(Path(place).glob(pattern)) if platform.machine() in path.parts]
            if found:
                return str(found[0])
    if "FreeTDS" in _pyodbc_connect.drivers():
        return "{FreeTDS}"
    message = "no driver for SQL Server was found\ninstall one: `pip install mssql-python-odbc`"
    raise _errors.OperationalError(message, "", sqlstate="IM002")
