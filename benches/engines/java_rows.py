"""Benchmarks in Java: strings to UTF-8 and back, and BSON documents, compared with the JDK and the
MongoDB driver."""

from __future__ import annotations

import argparse
import statistics
import sys
from pathlib import Path
from typing import Any, NamedTuple

from benches import jvm
from benches.jvm import Jdk, maven

PACKAGE = "io.github.onecopy.bench"


class Row(NamedTuple):
    """An operation with one content and one length; a target is None if the row has none."""

    name: str
    way: str
    method: str
    content: str
    length: int
    at_least: float | None
    aim: float | None


class Group:
    """A group of rows in the definition, restricted to those that `--only` selects, with their
    measurements."""

    def __init__(self, given: dict[str, Any], rounds: int, only: str) -> None:
        self.base: str = given["base"]
        self.rounds: int = given.get("rounds", rounds)
        self.flags: list[str] = given.get("flags", [])
        self.oldest: int = given.get("oldest", maven.OLDEST)
        self.taken: list[dict[jvm.Key, float]] = []
        self.rows = [row for row in _rows(given) if only in f"{row.name}, {row.way}"]

    def measure(self, jdk: Jdk, once: bool) -> None:
        """Measures one round: JMH runs each operation with each content and length in a process of
        its own."""
        methods = "|".join(sorted({self.base, *(row.method for row in self.rows)}))
        pattern = rf"{PACKAGE}\.({methods.replace('.', chr(92) + '.')})$"
        parameters = {
            "content": list(dict.fromkeys(row.content for row in self.rows)),
            "length": list(dict.fromkeys(str(row.length) for row in self.rows)),
        }
        self.taken.append(jvm.jmh(jdk, pattern, parameters, flags=self.flags, once=once))

    def result(self, row: Row) -> dict[str, Any]:
        """The line of the record for a row: medians over all rounds.

        The ratio is that of the base's and onecopy's times in the same round.
        """
        ours, base = (
            jvm.key(method, content=row.content, length=str(row.length)) for method in (row.method, self.base)
        )
        ratios = sorted(taken[base] / taken[ours] for taken in self.taken)
        return {
            "row": row.name,
            "size": row.way,
            "ours_us": statistics.median(taken[ours] for taken in self.taken) / 1000,
            "peer_us": statistics.median(taken[base] for taken in self.taken) / 1000,
            "ratio": statistics.median(ratios),
            "ratio_min": ratios[0],
            "ratio_max": ratios[-1],
            "at_least": row.at_least or "",
        }


def _rows(given: dict[str, Any]) -> list[Row]:
    rows = []
    for content in given["contents"]:
        for length in given["lengths"]:
            targets = [t for t in given.get("targets", []) if content in t[0] and length in t[1]]
            at_least, aim = targets[0][2:] if targets else (None, None)
            name = f"{given['name']}, {content} {length}"
            rows += [Row(name, way, method, content, length, at_least, aim) for way, method in given["ours"].items()]
            also = given.get("also", {})
            rows += [Row(name, way, method, content, length, None, None) for way, method in also.items()]
    return rows


def measure(definition: dict[str, Any], arguments: argparse.Namespace) -> tuple[list[dict[str, Any]], int | None]:
    """Measures all groups in turns; returns the records, and the number of missed targets.

    `--only` selects rows by a part of their name, for example "decode", "cjk 1000" or "direct".
    """
    jdk = jvm.jdks()[0]
    jvm.build(jdk)
    print(f"JDK {jdk.full}: {jvm.java(jdk, [f'{PACKAGE}.Check']).strip()}", flush=True)
    groups = [Group(given, definition["rounds"], arguments.only) for given in definition["group"]]
    groups = [group for group in groups if group.rows and group.oldest <= jdk.version]
    if arguments.once:
        for group in groups:
            group.measure(jdk, once=True)
            for row in group.rows:
                group.result(row)
            print(f"{len(group.taken[0]):4} benchmarks run: {group.rows[0].name.rpartition(',')[0]}", flush=True)
        return [], None
    for k in range(max((group.rounds for group in groups), default=0)):
        print(f"round {k + 1}", file=sys.stderr, flush=True)
        for group in groups:
            if k < group.rounds:
                group.measure(jdk, once=False)
    return _table(groups)


def _table(groups: list[Group]) -> tuple[list[dict[str, Any]], int]:
    results: list[dict[str, Any]] = []
    short = 0
    print(f"{'':70} {'ours':>12} {'peer':>12}   ratio  (min - max)  target  aim")
    for group in groups:
        for row in group.rows:
            got = group.result(row)
            falls = row.at_least is not None and got["ratio"] < row.at_least
            short += falls
            print(
                f"{f'{row.name}, {row.way}':70} {got['ours_us'] * 1000:>9,.1f} ns {got['peer_us'] * 1000:>9,.1f} ns"
                f"  {got['ratio']:>6.2f}  ({got['ratio_min']:.2f} - {got['ratio_max']:.2f})"
                f"   {row.at_least or '-'}  {row.aim or '-'}{'  SHORT' if falls else ''}"
            )
            results.append(got)
    return results, short


def plot(name: str, results: list[dict[str, Any]], path: Path) -> bool:
    """Plots the rows that have a target; returns true if there are any."""
    from benches import run

    with_target = [result for result in results if result["at_least"] != ""]
    return bool(with_target) and run.plot(name, with_target, path)
