"""The steps of several processes in any order, with kills and power failures; without time."""

from __future__ import annotations

import random
from dataclasses import dataclass

from benches.parts_simulation.folder import Folder
from benches.parts_simulation.protocol import PROTOCOL, Exporter, Outcome, Plan, Protocol, Steps, is_exported, problem
from benches.parts_simulation.rows import ranges_of

#: Two exports into the same folder, the second of which replaces the first.
PLANS = {1: Plan(1, ranges_of([4, 2, 6])), 2: Plan(2, ranges_of([5, 7]), replaces=True)}
_MOST_STEPS = 5_000


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


class Interleaving:
    """One order of the steps of all processes, chosen by `seed`.

    Two processes export each part, and two export all. When the export is complete, those of the
    second plan are added. `problems` are the conditions of a reader that did not hold.
    """

    def __init__(self, seed: int, protocol: Protocol = PROTOCOL) -> None:
        self.problems: list[str] = []
        self._folder, self._protocol = Folder(protocol.keeps_order), protocol
        self._folder.on_change = self._observe
        self._n_kills, self._n_power_failures = 2, 1
        self._random = random.Random(seed)
        self._processes: list[_Process] = []
        self._n_started = 0
        #: Half of the seeds choose any process at each step. In the others, one process continues
        #: until it ends or its priority is lowered, so that some pause for a long time.
        self._by_priority = seed % 2 == 0

    def _observe(self) -> None:
        found = problem(self._folder, PLANS)
        if found is not None:
            self.problems.append(found)

    def _step(self, process: _Process) -> None:
        try:
            if process.steps is None:
                self._n_started += 1
                process.number = self._n_started
                exporter = Exporter(self._folder, process.plan, process.part, process.number, self._protocol)
                process.steps = exporter.steps()
            next(process.steps)
        except (StopIteration, FileNotFoundError) as end:
            self._end(process)
            is_success = isinstance(end, StopIteration) and end.value is Outcome.DONE
            process.is_done = is_success and process.part is not None

    def _end(self, process: _Process) -> None:
        process.steps = None
        self._lower(process)
        self._folder.release(process.number)

    def _fail(self) -> None:
        """Rarely kills a process, or all of them by a power failure."""
        draw = self._random.random()
        live = [process for process in self._processes if process.steps is not None]
        if self._n_power_failures and draw < 0.004:
            self._n_power_failures -= 1
            for process in live:
                self._end(process)
            self._folder.power_failure(self._random)
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
            while not is_exported(self._folder, plan):
                n_steps += 1
                if n_steps > _MOST_STEPS:
                    return [*self.problems, f"export {plan.number} is not complete after {_MOST_STEPS} steps"]
                self._fail()
                process = self._next()
                self._step(process)
                if process.steps is None and process.part is not None and process.plan is not plan:
                    self._processes.remove(process)
        return self.problems
