"""Repeats the measurements of the documents with which this project started: consuming a buffer, a
part of a large object, UTF-8 of `str`, UltraJSON, meinheld, and queries."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benches.engines import transfer
from benches.engines.compiled import peer
from onecopy import text


def seconds(call: Callable[[], Any], rounds: int = 3) -> float:
    """The median time of some calls."""
    taken = []
    for _ in range(rounds):
        begun = time.perf_counter()
        call()
        taken.append(time.perf_counter() - begun)
    return statistics.median(taken)


def eat(buffer: Any) -> None:
    """The loop that the original document measures: removes one byte from the front until the
    buffer is empty."""
    while buffer:
        buffer = buffer[1:]


def eat_slices(buffer: bytes) -> None:
    """Reads the same bytes one by one through memoryview slices, without copies."""
    for _ in text.slices(buffer, 1):
        pass


def zero_copy(once: bool) -> None:
    """Prints the times of slices of bytes and of memoryviews."""
    print("while b: b = b[1:]                      bytes     memoryview   text.slices(b, 1)   bytes / slices")
    for n in (1000,) if once else (100_000, 200_000, 300_000, 400_000, 500_000):
        data = bytes(n)
        copies = seconds(lambda d=data: eat(d), 1)
        views = seconds(lambda d=data: eat(memoryview(d)))
        ours = seconds(lambda d=data: eat_slices(d))
        line = f"  {n:>9,} bytes               {copies * 1e3:>10.1f} ms  {views * 1e3:>9.1f} ms"
        print(f"{line}  {ours * 1e3:>14.1f} ms  {copies / ours:>12.0f}x")
    chunk = 20 << 20
    data = bytes(chunk * (2 if once else 51))
    copies = seconds(lambda: data[:chunk], 9)
    ours = seconds(lambda: next(text.slices(data, chunk)), 9)
    print(
        f"a chunk of 20 MiB              {copies * 1e3:>10.3f} ms {'':12}  {ours * 1e3:>14.4f} ms"
        f"  {copies / ours:>12.0f}x"
    )


def resident() -> int:
    """The resident memory of this process in bytes."""
    return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1]) * os.sysconf("SC_PAGE_SIZE")


WAYS = ("PyUnicode_AsUTF8AndSize", "PyUnicode_AsUTF8String", "onecopy.text.encode_into")


def strings(script: str, n: int) -> list[str]:
    """`n` distinct `str` objects of 50 characters, without cached UTF-8."""
    first, size = {"ASCII": (97, 25), "Cyrillic": (0x430, 32), "CJK": (0x4E00, 900), "emoji": (0x1F600, 60)}[script]
    return ["".join(chr(first + (i * 7 + k * k) % size) for k in range(46)) + f"{i % 10000:04d}" for i in range(n)]


def utf8_of(way: str, made: list[str]) -> int:
    """Converts all strings to UTF-8 by the method `way`; returns the total number of bytes."""
    if way == WAYS[2]:
        place, into = bytearray(400), text.encode_into
        return sum(into(string, place) for string in made)
    functions = {WAYS[0]: "as_utf8_and_size", WAYS[1]: "as_utf8_string"}
    total: int = getattr(peer("as_utf8"), functions[way])(made)
    return total


def one_way(way: str, script: str, n: int) -> None:
    """Measures one method in this process: nanoseconds per `str` in the first and second pass, and
    the memory that remains."""
    utf8_of(way, strings(script, 10))
    made = strings(script, n)
    before = resident()
    begun = time.perf_counter()
    total = utf8_of(way, made)
    first = time.perf_counter() - begun
    begun = time.perf_counter()
    utf8_of(way, made)
    second = time.perf_counter() - begun
    print(f"{first / n * 1e9:.0f} {second / n * 1e9:.0f} {(resident() - before) / 2**20:.0f} {total}")


def utf8_cache(once: bool) -> None:
    """Prints the cost of converting a list of `str` to UTF-8 by each method, and the memory that
    remains."""
    n = 1000 if once else 500_000
    print(f"\nUTF-8 of {n:,} str of 50 characters       ns a str, first   again   memory that stays")
    for script in ("ASCII", "Cyrillic", "CJK", "emoji"):
        totals = set()
        for way in WAYS:
            command = [sys.executable, "-m", "benches.engines.seeds", way, script, str(n)]
            done = subprocess.run(command, capture_output=True, text=True, check=True)
            first, second, stays, total = done.stdout.split()
            totals.add(total)
            print(f"  {script:10} {way:27} {first:>15}  {second:>6}  {stays:>14} MiB")
        if len(totals) != 1:
            raise RuntimeError(f"the ways give different UTF-8 for {script}: {totals}")


#: The call of each library that corresponds to `ujson.dumps(x)` in the document.
DUMPS = {
    "ujson.dumps": "import ujson",
    "onecopy.json.dumps": "import onecopy.json",
    "onecopy.json.dumps_str": "import onecopy.json",
    "orjson.dumps": "import orjson",
    "ssrjson.dumps_to_bytes": "import ssrjson; ssrjson.write_utf8_cache(False)",
    "fastsimdjson.dumpb": "import fastsimdjson",
    "msgspec.json.encode": "import msgspec.json",
    "json.dumps": "import json",
}


def ultrajson(once: bool) -> None:
    """Runs the command of the original document for each library: encodes a list of a hundred equal
    short strings."""
    n = "10" if once else "10000"
    print("\npython -m timeit -n 10000 -s 'import ujson; x = [\"a\"*10]*100' 'ujson.dumps(x)'")
    for call, setup in DUMPS.items():
        command = [
            sys.executable,
            "-m",
            "timeit",
            "-n",
            n,
            "-u",
            "usec",
            "-s",
            f'{setup}; x = ["a"*10]*100',
            f"{call}(x)",
        ]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        figures = done.stdout.strip().splitlines()[0] if done.returncode == 0 else done.stderr.strip().splitlines()[-1]
        print(f"  {call:26} {figures}", flush=True)


def main(once: bool = False) -> None:
    """Prints the tables; with `once` they are small and fast, as a test."""
    zero_copy(once)
    transfer.seed(once)
    utf8_cache(once)
    ultrajson(once)
    # Imported here, since the parts above need no server and no database.
    from benches.engines import seed_rows, seed_server

    seed_server.main(once)
    seed_rows.main(once)


if __name__ == "__main__":
    one_way(sys.argv[1], sys.argv[2], int(sys.argv[3]))
