"""SQLAlchemy types for ranges and multiranges. Their values arrive as `onecopy.Range`, or, through
psqlodbc, in PostgreSQL's text format: ``[1,5)``, ``empty``, ``{[1,3),[5,)}``.

Source: PostgreSQL's documentation, "Range Types", input and output.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable
from decimal import Decimal
from typing import Any

from sqlalchemy.dialects.postgresql import ranges

import onecopy
from onecopy.sqlalchemy._arrays import moment

_BOUND = r'("(?:[^"\\]|\\.|"")*"|[^,)\]]*)'
_RANGE = re.compile(rf"([\[(]){_BOUND},{_BOUND}([\])])", re.S)
_ITEMS: dict[str, Callable[[str], Any]] = {
    "INT4": int,
    "INT8": int,
    "NUM": Decimal,
    "DATE": datetime.date.fromisoformat,
    "TS": moment,
    "TSTZ": moment,
}


def _item(of: Any) -> Callable[[str], Any]:
    name = re.sub("(MULTI)?RANGE$", "", str(of.__visit_name__).upper())
    return _ITEMS.get(name, str)


def _ranges(text: str, item: Callable[[str], Any]) -> list[ranges.Range[Any]]:
    def bound(written: str) -> Any:
        if written.startswith('"'):
            written = re.sub(r'\\(.)|""', lambda found: found[1] or '"', written[1:-1], flags=re.S)
        return item(written) if written else None

    made: list[ranges.Range[Any]] = []
    for opening, lower, upper, closing in _RANGE.findall(text):
        bounds: Any = opening + closing
        made.append(ranges.Range(bound(lower), bound(upper), bounds=bounds))
    return made


def _of_native(value: onecopy.Range) -> ranges.Range[Any]:
    if value.isempty:
        return ranges.Range(empty=True)
    bounds: Any = value.bounds
    return ranges.Range(value.lower, value.upper, bounds=bounds)


def _written(value: Any) -> Any:
    if isinstance(value, (list, tuple)):
        return "{" + ",".join(map(str, value)) + "}"
    return str(value) if isinstance(value, ranges.Range) else value


class _Texts:
    """Sends a range as text with a cast to its type."""

    render_bind_cast = True

    def bind_processor(self, dialect: Any) -> Any:
        return _written


class OneRange(_Texts, ranges.AbstractSingleRangeImpl):  # type: ignore[type-arg]
    """The SQLAlchemy type of a range column. It converts the values that are read
    (`onecopy.Range`, or text from psqlodbc) to SQLAlchemy's `Range`."""

    def result_processor(self, dialect: Any, coltype: object) -> Any:
        item = _item(self)

        def process(value: Any) -> Any:
            if isinstance(value, onecopy.Range):
                return _of_native(value)
            if not isinstance(value, str):
                return value
            return ranges.Range(empty=True) if value == "empty" else _ranges(value, item)[0]

        return process


class ManyRanges(_Texts, ranges.AbstractMultiRangeImpl):  # type: ignore[type-arg]
    """The SQLAlchemy type of a multirange: converts tuples of `onecopy.Range` or psqlodbc's text to
    SQLAlchemy's `MultiRange`."""

    def result_processor(self, dialect: Any, coltype: object) -> Any:
        item = _item(self)

        def process(value: Any) -> Any:
            if isinstance(value, tuple):
                return ranges.MultiRange(map(_of_native, value))
            return ranges.MultiRange(_ranges(value, item)) if isinstance(value, str) else value

        return process
