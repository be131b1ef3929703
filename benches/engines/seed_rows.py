"""Repeats the database queries of the documents with which this project started: joins with
aggregates, a large retrieval, a CTE, and rows with much text, each with a small, a medium and a
large table.

The documents used SQL Server. Here the SQL runs on PostgreSQL and MariaDB. The TDS responder does
not execute SQL; it is used for the large retrieval, with which mssql-python can be measured.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benches.engines import rows
from benches.run import target_of
from tests.support import servers

ROOT = Path(__file__).resolve().parents[2]

QUERIES = {
    "joins, aggregates": "select a.city, b.tag, count(*) as n, sum(a.amount) as total, avg(a.price) as mean, "
    "max(b.created) as last "
    "from t{n} a join t{n} b on b.id = a.id group by a.city, b.tag order by 1, 2",
    "large retrieval": "select * from t{n}",
    "CTE": "with placed as (select id, name, city, price, "
    "row_number() over (partition by city order by price desc) as place "
    "from t{n}) select * from placed where place <= 400 order by city, place",
    "text": "select name, city, note, concat(name, ' / ', city) as title, concat(note, ' ', name) as story from t{n}",
}
SIZES = {"small": (1_000, 25), "medium": (31_000, 7), "large": (400_000, 3)}

LIBRARIES: dict[str, Callable[[dict[str, Any]], Any]] = {
    "onecopy": rows._onecopy,
    "pyodbc": rows._pyodbc,
    "mssql-python": rows._mssql_python,
}
PROFILES = {
    "postgres": ("PostgreSQL", ("onecopy", "pyodbc"), tuple(QUERIES)),
    "mariadb": ("MariaDB", ("onecopy", "pyodbc"), tuple(QUERIES)),
    "tds_msodbc": ("SQL Server's protocol", ("onecopy", "pyodbc", "mssql-python"), ("large retrieval",)),
}


def _fetchall(cursor: Any, sql: str) -> int:
    cursor.execute(sql)
    return len(cursor.fetchall())


def _iterate(cursor: Any, sql: str) -> int:
    cursor.execute(sql)
    n = 0
    for _ in cursor:
        n += 1
    return n


def _seconds(job: Callable[[Any, str], int], cursor: Any, sql: str) -> tuple[float, int]:
    begun = time.perf_counter()
    n_rows = job(cursor, sql)
    return time.perf_counter() - begun, n_rows


def _row(title: str, job: Callable[[Any, str], int], cursors: dict[str, Any], sql: str, rounds: int) -> None:
    """Measures one query with all libraries in turns.

    Prints the median times, and the factors by which onecopy is faster.
    """
    taken: dict[str, list[float]] = {name: [] for name in cursors}
    counts = set()
    for k in range(rounds + 1):
        for name, cursor in cursors.items():
            seconds, n_rows = _seconds(job, cursor, sql)
            counts.add(n_rows)
            if k:  # The first round warms up.
                taken[name].append(seconds)
    if len(counts) != 1:
        raise RuntimeError(f"{title}: the libraries gave {sorted(counts)} rows")
    middle = {name: statistics.median(times) for name, times in taken.items()}
    others = "  ".join(
        f"{name} {seconds:8.4f} s ({seconds / middle['onecopy']:5.2f}x)"
        for name, seconds in middle.items()
        if name != "onecopy"
    )
    print(f"  {title:44} {counts.pop():>9,} rows  onecopy {middle['onecopy']:8.4f} s  {others}", flush=True)


def main(once: bool) -> None:
    """Prints the tables; with `once` they are small and fast, as a test."""
    home = servers.Home()
    failed = servers.start(["postgres", "mariadb", "tds"], home)
    sizes = {"small": (1_000, 1)} if once else SIZES
    load = [sys.executable, "-m", "tests.support.servers", "load", *(str(n) for n, _ in sizes.values())]
    subprocess.run(load, cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
    for profile, (title, names, queries) in PROFILES.items():
        server = servers.PROFILES[profile][0]
        print(f"\n{title}")
        if server in failed:
            print(f"  cannot be measured here: {failed[server]}")
            continue
        target = target_of(profile, home)
        cursors = {name: LIBRARIES[name](target).cursor() for name in names}
        for query in queries:
            for size, (n, rounds) in sizes.items():
                sql = QUERIES[query].format(n=n)
                for way, job in (("fetchall", _fetchall), ("for row in cursor", _iterate)):
                    _row(f"{query}, {size}, {way}", job, cursors, sql, rounds)
