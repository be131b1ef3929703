"""The targets of a simulated export: a folder, or a table to which the tasks of an engine write."""

from __future__ import annotations

from typing import Protocol as Interface

from benches.parts_simulation import reader
from benches.parts_simulation.folder import Folder
from benches.parts_simulation.protocol import (
    CALL,
    CONNECT,
    PROTOCOL,
    START,
    SYNC,
    Kind,
    Outcome,
    Plan,
    Protocol,
    Step,
    Steps,
    complete,
    export,
    is_exported,
)
from benches.parts_simulation.rows import Difference, Range, difference, split

#: The pieces in which the rows of a part are read, so that a process can die between them.
N_PIECES = 4


class Sink(Interface):
    """The target of one export."""

    #: The conditions of a reader that did not hold at some time.
    problems: list[str]

    def start(self, part: int | None, process: int) -> Steps:
        """The steps that write a part, or those after the last part (`None`)."""

    def report(self, part: int, process: int) -> None:
        """The coordinator accepts the success of a process."""

    def recover(self) -> set[int]:
        """The parts that a new coordinator finds complete."""

    def release(self, process: int) -> None:
        """A process has ended: its locks end, and its transaction is rolled back."""

    def is_finished(self) -> bool:
        """Returns true if the export is complete."""

    def difference(self) -> Difference:
        """The rows that are lost or doubled for a reader."""


class FolderSink:
    """A folder that is written by the protocol; each change is compared with a reader's
    conditions."""

    def __init__(self, plan: Plan, protocol: Protocol = PROTOCOL) -> None:
        self.problems: list[str] = []
        self._plan, self._protocol = plan, protocol
        self._folder = Folder(protocol.keeps_order)
        self._folder.on_change = self._observe

    def _observe(self) -> None:
        found = reader.problem(self._folder, {self._plan.number: self._plan})
        if found is not None:
            self.problems.append(found)

    def start(self, part: int | None, process: int) -> Steps:
        """The steps of `onecopy export`."""
        return export(self._folder, self._plan, part, process, self._protocol, N_PIECES)

    def report(self, part: int, process: int) -> None:
        """Nothing: the folder has the manifest of the part."""

    def recover(self) -> set[int]:
        """The parts with a manifest."""
        parts = range(len(self._plan.parts))
        return {part for part in parts if self.is_finished() or complete(self._folder, part, self._protocol)}

    def release(self, process: int) -> None:
        """The locks of the process end."""
        self._folder.release(process)

    def is_finished(self) -> bool:
        """Returns true if the manifest is in the folder, and the staging folder is removed."""
        return is_exported(self._folder, self._plan)

    def difference(self) -> Difference:
        """The rows that a reader finds by the manifest."""
        return reader.read(self._folder, self._plan.n_rows)


class TableSink:
    """A table of a database.

    With `commit="job"` and `commit="part"`, tasks write as `TableWriter` does
    (`python/onecopy/_engine/_writing.py`). The other values are peers or defects:

    * "batches": each batch of rows is committed, as in the best-effort mode of Microsoft's Spark
      connector for SQL Server (`BestEffortSingleInstanceStrategy.scala`).
    * "transaction": a task commits its rows, as Spark's JDBC writer does
      (`JdbcUtils.savePartition`), without a row in `onecopy_commits`.
    * "attempts": as "job", but the rows of all attempts are moved, not only of the reported ones.
    """

    def __init__(self, plan: Plan, commit: str) -> None:
        self.problems: list[str] = []
        self._plan, self._commit_by = plan, commit
        self._rows: list[Range] = []
        self._staging: dict[int, Range] = {}
        self._reported: dict[int, int] = {}
        #: The primary keys of `onecopy_commits`: committed ones, and those of open transactions.
        self._committed: set[int | None] = set()
        self._open: dict[int, int] = {}

    def start(self, part: int | None, process: int) -> Steps:
        """The steps of a task, or of the driver after all tasks."""
        return self._finish() if part is None else self._write(part, process)

    def _write(self, part: int, process: int) -> Steps:
        yield START
        if (yield CONNECT) is False:
            return Outcome.REFUSED
        yield CALL
        if (part if self._commit_by == "part" else None) in self._committed:
            return Outcome.DONE
        if self._commit_by == "part":
            if part in self._open.values():  # The database lets it wait for the other transaction.
                return Outcome.BUSY
            self._open[process] = part
        rows = self._plan.parts[part]
        for piece in split(rows, N_PIECES):
            yield Step(Kind.READ, part, piece.n_rows)
            if self._commit_by == "batches":
                yield SYNC
                self._rows.append(piece)
        yield SYNC
        if self._commit_by in ("job", "attempts"):
            self._staging[process] = rows
        elif self._commit_by != "batches":
            self._rows.append(rows)
        if self._commit_by == "part":
            self._committed.add(part)
        yield CALL  # The task reports its success, or dies before.
        return Outcome.DONE

    def _finish(self) -> Steps:
        yield START
        if (yield CONNECT) is False:
            return Outcome.REFUSED
        yield SYNC
        if None not in self._committed:
            self._committed.add(None)
            is_moved = self._staging if self._commit_by == "attempts" else self._reported.values()
            self._rows += [self._staging[process] for process in is_moved if process in self._staging]
        yield CALL
        return Outcome.DONE

    def report(self, part: int, process: int) -> None:
        """The driver commits the rows of this attempt."""
        self._reported.setdefault(part, process)

    def recover(self) -> set[int]:
        """None: a new driver has no reports, and the engine starts all tasks."""
        self._reported.clear()
        return set()

    def release(self, process: int) -> None:
        """The transaction of the process ends."""
        self._open.pop(process, None)

    def is_finished(self) -> bool:
        """Returns true if the driver has committed the job."""
        return None in self._committed

    def difference(self) -> Difference:
        """The rows in the table."""
        return difference(self._rows, self._plan.n_rows)
