"""Measures the costs that the simulation needs, and writes them to the record of this machine.

python -m benches.parts_simulation.measurement [--rows 4000000] [--parts 1000] [--home DIR]

The table has a key with a Zipf distribution. It is planned by that key and by its primary key, and
each part is read several times over one connection; the shortest time is kept, because other
programs may use the processors. Then 1, 2, 4 and 8 processes export rows at once. Client and server
share the processors of this machine and are connected by loopback, so their CPU times are measured
separately. Needs `psql`, `mariadb` and the test servers of `tests/support`.
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
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import accumulate
from pathlib import Path
from typing import Any

from benches.parts_simulation.costs import N_KEYS, zipf_weights
from benches.run import ROOT, commit, machine
from tests.support import servers

TABLE = "part_costs"
QUERY = f"select id, customer, name, price, note, placed from {TABLE}"
#: Rows are stored in the order of `id`; `customer` has a Zipf distribution and a secondary index.
KEYS = ("id", "customer")
FORMATS = ("csv", "parquet")
CONNECTIONS = (1, 2, 4, 8)
N_READINGS = 4
SECRET = "PART_COSTS_DATABASE"
ONECOPY = [sys.executable, "-m", "onecopy"]
TICK_S = 1 / os.sysconf("SC_CLK_TCK")


def _rows(n_rows: int) -> Iterator[tuple[int, int, str, float, str | None, str]]:
    """The rows of the table, the same in each call."""
    random_ = random.Random(7)
    weights = list(accumulate(zipf_weights()))
    # Frequent keys are spread over the values.
    values = random_.sample(range(1, 10 * N_KEYS), N_KEYS)
    begin = datetime.datetime(2020, 1, 1)
    for first in range(1, n_rows + 1, 10_000):
        keys = random_.choices(values, cum_weights=weights, k=min(10_000, n_rows + 1 - first))
        for i, key in enumerate(keys, first):
            note = None if i % 3 else f"Lieferung {i % 97}, für Kunde №{key}"
            placed = begin + datetime.timedelta(seconds=37 * i)
            yield i, key, f"customer {key * 7919 % 1_000_003}", (i * 31 % 99_991) / 100, note, str(placed)


def load(server: str, home: servers.Home, n_rows: int) -> tuple[str, int | None]:
    """Creates the table with `n_rows` rows, unless it exists.

    Returns the connection string and the process of the server.
    """
    columns = "id bigint primary key, customer int not null, name varchar(40) not null, price double precision"
    table = f"create table {TABLE} ({columns}, note text, placed timestamp)"
    index = f"create index {TABLE}_customer on {TABLE} (customer, id)"
    if server == "sqlite":
        path = home.state_dir / f"parts-{n_rows}.db"
        if not path.exists():
            unfinished = path.with_suffix(".partial")
            unfinished.unlink(missing_ok=True)
            with sqlite3.connect(unfinished) as con:
                con.execute(table.replace("bigint", "integer"))
                con.executemany(f"insert into {TABLE} values (?, ?, ?, ?, ?, ?)", _rows(n_rows))
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
    if counted.stdout.strip() != str(n_rows):
        with tempfile.NamedTemporaryFile("w", suffix=".tsv", encoding="utf-8") as file:
            for row in _rows(n_rows):
                file.write("\t".join("\\N" if value is None else str(value) for value in row) + "\n")
            file.flush()
            commands = (f"drop table if exists {TABLE}", table, copy.format(file.name), index, analyze)
            for command in commands:
                subprocess.run([*client, command], check=True, stdout=subprocess.DEVNULL)
    with home.state() as state:
        process = int(state[server]["process"][0])
    return servers.odbc_string("postgres_native" if server == "postgres" else server, home), process


def _taken(function: Callable[[], object]) -> float:
    begun = time.perf_counter()
    function()
    return time.perf_counter() - begun


def _least(function: Callable[[], object], n_times: int) -> float:
    return round(min(_taken(function) for _ in range(n_times)), 6)


def _first_row_s(connection: Any, part: Any) -> float:
    """The least time until the first row of a part."""
    taken = []
    for _ in range(N_READINGS):
        begun = time.perf_counter()
        rows = part.execute(connection)
        rows.fetchone()
        taken.append(time.perf_counter() - begun)
        rows.fetchall()  # The next statement would wait for these rows.
    return min(taken)


def part_costs(database: str, server: int | None, n_parts: int, key: str) -> dict[str, Any]:
    """Plans by a key and reads each part as CSV over one connection."""
    import onecopy
    from onecopy import parts

    with onecopy.connect(database) as connection:
        begun = time.perf_counter()
        plan = parts.plan(connection, QUERY, parts=n_parts, key=(key,))
        times = {"plan_s": time.perf_counter() - begun}
        first_s = [_first_row_s(connection, part) for part in plan.parts[:: max(1, n_parts // 50)]]
        rows, readings = [0] * len(plan.parts), []
        server_before, client_before = _cpu_s(server), time.process_time()
        for _ in range(N_READINGS):
            readings.append([])
            for i, part in enumerate(plan.parts):
                begun = time.perf_counter()
                stream = part.execute(connection).csv()
                for _chunk in stream:
                    pass
                readings[-1].append(time.perf_counter() - begun)
                rows[i] = stream.n_rows
        times["server_cpu_s"] = (_cpu_s(server) - server_before) / N_READINGS
        times["client_cpu_s"] = (time.process_time() - client_before) / N_READINGS
        times["first_row_s"] = statistics.median(first_s)
    seconds = [round(min(each), 6) for each in zip(*readings, strict=True)]
    print(f"  by {key}: {len(rows)} parts, {sum(rows)} rows, {sum(seconds):.2f} s, {times}", flush=True)
    columns = {"rows": rows, "estimated": [part.rows for part in plan.parts], "seconds": seconds}
    return {"key": key, **{name: round(value, 6) for name, value in times.items()}, "parts": columns}


def set_up_costs(database: str, folder: Path) -> dict[str, float]:
    """The least times to connect, to start the command, and to read a part in a task of an engine;
    the median time to commit a file of 8 MiB, which is a sync of the file and one of its directory."""
    import onecopy
    from onecopy import parts
    from onecopy._engine import _columns, _reading

    def connect() -> None:
        with onecopy.connect(database) as connection:
            connection.execute("select 1").fetchall()

    def commit_file() -> float:
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
        return time.perf_counter() - begun

    costs = {"connect_s": _least(connect, 50)}
    costs["start_s"] = _least(lambda: subprocess.run([*ONECOPY, "--version"], check=True, capture_output=True), 15)
    costs["commit_s"] = round(statistics.median(commit_file() for _ in range(25)), 6)
    os.environ[SECRET] = database
    with onecopy.connect(database) as connection:
        plan = parts.plan(connection, QUERY, parts=40, key=("id",))
        schema = _columns.schema(connection, plan.parts[0], None)
    of_engine = [
        (_taken(lambda: [batch.num_rows for batch in _reading.batches(f"env:{SECRET}", part, schema)]), part.rows)
        for part in plan.parts
    ]
    costs["engine_us_per_row"] = round(min(taken / (rows or 1) for taken, rows in of_engine) * 1e6, 3)
    print(f"  {costs}", flush=True)
    return costs


def _cpu_s(pid: int | None) -> float:
    """The CPU time of a process, of its children, and of those that have ended, in seconds."""
    if pid is None:
        return 0.0

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
    commands = []
    for i in range(n_connections):
        first = i * n_rows + 1
        sql = f"{QUERY} where id >= {first} and id < {first + n_rows}"
        target = ["-o", str(folder / f"{i}.out"), "--format", output_format, "--no-manifest"]
        commands.append([*ONECOPY, "export", "-q", database, sql, *target])
    server_before, wire_before, begun = _cpu_s(server), _loopback_bytes(), time.perf_counter()
    processes = [subprocess.Popen(command) for command in commands]
    client_s = 0.0
    for process in processes:
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            raise SystemExit(f"an export ended with exit code {process.returncode}")
        client_s += usage.ru_utime + usage.ru_stime
    measured = {"wall_s": time.perf_counter() - begun, "client_cpu_s": client_s}
    measured["server_cpu_s"] = _cpu_s(server) - server_before
    wire = _loopback_bytes() - wire_before if server else 0
    n_bytes = 0
    for file in folder.glob("*.out"):
        n_bytes += file.stat().st_size
        file.unlink()
    counts = {"rows": n_connections * n_rows, "file_bytes": n_bytes, "wire_bytes": wire}
    print(f"  {output_format:8} {n_connections} connections {counts['rows'] / measured['wall_s']:>12,.0f} rows/s")
    rounded = {name: round(value, 4) for name, value in measured.items()}
    return {"format": output_format, "connections": n_connections, **counts, **rounded}


def measure(name: str, home: servers.Home, n_rows: int, n_parts: int, n_rounds: int) -> dict[str, Any]:
    """Measures one database."""
    print(name, flush=True)
    database, server = load(name, home, n_rows)
    with tempfile.TemporaryDirectory(dir=home.state_dir) as folder:
        set_up = set_up_costs(database, Path(folder))
        plans = [part_costs(database, server, n_parts, key) for key in KEYS]
        for plan in plans:
            if sum(plan["parts"]["rows"]) != n_rows:
                raise SystemExit(f"the parts by {plan['key']} have not the {n_rows} rows of the table")
        runs = [
            throughput(database, server, output_format, n, n_rows // max(CONNECTIONS), Path(folder))
            for _ in range(n_rounds)
            for n in CONNECTIONS
            for output_format in FORMATS
        ]
    return {"set_up": set_up, "plans": plans, "throughput": runs}


def main() -> int:
    """Runs the command line; returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--rows", type=int, default=4_000_000, help="rows of the table")
    parser.add_argument("--parts", type=int, default=1_000, help="parts of the plan")
    parser.add_argument("--rounds", type=int, default=3, help="rounds of each throughput")
    parser.add_argument("--home", type=Path, help="the directory of the test servers and of the SQLite file")
    parser.add_argument("--output", type=Path, help="the file to write [default: in the record of this machine]")
    parser.add_argument("--commit", default=commit(), help="the commit of the build [default: of the checkout]")
    parser.add_argument("--databases", nargs="+", default=["postgres", "mariadb", "sqlite"])
    arguments = parser.parse_args()
    home = servers.Home(arguments.home)
    today = str(datetime.date.today())
    costs: dict[str, Any] = {"machine": machine(), "date": today, "commit": arguments.commit, "rows": arguments.rows}
    costs |= {"python": platform.python_version(), "load_average": [os.getloadavg()[0]]}
    costs["databases"] = {
        name: measure(name, home, arguments.rows, arguments.parts, arguments.rounds) for name in arguments.databases
    }
    servers.stop_servers([name for name in arguments.databases if name != "sqlite"], home)
    costs["load_average"].append(os.getloadavg()[0])
    path = arguments.output or ROOT / "benches" / "record" / costs["machine"] / f"{today}-part-costs.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(costs, separators=(",", ":")).replace('{"key"', '\n{"key"') + "\n", encoding="utf-8")
    print(f"measured: {path}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
