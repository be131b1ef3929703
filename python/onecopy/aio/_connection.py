"""`connect` and `Connection`."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable, Iterable, Mapping
from types import TracebackType
from typing import Any, TypeVar

from onecopy import _core
from onecopy.aio._cursor import Cursor
from onecopy.aio._thread import Thread
from onecopy.errors import InterfaceError

T = TypeVar("T")


async def connect(target: str, **options: Any) -> Connection:
    """Open a connection in a thread of its own.

    Args:
        target: as for `onecopy.connect`, whose other options are taken too.

    Raises:
        OperationalError: no connection.
    """
    thread = Thread()

    def close(con: _core.Connection) -> None:
        con.close()

    try:
        con = await thread.run(None, functools.partial(_core.connect, target, **options), unwanted=close)
    except BaseException:
        thread.shutdown()
        raise
    return Connection(con, thread)


class Connection:
    """A connection, made by `connect` or lent by a `Pool`. Calls of several tasks run one after the other.

    As a context manager (``async with``) it commits when the block ends, rolls back when the block raises, and stays open.
    ``row_factory``, ``adapters`` and ``converters`` are called in its thread.
    """

    def __init__(self, con: _core.Connection, thread: Thread) -> None:
        self._con = con
        self._thread: Thread | None = thread

    async def _run(self, function: Callable[..., T], /, *args: Any, cancel: Callable[[], object] | None = None) -> T:
        if self._thread is None:
            raise InterfaceError("this connection was returned to its pool")
        return await self._thread.run(cancel or self._con.cancel, function, *args)

    def _start(self, function: Callable[[], object]) -> None:
        if self._thread is None:
            raise InterfaceError("this connection was returned to its pool")
        self._thread.start(function)

    @property
    def sync(self) -> _core.Connection:
        """The connection behind it, whose calls block."""
        return self._con

    @property
    def adapters(self) -> dict[type, Callable[[Any], Any]]:
        """As `onecopy.Connection.adapters`."""
        return self._con.adapters

    @property
    def converters(self) -> dict[str, Callable[[Any], Any]]:
        """As `onecopy.Connection.converters`."""
        return self._con.converters

    @property
    def timeout(self) -> float | None:
        """As `onecopy.Connection.timeout`."""
        return self._con.timeout

    @timeout.setter
    def timeout(self, seconds: float | None) -> None:
        self._con.timeout = seconds

    @property
    def row_factory(self) -> Callable[[_core.Cursor], Callable[[tuple[Any, ...]], Any]] | None:
        """As `onecopy.Connection.row_factory`."""
        return self._con.row_factory

    @row_factory.setter
    def row_factory(self, row_factory: Callable[[_core.Cursor], Callable[[tuple[Any, ...]], Any]] | None) -> None:
        self._con.row_factory = row_factory

    @property
    def autocommit(self) -> bool:
        """Whether each statement is its own transaction; changed by `set_autocommit`."""
        return self._con.autocommit

    @property
    def closed(self) -> bool:
        """Whether it was closed."""
        return self._con.closed

    @property
    def usable(self) -> bool:
        """Whether it can be used: not closed, and no call has found it lost."""
        return self._con.usable

    async def set_autocommit(self, on: bool) -> None:
        """Turn autocommit on or off."""
        await self._run(setattr, self._con, "autocommit", on)

    def cursor(self) -> Cursor:
        """A new cursor."""
        return Cursor(self, self._con.cursor())

    async def execute(self, sql: str, parameters: Iterable[Any] | Mapping[str, Any] | None = None) -> Cursor:
        """Run one statement on a new cursor, and return the cursor."""
        return await self.cursor().execute(sql, parameters)

    async def executemany(
        self,
        sql: str,
        rows: Iterable[Iterable[Any] | Mapping[str, Any]] | None = None,
        *,
        columns: Iterable[Any] | None = None,
    ) -> Cursor:
        """Run one statement for each row of parameters on a new cursor, and return the cursor."""
        return await self.cursor().executemany(sql, rows, columns=columns)

    async def commit(self) -> None:
        """Commit the transaction."""
        await self._run(self._con.commit)

    async def rollback(self) -> None:
        """Roll the transaction back."""
        await self._run(self._con.rollback)

    async def cancel(self) -> None:
        """Stop what runs on this connection at the moment."""
        await asyncio.to_thread(self._con.cancel)

    async def close(self) -> None:
        """Close the connection, after the calls before; an open transaction is rolled back. Closing twice is no error."""
        thread = self._thread
        if thread is None:
            raise InterfaceError("this connection was returned to its pool")
        if thread.closed:
            return
        try:
            await thread.run(None, self._con.close)
        finally:
            thread.shutdown()

    aclose = close

    async def __aenter__(self) -> Connection:
        return self

    async def __aexit__(
        self,
        exception_type: type[BaseException] | None,
        exception: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await (self.commit() if exception_type is None else self.rollback())

    def __repr__(self) -> str:
        return repr(self._con).replace("<onecopy.", "<onecopy.aio.", 1)
