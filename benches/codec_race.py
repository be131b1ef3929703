"""Times codecs of Python objects: one row of a definition per process, all libraries in turns.
Prints one line of JSON.

python codec_race.py ENGINE ROW(JSON) [--once]

Each call that encodes gets new objects. A `str` with cached UTF-8, which another library may have
created, is faster to encode, and text from a database has none. The deallocation of results is not
timed. Python's garbage collector is off unless the row turns it on.
"""

from __future__ import annotations

import argparse
import array
import gc
import importlib
import itertools
import json
import pickle
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

#: The least and the largest number of rounds of a row; in between, it ends after `SECONDS`.
ROUNDS = (9, 41)
SECONDS = 4.0
#: A peer below this fraction of the base's speed after some rounds is excluded, since it is not the
#: best.
SLOW, AFTER = 0.7, 3
#: Calls shorter than this are timed in batches.
SHORT_S = 5e-6


class Contender:
    """One library: its function and the arguments that it gets."""

    def __init__(self, call: Callable[[Any], Any], made: Any, way: str, fresh: bool) -> None:
        self._call = call
        self._pickled = pickle.dumps(made, 5) if fresh and way != "decode" else None
        self._made = made

    def once(self) -> Any:
        """The result of one call."""
        return self._call(self._fresh())

    def _fresh(self) -> Any:
        # A `str` with the same characters must be a new object too.
        return self._made if self._pickled is None else pickle.loads(self._pickled)

    def time(self, n: int, collector: bool) -> float:
        """The mean seconds per call over `n` calls; with `collector`, Python's garbage collector is
        on."""
        call, clock = self._call, time.perf_counter
        if self._pickled is None and n > 1000:
            made, turns = self._made, itertools.repeat(None, n)
            begun = clock()
            for _ in turns:
                call(made)
            return (clock() - begun) / n
        spent = 0.0
        for _ in range(n):
            given = self._fresh()
            if collector:
                gc.collect()
                gc.enable()
            begun = clock()
            answer = call(given)
            spent += clock() - begun
            gc.disable()
            del given, answer
        return spent / n


def plain(answer: Any) -> str:
    """The decoded value of a result as text, so that results of several libraries can be
    compared."""
    return repr(json.loads(answer) if isinstance(answer, (bytes, str)) else answer)


def able(contenders: dict[str, Contender], base: str) -> dict[str, Contender]:
    """The libraries that support the type of the data; the base and onecopy are always included."""

    def supports(contender: Contender) -> bool:
        try:
            contender.once()
        except (TypeError, ValueError):
            return False
        return True

    return {name: each for name, each in contenders.items() if name in (base, "onecopy") or supports(each)}


def different(contenders: dict[str, Contender], base: str, plain: Callable[[Any], str] = plain) -> str | None:
    """The name of the first library whose result differs from the base's; None if all agree."""
    wanted = plain(contenders[base].once())
    return next((name for name, contender in contenders.items() if plain(contender.once()) != wanted), None)


def size(data: Any) -> int:
    """The size of the encoded form in bytes; an int is already such a size."""
    if isinstance(data, int):
        return data
    if isinstance(data, list):
        return sum(map(size, data))
    return len(data.encode() if isinstance(data, str) else data)


def orders(names: list[str]) -> Iterator[list[str]]:
    """The order of the libraries in each round, endlessly; each round starts with another
    library."""
    for k in itertools.count():
        at = k % len(names)
        yield names[at:] + names[:at]


def race(contenders: dict[str, Contender], base: str, collector: bool, seconds: float) -> dict[str, list[float]]:
    """Times all libraries in turns; returns the seconds per call of each, round by round.

    Libraries that are much slower than the base are excluded after the first rounds.
    """
    gc.disable()
    first = max(contenders[base].time(3, False), 1e-9)
    n = 2000 if first < SHORT_S else max(1, int(0.002 / first))
    # No float lives on between rounds: even one would keep an arena of CPython alive, which would
    # spare some library the pages that its caches need.
    times = {name: array.array("d", bytes(8 * (ROUNDS[1] + 1))) for name in contenders}
    racing = list(contenders)
    begun = time.perf_counter()
    for k, order in enumerate(orders(list(contenders))):
        for name in order:
            if name in racing:
                times[name][k] = contenders[name].time(n, collector)
        if k == AFTER:
            taken = {name: statistics.median(times[name][1 : k + 1]) for name in racing}
            racing = [name for name in racing if name in (base, "onecopy") or taken[base] / taken[name] > SLOW]
        if k >= ROUNDS[0] and (k >= ROUNDS[1] or time.perf_counter() - begun > seconds):
            # The first round warms up all; excluded peers take part in no later one.
            return {name: [t for t in taken[1 : k + 1] if t] for name, taken in times.items()}
    raise AssertionError("the loop ends by itself")


def ratios(of: list[float], to: list[float]) -> list[float]:
    """The factors by which `of` is faster than `to`, one for each round that both took part in,
    sorted."""
    return sorted(b / a for a, b in zip(of, to, strict=False))


def main() -> None:
    """Runs the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("engine")
    parser.add_argument("row")
    parser.add_argument("--once", action="store_true")
    parser.add_argument("--seconds", type=float, default=SECONDS)
    arguments = parser.parse_args()
    engine = importlib.import_module(f"benches.engines.{arguments.engine}")
    row = json.loads(arguments.row)
    way, fresh = row["way"], row.get("fresh", True)
    for_peers, for_ours = engine.given(row["corpus"], way)
    contenders = {name: Contender(call, for_peers, way, fresh) for name, call in engine.PEERS[way].items()}
    ours = engine.ours(way)
    if ours is not None:
        contenders["onecopy"] = Contender(ours, for_ours, way, fresh)
    named = row.get("base", engine.BASE)
    answers = getattr(engine, "plain_of", lambda way: plain)(row.get("compare", way))
    contenders = able(contenders, named)
    line: dict[str, Any] = {"differs": different(contenders, named, answers)}
    if line["differs"] is None and not arguments.once:
        times = race(contenders, named, row.get("collector", False), arguments.seconds)
        base = times[named]
        data = for_peers if "encode" not in way else contenders[named].once()
        line |= {"us": {name: statistics.median(taken) * 1e6 for name, taken in times.items()}}
        line |= {"ratio": {name: statistics.median(ratios(taken, base)) for name, taken in times.items()}}
        line |= {"bytes": size(data), "rounds": len(base)}
        if ours is not None:
            peers = [name for name in contenders if name not in ("onecopy", named)]
            best = max([*peers, named], key=lambda name: line["ratio"][name])
            own = ratios(times["onecopy"], base)
            line |= {"range": (own[0], own[-1]), "best": best}
            line |= {"of_best": [f(ratios(times["onecopy"], times[best])) for f in (statistics.median, min, max)]}
    print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main()
