"""Thousands of JSON calls leak no memory, and a large call uses bounded memory."""

from __future__ import annotations

import contextlib
import gc
import json as standard
import os
import subprocess
import sys
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from onecopy import bson, json

ROOT = Path(__file__).resolve().parents[2]
VALUE = {"id": 2**70, "имя": ["東京", "😀" * 30, 'a"b' * 40], "x": [1.5, None, True, 12345], "": {}}
DATA = standard.dumps([VALUE] * 5).encode()


class Strange:
    """A class without a JSON representation."""


def _refused(call: Callable[[], Any]) -> None:
    with contextlib.suppress(ValueError, TypeError, LookupError):
        call()


def _all_refused() -> None:
    for n in range(0, len(DATA), 97):
        _refused(lambda n=n: json.loads(DATA[:n]))  # type: ignore[misc]


def _raise(value: Any) -> Any:
    raise LookupError


CALLS: dict[str, Callable[[], Any]] = {
    "dumps": lambda: json.dumps([VALUE] * 5),
    "dumps_str": lambda: json.dumps_str([VALUE] * 5),
    "dumps, options": lambda: json.dumps(VALUE, indent=2, sort_keys=True, ensure_ascii=True),
    "dumps_into": lambda: json.dumps_into(VALUE, bytearray(1000)),
    "dumps_lines": lambda: json.dumps_lines([VALUE] * 3),
    "dumps_rows": lambda: json.dumps_rows(["a", "я"], [(1, "ж"), (2, VALUE)]),
    "iter_chunks": lambda: list(json.iter_chunks(iter([VALUE] * 5), chunk_bytes=100)),
    "chunks left": lambda: next(iter(json.iter_chunks(iter([VALUE] * 50), chunk_bytes=100))),
    "default": lambda: json.dumps([Strange()] * 3, default=lambda value: {"a": [str(type(value))]}),
    "default raises": lambda: _refused(lambda: json.dumps([VALUE, Strange()], default=_raise)),
    "no form": lambda: _refused(lambda: json.dumps([VALUE, {"a": Strange()}])),
    "surrogate": lambda: _refused(lambda: json.dumps([VALUE, "\ud800"])),
    "too deep": lambda: _refused(lambda: json.dumps([[[VALUE]]], max_depth=2)),
    "fragment": lambda: json.dumps([json.Fragment(b"1"), json.Fragment("я")]),
    "loads": lambda: json.loads(DATA),
    "loads of str": lambda: json.loads(DATA.decode()),
    "loads_lines": lambda: list(json.loads_lines(b"1\n" + DATA)),
    "lines left": lambda: next(iter(json.loads_lines(DATA + b"\n1"))),
    "object_hook": lambda: json.loads(DATA, object_hook=lambda d: tuple(d.items())),
    "hook raises": lambda: _refused(lambda: json.loads(DATA, object_hook=_raise)),
    "parse_float": lambda: json.loads(b"[1.5,[2.5,1e400]]", parse_float=str),
    "refused": lambda: _all_refused(),
    "duplicate": lambda: _refused(lambda: json.loads(b'{"a":[1],"b":"x","a":2}', duplicate_keys="error")),
    "too deep in": lambda: _refused(lambda: json.loads(b"[[[1,[", max_depth=3)),
}


def _grown(call: Callable[[], Any]) -> tuple[int, int]:
    gc.collect()
    before, blocks = tracemalloc.get_traced_memory()[0], sys.getallocatedblocks()
    for _ in range(1000):
        call()
    gc.collect()
    return tracemalloc.get_traced_memory()[0] - before, sys.getallocatedblocks() - blocks


@pytest.mark.parametrize("name", CALLS)
def test_a_thousand_calls_leak_nothing(name: str) -> None:
    call = CALLS[name]
    tracemalloc.start()
    try:
        for _ in range(300):  # Objects created on first use are not a leak.
            call()
        # A leak shows in each round, as a block per call; the interpreter's free lists vary by
        # hundreds.
        rounds = [_grown(call) for _ in range(3)]
        assert any(n_bytes < 16_000 and n_blocks < 60 for n_bytes, n_blocks in rounds), rounds
    finally:
        tracemalloc.stop()


def test_encoding_keeps_reference_counts() -> None:
    string, inner, key = "я" * 50, [1], "ключ" * 5
    value = {key: [string, inner, (inner,)]}
    before = [sys.getrefcount(x) for x in (string, inner, key, value)]
    for _ in range(50):
        json.dumps(value)
        json.dumps_str(value, sort_keys=True)
        _refused(lambda: json.dumps([value, object()]))
    assert [sys.getrefcount(x) for x in (string, inner, key, value)] == before


@pytest.mark.parametrize("name", ["loads", "loads of str", "dumps", "iter_chunks"])
def test_decoded_objects_are_tracked_by_the_collector(name: str) -> None:
    made = json.loads(b'[{"a":[]},[[1]],{}]')
    assert gc.is_tracked(made) and gc.is_tracked(made[1])
    made[0]["a"].append(made)
    before = len(gc.get_objects())
    del made
    gc.collect()
    assert len(gc.get_objects()) <= before
    CALLS[name]()


MEMORY = """
import gc, sys, ctypes
sys.path.insert(0, {root!r})
from pathlib import Path
from onecopy import bson, json
def peak(): return next(int(l.split()[1]) * 1024 for l in open("/proc/self/status") if l.startswith("VmHWM"))
def now():
    gc.collect(); ctypes.CDLL(None).malloc_trim(0)
    return next(int(l.split()[1]) * 1024 for l in open("/proc/self/status") if l.startswith("VmRSS"))
def reset(): Path("/proc/self/clear_refs").write_text("5")
"""


def measured(code: str) -> list[int]:
    done = subprocess.run(
        [sys.executable, "-c", MEMORY.format(root=str(ROOT)) + code],
        capture_output=True,
        text=True,
        check=True,
        env=os.environ | {"PYTHONPATH": ""},
    )
    return [int(word) for word in done.stdout.split()]


@pytest.mark.parametrize("text", ["東京都" * 5, "я" * 20, "é" * 20, "a" * 30])
def test_encoding_peaks_at_the_size_of_the_json_and_leaks_nothing(text: str) -> None:
    size, peak, kept = measured(f"""
values = [{text!r} + chr(0x4e00 + k % 900) + str(k) for k in range(200_000)]
json.dumps(values[:10])
before = now(); reset()
made = json.dumps(values)
most, size = peak(), len(made)
del made
print(size, most - before, now() - before)
""")
    assert peak <= 1.1 * size + (1 << 19) and kept < 1 << 19, (size, peak, kept)


@pytest.mark.parametrize("lines", [False, True])
def test_the_iterator_of_chunks_has_bounded_memory(lines: bool) -> None:
    size, peak = measured(f"""
def rows(n):
    for k in range(n):
        yield {{"id": k, "имя": "東京" * (k % 50), "x": k / 7}}
sum(map(len, json.iter_chunks(rows(2000), lines={lines})))
before = now(); reset()
size = sum(map(len, json.iter_chunks(rows(200_000), lines={lines})))
print(size, peak() - before)
""")
    assert size > 30_000_000 and peak <= 1 << 20, (size, peak)


def test_decoding_allocates_only_the_objects() -> None:
    kept, peak = measured("""
data = json.dumps([{"id": k, "имя": "東京" * (k % 20), "x": [k / 7, None]} for k in range(50_000)])
json.loads(data[:0] + b"[1]")
before = now(); reset()
made = json.loads(data)
most = peak()
kept = next(int(l.split()[1]) * 1024 for l in open("/proc/self/status") if l.startswith("VmRSS"))
print(kept - before, most - before)
""")
    assert peak - kept <= 1 << 17, (kept, peak)


@pytest.mark.parametrize(
    "call",
    [
        lambda: json.dumps(["y" * 10_000]),
        lambda: json.dumps([{"a": 1, "b": "text" * 3}] * 300),
        lambda: json.dumps([{"a": 1, "b": "text" * 3}] * 300, indent=2),
        lambda: json.dumps_lines([["y" * 10_000]] * 2),
        lambda: json.dumps_rows(["a"], [("y" * 9000,)]),
        lambda: json.dumps_str(["é" * 10_000]),
        lambda: bson.encode({"a": "é" * 5000}),
        lambda: bson.encode({"a": ["x" * 50] * 300}),
        lambda: _refused(lambda: json.dumps(["y" * 10_000, Strange()])),
    ],
)
def test_a_program_that_only_calls_one_function_leaks_no_result(call: Callable[[], Any]) -> None:
    # Other functions of the module would release objects whose release was deferred.
    call()
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        for _ in range(200):
            call()
        after, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert after - before < 50_000
