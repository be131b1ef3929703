"""`Pool`: keeps connections open and lends them to threads.

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

from onecopy import _pool_core
from onecopy._pool_core import PoolCore, PoolStats, PoolTimeout, Waiter
from onecopy.errors import InterfaceError

if TYPE_CHECKING:
    from onecopy._core import Connection, RowStream

__all__ = ["Pool", "PoolStats", "PoolTimeout"]

_OWN: Final = object()


class Pool:
    """A pool of connections to one database, for threads.

    Args:
        target: as in `onecopy.connect`.
        min_size: the number of connections that are opened when the pool is created, and kept open.
        max_size: the maximum number of connections. If all are lent, callers wait, and are served
            in the order of their calls.
        timeout: seconds to wait for a free connection; None: without limit.
        max_age: seconds after which a connection is closed instead of being lent again; None: no
            limit.
        max_idle: seconds after which an idle connection is closed, if there are more than
            `min_size`; None: no limit.
        reset: what to do when a connection is returned. ``"rollback"`` rolls back; a function is
            called with the connection instead; None does neither. Unless it is None,
            ``autocommit``, ``row_factory``, ``query_timeout``, adapters and converters are
            restored, too.
        probe: a query, or a function that is called with the connection. It must succeed before a
            connection is lent again; otherwise the connection is replaced. None: no check.
        configure: a function that is called once with each new connection.
        connect_timeout: the time limit for connecting in seconds, as in `connect`.
        options: the other options of `connect`: ``read_only``, ``autocommit``, ``errors``,
            ``row_factory``.

    Raises:
        OperationalError: one of the first `min_size` connections cannot be opened.
        ValueError: a size or a time is out of range.

    All methods may be called from any thread. There is no background thread: connections that are
    too old or were idle for too long are closed when any connection is lent or returned. After a
    fork, the pool is empty in the child process.

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
        self._pool.fill()

    def acquire(self, timeout: float | None = _OWN) -> Connection:  # type: ignore[assignment]
        """Take a connection out of the pool; return it with `release`. Ctrl-C interrupts the wait
        for a free connection.

        Args:
            timeout: seconds to wait, instead of the pool's ``timeout``; None: without limit.

        Raises:
            PoolTimeout: no connection became free in time.
            OperationalError: the database cannot be reached.
            InterfaceError: the pool is closed.
        """
        pool = self._pool
        limit = pool.timeout if timeout is _OWN else timeout
        woken = threading.Lock()
        woken.acquire()
        waiter = Waiter(woken.release)
        begun = _pool_core.now()
        try:
            pool.request(waiter)
            if not waiter.granted:
                in_time = woken.acquire(timeout=-1 if limit is None else min(max(limit, 0), threading.TIMEOUT_MAX))
                if not in_time and (failure := pool.timed_out(waiter, _pool_core.now() - begun)):
                    raise failure
                if not waiter.granted:
                    raise InterfaceError("the pool was closed")
        except BaseException:
            pool.abandon(waiter)
            raise
        return pool.prepare(waiter).con

    def release(self, con: Connection) -> None:
        """Return a connection to the pool.

        Raises:
            InterfaceError: the connection is not lent out by this pool.
        """
        self._pool.give_back(self._pool.find(con))

    @contextlib.contextmanager
    def connection(self, timeout: float | None = _OWN) -> Iterator[Connection]:  # type: ignore[assignment]
        """Lend a connection for a block: commit at its end, roll back after an exception, and
        return the connection to the pool.

        The argument and the exceptions are those of `acquire`.
        """
        con = self.acquire(timeout)
        entry = self._pool.find(con)
        suspect = True
        try:
            with con:
                yield con
            suspect = False
        finally:
            self._pool.give_back(entry, suspect)

    def stream(
        self,
        sql: str,
        parameters: Iterable[Any] | Mapping[str, Any] | None = None,
        *,
        format: Literal["json", "ndjson", "csv", "bson"] = "json",
    ) -> RowStream:
        """Return the rows of one statement as a `RowStream`. The stream returns its connection to
        the pool after the last row, after an error, or when it is closed or garbage-collected.
        Changes that the statement makes are rolled back, unless the pool's connections use
        autocommit.

        Raises:
            Error: as in `acquire` and `Cursor.execute`; the connection has then been returned.
            ValueError: the format is unknown.

        >>> pool = Pool("sqlite::memory:")
        >>> pool.stream("select 1 as id", format="csv").read()
        b'id\\n1\\n'
        >>> pool.stats().out
        0
        """
        begin = _pool_core.stream_method(format)
        con = self.acquire()
        entry = self._pool.find(con)
        try:
            rows: RowStream = begin(con.execute(sql, parameters))
        except BaseException:
            self._pool.give_back(entry, True)
            raise
        rows.on_close(functools.partial(self._pool.give_back, entry))
        return rows

    def stats(self) -> PoolStats:
        """Return the numbers of connections in each state, and the counters of the pool."""
        return self._pool.stats()

    def close(self) -> None:
        """Close the idle connections immediately, and the others when they are returned. Callers
        that wait for a connection get an `InterfaceError`."""
        self._pool.close()

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
        state = "closed" if self._pool.closed else f"{now.idle} idle, {now.out} out, at most {self._pool.max_size}"
        return f"<onecopy.Pool: {state}>"
