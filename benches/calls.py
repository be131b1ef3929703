"""Measures calls of a few nanoseconds to some milliseconds: onecopy's and a peer's, alternately in
one process. Prints one line of JSON per row.

python calls.py ENGINE [--only PART] [--rounds N] [--once]
"""

from __future__ import annotations

import argparse
import importlib
import json
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

#: The approximate seconds that one round takes for one side.
ROUND_S = 0.004


def round_of(call: Callable[[], Any], n: int, apart: bool = False) -> float:
    """The seconds for `n` calls; if `apart`, without the time to deallocate the results."""
    turns = range(n)
    if apart:
        spent = 0.0
        for _ in turns:
            begun = time.perf_counter()
            made = call()
            spent += time.perf_counter() - begun
            del made
        return spent
    begun = time.perf_counter()
    for _ in turns:
        call()
    return time.perf_counter() - begun


def empty() -> None:
    """Does nothing: its time is the cost of the loop and is subtracted from both sides."""


def measure(ours: Callable[[], Any], peer: Callable[[], Any], rounds: int, apart: bool) -> dict[str, float]:
    """The nanoseconds per call of both sides, and the ratio of peer to onecopy in the same round.

    If `apart`, the deallocation of results is not timed.
    """
    round_of(ours, 1), round_of(peer, 1)  # The first call of a process fills caches.
    once = max(round_of(ours, 1), round_of(peer, 1), round_of(ours, 3) / 3, 1e-8)
    n = max(1, min(20_000, int(ROUND_S / once)))
    # A few results are kept alive, so that no round starts or ends at the edge of a pool of
    # CPython's allocator.
    held = [call() for call in (ours, peer) for _ in range(5)] if n > 50 else []
    pairs = []
    for k in range(rounds + 1):
        cost = round_of(empty, n) / n if n > 50 else 0.0
        pair = (round_of(ours, n, apart) / n - cost, round_of(peer, n, apart) / n - cost)
        if k:  # The first round warms both up.
            pairs.append(pair)
    del held
    ratios = sorted(b / a for a, b in pairs)
    return {
        "ours_ns": statistics.median(a for a, _ in pairs) * 1e9,
        "peer_ns": statistics.median(b for _, b in pairs) * 1e9,
        "ratio": statistics.median(ratios),
        "ratio_min": ratios[0],
        "ratio_max": ratios[-1],
    }


def main() -> None:
    """Runs the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("engine")
    parser.add_argument("--only", default="")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--once", action="store_true")
    arguments = parser.parse_args()
    for row in importlib.import_module(f"benches.engines.{arguments.engine}").rows():
        if arguments.only not in row.name:
            continue
        same = row.ours() == row.peer()
        figures = measure(row.ours, row.peer, arguments.rounds, row.apart) if same and not arguments.once else {}
        line = {"name": row.name, "same": same, "at_least": row.at_least, "aim": row.aim, **figures}
        print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main()
