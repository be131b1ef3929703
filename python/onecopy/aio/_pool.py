"""`Pool`."""

from __future__ import annotations

import asyncio
import contextlib
import functools
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from typing import Any, Final, Literal

from onecopy import _core
from onecopy import keeper as _keeper
from onecopy.aio._connection import Connection
from onecopy.aio._cursor import RowStream
from onecopy.aio._thread import Thread
from onecopy.errors import InterfaceError
from onecopy.keeper import Entry, Keeper, PoolStats, Waiter

_OWN: Final = object()


class Pool:
    """Connections to one database, lent to tasks; first come, first served.

    Args:
        target, options: as for `onecopy.Pool`. ``min_size`` connections are opened by ``async with``, or `open`.

    >>> import asyncio
    >>> async def main():
    ...     async with Pool("sqlite::memory:", max_size=2) as pool:
    ...         async with pool.connection() as con:
    ...             print(await (await con.execute("select 1")).fetchall())
    >>> asyncio.run(main())
    [(1,)]
    """

    def __init__(
        self,
        target: str,
        *,
        min_size: int = 0,
        max_size: int = 10,
        timeout: float | None = 30.0,
        max_age: float | None = 3600.0,
        max_idle: float | None = 600.0,
        reset: Literal["rollback"] | Callable[[_core.Connection], object] | None = "rollback",
        probe: str | Callable[[_core.Connection], object] | None = "select 1",
        configure: Callable[[_core.Connection], object] | None = None,
        connect_timeout: float = 15.0,
        **options: Any,
    ) -> None:
        self._keeper = Keeper(
            target,
            min_size=min_size,
            max_size=max_size,
            timeout=timeout,
            max_age=max_age,
            max_idle=max_idle,
            reset=reset,
            probe=probe,
            configure=configure,
            connect_timeout=connect_timeout,
            options=options,
        )
        self._lent: dict[Connection, Entry] = {}

    async def open(self) -> None:
        """Open the least number of connections.

        Raises:
            OperationalError: one cannot be opened.
        """
        await asyncio.to_thread(self._keeper.fill)

    async def acquire(self, timeout: float | None = _OWN) -> Connection:  # type: ignore[assignment]
        """A connection, to be given back by `release`.

        Args:
            timeout: seconds to wait in place of the pool's; None for ever.

        Raises:
            PoolTimeout: none became free in time.
            OperationalError: the database cannot be reached.
            InterfaceError: the pool is closed.
        """
        keeper = self._keeper
        limit = keeper.timeout if timeout is _OWN else timeout
        loop = asyncio.get_running_loop()
        woken: asyncio.Future[None] = loop.create_future()
        waiter = Waiter(lambda: loop.call_soon_threadsafe(_settle, woken))
        begun = _keeper.now()
        try:
            keeper.ask(waiter)
            if not waiter.granted:
                done, _ = await asyncio.wait({woken}, timeout=limit)
                if not done and (failure := keeper.timed_out(waiter, _keeper.now() - begun)):
                    raise failure
                if not waiter.granted:
                    raise InterfaceError("the pool was closed")
        except BaseException:
            keeper.abandon(waiter)
            raise
        held = waiter.entry.aside if waiter.entry is not None else None
        thread: Thread = held or Thread()

        def prepare() -> Entry:
            try:
                entry = keeper.prepare(waiter)
            except BaseException:
                thread.shutdown()
                raise
            # Where an old connection was dropped, its thread went with it.
            entry.aside = Thread() if thread.closed else thread
            return entry

        entry = await thread.run(None, prepare, unwanted=keeper.give_back)
        con = Connection(entry.con, entry.aside)
        self._lent[con] = entry
        return con

    async def release(self, con: Connection) -> None:
        """Give a connection back; what was not committed is rolled back.

        Raises:
            InterfaceError: it is not out of this pool.
        """
        await self._give_back(con, suspect=False)

    async def _give_back(self, con: Connection, suspect: bool) -> None:
        entry = self._lent.pop(con, None)
        if entry is None:
            raise InterfaceError(
                "this connection is not out of this pool\nit was given back before, or is another pool's"
            )
        con._thread = None
        thread: Thread = entry.aside
        if thread.closed:
            await asyncio.to_thread(self._keeper.give_back, entry, True)
        else:
            await thread.run(None, self._keeper.give_back, entry, suspect)

    @contextlib.asynccontextmanager
    async def connection(self, timeout: float | None = _OWN) -> AsyncIterator[Connection]:  # type: ignore[assignment]
        """Lend a connection for a block: committed at its end, rolled back after an exception, and given back.

        Args, Raises: as `acquire`.
        """
        con = await self.acquire(timeout)
        suspect = True
        try:
            async with con:
                yield con
            suspect = False
        finally:
            await self._give_back(con, suspect)

    async def stream(
        self,
        sql: str,
        parameters: Iterable[Any] | Mapping[str, Any] | None = None,
        *,
        format: Literal["json", "ndjson", "csv", "bson"] = "json",
    ) -> RowStream:
        """As `onecopy.Pool.stream`: the rows of one statement, on a connection that the stream gives back."""
        con = await self.acquire()
        try:
            rows: RowStream = getattr(await con.execute(sql, parameters), format)()
        except BaseException:
            await self._give_back(con, suspect=True)
            raise
        rows.on_close(functools.partial(self._give_back_soon, con))
        return rows

    def _give_back_soon(self, con: Connection) -> None:
        """Give a connection back from any thread, in its own."""
        entry = self._lent.pop(con)
        con._thread = None
        try:
            entry.aside.start(functools.partial(self._keeper.give_back, entry))
        except InterfaceError:
            self._keeper.give_back(entry, True)

    def stats(self) -> PoolStats:
        """What the pool holds, and what it has done."""
        return self._keeper.stats()

    async def close(self) -> None:
        """Close the idle connections, and the others when they come back; who waits gets an `InterfaceError`."""
        await asyncio.to_thread(self._keeper.close)

    aclose = close

    async def __aenter__(self) -> Pool:
        await self.open()
        return self

    async def __aexit__(self, *_exception: object) -> None:
        await self.close()

    def __repr__(self) -> str:
        now = self.stats()
        state = "closed" if self._keeper.closed else f"{now.idle} idle, {now.out} out, at most {self._keeper.max_size}"
        return f"<onecopy.aio.Pool: {state}>"


def _settle(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)
