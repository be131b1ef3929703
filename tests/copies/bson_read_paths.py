"""Decodes BSON in a process with the copy counter preloaded; prints the counts of `onecopy.ledger`
and of the copy counter.

LD_PRELOAD=copy_counter.so COPY_COUNTER_MODULE=_core python -m tests.copies.bson_read_paths PATH
KIND
"""

from __future__ import annotations

import sys
from collections.abc import Callable

import bson as pymongo

from onecopy import bson
from tests.copies.counting import N_ROWS, cell
from tests.copies.paths import counted

#: From BSON to `str`.
DECODING: dict[str, Callable[[bytes], object]] = {
    "decode": bson.decode,
    "decode_all": bson.decode_all,
    "decode_iter": lambda data: list(bson.decode_iter(data)),
    "a field of a raw document": lambda data: bson.RawDocument(data)["x"],
}


def main() -> None:
    """Runs the command line, whose arguments are PATH (the call) and KIND (the kind of text)."""
    path, kind = sys.argv[1:]
    texts = [cell(kind, k) for k in range(N_ROWS)]
    if path in ("decode", "a field of a raw document"):
        data = pymongo.encode({"x": texts})
    else:
        data = b"".join(pymongo.encode({"x": text}) for text in texts)
    counted(lambda: DECODING[path](data))


if __name__ == "__main__":
    main()
