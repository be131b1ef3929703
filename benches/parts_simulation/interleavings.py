"""The steps of several processes in any order, with kills and power failures; without time.

Each seed is one order. `each_kill` kills a sequence of processes at each step, and the processes
that recover it again at each of their steps.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass

from benches.parts_simulation import reader
from benches.parts_simulation.folder import Folder
from benches.parts_simulation.protocol import PROTOCOL, Outcome, Plan, Protocol, Steps, complete, export, is_exported
from benches.parts_simulation.rows import ranges_of

#: Two exports into the same folder, the second of which replaces the first.
PLANS = {1: Plan(1, tuple(ranges_of([4, 2, 6]))), 2: Plan(2, tuple(ranges_of([5, 7])), replaces=True)}
_MOST_STEPS = 5_000


class _Observed:
    """A folder whose changes are compared with the conditions of a reader."""

    def __init__(self, protocol: Protocol) -> None:
        self.protocol = protocol
        self.problems: list[str] = []
        self.folder = Folder(protocol.keeps_order)
        self.folder.on_change = self._observe
        self.n_processes = 0

    def _observe(self) -> None:
        found = reader.problem(self.folder, PLANS)
        if found is not None:
            self.problems.append(found)

    def start(self, plan: Plan, part: int | None) -> tuple[int, Steps]:
        """Starts a process; returns its number and its steps."""
        self.n_processes += 1
        return self.n_processes, export(self.folder, plan, part, self.n_processes, self.protocol)


@dataclass
class _Process:
    """A process of an export, which is started again after it has ended."""

    plan: Plan
    part: int | None
    priority: float
    number: int = 0
    steps: Steps | None = None
    #: An exporter of a part that has succeeded is started again after a power failure only.
    is_done: bool = False


class Interleaving(_Observed):
    """One order of the steps of all processes, chosen by `seed`.

    Two processes export each part, and two export all. When the export is complete, those of the
    second plan are added. `problems` are the conditions of a reader that did not hold.
    """

    def __init__(self, seed: int, protocol: Protocol = PROTOCOL, n_kills: int = 2, n_power_failures: int = 1) -> None:
        super().__init__(protocol)
        self._n_kills, self._n_power_failures = n_kills, n_power_failures
        self._random = random.Random(seed)
        self._processes: list[_Process] = []
        #: Half of the seeds choose any process at each step. In the others, one process continues
        #: until it ends or its priority is lowered, so that some pause for a long time.
        self._by_priority = seed % 2 == 0

    def _step(self, process: _Process) -> None:
        try:
            if process.steps is None:
                process.number, process.steps = self.start(process.plan, process.part)
            next(process.steps)
        except StopIteration as end:
            self._end(process)
            process.is_done = end.value is Outcome.DONE and process.part is not None
        except FileNotFoundError:
            self._end(process)

    def _end(self, process: _Process) -> None:
        process.steps = None
        self._lower(process)
        self.folder.release(process.number)

    def _fail(self) -> None:
        """Rarely kills a process, or all of them by a power failure."""
        draw = self._random.random()
        live = [process for process in self._processes if process.steps is not None]
        if self._n_power_failures and draw < 0.004:
            self._n_power_failures -= 1
            for process in live:
                self._end(process)
            self.folder.power_failure(self._random)
            for process in self._processes:
                process.is_done = False
        elif self._n_kills and draw > 0.99 and live:
            self._n_kills -= 1
            self._end(self._random.choice(live))

    def _next(self) -> _Process:
        ready = [process for process in self._processes if not process.is_done]
        if not self._by_priority:
            return self._random.choice(ready)
        process = max(ready, key=lambda process: process.priority)
        if self._random.random() < 0.12:
            self._lower(process)
        return process

    def _lower(self, process: _Process) -> None:
        """Lets all other processes continue before this one."""
        process.priority = min(process.priority for process in self._processes) - 1

    def execute(self) -> list[str]:
        """Executes the steps until both exports are complete; returns the problems."""
        n_steps = 0
        for plan in PLANS.values():
            # Of an earlier plan, the exporters of a part continue only if they have begun. Those of
            # all parts are started again: a power failure can restore the folder that they removed.
            self._processes = [p for p in self._processes if p.steps is not None or p.part is None]
            for part in (*range(len(plan.parts)), None):
                self._processes += [_Process(plan, part, self._random.random()) for _ in range(2)]
            while not is_exported(self.folder, plan):
                n_steps += 1
                if n_steps > _MOST_STEPS:
                    self.problems.append(f"export {plan.number} is not complete after {_MOST_STEPS} steps")
                    return self.problems
                self._fail()
                process = self._next()
                self._step(process)
                if process.steps is None and process.part is not None and process.plan is not plan:
                    self._processes.remove(process)
        return self.problems


def each_kill(
    protocol: Protocol = PROTOCOL, power_failure_seed: int | None = None, plan: Plan = PLANS[1]
) -> tuple[int, list[str]]:
    """Kills an export of a plan at each step, its recovery at each of its steps, and recovers again.

    With `power_failure_seed`, each kill is a power failure. Returns the number of executions, and
    the problems.
    """
    problems: list[str] = []
    n_executions, first = 0, 0
    while True:
        for second in range(_MOST_STEPS):
            observed = _Observed(protocol)
            observed.problems = problems
            kills = [_kill(observed, plan, after, power_failure_seed) for after in (first, second)]
            if not kills[0]:
                return n_executions, problems
            for _ in _sequence(observed, plan, set()):
                pass
            n_executions += 1
            if not is_exported(observed.folder, plan):
                problems.append("the export is not complete after its recovery")
            if not kills[1]:
                break
        first += 1


def _sequence(observed: _Observed, plan: Plan, reported: set[int]) -> Iterator[int]:
    """Executes one process after another; yields the number of the process before each step."""
    for part in (*range(len(plan.parts)), None):
        number, steps = observed.start(plan, part)
        for _ in steps:
            yield number
        reported |= {part} if part is not None else set()
        observed.folder.release(number)


def _kill(observed: _Observed, plan: Plan, after: int, power_failure_seed: int | None) -> bool:
    """Executes `after` steps, then kills the process; returns false if all have ended before."""
    reported: set[int] = set()
    for n, number in enumerate(_sequence(observed, plan, reported)):
        if n == after:
            if power_failure_seed is None:
                observed.folder.release(number)
            else:
                observed.folder.power_failure(random.Random(power_failure_seed * 1_000_003 + after))
            if not is_exported(observed.folder, plan) and not all(complete(observed.folder, p) for p in reported):
                observed.problems.append("a part that was reported as complete is incomplete")
            return True
    return False
