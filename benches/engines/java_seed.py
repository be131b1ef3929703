"""The post's comparison in JVMs of today: a table for each of them, and a profile of both ways."""

from __future__ import annotations

import argparse
import statistics
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benches import jvm

SEED = "io.github.onecopy.bench.seed"
LENGTHS = (10, 100, 1000)
#: The profile is of texts as long as the post's.
PROFILED = 1000


class Set:
    """A set of the definition in the JVM it is for, with what was measured so far."""

    def __init__(self, given: dict[str, Any], definition: dict[str, Any], jdk: jvm.Jdk) -> None:
        self.jdk, self.base = jdk, definition["base"]
        self.flags: list[str] = given.get("flags", [])
        self.texts: list[str] = given.get("texts", ["random"])
        self.lengths: list[int] = given.get("lengths", LENGTHS)
        self.rounds: int = given.get("rounds", 2)
        self.why: str = given.get("why", "")
        self.titles = {way["name"]: way["title"] for way in definition["way"]}
        self.ways = [way for way in given.get("ways", self.titles) if way in self.titles]
        self.taken: list[dict[jvm.Key, float]] = []

    @property
    def title(self) -> str:
        """The JVM and its flags."""
        return " ".join([f"JDK {self.jdk.version}", *self.flags])

    def measure(self, once: bool) -> None:
        """One round: a process for each way, text and length."""
        pattern = rf"{SEED}.SeedBenchmark\.({'|'.join(self.ways)})$"
        parameters = {"length": [str(n) for n in self.lengths], "text": self.texts}
        self.taken.append(jvm.jmh(self.jdk, pattern, parameters, self.flags, once))

    def figure(self, way: str, text: str, length: int) -> dict[str, float]:
        """Medians over the rounds: time, and ratio to the base in the same round."""
        at, base = (jvm.key(f"SeedBenchmark.{each}", text=text, length=str(length)) for each in (way, self.base))
        ratios = sorted(taken[at] / taken[base] for taken in self.taken)
        return {
            "ours_us": statistics.median(taken[at] for taken in self.taken) / 1000,
            "peer_us": statistics.median(taken[base] for taken in self.taken) / 1000,
            "ratio": statistics.median(ratios),
            "ratio_min": ratios[0],
            "ratio_max": ratios[-1],
        }

    def lines(self) -> Iterator[str]:
        """Its table: time and ratio, with the lowest and highest of the rounds."""
        for text in self.texts:
            lengths = "".join(f"{f'{n} characters':>34}" for n in self.lengths)
            yield f"\n{self.title}, {text} text" + (f": {self.why}" if self.why else "")
            yield f"{'':42}{lengths}"
            for way in self.ways:
                told = ""
                for n in self.lengths:
                    got = self.figure(way, text, n)
                    ratio = f"{got['ratio']:.2f} ({got['ratio_min']:.2f} - {got['ratio_max']:.2f})"
                    told += f"{got['ours_us'] * 1000:>11,.1f} ns {ratio if way != self.base else '':>20}"
                yield f"{self.titles[way]:42}{told}"

    def results(self) -> list[dict[str, Any]]:
        """Its lines of the record: time of a way, time of the base, first divided by second."""
        return [
            {"row": f"{self.title}: {self.titles[way]}", "size": f"{text} {n}", **self.figure(way, text, n), "at_least": ""}
            for text in self.texts
            for way in self.ways
            for n in self.lengths
        ]


def _sets(definition: dict[str, Any], found: list[jvm.Jdk], only: str) -> list[Set]:
    chosen = []
    for given in definition["set"]:
        jdk = next((jdk for jdk in found if given["jdk"] in ("newest", jdk.major)), None)
        if jdk is None:
            print(f"JDK {given['jdk']} is not found: not measured: {' '.join(given.get('flags', []))}")
            continue
        made = Set(given, definition, jdk)
        if only in made.title:
            chosen.append(made)
    return chosen


def measure(definition: dict[str, Any], arguments: argparse.Namespace) -> tuple[list[dict[str, Any]], None]:
    """All sets in turns, then the profiles. `--only` takes a part of a set's title: "JDK 17", "Biased"."""
    found = jvm.jdks()
    if not found:
        raise SystemExit("no JDK is found: set JAVA_HOME, or: sudo apt-get install -y openjdk-17-jdk-headless")
    jvm.build(found[0])
    sets = _sets(definition, found, arguments.only)
    for jdk in {made.jdk.major: made.jdk for made in sets}.values():
        print(f"JDK {jdk.version} ({jdk.maker}): {jvm.java(jdk, [f'{SEED}.SeedCheck']).strip()}", flush=True)
    for k in range(1 if arguments.once else max(made.rounds for made in sets)):
        for made in sets:
            if k < made.rounds:
                print(f"round {k + 1}: {made.title}", file=sys.stderr, flush=True)
                made.measure(arguments.once)
    if not arguments.once:
        for made in sets:
            print("\n".join(made.lines()))
    for jdk in {made.jdk.major: made.jdk for made in sets if not made.flags}.values():
        profile(jdk, 1 if arguments.once else 4)
    return ([] if arguments.once else [line for made in sets for line in made.results()]), None


def profile(jdk: jvm.Jdk, seconds: int) -> None:
    """What is on top of the stack how often, of both ways, by the flight recorder."""
    # Samples are told by their line also where the compiler has not been asked to remember it.
    flags = ["-XX:+UseSerialGC", "-XX:+UnlockDiagnosticVMOptions", "-XX:+DebugNonSafepoints"]
    for way in ("post", "getBytes"):
        told = jvm.java(jdk, [f"{SEED}.SeedProfile", way, str(PROFILED), str(seconds)], flags)
        print(f"\nprofile, JDK {jdk.version}, {way}, {PROFILED} characters: {told}", end="")


def plot(name: str, results: list[dict[str, Any]], path: Path) -> bool:
    """Random text without flags on the newest JDK: one bar a way and length, as many times the time of the base."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    newest = results[0]["row"].partition(": ")[0]
    bars = [r for r in results if r["row"].startswith(f"{newest}: ") and r["size"].startswith("random")]
    ways = list(dict.fromkeys(bar["row"].partition(": ")[2] for bar in bars))
    if len(ways) < 2:
        return False
    figure, axes = pyplot.subplots(figsize=(9.5, 0.52 * len(ways) + 1.4), constrained_layout=True)
    colours = ("#9ecae1", "#4292c6", "#084594")
    for k, length in enumerate(LENGTHS):
        for bar in (bar for bar in bars if bar["size"] == f"random {length}"):
            y = ways.index(bar["row"].partition(": ")[2]) + (k - 1) * 0.27
            spread = [[bar["ratio"] - bar["ratio_min"]], [bar["ratio_max"] - bar["ratio"]]]
            axes.barh(y, bar["ratio"], 0.25, color=colours[k], label=f"{length} characters")
            axes.errorbar(bar["ratio"], y, xerr=spread, color="#555555", linewidth=0.8)
            axes.text(bar["ratio_max"] + 0.08, y, f"{bar['ratio']:.1f}", va="center", fontsize=7)
    axes.axvline(1, color="#555555", linewidth=0.8, linestyle=":")
    axes.set_yticks(range(len(ways)), ways, fontsize=8)
    axes.invert_yaxis()
    axes.set_xlabel("time / time of getBytes, random text (lines: lowest and highest of the rounds)", fontsize=9)
    axes.set_title(f"{name}, {newest}", fontsize=10)
    handles, labels = axes.get_legend_handles_labels()
    first = {label: handle for handle, label in zip(handles, labels, strict=True)}
    axes.legend(first.values(), first.keys(), fontsize=8, loc="lower right")
    axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=130)
    pyplot.close(figure)
    return True
