"""A data source and sink for Spark, Sail and Databricks. It reads a query in parts, as Arrow data.

>>> from onecopy.spark import OnecopyDataSource
>>> spark.dataSource.register(OnecopyDataSource)  # doctest: +SKIP
>>> orders = (  # doctest: +SKIP
...     spark.read.format("onecopy")
...     .options(database="env:SHOP_DATABASE", dbtable="orders", parts=16)
...     .load()
... )

This module requires PySpark 4 (`pyspark` or `pyspark-client`) and pyarrow on the driver and the
workers.
"""

from __future__ import annotations

import contextlib
import inspect
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

try:
    from pyspark.sql.datasource import (
        DataSource,
        DataSourceArrowWriter,
        DataSourceReader,
        InputPartition,
        WriterCommitMessage,
    )
except ImportError as error:
    raise ImportError("onecopy.spark needs PySpark 4\npip install pyspark-client, or pyspark") from error

from onecopy._engine import _columns, _database, _reading
from onecopy._engine._filters import condition
from onecopy._engine._writing import Attempt, TableWriter
from onecopy.errors import ProgrammingError
from onecopy.parts import PartSpec, Plan, plan

__all__ = ["OnecopyDataSource"]

_READ = ("database", "dbtable", "query", "plan", "parts", "key", "sample_rows", "types", "batch_bytes")
_WRITE = ("database", "dbtable", "commit", "job")


class OnecopyDataSource(DataSource):  # type: ignore[misc]  # PySpark is not installed for type checks.
    """The data source ``format("onecopy")``, which reads a query in parts, and writes to a table.

    Options for both: ``database`` is ``env:NAME`` or ``@/path/to/file``, which the driver and each
    worker read on their own machine, or a connection string without a password.

    Options for reading: ``dbtable``, ``query`` (with ``{part}`` if it has joins), or ``plan``, a plan
    as JSON or ``@/path/to/plan.json``; ``parts`` (default 1); ``key``, the columns to divide by,
    separated by commas; ``sample_rows``; ``types``, a JSON object with Arrow types of columns, such
    as ``{"price": "string"}``; ``batch_bytes``, the size of a batch.

    Options for writing: ``dbtable``, an existing table; ``commit``, either ``job`` (the default) or
    ``part``; ``job``, a name by which a repeated job is recognized.

    Raises `ProgrammingError` if an option is missing or unknown, or if the connection string
    contains a password.
    """

    @classmethod
    def name(cls) -> str:
        """Return the name of the format, for ``spark.read.format``."""
        return "onecopy"

    def schema(self) -> Any:
        """Return the columns of the query, from the database's description of its result."""
        columns = _Query.of(self.options).schema()
        if "pysail" in sys.modules:
            # Sail does not convert a `StructType` with timestamps, nor DDL with arrays.
            return columns
        from pyspark.sql.pandas.types import from_arrow_schema

        return from_arrow_schema(columns)

    def reader(self, schema: Any) -> DataSourceReader:
        """Return the reader of the query."""
        return _Reader(_Query.of(self.options), _arrow_schema(schema))

    def writer(self, schema: Any, overwrite: bool) -> DataSourceArrowWriter:
        """Return the writer for the table. With ``overwrite``, the previous rows of the table are
        deleted when the job commits."""
        _refuse_unknown(self.options, _WRITE)
        return _Writer(
            TableWriter(
                database=_required(self.options, "database"),
                table=_required(self.options, "dbtable"),
                job=self.options.get("job") or TableWriter.new_job(),
                commit_by=self.options.get("commit") or "job",
                overwrite=overwrite,
            )
        )


@dataclass(frozen=True)
class _Query:
    """The validated options of a read."""

    database: str
    sql: str
    planned: Plan | None
    n_parts: int
    key: tuple[str, ...]
    sample_rows: int | None
    types: tuple[tuple[str, str], ...]
    batch_bytes: int | None
    is_table: bool

    @classmethod
    def of(cls, options: Mapping[str, str]) -> _Query:
        _refuse_unknown(options, _READ)
        database = _required(options, "database")
        _database.check(database)
        given = [name for name in ("dbtable", "query", "plan") if options.get(name)]
        if len(given) != 1:
            raise ProgrammingError("exactly one of the options `dbtable`, `query` and `plan` is needed")
        text = options[given[0]]
        if given == ["plan"] and text.startswith("@"):
            text = Path(text[1:]).read_text(encoding="utf-8")
        return cls(
            database=database,
            sql=f"select * from {text}" if given == ["dbtable"] else text,
            planned=Plan.from_json(text) if given == ["plan"] else None,
            n_parts=_number(options, "parts") or 1,
            key=tuple(name.strip() for name in options.get("key", "").split(",") if name.strip()),
            sample_rows=_number(options, "sample_rows"),
            types=tuple(json.loads(options.get("types") or "{}").items()),
            batch_bytes=_number(options, "batch_bytes"),
            is_table=given == ["dbtable"],
        )

    def schema(self) -> pa.Schema:
        """Return the columns of the query, with types that Spark supports."""
        with contextlib.closing(_database.connect(self.database)) as connection:
            first = (self.planned or plan(connection, self.sql, parts=1, key=self.key)).parts[0]
            return _columns.schema(connection, first, dict(self.types), _columns.for_spark)

    def parts(self, conditions: Sequence[str], values: Sequence[Any]) -> tuple[PartSpec, ...]:
        """Return the parts of the query, limited to rows for which all conditions are true."""
        if self.planned is not None:
            return self.planned.parts
        sql = self.sql
        if conditions:
            table = "" if self.is_table else "select * from "
            source = sql if self.is_table else f"(\n{sql}\n) onecopy_query"
            sql = f"{table}{source} where {' and '.join(f'({text})' for text in conditions)}"
        with contextlib.closing(_database.connect(self.database)) as connection:
            return plan(connection, sql, values, parts=self.n_parts, key=self.key, sample_rows=self.sample_rows).parts

    def dialect(self) -> str:
        with contextlib.closing(_database.connect(self.database)) as connection:
            return connection.dialect

    @property
    def accepts_filters(self) -> bool:
        """True if filters can be added to the query as conditions. If the source is a query, the
        conditions turn it into a derived table, which requires the option `key`."""
        return self.planned is None and (self.is_table or bool(self.key))


class _Part(InputPartition):  # type: ignore[misc]
    """A partition of Spark, which reads one part of the query."""

    def __init__(self, part: PartSpec) -> None:
        super().__init__(part)


class _Reader(DataSourceReader):  # type: ignore[misc]
    def __init__(self, query: _Query, schema: pa.Schema) -> None:
        self._query = query
        self._schema = schema
        self._conditions: list[str] = []
        self._values: list[Any] = []

    def pushFilters(self, filters: list[Any]) -> Iterator[Any]:
        if not self._query.accepts_filters or not filters:
            yield from filters
            return
        dialect = self._query.dialect()
        types = {field.name: field.type for field in self._schema}
        for filter in filters:
            bound = condition(filter, types, dialect)
            if bound is not None:
                self._conditions.append(bound[0])
                self._values += bound[1]
            if bound is None or not bound[2]:
                yield filter

    def partitions(self) -> list[InputPartition]:
        return [_Part(part) for part in self._query.parts(self._conditions, self._values)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return _reading.batches(
            self._query.database, partition.value, self._schema, batch_bytes=self._query.batch_bytes
        )


@dataclass
class _Message(WriterCommitMessage):  # type: ignore[misc]
    attempt: Attempt


class _Writer(DataSourceArrowWriter):  # type: ignore[misc]
    def __init__(self, writer: TableWriter) -> None:
        self._writer = writer

    def write(self, iterator: Iterator[pa.RecordBatch]) -> _Message:
        from pyspark import TaskContext

        # Sail has no task context.
        context = TaskContext.get()
        return _Message(self._writer.write(iterator, None if context is None else context.partitionId()))

    def commit(self, messages: list[_Message | None]) -> None:
        self._writer.commit([message.attempt for message in messages if message is not None])

    def abort(self, messages: list[_Message | None]) -> None:
        self._writer.abort()


def _arrow_schema(schema: Any) -> pa.Schema:
    """Convert Spark's schema to a schema of pyarrow. Sail already passes a schema of pyarrow, which
    is returned unchanged."""
    if isinstance(schema, pa.Schema):
        return schema
    from pyspark.sql.pandas.types import to_arrow_schema

    # `to_arrow_schema` of Spark 4.0 does not have the parameter `timezone`, and uses UTC.
    has_zone = "timezone" in inspect.signature(to_arrow_schema).parameters
    return to_arrow_schema(schema, **({"timezone": "UTC"} if has_zone else {}))


def _required(options: Mapping[str, str], name: str) -> str:
    value = options.get(name)
    if not value:
        raise ProgrammingError(f"the option `{name}` is missing")
    return value


def _number(options: Mapping[str, str], name: str) -> int | None:
    text = options.get(name)
    if not text:
        return None
    if not text.isdecimal() or int(text) == 0:
        raise ProgrammingError(f"the option `{name}` must be a positive integer, not `{text}`")
    return int(text)


def _refuse_unknown(options: Mapping[str, str], known: Sequence[str]) -> None:
    unknown = [name for name in options if name.lower() not in known]
    if unknown:
        raise ProgrammingError(f"unknown option: `{unknown[0]}`\nthe options are {', '.join(known)}")
