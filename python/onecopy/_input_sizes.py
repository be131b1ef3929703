"""Converts the arguments of `Cursor.setinputsizes` (types and sizes) for the extension module.

>>> declared([None, onecopy.NUMBER, "decimal", (str, 50), 20, ("decimal", 10, 2)])
[None, ('number', 0, 0), ('decimal', 0, 0), ('text', 50, 0), ('sized', 20, 0), ('decimal', 10, 2)]
"""

from __future__ import annotations

import datetime
import decimal
import uuid
from collections.abc import Iterable
from typing import Any

from onecopy.dbapi import BINARY, DATETIME, NUMBER, STRING, DBAPIType

__all__ = ["declared"]

_OBJECTS = {STRING: "text", BINARY: "binary", NUMBER: "number", DATETIME: "moment"}
_CLASSES: dict[type, str] = {
    bool: "bool", int: "integer", float: "double", decimal.Decimal: "decimal",
    str: "text", bytes: "binary", bytearray: "binary", uuid.UUID: "uuid",
    datetime.datetime: "timestamp", datetime.date: "date", datetime.time: "time",
}  # fmt: skip
#: The type codes of `Cursor.description`.
_CODES = {
    "bool": "bool", "integer": "integer", "real": "double", "double": "double",
    "decimal": "decimal", "text": "text", "binary": "binary", "uuid": "uuid",
    "date": "date", "time": "time", "timestamp": "timestamp", "timestamptz": "timestamp",
}  # fmt: skip


def _kind(kind: Any) -> str:
    if isinstance(kind, DBAPIType) and kind in _OBJECTS:
        return _OBJECTS[kind]
    if isinstance(kind, str) and kind in _CODES:
        return _CODES[kind]
    if isinstance(kind, type) and kind in _CLASSES:
        return _CLASSES[kind]
    raise TypeError(
        f"`{kind!r}` is not a type of a parameter\n"
        'use a type object (`onecopy.NUMBER`), a type code (`"decimal"`), a class, or a size'
    )


def _one(item: Any) -> tuple[str, int, int] | None:
    if item is None:
        return None
    if isinstance(item, tuple):
        kind, size, digits, *rest = (*item, 0, 0)
        if len(rest) > 2 or not isinstance(size, int) or not isinstance(digits, int) or size < 0 or digits < 0:
            raise TypeError(f"`{item!r}` is not a tuple of type, size and digits")
        return _kind(kind), size, min(digits, 38)
    if isinstance(item, int) and not isinstance(item, bool):
        if item < 0:
            raise ValueError("a size must be at least 0")
        return "sized", item, 0
    return _kind(item), 0, 0


def declared(sizes: Iterable[Any]) -> list[tuple[str, int, int] | None]:
    """Return the kind, size and digits of each parameter; ``None`` for a parameter without a type.

    Raises:
        TypeError: an item is neither a type nor a size.
    """
    return [_one(item) for item in sizes]
