"""Runs one benchmark definition: compares results, measures libraries in turns, prints the table,
appends to the record, plots."""

from __future__ import annotations

import argparse
import csv
import datetime
import importlib
import json
import os
import platform
import re
import statistics
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import tomllib

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
sys.path.insert(0, str(ROOT))

from benches import codec_rows  # noqa: E402
from benches.serving import rows as serving  # noqa: E402
from tests.support import servers  # noqa: E402
from tests.support.drivers import Unavailable  # noqa: E402

CORE = os.environ.get("BENCH_CORE", "0")


def machine() -> str:
    """A name for this kind of machine, without its host name: processor, family, vector
    instructions, number of cores."""
    about: dict[str, str] = {}
    for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
        name, _, value = line.partition(":")
        about.setdefault(name.strip(), value.strip())
    model = re.sub(r"\(.*?\)|@.*|CPU|Processor", "", about.get("model name", "unknown"))
    family = f"family-{about['cpu family']}" if "cpu family" in about else ""
    flags = about.get("flags", "").split()
    # The features by which kernels are selected.
    vectors = "avx512" if "avx512_vbmi2" in flags else "avx2" if "avx2" in flags else "scalar"
    words = [*re.findall(r"[a-z0-9]+", model.lower()), family, vectors, f"{os.cpu_count()}-cores"]
    return "-".join(word for word in words if word)


def commit() -> str:
    """The measured commit; `+` is appended if the working tree has changes."""
    git = ["git", "-C", str(ROOT)]
    head = subprocess.run(
        [*git, "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=True
    ).stdout.strip()
    dirty = subprocess.run(
        [*git, "status", "--porcelain", "-uno"], capture_output=True, text=True, check=True
    ).stdout.strip()
    return head + ("+" if dirty else "")


class Worker:
    """A process that runs one engine."""

    def __init__(self, module: str, function: str, target: dict[str, Any], size: int) -> None:
        command = ["taskset", "-c", CORE, sys.executable, str(HERE / "worker.py"), module, function]
        self._process = subprocess.Popen(
            [*command, json.dumps(target), str(size)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=ROOT,
        )

    def ask(self, do: str) -> dict[str, Any]:
        """Sends one command, and waits for its answer."""
        assert self._process.stdin is not None and self._process.stdout is not None
        print(json.dumps({"do": do}), file=self._process.stdin, flush=True)
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"the engine ended with code {self._process.wait()}")
        return dict(json.loads(line))

    def close(self) -> None:
        """Ends the process."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()


def _descendants(pid: int) -> list[int]:
    """The process and all that it has started, which still run."""
    children: dict[int, list[int]] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text(encoding="ascii", errors="replace").rpartition(")")[2].split()
        except OSError:
            continue
        children.setdefault(int(fields[1]), []).append(int(stat.parent.name))
    found = [pid]
    for parent in found:
        found += children.get(parent, [])
    return found


def place_server(profile: str, home: servers.Home, with_engines: bool) -> None:
    """Moves the profile's server to the processor of the engines, or to all others.

    Otherwise the scheduler moves a client and its server to one processor in some rounds and to two
    in others. On two, rows are read in half the time; on one, a short query takes a fifth of the
    time, since no processor has to be woken.
    """
    processors = {int(CORE)} if with_engines else os.sched_getaffinity(0) - {int(CORE)}
    with home.state() as state:
        process = state.get(servers.PROFILES.get(profile, ("sqlite",))[0], {}).get("process")
    for pid in _descendants(process[0]) if process and processors else []:
        command = ["taskset", "-acp", ",".join(map(str, sorted(processors))), str(pid)]
        # A process of the server may end meanwhile.
        subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)


def target_of(profile: str, home: servers.Home) -> dict[str, Any]:
    """The connection strings and keywords of a profile's database, for the engines."""
    if profile == "sqlite":
        file = servers.native("sqlite", home)["database"]
        return {"profile": profile, "onecopy": f"sqlite:{file}?mode=ro", "file": file}
    odbc = servers.odbc_string(profile, home)
    server = servers.PROFILES[profile][0]
    native = {} if server == "tds" else servers.native(server, home)
    return {"profile": profile, "onecopy": odbc, "odbc": odbc, "native": native}


def measure(row: dict[str, Any], target: dict[str, Any], size: int, rounds: int) -> dict[str, Any]:
    """Measures one row at one size, onecopy and the peer in turns; returns the line of the
    record."""
    module = row.get("module", "rows")
    ours, peer = (Worker(module, row[side], target, size) for side in ("ours", "peer"))
    try:
        times: list[tuple[float, float]] = []
        for k in range(rounds + 1):
            pair = (ours.ask("time")["wall"], peer.ask("time")["wall"])
            if k:  # The first round warms both up.
                times.append(pair)
    finally:
        ours.close()
        peer.close()
    ratios = sorted(b / a for a, b in times)
    return {
        "row": row["name"],
        "size": size,
        "ours_us": statistics.median(a for a, _ in times) / size * 1e6,
        "peer_us": statistics.median(b for _, b in times) / size * 1e6,
        "ratio": statistics.median(ratios),
        "ratio_min": ratios[0],
        "ratio_max": ratios[-1],
        # the target applies to other sizes only for few rows.
        "at_least": row.get("at_least", "") if size in row.get("target_sizes", [31_000]) else "",
    }


def same_answers(row: dict[str, Any], target: dict[str, Any], size: int) -> str | None:
    """None if both engines return the same rows; otherwise a description of the difference."""
    answers = []
    for function in (row["ours"], row["peer"]):
        worker = Worker(row.get("module", "rows"), function, target, size)
        answers.append(worker.ask("answer")["answer"])
        worker.close()
    # An iteration keeps no rows: only its count can be compared.
    if answers[0].split()[0] == answers[1].split()[0] and ("iterate" in row["ours"] or answers[0] == answers[1]):
        return None
    return f"{row['ours']}: {answers[0]}; {row['peer']}: {answers[1]}"


def memory(definition: dict[str, Any], home: servers.Home) -> list[dict[str, Any]]:
    """Measures how much the memory of the process grows while each profile streams, at each size.

    The growth is that since the import, or since a query with few rows if the row has ``idle``.
    """
    results = []
    for row in definition["row"]:
        command = "memory, idle" if row.get("idle") else "memory"
        place_server(row["profile"], home, with_engines=False)
        for size in definition["sizes"]:
            worker = Worker("rows", definition["engine"], target_of(row["profile"], home), size)
            growth = worker.ask(command)["growth"] / 1e6
            worker.close()
            bar = row["at_most_mb"]
            verdict = "no bar" if not bar else ("ok" if growth <= bar else "SHORT")
            name = f"{command}, {row['profile']}"
            print(f"  {name:30} {size:>9,} rows  {growth:7.1f} MB  (at most {bar or '-'})  {verdict}", flush=True)
            results.append(
                {
                    "row": name,
                    "size": size,
                    "ours_us": "",
                    "peer_us": "",
                    "ratio": round(growth, 2),
                    "ratio_min": "",
                    "ratio_max": "",
                    "at_least": bar,
                }
            )
    return results


#: Forces the kernels for a processor without AVX-512, for the second column.
AVX2 = {"ONECOPY_KERNEL": "avx2", "SIMDUTF_FORCE_IMPLEMENTATION": "haswell"}


def measure_calls(definition: dict[str, Any], arguments: argparse.Namespace) -> tuple[list[dict[str, Any]], int]:
    """Measures the calls of onecopy and of the peer in one process.

    They are measured with the best kernels and again with those for AVX2. Returns the records, and
    the number of missed targets.
    """
    command = ["taskset", "-c", CORE, sys.executable, str(HERE / "calls.py"), definition["engine"]]
    command += ["--only", arguments.only, *(["--once"] if arguments.once else [])]
    command += ["--rounds", str(definition.get("rounds", 15))]
    results: list[dict[str, Any]] = []
    short = 0
    print(f"{'':52} {'kernels':8} {'ours':>12} {'peer':>12}   ratio  (min - max)   target  aim", flush=True)
    for kernels, forced in (("best", {}), ("avx2", AVX2)):
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT, env=os.environ | forced)
        assert process.stdout is not None
        for line in process.stdout:
            row = json.loads(line)
            if not row["same"]:
                print(f"{row['name']:52} {kernels:8} ANSWERS DIFFER")
                short += 1
                continue
            if arguments.once:
                print(f"{row['name']:52} {kernels:8} answers agree")
                continue
            # The target applies to the best kernels; that no row is slower applies to all.
            bar = row["at_least"] if kernels == "best" or row["at_least"] == 1 else None
            # A twentieth is noise: parity.
            falls = bar is not None and row["ratio"] < bar * (0.95 if bar == 1 else 1)
            short += falls
            print(
                f"{row['name']:52} {kernels:8} {row['ours_ns']:>9,.0f} ns {row['peer_ns']:>9,.0f} ns"
                f"  {row['ratio']:>6.2f}"
                f"  ({row['ratio_min']:.2f} - {row['ratio_max']:.2f})   {bar or '-'}  {row['aim'] or '-'}"
                f"{'  SHORT' if falls else ''}",
                flush=True,
            )
            results.append(
                {
                    "row": row["name"],
                    "size": kernels,
                    "ours_us": row["ours_ns"] / 1000,
                    "peer_us": row["peer_ns"] / 1000,
                    "ratio": row["ratio"],
                    "ratio_min": row["ratio_min"],
                    "ratio_max": row["ratio_max"],
                    "at_least": bar or "",
                }
            )
        if process.wait() != 0:
            raise RuntimeError(f"the engine ended with code {process.returncode}")
    return results, short


def save(name: str, results: list[dict[str, Any]]) -> Path:
    """Appends the results to the record of this machine and day; returns its path."""
    folder = HERE / "record" / machine()
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{datetime.date.today()}.csv"
    fresh = not path.exists()
    with open(path, "a", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, ["bench", "commit", "python", *results[0]])
        if fresh:
            writer.writeheader()
        for result in results:
            rounded = {k: round(v, 4) if isinstance(v, float) else v for k, v in result.items()}
            writer.writerow({"bench": name, "commit": commit(), "python": platform.python_version(), **rounded})
    return path


def plot(name: str, results: list[dict[str, Any]], path: Path) -> bool:
    """Plots a bar for each row and size: the ratio, with a mark for the target.

    Returns false if there is nothing to plot.
    """
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    timed = [result for result in results if result["ours_us"] != ""]
    if len(timed) > 100:  # Only those with a target; the rest is in the record.
        with_target = {result["row"] for result in timed if result["at_least"] not in ("", 1)}
        timed = [result for result in timed if result["row"] in with_target]
    if not timed:
        return False
    names = list(dict.fromkeys(result["row"] for result in timed))
    # A row of a codec is plotted for the base and for the best peer, whichever it is.
    timed = [result | {"size": str(result["size"]).split(":")[0]} for result in timed]
    sizes = list(dict.fromkeys(result["size"] for result in timed))
    sizes.sort(key=lambda size: int(size) if size.isdigit() else 0)
    figure, axes = pyplot.subplots(figsize=(10, 0.62 * len(names) + 1.6), constrained_layout=True)
    shades = pyplot.get_cmap("Blues")
    colours = {size: shades(0.4 + 0.55 * k / len(sizes)) for k, size in enumerate(sizes)}
    for at, name_of_row in enumerate(names):
        bars = [result for result in timed if result["row"] == name_of_row]
        height = 0.8 / max(len(bars), 2)
        for k, result in enumerate(bars):
            y, size = at + (k - (len(bars) - 1) / 2) * height, result["size"]
            label = f"{int(size):,} rows" if size.isdigit() else size
            axes.barh(y, result["ratio"], height * 0.92, color=colours[size], label=label)
            axes.text(result["ratio"] + 0.03, y, f"{result['ratio']:.2f}", va="center", fontsize=7)
            if target := result["at_least"]:
                axes.plot([target] * 2, [y - height / 2, y + height / 2], color="#d7301f", linewidth=1.6)
    axes.axvline(1, color="#555", linewidth=0.8, linestyle=":")
    axes.set_yticks(range(len(names)), names, fontsize=8)
    axes.invert_yaxis()
    axes.set_xlabel("time of the peer / time of onecopy (red: the target)", fontsize=9)
    axes.set_title(f"{name}, {machine()}", fontsize=10)
    handles, labels = axes.get_legend_handles_labels()
    first = {label: handle for handle, label in zip(handles, labels, strict=True)}
    axes.legend(first.values(), first.keys(), fontsize=8, loc="lower right")
    axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=130)
    return True


def finish(
    arguments: argparse.Namespace, results: list[dict[str, Any]], short: int | None, draw: Callable[..., bool] = plot
) -> int:
    """Plots the results, appends them to the record, and prints the number `short` of missed
    targets.

    `short` is None if no row has a target.
    """
    if results:
        folder = HERE / ".data"
        folder.mkdir(exist_ok=True)
        picture = folder / f"{arguments.name}.png"
        is_drawn = any(result["ours_us"] != "" for result in results) and draw(arguments.name, results, picture)
        if is_drawn:
            print(f"\nplot: benches/.data/{picture.name}")
        if arguments.save:
            path = save(arguments.name, results)
            if is_drawn:
                path.with_name(f"{path.stem}-{arguments.name}.png").write_bytes(picture.read_bytes())
            print(f"record: {path.relative_to(ROOT)}")
    if short is None:
        return 0
    print(f"{short} rows below their target" if short else "every compared row reaches its target")
    return 0


def definition_of(name: str) -> dict[str, Any]:
    """The definition with that name, including the rows of the definitions that it includes."""
    definition = tomllib.loads((HERE / "definitions" / f"{name}.toml").read_text(encoding="utf-8"))
    for included in definition.pop("include", []):
        definition["row"] += definition_of(included)["row"]
    return definition


def main() -> int:
    """Runs the command line; returns the exit status."""
    parser = argparse.ArgumentParser(prog="bench", description=__doc__)
    parser.add_argument("name", help="a file of definitions/, without .toml")
    parser.add_argument("--save", action="store_true", help="append to the record")
    parser.add_argument("--once", action="store_true", help="only compare the answers, on the smallest size: a test")
    parser.add_argument("--only", default="", help="rows whose name holds this")
    parser.add_argument("--sizes", default="", help="sizes to measure, with commas")
    parser.add_argument("--no-memory", action="store_true", help="leave the memory rows out")
    parser.add_argument("--memory-only", action="store_true", help="only the memory rows")
    parser.add_argument(
        "--seconds", type=float, help="how long one row of a codec (4), or one run of wrk, lasts, about"
    )
    arguments = parser.parse_args()
    definition = definition_of(arguments.name)
    if definition.get("kind") == "script":
        module = importlib.import_module(f"benches.engines.{definition['engine']}")
        measured = module.main(once=arguments.once)
        if measured and not arguments.once:
            return finish(arguments, measured, sum(r["ratio"] < r["at_least"] for r in measured))
        return 0
    if definition.get("kind") in ("java", "simulation"):
        engine = importlib.import_module(f"benches.engines.{definition['engine']}")
        return finish(arguments, *engine.measure(definition, arguments), draw=getattr(engine, "plot", plot))
    if definition.get("kind") == "calls":
        return finish(arguments, *measure_calls(definition, arguments))
    if definition.get("kind") == "codecs":
        return finish(arguments, *codec_rows.measure(definition, arguments, ["taskset", "-c", CORE]))
    if definition.get("kind") == "serve":
        return finish(arguments, *serving.measure(definition, arguments))
    chosen = [int(size) for size in arguments.sizes.split(",") if size]
    sizes = chosen or definition["sizes"]
    rows = [row for row in definition["row"] if arguments.only in row["name"] and not arguments.memory_only]
    home = servers.Home()
    profiles = [row["profile"] for row in [*rows, *definition.get("memory", {}).get("row", [])]]
    names = sorted({servers.PROFILES.get(profile, ("sqlite",))[0] for profile in profiles})
    for name, reason in servers.start(names, home).items():
        print(f"bench: `{name}` cannot be had: {reason}", file=sys.stderr)
    if not arguments.once:
        wanted = sorted({*sizes, *definition.get("memory", {}).get("sizes", [])})
        subprocess.run([sys.executable, "-m", "tests.support.servers", "load", *map(str, wanted)], cwd=ROOT, check=True)
    results: list[dict[str, Any]] = []
    short = 0
    print(f"{'':58} {'rows':>9} {'ours':>8} {'peer':>8}   ratio  (min - max)   target", flush=True)
    for row in rows:
        try:
            target = target_of(row["profile"], home)
        except Unavailable as error:
            print(f"{row['name']:58} cannot be measured here: {error}")
            short += 1
            continue
        place_server(row["profile"], home, with_engines=row.get("processors") == "one")
        difference = same_answers(row, target, row.get("own_sizes", definition["sizes"])[0])
        if difference and "differs" in row:
            print(f"{row['name']:58} its answers differ: {row['differs']}")
        elif difference:
            print(f"{row['name']:58} ANSWERS DIFFER: {difference}")
            short += 1
            continue
        if arguments.once:
            print(f"{row['name']:58} answers agree")
            continue
        for size in row.get("own_sizes") or [size for size in row.get("sizes", sizes) if size in sizes]:
            result = measure(row, target, size, int(definition["rounds"][str(size)]))
            results.append(result)
            bar, most = result["at_least"], row.get("at_most_us")
            falls = (bool(bar) and result["ratio"] < bar) or (most is not None and result["ours_us"] > most)
            short += falls
            print(
                f"{row['name']:58} {size:>9,} {result['ours_us']:>8.3f} {result['peer_us']:>8.3f}"
                f"  {result['ratio']:>6.2f}  ({result['ratio_min']:.2f} - {result['ratio_max']:.2f})"
                f"   {f'{most} us' if most else bar or '-'}{'  SHORT' if falls else ''}",
                flush=True,
            )
    if "memory" in definition and not (arguments.no_memory or arguments.once or arguments.only):
        print("\ngrowth of the process while it streams NDJSON:")
        results += memory(definition["memory"], home)
        short += sum(
            bool(r["at_least"]) and r["row"].startswith("memory") and r["ratio"] > r["at_least"] for r in results
        )
    return finish(arguments, results, short)


if __name__ == "__main__":
    sys.exit(main())
