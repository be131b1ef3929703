"""The targets of a simulated export: a folder, or a table to which the tasks of an engine write.

`start` returns the steps that write a part, or those after the last part (`None`). `report` is called
when the coordinator accepts the success of a process, `release` when a process has ended, and
`recover` by a new coordinator: it returns the parts that are complete. `rows` are those that a
reader finds, and `problems` the conditions of a reader that did not hold at some time.
"""

from __future__ import annotations

from benches.parts_simulation import protocol as protocols
from benches.parts_simulation.folder import Folder
from benches.parts_simulation.protocol import CALL, CONNECT, PROTOCOL, START, SYNC, Kind, Outcome, Plan, Step, Steps
from benches.parts_simulation.rows import Range, split

#: The pieces in which the rows of a part are read, so that a process can die between them.
N_PIECES = 4


class FolderSink:
    """A folder that is written by the protocol; each change is compared with a reader's
    conditions."""

    def __init__(self, plan: Plan, protocol: protocols.Protocol = PROTOCOL) -> None:
        self.problems: list[str] = []
        self._plan, self._protocol = plan, protocol
        self._folder = Folder(protocol.keeps_order)
        self._folder.on_change = self._observe

    def _observe(self) -> None:
        found = protocols.problem(self._folder, {self._plan.number: self._plan})
        if found is not None:
            self.problems.append(found)

    def start(self, part: int | None, process: int) -> Steps:
        """The steps of `onecopy export`."""
        return protocols.Exporter(self._folder, self._plan, part, process, self._protocol, N_PIECES).steps()

    def report(self, part: int, process: int) -> None:
        """Nothing: the folder has the manifest of the part."""

    def release(self, process: int) -> None:
        """The locks of the process end."""
        self._folder.release(process)

    def recover(self) -> set[int]:
        """The parts with a manifest."""
        parts = range(len(self._plan.parts))
        return {part for part in parts if self.is_finished() or protocols.complete(self._folder, part, self._protocol)}

    def is_finished(self) -> bool:
        """Returns true if the manifest is in the folder, and the staging folder is removed."""
        return protocols.is_exported(self._folder, self._plan)

    def rows(self) -> list[Range]:
        """The rows that a reader finds by the manifest."""
        return protocols.exported_rows(self._folder)


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
        self._plan, self._commit = plan, commit
        self._rows: list[Range] = []
        #: The rows in the staging table, by the number of the attempt.
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
        if (part if self._commit == "part" else None) in self._committed:
            return Outcome.DONE
        if self._commit == "part":
            if part in self._open.values():  # The database lets it wait for the other transaction.
                return Outcome.BUSY
            self._open[process] = part
        rows = self._plan.parts[part]
        for piece in split(rows, N_PIECES):
            yield Step(Kind.READ, part, piece.n_rows)
            if self._commit == "batches":
                yield SYNC
                self._rows.append(piece)
        yield SYNC
        if self._commit in ("job", "attempts"):
            self._staging[process] = rows
        elif self._commit in ("part", "transaction"):
            self._rows.append(rows)
        if self._commit == "part":
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
            moved = self._staging if self._commit == "attempts" else self._reported.values()
            self._rows += [self._staging[process] for process in moved if process in self._staging]
        yield CALL
        return Outcome.DONE

    def report(self, part: int, process: int) -> None:
        """The driver commits the rows of this attempt."""
        self._reported.setdefault(part, process)

    def release(self, process: int) -> None:
        """The transaction of the process ends."""
        self._open.pop(process, None)

    def recover(self) -> set[int]:
        """None: a new driver has no reports, and the engine starts all tasks."""
        self._reported.clear()
        return set()

    def is_finished(self) -> bool:
        """Returns true if the driver has committed the job."""
        return None in self._committed

    def rows(self) -> list[Range]:
        """The rows in the table."""
        return self._rows
