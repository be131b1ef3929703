"""Cursors for asyncio."""

from __future__ import annotations

import contextlib
import sys
from collections import deque
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from onecopy import _callproc, _core
from onecopy.aio._stream import RowStream
from onecopy.errors import Error, InterfaceError, ProgrammingError, Warning

if TYPE_CHECKING:
    from onecopy.aio._connection import Connection

T = TypeVar("T")


class Cursor:
    """A cursor for asyncio: the methods of PEP 249 as coroutines, and ``async for`` over the
    rows."""

    def __init__(self, connection: Connection, cur: _core.Cursor) -> None:
        self._connection, self._cur = connection, cur
        # 1 row is prefetched at first, then 16, and then 256 at a time. The first row therefore
        # arrives soon, and the cost of a thread switch is distributed over many rows.
        self._ready: deque[Any] = deque()
        self._n_prefetch = 1
        #: The error that occurred after the rows which `fetchmany` returned; the next call raises
        #: it.
        self._failure: Error | None = None

    async def _run(self, function: Callable[..., T], /, *args: Any) -> T:
        return await self._connection._run(function, *args)

    def _forget(self) -> None:
        self._ready.clear()
        self._n_prefetch = 1
        self._failure = None

    @property
    def connection(self) -> Connection:
        """The connection that made this cursor."""
        return self._connection

    @property
    def sync(self) -> _core.Cursor:
        """The underlying `onecopy.Cursor`. Its fetch methods do not return rows that this object
        has already prefetched."""
        return self._cur

    @property
    def description(self) -> tuple[tuple[str, str, None, int | None, int | None, int | None, bool | None], ...] | None:
        """The columns of the result, as in `onecopy.Cursor.description`."""
        return self._cur.description

    @property
    def type_names(self) -> list[str]:
        """The database's names of the column types, as in `onecopy.Cursor.type_names`."""
        return self._cur.type_names

    @property
    def rowcount(self) -> int:
        """The number of rows of the last statement (PEP 249), as in `onecopy.Cursor.rowcount`."""
        return self._cur.rowcount

    @property
    def lastrowid(self) -> int | None:
        """The id of the last inserted row, as in `onecopy.Cursor.lastrowid`."""
        return self._cur.lastrowid

    @property
    def rownumber(self) -> int | None:
        """Index (from 0) of the next row of the result, or ``None`` if there is no result."""
        fetched = self._cur.rownumber
        return None if fetched is None else fetched - len(self._ready)

    @property
    def messages(self) -> list[tuple[type[Warning], Warning]]:
        """The messages that the database has sent, as in `onecopy.Cursor.messages`."""
        return self._cur.messages

    @property
    def converters(self) -> dict[int | str, Callable[[Any], Any]]:
        """The functions that convert the values of columns, as in `onecopy.Cursor.converters`."""
        return self._cur.converters

    @property
    def row_factory(self) -> Callable[[_core.Cursor], Callable[[tuple[Any, ...]], Any]] | None:
        """The row factory of this cursor, as in `onecopy.Cursor.row_factory`."""
        return self._cur.row_factory

    @row_factory.setter
    def row_factory(self, row_factory: Callable[[_core.Cursor], Callable[[tuple[Any, ...]], Any]] | None) -> None:
        self._cur.row_factory = row_factory

    @property
    def arraysize(self) -> int:
        """The default number of rows for `fetchmany`."""
        return self._cur.arraysize

    @arraysize.setter
    def arraysize(self, size: int) -> None:
        self._cur.arraysize = size

    async def execute(self, sql: str, parameters: Iterable[Any] | Mapping[str, Any] | None = None) -> Cursor:
        """Run one statement with its parameters bound, and return the cursor."""
        self._forget()
        await self._connection._drive(self._cur._begin_execute, self._cur.execute, sql, parameters)
        return self

    async def executemany(
        self,
        sql: str,
        rows: Iterable[Iterable[Any] | Mapping[str, Any]] | None = None,
        *,
        columns: Iterable[Any] | None = None,
    ) -> Cursor:
        """Run one statement for each row of parameters. The parameters are given as ``rows`` or as
        ``columns`` (see `onecopy.Cursor.executemany`). For PostgreSQL, iterables are read on the
        event loop."""
        self._forget()
        run: Callable[..., object] = self._cur.executemany
        function = partial(run, sql, rows) if columns is None else partial(run, sql, rows, columns=columns)
        await self._connection._drive(partial(self._cur._begin_executemany, sql, rows, columns), function)
        return self

    async def insert_arrow(self, into: str, stream: Any) -> Cursor:
        """Insert the rows of an Arrow stream, as `onecopy.Cursor.insert_arrow` does; for PostgreSQL,
        the stream is read on the event loop."""
        self._forget()
        await self._connection._drive(self._cur._begin_insert_arrow, self._cur.insert_arrow, into, stream)
        return self

    async def fetch_columns(self, size: int | None = None) -> list[Any]:
        """Return the remaining rows, or up to ``size`` rows, as columns: see
        `onecopy.Cursor.fetch_columns`.

        Raises:
            ProgrammingError: rows were prefetched for `fetchone` or ``async for``; fetch either
                only columns or only rows.
        """
        if self._ready:
            raise ProgrammingError("rows of this statement were prefetched\nfetch only columns, or only rows")
        if not self._connection._suspends:
            return await self._run(self._cur.fetch_columns, size)
        pending = self._cur._begin_columns(size)
        while (columns := pending.add_ready()) is None:
            await self._receive()
        return columns

    async def arrow(self, *, batch_bytes: int | None = None, types: dict[str, Any] | None = None) -> _core.ArrowStream:
        """Return the remaining rows as a stream of Arrow record batches, for a library that accepts
        ``__arrow_c_stream__``. Reading the stream blocks on the database: read it in a thread
        (``await asyncio.to_thread(pyarrow.table, stream)``), and do not await other calls on this
        connection until the stream has been read.

        Raises:
            ProgrammingError: some rows were fetched already.
        """
        make = partial(self._cur.arrow, batch_bytes=batch_bytes, types=types)
        return make() if self._connection._suspends else await self._run(make)

    async def _fetch(self, size: int | None) -> list[Any]:
        """Fetch up to ``size`` rows, or all rows if ``size`` is None."""
        connection, cur = self._connection, self._cur
        if not connection._suspends:
            return await (self._run(cur.fetchall) if size is None else self._run(cur.fetchmany, size))
        limit = sys.maxsize if size is None else size
        rows: list[Any] = []
        while True:
            if self._failure is not None:
                failure, self._failure = self._failure, None
                raise failure
            try:
                if not cur._is_ready:
                    await self._receive()
                part = cur._fetch_ready(limit - len(rows))
            except Error as error:
                # Rows before a row that fails are returned, unless all rows were requested.
                if size is None or not rows:
                    raise
                self._failure = error
                return rows
            if not rows:
                rows = part
            else:
                rows += part
            if not part or len(rows) == limit:
                return rows

    async def _receive(self) -> None:
        """Wait until rows can be fetched, while the event loop runs other tasks."""
        await self._connection._runner().drive(self._cur._begin_receive, cancel=self._cur._cancel)

    async def _refill(self) -> bool:
        self._ready.extend(await self._fetch(self._n_prefetch))
        self._n_prefetch = min(self._n_prefetch * 16, 256)
        return bool(self._ready)

    async def fetchone(self) -> Any:
        """Return the next row, or ``None`` after the last one."""
        return self._ready.popleft() if self._ready or await self._refill() else None

    async def fetchmany(self, size: int | None = None) -> list[Any]:
        """Return up to ``size`` rows (default: ``arraysize``)."""
        size = self.arraysize if size is None else size
        if not self._ready:
            return await self._fetch(size)
        # Only rows that are missing are requested: rows that are ready need no call of the
        # database.
        rows = [self._ready.popleft() for _ in range(min(size, len(self._ready)))]
        if len(rows) < size:
            rows += await self._fetch(size - len(rows))
        return rows

    async def fetchall(self) -> list[Any]:
        """Return all remaining rows."""
        rest = await self._fetch(None)
        rows = [*self._ready, *rest] if self._ready else rest
        self._ready.clear()
        return rows

    def __aiter__(self) -> Cursor:
        return self

    async def __anext__(self) -> Any:
        if not self._ready and not await self._refill():
            raise StopAsyncIteration
        return self._ready.popleft()

    async def callproc(self, name: str, parameters: Iterable[Any] | None = None, /) -> list[Any]:
        """Call a stored procedure, as `onecopy.Cursor.callproc` does."""
        self._forget()
        if not self._connection._suspends:
            return await self._run(self._cur.callproc, name, parameters)
        given = _callproc.given(self._connection.sync.dialect, () if parameters is None else parameters)
        query = _callproc.catalog_query(self._connection.sync.dialect, name)
        catalog = self._connection.cursor()
        catalog.row_factory = None
        await catalog.execute(*query)
        call = _callproc.plan(self._connection.sync.dialect, name, await catalog.fetchall(), given)
        await self.execute(call.sql, call.inputs)
        self._cur._expect_outputs(call.result, call.places, call.names)
        await self._settle()
        return call.result

    async def _settle(self) -> bool:
        """If the current result is the row with the output parameters, store their values and
        return true; otherwise return false."""
        while (is_output := self._cur._settle_ready()) is None:
            await self._receive()
        return is_output

    async def copy_in(self, sql: str, chunks: Any) -> Cursor:
        """Run a COPY from the client, as `onecopy.Cursor.copy_in` does; the chunks are read on the
        event loop."""
        self._forget()
        await self._connection._drive(self._cur._begin_copy_in, self._cur.copy_in, sql, chunks)
        return self

    async def copy_out(self, sql: str) -> AsyncGenerator[bytes, None]:
        """Run a COPY to the client, as `onecopy.Cursor.copy_out` does; return an asynchronous
        iterator of chunks."""
        self._forget()
        connection = self._connection
        copy = await connection._drive(self._cur._begin_copy_out, self._cur.copy_out, sql)
        try:
            while (chunk := await connection._drive(copy._begin_next, lambda: next(copy, None))) is not None:
                yield chunk
        finally:
            # A rollback of the connection, or its pool, has ended the COPY before.
            with contextlib.suppress(InterfaceError):
                await connection._drive(copy._begin_close, copy.close)

    async def nextset(self) -> bool | None:
        """Advance to the next result that has rows; return ``True``, or ``None`` after the last
        result."""
        self._forget()
        cur = self._cur
        has_next = await self._connection._drive(cur._begin_nextset, cur.nextset, cancel=cur._cancel)
        return has_next and (None if self._connection._suspends and await self._settle() else True)

    async def scroll(self, value: int, mode: Literal["relative", "absolute"] = "relative") -> None:
        """Skip ``value`` rows (``"relative"``), or move to the row with the index ``value``
        (``"absolute"``).

        Raises:
            IndexError: the result has fewer rows.
            NotSupportedError: the new position is before the current one.
        """
        at = self.rownumber
        steps = value - (at or 0) if mode == "absolute" else value
        if at is None or mode not in ("relative", "absolute") or steps < 0:
            self._cur.scroll(value, mode)  # It raises an exception.
        from_ready = min(steps, len(self._ready))
        for _ in range(from_ready):
            self._ready.popleft()
        steps -= from_ready
        if steps > 0 and not self._connection._suspends:
            await self._run(self._cur.scroll, steps)
            steps = 0
        while steps > 0:
            if not self._cur._is_ready:
                await self._receive()
            steps -= self._cur._skip_ready(steps)

    def json(self) -> RowStream:
        """Return the rows as one JSON array of objects, as a `RowStream`: see
        `onecopy.Cursor.json`."""
        return self._stream(self._cur.json)

    def ndjson(self) -> RowStream:
        """Return the rows as NDJSON, one object per line, as a `RowStream`."""
        return self._stream(self._cur.ndjson)

    def csv(self) -> RowStream:
        """Return the rows as CSV with a header line, as a `RowStream`."""
        return self._stream(self._cur.csv)

    def bson(
        self,
        *,
        decimals: Literal["decimal128", "text"] = "decimal128",
        datetimes: Literal["datetime", "text"] = "datetime",
        max_bytes: int = 2**31 - 1,
    ) -> RowStream:
        """Return the rows as BSON, one document per row, as a `RowStream`: see
        `onecopy.Cursor.bson`."""
        return self._stream(lambda: self._cur.bson(decimals=decimals, datetimes=datetimes, max_bytes=max_bytes))

    def _stream(self, make: Callable[[], _core.RowStream]) -> RowStream:
        return RowStream(self._connection, make())

    def setinputsizes(self, sizes: Sequence[Any]) -> None:
        """Declare the types and sizes of the next statement's parameters, as
        `onecopy.Cursor.setinputsizes` does."""
        self._cur.setinputsizes(sizes)

    def setoutputsize(self, size: int, column: int | None = None) -> None:
        """Do nothing, as PEP 249 permits: long values are always returned whole."""

    async def close(self) -> None:
        """Close the cursor; closing twice is not an error."""
        self._forget()
        if self._connection._suspends:
            self._cur.close()  # The next call discards the remaining rows, without a wait here.
        else:
            await self._run(self._cur.close)

    aclose = close

    async def __aenter__(self) -> Cursor:
        return self

    async def __aexit__(self, *_exception: object) -> None:
        await self.close()
