"""The rows of the server benchmark: responses are compared, then the servers are measured in turns;
the table is printed and recorded."""

from __future__ import annotations

import argparse
import contextlib
import http.client
import statistics
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benches.serving import load
from benches.serving.apps import CHUNK, FIELDS, HELLO, LARGE_BYTES, N_CHUNKS, RANGE, big
from benches.serving.servers import Absent, Running
from benches.worker import digest
from tests.support import servers as databases

ROOT = Path(__file__).resolve().parents[2]
OURS = "onecopy"
#: The large file, a part of it: the query string is only for our server.
RANGED = "/large?range"
CITY = "Besan\xe7on, caf\xe9"
#: Name in the result, title of the column, format.
COLUMNS = (
    ("cpu_us", "CPU us", ",.2f"),
    ("per_second", "req/s", ",.0f"),
    ("p50_ms", "p50 ms", ",.2f"),
    ("p99_ms", "p99 ms", ",.2f"),
    ("rss_mib", "MiB", ",.0f"),
    ("n_open", "connected", ",d"),
    ("kib_a_client", "KiB/client", ",.1f"),
    ("first_cut_s", "first cut s", ",.1f"),
    ("last_cut_s", "last cut s", ",.1f"),
    ("n_left", "not cut", ",d"),
    ("n_errors", "errors", ",d"),
    ("n_refused", "not 2xx", ",d"),
)
#: Metrics of which a larger value is better.
MORE_IS_BETTER = {"per_second"}
Figures = dict[str, Any]


def fetch(port: int, path: str) -> tuple[int, list[tuple[str, str]], bytes]:
    """Requests a page as the benchmark does; returns its status, header fields and body."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    fields = {"X-City": CITY.encode("latin-1")} if path == "/headers" else {}
    if path == RANGED:
        fields["Range"] = b"bytes=%d-%d" % RANGE
    sent = b"0123456789abcdef" * 62500 if path == "/echo" else None
    try:
        connection.request("POST" if sent else "GET", path, sent, fields)
        answer = connection.getresponse()
        return answer.status, answer.getheaders(), answer.read()
    finally:
        connection.close()


def wrong(running: Running, path: str, common: dict[str, str]) -> str:
    """The error in a server's response, or an empty string.

    `common` stores a digest of the database rows, with which later servers are compared.
    """
    try:
        status, fields, body = fetch(running.port, path)
    except (OSError, http.client.HTTPException) as error:
        return f"{type(error).__name__}: {error}"
    if status != (206 if path == RANGED else 200):
        return f"status {status}"
    if path in ("/large", RANGED):
        first, last = RANGE if path == RANGED else (0, LARGE_BYTES - 1)
        right = (big() * (LARGE_BYTES // len(big())))[first : last + 1]
        return "" if body == right else f"{len(body):,} bytes"
    if path == "/headers":
        lost = [name for name, value in FIELDS if (name.lower(), value) not in {(n.lower(), v) for n, v in fields}]
        if lost:
            return f"answered with other values of {', '.join(lost)}"
        return "" if body.endswith(CITY.encode("latin-1")) else f"the application saw {body!r}"
    if path == "/rows":
        seen = digest(body)
        return "" if common.setdefault(path, seen) == seen else f"other rows: {seen}"
    right = {"/hello": HELLO, "/big": big(), "/chunks": CHUNK * N_CHUNKS, "/echo": b"0123456789abcdef" * 62500}[path]
    return "" if body == right else f"{len(body):,} bytes, {body[:20]!r}"


@contextlib.contextmanager
def started(row: dict[str, Any], environment: dict[str, str]) -> Iterator[tuple[dict[str, Running], dict[str, str]]]:
    """Starts the servers of a row; yields those that are available, and the reasons for the
    others."""
    sides = row.get("sides") or {name: {"server": name} for name in row["servers"]}
    running: dict[str, Running] = {}
    absent: dict[str, str] = {}
    try:
        for name, side in sides.items():
            try:
                running[name] = Running(side["server"], side.get("app", ""), **environment)
            except Absent as error:
                absent[name] = str(error)
        yield running, absent
    finally:
        for server in running.values():
            server.stop()


def once(row: dict[str, Any], running: Running) -> Figures:
    """Measures one server once."""
    if row.get("load") == "dribble":
        return load.with_slow_clients(running, row["clients"], row["watch_s"])
    if row.get("load") == "sleeper":
        return load.with_a_sleeping_request(running, 1)
    script, n_bytes = row.get("script", "report.lua"), row.get("bytes", 0)
    return load.wrk(running, row["path"], row["connections"], row["seconds"], script, n_bytes)


def rounds(row: dict[str, Any], running: dict[str, Running], notes: dict[str, str]) -> dict[str, list[Figures]]:
    """Measures all servers in turns; each round starts with another server."""
    measured: dict[str, list[Figures]] = {name: [] for name in running}
    names = list(running)
    for k in range(row["rounds"] + ("load" not in row)):
        for name in names[k % len(names) :] + names[: k % len(names)]:
            try:
                if running[name].revive():
                    notes[name] = "ended by itself, started again"
                got = once(row, running[name])
            except Absent as error:
                got = {"failed": str(error)}
            if "failed" in got:
                notes[name] = got["failed"]
            if got.get("slept") is False:
                notes[name] = "the request that sleeps got no answer"
            # The first round warms up.
            if k or "load" in row:
                measured[name].append(got)
    return measured


def middle(measured: list[Figures], metric: str) -> float | None:
    """The median of one of a server's figures over the rounds; None if it was not measured."""
    values = [got[metric] for got in measured if got.get(metric) is not None]
    return statistics.median(values) if values else None


def ratios(metric: str, ours: list[Figures], peer: list[Figures]) -> list[float]:
    """The factors by which onecopy is better than the peer, one for each round, sorted."""
    pairs = [(a.get(metric), b.get(metric)) for a, b in zip(ours, peer, strict=True)]
    return sorted(a / b if metric in MORE_IS_BETTER else b / a for a, b in pairs if a and b)


def result(row: str, size: str, ours: Any = "", peer: Any = "", *figures: Any) -> dict[str, Any]:
    """A line of the record; its column `size` is the metric."""
    names = ("ratio", "ratio_min", "ratio_max", "at_least")
    measured = {"row": row, "size": size, "ours_us": ours, "peer_us": peer} | dict.fromkeys(names, "")
    return measured | dict(zip(names, figures, strict=False))


def against(
    row: dict[str, Any], bar: dict[str, Any], measured: dict[str, list[Figures]], bad: set[str]
) -> tuple[str, dict[str, Any] | None, bool]:
    """Compares onecopy with one target.

    Returns the printed line, the line of the record, and true if the target is missed.
    """
    metric, target, aim = bar.get("metric", "cpu_us"), bar.get("at_least", bar.get("at_most")), bar.get("aim", "-")
    if "of" not in bar:
        value = middle(measured[OURS], metric)
        if value is None:
            return f"    {metric}: nothing was measured  SHORT", None, True
        falls = value > target
        line = f"    {metric} {value:,.2f}, at most {target}, aim {aim}{'  SHORT' if falls else ''}"
        return line, result(row["name"], metric, "", "", value, "", "", target), falls
    peer = bar["of"]
    if peer == "best":
        costs = {
            name: middle(measured[name], metric) for name in row["best_of"] if name in measured and name not in bad
        }
        known = {name: cost for name, cost in costs.items() if cost}
        if not known:
            return "    no peer was measured", None, False
        peer = min(known, key=lambda name: known[name])
    if not measured.get(peer):
        return f"    vs {peer}: not measured", None, False
    got = ratios(metric, measured[OURS], measured[peer])
    if not got:
        return f"    vs {peer}: one side has no figure", None, not middle(measured[OURS], metric)
    ratio = statistics.median(got)
    falls = ratio < target
    title = f"best peer: {peer}" if bar["of"] == "best" else peer
    line = f"    vs {title}: {ratio:.2f} ({got[0]:.2f} - {got[-1]:.2f}) {metric}, at least {target}"
    line += f", aim {aim}{'  SHORT' if falls else ''}"
    ours_us, peer_us = middle(measured[OURS], "cpu_us") or "", middle(measured[peer], "cpu_us") or ""
    kept = result(f"{row['name']}, vs {title}", metric, ours_us, peer_us, ratio, got[0], got[-1], target)
    return line, kept, falls


def measure_row(row: dict[str, Any], environment: dict[str, str], is_once: bool) -> tuple[list[dict[str, Any]], int]:
    """Measures one row and prints its table; returns the records, and the number of missed
    targets."""
    results: list[dict[str, Any]] = []
    print(f"\n{row['name']}", flush=True)
    with started(row, environment) as (running, absent):
        for name, why in absent.items():
            print(f"  {name:28} absent: {why}")
        common: dict[str, str] = {}
        # The rows of sqlite3 are the reference if they are part of the row.
        order = sorted(running, key=lambda name: name == OURS)
        notes = {name: why for name in order if (why := wrong(running[name], row.get("path", "/hello"), common))}
        bad = set(notes) - set(row.get("differs", []))
        notes = {name: f"ANSWERS DIFFER: {why}" for name, why in notes.items()}
        if is_once:
            for name in running:
                print(f"  {name:28} {notes.get(name, 'answers agree')}")
            return [], int(OURS in bad)
        measured = rounds(row, {name: server for name, server in running.items() if name not in bad}, notes)
    columns = [column for column in COLUMNS if any(column[0] in got for each in measured.values() for got in each)]
    print(f"  {'':28}" + "".join(f" {title:>11}" for _, title, _ in columns))
    for name in running:
        line = f"  {name:28}"
        for key, _, form in columns:
            value = middle(measured.get(name, []), key)
            line += f" {'-' if value is None else format(int(value) if form == ',d' else value, form):>11}"
        print(f"{line}  {notes.get(name, '')}".rstrip(), flush=True)
    if OURS in absent:
        print("    our server is absent: nothing to compare")
    if not measured.get(OURS):
        # The figures of peers are recorded even if ours are missing.
        kept = {name: middle(each, "cpu_us") for name, each in measured.items()}
        lines = [result(f"{row['name']}, {name}", "cpu_us", "", cost) for name, cost in kept.items() if cost]
        return lines, int(OURS in bad)
    short = 0
    for bar in row["targets"]:
        line, kept_line, falls = against(row, bar, measured, bad)
        print(line, flush=True)
        short += falls
        results += [kept_line] if kept_line else []
    return results, short


def measure(definition: dict[str, Any], arguments: argparse.Namespace) -> tuple[list[dict[str, Any]], int]:
    """Measures all rows of the definition; returns the records, and the number of missed
    targets."""
    results: list[dict[str, Any]] = []
    short = 0
    environment: dict[str, str] = {}
    common = {"rounds": definition["rounds"], "seconds": definition["seconds"]}
    print(
        "CPU us: of the server's processes, per request; ratios: the peer's over ours,"
        " median of rounds (lowest - highest)"
    )
    for row in (common | row for row in definition["row"]):
        if arguments.only not in row["name"]:
            continue
        if row.get("database") and not environment:
            home = databases.Home()
            databases.start(["sqlite"], home)
            subprocess.run([sys.executable, "-m", "tests.support.servers", "load", "31000"], cwd=ROOT, check=True)
            environment["BENCH_DATABASE"] = databases.native("sqlite", home)["database"]
        row["seconds"] = arguments.seconds or row["seconds"]
        kept, missed = measure_row(row, environment, arguments.once)
        results += kept
        short += missed
    return results, short
