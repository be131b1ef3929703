"""The simulated exports: 1,000 parts on 100 workers from measured costs, many seeds of each."""

from __future__ import annotations

import json
import math
import random
import statistics
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from benches.parts_simulation.cluster import Cluster, Export, Faults
from benches.parts_simulation.protocol import MUTATIONS, Kind, Plan
from benches.parts_simulation.rows import ranges_of
from benches.parts_simulation.sinks import FolderSink, TableSink

RECORD = Path(__file__).resolve().parents[1] / "record"
#: The factor by which the measured parts are enlarged: 1,000 parts of 40,000,000 rows.
SCALE = 10_000
#: The Zipf distribution of a key of the measured table: its number of keys, and its exponent.
N_KEYS, EXPONENT = 100_000, 1.1

NO_FAULTS = Faults()
STRAGGLERS = Faults(p_straggler=0.05)
KILLED = replace(STRAGGLERS, kills_slow_attempts=True)
DEATHS = replace(KILLED, p_death=0.05)
STALLS = replace(DEATHS, p_stall=0.01)
ALL = replace(STALLS, n_coordinator_deaths=2, p_death_at_move=0.5)


@dataclass(frozen=True)
class Scenario:
    """An export with its failures, its target and its server."""

    name: str
    faults: Faults = NO_FAULTS
    #: The column by which the parts are divided: rows are stored in the order of `id`, and
    #: `customer` has a secondary index.
    key: str = "id"
    #: The ranges of the key have equal widths, not equal numbers of rows.
    has_equal_widths: bool = False
    n_parts: int = 1_000
    n_workers: int = 100
    #: The processors of the server and the bits per second of its network.
    n_cores: int = 128
    network: float = math.inf
    most_connections: int = 200
    #: The `commit` of a table, or the name of a faulty protocol, instead of the folder.
    commit: str = ""
    mutation: str = ""

    def sink(self, plan: Plan) -> FolderSink | TableSink:
        """Creates the target."""
        if self.commit:
            return TableSink(plan, self.commit)
        wrong = [protocol for protocol in MUTATIONS if protocol.name == self.mutation]
        return FolderSink(plan, *wrong)


#: The failures are added one after another. A server of 128 processors is not saturated by 100
#: connections, so the workers limit the export; a smaller one limits it itself.
SCENARIOS = (
    Scenario("no failures"),
    Scenario("no failures, 100 parts", n_parts=100),
    Scenario("no failures, secondary index", key="customer"),
    Scenario("no failures, secondary index, 100 parts", key="customer", n_parts=100),
    Scenario("skew: ranges of equal width of a Zipf key", has_equal_widths=True),
    Scenario("stragglers: 5 % of the workers, 8 times slower", STRAGGLERS),
    Scenario("stragglers, slow parts restarted at the end", KILLED),
    Scenario("the same, 300 parts", KILLED, n_parts=300),
    Scenario("the same, 100 parts", KILLED, n_parts=100),
    Scenario("and 5 % of the attempts die", DEATHS),
    Scenario("and 1 % of the attempts stall for 2 minutes", STALLS),
    Scenario("and the coordinator dies: all failures", ALL),
    Scenario("all failures, 96 connections at most", ALL, most_connections=96),
    Scenario("all failures, secondary index", ALL, key="customer"),
    Scenario("all failures, server of 16 processors", ALL, n_cores=16),
    Scenario("the same, 30 workers", ALL, n_cores=16, n_workers=30),
    Scenario("all failures, network of 10 Gbit/s", ALL, network=10e9),
    Scenario("the same, 20 workers", ALL, network=10e9, n_workers=20),
    Scenario('all failures, into a table, commit="job"', ALL, commit="job"),
    Scenario('all failures, into a table, commit="part"', ALL, commit="part"),
)
#: Each must be found wrong in some export.
WRONG = (
    Scenario("append, a commit for each batch", STALLS, commit="batches"),
    Scenario("append, a transaction for each part", STALLS, commit="transaction"),
    Scenario("into a table, all attempts are moved", STALLS, commit="attempts"),
    *(Scenario(protocol.name, ALL, mutation=protocol.name) for protocol in (MUTATIONS[0], MUTATIONS[5])),
)


def newest_costs() -> Path:
    """The newest file of measured costs in the record."""
    return max(RECORD.glob("*/*-part-costs.json"), key=lambda path: path.name)


def read_costs(path: Path) -> dict[str, Any]:
    """Reads a file that `measurement` has written."""
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return found


def zipf_weights() -> list[float]:
    """The weights of the keys of the Zipf distribution, the most frequent one first."""
    return [(k + 1) ** -EXPONENT for k in range(N_KEYS)]


def _equal_widths(n_rows: int, n_parts: int) -> list[int]:
    """The rows of ranges of equal width of the Zipf key."""
    weights = zipf_weights()
    random.Random(7).shuffle(weights)
    width, total = N_KEYS // n_parts, sum(weights)
    return [round(n_rows * sum(weights[i : i + width]) / total) for i in range(0, N_KEYS, width)]


def row_s(costs: dict[str, Any], key: str) -> float:
    """The time of a row of a plan's parts, without that of their statements."""
    plan = costs["plans"][key]
    return float((sum(plan["seconds"]) - costs["statement_s"] * len(plan["rows"])) / sum(plan["rows"]))


def export_of(scenario: Scenario, costs: dict[str, Any], scale: int = SCALE) -> Export:
    """The export of a scenario with the costs of a database.

    The rows of each part are multiplied by `scale`; neighbouring parts are joined for fewer parts.
    """
    plan = costs["plans"][scenario.key]
    rows, statement_s = plan["rows"], costs["statement_s"]
    reading_s = [max(0.0, seconds - statement_s) * scale for seconds in plan["seconds"]]
    if scenario.has_equal_widths:
        rows = _equal_widths(sum(rows), len(rows))
        reading_s = [n * row_s(costs, scenario.key) * scale for n in rows]
    limits = [len(rows) * i // scenario.n_parts for i in range(scenario.n_parts + 1)]
    groups = [slice(*limits[i : i + 2]) for i in range(scenario.n_parts)]
    wire_bytes_per_s = costs["throughput"]["csv"]["1"]["wire_bytes"] / row_s(costs, scenario.key)
    by_network = scenario.network / 8 / wire_bytes_per_s if wire_bytes_per_s else math.inf
    return Export(
        plan=Plan(1, ranges_of(sum(rows[group]) * scale for group in groups)),
        work_s=tuple(statement_s + sum(reading_s[group]) for group in groups),
        estimated=tuple(sum(rows[group]) for group in groups),
        n_workers=scenario.n_workers,
        capacity=min(scenario.n_cores / plan["server_share"], by_network),
        most_connections=scenario.most_connections,
        step_s={kind: costs[f"{kind.name.lower()}_s"] for kind in (Kind.START, Kind.CONNECT, Kind.SYNC)},
        faults=scenario.faults,
    )


def simulate(scenario: Scenario, export: Export, seeds: Iterable[int]) -> dict[str, Any]:
    """Simulates a scenario once for each seed; returns the summary.

    An export is stopped after 20 times the ideal and an hour.
    """
    ideal_s, mean = export.ideal_s(), statistics.fmean
    results = [Cluster(export, scenario.sink, seed, 20 * ideal_s + 3_600).execute() for seed in seeds]
    ratios = [result.makespan_s / ideal_s for result in results]
    wrong = [result for result in results if result.problems or result.n_lost or result.n_doubled]
    problems = [result.problems[0] for result in wrong if result.problems]
    return {
        "scenario": scenario.name,
        "exports": len(results),
        "ideal_s": ideal_s,
        # The makespan divided by the ideal.
        "median": statistics.median(ratios),
        "best": min(ratios),
        "worst": max(ratios),
        # The means of the exports.
        "retries": mean(result.n_attempts - len(export.work_s) for result in results),
        "refused": mean(result.n_refused for result in results),
        "work": mean(result.work for result in results),
        # The largest numbers of one export.
        "rows_lost": max(result.n_lost for result in results),
        "rows_doubled": max(result.n_doubled for result in results),
        # The exports with a condition of a reader that did not hold, or that are not complete.
        "wrong": len(wrong),
        "problem": max(problems, key=problems.count, default=""),
    }
