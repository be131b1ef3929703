"""Measures the memory of one codec call in a separate process; prints one line of JSON.

python codec_memory.py ENGINE ROW(JSON) LIBRARY

Encoding, and iterating over chunks: resident pages (VmHWM, VmRSS) after freed memory was returned
to the system. Decoding: the heap as counted by the C library, with `peers/heap.c` preloaded and
PYTHONMALLOC=malloc. `kept` is the live memory while the result exists, `peak` the maximum. The
`kept` of the standard library's `json` serves as the memory of the decoded objects themselves.
"""

from __future__ import annotations

import ctypes
import gc
import importlib
import json
import os
import pickle
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benches.worker import peak as resident_peak
from benches.worker import reset_peak

_libc = ctypes.CDLL(None)


def _resident() -> int:
    gc.collect()
    _libc.malloc_trim(0)
    return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1]) * os.sysconf("SC_PAGE_SIZE")


def _call(engine: Any, row: dict[str, Any], library: str) -> Callable[[Any], Any]:
    way = row["way"]
    call = engine.ours(way) if library == "onecopy" else engine.PEERS[way][library]
    if call is None:
        raise SystemExit(f"onecopy cannot `{way}` yet")
    return call


def encoded(engine: Any, row: dict[str, Any], library: str) -> dict[str, Any]:
    """Encodes new strings; returns the growth of resident memory in bytes, at the peak and
    afterwards."""
    call = _call(engine, row, library)
    one = pickle.dumps(engine.given(row["corpus"], row["way"])[library == "onecopy"], 5)
    made = [pickle.loads(one) for _ in range(row["times"])]
    call(pickle.loads(one)[:10])
    before = _resident()
    reset_peak()
    answer = call(made)
    most, size = resident_peak(), len(answer)
    del answer
    return {"json": size, "peak": most - before, "kept": _resident() - before}


def decoded(engine: Any, row: dict[str, Any], library: str) -> dict[str, Any]:
    """Decodes a text; returns the growth of the heap in bytes, at the peak and while the result
    exists."""
    for name in ("heap_live", "heap_peak"):
        getattr(_libc, name).restype = ctypes.c_longlong
    call = _call(engine, row, library)
    data = engine.given(row["corpus"], row["way"])[0]
    call(b'[1, 2.5, "\\u00e9", {"a": null}]')
    gc.collect()
    before = _libc.heap_live()
    _libc.heap_reset()
    answer = call(data)
    most = _libc.heap_peak() - before
    kept = _libc.heap_live() - before
    del answer
    gc.collect()
    return {"json": len(data), "peak": most, "kept": kept, "after": _libc.heap_live() - before}


def chunks(engine: Any, row: dict[str, Any], library: str) -> dict[str, Any]:
    """Iterates over chunks whose rows a generator yields; returns the growth of resident memory in
    bytes."""
    iter_chunks = _call(engine, row, library)
    pickled = [pickle.dumps(each, 5) for each in engine.given(row["corpus"], "encode")[0][:1000]]

    def rows(n: int) -> Iterator[Any]:
        for k in range(n):
            yield pickle.loads(pickled[k % len(pickled)])

    sum(map(len, iter_chunks(rows(5000))))
    before = _resident()
    reset_peak()
    size = sum(map(len, iter_chunks(rows(row["times"]))))
    return {"json": size, "peak": resident_peak() - before, "kept": _resident() - before}


def main() -> None:
    """Runs the command line."""
    engine, row, library = (
        importlib.import_module(f"benches.engines.{sys.argv[1]}"),
        json.loads(sys.argv[2]),
        sys.argv[3],
    )
    way = {"encode": encoded, "encode_str": encoded, "decode": decoded, "iter_chunks": chunks}[row["way"]]
    print(json.dumps(way(engine, row, library)))


if __name__ == "__main__":
    main()
