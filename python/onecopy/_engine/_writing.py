"""Writes the rows of an engine's tasks to a table exactly once, even if tasks are repeated.

The driver gives each job a name. A row of the table ``onecopy_commits`` is written in the same
transaction as the rows of the job or part. The primary key of this table prevents a second
transaction from writing the same rows.
"""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import re
import secrets
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import pyarrow as pa

from onecopy._core import Connection
from onecopy._engine import _database
from onecopy.errors import DatabaseError, IntegrityError, NotSupportedError, OperationalError, ProgrammingError

__all__ = ["Attempt", "TableWriter"]

_COMMITS = "onecopy_commits"
_ATTEMPT = "onecopy_attempt"
#: The part number in ``onecopy_commits`` of a job that is committed as a whole.
_WHOLE = 0
_MAX_BIGINT = (1 << 63) - 1
_DIALECTS = ("sqlite", "postgresql", "mysql")
#: The number of attempts in one `insert`: fewer than the parameters that any database permits.
_CHUNK = 500
#: The name of a table: the first group contains the schema with a dot, or nothing.
_QUALIFIED = re.compile(r'((?:(?:"(?:[^"]|"")*"|`[^`]*`|[^".`\s]+)\.)*)("(?:[^"]|"")*"|`[^`]*`|[^".`\s]+)')


@dataclass(frozen=True)
class Attempt:
    """The number of rows that one attempt of a task has written, and their columns. The engine's
    driver process passes this object to `TableWriter.commit`."""

    id: int
    rows: int
    columns: tuple[str, ...] = ()


@dataclass(frozen=True)
class TableWriter:
    """Writes the rows of a job to a table.

    With ``commit="job"``, tasks write to a staging table, each in one transaction. `commit` then
    moves the rows of the attempts that the engine reports as successful to the table, in one
    transaction. With ``commit="part"``, each task writes to the table itself, in one transaction.
    """

    database: str
    table: str
    job: str
    commit_by: Literal["job", "part"] = "job"
    overwrite: bool = False

    def __post_init__(self) -> None:
        _database.check(self.database)
        if not _QUALIFIED.fullmatch(self.table):
            raise ProgrammingError(f"`{self.table}` is not the name of a table\nquote a name with other characters")
        if self.commit_by not in ("job", "part"):
            raise ProgrammingError(f'`commit` is "job" or "part", not "{self.commit_by}"')
        if self.overwrite and self.commit_by == "part":
            raise ProgrammingError('rows cannot be replaced part by part\nuse `commit="job"`')

    @staticmethod
    def new_job() -> str:
        """Return a random name for a new job. No other job has this name."""
        return secrets.token_hex(16)

    def write(self, batches: Iterable[Any], part: int | None = None) -> Attempt:
        """Write `pyarrow.RecordBatch` objects in one transaction, in constant memory. A task of the
        engine calls this method.

        ``part`` is the engine's number of the task (from 0), which is the same for all attempts. If
        the job or the part is committed already, no row is written.
        """
        if self.commit_by == "part" and part is None:
            raise NotSupportedError('this engine does not number its tasks\nuse `commit="job"`')
        batches = iter(batches)
        first = next(batches, None)
        attempt = secrets.randbits(63)
        if first is None:
            return Attempt(attempt, 0)
        columns = tuple(first.schema.names)
        batches = itertools.chain([first], batches)
        with self._connection() as connection:
            if self.commit_by == "part":
                return Attempt(attempt, self._write_part(connection, batches, _WHOLE + 1 + (part or 0)))
            if self._committed_rows(connection, _WHOLE) is not None:
                return Attempt(attempt, 0)
            self._create_staging(connection, columns)
            rows = self._insert(connection, self._staging, _with_attempt(batches, attempt))
            connection.commit()
            return Attempt(attempt, rows, columns)

    def commit(self, attempts: Sequence[Attempt]) -> None:
        """Make the rows of these attempts visible in the table. The engine's driver process calls
        this method; calling it again has no effect.

        Raises `OperationalError` if rows are missing in the staging table; the table is unchanged.
        """
        if self.commit_by == "part":
            return
        expected = {attempt.id: attempt.rows for attempt in attempts if attempt.rows}
        columns = next((attempt.columns for attempt in attempts if attempt.rows), ())
        with self._connection() as connection:
            if self._begin_commit(connection, _WHOLE, sum(expected.values())):
                if self.overwrite:
                    connection.execute(f"delete from {self.table}")
                moved = sum(self._move(connection, ids, columns) for ids in _chunks(list(expected)))
                if moved != sum(expected.values()):
                    connection.rollback()
                    raise OperationalError(
                        f"the staging table `{self._staging}` has {moved} of {sum(expected.values())} rows\n"
                        "the table is unchanged: repeat the job"
                    )
                connection.commit()
            self._drop_staging(connection)

    def abort(self) -> None:
        """Remove the staging table of a job that failed; the target table is unchanged. With
        ``commit="part"``, the parts that were committed remain in the target table."""
        if self.commit_by == "job":
            with self._connection() as connection:
                self._drop_staging(connection)

    @property
    def _staging(self) -> str:
        match = _QUALIFIED.fullmatch(self.table)
        digest = hashlib.sha256(f"{self.job}\n{self.table}".encode()).hexdigest()
        return f"{match[1] if match else ''}onecopy_staging_{digest[:24]}"

    @property
    def _commits(self) -> str:
        match = _QUALIFIED.fullmatch(self.table)
        return f"{match[1] if match else ''}{_COMMITS}"

    @contextlib.contextmanager
    def _connection(self) -> Iterator[Connection]:
        with contextlib.closing(_database.connect(self.database)) as connection:
            if connection.dialect not in _DIALECTS:
                raise NotSupportedError(f"rows cannot be written once to {connection.dbms_name}: use its own loader")
            if connection.dialect == "sqlite":
                # In SQLite, one task writes at a time. The other tasks wait until its transaction
                # has ended.
                connection.execute("pragma busy_timeout = 3600000")
            self._create(
                connection,
                f"create table if not exists {self._commits} "
                "(job varchar(64) not null, part bigint not null, n_rows bigint, primary key (job, part))",
                self._commits,
            )
            yield connection

    def _create(self, connection: Connection, statement: str, name: str) -> None:
        # If two tasks create the table at the same time, one of the statements fails in PostgreSQL.
        try:
            connection.execute(statement)
            connection.commit()
        except DatabaseError:
            connection.rollback()
            connection.execute(f"select 1 from {name} where 1 = 0").close()
            connection.rollback()

    def _create_staging(self, connection: Connection, names: Sequence[str]) -> None:
        columns = _quoted_list(names, connection.dialect)
        # Each database regards this integer as a `bigint`, which becomes the type of the column.
        self._create(
            connection,
            f"create table if not exists {self._staging} as "
            f"select {columns}, {_MAX_BIGINT} as {_ATTEMPT} from {self.table} where 1 = 0",
            self._staging,
        )

    def _drop_staging(self, connection: Connection) -> None:
        connection.execute(f"drop table if exists {self._staging}")
        connection.commit()

    def _begin_commit(self, connection: Connection, part: int, rows: int) -> bool:
        """Begin the transaction that commits the part. Return false if another transaction has
        already committed this part."""
        try:
            connection.execute(f"insert into {self._commits} values (?, ?, ?)", (self.job, part, rows))
        except IntegrityError:
            connection.rollback()
            return False
        return True

    def _committed_rows(self, connection: Connection, part: int) -> int | None:
        """Return the number of rows of the job or part; `None` if it is not committed."""
        query = f"select n_rows from {self._commits} where job = ? and part = ?"
        row = connection.execute(query, (self.job, part)).fetchone()
        connection.rollback()
        return None if row is None else int(row[0])

    def _write_part(self, connection: Connection, batches: Iterable[Any], part: int) -> int:
        if not self._begin_commit(connection, part, 0):
            return self._committed_rows(connection, part) or 0
        rows = self._insert(connection, self.table, batches)
        connection.execute(f"update {self._commits} set n_rows = ? where job = ? and part = ?", (rows, self.job, part))
        connection.commit()
        return rows

    def _insert(self, connection: Connection, table: str, batches: Iterable[Any]) -> int:
        batches = iter(batches)
        first = next(batches)
        stream = pa.RecordBatchReader.from_batches(first.schema, itertools.chain([first], batches))
        return connection.cursor().insert_arrow(table, stream).rowcount

    def _move(self, connection: Connection, attempts: Sequence[int], names: Sequence[str]) -> int:
        columns = _quoted_list(names, connection.dialect)
        marks = ", ".join("?" * len(attempts))
        return connection.execute(
            f"insert into {self.table} ({columns}) select {columns} from {self._staging} where {_ATTEMPT} in ({marks})",
            attempts,
        ).rowcount


def _quoted_list(names: Sequence[str], dialect: str) -> str:
    return ", ".join(quoted(name, dialect) for name in names)


def quoted(name: str, dialect: str) -> str:
    """Return the name of a column as a quoted identifier in SQL."""
    mark = "`" if dialect == "mysql" else '"'
    return mark + name.replace(mark, mark * 2) + mark


def _chunks(items: list[int]) -> Iterator[list[int]]:
    for start in range(0, len(items), _CHUNK):
        yield items[start : start + _CHUNK]


def _with_attempt(batches: Iterable[Any], attempt: int) -> Iterator[Any]:
    for batch in batches:
        yield batch.append_column(_ATTEMPT, pa.repeat(pa.scalar(attempt, pa.int64()), batch.num_rows))
