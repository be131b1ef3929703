"""Encodes the rows that a database driver returns as JSON and CSV. It uses the code that an
application would use with this driver."""

from __future__ import annotations

import base64
import csv
import datetime
import io
import json
from collections.abc import Callable, Iterable, Sequence
from decimal import Decimal
from typing import Any

from onecopy._bench.engines.job import module
from onecopy._bench.sink import Sink

__all__ = ["ENCODERS", "write_csv", "write_json", "write_ndjson"]

Dumps = Callable[[Any], bytes]


def _other(value: object) -> Any:
    """Convert a value for which JSON has no type to a value that JSON can represent."""
    if isinstance(value, Decimal):
        return float(value)
    if isinstance(value, datetime.date | datetime.time):
        return value.isoformat()
    if isinstance(value, bytes | memoryview):
        return base64.b64encode(value).decode()
    return str(value)


def _json() -> Dumps:
    encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), default=_other).encode
    return lambda value: encode(value).encode()


def _orjson() -> Dumps:
    dumps = module("orjson").dumps
    return lambda value: dumps(value, default=_other)


#: Functions that return a function that encodes one value.
ENCODERS: dict[str, Callable[[], Dumps]] = {"json": _json, "orjson": _orjson}


def write_json(dumps: Dumps, names: Sequence[str], rows: Iterable[Sequence[Any]], sink: Sink) -> None:
    """Write the rows as one JSON array of objects."""
    sink.write(dumps([dict(zip(names, row)) for row in rows]))  # noqa: B905 - as users write it


def write_ndjson(dumps: Dumps, names: Sequence[str], rows: Iterable[Sequence[Any]], sink: Sink) -> None:
    """Write the rows as one JSON object per line, through a buffer."""
    out = io.BufferedWriter(sink, 1 << 16)
    for row in rows:
        out.write(dumps(dict(zip(names, row))) + b"\n")  # noqa: B905 - as users write it
    # Without this, the sink would be closed with the buffer.
    out.detach()


def write_csv(names: Sequence[str], rows: Iterable[Sequence[Any]], sink: Sink) -> None:
    """Write a header line and the rows as CSV."""
    out = io.TextIOWrapper(io.BufferedWriter(sink, 1 << 16), "utf-8", newline="")
    writer = csv.writer(out)
    writer.writerow(names)
    writer.writerows(rows)
    # Without this, the sink would be closed with the buffers.
    out.detach().detach()
