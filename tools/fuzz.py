"""`make fuzz NAME=http_head`: runs a fuzz target with its seeds, earlier findings, and the corpus
in .cache/fuzz.

On a new machine the corpus starts with fuzz/kept/NAME.tar.xz, which was saved after long runs.

python3 tools/fuzz.py NAME|all [--minutes 10 | --hours 1]  exits non-zero if something was found

`--hours` is divided among the targets. After each target, the row for the record in fuzz/README.md
is printed.
"""

from __future__ import annotations

import argparse
import datetime
import os
import re
import subprocess
import sys
import sysconfig
import tarfile
from pathlib import Path

import rust
from house import CACHE, ROOT, give_up, main, say

_FUZZ = ROOT / "fuzz"


def _targets() -> list[str]:
    return re.findall(r'^\[\[bin\]\]\nname = "(\w+)"', (_FUZZ / "Cargo.toml").read_text(encoding="utf-8"), re.M)


def _with_interpreter(environment: dict[str, str]) -> dict[str, str]:
    """The environment for a target that embeds a Python interpreter.

    The target is linked with the library of the running interpreter.
    """
    library = Path(sysconfig.get_config_var("LIBDIR") or "", sysconfig.get_config_var("LDLIBRARY") or "")
    if library.suffix != ".so" or not library.is_file():
        give_up(
            f"`{sys.executable}` has no shared library to link\n"
            "sudo apt-get install -y libpython3-dev, or PYTHON= one that was built with --enable-shared"
        )
    # CPython keeps some objects until the process ends; `check` of the targets counts references.
    options = f"{environment['ASAN_OPTIONS']}:detect_leaks=0"
    return environment | {"PYO3_PYTHON": sys.executable, "ASAN_OPTIONS": options}


def _run(command: list[str], environment: dict[str, str]) -> tuple[int, bool]:
    """Runs the fuzzer and shows its output.

    Returns the number of inputs, and true if something was found.
    """
    n_inputs = 0
    with subprocess.Popen(command, cwd=_FUZZ, env=environment, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        for line in process.stderr:
            sys.stderr.write(line)
            if match := re.match(r"stat::number_of_executed_units:\s*(\d+)", line):
                n_inputs = int(match[1])
    return n_inputs, process.returncode != 0


def _main() -> int:
    parser = argparse.ArgumentParser(prog="make fuzz", description=__doc__)
    parser.add_argument("name", nargs="?", default="")
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--hours", type=float, help="for all targets together")
    arguments = parser.parse_args()
    if arguments.hours is not None and not arguments.hours > 0:
        give_up("how many hours?\nmake fuzz-long HOURS=2, with NAME=text_codec for one target", 2)
    names = _targets() if arguments.name == "all" else [arguments.name]
    if not set(names) <= set(_targets()):
        give_up(f"which target? There are: {', '.join(_targets())}\nmake fuzz NAME={_targets()[0]}, or NAME=all", 2)
    # Two constants of the bundled SQLite have the same name, which would stop the sanitizer at the
    # start.
    environment = rust.environment() | {"ASAN_OPTIONS": "detect_odr_violation=0"}
    cargo = ["cargo", "+nightly", "fuzz"]
    there = subprocess.run([*cargo, "--version"], env=environment, capture_output=True, check=False)
    if there.returncode != 0:
        give_up(
            "cargo-fuzz or a nightly compiler is missing\nrustup toolchain install nightly\ncargo install cargo-fuzz"
        )
    found = []
    for name in names:
        corpus = CACHE / "fuzz" / name
        corpus.mkdir(parents=True, exist_ok=True)
        kept = _FUZZ / "kept" / f"{name}.tar.xz"
        if kept.is_file() and not any(corpus.iterdir()):
            with tarfile.open(kept) as archive:
                archive.extractall(corpus, filter="data")
        known = [str(folder) for kind in ("seeds", "regressions") if (folder := _FUZZ / kind / name).is_dir()]
        minutes = arguments.minutes if arguments.hours is None else arguments.hours * 60 / len(names)
        seconds = round(minutes * 60)
        limits = [f"-max_total_time={seconds}", "-max_len=600", "-print_final_stats=1"]
        features = []
        own_environment = environment
        if name.startswith("python_"):
            features = ["--features", "python"]
            limits.append("-detect_leaks=0")
            own_environment = _with_interpreter(environment)
        command = [*cargo, "run", "-O", "-a", *features, name, str(corpus), *known, "--", *limits]
        say(f"-- {name}: {minutes:g} min")
        n_inputs, failed = _run(command, own_environment)
        if failed and n_inputs == 0:
            give_up(f"{name} cannot be built, or does not start: see above")
        if failed:
            found.append(name)
        if arguments.hours is not None:
            has_kernels = name.startswith(("text_", "c_abi", "json_reader", "bson_reader", "extended_json", "python_"))
            kernel = environment.get("ONECOPY_KERNEL", "best") if has_kernels else "-"
            row = f"| {datetime.date.today()} | `{name}` | {kernel} | {minutes:g} | {n_inputs:,} |"
            say(f"for fuzz/README.md: {row} {'see artifacts' if failed else 'none'} |")
    if found:
        give_up(f"found something: {', '.join(found)} (inputs in {os.path.relpath(_FUZZ / 'artifacts')})")
    return 0


if __name__ == "__main__":
    main(_main)
