"""Encodes BSON in a process with the copy counter preloaded; prints the counts of `onecopy.ledger`
and of the copy counter.

LD_PRELOAD=copy_counter.so COPY_COUNTER_MODULE=_core python -m tests.copies.bson_paths PATH KIND
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable

from onecopy import bson
from tests.copies.json_paths import strings
from tests.copies.paths import counted


def _to_file(texts: list[str]) -> object:
    with tempfile.TemporaryFile() as file:
        return bson.dump_many(({"v": text} for text in texts), file)


#: A buffer for results, reused as a program would.
_PLACE = bytearray(40 << 20)

#: From `str` to BSON.
ENCODING: dict[str, Callable[[list[str]], object]] = {
    "encode": lambda texts: bson.encode({"v": texts}),
    "encode_into": lambda texts: bson.encode_into({"v": texts}, _PLACE),
    "encode_many": lambda texts: sum(map(len, bson.encode_many({"v": text} for text in texts))),
    "dump_many to a file": _to_file,
}


def main() -> None:
    """Runs the command line, whose arguments are PATH (the call) and KIND (the kind of text)."""
    path, kind = sys.argv[1:]
    texts = strings(kind)
    counted(lambda: ENCODING[path](texts))


if __name__ == "__main__":
    main()
