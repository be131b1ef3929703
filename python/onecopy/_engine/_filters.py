"""Converts Spark's filters to SQL conditions with bound values."""

from __future__ import annotations

import datetime
import decimal
import math
from collections.abc import Mapping
from typing import Any

import pyarrow as pa
from pyspark.sql import datasource

from onecopy._engine._writing import quoted

__all__ = ["condition"]

_COMPARISONS = {
    "EqualTo": "=",
    "EqualNullSafe": "=",
    "GreaterThan": ">",
    "GreaterThanOrEqual": ">=",
    "LessThan": "<",
    "LessThanOrEqual": "<=",
}


def condition(filter: Any, types: Mapping[str, Any], dialect: str) -> tuple[str, list[Any], bool] | None:
    """Convert a filter to an SQL condition. Return the condition, its values, and a flag; return
    `None` if the database cannot evaluate the filter. The flag is true if the condition accepts
    exactly the rows that Spark's filter accepts.

    ``types`` has the Arrow type of each column. A database may regard texts as equal that differ in
    case, accents or trailing spaces. The condition then accepts more rows than Spark's filter, the
    flag is false, and Spark has to evaluate the filter again. A database may also order texts
    differently than Spark. Therefore a filter that orders texts is not converted.
    """
    if isinstance(filter, datasource.Not):
        inner = condition(filter.child, types, dialect)
        if inner is None or not inner[2] or isinstance(filter.child, datasource.EqualNullSafe):
            return None
        return f"not ({inner[0]})", inner[1], True
    attribute: tuple[str, ...] = getattr(filter, "attribute", ())
    if len(attribute) != 1 or attribute[0] not in types:
        return None
    kind, name = types[attribute[0]], quoted(attribute[0], dialect)
    if isinstance(filter, datasource.IsNull):
        return f"{name} is null", [], True
    if isinstance(filter, datasource.IsNotNull):
        return f"{name} is not null", [], True
    is_exact = _is_exact(kind)
    if isinstance(filter, datasource.In):
        values = list(filter.value)
        if not values or not all(_can_bind(value, kind) for value in values):
            return None
        return f"{name} in ({', '.join('?' * len(values))})", values, is_exact
    operator = _COMPARISONS.get(type(filter).__name__)
    if operator is None:
        return None
    if isinstance(filter, datasource.EqualNullSafe) and filter.value is None:
        return f"{name} is null", [], True
    if not _can_bind(filter.value, kind) or (operator != "=" and not is_exact):
        return None
    return f"{name} {operator} ?", [filter.value], is_exact


def _is_exact(kind: Any) -> bool:
    """Return true if the database compares values of this type as Spark does."""
    types = pa.types
    is_number = types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind)
    return bool(is_number or types.is_boolean(kind) or types.is_date(kind) or types.is_timestamp(kind))


def _can_bind(value: Any, kind: Any) -> bool:
    """Return true if the database can compare a literal of this Python type with a column of this
    type.

    Sail passes timestamps as integers, which a database would interpret differently.
    """
    types = pa.types
    if types.is_timestamp(kind):
        return isinstance(value, datetime.datetime) and (value.tzinfo is None) is (kind.tz is None)
    if types.is_boolean(kind):
        return isinstance(value, bool)
    if types.is_integer(kind):
        return type(value) is int
    if types.is_floating(kind):
        return isinstance(value, int | float) and not isinstance(value, bool) and not math.isnan(value)
    if types.is_decimal(kind):
        return type(value) in (int, decimal.Decimal)
    for of_kind, python_type in ((types.is_date, datetime.date), (types.is_string, str), (types.is_binary, bytes)):
        if of_kind(kind):
            return type(value) is python_type
    return False
