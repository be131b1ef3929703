"""Digests of results, for comparing the values that two engines return.

The digest of a column is the sum of the hashes of its values. It does not depend on the order of
the rows, because without `order by` a database may return them in any order. Python hashes equal
numbers equally, whatever their types. All worker processes use the same seed for the hashes of
strings.
"""

from __future__ import annotations

import csv
import datetime
import importlib
import io
import json
import re
from collections.abc import Callable, Iterable, Sequence
from decimal import Decimal
from typing import Any, NamedTuple

__all__ = ["Column", "Result", "common_form", "result_of"]

_MASK = (1 << 64) - 1
#: The number that is added to a digest for each NULL.
_NULL = 0x9E3779B97F4A7C15
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
_DATE = re.compile(r"(\d{4}-\d\d-\d\d)[T ]?(.*)", re.DOTALL)
_TIME = re.compile(r"(\d\d:\d\d)(?::(\d\d)(?:\.(\d+))?)?(Z|[+-]\d\d(?::?\d\d)?)?")


class Column(NamedTuple):
    """The name of a column, the types of its values, and their digest. ``digest`` is None if a
    value cannot be hashed."""

    name: str
    types: list[str]
    digest: int | None


class Result(NamedTuple):
    """The columns of a result with their values; ``names`` is empty if the result has no names."""

    n_rows: int
    names: list[str]
    columns: list[Sequence[Any]]

    def digests(self) -> list[Column]:
        """Return the digest of each column of the result."""
        return [Column(name, _types(values), _digest(values)) for name, values in self._named()]

    def common_digest(self, index: int) -> int:
        """Return the digest of a column after its values were converted by `common_form`."""
        digest = _digest([common_form(value) for value in self.columns[index]])
        assert digest is not None, "a value in the common form can be hashed"
        return digest

    def _named(self) -> Iterable[tuple[str, Sequence[Any]]]:
        for k, values in enumerate(self.columns):
            yield self.names[k] if k < len(self.names) else f"column {k}", values


def _types(values: Sequence[Any]) -> list[str]:
    return sorted(kind.__name__ for kind in set(map(type, values)) - {type(None)})


def _digest(values: Sequence[Any]) -> int | None:
    # Before Python 3.12 the hash of None differs between processes.
    present = [value for value in values if value is not None]
    try:
        return (sum(map(hash, present)) + (len(values) - len(present)) * _NULL) & _MASK
    except TypeError:
        return None


def common_form(value: Any) -> Any:
    """Return a value in a form that does not depend on its type. Numbers, and texts that contain
    only a number, become an `int` or a `float`; binary values become `bytes`; all other values
    become text."""
    if value is None or isinstance(value, int):
        return value
    if isinstance(value, float | Decimal):
        if isinstance(value, Decimal):
            # The hash of a long decimal differs from that of the nearest float.
            value = int(value) if value.is_finite() and value == value.to_integral_value() else float(value)
        return "nan" if value != value else value
    if isinstance(value, bytes | bytearray | memoryview):
        return bytes(value)
    if isinstance(value, datetime.datetime | datetime.date | datetime.time):
        return _common_text(value.isoformat())
    if isinstance(value, dict | list | tuple):
        return json.dumps(value, sort_keys=True, default=str)
    return _common_text(value if isinstance(value, str) else str(value))


def _common_text(text: str) -> Any:
    if not text or len(text) > 1000:
        return text or None
    if _NUMBER.fullmatch(text):
        return common_form(Decimal(text))
    if text in ("true", "false", "True", "False", "t", "f"):
        return text.lower().startswith("t")
    if date := _DATE.fullmatch(text):
        day, rest = date.groups()
        time = _common_time(rest) if rest else "00:00:00"
        return text if time is None else f"{day}T{time}"
    if time := _common_time(text):
        return time
    if text[0] in "[{":
        try:
            return json.dumps(json.loads(text), sort_keys=True)
        except ValueError:
            return text
    return text


def _common_time(text: str) -> str | None:
    """Return the text of a time in a common form: with seconds, without trailing zeros in the
    fraction, and with the UTC offset if there is one. Return None if the text is not a time."""
    match = _TIME.fullmatch(text)
    if match is None:
        return None
    minutes, seconds, fraction, offset = match.groups()
    fraction = (fraction or "").rstrip("0")
    offset = "" if offset is None else offset.replace("Z", "+00:00")
    if len(offset) == 3:
        offset += ":00"
    return f"{minutes}:{seconds or '00'}{'.' if fraction else ''}{fraction}{offset}"


def result_of(way: str, made: Any, written: Callable[[], bytes]) -> Result:
    """Return the columns of an engine's result. ``made`` is the object that the engine has
    returned, and calling ``written`` returns the bytes that it has written."""
    if way == "iterate":
        return Result(made, [], [])
    if way == "rows":
        names, rows = made
        return Result(len(rows), names, list(zip(*rows, strict=True)))
    if way == "arrow":
        return _of_columns(made)
    data = written()
    if way == "parquet":
        return _of_columns(importlib.import_module("pyarrow.parquet").read_table(io.BytesIO(data)))
    if way == "csv":
        # A field may be longer than the limit of the module.
        csv.field_size_limit(1 << 31)
        header, *lines = csv.reader(io.StringIO(data.decode(), newline=""))
        return Result(len(lines), header, list(zip(*lines, strict=True)))
    objects = json.loads(data) if way == "json" else [json.loads(line) for line in data.splitlines()]
    names = list(objects[0]) if objects else []
    columns: list[Sequence[Any]] = [[row.get(name) for row in objects] for name in names]
    return Result(len(objects), names, columns)


def _of_columns(table: Any) -> Result:
    if hasattr(table, "to_arrow"):
        table = table.to_arrow()
    if hasattr(table, "isna"):
        # pandas: NULL is NaN, NaT or None, according to the type of the column.
        present = table.notna()
        columns: list[Sequence[Any]] = [
            [value if there else None for value, there in zip(table[name].tolist(), present[name], strict=True)]
            for name in table.columns
        ]
        return Result(len(table), [str(name) for name in table.columns], columns)
    return Result(table.num_rows, table.column_names, [column.to_pylist() for column in table.columns])
