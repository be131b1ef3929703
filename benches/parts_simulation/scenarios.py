"""The simulated exports: 1,000 parts on 100 workers, many seeds of each, and their table."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple

from benches.parts_simulation.cluster import Cluster, Export, Result
from benches.parts_simulation.costs import Costs
from benches.parts_simulation.faults import LARGEST_FIRST, NO_FAULTS, Faults, Policy
from benches.parts_simulation.peers import append_batches, append_transaction
from benches.parts_simulation.protocol import MUTATIONS, PROTOCOL, Plan
from benches.parts_simulation.rows import ranges_of
from benches.parts_simulation.sinks import FolderSink, NewSink, TableSink, count_steps

#: PostgreSQL's default is 100 connections, of which 3 are reserved for superusers. One has the
#: snapshot of the plan.
DEFAULT_CONNECTIONS = 96
#: The factor by which the measured parts are enlarged: 4,000,000,000 rows in 1,000 parts.
SCALE = 1_000

STRAGGLERS = Faults(p_straggler=0.05)
DEATHS = Faults(p_straggler=0.05, p_death=0.05)
STALLS = replace(DEATHS, p_stall=0.01)
COORDINATOR = replace(STALLS, n_coordinator_deaths=2, p_death_at_finish=0.5)
EVERYTHING = replace(COORDINATOR, n_power_failures=1)
#: For tasks that append: a death of the coordinator would append all rows again.
WORKERS_ONLY = STALLS


_INTO_FOLDER = partial(FolderSink, protocol=PROTOCOL)


@dataclass(frozen=True)
class Scenario:
    """An export with its failures, decisions, protocol and server."""

    name: str
    faults: Faults = NO_FAULTS
    policy: Policy = LARGEST_FIRST
    new_sink: NewSink = _INTO_FOLDER
    #: The processors of the server.
    n_cores: int = 128
    #: The column by which the parts are divided.
    key: str = "key"
    most_connections: int = 200
    n_workers: int = 100


_TERMINATE = Policy(slow_attempts="terminate")
_DUPLICATE = Policy(slow_attempts="duplicate")

#: The faults are added one after another. A server of 128 processors is never saturated by 100
#: connections, so that the workers decide; one of 2 or 16 decides itself.
SCENARIOS = (
    Scenario("no failures, parts by id, in which order the rows are stored", key="id"),
    Scenario("no failures"),
    Scenario("no failures, parts in the order of the plan", policy=Policy(largest_first=False)),
    Scenario("stragglers: 5 % of the workers, 8 times slower", STRAGGLERS),
    Scenario("stragglers, slow attempts are duplicated", STRAGGLERS, _DUPLICATE),
    Scenario("stragglers, slow attempts are terminated", STRAGGLERS, _TERMINATE),
    Scenario("and 5 % of the attempts die", DEATHS, _TERMINATE),
    Scenario("and 1 % of the attempts stall for 10 minutes", STALLS, _TERMINATE),
    Scenario("and the coordinator dies 2 to 3 times", COORDINATOR, _TERMINATE),
    Scenario("and a power failure", EVERYTHING, _TERMINATE),
    Scenario("all failures, 96 connections at most", EVERYTHING, _TERMINATE, most_connections=DEFAULT_CONNECTIONS),
    Scenario("all failures, a server of 16 processors", EVERYTHING, _TERMINATE, n_cores=16),
    Scenario("all failures, a server of 2 processors", EVERYTHING, _TERMINATE, n_cores=2),
    Scenario("all failures, a server of 2 processors, 4 workers", EVERYTHING, _TERMINATE, n_cores=2, n_workers=4),
)
PEERS = (
    Scenario("append, a commit for each batch", WORKERS_ONLY, _DUPLICATE, partial(TableSink, append=append_batches)),
    Scenario(
        "append, a transaction for each part", WORKERS_ONLY, _DUPLICATE, partial(TableSink, append=append_transaction)
    ),
)
MUTATED = tuple(
    Scenario(protocol.name, EVERYTHING, _DUPLICATE, partial(FolderSink, protocol=protocol)) for protocol in MUTATIONS
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


def export_of(scenario: Scenario, costs: Costs, scale: int = SCALE) -> Export:
    """The export of a scenario, with measured costs; the rows of each part are multiplied by
    `scale`."""
    plan = Plan(1, tuple(ranges_of(part.n_rows * scale for part in costs.parts)))
    return Export(
        plan=plan,
        work_s=tuple(part.seconds * scale for part in costs.parts),
        estimated=tuple(part.n_estimated * scale for part in costs.parts),
        n_workers=scenario.n_workers,
        capacity=scenario.n_cores / costs.server_share,
        most_connections=scenario.most_connections,
        start_s=costs.start_s,
        connect_s=costs.connect_s,
        sync_s=costs.sync_s,
        n_steps=count_steps(scenario.new_sink, plan),
        faults=scenario.faults,
        policy=scenario.policy,
    )


def simulate(scenario: Scenario, export: Export, seeds: Iterable[int]) -> list[Result]:
    """Simulates a scenario once for each seed; an export that takes 20 times the ideal is stopped."""
    most_s = 20 * export.ideal_s()
    return [Cluster(export, scenario.new_sink, seed, most_s).execute() for seed in seeds]


def summary(scenario: Scenario, export: Export, results: Sequence[Result]) -> Summary:
    """The summary of the results of a scenario."""
    ideal_s = export.ideal_s()
    ratios = sorted(result.makespan_s / ideal_s for result in results)
    wrong = [result for result in results if result.problems]
    n_parts = len(export.work_s)
    return Summary(
        name=scenario.name,
        n_seeds=len(results),
        ideal_s=ideal_s,
        median=statistics.median(ratios),
        best=ratios[0],
        worst=ratios[-1],
        n_retries=statistics.fmean(result.n_attempts - n_parts for result in results),
        n_refused=statistics.fmean(result.n_refused for result in results),
        work=statistics.fmean(result.work for result in results),
        n_lost=max(result.n_lost for result in results),
        n_doubled=max(result.n_doubled for result in results),
        n_wrong=len(wrong),
        problem=wrong[0].problems[0] if wrong else "",
    )


def table(summaries: Iterable[Summary], with_head: bool = True) -> str:
    """The summaries as a table for people."""
    heads = ("makespan / ideal", "retries", "refused", "work", "rows lost", "rows doubled", "wrong")
    lines = [f"{'':56} {'ideal':>8} {heads[0]:>22} " + " ".join(f"{head:>13}" for head in heads[1:])]
    for s in summaries:
        ratios = f"{s.median:.3f} ({s.best:.2f} - {s.worst:.2f})"
        counts = (f"{s.n_retries:.1f}", f"{s.n_refused:.1f}", f"{s.work:.3f}", f"{s.n_lost:,}", f"{s.n_doubled:,}")
        wrong = f"{s.n_wrong} of {s.n_seeds}"
        cells = " ".join(f"{cell:>13}" for cell in (*counts, wrong))
        lines.append(f"{s.name:56} {s.ideal_s:>6,.0f} s {ratios:>22} {cells}  {s.problem}".rstrip())
    return "\n".join(lines if with_head else lines[1:])
