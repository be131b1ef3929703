"""The targets of a simulated export: a folder with the protocol, or a table of a peer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol as Interface

from benches.parts_simulation import reader
from benches.parts_simulation.folder import Folder
from benches.parts_simulation.peers import Append, Table
from benches.parts_simulation.protocol import Plan, Protocol, Steps, export_part, finish, is_complete, is_exported
from benches.parts_simulation.rows import Difference, difference

#: The number of pieces in which the rows of a part are read, so that an attempt can die between them.
N_PIECES = 4


class Sink(Interface):
    """The target of one export."""

    #: The conditions of a reader that did not hold at some time.
    problems: list[str]

    @property
    def folder(self) -> Folder | None:
        """The folder; `None` for a target without one."""

    def export(self, part: int, process: int) -> Steps:
        """The steps that export a part."""

    def finish(self, process: int) -> Steps | None:
        """The steps after the last part; `None` if there are none."""

    def complete_parts(self) -> set[int]:
        """The parts that a new coordinator finds complete."""

    def is_finished(self) -> bool:
        """Returns true if the export is complete."""

    def difference(self) -> Difference:
        """The rows that are lost or doubled for a reader."""


@dataclass
class FolderSink:
    """A folder that is written by the protocol; each change is compared with a reader's
    conditions."""

    plan: Plan
    protocol: Protocol
    problems: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.folder = Folder(locks_survive_their_owner=not self.protocol.locks_end_with_process)
        self.folder.on_change = self._observe
        self._n_observed = 0

    def _observe(self) -> None:
        # Changes in the staging folder concern no reader.
        if self.folder.n_changes != self._n_observed:
            self._n_observed = self.folder.n_changes
            found = reader.problem(self.folder, {self.plan.number: self.plan})
            if found is not None:
                self.problems.append(found)

    def export(self, part: int, process: int) -> Steps:
        """The steps of `onecopy export --part`."""
        return export_part(self.folder, self.plan, part, process, self.protocol, N_PIECES)

    def finish(self, process: int) -> Steps:
        """The steps that move the files."""
        return finish(self.folder, self.plan, process, self.protocol)

    def complete_parts(self) -> set[int]:
        """The parts with an entry."""
        if is_exported(self.folder, self.plan):
            return set(range(len(self.plan.parts)))
        return {part for part in range(len(self.plan.parts)) if is_complete(self.folder, part, self.protocol)}

    def is_finished(self) -> bool:
        """Returns true if the manifest is in the folder, and the staging folder is removed."""
        return is_exported(self.folder, self.plan) and self.folder.staging_plan is None

    def difference(self) -> Difference:
        """The rows that a reader finds by the manifest."""
        return reader.read(self.folder, self.plan.n_rows)


@dataclass
class TableSink:
    """A table to which tasks append."""

    plan: Plan
    append: Append
    problems: list[str] = field(default_factory=list)
    table: Table = field(default_factory=list)
    folder: None = None

    def export(self, part: int, process: int) -> Steps:
        """The steps of a task."""
        return self.append(self.table, self.plan, part, N_PIECES)

    def finish(self, process: int) -> None:
        """Nothing is left to do after the last part."""

    def complete_parts(self) -> set[int]:
        """None: the table does not show which parts are complete."""
        return set()

    def is_finished(self) -> bool:
        """The coordinator decides it."""
        return True

    def difference(self) -> Difference:
        """The rows in the table."""
        return difference(self.table, self.plan.n_rows)


#: Creates the target of an export.
NewSink = Callable[[Plan], Sink]


def count_steps(new_sink: NewSink, plan: Plan) -> tuple[int, int]:
    """The number of steps of an attempt that succeeds, and of the end of an export."""
    sink = new_sink(plan)

    def count(steps: Steps | None) -> int:
        n = 0
        try:
            while steps is not None:
                steps.send(True) if n else next(steps)
                n += 1
        except StopIteration:
            pass
        return n

    n_steps = 0
    for part in range(len(plan.parts)):
        n_steps = count(sink.export(part, part + 1))
        if sink.folder is not None:
            sink.folder.release(part + 1)
    return n_steps, count(sink.finish(0))
