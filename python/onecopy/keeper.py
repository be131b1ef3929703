"""What `Pool` and `onecopy.aio.Pool` share: the connections of a pool, and the line of those who wait for one."""

from __future__ import annotations

import contextlib
import os
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from onecopy._core import connect
from onecopy.errors import Error, InterfaceError, OperationalError

if TYPE_CHECKING:
    from onecopy._core import Connection

__all__ = ["Entry", "Keeper", "PoolStats", "PoolTimeout", "Waiter"]

now = time.monotonic


class PoolTimeout(OperationalError):
    """No connection became free within the wait limit.

    Attributes:
        n_out: connections lent out at that moment.
        longest_s: for how many seconds the one that is out longest has been.
        waited_s: how many seconds were waited.
    """

    def __init__(self, message: str = "", *, n_out: int = 0, longest_s: float = 0.0, waited_s: float = 0.0) -> None:
        super().__init__(message, sqlstate="HYT00")
        self.n_out = n_out
        self.longest_s = longest_s
        self.waited_s = waited_s


class PoolStats(NamedTuple):
    """What a pool holds, and what it has done since it was made."""

    idle: int
    """Connections that wait to be lent."""
    out: int
    """Connections that are lent."""
    opening: int
    """Connections that are being opened, or looked over before they are lent."""
    waiting: int
    """Callers that wait for one."""
    opened: int
    """Connections opened so far."""
    dropped: int
    """Connections closed so far because they were broken, too old, or idle for too long."""
    lent: int
    """How often one was lent."""
    timeouts: int
    """Callers that waited in vain."""


class Entry:
    """A connection of a pool, and what the pool knows of it."""

    __slots__ = ("aside", "con", "opened", "settings", "since")

    def __init__(self, con: Connection) -> None:
        self.con = con
        self.opened = self.since = now()
        self.settings = (con.autocommit, con.row_factory, con.timeout, dict(con.adapters), dict(con.converters))
        #: What a front keeps with the connection: aio's thread.
        self.aside: Any = None

    def restore(self) -> None:
        """Undo what the borrower set."""
        autocommit, row_factory, timeout, adapters, converters = self.settings
        if self.con.autocommit != autocommit:
            self.con.autocommit = autocommit
        self.con.row_factory = row_factory
        self.con.timeout = timeout
        _put_back(self.con.adapters, adapters)
        _put_back(self.con.converters, converters)


class Waiter:
    """A caller that asked for a connection: it is granted an entry, or leave to open one."""

    __slots__ = ("entry", "granted", "wake")

    def __init__(self, wake: Callable[[], object]) -> None:
        self.entry: Entry | None = None
        self.granted = False
        #: Called with the pool's lock held: it must not block. Where it raises `RuntimeError` nobody is there any more.
        self.wake = wake


class Keeper:
    """The connections of a pool and the line of those who wait: what `Pool` and `onecopy.aio.Pool` share.

    The lock is held for moments: never while a connection is opened, asked, reset or closed. While callers wait nothing
    is idle and no place is free, so what comes free goes to the first of them.
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
        self._options = {"timeout": connect_timeout, **options}
        self.min_size, self.max_size, self.timeout = min_size, max_size, timeout
        self._max_age, self._max_idle = max_age, max_idle
        self._reset, self._probe, self._configure = reset, probe, configure
        self.closed = False
        self._opened = self._dropped = self._lent = self._timeouts = 0
        self._begin()
        _keepers.add(self)

    def _begin(self) -> None:
        """Hold nothing: at first, and in a forked child, whose connections are its parent's."""
        self._lock = threading.Lock()
        self._idle: list[Entry] = []  # The one used last stands last, and goes first.
        self._out: dict[int, Entry] = {}
        self._waiters: deque[Waiter] = deque()
        self._size = 0  # Idle, out, and being opened.

    def fill(self) -> None:
        """Open the least number of connections."""
        waiters = [Waiter(_nothing) for _ in range(self.min_size)]
        entries: list[Entry] = []
        try:
            for waiter in waiters:
                self.ask(waiter)
                entries.append(self.prepare(waiter))
        finally:
            for entry in entries:
                self.give_back(entry)

    # Waiting.

    def ask(self, waiter: Waiter) -> None:
        """Grant a connection, or a place for one, now or when it comes free.

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
        """Take a caller out of the line; what it was granted goes to the next."""
        with self._lock:
            if waiter.granted:
                waiter.granted = False
                self._grant(waiter.entry)
            else:
                with contextlib.suppress(ValueError):
                    self._waiters.remove(waiter)

    def timed_out(self, waiter: Waiter, waited_s: float) -> PoolTimeout | None:
        """Take a caller whose time is up out of the line; `None` where it was granted something in the last moment."""
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
        """Give a connection, or its place, to the first in line, or keep it. The lock is held."""
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

    # What may block: no lock is held.

    def prepare(self, waiter: Waiter) -> Entry:
        """The connection that was granted, looked over, or one newly opened in its place.

        Raises:
            OperationalError: no connection.
        """
        try:
            self._check_open()
            self.expire()
            entry = waiter.entry
            if entry is not None and not (self._is_young(entry) and self._answers(entry)):
                self._drop(entry)
                entry = waiter.entry = None
            if entry is None:
                entry = waiter.entry = self._open()
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

    def _open(self) -> Entry:
        con = connect(self._target, **self._options)
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
        """The entry of a connection that is out.

        Raises:
            InterfaceError: it is not of this pool, was given back already, or came from another process.
        """
        with self._lock:
            entry = self._out.get(id(con))
        if entry is None:
            raise InterfaceError(
                "this connection is not out of this pool\nit was given back before, or is another pool's"
            )
        return entry

    def give_back(self, entry: Entry, suspect: bool = False) -> None:
        """Take a connection back: reset, and where it failed (`suspect`) asked whether it lives."""
        with self._lock:
            if self._out.pop(id(entry.con), None) is None:
                return
        keep = False
        try:
            # From now on the object that was lent, and its cursors, are closed for the borrower.
            entry.con = entry.con._renewed()
            keep = not self.closed and entry.con.usable and self._is_young(entry) and self._restored(entry)
            keep = keep and not (suspect and not self._answers(entry))
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

    def _is_young(self, entry: Entry) -> bool:
        return self._max_age is None or now() - entry.opened < self._max_age

    def _answers(self, entry: Entry) -> bool:
        con, probe = entry.con, self._probe
        try:
            if callable(probe):
                probe(con)
            elif probe is not None:
                con.execute(probe).fetchall()
                if not con.autocommit:
                    con.rollback()  # The borrower's transaction begins with the borrower.
        except Error:
            return False
        return True

    def _restored(self, entry: Entry) -> bool:
        try:
            if callable(self._reset):
                self._reset(entry.con)
            elif self._reset is not None:
                entry.con.rollback()
            if self._reset is not None:
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
        """Close connections that are too old, or idle for too long where there are more than the least number."""
        gone: list[Entry] = []
        with self._lock:
            if self._max_idle is not None or self._max_age is not None:
                at = now()
                for entry in [*self._idle]:
                    idle = self._max_idle is not None and at - entry.since >= self._max_idle
                    if not self._is_young(entry) or (idle and self._size > self.min_size):
                        self._idle.remove(entry)
                        self._size -= 1
                        gone.append(entry)
        for entry in gone:
            self._drop(entry)

    def close(self) -> list[Waiter]:
        """Close what is idle; what is out is closed when it comes back. Those who waited, to be told."""
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
        return waiters

    def stats(self) -> PoolStats:
        """What it holds and has done."""
        with self._lock:
            idle, out = len(self._idle), len(self._out)
            opening = self._size - idle - out
            done = (self._opened, self._dropped, self._lent, self._timeouts)
            return PoolStats(idle, out, opening, len(self._waiters), *done)


def _put_back(current: dict[Any, Any], before: dict[Any, Any]) -> None:
    if current != before:
        current.clear()
        current.update(before)


def _nothing() -> None:
    """For a caller that never waits."""


def _seconds(times: list[float]) -> str:
    """Durations, the longest first; not more than a line of them."""
    shown = ", ".join(f"{seconds:.1f} s" for seconds in times[:8])
    return f"{shown}, …" if len(times) > 8 else shown or "0 s"


_keepers: weakref.WeakSet[Keeper] = weakref.WeakSet()


def _after_fork() -> None:
    for keeper in [*_keepers]:
        keeper._begin()


os.register_at_fork(after_in_child=_after_fork)
