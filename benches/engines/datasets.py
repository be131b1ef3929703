"""`onecopy.ray` and `onecopy.spark` compared with the other ways to read a table of 1,000,000 rows with
these engines. `dataset_jobs.py` has the ways; it runs in the environment of `make engines`."""

from __future__ import annotations

import json
import os
import sqlite3
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benches.engines.dataset_jobs import N_ROWS, TABLE
from tests.support import servers

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))

import dev  # noqa: E402
from house import CACHE  # noqa: E402

ROUNDS = 5
AT_LEAST = 3.0


def fill_sqlite(file: str) -> None:
    """Creates the table in a new database."""
    with sqlite3.connect(file) as con:
        con.execute(f"create table {TABLE} (id integer primary key, name text, price real, note text)")
        rows = ((i, f"name {i} 名", i / 7, "x" * (i % 60)) for i in range(N_ROWS))
        con.executemany(f"insert into {TABLE} values (?, ?, ?, ?)", rows)
    con.close()


def fill_postgres(url: str) -> None:
    """Creates the same table."""
    sql = (
        f"drop table if exists {TABLE}; create table {TABLE} as select i::bigint as id, 'name '||i||' 名' as name,"
        f" i / 7.0::float8 as price, repeat('x', i % 60) as note from generate_series(0, {N_ROWS - 1}) i;"
        f" alter table {TABLE} add primary key (id); vacuum analyze {TABLE}"
    )
    subprocess.run(["psql", "-X", "-q", url, *(f"-c{part}" for part in sql.split(";"))], check=True)


def measured(python: str, file: str, url: str) -> Iterator[dict[str, Any]]:
    """The lines of the jobs."""
    environment = os.environ | {"RUST_LOG": "warn"}  # Sail logs each request.
    for engine in ("ray", "sail"):
        command = [python, "-m", "benches.engines.dataset_jobs", engine, file, url, str(ROUNDS)]
        done = subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True, env=environment)
        yield from (json.loads(line) for line in done.stdout.splitlines() if line.startswith('{"row"'))


def main(once: bool) -> list[dict[str, Any]]:
    """Prints the table; returns the lines of the record."""
    if once:
        return []
    python = str(dev.build(CACHE / "engines", ROOT / "requirements" / "engines.txt"))
    home = servers.Home()
    servers.start(["postgres"], home)
    url = servers.url(servers.native("postgres", home))
    fill_postgres(url)
    lines = []
    with tempfile.TemporaryDirectory() as folder:
        file = f"{folder}/datasets.db"
        fill_sqlite(file)
        for line in measured(python, file, url):
            mine, peer = (statistics.median(pair[side] for pair in line["seconds"]) for side in (0, 1))
            ratios = sorted(theirs / ours for ours, theirs in line["seconds"])
            ratio = statistics.median(ratios)
            print(
                f"{line['row']:24} {mine:>7.2f} s {peer:>7.2f} s {ratio:>6.2f} ({ratios[0]:.2f} - {ratios[-1]:.2f})"
                f"   {AT_LEAST}{'  SHORT' if ratio < AT_LEAST else ''}",
                flush=True,
            )
            lines.append(
                {
                    "row": line["row"],
                    "size": N_ROWS,
                    "ours_us": mine * 1e6,
                    "peer_us": peer * 1e6,
                    "ratio": ratio,
                    "ratio_min": ratios[0],
                    "ratio_max": ratios[-1],
                    "at_least": AT_LEAST,
                }
            )
    return lines
