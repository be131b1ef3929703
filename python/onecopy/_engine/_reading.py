"""Reads one part of a query as Arrow batches, on a separate connection."""

from __future__ import annotations

import contextlib
from collections.abc import Generator, Iterable
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from onecopy._core import Connection
from onecopy._engine import _database
from onecopy.errors import DatabaseError
from onecopy.parts import PartSpec

__all__ = ["batches", "equal_blocks"]

#: A block ends when its values have this many bytes.
BLOCK_BYTES = 16 << 20
#: The number of rows after which the size of a block is measured again.
GROUP_ROWS = 1024
#: PostgreSQL may begin a sequential scan in the middle of a table, or distribute it over
#: processes. These statements prevent both, so that the order of the rows is the same each time.
_FIXED_ORDER = ("set synchronize_seqscans = off", "set max_parallel_workers_per_gather = 0")


def batches(
    database: str, part: PartSpec, schema: Any, *, batch_bytes: int | None = None, fixed_order: bool = False
) -> Generator[Any, None, None]:
    """Yield the rows of a part as `pyarrow.RecordBatch` objects with the given schema.

    Each value is copied once, from the database into its batch. The connection is closed after the
    last batch, or when the iterator is closed. If the database or the conversion fails, the error
    is raised, and the batches that were yielded before do not contain all rows. With
    ``fixed_order`` the rows have the same order each time, as long as the tables do not change.
    """
    with contextlib.closing(_database.connect(database)) as connection:
        if fixed_order:
            _fix_order(connection)
        # The schemas are compared as text, because `Schema.equals` ignores the names of fields in
        # lists.
        names = str(schema)
        stream = part.execute(connection).arrow(
            batch_bytes=batch_bytes, types={field.name: field.type for field in schema}
        )
        with stream:
            try:
                for batch in pa.RecordBatchReader.from_stream(stream):
                    yield batch if str(batch.schema) == names else batch.cast(schema)
            except (pa.ArrowException, OSError) as error:
                if stream.error is None:
                    raise
                raise stream.error from error


def equal_blocks(batches: Iterable[Any], max_rows: int | None = None) -> Generator[Any, None, None]:
    """Regroup the rows of the batches into `pyarrow.Table` objects whose boundaries depend only on
    the rows. No value is copied.

    An engine that repeats a task may have used the first blocks of the previous attempt already, so
    the blocks of both attempts must be equal. The boundaries of the batches themselves depend on
    the network. With ``max_rows``, at most this number of rows is read.
    """
    slices: list[Any] = []
    rows = n_bytes = 0
    for batch in batches:
        if max_rows is not None and rows + batch.num_rows > max_rows:
            batch = batch.slice(0, max_rows - rows)
        start = measured = 0
        while measured < batch.num_rows:
            group = batch.slice(measured, min(GROUP_ROWS - rows % GROUP_ROWS, batch.num_rows - measured))
            n_bytes += _value_bytes(group)
            rows += group.num_rows
            measured += group.num_rows
            if rows % GROUP_ROWS == 0 and n_bytes >= BLOCK_BYTES:
                yield pa.Table.from_batches([*slices, batch.slice(start, measured - start)])
                slices, start, n_bytes = [], measured, 0
        if start < batch.num_rows:
            slices.append(batch.slice(start))
        if rows == max_rows:
            break
    if slices:
        yield pa.Table.from_batches(slices)


def _fix_order(connection: Connection) -> None:
    if connection.dialect == "postgresql":
        # Other servers with PostgreSQL's protocol have neither these settings nor such scans.
        with contextlib.suppress(DatabaseError):
            for statement in _FIXED_ORDER:
                connection.execute(statement)
            connection.commit()
        connection.rollback()


def _value_bytes(batch: Any) -> int:
    """Return the number of bytes that the values of a batch occupy, independent of the buffers in
    which they are stored."""
    total = 0
    for column in batch.columns:
        if pa.types.is_string(column.type) or pa.types.is_binary(column.type):
            total += pc.sum(pc.binary_length(column)).as_py() or 0
        else:
            total += 8 * len(column)
    return total
