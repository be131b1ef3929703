"""Arrays in PostgreSQL's text format: ``{a,"b c",NULL,{…}}``.

Source: PostgreSQL's documentation, "Array Input and Output Syntax".
"""

from __future__ import annotations

import datetime
import re
import uuid
from collections.abc import Callable
from decimal import Decimal
from typing import Any

_TOKEN = re.compile(r'[{},]|"(?:[^"\\]|\\.)*"|[^{},"]+', re.S)


def _iso(text: str) -> str:
    """Convert PostgreSQL's text of a time to the form that all supported CPython versions parse:
    with six fractional digits, and minutes in the offset."""
    text = re.sub(r"\.(\d+)", lambda found: f".{found[1]:0<6}", text)
    return re.sub(r"([+-]\d\d)$", r"\1:00", text)


def moment(text: str) -> datetime.datetime:
    """Parse a timestamp, with its UTC offset if it has one."""
    date, _, time = text.partition(" ")
    return datetime.datetime.fromisoformat(f"{date} {_iso(time)}")


def time_of_day(text: str) -> datetime.time:
    """Parse a time of day, with its UTC offset if it has one."""
    return datetime.time.fromisoformat(_iso(text))


_READERS: dict[type, Callable[[str], Any]] = {
    int: int,
    float: float,
    Decimal: Decimal,
    bool: lambda text: text in ("t", "true", "1"),
    uuid.UUID: uuid.UUID,
    datetime.date: datetime.date.fromisoformat,
    datetime.time: time_of_day,
    datetime.datetime: moment,
}


def reader(of: Any) -> Callable[[str], Any]:
    """Return a function that parses the items of an array whose item type is the SQLAlchemy type
    ``of``. Items that are text are returned unchanged."""
    try:
        return _READERS.get(of.python_type, str)
    except NotImplementedError:
        return str


def read(text: str, item: Callable[[str], Any]) -> list[Any]:
    """Parse the text form of a PostgreSQL array into a list. `item` parses each element."""
    if "{" not in text:  # int2vector and oidvector of the catalog.
        return [item(word) for word in text.split()]
    lists: list[list[Any]] = [[]]
    # Bounds before an array (`[0:1]={…}`) state its first index. They are skipped, because a list
    # starts at 0.
    for token in _TOKEN.findall(text[text.index("{") :]):
        if token == "{":
            lists.append([])
        elif token == "}":
            done = lists.pop()
            lists[-1].append(done)
        elif token.startswith('"'):
            lists[-1].append(item(re.sub(r"\\(.)", r"\1", token[1:-1], flags=re.S)))
        elif token != ",":
            lists[-1].append(None if token.upper() == "NULL" else item(token))
    found: list[Any] = lists[0][0]
    return found


def converted(value: Any, convert: Callable[[Any], Any], dimensions: int | None) -> Any:
    """Return an array whose items are replaced by the results of ``convert``. NULL remains
    ``None``. If ``dimensions`` is ``None``, each list inside the array is treated as a dimension,
    not as an item."""
    if value is None:
        return None
    if isinstance(value, (list, tuple)) and dimensions != 0:
        inner = None if dimensions is None else dimensions - 1
        return [converted(item, convert, inner) for item in value]
    return convert(value)


def written(value: Any) -> str:
    """Return an array in PostgreSQL's text format."""
    if value is None:
        return "NULL"
    if isinstance(value, (list, tuple)):
        return "{" + ",".join(map(written, value)) + "}"
    if isinstance(value, (bytes, bytearray, memoryview)):
        return f'"\\\\x{bytes(value).hex()}"'
    text = str(value).replace("\\", "\\\\").replace('"', '\\"')
    return f'"{text}"'
