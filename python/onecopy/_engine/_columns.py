"""Determines the Arrow types of a query's columns before its rows are read."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

import pyarrow as pa

from onecopy._core import Connection
from onecopy.errors import DatabaseError
from onecopy.parts import PartSpec

__all__ = ["for_any_engine", "for_spark", "schema"]

#: The type of a `numeric` without precision, whose digits are known only when values are read.
_ANY_DECIMAL = pa.decimal128(38, 18)


def for_any_engine(kind: Any) -> Any:
    """Return the type unchanged, except for Arrow's null type, for which the string type is
    returned."""
    return pa.string() if pa.types.is_null(kind) else kind


def for_spark(kind: Any) -> Any:
    """Return the Arrow type with which Spark can represent all values of the given Arrow type; the
    string type if there is no such type."""
    types = pa.types
    if types.is_timestamp(kind):
        return pa.timestamp("us", "UTC" if kind.tz else None)
    if types.is_decimal(kind):
        return pa.decimal128(kind.precision, kind.scale) if kind.precision <= 38 else pa.string()
    if types.is_list(kind):
        return pa.list_(pa.field("element", for_spark(kind.value_type), kind.value_field.nullable))
    if types.is_unsigned_integer(kind):
        return {8: pa.int16(), 16: pa.int32(), 32: pa.int64()}.get(kind.bit_width, pa.decimal128(20, 0))
    if types.is_boolean(kind) or types.is_integer(kind) or types.is_floating(kind) or types.is_date32(kind):
        return kind
    is_binary = types.is_binary(kind) or types.is_large_binary(kind) or types.is_fixed_size_binary(kind)
    return pa.binary() if is_binary else pa.string()


def schema(
    connection: Connection,
    part: PartSpec,
    types: Mapping[str, str] | None = None,
    engine_type: Callable[[Any], Any] = for_any_engine,
) -> Any:
    """Return the `pyarrow.Schema` of a part's result. No rows are read, except the first row of a
    result of SQLite.

    ``types`` are the types that the caller requests for some columns, as `Cursor.arrow` accepts
    them. In SQLite a column can have no declared type; the type of its value in the first row is
    then used.
    """
    cursor = _without_rows(connection, part)
    try:
        found = pa.schema(cursor.arrow(types=dict(types) if types else None))
        precisions = [column[4] for column in cursor.description or ()]
    finally:
        cursor.close()
        connection.rollback()
    fields = []
    for field, precision in zip(found, precisions, strict=True):
        kind = field.type
        if precision is None and pa.types.is_decimal(kind) and field.name not in (types or {}):
            kind = _ANY_DECIMAL
        fields.append(pa.field(field.name, engine_type(kind)))
    return pa.schema(fields)


def _without_rows(connection: Connection, part: PartSpec) -> Any:
    if connection.dialect != "sqlite":
        empty = dataclasses.replace(part, sql=f"select * from (\n{part.sql}\n) onecopy_columns where 1 = 0")
        try:
            return empty.execute(connection)
        except DatabaseError:
            # The query failed: SQL Server does not permit `order by` in a derived table, nor equal
            # column names.
            connection.rollback()
    return part.execute(connection)
