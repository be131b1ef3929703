"""The expected text of a value in JSON and CSV."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from datetime import date, time
from decimal import Decimal
from typing import Any


def plain_text(value: Any) -> str:
    """The text of a value in JSON and CSV, for all types except floats and times."""
    match value:
        case bool():
            return "true" if value else "false"
        case Decimal():
            return format(value, "f")
        case bytes():
            return base64.b64encode(value).decode()
    return str(value)


def is_text_of(text: Any, value: Any) -> bool:
    """Returns true if `text`, a JSON value or a CSV field, is the expected text of `value`."""
    if isinstance(value, str) and text != value:
        # A JSON value that is not text: the same value as that of the expected text.
        try:
            return bool(text == json.loads(value, parse_int=str, parse_float=str))
        except ValueError:
            return False
    match value:
        case None:
            return not text
        case float():
            return text is not None and repr(float(text)) == repr(value)
        case date() | time():
            return text is not None and bool(type(value).fromisoformat(text) == value)
    return bool(text == plain_text(value))


def json_cells(data: bytes) -> Iterator[list[str | None]]:
    """The rows of a JSON array, each as a list of texts, one for each value; null is `None`."""
    for row in json.loads(data, parse_int=str, parse_float=str):
        yield [plain_text(value) if isinstance(value, bool) else value for value in row.values()]
