"""The simulation of an export in parts: tables of the measured costs, of orders of steps, and of 1,000
parts on 100 workers."""

from __future__ import annotations

import argparse
import csv
import datetime
from pathlib import Path
from typing import Any

from benches.parts_simulation import scenarios
from benches.parts_simulation.interleavings import Interleaving
from benches.parts_simulation.protocol import MUTATIONS, PROTOCOL

HERE = Path(__file__).resolve().parents[1]


def print_costs(database: str, costs: dict[str, Any]) -> None:
    """Prints the costs of each plan, and the throughput by the number of connections."""
    names = ("connect", "statement", "start", "sync")
    print(f"\n{database}: " + ", ".join(f"{name} {costs[f'{name}_s'] * 1e3:.2f} ms" for name in names))
    print(f"  in a task of an engine: {costs['engine_row_s'] * 1e6:.2f} us/row")
    for key, plan in costs["plans"].items():
        spread = max(plan["seconds"]) * len(plan["rows"]) / sum(plan["seconds"])
        print(
            f"  by {key:9} plan {plan['plan_s']:.1f} s, {scenarios.row_s(costs, key) * 1e6:.2f} us/row,"
            f" server {plan['server_share']:.2f} processors, slowest part / mean {spread:.1f}"
        )
    for output_format, by_connections in costs["throughput"].items():
        for n_connections, each in by_connections.items():
            wire, file = (each["rows_per_s"] * each[name] / 1e6 for name in ("wire_bytes", "file_bytes"))
            client, server = each["client_s"] * 1e6, each["server_s"] * 1e6
            print(
                f"  {output_format:8} {n_connections} connections {each['rows_per_s']:>11,.0f} rows/s,"
                f" wire {wire:>4.0f} MB/s, files {file:>4.0f} MB/s,"
                f" client {client:.2f} and server {server:.2f} us of CPU/row"
            )


def orders_of(only: str, n_orders: int) -> list[dict[str, Any]]:
    """The number of orders of steps in which a condition of a reader did not hold, by protocol."""
    rows = []
    for protocol in (PROTOCOL, *MUTATIONS):
        if only in protocol.name:
            wrong = [found[0] for seed in range(n_orders) if (found := Interleaving(seed, protocol).execute())]
            problem = wrong[0] if wrong else ""
            rows.append({"protocol": protocol.name, "orders": n_orders, "wrong": len(wrong), "problem": problem})
            print(f"{protocol.name:48} {len(wrong):>6,} wrong of {n_orders:,} orders  {problem}", flush=True)
    return rows


def exports_of(only: str, n_seeds: int, costs: dict[str, Any]) -> list[dict[str, Any]]:
    """The summaries of all scenarios."""
    print(
        f"\n{'':48} {'ideal':>8} {'makespan / ideal':>18} {'retries':>7} {'refused':>7} {'work':>6}"
        f" {'lost':>13} {'doubled':>13} wrong"
    )
    rows = []
    for scenario in (*scenarios.SCENARIOS, *scenarios.WRONG):
        if only in scenario.name:
            found = scenarios.simulate(scenario, scenarios.export_of(scenario, costs), range(n_seeds))
            rows.append(found)
            ratios = f"{found['median']:.2f} ({found['best']:.2f}-{found['worst']:.2f})"
            print(
                f"{scenario.name:48} {found['ideal_s']:>6,.0f} s {ratios:>18} {found['retries']:>7.1f}"
                f" {found['refused']:>7.1f} {found['work']:>6.3f} {found['rows_lost']:>13,}"
                f" {found['rows_doubled']:>13,} {found['wrong']} of {n_seeds}  {found['problem']}".rstrip(),
                flush=True,
            )
    return rows


def _save(path: Path, rows: list[dict[str, Any]]) -> None:
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        for row in rows:
            writer.writerow({k: round(v, 4) if isinstance(v, float) else v for k, v in row.items()})
    print(f"record: {path.relative_to(HERE.parent)}")


def measure(definition: dict[str, Any], arguments: argparse.Namespace) -> tuple[list[dict[str, Any]], int]:
    """Prints all tables. Returns the rows of the record, and the number of protocols that are not as
    they should be: those of onecopy with a wrong result, and others without one."""
    path = scenarios.newest_costs()
    measured = scenarios.read_costs(path)
    print(f"costs: {path.relative_to(HERE)}, measured on {measured['machine']}")
    for database, costs in measured["databases"].items():
        print_costs(database, costs)
    print()
    orders = orders_of(arguments.only, 20 if arguments.once else definition["orders"])
    costs = measured["databases"][definition["database"]]
    exports = exports_of(arguments.only, 1 if arguments.once else definition["seeds"], costs)
    right = {PROTOCOL.name, *(scenario.name for scenario in scenarios.SCENARIOS)}
    short = sum(bool(row["wrong"]) for row in orders + exports if next(iter(row.values())) in right)
    if not arguments.once:  # With --once, rare orders and failures are not reached.
        short += sum(not row["wrong"] for row in orders + exports if next(iter(row.values())) not in right)
    if arguments.save and not arguments.only:
        day = datetime.date.today()
        _save(path.with_name(f"{day}-parts-simulated.csv"), exports)
        _save(path.with_name(f"{day}-parts-orders.csv"), orders)
    return [_record(row) for row in exports if row["scenario"] in right], short


def _record(row: dict[str, Any]) -> dict[str, Any]:
    """The line of the record, in which the ideal is the peer."""
    times = {"ours_us": row["ideal_s"] * row["median"] * 1e6, "peer_us": row["ideal_s"] * 1e6}
    ratios = {"ratio": 1 / row["median"], "ratio_min": 1 / row["worst"], "ratio_max": 1 / row["best"]}
    return {"row": row["scenario"], "size": f"{row['exports']} exports", **times, **ratios, "at_least": ""}
