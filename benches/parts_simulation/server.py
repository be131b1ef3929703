"""A database server with a limited rate, which its connections share.

The unit of work is one second of one connection that has the server for itself, as measured. The
model: n connections do n units of work per second until the server (its processors or its network)
is saturated, and then always the same amount, in equal shares. A connection of a slow worker does
less, and leaves its share to the others (max-min fairness).
"""

from __future__ import annotations

import heapq
import math
from dataclasses import dataclass, field


@dataclass
class _Readers:
    """The reads of workers with equal speeds; each has done `work` units since the start."""

    speed: float
    work: float = 0.0
    rate: float = 0.0
    #: The values of `work` at which reads end, with their numbers.
    ends: list[tuple[float, int]] = field(default_factory=list)
    n_active: int = 0


class Server:
    """A server that does at most `capacity` units of work per second for `most_connections`."""

    def __init__(self, capacity: float, most_connections: int) -> None:
        self.capacity = capacity
        self.most_connections = most_connections
        self.n_connections = 0
        #: The units of work that were done, also for reads that were aborted.
        self.work_done = 0.0
        self._now = 0.0
        self._readers: dict[float, _Readers] = {}
        self._active: dict[int, _Readers] = {}
        self._n_reads = 0

    def connect(self) -> bool:
        """Opens a connection; returns false if the server has no free one."""
        is_free = self.n_connections < self.most_connections
        self.n_connections += is_free
        return is_free

    def start(self, work: float, speed: float, now: float) -> int:
        """Starts a read of `work` units, which can do at most `speed` units per second.

        Returns the number of the read.
        """
        self.advance(now)
        self._n_reads += 1
        readers = self._active[self._n_reads] = self._readers.setdefault(speed, _Readers(speed))
        heapq.heappush(readers.ends, (readers.work + work, self._n_reads))
        readers.n_active += 1
        self._share()
        return self._n_reads

    def stop(self, number: int, now: float) -> None:
        """Ends a read, complete or aborted."""
        self.advance(now)
        self._active.pop(number).n_active -= 1
        self._share()

    def advance(self, now: float) -> None:
        """Lets all reads continue until the time `now`."""
        for readers in self._readers.values():
            done = readers.rate * (now - self._now)
            readers.work += done
            self.work_done += done * readers.n_active
        self._now = now

    def next_end(self) -> tuple[float, int]:
        """The time at which the next read ends, and its number; infinity if there is none."""
        first = (math.inf, -1)
        for readers in self._readers.values():
            while readers.ends and readers.ends[0][1] not in self._active:
                heapq.heappop(readers.ends)
            if readers.ends:
                end, number = readers.ends[0]
                first = min(first, (self._now + max(0.0, end - readers.work) / readers.rate, number))
        return first

    def _share(self) -> None:
        """Divides the capacity: equal shares, except that nobody gets more than its speed."""
        left, n_left = self.capacity, len(self._active)
        for readers in sorted(self._readers.values(), key=lambda readers: readers.speed):
            if readers.n_active:
                readers.rate = min(readers.speed, left / n_left)
                left -= readers.rate * readers.n_active
                n_left -= readers.n_active
