"""`onecopy export` compared with the commands and libraries that people use for it: whole processes
that write a table of 4,000,000 rows to a file.

onecopy syncs its file and writes a manifest with a BLAKE3 hash; none of the peers does either.
"""

from __future__ import annotations

import csv
import math
import os
import shutil
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any, NamedTuple

from benches.engines.export_peers import TABLE
from benches.engines.transcode import command, resident
from tests.support import load, servers

ROOT = Path(__file__).resolve().parents[2]
#: The number of rows compared, and the number measured.
FEW, MANY = 1000, 4_000_000
ROUNDS = 3
MOST_MEMORY_MB = 64


class Row(NamedTuple):
    """One measured way and one of its peers."""

    database: str
    form: str
    peer: str
    #: The targets of CPU time and of wall-clock time; None without a target.
    at_least_cpu: float | None
    at_least_wall: float | None


ROWS = (
    Row("SQLite", "csv", "sqlite3", 1.5, None),
    Row("SQLite", "csv", "duckdb", None, None),
    Row("SQLite", "parquet", "duckdb", 1.0, 1.0),
    Row("SQLite", "parquet", "adbc", 1.0, 1.0),
    Row("PostgreSQL", "csv", "psql", 1.0, None),
    Row("PostgreSQL", "csv", "duckdb", None, None),
    Row("PostgreSQL", "parquet", "duckdb", 1.0, 1.0),
    Row("PostgreSQL", "parquet", "adbc", 1.0, 1.0),
)


def sqlite_target(size: int, folder: str) -> str:
    """Creates a SQLite database with the table; returns its target."""
    source = servers.native("sqlite", servers.Home())["database"]
    path = f"{folder}/{size}.db"
    with sqlite3.connect(path) as con:
        con.execute("attach ? as source", (source,))
        con.execute(load.create("sqlite", TABLE))
        con.execute(f"insert into {TABLE} select * from source.t{size}")
    con.close()
    return f"sqlite:{path}"


def postgres_target(size: int) -> str:
    """Creates the table in PostgreSQL; returns the target."""
    url = servers.url(servers.native("postgres", servers.Home()))
    sql = f"drop table if exists {TABLE}; create table {TABLE} as select * from t{size}; vacuum analyze {TABLE}"
    subprocess.run(["psql", "-X", "-q", url, *(f"-c{part}" for part in sql.split(";"))], check=True)
    return url


def ours(onecopy: str, target: str, form: str, out: str) -> list[str]:
    """The command of onecopy."""
    return [onecopy, "export", target, f"select * from {TABLE}", "-o", out, "--overwrite", "-q"]


def theirs(peer: str, target: str, form: str, out: str) -> list[str]:
    """The command of a peer."""
    if peer == "sqlite3":
        # `.once` writes to the file itself, as the other commands do.
        return ["sqlite3", "-csv", "-header", target.removeprefix("sqlite:"), f".once {out}", f"select * from {TABLE}"]
    if peer == "psql":
        return ["psql", "-X", "-q", target, "-c", f"\\copy (select * from {TABLE}) to '{out}' csv header"]
    return [sys.executable, "-m", "benches.engines.export_peers", f"{peer} {form}", target, out]


class Times(NamedTuple):
    """Seconds: the processor time of a process, its wall-clock time, and the processor time of the
    process and the server (PostgreSQL) together."""

    cpu: float
    wall: float
    both: float


def serves_a_connection(pid: str) -> bool:
    """Whether a process of PostgreSQL serves a connection, or has ended and is not yet counted."""
    try:
        title = Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False
    # The title of a process that has ended is empty.
    return not title or title.startswith(f"postgres: {servers.USER} ".encode())


def server_cpu() -> float:
    """The processor time in seconds that PostgreSQL has used for connections that have ended; waits
    until all have ended."""
    with servers.Home().state() as state:
        pid = state["postgres"]["process"][0]
    while any(serves_a_connection(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()):
        time.sleep(0.01)
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return sum(int(fields[k]) for k in range(11, 15)) / os.sysconf("SC_CLK_TCK")


def run(args: list[str]) -> Times:
    """Runs a process and measures it."""
    before = server_cpu()
    begun = time.perf_counter()
    process = subprocess.Popen(args, cwd=ROOT)
    _, status, used = os.wait4(process.pid, 0)
    taken = time.perf_counter() - begun
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise RuntimeError(f"{args[0]} ended with {process.returncode}")
    cpu = used.ru_utime + used.ru_stime
    return Times(cpu, taken, cpu + server_cpu() - before)


def values(path: str, form: str) -> Iterator[tuple[Any, ...]]:
    """The rows of a file, in a form that is the same for all writers: they differ in the notation of
    numbers and times."""
    if form == "parquet":
        import pyarrow.parquet as parquet

        rows: Any = zip(*(column.to_pylist() for column in parquet.read_table(path).columns), strict=True)
    else:
        with open(path, newline="", encoding="utf-8") as file:
            rows = list(csv.reader(file))[1:]
    for row in rows:
        yield tuple(value_of(cell) for cell in row)


def value_of(cell: Any) -> Any:
    """A number as a float, a time without the T and the zeros at its end, anything else as text."""
    text = "" if cell is None else str(cell)
    try:
        return float(Decimal(text))
    except ArithmeticError:
        return text.replace("T", " ").rstrip("0").rstrip(".") if ":" in text else text


def is_same(first: Any, second: Any) -> bool:
    """Whether two values are equal. sqlite3 writes 15 digits of a float, not always the nearest."""
    if isinstance(first, float) and isinstance(second, float):
        return math.isclose(first, second, rel_tol=2e-14)
    return bool(first == second)


def compare(onecopy: str, targets: dict[str, str], folder: str) -> None:
    """Compares the files of all ways, with few rows.

    Raises:
        RuntimeError: two files have different values.
    """
    for row in ROWS:
        target = targets[row.database]
        files = [f"{folder}/ours.{row.form}", f"{folder}/theirs.{row.form}"]
        run(ours(onecopy, target, row.form, files[0]))
        run(theirs(row.peer, target, row.form, files[1]))
        first, second = (list(values(file, row.form)) for file in files)
        text = f"{row.database}, {row.form}, {row.peer}"
        if (len(first), len(second)) != (FEW, FEW):
            raise RuntimeError(f"{text}: {len(first)} rows, {len(second)} rows")
        for a, b in zip(first, second, strict=True):
            if not all(map(is_same, a, b)):
                raise RuntimeError(f"{text}: {a} is not {b}")
        print(f"{text}: answers agree", flush=True)


def main(once: bool) -> list[dict[str, Any]]:
    """Prints the table; returns the lines of the record."""
    if missing := [name for name in ("sqlite3", "psql") if shutil.which(name) is None]:
        print(f"not installed: {', '.join(missing)}")
        return []
    home = servers.Home()
    servers.start(["sqlite", "postgres"], home)
    arguments = ["load", str(FEW), *([] if once else [str(MANY)])]
    subprocess.run([sys.executable, "-m", "tests.support.servers", *arguments], cwd=ROOT, check=True)
    onecopy = command()
    # Not on /tmp, which may be in memory.
    with tempfile.TemporaryDirectory(dir=ROOT / "benches") as folder:
        compare(onecopy, {"SQLite": sqlite_target(FEW, folder), "PostgreSQL": postgres_target(FEW)}, folder)
        if once:
            return []
        targets = {"SQLite": sqlite_target(MANY, folder), "PostgreSQL": postgres_target(MANY)}
        return [line for row in ROWS for line in measure(row, onecopy, targets[row.database], folder)]


def measure(row: Row, onecopy: str, target: str, folder: str) -> list[dict[str, Any]]:
    """Measures both sides of a row in turns; prints it, and returns the lines of the record."""
    out = f"{folder}/out.{row.form}"
    pairs = []
    for k in range(ROUNDS + 1):
        commands = [ours(onecopy, target, row.form, out), theirs(row.peer, target, row.form, out)]
        times = {}
        for which in (0, 1) if k % 2 else (1, 0):
            times[which] = run(commands[which])
            Path(out).unlink()
        if k:  # The first round warms up.
            pairs.append((times[0], times[1]))
    lines = []
    memory = resident(ours(onecopy, target, row.form, out))
    Path(out).unlink()
    text = f"{row.database} to {row.form}, {row.peer}"
    kinds = [("CPU", row.at_least_cpu), ("wall", row.at_least_wall)]
    if row.database == "PostgreSQL":
        kinds.append(("CPU with the server", None))
    for which, (kind, at_least) in enumerate(kinds):
        mine, peer = (statistics.median(pair[side][which] for pair in pairs) for side in (0, 1))
        ratios = sorted(pair[1][which] / pair[0][which] for pair in pairs)
        ratio = statistics.median(ratios)
        is_short = at_least is not None and ratio < at_least
        print(
            f"{text:30} {kind:20} {mine:>7.2f} s {peer:>7.2f} s {ratio:>6.2f} ({ratios[0]:.2f} - {ratios[-1]:.2f})"
            f"   {at_least or '-'}{'  SHORT' if is_short else ''}",
            flush=True,
        )
        lines.append(
            {
                "row": f"{text}, {kind}",
                "size": MANY,
                "ours_us": mine * 1e6,
                "peer_us": peer * 1e6,
                "ratio": ratio,
                "ratio_min": ratios[0],
                "ratio_max": ratios[-1],
                "at_least": at_least or 0,
            }
        )
    print(f"{'':30} {memory:.1f} MB resident{'  SHORT' if memory > MOST_MEMORY_MB else ''}", flush=True)
    return lines
