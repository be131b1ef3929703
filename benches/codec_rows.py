"""Measures the rows of a codec definition, each in a separate process; prints and returns the
table."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent


def ask(command: list[str], **environment: str) -> dict[str, Any]:
    """Runs a process; returns the JSON of the last line that it prints, or `failed`."""
    done = subprocess.run(
        command, stdout=subprocess.PIPE, text=True, cwd=ROOT, env=os.environ | environment, check=False
    )
    if done.returncode != 0:
        return {"failed": f"code {done.returncode}"}
    return dict(json.loads(done.stdout.splitlines()[-1]))


def results_of(row: dict[str, Any], base: str, got: dict[str, Any], of_best: float) -> list[dict[str, Any]]:
    """Two lines of the record for a row: onecopy compared with the base, and with the best peer."""
    common = {"row": row["name"], "ours_us": got["us"]["onecopy"]}
    to_base = {
        "size": base,
        "peer_us": got["us"][base],
        "ratio": got["ratio"]["onecopy"],
        "ratio_min": got["range"][0],
        "ratio_max": got["range"][1],
        "at_least": row.get("at_least", ""),
    }
    middle, lowest, highest = got["of_best"]
    to_best = {
        "size": f"best peer: {got['best']}",
        "peer_us": got["us"][got["best"]],
        "ratio": middle,
        "ratio_min": lowest,
        "ratio_max": highest,
        "at_least": of_best,
    }
    order = ("row", "size", "ours_us", "peer_us", "ratio", "ratio_min", "ratio_max", "at_least")
    return [{key: (common | each)[key] for key in order} for each in (to_base, to_best)]


def line_of(row: dict[str, Any], base: str, got: dict[str, Any], results: list[dict[str, Any]]) -> tuple[str, bool]:
    """The line of a row in the printed table, and true if the row misses its target."""
    speed = {name: got["bytes"] / us for name, us in got["us"].items()}
    others = {name: ratio for name, ratio in got["ratio"].items() if name not in ("onecopy", base)}
    peers = "  ".join(f"{name} {ratio:.2f}" for name, ratio in sorted(others.items(), key=lambda x: -x[1]))
    targets = f"{row.get('at_least', '-')!s:>5} {row.get('aim', '-')!s:>5}"
    if not results:
        return f"{row['name']:44} {'':>8} {speed[base]:>8,.0f}  {'':17} {targets}   {'':21} {peers}", True
    to_base, to_best = results
    falls = bool(to_base["at_least"]) and to_base["ratio"] < to_base["at_least"]
    slower = to_best["ratio"] < to_best["at_least"]
    own = f"{to_base['ratio']:>5.2f} ({to_base['ratio_min']:.2f}-{to_base['ratio_max']:.2f})"
    best = f"{to_best['ratio']:.2f} of {got['best']}"
    verdict = "  SHORT" * falls + "  SLOWER THAN THE BEST PEER" * slower
    line = f"{row['name']:44} {speed['onecopy']:>8,.0f} {speed[base]:>8,.0f}  {own:17} {targets}   "
    line += f"{best:21} {peers}{verdict}"
    return line, falls or slower


def timed(
    definition: dict[str, Any], arguments: argparse.Namespace, pinned: list[str]
) -> tuple[list[dict[str, Any]], int]:
    """Measures the times of all rows; returns the records, and the number of missed targets."""
    results: list[dict[str, Any]] = []
    short = 0
    base = definition["base"]
    unit = "MB/s of " + definition.get("unit", "JSON")
    title = f"{unit:44} {'ours':>8} {base:>8}  {'ratio (min-max)':17} target  aim   "
    print(f"{title}{'ours/best peer':21} peers, to {base}", flush=True)
    command = [*pinned, sys.executable, str(HERE / "codec_race.py"), definition["engine"]]
    options = ["--once"] if arguments.once else ["--seconds", str(arguments.seconds or 4)]
    for row in definition["row"]:
        if arguments.only not in row["name"]:
            continue
        got = ask([*command, json.dumps(row), *options])
        wrong = got.get("failed") or (got["differs"] and f"ANSWERS DIFFER: {got['differs']}")
        if wrong or arguments.once:
            short += bool(wrong)
            print(f"{row['name']:44} {wrong or 'answers agree'}", flush=True)
            continue
        named = row.get("base", base)
        of_best = row.get("of_best", definition["of_best"])
        own = results_of(row, named, got, of_best) if "onecopy" in got["us"] else []
        line, falls = line_of(row, named, got, own)
        short += falls
        results += own
        print(line, flush=True)
    return results, short


#: The unit of a memory row, and the tolerance for memory that is kept: pages, in MiB.
UNITS = {"encode": "x JSON", "iter_chunks": "MiB", "decode": "KiB over the objects"}
KEPT_MIB = 0.5


def memory(definition: dict[str, Any], arguments: argparse.Namespace) -> tuple[list[dict[str, Any]], int]:
    """Measures the memory of all rows, onecopy first; returns the records, and the number of missed
    targets."""
    results: list[dict[str, Any]] = []
    short = 0
    heap = HERE / ".data" / "heap.so"
    heap.parent.mkdir(exist_ok=True)
    subprocess.run(["cc", "-O2", "-shared", "-fPIC", str(HERE / "peers" / "heap.c"), "-o", str(heap)], check=True)
    print("\nmemory of a call, in a process of its own", flush=True)
    for row in definition.get("memory", []):
        if arguments.only not in row["name"]:
            continue
        way = row["way"]
        counted = {"LD_PRELOAD": str(heap), "PYTHONMALLOC": "malloc"} if way == "decode" else {}
        command = [sys.executable, str(HERE / "codec_memory.py"), definition["engine"], json.dumps(row)]
        figures: list[str] = []
        most, unit = row.get("at_most", 0), UNITS[way]
        if "at_most_over" in row:
            most, unit = row["at_most_over"], "KiB over the result"
        objects = ask([*command, "json"], **counted)["kept"] if way == "decode" else 0
        for library in ("onecopy", *row.get("peers", ())):
            got = ask([*command, library], **counted)
            if "failed" in got:
                figures.append(f"{library} {got['failed']}")
                short += library == "onecopy"
                continue
            if way == "decode":
                figure, kept = (got["peak"] - objects) / 1024, got["after"] / 2**20
            elif way == "encode" and "at_most_over" in row:
                figure, kept = (got["peak"] - got["json"]) / 1024, got["kept"] / 2**20
            elif way == "encode":
                figure, kept = got["peak"] / got["json"], got["kept"] / 2**20
            else:
                figure, kept = got["peak"] / 2**20, got["kept"] / 2**20
            verdict = ""
            if library == "onecopy":
                verdict = "  SHORT" * (figure > most or kept > KEPT_MIB)
                short += bool(verdict)
                blank = dict.fromkeys(("ours_us", "peer_us", "ratio_min", "ratio_max"), "")
                line = {"row": row["name"], "size": got["json"], **blank, "ratio": figure, "at_least": most}
                order = ("row", "size", "ours_us", "peer_us", "ratio", "ratio_min", "ratio_max", "at_least")
                results.append({key: line[key] for key in order})
            figures.append(f"{library} {figure:,.2f}, kept {kept:,.1f} MiB{verdict}")
        print(f"{row['name']:34} at most {most} {unit}: {'; '.join(figures)}", flush=True)
    return results, short


def measure(
    definition: dict[str, Any], arguments: argparse.Namespace, pinned: list[str]
) -> tuple[list[dict[str, Any]], int]:
    """Measures all rows of the definition; returns the records, and the number of missed
    targets."""
    results, short = ([], 0) if arguments.memory_only else timed(definition, arguments, pinned)
    if not (arguments.no_memory or arguments.once):
        more, also = memory(definition, arguments)
        results, short = results + more, short + also
    return results, short
