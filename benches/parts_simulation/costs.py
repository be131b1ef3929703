"""Measured costs, read from a file that `measurement` has written."""

from __future__ import annotations

import json
import statistics
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

RECORD = Path(__file__).resolve().parents[1] / "record"
#: The Zipf distribution of a key of the measured table: its number of keys, and its exponent.
N_KEYS, EXPONENT = 100_000, 1.1


def zipf_weights() -> list[float]:
    """The weights of the keys, the most frequent one first."""
    return [(k + 1) ** -EXPONENT for k in range(N_KEYS)]


class Part(NamedTuple):
    """A part: its rows, their estimate, and the time to read them over one connection."""

    n_rows: int
    n_estimated: int
    seconds: float


@dataclass(frozen=True)
class Costs:
    """The costs of one database and one plan."""

    parts: tuple[Part, ...]
    plan_s: float
    connect_s: float
    #: The start of a process, without its connection.
    start_s: float
    #: A sync of a file or directory; a commit of a file has two.
    sync_s: float
    #: The time to the first row of a part, and the time of each row.
    first_row_s: float
    row_s: float
    #: The CPU time of the server for each second in which a part is read over one connection.
    server_share: float
    #: The bytes that the server sends for each row.
    wire_bytes: float


class Throughput(NamedTuple):
    """Several runs with the same format and number of connections: the highest rate, because other
    programs used the machine, and the medians of the CPU times of a row."""

    output_format: str
    n_connections: int
    rows_per_s: float
    client_us: float
    server_us: float
    file_bytes: float
    wire_bytes: float


def newest() -> Path:
    """The newest file of costs in the record."""
    return max(RECORD.glob("*/*-part-costs.json"), key=lambda path: path.name)


def read(path: Path) -> dict[str, Any]:
    """Reads a file of costs."""
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return found


def costs_of(measured: dict[str, Any], database: str, key: str) -> Costs:
    """The costs of a plan of `database` by the column `key`."""
    of_database = measured["databases"][database]
    set_up = of_database["set_up"]
    plan = next(plan for plan in of_database["plans"] if plan["key"] == key)
    parts = tuple(map(Part, *(plan["parts"][name] for name in ("rows", "estimated", "seconds"))))
    seconds = sum(part.seconds for part in parts)
    return Costs(
        parts=parts,
        plan_s=plan["plan_s"],
        connect_s=set_up["connect_s"],
        start_s=set_up["start_s"],
        sync_s=set_up["commit_s"] / 2,
        first_row_s=plan["first_row_s"],
        row_s=max(0.0, seconds - plan["first_row_s"] * len(parts)) / sum(part.n_rows for part in parts),
        # The server is the process itself if it is a library.
        server_share=(plan["server_cpu_s"] or plan["client_cpu_s"]) / seconds,
        wire_bytes=throughputs(measured, database)[0].wire_bytes,
    )


def throughputs(measured: dict[str, Any], database: str) -> list[Throughput]:
    """The throughputs of a database, by format and number of connections."""
    groups: dict[tuple[str, int], list[dict[str, Any]]] = {}
    for run in measured["databases"][database]["throughput"]:
        groups.setdefault((run["format"], run["connections"]), []).append(run)
    found = []
    for kind, runs in groups.items():
        names = ("client_cpu_s", "server_cpu_s", "file_bytes", "wire_bytes")
        client, server, file, wire = (statistics.median(run[name] / run["rows"] for run in runs) for name in names)
        rows_per_s = max(run["rows"] / run["wall_s"] for run in runs)
        found.append(Throughput(*kind, rows_per_s, client * 1e6, server * 1e6, file, wire))
    return found
