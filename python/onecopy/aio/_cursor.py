"""`Cursor` and `RowStream`."""

from __future__ import annotations

import asyncio
import os
import threading
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeVar

from onecopy import _core
from onecopy.ahead import Ahead
from onecopy.errors import ProgrammingError, Warning

if TYPE_CHECKING:
    from onecopy.aio._connection import Connection

T = TypeVar("T")


class Cursor:
    """A cursor: PEP 249 with ``await``, and ``async for``."""

    def __init__(self, connection: Connection, cur: _core.Cursor) -> None:
        self._connection, self._cur = connection, cur
        # Rows are fetched ahead, 1, 16, then 256 at once, so that the first comes soon and the others cost no switch each.
        self._ready: deque[Any] = deque()
        self._ahead = 1

    async def _run(self, function: Callable[..., T], /, *args: Any) -> T:
        return await self._connection._run(function, *args)

    def _forget(self) -> None:
        self._ready.clear()
        self._ahead = 1

    @property
    def connection(self) -> Connection:
        """The connection."""
        return self._connection

    @property
    def sync(self) -> _core.Cursor:
        """The cursor behind it; rows that were fetched ahead are not in it any more."""
        return self._cur

    @property
    def description(self) -> tuple[tuple[str, str, None, int | None, int | None, int | None, bool | None], ...] | None:
        """As `onecopy.Cursor.description`."""
        return self._cur.description

    @property
    def type_names(self) -> list[str]:
        """As `onecopy.Cursor.type_names`."""
        return self._cur.type_names

    @property
    def rowcount(self) -> int:
        """As `onecopy.Cursor.rowcount`."""
        return self._cur.rowcount

    @property
    def lastrowid(self) -> int | None:
        """As `onecopy.Cursor.lastrowid`."""
        return self._cur.lastrowid

    @property
    def rownumber(self) -> int | None:
        """Index (from 0) of the next row of the result, or ``None`` where there is none."""
        fetched = self._cur.rownumber
        return None if fetched is None else fetched - len(self._ready)

    @property
    def messages(self) -> list[tuple[type[Warning], Warning]]:
        """As `onecopy.Cursor.messages`."""
        return self._cur.messages

    @property
    def converters(self) -> dict[int | str, Callable[[Any], Any]]:
        """As `onecopy.Cursor.converters`."""
        return self._cur.converters

    @property
    def row_factory(self) -> Callable[[_core.Cursor], Callable[[tuple[Any, ...]], Any]] | None:
        """As `onecopy.Cursor.row_factory`."""
        return self._cur.row_factory

    @row_factory.setter
    def row_factory(self, row_factory: Callable[[_core.Cursor], Callable[[tuple[Any, ...]], Any]] | None) -> None:
        self._cur.row_factory = row_factory

    @property
    def arraysize(self) -> int:
        """Rows that `fetchmany` gives by default."""
        return self._cur.arraysize

    @arraysize.setter
    def arraysize(self, size: int) -> None:
        self._cur.arraysize = size

    async def execute(self, sql: str, parameters: Iterable[Any] | Mapping[str, Any] | None = None) -> Cursor:
        """Run one statement with its parameters bound; returns the cursor."""
        self._forget()
        await self._run(self._cur.execute, sql, parameters)
        return self

    async def executemany(
        self,
        sql: str,
        rows: Iterable[Iterable[Any] | Mapping[str, Any]] | None = None,
        *,
        columns: Iterable[Any] | None = None,
    ) -> Cursor:
        """Run one statement for each row of parameters, given as ``rows`` or as ``columns`` (`onecopy.Cursor.executemany`);
        iterables are read in the connection's thread."""
        self._forget()
        run: Callable[..., object] = self._cur.executemany
        await self._run(partial(run, sql, rows) if columns is None else partial(run, sql, rows, columns=columns))
        return self

    async def insert_arrow(self, into: str, stream: Any) -> Cursor:
        """As `onecopy.Cursor.insert_arrow`; the stream is read in the connection's thread."""
        self._forget()
        await self._run(self._cur.insert_arrow, into, stream)
        return self

    async def fetch_columns(self, size: int | None = None) -> list[Any]:
        """As `onecopy.Cursor.fetch_columns`: the rows still to come, or up to ``size``, as columns.

        Raises:
            ProgrammingError: rows were fetched ahead for `fetchone` or ``async for``: fetch columns alone, or rows alone.
        """
        if self._ready:
            raise ProgrammingError("rows of this statement were fetched ahead\nfetch columns alone, or rows alone")
        return await self._run(self._cur.fetch_columns, size)

    async def arrow(self, *, batch_bytes: int | None = None, types: dict[str, Any] | None = None) -> _core.ArrowStream:
        """The rows still to come as a stream of Arrow's batches, for a library that takes ``__arrow_c_stream__``. What reads it
        waits for the database: read it in a thread (``await asyncio.to_thread(pyarrow.table, stream)``), and await nothing else
        of this connection meanwhile.

        Raises:
            ProgrammingError: rows were fetched already.
        """
        return await self._run(partial(self._cur.arrow, batch_bytes=batch_bytes, types=types))

    async def _refill(self) -> bool:
        self._ready.extend(await self._run(self._cur.fetchmany, self._ahead))
        self._ahead = min(self._ahead * 16, 256)
        return bool(self._ready)

    async def fetchone(self) -> Any:
        """The next row, or ``None`` after the last one."""
        return self._ready.popleft() if self._ready or await self._refill() else None

    async def fetchmany(self, size: int | None = None) -> list[Any]:
        """Up to ``size`` rows (``arraysize`` where it is left out)."""
        size = self.arraysize if size is None else size
        if not self._ready:
            return await self._run(self._cur.fetchmany, size)
        # What stands here already is given; a call more would only be for its rest.
        rows = [self._ready.popleft() for _ in range(min(size, len(self._ready)))]
        if len(rows) < size:
            rows += await self._run(self._cur.fetchmany, size - len(rows))
        return rows

    async def fetchall(self) -> list[Any]:
        """All rows still to come."""
        rest = await self._run(self._cur.fetchall)
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
        """As `onecopy.Cursor.callproc`."""
        self._forget()
        return await self._run(self._cur.callproc, name, parameters)

    async def nextset(self) -> bool | None:
        """Go to the next result with rows: ``True``, or ``None`` where there is none."""
        self._forget()
        return await self._run(self._cur.nextset)

    async def scroll(self, value: int, mode: Literal["relative", "absolute"] = "relative") -> None:
        """Pass ``value`` rows (``"relative"``), or all before the row of that index (``"absolute"``).

        Raises:
            IndexError: there are fewer rows.
            NotSupportedError: it would go back.
        """
        at = self.rownumber
        steps = value - (at or 0) if mode == "absolute" else value
        if at is None or mode not in ("relative", "absolute") or not 0 <= steps <= len(self._ready):
            behind = len(self._ready) if mode == "relative" and steps > 0 else 0
            if steps > 0:
                self._forget()
            await self._run(self._cur.scroll, value - behind, mode)
            return
        for _ in range(steps):
            self._ready.popleft()

    def json(self) -> RowStream:
        """The rows as one JSON array of objects: as `onecopy.Cursor.json`, with ``async for``."""
        return self._stream(self._cur.json)

    def ndjson(self) -> RowStream:
        """The rows as one JSON object a line."""
        return self._stream(self._cur.ndjson)

    def csv(self) -> RowStream:
        """The rows as CSV with a header line."""
        return self._stream(self._cur.csv)

    def bson(
        self,
        *,
        decimals: Literal["decimal128", "text"] = "decimal128",
        datetimes: Literal["datetime", "text"] = "datetime",
        max_size: int = 2**31 - 1,
    ) -> RowStream:
        """The rows as BSON, a document each: as `onecopy.Cursor.bson`."""
        return self._stream(lambda: self._cur.bson(decimals=decimals, datetimes=datetimes, max_size=max_size))

    def _stream(self, make: Callable[[], _core.RowStream]) -> RowStream:
        return RowStream(self._connection, make())

    def setinputsizes(self, sizes: Sequence[Any]) -> None:
        """As `onecopy.Cursor.setinputsizes`: types and sizes of the next statement's parameters."""
        self._cur.setinputsizes(sizes)

    def setoutputsize(self, size: int, column: int | None = None) -> None:
        """Does nothing (PEP 249 lets it): long values always come whole."""

    async def close(self) -> None:
        """Close the cursor; closing twice is no error."""
        self._forget()
        await self._run(self._cur.close)

    aclose = close

    async def __aenter__(self) -> Cursor:
        return self

    async def __aexit__(self, *_exception: object) -> None:
        await self.close()


class _Writes(Protocol):
    def write(self, data: bytes, /) -> object: ...


class RowStream:
    """Rows as bytes: an asynchronous iterable of chunks, filled ahead in the connection's thread. Left before its end it cannot
    be read on.

    Copies: none; the chunk is the ``bytes`` that cells were converted into.
    """

    def __init__(self, connection: Connection, stream: _core.RowStream) -> None:
        self._connection, self._stream = connection, stream
        # Then the connection may be another task's, and what is left of the stream is there.
        self._ended = threading.Event()
        stream.on_close(self._ended.set)

    async def _run(self, function: Callable[..., T], /, *args: Any) -> T:
        if self._ended.is_set():
            return await asyncio.to_thread(function, *args)
        return await self._connection._run(function, *args, cancel=self._stream.cancel)

    def _start(self, function: Callable[[], None]) -> None:
        if self._ended.is_set():
            function()
        else:
            self._connection._start(function)

    @property
    def n_rows(self) -> int:
        """Rows written so far."""
        return self._stream.n_rows

    @property
    def format(self) -> str:
        """As `onecopy.RowStream.format`."""
        return self._stream.format

    @property
    def sync(self) -> _core.RowStream:
        """The stream behind it, whose calls block."""
        return self._stream

    async def begin(self) -> int | None:
        """As `onecopy.RowStream.begin`: the first chunk is filled, and a failure in it raised."""
        return await self._run(self._stream.begin)

    def _ahead(self) -> Ahead:
        """What ``async for`` reads: an asynchronous iterator that can be stopped."""
        return Ahead(self._stream, self._start)

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self._ahead()

    async def read(self) -> bytes:
        """All that is left."""
        return await self._run(self._stream.read)

    async def write_to(self, target: str | os.PathLike[str] | _Writes) -> int:
        """Write all that is left into a file, a socket or a path, in the connection's thread; the number of bytes."""
        return await self._run(self._stream.write_to, target)

    def cancel(self) -> None:
        """Make the stream fail."""
        self._stream.cancel()

    def on_close(self, function: Callable[[], object], /) -> None:
        """As `onecopy.RowStream.on_close`: any thread may call the function."""
        self._stream.on_close(function)

    async def close(self) -> None:
        """Let the statement go."""
        await self._run(self._stream.close)

    aclose = close

    async def __aenter__(self) -> RowStream:
        return self

    async def __aexit__(self, *_exception: object) -> None:
        await self.close()
