"""The shared implementation of `Pool` and `onecopy.aio.Pool`: connections, and the wait queue."""

from __future__ import annotations

import contextlib
import operator
import os
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from onecopy._core import begin_connect, connect
from onecopy.errors import Error, InterfaceError, OperationalError

if TYPE_CHECKING:
    from onecopy._core import Connection, PendingCall

__all__ = ["Entry", "PoolCore", "PoolStats", "PoolTimeout", "Waiter"]

#: The formats of `Pool.stream`: methods of a cursor that return a stream.
STREAM_FORMATS = ("json", "ndjson", "csv", "bson")

now = time.monotonic


class PoolTimeout(OperationalError):
    """Raised if no connection becomes free within the time limit.

    Attributes:
        n_out: the number of connections that were lent out at that moment.
        longest_s: the longest time in seconds for which one of these connections had been lent out.
        waited_s: the number of seconds that the caller waited.
    """

    def __init__(self, message: str = "", *, n_out: int = 0, longest_s: float = 0.0, waited_s: float = 0.0) -> None:
        super().__init__(message, sqlstate="HYT00")
        self.n_out = n_out
        self.longest_s = longest_s
        self.waited_s = waited_s


class PoolStats(NamedTuple):
    """The current state of a pool, and its counters since it was created."""

    idle: int
    """The number of idle connections."""
    out: int
    """The number of connections that are lent out."""
    opening: int
    """The number of connections that are being opened, or checked before they are lent."""
    waiting: int
    """The number of callers that wait for a connection."""
    opened: int
    """The number of connections opened so far."""
    dropped: int
    """The number of connections closed so far because they were broken, too old, or idle for too
    long."""
    lent: int
    """The number of times that a connection was lent."""
    timeouts: int
    """The number of callers that waited until their time limit expired."""


class Entry:
    """A connection of a pool, with the time at which it was opened, the time of its last use, and
    its original settings."""

    __slots__ = ("aside", "con", "opened", "settings", "since")

    def __init__(self, con: Connection) -> None:
        self.con = con
        self.opened = self.since = now()
        self.settings = (con.autocommit, con.row_factory, con.query_timeout, dict(con.adapters), dict(con.converters))
        #: An object that a pool stores with the connection: for `onecopy.aio.Pool`, the thread.
        self.aside: Any = None

    def restore(self) -> None:
        """Undo the borrower's changes to the connection's settings."""
        autocommit, row_factory, query_timeout, adapters, converters = self.settings
        if self.con.autocommit != autocommit:
            self.con.autocommit = autocommit
        self.con.row_factory = row_factory
        self.con.query_timeout = query_timeout
        _put_back(self.con.adapters, adapters)
        _put_back(self.con.converters, converters)


class Waiter:
    """A caller that waits for a connection. The pool grants it an open connection (an `Entry`), or
    permission to open a connection."""

    __slots__ = ("entry", "granted", "wake")

    def __init__(self, wake: Callable[[], object]) -> None:
        self.entry: Entry | None = None
        self.granted = False
        #: Wakes the caller. The pool calls it with its lock held, so it must not block. It raises
        #: `RuntimeError` if the caller no longer exists.
        self.wake = wake


class PoolCore:
    """The connections and the wait queue of a pool, shared by `Pool` and `onecopy.aio.Pool`.

    The lock is held only briefly, never while a connection is opened, probed, reset or closed.
    While callers wait, no connection is idle and `max_size` connections exist. A connection that
    becomes free, or the permission to open one, is therefore granted to the first caller.
    """

    def __init__(
        self,
        target: str,
        *,
        min_size: int,
        max_size: int,
        timeout: float | None,
        max_age: float | None,
        max_idle: float | None,
        reset: Literal["rollback"] | Callable[[Connection], object] | None,
        probe: str | Callable[[Connection], object] | None,
        configure: Callable[[Connection], object] | None,
        connect_timeout: float,
        options: dict[str, Any],
    ) -> None:
        if not 0 <= min_size <= max_size or max_size < 1:
            raise ValueError("`min_size` is from 0 to `max_size`, `max_size` at least 1")
        for name, seconds in (("timeout", timeout), ("max_age", max_age), ("max_idle", max_idle)):
            if seconds is not None and not seconds >= 0:
                raise ValueError(f"`{name}` is in seconds from 0, or None")
        if not (reset is None or reset == "rollback" or callable(reset)):
            raise ValueError('`reset` is "rollback", a function that takes a connection, or None')
        self._target = target
        self._options = {"connect_timeout": connect_timeout, **options}
        self.min_size, self.max_size, self.timeout = min_size, max_size, timeout
        self._max_age, self._max_idle = max_age, max_idle
        self.reset, self.probe, self._configure = reset, probe, configure
        self.closed = False
        self._opened = self._dropped = self._lent = self._timeouts = 0
        self._begin()
        _pools.add(self)

    def _begin(self) -> None:
        """Make the pool empty. Called by the constructor, and in a forked child process, which must
        not use the connections of its parent process."""
        self._lock = threading.Lock()
        self._idle: list[Entry] = []  # The most recently used one is last, and is lent first.
        self._out: dict[int, Entry] = {}
        self._waiters: deque[Waiter] = deque()
        self._size = 0  # Idle, lent out, or being opened.

    def fill(self) -> None:
        """Open ``min_size`` connections."""
        waiters = [Waiter(_nothing) for _ in range(self.min_size)]
        entries: list[Entry] = []
        try:
            for waiter in waiters:
                self.request(waiter)
                entries.append(self.prepare(waiter))
        finally:
            for entry in entries:
                self.give_back(entry)

    # Methods for callers that wait.

    def request(self, waiter: Waiter) -> None:
        """Grant the caller a connection, or permission to open one. If this is not possible now,
        append the caller to the queue.

        Raises:
            InterfaceError: the pool is closed.
        """
        with self._lock:
            self._check_open()
            if self._waiters or not (self._idle or self._size < self.max_size):
                self._waiters.append(waiter)
                return
            waiter.granted = True
            if self._idle:
                waiter.entry = self._idle.pop()
            else:
                self._size += 1

    def abandon(self, waiter: Waiter) -> None:
        """Remove a caller from the queue. If the caller was already granted a connection or the
        permission to open one, grant it to the next caller in the queue."""
        dropped = None
        with self._lock:
            if waiter.granted:
                waiter.granted = False
                if self.closed:
                    dropped, waiter.entry = waiter.entry, None
                self._grant(waiter.entry)
            else:
                with contextlib.suppress(ValueError):
                    self._waiters.remove(waiter)
        if dropped is not None:
            self._drop(dropped)

    def timed_out(self, waiter: Waiter, waited_s: float) -> PoolTimeout | None:
        """Remove a caller whose time limit has expired from the queue, and return the error to
        raise. Return `None` if a connection, or the permission to open one, was granted to the
        caller in the meantime."""
        with self._lock:
            if waiter.granted:
                return None
            with contextlib.suppress(ValueError):
                self._waiters.remove(waiter)
            self._timeouts += 1
            at = now()
            times = sorted((at - entry.since for entry in self._out.values()), reverse=True)
            opening = self._size - len(self._out) - len(self._idle)
        longest = times[0] if times else 0.0
        many = f"{len(times)} of {self.max_size} connections are out, for {_seconds(times)}"
        being = f", {opening} being opened" if opening else ""
        message = f"no connection became free in {waited_s:.1f} s: {many}{being}\n"
        message += "give connections back sooner, or allow more by `max_size`"
        return PoolTimeout(message, n_out=len(times), longest_s=longest, waited_s=waited_s)

    def _check_open(self) -> None:
        if self.closed:
            raise InterfaceError("the pool is closed")

    def _grant(self, entry: Entry | None) -> None:
        """Grant ``entry`` to the first caller in the queue. If ``entry`` is ``None``, because a
        connection was closed, grant the permission to open a connection. If no caller waits, keep
        the connection as an idle one. The lock must be held."""
        while self._waiters:
            waiter = self._waiters.popleft()
            waiter.entry, waiter.granted = entry, True
            try:
                waiter.wake()
            except RuntimeError:
                continue
            return
        if entry is not None:
            self._idle.append(entry)
        else:
            self._size -= 1

    # The functions below may block, so the lock is not held.

    def begin_open(self) -> PendingCall | None:
        """Return a `PendingCall` that opens a connection on the event loop. Return `None` if this
        connection can only be opened by blocking calls, or if the pool has to configure it."""
        return None if self._configure is not None else begin_connect(self._target, **self._options)

    def discard(self, waiter: Waiter) -> None:
        """Close the connection that was granted to the caller. The caller may then open a new
        connection."""
        entry, waiter.entry = waiter.entry, None
        if entry is not None:
            self._drop(entry)

    def prepare(self, waiter: Waiter, answers: bool | None = None, opened: Connection | None = None) -> Entry:
        """Return the connection that was granted to the caller, if it responds to a probe. If it
        does not respond, return a new connection instead. `answers` is the result of the probe, or
        `None` if this method has to probe the connection. `opened` is the new connection, or
        `None` if this method has to open one.

        Raises:
            OperationalError: the connection failed.
        """
        try:
            self._check_open()
            self.expire()
            entry = waiter.entry
            if entry is not None and self.is_young(entry):
                answers = self._answers(entry) if answers is None else answers
            else:
                answers = False
            if entry is not None and not answers:
                self._drop(entry)
                entry = waiter.entry = None
            if entry is None:
                entry = waiter.entry = self._open(opened)
        except BaseException:
            if waiter.entry is not None:
                self._drop(waiter.entry)
            with self._lock:
                self._grant(None)
            raise
        with self._lock:
            entry.since = now()
            self._out[id(entry.con)] = entry
            self._lent += 1
        return entry

    def _open(self, opened: Connection | None) -> Entry:
        con = connect(self._target, **self._options) if opened is None else opened
        try:
            if self._configure is not None:
                self._configure(con)
            entry = Entry(con)
        except BaseException:
            con.close()
            raise
        with self._lock:
            self._opened += 1
        return entry

    def find(self, con: Connection) -> Entry:
        """Return the entry of a connection that is lent out.

        Raises:
            InterfaceError: the connection does not belong to this pool, was returned already, or
                came from another process.
        """
        with self._lock:
            entry = self._out.get(id(con))
        if entry is None:
            raise InterfaceError(
                "this connection is not lent out by this pool\nit was returned before, or belongs to another pool"
            )
        return entry

    def give_back(self, entry: Entry, suspect: bool = False, *, is_sound: bool = True) -> None:
        """Take a connection back into the pool. The connection is reset, and also probed if one of
        its calls has failed (`suspect`). If this fails, or if `is_sound` is false, the connection
        is closed. This method blocks, unless the connection was rolled back before or is closed."""
        with self._lock:
            if self._out.pop(id(entry.con), None) is None:
                return
        keep = False
        try:
            # After this, the caller's connection object and its cursors can no longer be used.
            entry.con = entry.con._renewed()
            keep = is_sound and not self.closed and entry.con.usable and self.is_young(entry)
            keep = keep and self._restored(entry) and not (suspect and not self._answers(entry))
        finally:
            if not keep:
                self._drop(entry)
            with self._lock:
                closed = self.closed
                entry.since = now()
                self._grant(entry if keep and not closed else None)
            if keep and closed:
                self._drop(entry)
        self.expire()

    def is_young(self, entry: Entry) -> bool:
        """Return true if a connection was opened less than `max_age` seconds ago, or if the pool
        has no `max_age`."""
        return self._max_age is None or now() - entry.opened < self._max_age

    def _answers(self, entry: Entry) -> bool:
        con, probe = entry.con, self.probe
        try:
            if callable(probe):
                probe(con)
            elif probe is not None:
                con.execute(probe).fetchall()
                if not con.autocommit:
                    con.rollback()  # The borrower's transaction must not start with the probe.
        except Error:
            return False
        return True

    def _restored(self, entry: Entry) -> bool:
        try:
            if callable(self.reset):
                self.reset(entry.con)
            elif self.reset is not None:
                entry.con.rollback()
            if self.reset is not None:
                entry.restore()
        except Error:
            return False
        return True

    def _drop(self, entry: Entry) -> None:
        with self._lock:
            self._dropped += not self.closed
        with contextlib.suppress(Error):
            entry.con.close()
        if entry.aside is not None:
            entry.aside.shutdown(wait=False)

    def expire(self) -> None:
        """Close connections that are too old. While there are more than `min_size` connections,
        also close those that were idle for too long."""
        gone: list[Entry] = []
        with self._lock:
            if self._max_idle is not None or self._max_age is not None:
                at = now()
                for entry in [*self._idle]:
                    idle = self._max_idle is not None and at - entry.since >= self._max_idle
                    if not self.is_young(entry) or (idle and self._size > self.min_size):
                        self._idle.remove(entry)
                        self._size -= 1
                        gone.append(entry)
        for entry in gone:
            self._drop(entry)

    def suspends(self) -> bool:
        """Return true if the event loop can run `close` without being blocked. This requires that
        the database calls of all idle connections can be suspended."""
        with self._lock:
            return all(entry.con._suspends for entry in self._idle)

    def close(self) -> None:
        """Close the idle connections, and notify the callers that wait. A connection that is lent
        out is closed when it is returned."""
        with self._lock:
            self.closed = True
            idle, self._idle = self._idle, []
            self._size -= len(idle)
            waiters, self._waiters = [*self._waiters], deque()
            for waiter in waiters:
                with contextlib.suppress(RuntimeError):
                    waiter.wake()
        for entry in idle:
            self._drop(entry)

    def stats(self) -> PoolStats:
        """Return the numbers of connections in each state, and the counters of the pool."""
        with self._lock:
            idle, out = len(self._idle), len(self._out)
            opening = self._size - idle - out
            done = (self._opened, self._dropped, self._lent, self._timeouts)
            return PoolStats(idle, out, opening, len(self._waiters), *done)


def _put_back(current: dict[Any, Any], before: dict[Any, Any]) -> None:
    if current != before:
        current.clear()
        current.update(before)


def stream_method(format: str) -> Callable[[Any], Any]:
    """Return the method of cursors that returns the rows as a stream of this format.

    Raises:
        ValueError: the format is unknown.
    """
    if format not in STREAM_FORMATS:
        raise ValueError(f"`format` is {', '.join(map(repr, STREAM_FORMATS))}, not {format!r}")
    return operator.methodcaller(format)


def _nothing() -> None:
    """Do nothing. A caller that does not wait passes this function as its `wake`."""


def _seconds(times: list[float]) -> str:
    """Format a list of durations in seconds for an error message: the first eight, and an ellipsis
    if there are more."""
    shown = ", ".join(f"{seconds:.1f} s" for seconds in times[:8])
    return f"{shown}, …" if len(times) > 8 else shown or "0 s"


_pools: weakref.WeakSet[PoolCore] = weakref.WeakSet()


def _after_fork() -> None:
    for pool in [*_pools]:
        pool._begin()


os.register_at_fork(after_in_child=_after_fork)
