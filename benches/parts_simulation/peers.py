"""The same rows, appended to a target table without the folder, its entries and its locks.

Two ways that are common. `append_batches` commits each batch of rows, as the best-effort mode of
Microsoft's Spark connector for SQL Server does; its source says that duplicates may result if an
executor is started again (https://github.com/microsoft/sql-spark-connector,
`BestEffortSingleInstanceStrategy.scala`).
A file for each attempt that a reader finds by listing the folder is equal to it.

`append_transaction` commits each part in one transaction, as Spark's JDBC writer does; its source
says that rows may be inserted more than once if a stage fails after the commit
(https://github.com/apache/spark, `JdbcUtils.savePartition`).
"""

from __future__ import annotations

from collections.abc import Callable

from benches.parts_simulation.protocol import CALL, COMMIT, CONNECT, START, Kind, Outcome, Plan, Step, Steps
from benches.parts_simulation.rows import Range, split

#: The rows that are committed in the target table.
Table = list[Range]
#: Exports one part into the table.
Append = Callable[[Table, Plan, int, int], Steps]


def append_batches(table: Table, plan: Plan, part: int, n_pieces: int = 2) -> Steps:
    """The steps of a task that commits each batch of rows."""
    yield START
    if not (yield CONNECT):
        return Outcome.REFUSED
    for piece in split(plan.parts[part], n_pieces):
        yield Step(Kind.READ, piece.n_rows)
        yield COMMIT
        table.append(piece)
    yield CALL  # The task reports its success, or dies before.
    return Outcome.DONE


def append_transaction(table: Table, plan: Plan, part: int, n_pieces: int = 2) -> Steps:
    """The steps of a task that commits all rows of its part at the end."""
    yield START
    if not (yield CONNECT):
        return Outcome.REFUSED
    for piece in split(plan.parts[part], n_pieces):
        yield Step(Kind.READ, piece.n_rows)
    yield COMMIT
    table.append(plan.parts[part])
    yield CALL
    return Outcome.DONE
