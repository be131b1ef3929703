"""Checks the requirements of this machine, and lists all missing ones at once, each with the
command that installs it."""

from __future__ import annotations

import importlib.util
import os
import shutil
import sys

import maven
import rust
from house import ROOT, main, say
from tests.support import packages

#: Programs to look for -> Debian's package. Other systems have other names.
_PROGRAMS = {
    "cc": ("a C compiler, for SQLite", "build-essential"),
    "c++": ("a C++ compiler, for simdutf", "build-essential"),
    "git": ("git", "git"),
    "curl": ("curl, to try the addresses that `make run` prints", "curl"),
}
_OLDEST = (3, 10)
_DISK_GB = 4


def _findings() -> tuple[list[str], list[tuple[str, str]]]:
    """The installed requirements, and the missing ones with their remedies."""
    good: list[str] = []
    missing: list[tuple[str, str]] = []
    version = ".".join(map(str, sys.version_info[:3]))
    if sys.version_info < _OLDEST:
        missing.append(
            (f"Python 3.10 or newer (`{sys.executable}` is {version})", "make PYTHON=/path/to/a/newer/python3")
        )
    else:
        good.append(f"Python {version} ({sys.executable})")
    if all(importlib.util.find_spec(name) for name in ("venv", "ensurepip")):
        good.append("venv")
    else:
        missing.append(("Python's venv module", "sudo apt-get install -y python3-venv"))
    for program, (what, package) in _PROGRAMS.items():
        if shutil.which(program):
            good.append(program)
        else:
            missing.append((f"{what} (`{program}`)", f"sudo apt-get install -y {package}"))
    free = shutil.disk_usage(ROOT).free / 1e9
    if free < _DISK_GB:
        missing.append((f"space on the disk ({free:.1f} GB free, {_DISK_GB} GB needed)", "free some"))
    else:
        good.append(f"{free:.0f} GB of disk")
    return good, missing


def check(quiet: bool = False) -> bool:
    """Prints the requirements (only the missing ones if ``quiet``); returns False if one is
    missing."""
    good, missing = _findings()
    if not quiet:
        say("here:    " + ", ".join(good))
    for what, remedy in missing:
        say(f"missing: {what}\n             {remedy}")
    packages = {remedy.split()[-1] for _, remedy in missing if "apt-get" in remedy}
    if len(packages) > 1:
        say(f"all at once:\n             sudo apt-get install -y {' '.join(sorted(packages))}")
    return not missing


def _main() -> int:
    if not check():
        return 1
    found = rust.find()
    major, minor = rust.wanted()
    if found is None:
        say(
            f"rust:    {major}.{minor} or newer is not installed;"
            " `make dev` downloads one into .cache/rust (250 MB) and nowhere else"
        )
    else:
        say(f"rust:    {shutil.which('cargo', path=found['PATH'])}")
    absent = packages.missing()  # Databases for the tests; not needed to build or to run.
    if absent:
        who = "`make test` installs" if os.geteuid() == 0 else "tests that need them are skipped without"
        say(f"tests:   {who} {' '.join(absent)}")
    jdk = maven.native(maven.found())
    if jdk is not None:
        say(f"java:    JDK {jdk.full} ({jdk.home})")
    for what, remedy in maven.missing():
        say(f"java:    the tests of the Java artifact are skipped without {what}\n             {remedy}")
    say("`make run` builds onecopy and serves a demo; `make help` lists the rest.")
    return 0


if __name__ == "__main__":
    main(_main)
