"""Repeats the comparison of a blog post on `ByteArrayOutputStream` on current JVMs: a table for
each JVM, and a profile of both ways to encode a string."""

from __future__ import annotations

import argparse
import re
import statistics
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benches import jvm
from benches.jvm import Jdk

SEED = "io.github.onecopy.bench.seed"
LENGTHS = (10, 100, 1000)
#: Two ways by their titles, which differ in one word.
POST, UNLOCKED = "ByteArrayOutputStream, fresh: the post's", "own copy, not synchronized, fresh"
#: The profile uses texts as long as the post's.
PROFILED = 1000


class Set:
    """A set of measurements in the definition: a JVM with flags, the texts and the lengths."""

    def __init__(self, given: dict[str, Any], definition: dict[str, Any], jdk: Jdk) -> None:
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
        """The version of the JVM and its flags."""
        return " ".join([f"JDK {self.jdk.full}", *self.flags])

    def measure(self, once: bool) -> None:
        """Measures one round: JMH runs each way with each text and length in a process of its
        own."""
        pattern = rf"{SEED}.SeedBenchmark\.({'|'.join(self.ways)})$"
        parameters = {"length": [str(n) for n in self.lengths], "text": self.texts}
        self.taken.append(jvm.jmh(self.jdk, pattern, parameters, self.flags, once))

    def figure(self, way: str, text: str, length: int) -> dict[str, float]:
        """The medians over all rounds: the time, and the ratio to the base's time in the same
        round."""
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
        """The lines of the printed table: times and ratios, with the minimum and maximum over the
        rounds."""
        for text in self.texts:
            lengths = "".join(f"{f'{n} characters':>34}" for n in self.lengths)
            yield f"\n{self.title}, {text} text" + (f": {self.why}" if self.why else "")
            yield f"{'':42}{lengths}"
            for way in self.ways:
                found = ""
                for n in self.lengths:
                    got = self.figure(way, text, n)
                    ratio = f"{got['ratio']:.2f} ({got['ratio_min']:.2f} - {got['ratio_max']:.2f})"
                    found += f"{got['ours_us'] * 1000:>11,.1f} ns {ratio if way != self.base else '':>20}"
                yield f"{self.titles[way]:42}{found}"

    def results(self) -> list[dict[str, Any]]:
        """The lines of the record: the time of each way, the time of the base, and their ratio."""
        return [
            {
                "row": f"{self.title}: {self.titles[way]}",
                "size": f"{text} {n}",
                **self.figure(way, text, n),
                "at_least": "",
            }
            for text in self.texts
            for way in self.ways
            for n in self.lengths
        ]


def _sets(definition: dict[str, Any], found: list[Jdk], only: str) -> list[Set]:
    chosen = []
    for given in definition["set"]:
        jdk = next((jdk for jdk in found if given["jdk"] in ("newest", jdk.version)), None)
        if jdk is None:
            print(f"JDK {given['jdk']} is not found: not measured: {' '.join(given.get('flags', []))}")
            continue
        made = Set(given, definition, jdk)
        if only in made.title:
            chosen.append(made)
    return chosen


def measure(definition: dict[str, Any], arguments: argparse.Namespace) -> tuple[list[dict[str, Any]], None]:
    """Measures all sets in turns, then prints the profiles; returns the records.

    `--only` selects sets by a part of their title, for example "JDK 17" or "Biased".
    """
    found = jvm.jdks()
    jvm.build(found[0])
    sets = _sets(definition, found, arguments.only)
    for jdk in {made.jdk.version: made.jdk for made in sets}.values():
        print(f"JDK {jdk.full}: {jvm.java(jdk, [f'{SEED}.SeedCheck']).strip()}", flush=True)
    for k in range(1 if arguments.once else max(made.rounds for made in sets)):
        for made in sets:
            if k < made.rounds:
                print(f"round {k + 1}: {made.title}", file=sys.stderr, flush=True)
                made.measure(arguments.once)
    tables = ["\n".join(made.lines()) for made in sets]
    if not arguments.once:
        print("\n".join(tables))
    for jdk in {made.jdk.version: made.jdk for made in sets if not made.flags}.values():
        profile(jdk, 1 if arguments.once else 4)
    inlining(found[0])
    return ([] if arguments.once else [line for made in sets for line in made.results()]), None


def profile(jdk: Jdk, seconds: int) -> None:
    """Prints the methods that are most often on top of the stack, for both ways, from JDK Flight
    Recorder."""
    # Samples have line numbers even where the compiler does not record them by default.
    flags = ["-XX:+UseSerialGC", "-XX:+UnlockDiagnosticVMOptions", "-XX:+DebugNonSafepoints"]
    for way in ("post", "getBytes"):
        found = jvm.java(jdk, [f"{SEED}.SeedProfile", way, str(PROFILED), str(seconds)], flags)
        print(f"\nprofile, JDK {jdk.full}, {way}, {PROFILED} characters: {found}", end="")


def inlining(jdk: Jdk) -> None:
    """Prints which calls in the loop of the blog post's method the C2 compiler inlines, for two
    texts."""
    options = ["-XX:+UnlockDiagnosticVMOptions", "-XX:+PrintCompilation", "-XX:+PrintInlining"]
    print(f"\ninlined on JDK {jdk.full}, 100 characters:")
    for text in ("random", "cjk"):
        chosen = [rf"{SEED}.SeedBenchmark\.postFresh$", "-p", f"text={text}", "-p", "length=100"]
        how = ["-f", "1", "-bm", "avgt", *jvm.ITERATIONS, "-jvmArgs", " ".join([*jvm.FLAGS, *options])]
        said = jvm.java(jdk, ["org.openjdk.jmh.Main", *chosen, *how])
        # From the second compilation of the loop on: the lines before are the first compiler's.
        _, _, later = re.split(r"(^ *\d+ +\d+ .{5} 4 .*Loops::into)", said, maxsplit=1, flags=re.M)
        found = []
        for name in ("Loops::into", "ByteArrayOutputStream::write"):
            why = rf"@ \d+ .*\.{name} \(\d+ bytes\) +(?:failed to inline: )?(\S.*?)(?:  |$)"
            found.append(f"{name}: {', '.join(dict.fromkeys(re.findall(why, later, re.M)))}")
        print(f"  {text:8} {'; '.join(found)}")


def plot(name: str, results: list[dict[str, Any]], path: Path) -> bool:
    """Plots the results for random text; returns false if too few ways were measured.

    One part has all ways on the newest JDK at each length. The other has two ways on each JVM at
    100 characters.
    """
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    newest = results[0]["row"].partition(": ")[0]
    bars = [
        (jvm_, way, int(result["size"].split()[1]), result)
        for result in results
        for jvm_, _, way in [result["row"].partition(": ")]
        if result["size"].startswith("random")
    ]
    ways = list(dict.fromkeys(way for jvm_, way, _, _ in bars if jvm_ == newest))
    jvms = list(dict.fromkeys(jvm_ for jvm_, _, _, _ in bars))
    two = [way for way in ways if way in (POST, UNLOCKED)]
    if len(ways) < 2 or len(two) < 2:
        return False
    heights = [0.55 * len(ways), 0.5 * len(jvms)]
    figure, (above, below) = pyplot.subplots(
        2, 1, figsize=(9.5, sum(heights) + 2), height_ratios=heights, constrained_layout=True
    )
    colours = ("#9ecae1", "#4292c6", "#084594")
    for k, length in enumerate(LENGTHS):
        chosen = [(way, r) for jvm_, way, n, r in bars if jvm_ == newest and n == length]
        _bars(above, ways, chosen, (k - 1) * 0.27, 0.25, colours[k], f"{length} characters")
    above.set_title(f"{name}: ways to make UTF-8 of random text, {newest}", fontsize=10)
    for k, way in enumerate(two):
        chosen = [(jvm_, r) for jvm_, each, n, r in bars if each == way and n == 100]
        _bars(below, jvms, chosen, (k - 0.5) * 0.38, 0.36, ("#d7301f", "#fdae6b")[k], way)
    below.set_title("the lock and its absence in other JVMs, 100 characters", fontsize=10)
    for axes, names in ((above, ways), (below, jvms)):
        axes.axvline(1, color="#555555", linewidth=0.8, linestyle=":")
        axes.set_yticks(range(len(names)), names, fontsize=8)
        axes.set_ylim(len(names) - 0.5, -0.5)
        axes.margins(x=0.06)
        axes.set_xlim(left=0)
        axes.legend(fontsize=8, loc="lower right")
        axes.spines[["top", "right"]].set_visible(False)
    below.set_xlabel("time / time of getBytes in the same JVM (lines: lowest and highest of the rounds)", fontsize=9)
    figure.savefig(path, dpi=110)
    pyplot.close(figure)
    return True


def _bars(
    axes: Any,
    names: list[str],
    chosen: list[tuple[str, dict[str, Any]]],
    shift: float,
    height: float,
    colour: str,
    label: str,
) -> None:
    for k, (name, result) in enumerate(chosen):
        y = names.index(name) + shift
        spread = [[result["ratio"] - result["ratio_min"]], [result["ratio_max"] - result["ratio"]]]
        axes.barh(y, result["ratio"], height, color=colour, label=label if k == 0 else None)
        axes.errorbar(result["ratio"], y, xerr=spread, color="#555555", linewidth=0.8)
        axes.annotate(
            f"{result['ratio']:.1f}",
            (result["ratio_max"], y),
            (4, 0),
            textcoords="offset points",
            va="center",
            fontsize=7,
        )
