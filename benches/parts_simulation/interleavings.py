"""The steps of several processes in any order, with kills and power failures; without time.

Each seed is one order. A small export has few steps, so that some thousand seeds reach rare orders;
`each_kill` also kills at every single step, and again at every step of the recovery.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator
from dataclasses import dataclass, field

from benches.parts_simulation import reader
from benches.parts_simulation.folder import Folder
from benches.parts_simulation.protocol import PROTOCOL, Outcome, Plan, Protocol, Steps, export_part, finish, is_exported
from benches.parts_simulation.rows import ranges_of

#: Numbers of processes that are executed in sequence.
_NUMBERS = itertools.count(1)
#: Two exports into the same folder, the second of which replaces the first.
PLANS = {1: Plan(1, tuple(ranges_of([4, 2, 6]))), 2: Plan(2, tuple(ranges_of([5, 7])))}


@dataclass
class _Process:
    """A process of an export, which is started again after it has ended."""

    plan: Plan
    #: `None` is a process that finishes the export.
    part: int | None
    priority: float
    number: int = 0
    steps: Steps | None = None
    #: An exporter whose part is complete is started again only if a part is found missing.
    is_done: bool = False


@dataclass
class Interleaving:
    """One order of the steps of all processes, chosen by `seed`.

    Two processes export each part and two finish the export. When it is complete, those of the
    second plan are added. `problems` are the conditions of a reader that did not hold.
    """

    seed: int
    protocol: Protocol = PROTOCOL
    n_kills: int = 2
    n_power_failures: int = 1
    most_steps: int = 3_000
    problems: list[str] = field(default_factory=list)
    n_steps: int = 0

    def __post_init__(self) -> None:
        self._random = random.Random(self.seed)
        self._folder = Folder(locks_survive_their_owner=not self.protocol.locks_end_with_process)
        self._folder.on_change = self._observe
        self._processes: list[_Process] = []
        self._n_started = 0
        #: Half of the seeds choose any process at each step. In the others, one process continues
        #: until it ends or its priority is lowered, so that some pause for a long time.
        self._by_priority = self.seed % 2 == 0

    def _observe(self) -> None:
        found = reader.problem(self._folder, PLANS)
        if found is not None:
            self.problems.append(found)

    def _step(self, process: _Process) -> None:
        """Executes one step of a process."""
        try:
            if process.steps is None:
                self._n_started += 1
                process.number = self._n_started
                arguments = (process.number, self.protocol)
                if process.part is None:
                    process.steps = finish(self._folder, process.plan, *arguments)
                else:
                    process.steps = export_part(self._folder, process.plan, process.part, *arguments)
                next(process.steps)
            else:
                process.steps.send(True)
        except StopIteration as end:
            self._end(process, by_kill=False)
            process.is_done = process.part is not None and end.value is Outcome.DONE
            if end.value is Outcome.INCOMPLETE:
                for each in self._processes:
                    each.is_done = False
        except FileNotFoundError:
            self._end(process, by_kill=False)

    def _end(self, process: _Process, by_kill: bool) -> None:
        process.steps = None
        self._lower(process)
        self._folder.release(process.number, by_kill)

    def _fail(self) -> None:
        """Rarely kills a process, or all of them by a power failure."""
        draw = self._random.random()
        live = [process for process in self._processes if process.steps is not None]
        if self.n_power_failures and draw < 0.004:
            self.n_power_failures -= 1
            for process in live:
                self._end(process, by_kill=True)
            self._folder.power_failure(self._random)
        elif self.n_kills and draw > 0.99 and live:
            self.n_kills -= 1
            self._end(self._random.choice(live), by_kill=True)

    def _next(self) -> _Process:
        ready = [process for process in self._processes if not process.is_done]
        if not self._by_priority:
            return self._random.choice(ready)
        process = max(ready, key=lambda process: process.priority)
        if self._random.random() < 0.03:
            self._lower(process)
        return process

    def _lower(self, process: _Process) -> None:
        """Lets all other processes continue before this one."""
        process.priority = min(process.priority for process in self._processes) - 1

    def execute(self) -> list[str]:
        """Executes the steps until both exports are complete; returns the problems."""
        for plan in PLANS.values():
            # Only a process that has begun continues with the parts of an earlier plan.
            self._processes = [p for p in self._processes if p.steps is not None or p.part is None]
            for part in (*range(len(plan.parts)), None):
                self._processes += [_Process(plan, part, self._random.random()) for _ in range(2)]
            while not (is_exported(self._folder, plan) and self._folder.staging_plan is None):
                self.n_steps += 1
                if self.n_steps > self.most_steps:
                    self.problems.append(f"export {plan.number} is not complete after {self.most_steps} steps")
                    return self.problems
                self._fail()
                process = self._next()
                self._step(process)
                if process.steps is None and process.part is not None and process.plan is not plan:
                    self._processes.remove(process)
        return self.problems


def in_sequence(folder: Folder, plan: Plan, protocol: Protocol) -> Iterator[int]:
    """Executes the steps of an export by one process after another; yields before each step the
    number of the process."""
    for part in (*range(len(plan.parts)), None):
        number = next(_NUMBERS)
        if part is None:
            steps = finish(folder, plan, number, protocol)
        else:
            steps = export_part(folder, plan, part, number, protocol)
        yield number
        try:
            next(steps)
            while True:
                yield number
                steps.send(True)
        except StopIteration:
            folder.release(number)


def each_kill(
    protocol: Protocol = PROTOCOL, power_failure_seed: int | None = None, plan: Plan = PLANS[1]
) -> tuple[int, list[str]]:
    """Kills an export of a plan at each step, its recovery at each of its steps, and recovers again.

    With `power_failure_seed`, each kill is a power failure. Returns the number of executions, and
    the problems.
    """
    problems: list[str] = []
    n_executions = 0

    def stop(folder: Folder, steps: Iterator[int], after: int) -> bool:
        """Executes `after` steps, then kills the process; returns false if it ended before."""
        for n, process in enumerate(steps):
            if n == after:
                if power_failure_seed is None:
                    folder.release(process, by_kill=True)
                else:
                    folder.power_failure(random.Random(power_failure_seed * 1_000_003 + after))
                return True
        return False

    first = 0
    while True:
        second = 0
        was_killed = True
        while was_killed:
            folder = Folder(locks_survive_their_owner=not protocol.locks_end_with_process)

            def observe(folder: Folder = folder) -> None:
                found = reader.problem(folder, PLANS)
                if found is not None:
                    problems.append(found)

            folder.on_change = observe
            if not stop(folder, in_sequence(folder, plan, protocol), first):
                return n_executions, problems
            was_killed = stop(folder, in_sequence(folder, plan, protocol), second)
            for _ in in_sequence(folder, plan, protocol):
                pass
            n_executions += 1
            if not is_exported(folder, plan) or folder.staging_plan is not None:
                problems.append("the export is not complete after its recovery")
            second += 1
        first += 1
