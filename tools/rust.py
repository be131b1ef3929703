"""Finds the Rust toolchain: the one on the PATH if it is new enough, otherwise one in .cache/rust,
which is downloaded once.

    python3 tools/rust.py COMMAND …     run a command with that toolchain on its PATH

The download uses `puccinialin` from PyPI (which runs rustup's installer). Toolchain, registry and
downloads remain in the checkout.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import subprocess
import sys
import threading
import time
from pathlib import Path

from house import CACHE, ROOT, give_up, main, say

_HOME = CACHE / "rust"
_PUCCINIALIN = "puccinialin==0.1.14"


def wanted() -> tuple[int, int]:
    """The minimum Rust version: the workspace's `rust-version`."""
    text = (ROOT / "Cargo.toml").read_text(encoding="utf-8")
    match = re.search(r'^rust-version = "(\d+)\.(\d+)', text, re.M)
    if match is None:
        give_up("`Cargo.toml` names no rust-version")
    return int(match[1]), int(match[2])


def _version(program: str, environment: dict[str, str]) -> tuple[int, int] | None:
    """The version that `cargo` or `rustc` reports, as major and minor number; None if it does not
    run."""
    found = shutil.which(program, path=environment["PATH"])
    if found is None:
        return None
    done = subprocess.run([found, "--version"], capture_output=True, text=True, env=environment, cwd=ROOT, check=False)
    match = re.search(r"\b(\d+)\.(\d+)\.\d+", done.stdout)
    return (int(match[1]), int(match[2])) if done.returncode == 0 and match else None


def _candidates() -> list[dict[str, str]]:
    """Environment variables to try, in this order: the current ones, rustup's default, the
    checkout's cache."""
    here = dict(os.environ)
    path = here.get("PATH", "")
    home = here | {"PATH": f"{path}:{Path.home() / '.cargo' / 'bin'}"}
    cached = here | {"PATH": f"{_HOME / 'cargo' / 'bin'}:{path}", "CARGO_HOME": str(_HOME / "cargo")}
    cached["RUSTUP_HOME"] = str(_HOME / "rustup")
    # A pin for the user's own toolchains does not apply to this one.
    cached.pop("RUSTUP_TOOLCHAIN", None)
    return [here, home, cached]


def find() -> dict[str, str] | None:
    """The environment variables with which `cargo` and `rustc` are new enough, or None."""
    for environment in _candidates():
        versions = [_version(program, environment) for program in ("cargo", "rustc")]
        if all(version is not None and version >= wanted() for version in versions):
            return environment
    return None


def _size(directory: Path) -> int:
    """The size of a directory in MB; files that disappear meanwhile are ignored."""
    total = 0
    for base, _, names in os.walk(directory):
        for name in names:
            with contextlib.suppress(OSError):
                total += os.lstat(os.path.join(base, name)).st_size
    return total // 1_000_000


def _show_growth(done: threading.Event) -> None:
    begun = time.monotonic()
    while not done.wait(3):
        say(f"   {_size(_HOME)} MB after {time.monotonic() - begun:.0f} s")


def _fetch() -> None:
    major, minor = wanted()
    here = _version("cargo", dict(os.environ))
    found = "there is no `cargo`" if here is None else f"`cargo` is {here[0]}.{here[1]}"
    say(f"-- Rust: {found}, {major}.{minor} or newer is needed.")
    say("   Fetching a toolchain into .cache/rust by PyPI's puccinialin: about 250 MB to download, 640 MB on disk.")
    say("   Nothing outside this checkout changes.")
    helper = CACHE / "puccinialin"
    # An older toolchain on the PATH must not stop the installer.
    environment = dict(os.environ) | {"RUSTUP_INIT_SKIP_PATH_CHECK": "yes"}
    environment.pop("RUSTUP_TOOLCHAIN", None)
    steps = [
        [sys.executable, "-m", "venv", "--clear", str(helper)],
        [str(helper / "bin" / "python"), "-m", "pip", "install", "-q", "--disable-pip-version-check", _PUCCINIALIN],
        [str(helper / "bin" / "python"), "-m", "puccinialin", "--location", str(_HOME), "--info-json", os.devnull],
    ]
    done = threading.Event()
    threading.Thread(target=_show_growth, args=(done,), daemon=True).start()
    begun = time.monotonic()
    try:
        for command in steps:
            if subprocess.run(command, env=environment, cwd=ROOT, check=False).returncode != 0:
                give_up(f"The Rust toolchain could not be fetched: `{' '.join(command)}` failed.\n{_by_hand()}")
    finally:
        done.set()
    say(f"   Rust is in .cache/rust ({_size(_HOME)} MB) after {time.monotonic() - begun:.0f} s.")


def _by_hand() -> str:
    """Instructions to install Rust: distribution packages that are new enough, then rustup."""
    lines = []
    for package, line in (
        ("rustc-web", "sudo apt-get install -y rustc-web cargo-web"),
        ("rustc", "sudo apt-get install -y rustc cargo"),
    ):
        if shutil.which("apt-cache") is not None:
            shown = subprocess.run(["apt-cache", "policy", package], capture_output=True, text=True, check=False).stdout
            match = re.search(r"Candidate: (\d+)\.(\d+)", shown)
            if match and (int(match[1]), int(match[2])) >= wanted():
                lines.append("    " + line)
    lines.append("    curl --proto '=https' --tlsv1.2 -sSf https://sh.rustup.rs | sh")
    return f"Install Rust {wanted()[0]}.{wanted()[1]} or newer, by one of:\n" + "\n".join(lines)


def environment(components: tuple[str, ...] = ()) -> dict[str, str]:
    """The environment variables for cargo; a toolchain is downloaded if there is none.

    ``components`` ("clippy", "rustfmt") are added to the cached toolchain; a toolchain of the user
    is not changed.
    """
    found = find()
    if found is None:
        _fetch()
        found = find()
        if found is None:
            give_up(f"The toolchain in .cache/rust is too old or does not run.\n{_by_hand()}")
    ours = found.get("CARGO_HOME") == str(_HOME / "cargo")
    lacking = [name for name in components if _version(f"cargo-{name.removeprefix('rust')}", found) is None]
    if ours and lacking:
        done = subprocess.run(["rustup", "component", "add", *lacking], env=found, cwd=ROOT, check=False)
        if done.returncode != 0:
            give_up(f"`rustup component add {' '.join(lacking)}` failed")
    elif lacking:
        give_up(f"`cargo` has no {' and no '.join(lacking)}\nrustup component add {' '.join(lacking)}")
    return found


if __name__ == "__main__":

    def _main() -> int:
        if len(sys.argv) < 2:
            give_up(__doc__ or "", 2)
        where = environment()
        os.chdir(ROOT)
        os.execvpe(sys.argv[1], sys.argv[1:], where)

    main(_main)
