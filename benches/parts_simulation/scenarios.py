"""The simulated exports: 1,000 parts on 100 workers, many seeds of each, and their table."""

from __future__ import annotations

import random
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple

from benches.parts_simulation.cluster import Cluster, Export, Faults, Result
from benches.parts_simulation.costs import N_KEYS, Costs, Part, zipf_weights
from benches.parts_simulation.protocol import MUTATIONS, Plan
from benches.parts_simulation.rows import ranges_of
from benches.parts_simulation.sinks import FolderSink, Sink, TableSink

#: The factor by which the measured parts are enlarged: 4,000,000,000 rows in 1,000 parts.
SCALE = 1_000
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
    #: The column by which the parts are divided. Rows are stored in the order of `id`.
    key: str = "id"
    #: The ranges of the key have equal widths, not equal numbers of rows.
    has_equal_widths: bool = False
    largest_first: bool = True
    n_parts: int = 1_000
    n_workers: int = 100
    #: The processors of the server and the bits per second of its network.
    n_cores: int = 128
    network: float = 200e9
    most_connections: int = 200
    commit: str = ""
    mutation: int = -1

    def sink(self, plan: Plan) -> Sink:
        """Creates the target."""
        if self.commit:
            return TableSink(plan, self.commit)
        return FolderSink(plan, MUTATIONS[self.mutation]) if self.mutation >= 0 else FolderSink(plan)


#: The failures are added one after another. A server of 128 processors is not saturated by 100
#: connections, so the workers limit the export; a smaller one limits it itself.
SCENARIOS = (
    Scenario("no failures"),
    Scenario("no failures, parts by a secondary index", key="customer"),
    Scenario("the same, in the order of the plan", key="customer", largest_first=False),
    Scenario("skew: ranges of equal width of a Zipf key", has_equal_widths=True),
    Scenario("stragglers: 5 % of the workers, 8 times slower", STRAGGLERS),
    Scenario("stragglers, their last parts restarted", KILLED),
    Scenario("stragglers, 100 parts", STRAGGLERS, n_parts=100),
    Scenario("stragglers, 100 parts, the last restarted", KILLED, n_parts=100),
    Scenario("stragglers, 300 parts, the last restarted", KILLED, n_parts=300),
    Scenario("and 5 % of the attempts die", DEATHS),
    Scenario("and 1 % of the attempts stall for 10 minutes", STALLS),
    Scenario("and the coordinator dies: all failures", ALL),
    Scenario("all failures, secondary index", ALL, key="customer"),
    Scenario("all failures, 96 connections at most", ALL, most_connections=96),
    Scenario("all failures, 10 Gbit/s", ALL, network=10e9),
    Scenario("all failures, a server of 16 processors", ALL, n_cores=16),
    Scenario("all failures, a server of 2 processors", ALL, n_cores=2),
    Scenario("all failures, 2 processors, 4 workers", ALL, n_cores=2, n_workers=4),
    Scenario('all failures, into a table, commit="job"', ALL, commit="job"),
    Scenario('all failures, into a table, commit="part"', ALL, commit="part"),
)
#: Each must be found wrong in some export.
WRONG = (
    Scenario("append, a commit for each batch", STALLS, commit="batches"),
    Scenario("append, a transaction for each part", STALLS, commit="transaction"),
    Scenario("into a table, all attempts are moved", STALLS, commit="attempts"),
    *(Scenario(MUTATIONS[i].name, ALL, mutation=i) for i in (0, 1, 3, 4, 8)),
)


class Summary(NamedTuple):
    """The results of all seeds of a scenario."""

    name: str
    n_seeds: int
    ideal_s: float
    #: The makespan divided by the ideal.
    median: float
    best: float
    worst: float
    #: The mean numbers for one export.
    n_retries: float
    n_refused: float
    work: float
    #: The largest numbers of one export.
    n_lost: int
    n_doubled: int
    #: The exports in which a condition of a reader did not hold, or that were not completed.
    n_wrong: int
    problem: str


def _equal_widths(costs: Costs, n_parts: int) -> list[Part]:
    """The parts of ranges of equal width of the measured table's Zipf key."""
    weights = zipf_weights()
    random.Random(7).shuffle(weights)
    n_rows, total, per_part = sum(part.n_rows for part in costs.parts), sum(weights), N_KEYS // n_parts
    sizes = [round(n_rows * sum(weights[i : i + per_part]) / total) for i in range(0, N_KEYS, per_part)]
    return [Part(n, n_rows // n_parts, costs.first_row_s + n * costs.row_s) for n in sizes]


def export_of(scenario: Scenario, costs: Costs, scale: int = SCALE) -> Export:
    """The export of a scenario, with measured costs; the rows of each part are multiplied by
    `scale`, and neighbouring parts are joined for fewer parts."""
    parts = _equal_widths(costs, scenario.n_parts) if scenario.has_equal_widths else list(costs.parts)
    # Bresenham's division, so that any number of parts can be joined to any smaller one.
    limits = [len(parts) * i // scenario.n_parts for i in range(scenario.n_parts + 1)]
    groups = [parts[a:b] for a, b in zip(limits, limits[1:], strict=False)]
    plan = Plan(1, tuple(ranges_of(sum(part.n_rows for part in group) * scale for group in groups)))
    rows_per_s = 1 / costs.row_s
    by_network = scenario.network / 8 / (rows_per_s * costs.wire_bytes) if costs.wire_bytes else float("inf")

    def work_s(part: Part) -> float:
        # The time until the first row does not depend on the number of rows.
        first_s = min(part.seconds, costs.first_row_s)
        return first_s + (part.seconds - first_s) * scale

    return Export(
        plan=plan,
        work_s=tuple(sum(map(work_s, group)) for group in groups),
        estimated=tuple(sum(part.n_estimated for part in group) * scale for group in groups),
        n_workers=scenario.n_workers,
        capacity=min(scenario.n_cores / costs.server_share, by_network),
        most_connections=scenario.most_connections,
        start_s=costs.start_s,
        connect_s=costs.connect_s,
        sync_s=costs.sync_s,
        faults=scenario.faults,
        largest_first=scenario.largest_first,
    )


def simulate(scenario: Scenario, export: Export, seeds: Iterable[int]) -> list[Result]:
    """Simulates a scenario once for each seed; an export is stopped after 20 times the ideal and an
    hour."""
    most_s = 20 * export.ideal_s() + 3_600
    return [Cluster(export, scenario.sink, seed, most_s).execute() for seed in seeds]


def summary(scenario: Scenario, export: Export, results: Sequence[Result]) -> Summary:
    """The summary of the results of a scenario."""
    ideal_s = export.ideal_s()
    ratios = sorted(result.makespan_s / ideal_s for result in results)
    problems = [result.problems[0] for result in results if result.problems]
    mean = statistics.fmean
    return Summary(
        name=scenario.name,
        n_seeds=len(results),
        ideal_s=ideal_s,
        median=statistics.median(ratios),
        best=ratios[0],
        worst=ratios[-1],
        n_retries=mean(result.n_attempts - len(export.work_s) for result in results),
        n_refused=mean(result.n_refused for result in results),
        work=mean(result.work for result in results),
        n_lost=max(result.n_lost for result in results),
        n_doubled=max(result.n_doubled for result in results),
        n_wrong=sum(bool(r.problems or r.n_lost or r.n_doubled) for r in results),
        problem=max(problems, key=problems.count, default=""),
    )


HEAD = (
    f"{'':50} {'ideal':>7} {'makespan / ideal':>20} {'retries':>8} {'refused':>8} {'work':>6}"
    f" {'lost':>13} {'doubled':>13} {'wrong':>10}"
)


def line(s: Summary) -> str:
    """The line of a summary in a table for people."""
    ratios = f"{s.median:.2f} ({s.best:.2f} - {s.worst:.2f})"
    return (
        f"{s.name:50} {s.ideal_s:>5,.0f} s {ratios:>20} {s.n_retries:>8.1f} {s.n_refused:>8.1f} {s.work:>6.3f}"
        f" {s.n_lost:>13,} {s.n_doubled:>13,} {f'{s.n_wrong} of {s.n_seeds}':>10}  {s.problem}".rstrip()
    )
