"""Measured costs, read from a file that `measurement` has written."""

from __future__ import annotations

import json
import statistics
from dataclasses import dataclass
from pathlib import Path
from typing import Any

RECORD = Path(__file__).resolve().parents[1] / "record"


@dataclass(frozen=True)
class Part:
    """A part that was read without others at the same time: its rows, their estimate, and its time."""

    n_rows: int
    n_estimated: int
    seconds: float


@dataclass(frozen=True)
class Costs:
    """The costs of one database and one plan."""

    parts: tuple[Part, ...]
    connect_s: float
    #: The start of a process, without its connection.
    start_s: float
    #: A sync of a file or directory; a commit of a file has two.
    sync_s: float
    #: The CPU time of the server for each second of such a part.
    server_share: float


@dataclass(frozen=True)
class Throughput:
    """Several runs with the same format and number of connections: the highest rate, because other
    programs used the machine, and the medians of the other costs, per row."""

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
    parts = plan["parts"]
    seconds = sum(parts["seconds"])
    return Costs(
        parts=tuple(map(Part, parts["rows"], parts["estimated"], parts["seconds"])),
        connect_s=set_up["connect_s"],
        # A process that exports one row connects and commits a file and its manifest.
        start_s=max(0.0, set_up["export_one_row_s"] - set_up["connect_s"]),
        sync_s=set_up["commit_s"] / 2,
        server_share=plan["server_cpu_s"] / seconds if plan["server_cpu_s"] else 1.0,
    )


def throughputs(measured: dict[str, Any], database: str) -> list[Throughput]:
    """The throughputs of a database, by format and number of connections."""
    runs: dict[tuple[str, int], list[dict[str, Any]]] = {}
    for run in measured["databases"][database]["throughput"]:
        runs.setdefault((run["format"], run["connections"]), []).append(run)

    def per_row(group: list[dict[str, Any]], name: str) -> float:
        return float(statistics.median(run[name] / run["rows"] for run in group))

    return [
        Throughput(
            output_format,
            n_connections,
            rows_per_s=max(run["rows"] / run["wall_s"] for run in group),
            client_us=per_row(group, "client_cpu_s") * 1e6,
            server_us=per_row(group, "server_cpu_s") * 1e6,
            file_bytes=per_row(group, "file_bytes"),
            wire_bytes=per_row(group, "wire_bytes"),
        )
        for (output_format, n_connections), group in runs.items()
    ]


def predicted(single: Throughput, n_connections: int, n_cores: int) -> float:
    """The rows per second that the model predicts for clients and a server on the same processors:
    those of one connection for each, until the processors are busy."""
    busy = n_cores / (single.client_us + single.server_us) * 1e6
    return min(n_connections * single.rows_per_s, busy)
