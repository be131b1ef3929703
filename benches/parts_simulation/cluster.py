"""The discrete-event simulation of one export: workers, a coordinator, a server, and failures.

The coordinator is any program that starts `onecopy export --part` or the tasks of an engine on free
workers, and starts them again: a batch scheduler, Spark, Ray. It can die with its state.
"""

from __future__ import annotations

import heapq
import math
import random
import statistics
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

from benches.parts_simulation.protocol import Kind, Outcome, Plan, Step, Steps
from benches.parts_simulation.rows import difference
from benches.parts_simulation.sinks import FolderSink, TableSink

NewSink = Callable[[Plan], FolderSink | TableSink]


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
    stall_s: float = 120.0
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
    #: The time until a part is tried again whose lock or connection was refused.
    back_off_s: float = 20.0


_SLOW_FACTOR, _SLOW_CHECK_S = 3.0, 10.0


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
    #: The time of each kind of step; others need none.
    step_s: Mapping[Kind, float]
    faults: Faults = Faults()

    def ideal_s(self) -> float:
        """A lower bound of the makespan: all work without failures, evenly divided, however large a
        single part is."""
        set_up_s = (self.step_s[Kind.START] + self.step_s[Kind.CONNECT]) * len(self.work_s)
        n_workers = min(self.n_workers, self.most_connections)
        return max((sum(self.work_s) + set_up_s) / n_workers, sum(self.work_s) / self.capacity)


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


class Server:
    """A database server with a limited rate, which its reads share.

    The unit of work is one second of one connection that has the server for itself. n connections
    do n units per second until the server (its processors or its network) is saturated, and then
    `capacity` units. A read of a slow worker has a smaller share.
    """

    def __init__(self, capacity: float) -> None:
        self.work_done = 0.0
        self._capacity = capacity
        #: The value of `_progress` at which each read ends, and its speed, by the process.
        self._reads: dict[int, tuple[float, float]] = {}
        self._now = self._progress = self._speed = 0.0

    def _rate(self) -> float:
        return min(1.0, self._capacity / max(self._speed, 1e-9))

    def advance(self, now: float) -> None:
        """Lets all reads continue until the time `now`."""
        done = self._rate() * (now - self._now)
        self._progress += done
        self.work_done += done * self._speed
        self._now = now

    def start(self, process: int, work: float, speed: float, now: float) -> None:
        """Starts a read of `work` units, of which a process does at most `speed` per second."""
        self.advance(now)
        self._speed += speed
        self._reads[process] = (self._progress + work / speed, speed)

    def stop(self, process: int, now: float) -> None:
        """Ends the read of a process, complete or aborted."""
        self.advance(now)
        self._speed -= self._reads.pop(process, (0.0, 0.0))[1]

    def next_end(self) -> tuple[float, int]:
        """The time at which the next read ends, and its process; infinity if there is none."""
        end, process = min(((end, process) for process, (end, _) in self._reads.items()), default=(math.inf, 0))
        return self._now + max(0.0, end - self._progress) / self._rate(), process


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


class Cluster:
    """The simulation of one export; `execute` returns its result."""

    def __init__(self, export: Export, new_sink: NewSink, seed: int, most_s: float = math.inf) -> None:
        self._export, self._faults, self._most_s = export, export.faults, most_s
        self._random = random.Random(seed)
        self._sink = new_sink(export.plan)
        self._server = Server(export.capacity)
        #: The number of steps of an attempt that ends with its part.
        self._n_steps = sum(1 for _ in new_sink(export.plan).start(0, 1))
        self._free = list(range(export.n_workers))
        is_slow = [self._random.random() < self._faults.p_straggler for _ in self._free]
        self._speeds = [1 / self._faults.straggler_factor if slow else 1.0 for slow in is_slow]
        self._now = 0.0
        self._events: list[tuple[float, int, Callable[[], None]]] = []
        self._n_events = self._n_processes = self._n_attempts = self._n_deaths = self._n_refused = 0
        #: The processes that are alive, by their numbers.
        self._attempts: dict[int, _Attempt] = {}
        #: The number of the coordinator, 0 after its death; its parts that wait or are complete.
        self._coordinator = self._n_coordinators = 0
        self._waiting: list[tuple[int, int]] = []
        self._done: set[int] = set()
        self._is_finishing = self._is_finished = False
        self._n_killed: Counter[int] = Counter()
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
            end_s, process = self._server.next_end()
            if process and (not self._events or end_s <= self._events[0][0]):
                self._now = end_s
                self._server.stop(process, self._now)
                self._resume(self._attempts[process], None)
            else:
                self._now, _, action = heapq.heappop(self._events)
                action()
        self._server.advance(self._now)
        problems = self._sink.problems + ([] if self._is_finished else ["the export is not complete"])
        work = self._server.work_done / sum(self._export.work_s)
        lost_and_doubled = difference(self._sink.rows(), self._export.plan.parts[-1].stop)
        counts = (self._n_attempts, self._n_deaths, self._n_refused)
        return Result(self._now, *counts, work, *lost_and_doubled, tuple(problems))

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
            except (StopIteration, FileNotFoundError) as end:
                self._ends(attempt, isinstance(end, StopIteration) and end.value is Outcome.DONE)
                return
            value = None
            attempt.n_steps += 1
            if step.kind is Kind.MOVE and not attempt.is_moving:
                attempt.is_moving = True
                if self._random.random() < self._faults.p_death_at_move:
                    attempt.death_at = attempt.n_steps + self._random.randrange(len(self._export.work_s))
            if attempt.n_steps == attempt.death_at:
                self._dies(attempt)
            elif attempt.n_steps == attempt.stall_at:
                self._after(self._faults.stall_s, partial(self._perform, attempt, step))
                self._after(self._faults.detection_s, partial(self._is_missed, attempt))
                return
            elif step.kind not in (Kind.CALL, Kind.MOVE):  # These need no time.
                self._perform(attempt, step)
                return

    def _perform(self, attempt: _Attempt, step: Step) -> None:
        """Lets the time of a step elapse."""
        if not attempt.is_live:
            return
        if step.kind is Kind.READ:
            n_rows = self._export.plan.parts[step.part].n_rows
            work = self._export.work_s[step.part] * (step.n_rows / n_rows if n_rows else 1.0)
            speed = self._speeds[attempt.worker] if attempt.part is not None else 1.0
            self._server.start(attempt.number, work, speed, self._now)
            return
        is_accepted = True
        if step.kind is Kind.CONNECT:
            n_connections = sum(each.is_connected for each in self._attempts.values())
            is_accepted = attempt.is_connected = n_connections < self._export.most_connections
        self._after(self._export.step_s.get(step.kind, 0.0), partial(self._resume, attempt, is_accepted))

    def _stop(self, attempt: _Attempt) -> None:
        """Releases all that a process uses except its worker."""
        attempt.is_live = False
        del self._attempts[attempt.number]
        self._server.stop(attempt.number, self._now)
        self._sink.release(attempt.number)

    def _dies(self, attempt: _Attempt) -> None:
        self._n_deaths += 1
        self._stop(attempt)
        if attempt.part is None:
            self._coordinator_dies()
        else:
            self._after(self._faults.restart_s, partial(self._is_free, attempt.worker))
            self._after(self._faults.detection_s, partial(self._is_missed, attempt))

    def _ends(self, attempt: _Attempt, is_success: bool) -> None:
        """A process ends by itself."""
        self._stop(attempt)
        self._n_refused += not is_success
        is_known = attempt.coordinator == self._coordinator
        if attempt.part is None:
            if is_known:
                self._finish(self._faults.back_off_s)
            return
        if is_known and is_success:
            self._done.add(attempt.part)
            self._sink.report(attempt.part, attempt.number)
            self._paces.append((self._now - attempt.started_s) / max(1, self._export.estimated[attempt.part]))
        elif is_known:
            self._after(self._faults.back_off_s, partial(self._is_missed, attempt))
        self._is_free(attempt.worker)

    # The coordinator.

    def _start_coordinator(self) -> None:
        self._n_coordinators += 1
        self._coordinator, self._is_finishing = self._n_coordinators, False
        self._done = self._sink.recover()
        self._waiting = []
        for part in range(len(self._export.work_s)):
            self._push(part)
        self._dispatch()

    def _push(self, part: int) -> None:
        # Parts with the most estimated rows first.
        heapq.heappush(self._waiting, (-self._export.estimated[part], part))

    def _is_missed(self, attempt: _Attempt) -> None:
        """The coordinator starts the part of an attempt again, which is dead, stalled or refused."""
        if attempt.part is not None and attempt.coordinator == self._coordinator:
            self._push(attempt.part)
            self._dispatch()

    def _is_free(self, worker: int) -> None:
        self._free.append(worker)
        self._dispatch()

    def _dispatch(self) -> None:
        """Starts the parts that wait on the workers that are free, or the end of the export."""
        while self._coordinator and self._waiting and self._free:
            part = heapq.heappop(self._waiting)[1]
            if part not in self._done:
                self._start(part, self._free.pop(self._random.randrange(len(self._free))))
        if self._coordinator and len(self._done) == len(self._export.work_s) and not self._is_finishing:
            self._is_finishing = True
            self._finish(0.0)

    def _finish(self, delay_s: float) -> None:
        """Starts the process that ends the export, unless a worker has done so."""
        self._is_finished = self._sink.is_finished()
        coordinator = self._coordinator

        def start() -> None:
            if coordinator == self._coordinator:
                self._start(None, -1)

        if not self._is_finished:
            self._after(delay_s, start)

    def _coordinator_dies(self) -> None:
        """The coordinator dies with its state; its workers continue."""
        if self._coordinator:
            self._coordinator = 0
            for attempt in [attempt for attempt in self._attempts.values() if attempt.part is None]:
                self._stop(attempt)
            self._after(self._faults.restart_s, self._start_coordinator)

    def _kill_slow_attempts(self) -> None:
        """Starts the parts of slow attempts again when no part waits."""
        self._after(_SLOW_CHECK_S, self._kill_slow_attempts)
        if not self._coordinator or self._waiting or not self._paces:
            return
        pace = statistics.median(self._paces[-101:])
        for attempt in list(self._attempts.values()):
            part = attempt.part
            if part is None or not self._free:
                continue
            # The part may be slow, not the worker: each attempt has twice the time of the one before.
            factor = _SLOW_FACTOR * 2 ** self._n_killed[part]
            if self._now - attempt.started_s > factor * pace * max(1, self._export.estimated[part]) + _SLOW_CHECK_S:
                self._n_killed[part] += 1
                self._stop(attempt)  # The slow worker gets no further part.
                if part not in self._done:
                    self._start(part, self._free.pop(0))
