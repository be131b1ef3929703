"""Effects on the process: the time of the import and of the first row, and the slowdown of a busy
thread during a fetch."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import threading
import time
from pathlib import Path

from benches.run import target_of
from tests.support import servers

ROOT = Path(__file__).resolve().parents[2]
CORE = os.environ.get("BENCH_CORE", "0")

#: The name of a row, the code that is timed in a separate process, and the target in milliseconds.
STARTS = (
    ("import onecopy", "import onecopy", 30),
    (
        "import onecopy, first SQLite row",
        "import onecopy; onecopy.connect('sqlite::memory:').execute('select 1').fetchone()",
        40,
    ),
    ("import pyodbc", "import pyodbc", None),
    ("import sqlite3, first row", "import sqlite3; sqlite3.connect(':memory:').execute('select 1').fetchone()", None),
    ("import mssql_python", "import mssql_python", None),
    ("import json, datetime, decimal, uuid", "import json, datetime, decimal, uuid", None),
)


def _milliseconds(code: str, n_times: int) -> list[float]:
    timed = f"import time; t = time.perf_counter()\n{code}\nprint((time.perf_counter() - t) * 1e3)"
    command = ["taskset", "-c", CORE, sys.executable, "-c", timed]
    said = (subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT) for _ in range(n_times))
    return sorted(float(done.stdout) for done in said)


def starts(once: bool) -> None:
    """Prints the times of imports, without the start of the interpreter."""
    print(f"{'':40} {'median':>8} {'lowest':>8}   target")
    for name, code, at_most in STARTS:
        taken = _milliseconds(code, 1 if once else 31)
        middle = statistics.median(taken)
        target = f"{at_most} ms" if at_most else "-"
        short = "  SHORT" if at_most and middle > at_most else ""
        print(f"{name:40} {middle:>5.1f} ms {taken[0]:>5.1f} ms   {target}{short}", flush=True)


def with_a_busy_thread(once: bool) -> None:
    """Fetches 31,000 rows of PostgreSQL while another thread counts.

    Prints the time, and the fraction of its usual speed with which the thread counts.
    """
    import onecopy

    home = servers.Home()
    failed = servers.start(["postgres"], home)
    if failed:
        print(f"31,000 rows next to a busy thread         cannot be measured here: {failed['postgres']}")
        return
    size = 1_000 if once else 31_000
    subprocess.run([sys.executable, "-m", "tests.support.servers", "load", str(size)], cwd=ROOT, check=True)
    cursor = onecopy.connect(target_of("postgres", home)["onecopy"]).cursor()
    n_counted, stop = [0], threading.Event()

    def count() -> None:
        while not stop.is_set():
            n_counted[0] += 1

    def counted_in(work: object) -> tuple[float, float]:
        before, begun = n_counted[0], time.perf_counter()
        work()  # type: ignore[operator]
        taken = time.perf_counter() - begun
        return taken, (n_counted[0] - before) / taken

    thread = threading.Thread(target=count)
    thread.start()
    results = []
    for _ in range(1 if once else 9):
        _, idle = counted_in(lambda: time.sleep(0.3))
        taken, counted = counted_in(lambda: cursor.execute(f"select * from t{size}").fetchall())
        results.append((taken, counted / idle))
    stop.set()
    thread.join()
    taken = statistics.median(taken for taken, _ in results)
    kept = statistics.median(kept for _, kept in results)
    short = "  SHORT" if not once and (taken > 0.25 or kept < 0.6) else ""
    print(f"{size:,} rows next to a busy thread         {taken:.3f} s, which keeps {kept:.0%}   0.25 s, 60 %{short}")


def main(once: bool) -> None:
    """Prints all tables."""
    starts(once)
    print()
    with_a_busy_thread(once)
