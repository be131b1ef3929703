"""Measures the costs that the simulation needs, and writes them to the record of this machine.

python -m benches.parts_simulation.measurement [--rows 4000000] [--parts 1000] [--home DIR]

The table has a key with a Zipf distribution. It is planned by that key, and each part is read. Then
1, 2, 4 and 8 processes export rows at once, in each format. Client and server share the processors
of this machine and are connected by loopback, so their CPU times are measured separately. Needs the
command `onecopy` of this interpreter, `psql`, and the test servers of `tests/support`.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import platform
import random
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from itertools import accumulate
from pathlib import Path
from typing import Any

from benches.run import ROOT, commit, machine
from tests.support import servers

TABLE = "part_costs"
COLUMNS = "id, key, name, price, note, placed"
FORMATS = ("csv", "ndjson", "arrow", "parquet")
CONNECTIONS = (1, 2, 4, 8)
#: The exponent of the Zipf distribution, and its number of keys.
EXPONENT, N_KEYS = 1.1, 100_000
ONECOPY = [sys.executable, "-m", "onecopy"]
TICK_S = 1 / os.sysconf("SC_CLK_TCK")


def _rows(n_rows: int) -> Iterator[tuple[int, int, str, float, str | None, str]]:
    """The rows of the table, the same in each call."""
    random_ = random.Random(7)
    weights = list(accumulate((k + 1) ** -EXPONENT for k in range(N_KEYS)))
    # Frequent keys are spread over the values.
    values = random_.sample(range(1, 10 * N_KEYS), N_KEYS)
    begin = datetime.datetime(2020, 1, 1)
    for first in range(1, n_rows + 1, 10_000):
        keys = random_.choices(values, cum_weights=weights, k=min(10_000, n_rows + 1 - first))
        for i, key in enumerate(keys, first):
            note = None if i % 3 else f"Lieferung {i % 97}, für Kunde №{key}"
            placed = begin + datetime.timedelta(seconds=37 * i)
            yield i, key, f"customer {key * 7919 % 1_000_003}", (i * 31 % 99_991) / 100, note, str(placed)


def load(server: str, home: servers.Home, n_rows: int) -> str:
    """Creates the table with `n_rows` rows, unless it exists; returns the connection string."""
    types = "id bigint primary key, key int not null, name text not null, price double precision, note text"
    table = f"create table {TABLE} ({types}, placed timestamp)"
    index = f"create index {TABLE}_key on {TABLE} (key, id)"
    if server == "sqlite":
        path = home.state_dir / f"parts-{n_rows}.db"
        if not path.exists():
            unfinished = path.with_suffix(".partial")
            unfinished.unlink(missing_ok=True)
            with sqlite3.connect(unfinished) as con:
                con.execute("pragma journal_mode = off")
                con.execute(table.replace("bigint", "integer"))
                con.executemany(f"insert into {TABLE} values (?, ?, ?, ?, ?, ?)", _rows(n_rows))
                con.execute(index)
                con.execute("analyze")
            con.close()
            unfinished.rename(path)
        return f"sqlite:{path}?mode=ro"
    failed = servers.start(["postgres"], home)
    if failed:
        raise SystemExit(f"`postgres` cannot be started: {failed['postgres']}")
    url = servers.url(servers.native("postgres", home))
    psql = ["psql", "-q", "-v", "ON_ERROR_STOP=1", url]
    counted = subprocess.run(
        [*psql, "-Atc", f"select count(*) from {TABLE}"], capture_output=True, text=True, check=False
    )
    if counted.stdout.strip() != str(n_rows):
        with tempfile.NamedTemporaryFile("w", suffix=".tsv", encoding="utf-8") as file:
            for row in _rows(n_rows):
                file.write("\t".join("\\N" if value is None else str(value) for value in row) + "\n")
            file.flush()
            commands = [f"drop table if exists {TABLE}", table, f"\\copy {TABLE} from '{file.name}'", index]
            for command in (*commands, f"vacuum (analyze) {TABLE}"):
                subprocess.run([*psql, "-c", command], check=True)
    return url


def _plan(database: str, n_parts: int, key: str) -> dict[str, Any]:
    """The plan of the table by a key, and the time that it took."""
    begun = time.perf_counter()
    command = [*ONECOPY, "plan", "-q", database, f"select {COLUMNS} from {TABLE}", "--parts", str(n_parts)]
    done = subprocess.run([*command, "--key", key, "--format", "json"], capture_output=True, text=True, check=True)
    return {**json.loads(done.stdout), "plan_s": time.perf_counter() - begun}


def part_costs(database: str, server: int | None, n_parts: int, key: str) -> dict[str, Any]:
    """Plans by a key and reads each part as CSV over one connection."""
    import onecopy

    plan = _plan(database, n_parts, key)
    server_before, client_before = _cpu_s(server) if server else 0.0, time.process_time()
    rows, estimated, n_bytes, seconds = [], [], [], []
    with onecopy.connect(database) as connection:
        for part in plan["parts"]:
            values = [int(value["value"]) for value in part["values"]]
            begun = time.perf_counter()
            stream = connection.execute(part["sql"], values).csv()
            n_bytes.append(sum(len(chunk) for chunk in stream))
            seconds.append(round(time.perf_counter() - begun, 6))
            rows.append(stream.n_rows)
            estimated.append(part["rows"])
    parts = {"rows": rows, "estimated": estimated, "bytes": n_bytes, "seconds": seconds}
    times = {
        "plan_s": plan["plan_s"],
        "server_cpu_s": _cpu_s(server) - server_before if server else 0.0,
        "client_cpu_s": time.process_time() - client_before,
    }
    return {"key": key, **{name: round(value, 3) for name, value in times.items()}, "parts": parts}


def _median(function: Any, n_times: int) -> float:
    taken = []
    for _ in range(n_times):
        begun = time.perf_counter()
        function()
        taken.append(time.perf_counter() - begun)
    return round(statistics.median(taken), 6)


def set_up_costs(database: str, folder: Path) -> dict[str, float]:
    """The medians of the times to connect, to start a process that exports one row, and to commit a
    file of 8 MiB."""
    import onecopy

    def connect() -> None:
        with onecopy.connect(database) as connection:
            connection.execute("select 1").fetchall()

    def start() -> None:
        target = str(folder / "one.csv")
        subprocess.run([*ONECOPY, "export", "-q", database, "select 1", "-o", target, "--overwrite"], check=True)

    def commit_file() -> None:
        temporary = folder / "commit.partial"
        with open(temporary, "wb") as file:
            file.write(bytes(8 << 20))
            file.flush()
            begun = time.perf_counter()
            os.fsync(file.fileno())
        temporary.rename(folder / "commit")
        directory = os.open(folder, os.O_RDONLY)
        os.fsync(directory)
        os.close(directory)
        commits.append(time.perf_counter() - begun)

    commits: list[float] = []
    costs = {"connect_s": _median(connect, 50), "export_one_row_s": _median(start, 15)}
    _median(commit_file, 15)
    return {**costs, "commit_s": round(statistics.median(commits), 6)}


def _cpu_s(pid: int) -> float:
    """The CPU time of a process, of its children, and of those that have ended, in seconds."""

    def of(process: str) -> float:
        fields = Path(f"/proc/{process}/stat").read_text(encoding="ascii").rsplit(")", 1)[1].split()
        # Of a child, those of its own children are added too; a backend has none.
        return sum(map(int, fields[11:15])) * TICK_S

    total = of(str(pid))
    for child in Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii").split():
        with suppress(FileNotFoundError):
            total += of(child)
    return total


def _loopback_bytes() -> int:
    """The bytes that the loopback interface has received."""
    for line in Path("/proc/net/dev").read_text(encoding="ascii").splitlines():
        name, _, counts = line.partition(":")
        if name.strip() == "lo":
            return int(counts.split()[0])
    return 0


def throughput(
    database: str, server: int | None, output_format: str, n_connections: int, n_rows: int, folder: Path
) -> dict[str, Any]:
    """Exports `n_rows` rows in each of `n_connections` processes at once, each to its own file."""
    total = sum(1 for _ in folder.glob("*.out"))
    assert total == 0
    commands = []
    for i in range(n_connections):
        first = i * n_rows + 1
        sql = f"select {COLUMNS} from {TABLE} where id >= {first} and id < {first + n_rows}"
        target = ["-o", str(folder / f"{i}.out"), "--format", output_format, "--no-manifest"]
        commands.append([*ONECOPY, "export", "-q", database, sql, *target])
    server_before = _cpu_s(server) if server else 0.0
    wire_before, begun = _loopback_bytes(), time.perf_counter()
    processes = [subprocess.Popen(command) for command in commands]
    client_s = 0.0
    for process in processes:
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            raise SystemExit(f"an export ended with exit code {process.returncode}")
        client_s += usage.ru_utime + usage.ru_stime
    wall_s = time.perf_counter() - begun
    server_s = _cpu_s(server) - server_before if server else 0.0
    wire = _loopback_bytes() - wire_before if server else 0
    n_bytes = 0
    for file in folder.glob("*.out"):
        n_bytes += file.stat().st_size
        file.unlink()
    measured = {"wall_s": wall_s, "client_cpu_s": client_s, "server_cpu_s": server_s}
    rounded = {name: round(value, 4) for name, value in measured.items()}
    counts = {"rows": n_connections * n_rows, "file_bytes": n_bytes, "wire_bytes": wire}
    return {"format": output_format, "connections": n_connections, **counts, **rounded}


def _all_throughputs(
    database: str, server: int | None, rows_per_connection: int, rounds: int, folder: Path
) -> list[dict[str, Any]]:
    """The runs of all formats and numbers of connections; the formats take turns."""
    found = []
    for k in range(rounds):
        for n_connections in CONNECTIONS:
            for output_format in FORMATS:
                run = throughput(database, server, output_format, n_connections, rows_per_connection, folder)
                rate = run["rows"] / run["wall_s"]
                print(f"  {k} {output_format:8} {n_connections} connections {rate:>12,.0f} rows/s", flush=True)
                found.append(run)
    return found


def main() -> int:
    """Runs the command line; returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--rows", type=int, default=4_000_000, help="rows of the table")
    parser.add_argument("--parts", type=int, default=1_000, help="parts of the plan")
    parser.add_argument("--rounds", type=int, default=3, help="rounds of each throughput")
    parser.add_argument("--home", type=Path, help="the directory of the test servers and of the SQLite file")
    parser.add_argument("--output", type=Path, help="the file to write [default: in the record of this machine]")
    parser.add_argument(
        "--commit", default=commit(), help="the commit of the measured build [default: of the checkout]"
    )
    arguments = parser.parse_args()
    home = servers.Home(arguments.home)
    costs: dict[str, Any] = {
        "machine": machine(),
        "date": str(datetime.date.today()),
        "commit": arguments.commit,
        "python": platform.python_version(),
        "rows": arguments.rows,
        "load_average_before": os.getloadavg()[0],
        "databases": {},
    }
    for name in ("postgres", "sqlite"):
        print(name, flush=True)
        database = load(name, home, arguments.rows)
        server = None
        if name == "postgres":
            with home.state() as state:
                server = int(state["postgres"]["process"][0])
        with tempfile.TemporaryDirectory(dir=home.state_dir) as folder:
            measured: dict[str, Any] = {"set_up": set_up_costs(database, Path(folder))}
            print(f"  {measured['set_up']}", flush=True)
            measured["plans"] = []
            for key in ("key", "id"):
                measured["plans"].append(part_costs(database, server, arguments.parts, key))
                rows = measured["plans"][-1]["parts"]["rows"]
                seconds = sum(measured["plans"][-1]["parts"]["seconds"])
                print(f"  by {key}: {len(rows)} parts, {sum(rows)} rows, {seconds:.2f} s", flush=True)
                if sum(rows) != arguments.rows:
                    raise SystemExit(f"the parts have {sum(rows)} rows, and the table {arguments.rows}")
            size = arguments.rows // max(CONNECTIONS)
            measured["throughput"] = _all_throughputs(database, server, size, arguments.rounds, Path(folder))
        costs["databases"][name] = measured
    servers.stop_servers(["postgres"], home)
    costs["load_average_after"] = os.getloadavg()[0]
    path = arguments.output or ROOT / "benches" / "record" / costs["machine"] / f"{costs['date']}-part-costs.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(costs, separators=(",", ":")).replace('{"key"', '\n{"key"') + "\n", encoding="utf-8")
    print(f"measured: {path}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
