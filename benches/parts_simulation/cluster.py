"""The discrete-event simulation of one export: workers, a coordinator, a server, and failures.

The coordinator is any program that starts `onecopy export --part` or the tasks of an engine on free
workers, and starts them again: a batch scheduler, Spark, Ray. It can die with its state.
"""

from __future__ import annotations

import heapq
import math
import random
import statistics
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

from benches.parts_simulation.protocol import Kind, Outcome, Plan, Step, Steps
from benches.parts_simulation.server import Server
from benches.parts_simulation.sinks import Sink


@dataclass(frozen=True)
class Faults:
    """The probabilities of failures, and the times that they cost."""

    #: An attempt at a part dies, at a step that is uniformly distributed, so that the short steps
    #: between two renames are reached as often as the long ones.
    p_death: float = 0.0
    #: The process that moves the files dies at one of these moves.
    p_death_at_move: float = 0.0
    #: An attempt stops for `stall_s` at a step, is regarded as dead, and then continues.
    p_stall: float = 0.0
    stall_s: float = 600.0
    #: A worker is slow by `straggler_factor`.
    p_straggler: float = 0.0
    straggler_factor: float = 8.0
    #: Attempts that take three times the expected time are killed when no part waits, and the part
    #: is started on another worker.
    kills_slow_attempts: bool = False
    #: Deaths of the coordinator, at random times.
    n_coordinator_deaths: int = 0
    #: The time until a death is detected, and until a worker or coordinator is available again.
    detection_s: float = 10.0
    restart_s: float = 30.0
    #: The time until a part is tried again whose lock or connection was refused; it doubles, up to
    #: a minute.
    back_off_s: float = 5.0


_SLOW_FACTOR, _SLOW_CHECK_S, _MOST_BACK_OFF_S = 3.0, 10.0, 60.0


@dataclass(frozen=True)
class Export:
    """An export to simulate. Times are in seconds."""

    plan: Plan
    #: The time of each part over one connection without others, and its rows as the plan estimates.
    work_s: tuple[float, ...]
    estimated: tuple[int, ...]
    n_workers: int
    #: The number of connections from which on the server is saturated, and the most it accepts.
    capacity: float
    most_connections: int
    start_s: float
    connect_s: float
    sync_s: float
    faults: Faults = Faults()
    #: Parts with the most estimated rows are started first; otherwise in the order of the plan.
    largest_first: bool = True

    def ideal_s(self) -> float:
        """A lower bound of the makespan: all work without failures, evenly divided, however large a
        single part is."""
        n_workers = min(self.n_workers, self.most_connections)
        set_up_s = self.start_s + self.connect_s
        by_workers = (sum(self.work_s) + set_up_s * len(self.work_s)) / n_workers
        return max(by_workers, sum(self.work_s) / self.capacity)


class Result(NamedTuple):
    """The result of a simulated export."""

    makespan_s: float
    n_attempts: int
    n_deaths: int
    n_refused: int
    #: The work that the server did, divided by that of each part once.
    work: float
    n_lost: int
    n_doubled: int
    problems: tuple[str, ...]


@dataclass
class _Attempt:
    """A process: an attempt at a part, or the end of the export (`part` is `None`)."""

    number: int
    part: int | None
    worker: int
    steps: Steps
    coordinator: int
    started_s: float
    death_at: int = 0
    stall_at: int = 0
    n_steps: int = 0
    is_live: bool = True
    is_connected: bool = False
    is_moving: bool = False
    #: The number of the read in progress, or 0.
    read: int = 0


class Cluster:
    """The simulation of one export; `execute` returns its result."""

    def __init__(self, export: Export, new_sink: Callable[[Plan], Sink], seed: int, most_s: float = math.inf) -> None:
        self._export, self._faults, self._most_s = export, export.faults, most_s
        self._random = random.Random(seed)
        self._sink = new_sink(export.plan)
        self._server = Server(export.capacity, export.most_connections)
        #: The number of steps of an attempt that ends with its part.
        self._n_steps = sum(1 for _ in new_sink(export.plan).start(0, 1))
        slow = 1 / self._faults.straggler_factor
        is_slow = [self._random.random() < self._faults.p_straggler for _ in range(export.n_workers)]
        self._speeds = [slow if each else 1.0 for each in is_slow]
        self._free = list(range(export.n_workers))
        self._now, self._n_events = 0.0, 0
        self._events: list[tuple[float, int, Callable[[], None]]] = []
        #: The processes that are alive, by their numbers, and those that read, by their reads.
        self._attempts: dict[int, _Attempt] = {}
        self._reads: dict[int, _Attempt] = {}
        self._n_processes = self._n_attempts = self._n_deaths = self._n_refused = 0
        #: The number of the coordinator, and whether it is alive.
        self._coordinator, self._has_coordinator = 0, False
        self._is_finishing = self._is_finished = False
        self._waiting: list[tuple[int, int]] = []
        self._done: set[int] = set()
        self._n_refusals: dict[int, int] = {}
        self._n_killed: dict[int, int] = {}
        #: Seconds for each estimated row, of the attempts that have succeeded.
        self._paces: list[float] = []

    def _after(self, delay_s: float, action: Callable[[], None]) -> None:
        self._n_events += 1
        heapq.heappush(self._events, (self._now + delay_s, self._n_events, action))

    def execute(self) -> Result:
        """Simulates the export until it is complete."""
        for _ in range(self._faults.n_coordinator_deaths):
            self._after(self._random.random() * self._export.ideal_s(), self._coordinator_dies)
        if self._faults.kills_slow_attempts:
            self._after(_SLOW_CHECK_S, self._kill_slow_attempts)
        self._start_coordinator()
        while not self._is_finished and self._now < self._most_s:
            end_s, number = self._server.next_end()
            if number >= 0 and (not self._events or end_s <= self._events[0][0]):
                self._now = end_s
                attempt = self._end_read(number)
                self._resume(attempt, None)
            elif self._events:
                self._now, _, action = heapq.heappop(self._events)
                action()
            else:
                break
        self._server.advance(self._now)
        problems = self._sink.problems + ([] if self._is_finished else ["the export is not complete"])
        work = self._server.work_done / sum(self._export.work_s)
        counts = (self._n_attempts, self._n_deaths, self._n_refused)
        return Result(self._now, *counts, work, *self._sink.difference(), tuple(problems))

    # Processes.

    def _start(self, part: int | None, worker: int) -> None:
        self._n_attempts += part is not None
        self._n_processes += 1
        steps = self._sink.start(part, self._n_processes)
        attempt = _Attempt(self._n_processes, part, worker, steps, self._coordinator, self._now)
        self._attempts[attempt.number] = attempt
        if part is not None and self._random.random() < self._faults.p_death:
            attempt.death_at = self._random.randint(1, self._n_steps)
        elif part is not None and self._random.random() < self._faults.p_stall:
            attempt.stall_at = self._random.randint(1, self._n_steps)
        self._resume(attempt, None)

    def _resume(self, attempt: _Attempt, value: bool | None) -> None:
        """Executes the process until its next step that needs time."""
        while attempt.is_live:
            try:
                step = attempt.steps.send(value)
            except StopIteration as end:
                self._ends(attempt, end.value)
                return
            except FileNotFoundError:
                self._ends(attempt, Outcome.REFUSED)
                return
            attempt.n_steps += 1
            if step.kind is Kind.MOVE and not attempt.is_moving:
                attempt.is_moving = True
                if self._random.random() < self._faults.p_death_at_move:
                    attempt.death_at = attempt.n_steps + self._random.randrange(len(self._export.work_s))
            if attempt.n_steps == attempt.death_at:
                self._n_deaths += 1
                self._stop(attempt)
                if attempt.part is None:
                    self._coordinator_dies()
                else:
                    self._after(self._faults.restart_s, partial(self._is_free, attempt.worker))
                    self._after(self._faults.detection_s, partial(self._is_missed, attempt))
            elif attempt.n_steps == attempt.stall_at:
                self._after(self._faults.stall_s, partial(self._perform, attempt, step))
                self._after(self._faults.detection_s, partial(self._is_missed, attempt))
                return
            elif step.kind not in (Kind.CALL, Kind.MOVE):  # These need no time.
                self._perform(attempt, step)
                return
            value = None

    def _perform(self, attempt: _Attempt, step: Step) -> None:
        """Lets the time of a step elapse."""
        if not attempt.is_live:
            return
        if step.kind is Kind.READ:
            share = step.n_rows / (self._export.plan.parts[step.part].n_rows or 1) if step.n_rows else 1.0
            speed = self._speeds[attempt.worker] if attempt.part is not None else 1.0
            attempt.read = self._server.start(self._export.work_s[step.part] * share, speed, self._now)
            self._reads[attempt.read] = attempt
            return
        is_ok = True
        if step.kind is Kind.CONNECT:
            is_ok = attempt.is_connected = self._server.connect()
        delays = {Kind.START: self._export.start_s, Kind.CONNECT: self._export.connect_s, Kind.SYNC: self._export.sync_s}
        self._after(delays.get(step.kind, 0.0), partial(self._resume, attempt, is_ok))

    def _end_read(self, number: int) -> _Attempt:
        self._server.stop(number, self._now)
        attempt = self._reads.pop(number)
        attempt.read = 0
        return attempt

    def _stop(self, attempt: _Attempt) -> None:
        """Releases all that a process uses except its worker."""
        attempt.is_live = False
        del self._attempts[attempt.number]
        if attempt.read:
            self._end_read(attempt.read)
        self._server.n_connections -= attempt.is_connected
        self._sink.release(attempt.number)

    def _ends(self, attempt: _Attempt, outcome: Outcome) -> None:
        """A process ends by itself."""
        self._stop(attempt)
        is_known = attempt.coordinator == self._coordinator and self._has_coordinator
        self._n_refused += outcome is not Outcome.DONE
        if attempt.part is None:
            if is_known:
                self._finish(self._faults.back_off_s)
            return
        if is_known and outcome is Outcome.DONE:
            self._done.add(attempt.part)
            self._sink.report(attempt.part, attempt.number)
            self._paces.append((self._now - attempt.started_s) / max(1, self._export.estimated[attempt.part]))
        elif is_known:
            n = self._n_refusals[attempt.part] = self._n_refusals.get(attempt.part, 0) + 1
            self._requeue(attempt.part, min(_MOST_BACK_OFF_S, self._faults.back_off_s * 2 ** min(n - 1, 9)))
        self._is_free(attempt.worker)

    # The coordinator.

    def _start_coordinator(self) -> None:
        self._coordinator += 1
        self._has_coordinator, self._is_finishing = True, False
        self._done = self._sink.recover()
        self._waiting = []
        for part in range(len(self._export.work_s)):
            self._push(part)
        self._dispatch()

    def _push(self, part: int) -> None:
        order = -self._export.estimated[part] if self._export.largest_first else part
        heapq.heappush(self._waiting, (order, part))

    def _requeue(self, part: int, delay_s: float) -> None:
        coordinator = self._coordinator

        def push() -> None:
            if coordinator == self._coordinator:
                self._push(part)
                self._dispatch()

        self._after(delay_s, push)

    def _is_missed(self, attempt: _Attempt) -> None:
        """The coordinator finds that an attempt sends no heartbeat."""
        if attempt.part is not None and attempt.coordinator == self._coordinator and self._has_coordinator:
            self._requeue(attempt.part, 0.0)

    def _is_free(self, worker: int) -> None:
        self._free.append(worker)
        self._dispatch()

    def _dispatch(self) -> None:
        """Starts the parts that wait on the workers that are free, or the end of the export."""
        while self._has_coordinator and self._waiting and self._free:
            part = heapq.heappop(self._waiting)[1]
            if part not in self._done:
                self._start(part, self._free.pop(self._random.randrange(len(self._free))))
        if self._has_coordinator and len(self._done) == len(self._export.work_s) and not self._is_finishing:
            self._is_finishing = True
            self._finish(0.0)

    def _finish(self, delay_s: float) -> None:
        """Starts the process that ends the export, unless a worker has done so."""
        self._is_finished = self._sink.is_finished()
        if not self._is_finished:
            coordinator = self._coordinator
            start = lambda: self._start(None, -1) if coordinator == self._coordinator else None  # noqa: E731
            self._after(delay_s, start)

    def _coordinator_dies(self) -> None:
        """The coordinator dies with its state; its workers continue."""
        if not self._has_coordinator:
            return
        self._has_coordinator = False
        for attempt in list(self._attempts.values()):
            if attempt.part is None:
                self._stop(attempt)
        self._after(self._faults.restart_s, self._start_coordinator)

    def _kill_slow_attempts(self) -> None:
        """Starts the parts of slow attempts again when no part waits."""
        self._after(_SLOW_CHECK_S, self._kill_slow_attempts)
        if not self._has_coordinator or self._waiting or not self._paces:
            return
        pace = statistics.median(self._paces[-101:])
        set_up_s = self._export.start_s + self._export.connect_s
        for attempt in list(self._attempts.values()):
            part = attempt.part
            if part is None or part in self._done or not self._free:
                continue
            # The part may be slow, not the worker: each attempt has twice the time of the one before.
            n_killed = self._n_killed.get(part, 0)
            expected_s = pace * max(1, self._export.estimated[part]) + set_up_s
            if self._now - attempt.started_s > _SLOW_FACTOR * 2**n_killed * expected_s + _SLOW_CHECK_S:
                self._n_killed[part] = n_killed + 1
                # The slow worker gets no further part.
                self._stop(attempt)
                self._start(part, self._free.pop(0))
