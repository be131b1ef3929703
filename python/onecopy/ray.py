"""Reads queries as datasets of Ray Data (in parts, as Arrow), and writes datasets to a table.

>>> import onecopy.ray
>>> orders = onecopy.ray.read_sql("env:SHOP_DATABASE", "select * from orders")  # doctest: +SKIP
>>> sink = onecopy.ray.OnecopyDatasink("env:SHOP_DATABASE", "orders_copy")  # doctest: +SKIP
>>> orders.write_datasink(sink)  # doctest: +SKIP

This module requires Ray Data (``ray`` and ``pyarrow``) on the driver and the workers.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal

import pyarrow as pa

try:
    import ray.data
    from ray.data.block import BlockAccessor, BlockMetadata
    from ray.data.datasource import Datasink, Datasource, ReadTask
except ImportError as error:
    raise ImportError("onecopy.ray needs Ray Data\npip install ray pyarrow") from error

from onecopy._engine import _columns, _database, _reading
from onecopy._engine._writing import Attempt, TableWriter
from onecopy.errors import ProgrammingError
from onecopy.parts import PartSpec, Plan, plan

__all__ = ["OnecopyDatasink", "OnecopyDatasource", "read_sql"]

#: The least number of rows of a task. A task for fewer rows costs more than it saves.
_MIN_ROWS = 100_000
#: The number of bytes that a value is assumed to have, for the estimate of the memory.
_VALUE_BYTES = 16


def read_sql(
    database: str,
    sql: str | Plan,
    parameters: Sequence[Any] = (),
    *,
    parts: int | None = None,
    key: Iterable[str] = (),
    types: Mapping[str, str] | None = None,
    **options: Any,
) -> Any:
    """Return a `ray.data.Dataset` of the rows of a query.

    ``options`` are passed to `ray.data.read_datasource`, for example ``concurrency``. The other
    arguments are those of `OnecopyDatasource`. If neither ``parts`` nor ``override_num_blocks`` is
    given, there are two parts for each CPU of the cluster, but no more than one part per 100,000
    rows. Ray does not divide the blocks of the parts further, unless ``override_num_blocks`` is
    larger than their number.
    """
    if not ray.is_initialized():
        ray.init()
    blocks = options.pop("override_num_blocks", None)
    source = OnecopyDatasource(database, sql, parameters, parts=parts, key=key, types=types)
    n_parts = len(source._planned(blocks or 2 * int(ray.cluster_resources().get("CPU", 1))))
    return ray.data.read_datasource(source, override_num_blocks=blocks or n_parts, **options)


class OnecopyDatasource(Datasource):  # type: ignore[misc]  # Ray is not installed for type checks.
    """A query that is read in parts. Each read task of Ray reads one part on its own connection.

    ``database`` is ``env:NAME`` or ``@/path/to/file``, which the driver and each worker read on
    their own machine, or a connection string without a password. ``sql`` is a query, as for
    `onecopy.parts.plan`, or a `Plan`. ``parts`` is the number of parts; by default it is Ray's
    parallelism, but no more than one part per 100,000 rows. ``types`` are Arrow types of columns,
    as for `Cursor.arrow`.

    If a task is repeated, it yields the same blocks, unless the tables have changed. Raises
    `ProgrammingError` if the connection string has a password or the statement cannot be divided.
    """

    def __init__(
        self,
        database: str,
        sql: str | Plan,
        parameters: Sequence[Any] = (),
        *,
        parts: int | None = None,
        key: Iterable[str] = (),
        types: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__()
        _database.check(database)
        self._database = database
        self._sql = sql
        self._parameters = tuple(parameters)
        self._parts = parts
        self._key = (key,) if isinstance(key, str) else tuple(key)
        with contextlib.closing(_database.connect(database)) as connection:
            n_parts = parts or 1
            made = sql if isinstance(sql, Plan) else plan(connection, sql, parameters, parts=n_parts, key=self._key)
            self._schema = _columns.schema(connection, made.parts[0], types)
        # The parts are stored by their number, since Ray requests the tasks several times.
        self._plans = {n_parts: made.parts}
        rows = [part.rows for part in made.parts]
        self._rows = None if None in rows else sum(n for n in rows if n is not None)

    def get_name(self) -> str:
        """Return the name that Ray shows for the read tasks."""
        return "Onecopy"

    def estimate_inmemory_data_size(self) -> int | None:
        """Return the estimated size of all rows in memory, in bytes; `None` if the number of rows
        is unknown."""
        return None if self._rows is None else self._rows * len(self._schema) * _VALUE_BYTES

    def get_read_tasks(
        self, parallelism: int, per_task_row_limit: int | None = None, data_context: Any = None
    ) -> list[ReadTask]:
        """Return one task for each part. With ``per_task_row_limit`` a task reads at most this
        number of rows."""
        return [self._task(part, per_task_row_limit) for part in self._planned(parallelism)]

    def _planned(self, parallelism: int) -> tuple[PartSpec, ...]:
        """Return the parts of the query. If the user passed neither a plan nor ``parts``, the query
        is divided into at most ``parallelism`` parts."""
        if isinstance(self._sql, Plan):
            return self._sql.parts
        n_parts = self._parts
        if n_parts is None:
            useful = parallelism if self._rows is None else -(-self._rows // _MIN_ROWS)
            n_parts = max(1, min(parallelism, useful))
        if n_parts not in self._plans:
            with contextlib.closing(_database.connect(self._database)) as connection:
                made = plan(connection, self._sql, self._parameters, parts=n_parts, key=self._key)
            self._plans[n_parts] = made.parts
        return self._plans[n_parts]

    def _task(self, part: PartSpec, max_rows: int | None) -> ReadTask:
        n_bytes = None if part.rows is None else part.rows * len(self._schema) * _VALUE_BYTES
        # The number of rows is only an estimate. Ray would regard it as exact, and use it to count
        # a dataset.
        metadata = BlockMetadata(num_rows=None, size_bytes=n_bytes, input_files=None, exec_stats=None)
        read = functools.partial(_read, self._database, part, self._schema, max_rows)
        return ReadTask(read, metadata, schema=self._schema, per_task_row_limit=max_rows)


class OnecopyDatasink(Datasink[Attempt]):  # type: ignore[misc]
    """Writes a dataset to an existing table. Each row is written exactly once, even if tasks are
    repeated.

    With ``commit="job"``, one transaction at the end inserts all rows or none. With
    ``commit="part"``, each task inserts its rows in a separate transaction. ``job`` is a name by
    which a repeated job is recognized. ``overwrite`` replaces the previous rows of the table. Each
    object can write only one dataset.
    """

    def __init__(
        self,
        database: str,
        table: str,
        *,
        commit: Literal["job", "part"] = "job",
        job: str | None = None,
        overwrite: bool = False,
    ) -> None:
        super().__init__()
        self._writer = TableWriter(
            database, table, job=job or TableWriter.new_job(), commit_by=commit, overwrite=overwrite
        )
        self._has_started = False

    def get_name(self) -> str:
        """Return the name that Ray shows for the write tasks."""
        return "Onecopy"

    def on_write_start(self, schema: Any = None) -> None:
        """Raise an error if this datasink has already written a dataset. Ray calls this method in
        the driver process."""
        if self._has_started:
            raise ProgrammingError("a datasink writes one dataset\ncreate another one")
        self._has_started = True

    def write(self, blocks: Iterable[Any], ctx: Any) -> Attempt:
        """Write the blocks of a task in one transaction."""
        return self._writer.write(_batches(blocks), ctx.task_idx)

    def on_write_complete(self, write_result: Any) -> None:
        """Commit the rows. Ray calls this method in the driver process when all tasks succeeded."""
        self._writer.commit(write_result.write_returns)

    def on_write_failed(self, error: Exception) -> None:
        """Remove the staging table. The target table contains no rows of the dataset; but with
        ``commit="part"`` it contains the rows of the tasks that succeeded."""
        self._writer.abort()


def _read(database: str, part: PartSpec, schema: pa.Schema, max_rows: int | None) -> Generator[pa.Table, None, None]:
    with contextlib.closing(_reading.batches(database, part, schema, fixed_order=True)) as batches:
        yield from _reading.equal_blocks(batches, max_rows)


def _batches(blocks: Iterable[Any]) -> Iterator[pa.RecordBatch]:
    for block in blocks:
        table = BlockAccessor.for_block(block).to_arrow()
        if table.num_columns:
            yield from table.to_batches()
