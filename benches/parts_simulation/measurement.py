"""Measures the costs that the simulation needs, and writes them to the record of this machine.

python -m benches.parts_simulation.measurement [--home DIR] [--commit COMMIT]

The table has a key with a Zipf distribution and a secondary index. It is planned by that key and by
its primary key, and each part is read several times over one connection; the shortest time is kept,
because other programs may use the processors. Then 1, 2, 4 and 8 processes export rows at once.
Client and server share the processors of this machine and are connected by loopback, so their CPU
times are measured separately. Needs `psql`, `mariadb` and the test servers of `tests/support`.
"""

from __future__ import annotations

import argparse
import datetime
import functools
import json
import math
import os
import platform
import random
import resource
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import accumulate
from pathlib import Path
from typing import Any

import onecopy
from benches.parts_simulation.scenarios import N_KEYS, zipf_weights
from benches.run import ROOT, commit, machine
from onecopy import parts
from onecopy._engine import _columns, _reading
from tests.support import servers

N_ROWS, N_PARTS = 4_000_000, 1_000
TABLE = "part_costs"
QUERY = f"select id, customer, name, price, note, placed from {TABLE}"
FORMATS = ("csv", "parquet")
CONNECTIONS = (1, 2, 4, 8)
N_READINGS, N_ROUNDS = 4, 3
SECRET = "PART_COSTS_DATABASE"
ONECOPY = [sys.executable, "-m", "onecopy"]
TICK_S = 1 / os.sysconf("SC_CLK_TCK")


def _rows() -> Iterator[tuple[int, int, str, float, str | None, str]]:
    """The rows of the table, the same in each call."""
    random_ = random.Random(7)
    # Frequent keys are spread over the values.
    values = random_.sample(range(1, 10 * N_KEYS), N_KEYS)
    keys = random_.choices(values, cum_weights=list(accumulate(zipf_weights())), k=N_ROWS)
    begin = datetime.datetime(2020, 1, 1)
    for i, key in enumerate(keys, 1):
        note = None if i % 3 else f"Lieferung {i % 97}, für Kunde №{key}"
        placed = begin + datetime.timedelta(seconds=37 * i)
        yield i, key, f"customer {key * 7919 % 1_000_003}", (i * 31 % 99_991) / 100, note, str(placed)


def load(server: str, home: servers.Home) -> tuple[str, int | None]:
    """Creates the table unless it exists; returns the connection string and the server's process."""
    columns = "id bigint primary key, customer int not null, name varchar(40) not null, price double precision"
    table = f"create table {TABLE} ({columns}, note text, placed timestamp)"
    index = f"create index {TABLE}_customer on {TABLE} (customer, id)"
    if server == "sqlite":
        path = home.state_dir / "part-costs.db"
        if not path.exists():
            unfinished = path.with_suffix(".partial")
            unfinished.unlink(missing_ok=True)
            with sqlite3.connect(unfinished) as con:
                con.execute(table.replace("bigint", "integer"))
                con.executemany(f"insert into {TABLE} values (?, ?, ?, ?, ?, ?)", _rows())
                con.execute(index)
            con.close()
            unfinished.rename(path)
        return f"sqlite:{path}?mode=ro", None
    failed = servers.start([server], home)
    if failed:
        raise SystemExit(f"`{server}` cannot be started: {failed[server]}")
    keywords = servers.native(server, home)
    if server == "postgres":
        client = ["psql", "-q", "-v", "ON_ERROR_STOP=1", "-At", servers.url(keywords), "-c"]
        copy, analyze = f"\\copy {TABLE} from '{{}}'", f"vacuum (analyze) {TABLE}"
    else:
        login = [f"--{name}={keywords[name]}" for name in ("host", "port", "user", "password", "database")]
        client = ["mariadb", "--no-defaults", "-N", "--local-infile", *login, "-e"]
        copy, analyze = f"load data local infile '{{}}' into table {TABLE}", f"analyze table {TABLE}"
    counted = subprocess.run([*client, f"select count(*) from {TABLE}"], capture_output=True, text=True, check=False)
    if counted.stdout.strip() != str(N_ROWS):
        with tempfile.NamedTemporaryFile("w", suffix=".tsv", encoding="utf-8") as file:
            for row in _rows():
                file.write("\t".join("\\N" if value is None else str(value) for value in row) + "\n")
            file.flush()
            for command in (f"drop table if exists {TABLE}", table, copy.format(file.name), index, analyze):
                subprocess.run([*client, command], check=True, stdout=subprocess.DEVNULL)
    with home.state() as state:
        process = int(state[server]["process"][0])
    return servers.odbc_string("postgres_native" if server == "postgres" else server, home), process


def _elapsed_s(function: Callable[[], object]) -> float:
    begun = time.perf_counter()
    function()
    return time.perf_counter() - begun


def part_costs(database: str, server: int | None, key: str) -> dict[str, Any]:
    """Plans by a key and reads each part as CSV over one connection."""
    with onecopy.connect(database) as connection:
        begun = time.perf_counter()
        plan = parts.plan(connection, QUERY, parts=N_PARTS, key=(key,))
        plan_s = time.perf_counter() - begun
        rows: list[int] = []
        seconds = [math.inf] * len(plan.parts)
        server_before, client_before = _cpu_s(server), time.process_time()
        for _ in range(N_READINGS):
            rows.clear()
            for i, part in enumerate(plan.parts):
                begun = time.perf_counter()
                stream = part.execute(connection).csv()
                for _chunk in stream:
                    pass
                seconds[i] = min(seconds[i], round(time.perf_counter() - begun, 6))
                rows.append(stream.n_rows)
        server_s, client_s = _cpu_s(server) - server_before, time.process_time() - client_before
    if sum(rows) != N_ROWS:
        raise SystemExit(f"the parts by {key} have {sum(rows)} rows, and the table {N_ROWS}")
    # A database that is a library does its work in the client.
    share = (server_s or client_s) / N_READINGS / sum(seconds)
    costs = {"plan_s": round(plan_s, 3), "server_share": round(share, 3)}
    print(f"  by {key}: {sum(seconds):.2f} s, {costs}", flush=True)
    return {**costs, "rows": rows, "seconds": seconds}


def set_up_costs(database: str, folder: Path) -> dict[str, float]:
    """The least times to connect, of a statement with one row, to start the command, and to read a row
    in a task of an engine; the median time of a sync of a file of 8 MiB or of its directory."""

    def connect() -> None:
        with onecopy.connect(database) as connection:
            connection.execute("select 1").fetchall()

    def start() -> None:
        subprocess.run([*ONECOPY, "--version"], check=True, stdout=subprocess.DEVNULL)

    syncs = []
    for i in range(25):
        with open(folder / str(i), "wb") as file:
            file.write(bytes(8 << 20))
            file.flush()
            syncs.append(_elapsed_s(functools.partial(os.fsync, file.fileno())))
    os.environ[SECRET] = database
    with onecopy.connect(database) as connection:
        plan = parts.plan(connection, QUERY, parts=40, key=("id",))
        schema = _columns.schema(connection, plan.parts[0], None)
        one_row = f"{QUERY} where id >= {N_ROWS // 2} and id < {N_ROWS // 2 + 1}"
        statement_s = min(_elapsed_s(lambda: connection.execute(one_row).fetchall()) for _ in range(50))

    def task(part: parts.PartSpec) -> float:
        batches = _reading.batches(f"env:{SECRET}", part, schema)
        return _elapsed_s(lambda: deque(batches, maxlen=0)) / (part.rows or 1)

    costs = {
        "connect_s": min(_elapsed_s(connect) for _ in range(50)),
        "statement_s": statement_s,
        "start_s": min(_elapsed_s(start) for _ in range(15)),
        "sync_s": statistics.median(syncs),
        "engine_row_s": min(map(task, plan.parts)),
    }
    print(f"  {costs}", flush=True)
    return {name: round(value, 8) for name, value in costs.items()}


def _cpu_s(pid: int | None) -> float:
    """The CPU time of a server, of its children, and of those that have ended, in seconds."""
    ticks = 0
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii").split() if pid else []
    for process in [pid, *children] if pid else []:
        with suppress(FileNotFoundError):
            stat = Path(f"/proc/{process}/stat").read_text(encoding="ascii")
            ticks += sum(map(int, stat.rsplit(")", 1)[1].split()[11:15]))
    return ticks * TICK_S


def _loopback_bytes() -> int:
    """The bytes that the loopback interface has received."""
    lines = Path("/proc/net/dev").read_text(encoding="ascii").splitlines()
    return next(int(line.split(":")[1].split()[0]) for line in lines if line.strip().startswith("lo:"))


def throughput(
    database: str, server: int | None, output_format: str, n_connections: int, folder: Path
) -> dict[str, float]:
    """Exports rows in each of `n_connections` processes at once, each to its own file.

    Returns the highest rate of all rounds, and the medians of the other costs of a row.
    """
    n_rows = N_ROWS // max(CONNECTIONS)
    commands = []
    for i in range(n_connections):
        sql = f"{QUERY} where id > {i * n_rows} and id <= {(i + 1) * n_rows}"
        target = ["-o", str(folder / f"{i}.out"), "--format", output_format, "--no-manifest", "--overwrite"]
        commands.append([*ONECOPY, "export", "-q", database, sql, *target])
    rounds = []
    for _ in range(N_ROUNDS):
        server_before, wire_before, begun = _cpu_s(server), _loopback_bytes(), time.perf_counter()
        client_before = resource.getrusage(resource.RUSAGE_CHILDREN)
        processes = [subprocess.Popen(command) for command in commands]
        if sum(process.wait() for process in processes):
            raise SystemExit("an export has failed")
        wall_s = time.perf_counter() - begun
        client_after = resource.getrusage(resource.RUSAGE_CHILDREN)
        client_s = client_after.ru_utime - client_before.ru_utime + client_after.ru_stime - client_before.ru_stime
        costs = {"wall_s": wall_s, "client_s": client_s, "server_s": _cpu_s(server) - server_before}
        costs["wire_bytes"] = _loopback_bytes() - wire_before if server else 0
        costs["file_bytes"] = sum(file.stat().st_size for file in folder.glob("*.out"))
        rounds.append({name: cost / n_rows / n_connections for name, cost in costs.items()})
    for file in folder.glob("*.out"):
        file.unlink()
    found = {name: statistics.median(each[name] for each in rounds) for name in rounds[0]}
    found["rows_per_s"] = 1 / min(each["wall_s"] for each in rounds)
    del found["wall_s"]
    print(f"  {output_format:8} {n_connections} connections {found['rows_per_s']:>12,.0f} rows/s", flush=True)
    return {name: round(value, 8) for name, value in found.items()}


def measure(name: str, home: servers.Home) -> dict[str, Any]:
    """Measures one database."""
    print(name, flush=True)
    database, server = load(name, home)
    with tempfile.TemporaryDirectory(dir=home.state_dir) as path:
        folder = Path(path)
        return {
            **set_up_costs(database, folder),
            "plans": {key: part_costs(database, server, key) for key in ("id", "customer")},
            "throughput": {
                output_format: {str(n): throughput(database, server, output_format, n, folder) for n in CONNECTIONS}
                for output_format in FORMATS
            },
        }


def main() -> int:
    """Runs the command line; returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--home", type=Path, help="the directory of the test servers and of the SQLite file")
    parser.add_argument("--commit", default=commit(), help="the commit of the build [default: of the checkout]")
    arguments = parser.parse_args()
    home = servers.Home(arguments.home)
    today = str(datetime.date.today())
    costs: dict[str, Any] = {"machine": machine(), "date": today, "commit": arguments.commit, "rows": N_ROWS}
    costs |= {"python": platform.python_version(), "load_average": [os.getloadavg()[0]]}
    costs["databases"] = {name: measure(name, home) for name in ("postgres", "mariadb", "sqlite")}
    servers.stop_servers(["postgres", "mariadb"], home)
    costs["load_average"].append(os.getloadavg()[0])
    path = ROOT / "benches" / "record" / costs["machine"] / f"{today}-part-costs.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(costs, separators=(",", ":")).replace('"rows":[', '\n"rows":[') + "\n", encoding="utf-8")
    print(f"measured: {path}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
