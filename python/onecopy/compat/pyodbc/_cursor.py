"""Cursors of pyodbc."""

from __future__ import annotations

import datetime
import itertools
import re
import uuid
from collections.abc import Callable, Iterable, Iterator
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from onecopy import _core, errors
from onecopy.compat.pyodbc import _catalog, _decimals
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
    "timetz": datetime.time,
    "timestamp": datetime.datetime,
    "timestamptz": datetime.datetime,
}


#: Statements for which psqlODBC reports that no row was changed, and not that the number is unknown.
_ZERO = re.compile(r"\s*(create|truncate|lock)\b", re.I)


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


class _Fetched:
    """An iterator over the remaining rows of a result. `Cursor.rowcount` has to count the rows, so
    it fetched all of them."""

    def __init__(self, cur: _core.Cursor) -> None:
        self._cur = cur
        n_before = cur.rownumber or 0
        rows = cur.fetchall()
        self.n_rows = n_before + len(rows)
        self._rows = iter(rows)

    def fetchone(self) -> Any:
        return next(self._rows, None)

    def fetchmany(self, size: int | None = None) -> list[Any]:
        return [*itertools.islice(self._rows, self._cur.arraysize if size is None else size)]

    def fetchall(self) -> list[Any]:
        return [*self._rows]

    def __iter__(self) -> Iterator[Any]:
        return self._rows


class Cursor:
    """A cursor. As a context manager it commits when the block ends without an exception."""

    #: This has no effect on speed. If true, `executemany` refuses decimals for PostgreSQL that do
    #: not fit in ODBC's `SQL_NUMERIC_STRUCT`, which has 38 digits.
    fast_executemany = False
    #: Has no effect: the driver handles ODBC escape sequences.
    noscan = False

    def __init__(self, connection: Connection, cur: _core.Cursor) -> None:
        self._connection = connection
        self._cur: _core.Cursor | None = cur
        #: The SQL text of the last statement; `None` if the statement failed.
        self._ran: str | None = None
        self._fetched: _Fetched | None = None
        cur.row_factory = _rows

    @property
    def _open(self) -> _core.Cursor:
        if self._cur is None:
            raise ProgrammingError("HY000", "Attempt to use a closed cursor.")
        self._connection._open  # noqa: B018, it raises if the connection is closed
        return self._cur

    @property
    def _with_rows(self) -> _core.Cursor | _Fetched:
        cur = self._open
        if cur.description is None:
            raise ProgrammingError("HY000", "No results.  Previous SQL was not a query.")
        return self._fetched or cur

    @property
    def onecopy(self) -> _core.Cursor:
        """The underlying cursor of onecopy: its `json`, `ndjson`, `csv` and `bson` return rows as
        bytes."""
        return self._open

    @property
    def connection(self) -> Connection:
        """The connection that made this cursor."""
        return self._connection

    @property
    def description(self) -> Description | None:
        """The description of the columns (PEP 249), seven items for each, with the type as a Python
        class; `None` for a statement without rows."""
        cur = self._open
        return None if cur.description is None else _description(cur)

    @property
    def rowcount(self) -> int:
        """The number of rows that the last statement changed or, with MariaDB, MySQL and
        PostgreSQL, returns; -1 if it is not known.

        PostgreSQL sends this number only after the rows. Therefore reading this attribute fetches
        the remaining rows into memory, as psqlodbc does for each query. The number is 0 for DDL
        with MariaDB, MySQL and SQLite, and for CREATE, TRUNCATE and LOCK with PostgreSQL, as with
        their ODBC drivers.
        """
        cur = self._open
        dialect = self._connection._dialect
        if cur.rowcount != -1 or self._ran is None:
            return cur.rowcount
        if cur.description is None:
            is_none = dialect in ("mysql", "sqlite") or (dialect == "postgresql" and _ZERO.match(self._ran))
            return 0 if is_none else -1
        return self._counted() if dialect == "postgresql" else -1

    @translating
    def _counted(self) -> int:
        if self._fetched is None:
            self._fetched = self._connection._within(_Fetched, self._open)
        return self._fetched.n_rows

    @property
    def messages(self) -> list[tuple[str, str]]:
        """The messages of the database other than errors. Each is a pair of ``[SQLSTATE] (native
        code)`` and the text."""
        return [(f"[{said.sqlstate}] ({said.native_code})", str(said)) for _, said in self._open.messages]

    @property
    def arraysize(self) -> int:
        """The default number of rows for `fetchmany`."""
        return self._open.arraysize

    @arraysize.setter
    def arraysize(self, size: int) -> None:
        self._open.arraysize = size

    @property
    def rows_as_dicts(self) -> bool:
        """True if the rows of later statements are returned as dicts."""
        return self._open.row_factory is _dicts

    @rows_as_dicts.setter
    def rows_as_dicts(self, on: bool) -> None:
        self._open.row_factory = _dicts if on else _rows

    @translating
    def execute(self, sql: str, *params: Any) -> Cursor:
        """Run one statement; parameters for ``?`` are separate arguments or one tuple, list or
        `Row`.

        Raises:
            ProgrammingError: the statement is incorrect, or a parameter's class has no SQL type.
        """
        cur = self._open
        if len(params) == 1 and isinstance(params[0], (tuple, list)):
            params = tuple(params[0])
        try:
            self._run(cur.execute, sql, params)
        except TypeError as error:
            raise ProgrammingError("HY105", f"[HY105] Invalid parameter type. {error}") from error
        return self

    def _run(self, function: Callable[[str, Any], object], sql: str, params: Any) -> None:
        self._ran = self._fetched = None
        self._connection._within(function, sql, params)
        self._ran = sql

    @translating
    def executemany(self, sql: str, params: Iterable[Any]) -> None:
        """Run one statement for each sequence of parameters.

        Raises:
            ProgrammingError: ``params`` is empty, or an error of `execute`; ``row`` is the index of
                the sequence that caused the error.
        """
        cur = self._open
        if isinstance(params, (list, tuple)) and not params:
            raise ProgrammingError("HY000", "The second parameter to executemany must not be empty.")
        if not isinstance(params, Iterable):
            message = "The second parameter to executemany must be a sequence, iterator, or generator."
            raise ProgrammingError("HY000", message)
        if isinstance(params, (list, tuple)) and isinstance(params[0], (set, frozenset, str)):
            raise TypeError("Params must be in a list, tuple, or Row")
        adapters = self._connection._open.adapters
        checks = self.fast_executemany and adapters.get(Decimal) is _decimals.parameter
        if checks:
            adapters[Decimal] = _decimals.parameter_in_struct
        try:
            self._run(cur.executemany, sql, params)
        except TypeError as error:
            raise ProgrammingError("HY105", f"[HY105] Invalid parameter type. {error}") from error
        finally:
            if checks:
                adapters[Decimal] = _decimals.parameter

    @translating
    def fetchone(self) -> Row | None:
        """Return the next row, or `None` after the last one."""
        row: Row | None = self._with_rows.fetchone()
        return row

    @translating
    def fetchval(self) -> Any:
        """Return the first value of the next row, or `None` if there are no more rows."""
        row = self._with_rows.fetchone()
        if row is None:
            return None
        return next(iter(row.values())) if isinstance(row, dict) else row[0]

    @translating
    def fetchmany(self, size: int | None = None) -> list[Row]:
        """Return up to ``size`` rows (default: ``arraysize``)."""
        return self._with_rows.fetchmany(size)

    @translating
    def fetchall(self) -> list[Row]:
        """Return all remaining rows."""
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
        """Skip rows; skipping past the last row is not an error."""
        cur = self._with_rows
        while count > 0 and (passed := len(cur.fetchmany(min(count, 1000)))):
            count -= passed

    @translating
    def nextset(self) -> bool:
        """Advance to the next result that has rows; return false after the last result."""
        self._fetched = None
        return bool(self._connection._within(self._open.nextset))

    def cancel(self) -> None:
        """Cancel the running statement of the connection. Call this method from another thread."""
        self._connection._open.cancel()

    def commit(self) -> None:
        """Commit the connection's transaction."""
        self._connection.commit()

    def rollback(self) -> None:
        """Roll back the connection's transaction."""
        self._connection.rollback()

    @translating
    def close(self) -> None:
        """Close the cursor."""
        cur, self._cur = self._open, None
        cur.close()

    def setinputsizes(self, sizes: Any, /) -> None:
        """Has no effect: sizes and types are taken from the values."""

    def setoutputsize(self, size: Any = None, column: Any = None, /) -> None:
        """Has no effect: long values are returned whole."""

    def _catalog(self, function: Callable[..., tuple[str, list[str]]], *names: Any) -> Cursor:
        self._open  # noqa: B018, it raises if the cursor is closed
        for name in names:
            if isinstance(name, str) and len(name.encode("utf-16-le")) > 65_534:
                raise ValueError("The name is longer than ODBC's 32,767 characters.")
        return self.execute(*function(self._connection._dialect, *names))

    def tables(
        self,
        table: str | None = None,
        catalog: str | None = None,
        schema: str | None = None,
        tableType: str | None = None,
    ) -> Cursor:
        """List tables and views, as ODBC's `SQLTables` does; names are LIKE patterns."""
        return self._catalog(_catalog.tables, table, catalog, schema, tableType)

    def columns(
        self, table: str | None = None, catalog: str | None = None, schema: str | None = None, column: str | None = None
    ) -> Cursor:
        """List the columns of tables, as ODBC's `SQLColumns` does; names are LIKE patterns."""
        return self._catalog(_catalog.columns, table, catalog, schema, column)

    def primaryKeys(self, table: str, catalog: str | None = None, schema: str | None = None) -> Cursor:
        """List the columns of a table's primary key, as ODBC's `SQLPrimaryKeys` does."""
        return self._catalog(_catalog.primary_keys, table, catalog, schema)

    def foreignKeys(
        self,
        table: str | None = None,
        catalog: str | None = None,
        schema: str | None = None,
        foreignTable: str | None = None,
        foreignCatalog: str | None = None,
        foreignSchema: str | None = None,
    ) -> Cursor:
        """List foreign keys that refer to ``table`` or are defined in ``foreignTable``, as ODBC's
        `SQLForeignKeys` does."""
        names = (table, catalog, schema, foreignTable, foreignCatalog, foreignSchema)
        return self._catalog(_catalog.foreign_keys, *names)

    def statistics(
        self,
        table: str,
        catalog: str | None = None,
        schema: str | None = None,
        unique: bool = False,
        quick: bool = True,
    ) -> Cursor:
        """List the indexes of a table, as ODBC's `SQLStatistics` does."""
        return self._catalog(_catalog.statistics, table, catalog, schema, unique)

    def procedures(self, procedure: str | None = None, catalog: str | None = None, schema: str | None = None) -> Cursor:
        """List procedures and functions, as ODBC's `SQLProcedures` does; names are LIKE
        patterns."""
        return self._catalog(_catalog.procedures, procedure, catalog, schema)

    def _no_catalog(self, name: str) -> Cursor:
        self._open  # noqa: B018, as above
        raise NotSupportedError("HYC00", f"[HYC00] `{name}` is not supported\nquery the database's own catalog")

    def procedureColumns(self, *names: Any, **keywords: Any) -> Cursor:
        """Not supported: raises `NotSupportedError`."""
        return self._no_catalog("procedureColumns")

    def rowIdColumns(self, *names: Any, **keywords: Any) -> Cursor:
        """Not supported: raises `NotSupportedError`."""
        return self._no_catalog("rowIdColumns")

    def rowVerColumns(self, *names: Any, **keywords: Any) -> Cursor:
        """Not supported: raises `NotSupportedError`."""
        return self._no_catalog("rowVerColumns")

    def tablePrivileges(
        self, table: str | None = None, catalog: str | None = None, schema: str | None = None
    ) -> Cursor:
        """List the privileges on tables, as ODBC's `SQLTablePrivileges` does; names are LIKE
        patterns."""
        return self._catalog(_catalog.table_privileges, table, catalog, schema)

    def getTypeInfo(self, sqlType: int | None = None) -> Cursor:
        """Not supported: raises `NotSupportedError`."""
        return self._no_catalog("getTypeInfo")

    def __enter__(self) -> Cursor:
        return self

    def __exit__(self, exception_type: type[BaseException] | None, *_: object) -> None:
        if exception_type is None and self._cur is not None and not self._connection.autocommit:
            self._connection.commit()
