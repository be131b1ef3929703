"""Reads a result in one way ("path") in a process with the copy counter preloaded; prints the
counts of `onecopy.ledger` and of the copy counter.

LD_PRELOAD=copy_counter.so COPY_COUNTER_MODULE=_core python -m tests.copies.paths PATH TARGET SQL
"""

from __future__ import annotations

import asyncio
import ctypes
import json
import os
import socket
import sys
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import onecopy

#: In the order of `struct counts` of the copy counter.
_COUNTS = (
    "copies", "copied_bytes", "large_copies", "large_copied_bytes", "moves", "moved_bytes",
    "allocations", "allocated_bytes", "large_allocations", "large_allocated_bytes", "mapped_bytes", "sent_bytes",
)  # fmt: skip


class _Counts(ctypes.Structure):
    _fields_ = [(name, ctypes.c_uint64) for name in _COUNTS]


def _to_str(cursor: Any) -> object:
    return cursor.fetchall()


def _iterate(cursor: Any) -> object:
    return list(iter(cursor))


def _in_memory(form: str) -> Callable[[Any], object]:
    return lambda cursor: list(getattr(cursor, form)())


def _in_asyncio(cursor: Any) -> object:
    async def run() -> list[bytes]:
        return [chunk async for chunk in cursor.ndjson()]

    return asyncio.run(run())


def _by_read(form: str) -> Callable[[Any], object]:
    return lambda cursor: getattr(cursor, form)().read()


class _Target:
    """An object whose ``write`` stores the bytes objects that it receives, without copying them."""

    def __init__(self) -> None:
        self.parts: list[bytes] = []

    def write(self, part: bytes, /) -> int:
        self.parts.append(part)
        return len(part)


def _to_object(cursor: Any) -> object:
    target = _Target()
    cursor.csv().write_to(target)
    return target


def _to_path(cursor: Any) -> object:
    with tempfile.TemporaryDirectory() as folder:
        cursor.ndjson().write_to(Path(folder) / "rows.ndjson")
    return None


def _to_file(form: str) -> Callable[[Any], object]:
    def run(cursor: Any) -> object:
        with tempfile.TemporaryFile() as file:
            getattr(cursor, form)().write_to(file)
            return file.tell() or None

    return run


def _to_socket(form: str) -> Callable[[Any], object]:
    def run(cursor: Any) -> object:
        ours, theirs = socket.socketpair()
        got = bytearray(1 << 16)

        def drain() -> None:
            while theirs.recv_into(got):
                pass

        reader = threading.Thread(target=drain)
        reader.start()
        with ours:
            getattr(cursor, form)().write_to(ours)
        reader.join()
        theirs.close()
        return None

    return run


class _Array(ctypes.Structure):
    """``struct ArrowArray``; only its member ``release`` is used."""

    _fields_ = (
        ("before", ctypes.c_uint64 * 8),
        ("release", ctypes.CFUNCTYPE(None, ctypes.c_void_p)),
        ("private_data", ctypes.c_void_p),
    )


class _Stream(ctypes.Structure):
    """``struct ArrowArrayStream`` of Arrow's C stream interface."""

    _fields_ = (
        ("get_schema", ctypes.c_void_p),
        ("get_next", ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)),
        ("get_last_error", ctypes.c_void_p),
        ("release", ctypes.c_void_p),
        ("private_data", ctypes.c_void_p),
    )


def _arrow(cursor: Any) -> object:
    """Reads and releases all Arrow batches of a cursor through the C interface, without creating
    other objects."""
    capsule = cursor.__arrow_c_stream__()
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)
    at = pointer(capsule, b"arrow_array_stream")
    stream, array = _Stream.from_address(at), _Array()
    while stream.get_next(at, ctypes.addressof(array)) == 0 and array.release:
        array.release(ctypes.addressof(array))
    return None


FORMS = ("json", "ndjson", "csv", "bson")

#: Paths whose output is memory that we allocate, which the counter sees once.
OWN_MEMORY: dict[str, Callable[[Any], object]] = {"arrow in batches": _arrow}

PATHS: dict[str, Callable[[Any], object]] = {
    "str by fetchall": _to_str,
    "str by iteration": _iterate,
    **{f"{form} in memory": _in_memory(form) for form in FORMS},
    **{f"{form} by read": _by_read(form) for form in FORMS},
    **{f"{form} to a file": _to_file(form) for form in FORMS},
    **{f"{form} to a socket": _to_socket(form) for form in FORMS},
    "ndjson in asyncio": _in_asyncio,
    "ndjson to a path": _to_path,
    "csv to an object": _to_object,
}


def counted(run: Callable[[], object], before: Callable[[], object] = lambda: None) -> None:
    """Executes ``run`` twice, and prints the counts of ledger and copy counter for the second time.

    The first time initializes caches. ``before`` is executed before each.
    """
    counter = ctypes.CDLL(os.environ["LD_PRELOAD"])
    if not counter.copy_counter_find():
        raise SystemExit("the copy counter did not find the module")
    before()
    run()
    counts = _Counts()
    with onecopy.ledger() as ledger:
        before()
        counter.copy_counter_reset()
        made = run()
        counter.copy_counter_read(ctypes.byref(counts))
    del made
    print(
        json.dumps(
            {
                "ledger": {name: getattr(ledger, name) for name in ("taken", "converted", "copied", "conversions")},
                "stages": ledger.stages,
                "counter": {name: getattr(counts, name) for name in _COUNTS},
            }
        )
    )


def main() -> None:
    """Runs the command line, whose arguments are PATH, TARGET (a connection string) and SQL."""
    path, target, sql = sys.argv[1:]
    cursor = onecopy.connect(target).cursor()
    run = (PATHS | OWN_MEMORY)[path]
    counted(lambda: run(cursor), lambda: cursor.execute(sql))


if __name__ == "__main__":
    main()
