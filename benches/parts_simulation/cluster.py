"""The discrete-event simulation of one export: workers, a coordinator, a server, and failures."""

from __future__ import annotations

import heapq
import math
import random
import statistics
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple

from benches.parts_simulation.faults import LARGEST_FIRST, NO_FAULTS, Faults, Policy
from benches.parts_simulation.protocol import Kind, Outcome, Plan, Step, Steps
from benches.parts_simulation.server import Server
from benches.parts_simulation.sinks import NewSink, Sink


@dataclass(frozen=True)
class Export:
    """An export to simulate. Times are in seconds."""

    plan: Plan
    #: The time of each part without others at the same time, and its rows as the plan estimates them.
    work_s: tuple[float, ...]
    estimated: tuple[int, ...]
    n_workers: int
    #: The number of connections from which on the server is saturated, and the most it accepts.
    capacity: float
    most_connections: int
    start_s: float
    connect_s: float
    sync_s: float
    #: The numbers of steps of an attempt and of the end.
    n_steps: tuple[int, int]
    faults: Faults = NO_FAULTS
    policy: Policy = LARGEST_FIRST

    def ideal_s(self) -> float:
        """A lower bound of the makespan: no schedule without failures is shorter."""
        set_up_s = self.start_s + self.connect_s
        n_workers = min(self.n_workers, self.most_connections, len(self.work_s))
        by_server = sum(self.work_s) / min(self.capacity, n_workers) + set_up_s
        by_workers = (sum(self.work_s) + set_up_s * len(self.work_s)) / n_workers
        return max(by_server, by_workers, max(self.work_s) + set_up_s)


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
    #: The number of the read in progress, or 0.
    read: int = 0
    has_duplicate: bool = False


@dataclass
class Cluster:
    """The simulation of one export; `execute` returns its result."""

    export: Export
    new_sink: NewSink
    seed: int
    most_s: float = math.inf

    _events: list[tuple[float, int, Callable[[], None]]] = field(default_factory=list)
    _now: float = 0.0
    _n_events: int = 0

    def __post_init__(self) -> None:
        export, faults = self.export, self.export.faults
        self._random = random.Random(self.seed)
        self._sink: Sink = self.new_sink(export.plan)
        self._server = Server(export.capacity, export.most_connections)
        self._speeds = [
            1 / faults.straggler_factor if self._random.random() < faults.p_straggler else 1.0
            for _ in range(export.n_workers)
        ]
        self._free = list(range(export.n_workers))
        #: The processes that are alive, by their numbers.
        self._attempts: dict[int, _Attempt] = {}
        self._reads: dict[int, _Attempt] = {}
        self._n_processes = self._n_attempts = self._n_deaths = self._n_refused = 0
        #: The number of the coordinator, and whether one is active.
        self._coordinator = 0
        self._has_coordinator = False
        self._is_finished = False
        self._waiting: list[tuple[int, int]] = []
        self._done: set[int] = set()
        self._is_finishing = False
        #: The numbers of refused and of terminated attempts of each part.
        self._n_refusals: dict[int, int] = {}
        self._n_terminated: dict[int, int] = {}
        #: Seconds for each estimated row, of the attempts that have succeeded.
        self._paces: list[float] = []

    # Time.

    def _after(self, delay_s: float, action: Callable[[], None]) -> None:
        self._n_events += 1
        heapq.heappush(self._events, (self._now + delay_s, self._n_events, action))

    def execute(self) -> Result:
        """Simulates the export until it is complete."""
        faults, ideal_s = self.export.faults, self.export.ideal_s()
        for _ in range(faults.n_coordinator_deaths):
            self._after(self._random.random() * ideal_s, self._coordinator_dies)
        for _ in range(faults.n_power_failures):
            self._after(self._random.random() * ideal_s, self._power_fails)
        self._start_coordinator()
        if self.export.policy.slow_attempts != "wait":
            self._after(self.export.policy.slow_check_s, self._check_slow_attempts)
        while not self._is_finished and self._now < self.most_s:
            end_s, number = self._server.next_end()
            if number >= 0 and (not self._events or end_s <= self._events[0][0]):
                self._now = end_s
                self._read_ends(self._reads[number])
            elif self._events:
                self._now, _, action = heapq.heappop(self._events)
                action()
            else:
                break
        self._server.advance(self._now)
        problems = [*self._sink.problems]
        if not self._is_finished or not self._sink.is_finished():
            problems.append("the export is not complete")
        total = sum(self.export.work_s)
        work = self._server.work_done / total if total else 0.0
        counts = (self._n_attempts, self._n_deaths, self._n_refused)
        return Result(self._now, *counts, work, *self._sink.difference(), tuple(problems))

    # Processes.

    def _start(self, part: int | None, worker: int) -> None:
        """Starts a process: an attempt at a part on a worker, or the end of the export."""
        faults = self.export.faults
        self._n_attempts += part is not None
        self._n_processes += 1
        number = self._n_processes
        steps = self._sink.finish(number) if part is None else self._sink.export(part, number)
        if steps is None:
            self._is_finished = True
            return
        attempt = _Attempt(number, part, worker, steps, self._coordinator, self._now)
        self._attempts[number] = attempt
        p_death = faults.p_death_at_finish if part is None else faults.p_death
        n_steps = self.export.n_steps[part is None]
        if self._random.random() < p_death:
            attempt.death_at = self._random.randint(1, n_steps)
        elif part is not None and self._random.random() < faults.p_stall:
            attempt.stall_at = self._random.randint(1, n_steps)
        self._resume(attempt, None)

    def _resume(self, attempt: _Attempt, value: bool | None) -> None:
        """Executes the process until its next step."""
        if not attempt.is_live:
            return
        while True:
            try:
                step = attempt.steps.send(value)  # type: ignore[arg-type]
            except StopIteration as end:
                self._ends(attempt, end.value)
                return
            except FileNotFoundError:
                self._ends(attempt, Outcome.FAILED)
                return
            attempt.n_steps += 1
            if attempt.n_steps == attempt.death_at:
                self._dies(attempt)
            elif attempt.n_steps == attempt.stall_at:
                self._after(self.export.faults.stall_s, partial(self._perform, attempt, step))
                self._after(self.export.faults.detection_s, lambda: self._is_missed(attempt))
            elif step.kind is Kind.CALL:
                value = True  # It needs no time.
                continue
            else:
                self._perform(attempt, step)
            return

    def _perform(self, attempt: _Attempt, step: Step) -> None:
        """Lets the time of a step elapse."""
        if not attempt.is_live:
            return
        if step.kind is Kind.READ and attempt.part is not None:
            n_rows = self.export.plan.parts[attempt.part].n_rows
            share = step.n_rows / n_rows if n_rows else 1.0
            work = self.export.work_s[attempt.part] * share
            attempt.read = self._server.start(work, self._speeds[attempt.worker], self._now)
            self._reads[attempt.read] = attempt
            return
        is_ok = True
        if step.kind is Kind.CONNECT:
            is_ok = attempt.is_connected = self._server.connect()
        export = self.export
        delays = {Kind.START: export.start_s, Kind.CONNECT: export.connect_s, Kind.SYNC: export.sync_s}
        delay_s = delays.get(step.kind, export.sync_s if step.kind is Kind.COMMIT else 0.0)
        self._after(delay_s, lambda: self._resume(attempt, is_ok))

    def _read_ends(self, attempt: _Attempt) -> None:
        self._abort_read(attempt)
        self._resume(attempt, True)

    def _abort_read(self, attempt: _Attempt) -> None:
        self._server.stop(attempt.read, self._now)
        del self._reads[attempt.read]
        attempt.read = 0

    def _stop(self, attempt: _Attempt, by_kill: bool) -> None:
        """Releases all that a process uses except its worker."""
        attempt.is_live = False
        del self._attempts[attempt.number]
        if attempt.read:
            self._abort_read(attempt)
        if attempt.is_connected:
            self._server.disconnect()
        if self._sink.folder is not None:
            self._sink.folder.release(attempt.number, by_kill)

    def _dies(self, attempt: _Attempt) -> None:
        """A process is killed at its current step."""
        self._n_deaths += 1
        self._stop(attempt, by_kill=True)
        if attempt.part is None:
            self._coordinator_dies()
            return
        self._after(self.export.faults.restart_s, lambda: self._is_free(attempt.worker))
        self._after(self.export.faults.detection_s, lambda: self._is_missed(attempt))

    def _ends(self, attempt: _Attempt, outcome: Outcome) -> None:
        """A process ends by itself."""
        self._stop(attempt, by_kill=False)
        if attempt.part is None:
            self._finish_ends(attempt, outcome)
            return
        if attempt.coordinator == self._coordinator and self._has_coordinator:
            if outcome is Outcome.DONE:
                self._done.add(attempt.part)
                estimated = max(1, self.export.estimated[attempt.part])
                self._paces.append((self._now - attempt.started_s) / estimated)
            else:
                self._n_refused += 1
                n = self._n_refusals[attempt.part] = self._n_refusals.get(attempt.part, 0) + 1
                faults = self.export.faults
                self._requeue(attempt.part, min(faults.most_back_off_s, faults.back_off_s * 2 ** min(n - 1, 9)))
        self._is_free(attempt.worker)

    def _power_fails(self) -> None:
        """All processes end, and the folder has only what was on the disk."""
        for attempt in list(self._attempts.values()):
            self._n_deaths += 1
            self._stop(attempt, by_kill=True)
        if self._sink.folder is not None:
            self._sink.folder.power_failure(self._random)
        self._free.clear()
        self._coordinator += 1
        self._has_coordinator = False

        def restart() -> None:
            # Workers that were restarted before have become free in the meantime.
            self._free = list(range(self.export.n_workers))
            self._start_coordinator()

        self._after(self.export.faults.power_failure_s, restart)

    # The coordinator.

    def _start_coordinator(self) -> None:
        self._coordinator += 1
        self._has_coordinator, self._is_finishing = True, False
        self._done = self._sink.complete_parts()
        self._waiting = []
        for part in range(len(self.export.work_s)):
            if part not in self._done:
                self._push(part)
        self._dispatch()

    def _push(self, part: int) -> None:
        order = -self.export.estimated[part] if self.export.policy.largest_first else part
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
        if worker not in self._free:
            self._free.append(worker)
        self._dispatch()

    def _dispatch(self) -> None:
        """Starts the parts that wait on the workers that are free, or the end of the export."""
        if not self._has_coordinator:
            return
        while self._waiting and self._free:
            part = heapq.heappop(self._waiting)[1]
            if part not in self._done:
                self._start(part, self._free.pop(self._random.randrange(len(self._free))))
        if len(self._done) == len(self.export.work_s) and not self._is_finishing:
            self._is_finishing = True
            self._start(None, -1)

    def _finish_ends(self, attempt: _Attempt, outcome: Outcome) -> None:
        if outcome is Outcome.DONE:
            self._is_finished = True
            return
        self._n_refused += 1
        if attempt.coordinator == self._coordinator:
            # Another process still has the lock, or parts are missing: the folder is read again.
            self._has_coordinator = False
            self._after(self.export.faults.back_off_s, self._start_coordinator)

    def _coordinator_dies(self) -> None:
        """The coordinator dies with its state; its workers continue."""
        if not self._has_coordinator:
            return
        self._has_coordinator = False
        self._coordinator += 1
        for attempt in list(self._attempts.values()):
            if attempt.part is None:
                self._stop(attempt, by_kill=True)
        self._after(self.export.faults.restart_s, self._start_coordinator)

    def _check_slow_attempts(self) -> None:
        """Starts the parts of slow attempts again when no part waits."""
        policy = self.export.policy
        self._after(policy.slow_check_s, self._check_slow_attempts)
        if not self._has_coordinator or self._waiting or not self._paces:
            return
        pace = statistics.median(self._paces[-101:])
        for attempt in list(self._attempts.values()):
            part = attempt.part
            if part is None or attempt.has_duplicate or not self._free:
                continue
            expected_s = pace * max(1, self.export.estimated[part]) + self.export.start_s + self.export.connect_s
            # The part may be slow, not the worker: each attempt has twice the time of the one before.
            factor = policy.slow_factor * 2 ** self._n_terminated.get(part, 0)
            if self._now - attempt.started_s <= factor * expected_s + policy.slow_check_s:
                continue
            attempt.has_duplicate = True
            if policy.slow_attempts == "terminate":
                self._n_terminated[part] = self._n_terminated.get(part, 0) + 1
                # The slow worker gets no further part.
                self._stop(attempt, by_kill=True)
            if part not in self._done:
                self._start(part, self._free.pop(0))
