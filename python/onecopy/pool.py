"""`Pool`: connections that are opened once and lent many times, to threads.

>>> import onecopy
>>> with onecopy.Pool("sqlite::memory:", max_size=2) as pool:
...     with pool.connection() as con:
...         con.execute("select 'Zoë'").fetchone()
('Zoë',)
"""

from __future__ import annotations

import contextlib
import functools
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Literal

from onecopy import keeper as _keeper
from onecopy.errors import InterfaceError
from onecopy.keeper import Keeper, PoolStats, PoolTimeout, Waiter

if TYPE_CHECKING:
    from onecopy._core import Connection, RowStream

__all__ = ["Pool", "PoolStats", "PoolTimeout"]

_OWN: Final = object()


class Pool:
    """Connections to one database, lent to threads.

    Args:
        target: as for `onecopy.connect`.
        min_size: connections that are opened at once and kept.
        max_size: connections at most; who asks for more waits, first come first served.
        timeout: seconds to wait for a free connection, or None for ever.
        max_age: seconds after which a connection is closed instead of lent again; None: never.
        max_idle: seconds of idleness after which one is closed, where there are more than `min_size`; None: never.
        reset: ``"rollback"`` when one comes back (and ``autocommit``, ``row_factory``, ``timeout``, adapters and converters as they were),
            a function that takes the connection instead of the rollback, or None to leave it as it is.
        probe: a query, or a function that takes the connection, that must succeed before it is lent again; None: no look.
        configure: a function that each new connection is given to once.
        connect_timeout: seconds to connect, `connect`'s ``timeout``.
        options: the other options of `connect`: ``read_only``, ``autocommit``, ``errors``, ``row_factory``.

    Raises:
        OperationalError: a connection of the first `min_size` cannot be opened.
        ValueError: sizes or times that make no sense.

    All methods may be called by any thread. No thread works behind the scenes: what is too old or idle for too long is
    closed when a connection is lent or given back. After a fork the child starts with an empty pool.

    >>> pool = Pool("sqlite::memory:", max_size=1, autocommit=True)
    >>> con = pool.acquire()
    >>> con.execute("select 1").fetchall()
    [(1,)]
    >>> pool.release(con)
    >>> pool.stats().idle
    1
    >>> pool.close()
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
        reset: Literal["rollback"] | Callable[[Connection], object] | None = "rollback",
        probe: str | Callable[[Connection], object] | None = "select 1",
        configure: Callable[[Connection], object] | None = None,
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
        self._keeper.fill()

    def acquire(self, timeout: float | None = _OWN) -> Connection:  # type: ignore[assignment]
        """A connection, to be given back by `release`. Ctrl-C ends the wait.

        Args:
            timeout: seconds to wait in place of the pool's; None for ever.

        Raises:
            PoolTimeout: none became free in time.
            OperationalError: the database cannot be reached.
            InterfaceError: the pool is closed.
        """
        keeper = self._keeper
        limit = keeper.timeout if timeout is _OWN else timeout
        woken = threading.Lock()
        woken.acquire()
        waiter = Waiter(woken.release)
        begun = _keeper.now()
        try:
            keeper.ask(waiter)
            if not waiter.granted:
                in_time = woken.acquire(timeout=-1 if limit is None else min(max(limit, 0), threading.TIMEOUT_MAX))
                if not in_time and (failure := keeper.timed_out(waiter, _keeper.now() - begun)):
                    raise failure
                if not waiter.granted:
                    raise InterfaceError("the pool was closed")
        except BaseException:
            keeper.abandon(waiter)
            raise
        return keeper.prepare(waiter).con

    def release(self, con: Connection) -> None:
        """Give a connection back.

        Raises:
            InterfaceError: it is not out of this pool.
        """
        self._keeper.give_back(self._keeper.find(con))

    @contextlib.contextmanager
    def connection(self, timeout: float | None = _OWN) -> Iterator[Connection]:  # type: ignore[assignment]
        """Lend a connection for a block: committed at its end, rolled back after an exception, and given back.

        Args, Raises: as `acquire`.
        """
        con = self.acquire(timeout)
        entry = self._keeper.find(con)
        suspect = True
        try:
            with con:
                yield con
            suspect = False
        finally:
            self._keeper.give_back(entry, suspect)

    def stream(
        self,
        sql: str,
        parameters: Iterable[Any] | Mapping[str, Any] | None = None,
        *,
        format: Literal["json", "ndjson", "csv", "bson"] = "json",
    ) -> RowStream:
        """The rows of one statement as a `RowStream`, on a connection that it gives back by itself: behind the last row, when it
        fails, is closed or goes away. What the statement changed is rolled back, unless the pool's connections commit by themselves.

        Raises:
            Error: as `acquire` and `Cursor.execute`; the connection is back in the pool then.

        >>> pool = Pool("sqlite::memory:")
        >>> pool.stream("select 1 as id", format="csv").read()
        b'id\\n1\\n'
        >>> pool.stats().out
        0
        """
        con = self.acquire()
        entry = self._keeper.find(con)
        try:
            rows: RowStream = getattr(con.execute(sql, parameters), format)()
        except BaseException:
            self._keeper.give_back(entry, True)
            raise
        rows.on_close(functools.partial(self._keeper.give_back, entry))
        return rows

    def stats(self) -> PoolStats:
        """What the pool holds, and what it has done."""
        return self._keeper.stats()

    def close(self) -> None:
        """Close the idle connections, and the others when they come back; who waits gets an `InterfaceError`."""
        self._keeper.close()

    def __enter__(self) -> Pool:
        return self

    def __exit__(
        self,
        exception_type: type[BaseException] | None,
        exception: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        now = self.stats()
        state = "closed" if self._keeper.closed else f"{now.idle} idle, {now.out} out, at most {self._keeper.max_size}"
        return f"<onecopy.Pool: {state}>"
