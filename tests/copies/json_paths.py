"""Runs one JSON call in a process with the copy counter preloaded; prints the counts of
`onecopy.ledger` and of the copy counter.

LD_PRELOAD=copy_counter.so COPY_COUNTER_MODULE=_core python -m tests.copies.json_paths PATH KIND
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable
from typing import Any

from onecopy import json
from tests.copies.counting import N_ROWS, cell
from tests.copies.paths import counted


def _to_file(texts: list[str]) -> object:
    with tempfile.TemporaryFile() as file:
        return json.dump(texts, file)


#: A buffer for results, reused as a program would.
_PLACE = bytearray(40 << 20)

#: From `str` to JSON.
ENCODING: dict[str, Callable[[list[str]], object]] = {
    "dumps": json.dumps,
    "dumps_into": lambda texts: json.dumps_into(texts, _PLACE),
    "dumps_lines": json.dumps_lines,
    "dumps_rows": lambda texts: json.dumps_rows(["x"], [(text,) for text in texts]),
    "dump to a file": _to_file,
    "iter_chunks": lambda texts: sum(map(len, json.iter_chunks(texts))),
}
#: From JSON to `str`.
DECODING: dict[str, Callable[[Any], object]] = {
    "loads": json.loads,
    "loads_lines": lambda data: list(json.loads_lines(data)),
}


def strings(kind: str) -> list[str]:
    """A list of the long texts of a kind, as in the tables of the other tests."""
    return [cell(kind, k) for k in range(N_ROWS)]


def main() -> None:
    """Runs the command line, whose arguments are PATH (the call) and KIND (the kind of text)."""
    path, kind = sys.argv[1:]
    texts = strings(kind)
    if path in ENCODING:
        counted(lambda: ENCODING[path](texts))
    else:
        data = json.dumps_lines(texts) if path == "loads_lines" else json.dumps(texts)
        counted(lambda: DECODING[path](data))


if __name__ == "__main__":
    main()
