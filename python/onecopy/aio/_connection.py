"""Connections for asyncio: `connect` and `Connection`."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from types import TracebackType
from typing import Any, TypeVar, cast

from onecopy import _core
from onecopy.aio._cursor import Cursor
from onecopy.aio._event_loop import EventLoopRunner, run_connect
from onecopy.aio._thread import ThreadRunner
from onecopy.errors import Error, InterfaceError

T = TypeVar("T")


async def connect(target: str, **options: Any) -> Connection:
    """Open a connection. For PostgreSQL, the event loop watches the socket of the connection, even
    while the connection is opened. A connection to another database has its own thread.

    Args:
        target: as in `onecopy.connect`, whose other options are accepted too.

    Raises:
        OperationalError: the connection failed.
    """
    if (call := _core.begin_connect(target, **options)) is not None:
        return Connection(con := await run_connect(call), EventLoopRunner(con))
    thread = ThreadRunner()

    def close(con: _core.Connection) -> None:
        con.close()

    try:
        con = await thread.run(None, partial(_core.connect, target, **options), unwanted=close)
    except BaseException:
        thread.shutdown()
        raise
    return Connection(con, thread)


def runner_of(con: _core.Connection, thread: ThreadRunner) -> ThreadRunner:
    """Return the object that runs the calls on a connection. Calls that can be suspended run on the
    event loop; other calls run in the thread in which the connection was opened."""
    if thread.suspends or not con._suspends:
        return thread
    thread.shutdown()
    return EventLoopRunner(con)


class Connection:
    """A connection, opened by `connect` or lent by a `Pool`. Concurrent calls run one after the
    other.

    As a context manager (``async with``) it commits when the block ends, rolls back when the block
    raises an exception, and stays open. ``row_factory``, ``adapters`` and ``converters`` are called
    in the connection's thread; for PostgreSQL they are called on the event loop.
    """

    def __init__(self, con: _core.Connection, thread: ThreadRunner) -> None:
        self._con = con
        self._thread: ThreadRunner | None = thread

    def _runner(self) -> ThreadRunner:
        if self._thread is None:
            raise InterfaceError("this connection was returned to its pool")
        return self._thread

    async def _run(self, function: Callable[..., T], /, *args: Any, cancel: Callable[[], object] | None = None) -> T:
        return await self._runner().run(cancel or self._con.cancel, function, *args)

    async def _drive(
        self,
        begin: Callable[..., _core.PendingCall | None],
        function: Callable[..., T],
        /,
        *args: Any,
        cancel: Callable[[], object] | None = None,
    ) -> T:
        """Run one operation of the connection. If the connection has no thread, the event loop runs
        the non-blocking call that `begin` returns. Otherwise the thread runs the blocking
        `function`. If the task is cancelled, `cancel` is called, which cancels the statement on the
        server.
        """
        runner = self._runner()
        if runner.suspends:
            return cast(T, await runner.drive(begin, *args, cancel=cancel))
        return await runner.run(cancel or self._con.cancel, function, *args)

    def _start(self, function: Callable[[], object]) -> None:
        self._runner().start(function)

    @property
    def _suspends(self) -> bool:
        return self._thread is not None and self._thread.suspends

    @property
    def sync(self) -> _core.Connection:
        """The underlying `onecopy.Connection`, whose methods block."""
        return self._con

    @property
    def adapters(self) -> dict[type, Callable[[Any], Any]]:
        """The functions that convert parameters, by class, as in `onecopy.Connection.adapters`."""
        return self._con.adapters

    @property
    def converters(self) -> dict[str, Callable[[Any], Any]]:
        """The functions that convert values, by type name, as in
        `onecopy.Connection.converters`."""
        return self._con.converters

    @property
    def query_timeout(self) -> float | None:
        """The time limit of a statement in seconds, as in `onecopy.Connection.query_timeout`."""
        return self._con.query_timeout

    @query_timeout.setter
    def query_timeout(self, seconds: float | None) -> None:
        self._con.query_timeout = seconds

    @property
    def row_factory(self) -> Callable[[_core.Cursor], Callable[[tuple[Any, ...]], Any]] | None:
        """The row factory of new cursors, as in `onecopy.Connection.row_factory`."""
        return self._con.row_factory

    @row_factory.setter
    def row_factory(self, row_factory: Callable[[_core.Cursor], Callable[[tuple[Any, ...]], Any]] | None) -> None:
        self._con.row_factory = row_factory

    @property
    def autocommit(self) -> bool:
        """True if each statement is its own transaction; changed by `set_autocommit`."""
        return self._con.autocommit

    @property
    def closed(self) -> bool:
        """True if the connection was closed."""
        return self._con.closed

    @property
    def usable(self) -> bool:
        """True if the connection is not closed, and no call has detected that it is lost."""
        return self._con.usable

    async def set_autocommit(self, on: bool) -> None:
        """Set ``autocommit``: if it is true, each statement is its own transaction."""
        await self._drive(self._con._begin_set_autocommit, partial(setattr, self._con, "autocommit"), on)

    def cursor(self) -> Cursor:
        """Create a cursor on this connection."""
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
        await self._drive(self._con._begin_commit, self._con.commit)

    async def rollback(self) -> None:
        """Roll the transaction back."""
        await self._drive(self._con._begin_rollback, self._con.rollback)

    async def notifications(self, timeout: float = 0.0) -> list[_core.Notification]:
        """Return the notifications of PostgreSQL, as `onecopy.Connection.notifications` does. Other
        calls on the connection wait until this call has returned."""
        return await self._drive(self._con._begin_notifications, self._con.notifications, timeout)

    async def cancel(self) -> None:
        """Cancel the statement that is running on this connection, if any."""
        if self._suspends:
            self._con.cancel()  # `cancel` does not wait.
        else:
            await asyncio.to_thread(self._con.cancel)

    async def close(self) -> None:
        """Close the connection after all calls that were submitted before; an open transaction is
        rolled back. Closing twice is not an error."""
        thread = self._runner()
        if thread.closed:
            return
        try:
            await thread.close(self._con)
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
        if exception_type is None:
            await self.commit()
        else:
            # An error of the rollback, for example on a lost connection, does not replace the
            # block's exception.
            with contextlib.suppress(Error):
                await self.rollback()

    def __repr__(self) -> str:
        return repr(self._con).replace("<onecopy.", "<onecopy.aio.", 1)
