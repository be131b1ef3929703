"""Compares two builds of onecopy, row by row: finds rows that became slower.

    python versions.py BEFORE AFTER [NAME …] [--only TEXT] [--rounds N]

BEFORE and AFTER are directories, each with an unpacked wheel (`python -m zipfile -e FILE DIR`). The
rows are onecopy's side of the definitions NAME (default: all that measure codecs, calls or rows).
Each build runs in a separate process. Both are pinned to one core and measured in turns. The figure
is the median of before/after in the same round, so larger than 1 is faster. A row below the limit
is measured up to two more times, with more rounds and in new processes, and judged by all rounds
together. If valgrind is installed, the instructions of such a row are counted as well: their number
does not depend on what else the machine does.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
sys.path.insert(0, str(ROOT))

CORE = os.environ.get("BENCH_CORE", "0")
#: A row whose figure is smaller is slower.
LIMIT = 0.97
NAMES = ("json", "numpy", "bson", "text", "rows", "postgres")
#: The approximate seconds of one round of one build.
ROUND_S = 0.02
#: The approximate seconds that all rounds of one build may take; there are at least five.
LONGEST_S = 5
#: The approximate seconds of the calls that are counted, without valgrind, which takes 50 times as long.
COUNTED_S = 0.005


def job_of(case: dict[str, Any]) -> Callable[[int], float]:
    """A function that makes n calls of the benchmark case and returns the seconds per call."""
    engine = importlib.import_module(f"benches.engines.{case['engine']}")
    if case["kind"] == "codecs":
        from benches.codec_race import Contender

        _, given = engine.given(case["corpus"], case["way"])
        ours = Contender(engine.ours(case["way"]), given, case["way"], case.get("fresh", True))
        return lambda n: ours.time(n, False)
    if case["kind"] == "calls":
        from benches.calls import round_of

        row = next(row for row in engine.rows() if row.name == case["name"])
        return lambda n: round_of(row.ours, n, row.apart) / n
    job = getattr(engine, case["function"])(case["target"], case["size"])
    before = getattr(job, "before", lambda: None)

    def timed(n: int) -> float:
        spent = 0.0
        for _ in range(n):
            before()
            begun = time.perf_counter()
            made = job()
            spent += time.perf_counter() - begun
            del made
        # The other build uses the same tables: an open transaction would block it.
        before()
        return spent / n

    return timed


def serve(case: dict[str, Any]) -> None:
    """Runs the process of one build.

    It reads numbers of calls from stdin, and prints the seconds per call for each.
    """
    import gc

    job = job_of(case)
    gc.disable()
    for line in sys.stdin:
        print(job(int(line)), flush=True)


class Build:
    """A process that runs a case with one build of onecopy."""

    def __init__(self, directory: str, case: dict[str, Any]) -> None:
        self._process = subprocess.Popen(
            ["taskset", "-c", CORE, sys.executable, str(Path(__file__).resolve()), "--serve", json.dumps(case)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=os.environ | {"PYTHONPATH": directory},
        )

    def time(self, n: int) -> float:
        """The mean seconds per call over n calls."""
        assert self._process.stdin is not None and self._process.stdout is not None
        try:
            print(n, file=self._process.stdin, flush=True)
            return float(self._process.stdout.readline())
        except (ValueError, BrokenPipeError):
            assert self._process.stderr is not None
            raise RuntimeError(self._process.stderr.read().splitlines()[-1:]) from None

    def close(self) -> None:
        """Ends the process."""
        self._process.communicate()


def compare(before: str, after: str, case: dict[str, Any], rounds: int) -> list[float]:
    """Measures a case with both builds; returns before/after of each round."""
    builds = (Build(before, case), Build(after, case))
    try:
        once = min(build.time(1) for build in builds)
        n = max(1, int(ROUND_S / once))
        rounds = min(rounds, max(5, int(LONGEST_S / once)))
        ratios = []
        for k in range(rounds + 1):
            # Which build is first changes from round to round.
            first, second = builds if k % 2 else builds[::-1]
            times = {first: first.time(n), second: second.time(n)}
            if k:  # The first round warms both up.
                ratios.append(times[builds[0]] / times[builds[1]])
        return ratios
    finally:
        for build in builds:
            build.close()


def instructions(directory: str, case: dict[str, Any]) -> float:
    """The number of instructions of one call with one build, counted by cachegrind."""
    build = Build(directory, case)
    build.time(1)  # The first call is slower.
    once = build.time(3)
    build.close()
    # With fewer calls, what only some calls do (the allocator returns memory) decides the result.
    n = max(4, int(COUNTED_S / once))
    counts = []
    for calls in (n, 3 * n):
        with tempfile.NamedTemporaryFile("r") as file:
            command = ["valgrind", "-q", "--tool=cachegrind", "--cache-sim=no", f"--cachegrind-out-file={file.name}"]
            command += [sys.executable, str(Path(__file__).resolve()), "--serve", json.dumps(case)]
            # NumPy's threads would be counted, which do nothing but wait.
            environment = os.environ | {"PYTHONPATH": directory, "PYTHONHASHSEED": "0", "OPENBLAS_NUM_THREADS": "1"}
            subprocess.run(command, input=f"{calls}\n", text=True, env=environment, check=True, capture_output=True)
            (summary,) = (line for line in file if line.startswith("summary:"))
            counts.append(int(summary.split()[1]))
    return (counts[1] - counts[0]) / (2 * n)


def cases(name: str) -> Iterator[dict[str, Any]]:
    """The cases of a definition: onecopy's side of each row."""
    from benches.run import definition_of, target_of
    from tests.support import servers
    from tests.support.drivers import Unavailable

    definition = definition_of(name)
    kind = definition.get("kind", "rows")
    if kind == "codecs":
        for row in definition["row"]:
            yield row | {"kind": kind, "engine": definition["engine"]}
    elif kind == "calls":
        engine = importlib.import_module(f"benches.engines.{definition['engine']}")
        for call in engine.rows():
            yield {"kind": kind, "engine": definition["engine"], "name": call.name}
    elif kind == "rows":
        home = servers.Home()
        servers.start(list(servers.NAMES), home)
        sizes = (1000, 31000)
        load = [sys.executable, "-m", "tests.support.servers", "load", *map(str, sizes)]
        subprocess.run(load, cwd=ROOT, check=True)
        done = set()
        for row in definition["row"]:
            for size in row.get("own_sizes") or [size for size in row.get("sizes", sizes) if size in sizes]:
                key = (row.get("module", "rows"), row["ours"], row["profile"], size)
                if key in done or "memory" in row["name"]:
                    continue
                done.add(key)
                try:
                    target = target_of(row["profile"], home)
                except Unavailable:
                    continue
                label = f"{row['ours']}, {row['profile']}, {size:,} rows"
                yield {
                    "kind": kind,
                    "engine": key[0],
                    "function": row["ours"],
                    "target": target,
                    "size": size,
                    "name": label,
                }


def main() -> int:
    """Runs the command line; returns the exit status."""
    if sys.argv[1:2] == ["--serve"]:
        serve(json.loads(sys.argv[2]))
        return 0
    parser = argparse.ArgumentParser(prog="versions", description=__doc__)
    parser.add_argument("before")
    parser.add_argument("after")
    parser.add_argument("names", nargs="*", default=NAMES)
    parser.add_argument("--only", default="", help="rows whose name contains this")
    parser.add_argument("--rounds", type=int, default=11)
    arguments = parser.parse_args()
    before, after = (str(Path(directory).resolve()) for directory in (arguments.before, arguments.after))
    # The rows of some definitions are listed by an engine, which imports onecopy.
    sys.path.insert(0, after)
    slower = []
    for name in arguments.names:
        for case in cases(name):
            title = f"{name}: {case['name']}"
            if arguments.only not in title:
                continue
            try:
                ratios = compare(before, after, case, arguments.rounds)
                for _ in range(2):
                    if statistics.median(ratios) < LIMIT:
                        ratios += compare(before, after, case, 3 * arguments.rounds)
            except RuntimeError as error:
                print(f"{title:60} not measured: {error}", flush=True)
                continue
            middle = statistics.median(ratios)
            line = f"{title:60} {middle:.3f}  ({min(ratios):.2f} - {max(ratios):.2f})"
            if middle < LIMIT:
                line += " SLOWER"
                if shutil.which("valgrind"):
                    ratio = instructions(before, case) / instructions(after, case)
                    line += f", instructions before/after {ratio:.3f}"
                slower.append(title)
            print(line, flush=True)
    print(f"{len(slower)} rows are slower by more than {1 - LIMIT:.0%}", *slower, sep="\n  ")
    return 1 if slower else 0


if __name__ == "__main__":
    sys.exit(main())
