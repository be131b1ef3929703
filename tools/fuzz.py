"""`make fuzz NAME=http_head`: a fuzz target over its seeds, what it found before, and the inputs kept in .cache/fuzz.

python3 tools/fuzz.py NAME|all [--minutes 10]     exits non-zero where something is found
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess

import rust
from house import CACHE, ROOT, give_up, main, say

_FUZZ = ROOT / "fuzz"


def _targets() -> list[str]:
    return re.findall(r'^\[\[bin\]\]\nname = "(\w+)"', (_FUZZ / "Cargo.toml").read_text(encoding="utf-8"), re.M)


def _main() -> int:
    parser = argparse.ArgumentParser(prog="make fuzz", description=__doc__)
    parser.add_argument("name", nargs="?", default="")
    parser.add_argument("--minutes", type=float, default=10)
    arguments = parser.parse_args()
    names = _targets() if arguments.name == "all" else [arguments.name]
    if not set(names) <= set(_targets()):
        give_up(f"which target? There are: {', '.join(_targets())}\nmake fuzz NAME={_targets()[0]}, or NAME=all", 2)
    # Two constants of the bundled SQLite have one name; the sanitizer would stop at the start.
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
        known = [str(folder) for kind in ("seeds", "regressions") if (folder := _FUZZ / kind / name).is_dir()]
        seconds = round(arguments.minutes * 60)
        limits = [f"-max_total_time={seconds}", "-max_len=600", "-print_final_stats=1"]
        command = [*cargo, "run", "-O", "-a", name, str(corpus), *known, "--", *limits]
        say(f"-- {name}: {arguments.minutes:g} min")
        if subprocess.run(command, cwd=_FUZZ, env=environment, check=False).returncode != 0:
            found.append(name)
    if found:
        give_up(f"found something: {', '.join(found)} (inputs in {os.path.relpath(_FUZZ / 'artifacts')})")
    return 0


if __name__ == "__main__":
    main(_main)
