"""The simulation of an export in parts: tables of the measured server, of orders of steps, and of
1,000 parts on 100 workers."""

from __future__ import annotations

import argparse
import collections
import csv
import datetime
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from benches.parts_simulation import costs, picture, scenarios
from benches.parts_simulation.costs import Throughput
from benches.parts_simulation.interleavings import Interleaving, each_kill
from benches.parts_simulation.protocol import MUTATIONS, PROTOCOL, Protocol

HERE = Path(__file__).resolve().parents[1]


def throughput_table(found: Sequence[Throughput], n_cores: int) -> str:
    """The measured throughputs of a database, and those that the model predicts for a server and
    clients on the same `n_cores` processors."""
    heads = ("rows/s", "model", "file MB/s", "wire MB/s", "client us/row", "server us/row")
    lines = [f"{'':9} {'connections':>11} " + " ".join(f"{head:>13}" for head in heads)]
    single = {each.output_format: each for each in found if each.n_connections == 1}
    for each in sorted(found, key=lambda each: (each.output_format, each.n_connections)):
        model = costs.predicted(single[each.output_format], each.n_connections, n_cores)
        megabytes = [each.rows_per_s * n_bytes / 1e6 for n_bytes in (each.file_bytes, each.wire_bytes)]
        cells = [f"{each.rows_per_s:,.0f}", f"{model:,.0f}", *(f"{value:.1f}" for value in megabytes)]
        cells += [f"{each.client_us:.2f}", f"{each.server_us:.2f}"]
        joined = " ".join(f"{cell:>13}" for cell in cells)
        lines.append(f"{each.output_format:9} {each.n_connections:>11} {joined}")
    return "\n".join(lines)


def _orders(protocol: Protocol, n_seeds: int) -> dict[str, Any]:
    """The number of orders in which a condition of a reader did not hold, and the same for kills at
    each step."""
    problems: collections.Counter[str] = collections.Counter()
    n_wrong = 0
    for seed in range(n_seeds):
        found = Interleaving(seed, protocol).execute()
        n_wrong += bool(found)
        problems.update(found[:1])
    n_kills, found = each_kill(protocol)
    problems.update(found[:1])
    n_failures, lost = each_kill(protocol, power_failure_seed=1)
    problems.update(lost[:1])
    return {
        "protocol": protocol.name,
        "orders": n_seeds,
        "wrong_orders": n_wrong,
        "pairs_of_kills": n_kills,
        "wrong_states_after_kills": len(found),
        "pairs_of_power_failures": n_failures,
        "wrong_states_after_power_failures": len(lost),
        "problem": problems.most_common(1)[0][0] if problems else "",
    }


def _write(path: Path, rows: Iterable[dict[str, Any]]) -> None:
    rows = list(rows)
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        for row in rows:
            writer.writerow({k: round(v, 4) if isinstance(v, float) else v for k, v in row.items()})
    print(f"record: {path.relative_to(HERE.parent)}")


def measure(definition: dict[str, Any], arguments: argparse.Namespace) -> tuple[list[dict[str, Any]], int]:
    """Prints all tables. Returns the rows of the record, and the number of protocols that are not as
    they should be: the protocol with a wrong result, and mutations without one."""
    path = HERE / definition["costs"] if "costs" in definition else costs.newest()
    measured = costs.read(path)
    print(f"costs: {path.relative_to(HERE)}, measured on {measured['machine']}")
    for database in measured["databases"]:
        print(f"\n{database}, by loopback\n{throughput_table(costs.throughputs(measured, database), 2)}")
    n_seeds = 2 if arguments.once else definition["seeds"]
    print("\nsteps in any order", flush=True)
    orders, short = [], 0
    for protocol in (PROTOCOL, *MUTATIONS):
        found = _orders(protocol, 20 * n_seeds)
        orders.append(found)
        counts = [v for k, v in found.items() if k not in ("protocol", "problem")]
        n_wrong = counts[1] + counts[3] + counts[5]
        short += (n_wrong > 0) == (protocol is PROTOCOL) and not arguments.once
        print(
            f"{protocol.name:52} {counts[1]:>5} of {counts[0]:,} orders,"
            f" {counts[3]:>6,} states after {counts[2]:,} pairs of kills,"
            f" {counts[5]:>6,} after {counts[4]:,} of power failures  {found['problem']}",
            flush=True,
        )
    summaries = []
    print("\n1,000 parts", flush=True)
    for group, n in ((scenarios.SCENARIOS, n_seeds), (scenarios.PEERS, n_seeds), (scenarios.MUTATED, n_seeds // 5)):
        for scenario in group:
            if arguments.only not in scenario.name:
                continue
            export = scenarios.export_of(scenario, costs.costs_of(measured, definition["database"], scenario.key))
            results = scenarios.simulate(scenario, export, range(max(1, n)))
            summaries.append((scenario, export, scenarios.summary(scenario, export, results)))
            print(scenarios.table([summaries[-1][2]], with_head=len(summaries) == 1), flush=True)
            wrong = summaries[-1][2]
            short += group is scenarios.SCENARIOS and bool(wrong.n_lost or wrong.n_doubled or wrong.n_wrong)
    if arguments.save:
        begin = path.with_name(f"{datetime.date.today()}-parts")
        _write(begin.with_name(f"{begin.name}-simulated.csv"), (s._asdict() for _, _, s in summaries))
        _write(begin.with_name(f"{begin.name}-orders.csv"), orders)
    return [_record(*each) for each in summaries if each[0] in scenarios.SCENARIOS], short


def _record(scenario: scenarios.Scenario, export: Any, found: scenarios.Summary) -> dict[str, Any]:
    """The line of the record: the ideal, and how much of it is reached."""
    per_row_us = 1e6 / export.plan.n_rows
    return {
        "row": scenario.name,
        "size": f"{len(export.work_s)} parts: {scenario.n_workers} workers",
        "ours_us": found.ideal_s * found.median * per_row_us,
        "peer_us": found.ideal_s * per_row_us,
        "ratio": 1 / found.median,
        "ratio_min": 1 / found.worst,
        "ratio_max": 1 / found.best,
        "at_least": "",
    }


def plot(name: str, results: list[dict[str, Any]], path: Path) -> bool:
    """Plots the makespans, and the measured throughputs."""
    return picture.draw(results, costs.read(costs.newest()), path)
