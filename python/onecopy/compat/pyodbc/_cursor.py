"""`Cursor`."""

from __future__ import annotations

import datetime
import uuid
from collections.abc import Callable, Iterable, Iterator
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from onecopy import _core, errors
from onecopy.compat.pyodbc import _catalog
from onecopy.compat.pyodbc._errors import NotSupportedError, ProgrammingError, translated, translating
from onecopy.compat.pyodbc._row import Description, Row, row_class

if TYPE_CHECKING:
    from onecopy.compat.pyodbc._connection import Connection

_CLASSES: dict[str, type] = {
    "bool": bool,
    "integer": int,
    "real": float,
    "double": float,
    "decimal": Decimal,
    "text": str,
    "any": str,
    "binary": bytearray,
    "date": datetime.date,
    "time": datetime.time,
    "timestamp": datetime.datetime,
    "timestamptz": datetime.datetime,
}


def _description(cur: _core.Cursor) -> Description:
    from onecopy.compat import pyodbc

    lower, of_uuid = pyodbc.lowercase, uuid.UUID if pyodbc.native_uuid else str
    return tuple(
        (
            c[0].lower() if lower else c[0],
            of_uuid if c[1] == "uuid" else _CLASSES.get(c[1], str),
            None,
            c[3],
            c[4] if c[1] == "decimal" else c[3],
            (c[4] if c[1].startswith("time") else c[5]) or 0,
            c[6],
        )
        for c in cur.description or ()
    )


def _rows(cur: _core.Cursor) -> Callable[[tuple[Any, ...]], Row]:
    return row_class(_description(cur))


def _dicts(cur: _core.Cursor) -> Callable[[tuple[Any, ...]], dict[str, Any]]:
    names = [column[0] for column in _description(cur)]
    return lambda row: dict(zip(names, row, strict=True))


class Cursor:
    """A cursor. As a context manager it commits when the block ends without an exception."""

    #: Accepted: parameters always go the fastest way there is.
    fast_executemany = False
    #: Accepted: escapes of ODBC are left to the driver.
    noscan = False

    def __init__(self, connection: Connection, cur: _core.Cursor) -> None:
        self._connection = connection
        self._cur: _core.Cursor | None = cur
        self._has_run = False
        cur.row_factory = _rows

    @property
    def _open(self) -> _core.Cursor:
        if self._cur is None:
            raise ProgrammingError("HY000", "Attempt to use a closed cursor.")
        self._connection._open  # noqa: B018, it raises where the connection is closed
        return self._cur

    @property
    def _with_rows(self) -> _core.Cursor:
        cur = self._open
        if cur.description is None:
            raise ProgrammingError("HY000", "No results.  Previous SQL was not a query.")
        return cur

    @property
    def onecopy(self) -> _core.Cursor:
        """The cursor behind it: its `json`, `ndjson`, `csv` and `bson` give rows as bytes."""
        return self._open

    @property
    def connection(self) -> Connection:
        """The connection."""
        return self._connection

    @property
    def description(self) -> Description | None:
        """Seven items for each column, the type as a Python class; `None` for a statement without rows."""
        cur = self._open
        return None if cur.description is None else _description(cur)

    @property
    def rowcount(self) -> int:
        """Rows changed by the last statement; -1 for queries, whose rows are not counted before they are read.

        Of DDL 0 with MariaDB, MySQL and SQLite, as their drivers say, and -1 with others.
        """
        cur = self._open
        if cur.rowcount == -1 and self._has_run and cur.description is None:
            return 0 if self._connection._dialect in ("mysql", "sqlite") else -1
        return cur.rowcount

    @property
    def messages(self) -> list[tuple[str, str]]:
        """What the database said beside the result: ``[SQLSTATE] (native code)`` and the text."""
        return [(f"[{said.sqlstate}] ({said.native_code})", str(said)) for _, said in self._open.messages]

    @property
    def arraysize(self) -> int:
        """Rows that `fetchmany` gives by default."""
        return self._open.arraysize

    @arraysize.setter
    def arraysize(self, size: int) -> None:
        self._open.arraysize = size

    @property
    def rows_as_dicts(self) -> bool:
        """Whether rows are dicts, from the next statement on."""
        return self._open.row_factory is _dicts

    @rows_as_dicts.setter
    def rows_as_dicts(self, on: bool) -> None:
        self._open.row_factory = _dicts if on else _rows

    @translating
    def execute(self, sql: str, *params: Any) -> Cursor:
        """Run one statement; parameters for its ``?`` follow, one by one or as one tuple, list or `Row`.

        Raises:
            ProgrammingError: the statement is wrong, or a parameter is of a class that has no SQL type.
        """
        cur = self._open
        if len(params) == 1 and isinstance(params[0], (tuple, list)):
            params = tuple(params[0])
        try:
            self._connection._within(cur.execute, sql, params)
        except TypeError as error:
            raise ProgrammingError("HY105", f"[HY105] Invalid parameter type. {error}") from error
        self._has_run = True
        return self

    @translating
    def executemany(self, sql: str, params: Iterable[Any]) -> None:
        """Run one statement for each sequence of parameters.

        Raises:
            ProgrammingError: there are none, or as `execute`; ``row`` is the index of the sequence at fault.
        """
        cur = self._open
        if isinstance(params, (list, tuple)) and not params:
            raise ProgrammingError("HY000", "The second parameter to executemany must not be empty.")
        if not isinstance(params, Iterable):
            message = "The second parameter to executemany must be a sequence, iterator, or generator."
            raise ProgrammingError("HY000", message)
        if isinstance(params, (list, tuple)) and isinstance(params[0], (set, frozenset, str)):
            raise TypeError("Params must be in a list, tuple, or Row")
        self._has_run = True
        try:
            self._connection._within(cur.executemany, sql, params)
        except TypeError as error:
            raise ProgrammingError("HY105", f"[HY105] Invalid parameter type. {error}") from error

    @translating
    def fetchone(self) -> Row | None:
        """The next row, or `None`."""
        row: Row | None = self._with_rows.fetchone()
        return row

    @translating
    def fetchval(self) -> Any:
        """The first value of the next row, or `None` where there is no row."""
        row = self._with_rows.fetchone()
        if row is None:
            return None
        return next(iter(row.values())) if isinstance(row, dict) else row[0]

    @translating
    def fetchmany(self, size: int | None = None) -> list[Row]:
        """Up to ``size`` rows (``arraysize`` where it is left out)."""
        return self._with_rows.fetchmany(size)

    @translating
    def fetchall(self) -> list[Row]:
        """All rows still to come."""
        return self._with_rows.fetchall()

    def __iter__(self) -> Iterator[Row]:
        rows = iter(self._with_rows)
        try:
            yield from rows
        except errors.Error as error:
            raise translated(error) from None

    def __next__(self) -> Row:
        row = self.fetchone()
        if row is None:
            raise StopIteration
        return row

    @translating
    def skip(self, count: int) -> None:
        """Pass rows; past the last one is no error."""
        cur = self._with_rows
        while count > 0 and (passed := len(cur.fetchmany(min(count, 1000)))):
            count -= passed

    @translating
    def nextset(self) -> bool:
        """Go to the next result with rows; whether there is one."""
        return bool(self._connection._within(self._open.nextset))

    def cancel(self) -> None:
        """Stop, from another thread, what runs on the connection."""
        self._connection._open.cancel()

    def commit(self) -> None:
        """Commit the transaction of the connection."""
        self._connection.commit()

    def rollback(self) -> None:
        """Roll the transaction of the connection back."""
        self._connection.rollback()

    @translating
    def close(self) -> None:
        """Close the cursor."""
        cur, self._cur = self._open, None
        cur.close()

    def setinputsizes(self, sizes: Any, /) -> None:
        """Accepted: sizes and types come from the values."""

    def setoutputsize(self, size: Any = None, column: Any = None, /) -> None:
        """Accepted: long values come whole."""

    def _asked(self, question: tuple[str, list[Any]]) -> Cursor:
        self.execute(question[0], question[1])
        return self

    def tables(
        self,
        table: str | None = None,
        catalog: str | None = None,
        schema: str | None = None,
        tableType: str | None = None,
    ) -> Cursor:
        """The tables and views, as ODBC's `SQLTables` lists them; names are patterns of LIKE."""
        return self._asked(_catalog.tables(self._connection._dialect, table, catalog, schema, tableType))

    def columns(
        self, table: str | None = None, catalog: str | None = None, schema: str | None = None, column: str | None = None
    ) -> Cursor:
        """The columns of tables, as ODBC's `SQLColumns` lists them; names are patterns of LIKE."""
        return self._asked(_catalog.columns(self._connection._dialect, table, catalog, schema, column))

    def primaryKeys(self, table: str, catalog: str | None = None, schema: str | None = None) -> Cursor:
        """The columns of a table's primary key, as ODBC's `SQLPrimaryKeys` lists them."""
        return self._asked(_catalog.primary_keys(self._connection._dialect, table, catalog, schema))

    def foreignKeys(
        self,
        table: str | None = None,
        catalog: str | None = None,
        schema: str | None = None,
        foreignTable: str | None = None,
        foreignCatalog: str | None = None,
        foreignSchema: str | None = None,
    ) -> Cursor:
        """The foreign keys that point to ``table``, or stand in ``foreignTable``, as ODBC's `SQLForeignKeys` lists them."""
        names = (table, catalog, schema, foreignTable, foreignCatalog, foreignSchema)
        return self._asked(_catalog.foreign_keys(self._connection._dialect, *names))

    def statistics(
        self,
        table: str,
        catalog: str | None = None,
        schema: str | None = None,
        unique: bool = False,
        quick: bool = True,
    ) -> Cursor:
        """The indexes of a table, as ODBC's `SQLStatistics` lists them."""
        return self._asked(_catalog.statistics(self._connection._dialect, table, catalog, schema, unique))

    def procedures(self, procedure: str | None = None, catalog: str | None = None, schema: str | None = None) -> Cursor:
        """The procedures and functions, as ODBC's `SQLProcedures` lists them; names are patterns of LIKE."""
        return self._asked(_catalog.procedures(self._connection._dialect, procedure, catalog, schema))

    def _no_catalog(self, name: str) -> Cursor:
        raise NotSupportedError("HYC00", f"[HYC00] `{name}` is not there\nask the database's own tables for it")

    def procedureColumns(self, *names: Any, **keywords: Any) -> Cursor:
        """Not there: `NotSupportedError`."""
        return self._no_catalog("procedureColumns")

    def rowIdColumns(self, *names: Any, **keywords: Any) -> Cursor:
        """Not there: `NotSupportedError`."""
        return self._no_catalog("rowIdColumns")

    def rowVerColumns(self, *names: Any, **keywords: Any) -> Cursor:
        """Not there: `NotSupportedError`."""
        return self._no_catalog("rowVerColumns")

    def tablePrivileges(
        self, table: str | None = None, catalog: str | None = None, schema: str | None = None
    ) -> Cursor:
        """Who may do what with tables, as ODBC's `SQLTablePrivileges` lists it; names are patterns of LIKE."""
        return self._asked(_catalog.table_privileges(self._connection._dialect, table, catalog, schema))

    def getTypeInfo(self, sqlType: int | None = None) -> Cursor:
        """Not there: `NotSupportedError`."""
        return self._no_catalog("getTypeInfo")

    def __enter__(self) -> Cursor:
        return self

    def __exit__(self, exception_type: type[BaseException] | None, *_: object) -> None:
        if exception_type is None and self._cur is not None and not self._connection.autocommit:
            self._connection.commit()
