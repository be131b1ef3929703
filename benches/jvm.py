"""The Java side of the benchmarks: finds JDKs, builds the JMH module with Maven, runs it and reads
its results."""

from __future__ import annotations

import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tools"))

import maven  # noqa: E402
from maven import Jdk  # noqa: E402

CORE = os.environ.get("BENCH_CORE", "0")
BUILT = ROOT / "target" / "java" / "onecopy-bench"
#: A collector without its own threads, a heap that is committed at the start, code compiled in the
#: foreground.
FLAGS = ("-XX:+UseSerialGC", "-Xms256m", "-Xmx256m", "-Xmn160m", "-XX:+AlwaysPreTouch", "-Xbatch")
#: For a fork: counts and times of warm-up and measurement.
ITERATIONS = ("-wi", "4", "-w", "100ms", "-i", "4", "-r", "100ms")

#: A method (Class.method) and its parameters, as pairs in the order of their names.
Key = tuple[str, tuple[tuple[str, str], ...]]


def jdks() -> list[Jdk]:
    """The JDKs of this machine, newest first, one per major version; exits if there is none."""
    found = {jdk.version: jdk for jdk in reversed(maven.found())}
    if not found:
        raise SystemExit("no JDK is found\nsudo apt-get install -y openjdk-17-jdk-headless")
    return sorted(found.values(), key=lambda jdk: -jdk.version)


def build(jdk: Jdk) -> None:
    """Builds the benchmark module and its dependencies with Maven; exits if that fails."""
    if shutil.which("mvn") is None:
        raise SystemExit("`mvn` is not there\nsudo apt-get install -y maven")
    command = ["mvn", "-q", "-B", "-f", "java", "-P", "bench", "-pl", "bench", "-am", "package", "-DskipTests"]
    environment = os.environ | {"JAVA_HOME": str(jdk.home)}
    print(f"-- java/bench by Maven, JDK {jdk.full}", file=sys.stderr, flush=True)
    done = subprocess.run(
        command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
    )
    if done.returncode != 0:
        raise SystemExit(f"`{' '.join(command)}` failed:\n{done.stdout[-4000:]}")


def native(jdk: Jdk) -> list[str]:
    """The JVM flag that allows native libraries to be loaded; an empty list if the JDK does not
    have it."""
    return ["--enable-native-access=ALL-UNNAMED"] if jdk.version >= maven.NATIVE else []


def java(jdk: Jdk, arguments: list[str], flags: Iterable[str] = ()) -> str:
    """Runs a class of the module on the core of the benchmarks; returns its output."""
    path = f"{BUILT / 'onecopy-bench-0.1.0.jar'}:{BUILT / 'lib'}/*"
    command = ["taskset", "-c", CORE, str(jdk.home / "bin" / "java"), *native(jdk), *flags, "-cp", path, *arguments]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"`{arguments[0]}` on JDK {jdk.full} failed:\n{done.stdout[-4000:]}\n{done.stderr[-2000:]}")
    return done.stdout


def jmh(
    jdk: Jdk, pattern: str, parameters: dict[str, Iterable[str]], flags: Iterable[str] = (), once: bool = False
) -> dict[Key, float]:
    """Runs each benchmark that the pattern matches with each combination of parameters; returns the
    nanoseconds per call.

    Each combination is one fork of JMH. With ``once`` each benchmark is called once, all in one
    process, and any error is raised.
    """
    chosen = [part for name, values in parameters.items() for part in ("-p", f"{name}={','.join(values)}")]
    how = ["-f", "0", "-bm", "ss", "-wi", "0", "-i", "1"] if once else ["-f", "1", "-bm", "avgt", *ITERATIONS]
    with tempfile.TemporaryDirectory() as folder:
        result = Path(folder) / "result.json"
        figures = ["-tu", "ns", "-t", "1", "-foe", "true", "-rf", "json", "-rff", str(result)]
        forked = [] if once else ["-jvmArgs", " ".join([*FLAGS, *native(jdk), *flags])]
        java(jdk, ["org.openjdk.jmh.Main", pattern, *chosen, *how, *figures, *forked])
        runs = json.loads(result.read_text(encoding="utf-8"))
    figures: dict[Key, float] = {}
    for run in runs:
        key = (".".join(run["benchmark"].split(".")[-2:]), tuple(sorted(run.get("params", {}).items())))
        figures[key] = statistics.median(run["primaryMetric"]["rawData"][0])
    return figures


def key(method: str, **parameters: str) -> Key:
    """The key of a benchmark method with these parameters in the result of `jmh`."""
    return method, tuple(sorted(parameters.items()))
