"""Connection pools for asyncio."""

from __future__ import annotations

import asyncio
import contextlib
import functools
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from typing import Any, Final, Literal

from onecopy import _core, _pool_core
from onecopy._pool_core import Entry, PoolCore, PoolStats, Waiter
from onecopy.aio._connection import Connection, runner_of
from onecopy.aio._event_loop import EventLoopRunner, run_connect
from onecopy.aio._stream import RowStream
from onecopy.aio._thread import ThreadRunner
from onecopy.errors import Error, InterfaceError

_OWN: Final = object()


class Pool:
    """A pool of connections to one database, which lends them to tasks in the order of their
    requests.

    Args:
        target, options: as in `onecopy.Pool`. `open`, or ``async with``, opens ``min_size``
            connections.

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
        self._pool = PoolCore(
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
        #: The tasks that take connections back; the event loop has only weak references to them.
        self._returning: set[asyncio.Task[None]] = set()

    async def open(self) -> None:
        """Open ``min_size`` connections.

        Raises:
            OperationalError: a connection cannot be opened.
        """
        opened: list[Connection] = []

        async def open_one() -> None:
            opened.append(await self.acquire())

        try:
            failures = await asyncio.gather(*(open_one() for _ in range(self._pool.min_size)), return_exceptions=True)
        finally:
            for con in opened:
                await self.release(con)
        for failure in failures:
            if failure is not None:
                raise failure

    async def acquire(self, timeout: float | None = _OWN) -> Connection:  # type: ignore[assignment]
        """Take a connection out of the pool; return it with `release`.

        Args:
            timeout: seconds to wait, instead of the pool's ``timeout``; None: without limit.

        Raises:
            PoolTimeout: no connection became free in time.
            OperationalError: the database cannot be reached.
            InterfaceError: the pool is closed.
        """
        pool = self._pool
        limit = pool.timeout if timeout is _OWN else timeout
        loop = asyncio.get_running_loop()
        woken: asyncio.Future[None] = loop.create_future()
        waiter = Waiter(lambda: loop.call_soon_threadsafe(_settle, woken))
        begun = _pool_core.now()
        try:
            pool.request(waiter)
            if not waiter.granted:
                done, _ = await asyncio.wait({woken}, timeout=limit)
                if not done and (failure := pool.timed_out(waiter, _pool_core.now() - begun)):
                    raise failure
                if not waiter.granted:
                    raise InterfaceError("the pool was closed")
        except BaseException:
            pool.abandon(waiter)
            raise
        try:
            answers = await self._answers(waiter.entry)
        except BaseException:
            pool.abandon(waiter)
            raise
        if answers and waiter.entry is not None and pool.is_young(waiter.entry):
            entry = pool.prepare(waiter, answers)
        else:
            entry = await self._open_on_loop(waiter, answers) or await self._prepare_in_thread(waiter, answers)
        con = Connection(entry.con, entry.aside)
        self._lent[con] = entry
        return con

    async def _answers(self, entry: Entry | None) -> bool | None:
        """Probe a connection on the event loop. Return `False` if the probe fails, and `True`
        otherwise. Return `None` if the probe cannot run on the event loop, but only in a thread."""
        probe = self._pool.probe
        if entry is None or not entry.con._suspends or callable(probe):
            return None
        if probe is not None:
            con = Connection(entry.con, entry.aside)
            try:
                await (await con.execute(probe)).fetchall()
                if not entry.con.autocommit:
                    await con.rollback()  # The borrower's transaction must not start with the probe.
            except Error:
                return False
        return True

    async def _open_on_loop(self, waiter: Waiter, answers: bool | None) -> Entry | None:
        """Open a connection on the event loop. It replaces a connection that is too old or does not
        answer. Return `None` if it cannot be opened on the event loop, but only in a thread."""
        pool = self._pool
        if waiter.entry is not None and answers is None:
            return None
        try:
            if (call := pool.begin_open()) is None:
                return None
            pool.discard(waiter)
            con = await run_connect(call)
        except BaseException:
            pool.discard(waiter)
            pool.abandon(waiter)
            raise
        try:
            entry = pool.prepare(waiter, opened=con)
        except BaseException:
            con.close()
            raise
        entry.aside = EventLoopRunner(con)
        return entry

    async def _prepare_in_thread(self, waiter: Waiter, answers: bool | None) -> Entry:
        pool = self._pool
        held = waiter.entry.aside if waiter.entry is not None else None
        thread: ThreadRunner = held or ThreadRunner()

        def prepare() -> Entry:
            try:
                entry = pool.prepare(waiter, answers)
            except BaseException:
                thread.shutdown()
                raise
            # If a stale connection was dropped, its thread was shut down too.
            entry.aside = ThreadRunner() if thread.closed else thread
            return entry

        entry = await thread.run(None, prepare, unwanted=pool.give_back)
        entry.aside = runner_of(entry.con, entry.aside)
        return entry

    async def release(self, con: Connection) -> None:
        """Return a connection to the pool; uncommitted changes are rolled back.

        Raises:
            InterfaceError: the connection is not lent out by this pool.
        """
        await self._give_back(con, suspect=False)

    async def _give_back(self, con: Connection, suspect: bool) -> None:
        entry = self._lent.pop(con, None)
        if entry is None:
            raise InterfaceError(
                "this connection is not lent out by this pool\nit was returned before, or belongs to another pool"
            )
        con._thread = None
        thread: ThreadRunner = entry.aside
        if thread.closed:
            self._pool.give_back(entry, is_sound=False)
        elif thread.suspends:
            try:
                await self._give_back_on_loop(entry, suspect)
            except BaseException:
                # The task was cancelled. The call under way is cancelled too, and has to end first.
                self._give_back_in_task(entry)
                raise
        else:
            await thread.run(None, self._pool.give_back, entry, suspect)

    async def _give_back_on_loop(self, entry: Entry, suspect: bool) -> None:
        """Take a connection back into the pool, as `PoolCore.give_back` does, but run the database
        calls (rollback, probe) on the event loop."""
        pool = self._pool
        if callable(pool.reset) or (suspect and callable(pool.probe)):
            # These functions of the caller block, so they run in a thread.
            await entry.aside.run(None, pool.give_back, entry, suspect)
            return
        try:
            if pool.reset is not None:
                await Connection(entry.con, entry.aside).rollback()
            is_sound = not suspect or bool(await self._answers(entry))
        except Error:
            is_sound = False
        pool.give_back(entry, is_sound=is_sound)

    def _give_back_in_task(self, entry: Entry) -> None:
        """Take a connection back into the pool in a separate task. If this task is cancelled or
        fails, the connection is closed."""
        give_back = self._give_back_on_loop(entry, True)
        try:
            task = asyncio.get_running_loop().create_task(give_back)
        except RuntimeError:  # No event loop runs.
            give_back.close()
            self._pool.give_back(entry, is_sound=False)
            return
        self._returning.add(task)

        def end(task: asyncio.Task[None]) -> None:
            self._returning.discard(task)
            if task.cancelled() or task.exception() is not None:
                self._pool.give_back(entry, is_sound=False)

        task.add_done_callback(end)

    @contextlib.asynccontextmanager
    async def connection(self, timeout: float | None = _OWN) -> AsyncIterator[Connection]:  # type: ignore[assignment]
        """Lend a connection for a block: commit at its end, roll back after an exception, and
        return the connection to the pool.

        The argument and the exceptions are those of `acquire`.
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
        """Return the rows of one statement as a stream that returns its connection to the pool when
        it ends: see `onecopy.Pool.stream`."""
        begin = _pool_core.stream_method(format)
        con = await self.acquire()
        try:
            rows: RowStream = begin(await con.execute(sql, parameters))
        except BaseException:
            await self._give_back(con, suspect=True)
            raise
        rows.on_close(functools.partial(self._give_back_soon, con, asyncio.get_running_loop()))
        return rows

    def _give_back_soon(self, con: Connection, loop: asyncio.AbstractEventLoop) -> None:
        """Return a connection to the pool without waiting until it is reset. A task or another
        thread resets the connection later. Any thread may call this method."""
        entry = self._lent.pop(con)
        con._thread = None
        try:
            if entry.aside.suspends:
                loop.call_soon_threadsafe(self._give_back_in_task, entry)
            else:
                entry.aside.start(functools.partial(self._pool.give_back, entry))
        except (InterfaceError, RuntimeError):  # The connection or the event loop is closed.
            self._pool.give_back(entry, is_sound=False)

    def stats(self) -> PoolStats:
        """Return the numbers of connections in each state, and the counters of the pool."""
        return self._pool.stats()

    async def close(self) -> None:
        """Close the idle connections immediately, and the others when they are returned. Callers
        that wait for a connection get an `InterfaceError`."""
        if self._pool.suspends():
            self._pool.close()
        else:
            await asyncio.to_thread(self._pool.close)

    aclose = close

    async def __aenter__(self) -> Pool:
        await self.open()
        return self

    async def __aexit__(self, *_exception: object) -> None:
        await self.close()

    def __repr__(self) -> str:
        now = self.stats()
        state = "closed" if self._pool.closed else f"{now.idle} idle, {now.out} out, at most {self._pool.max_size}"
        return f"<onecopy.aio.Pool: {state}>"


def _settle(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)
