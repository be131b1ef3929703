"""Helpers of the setup scripts: paths, timed steps, and error messages. It uses only the standard
library."""

from __future__ import annotations

import math
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NoReturn

ROOT = Path(__file__).resolve().parent.parent
CACHE = ROOT / ".cache"
VENV = ROOT / ".venv"
# The scripts use tests/support, which lists the requirements of the databases.
sys.path.insert(0, str(ROOT))
#: Groups of Python tests, of similar duration. Each group, and all other tests, run in a process of
#: their own at the same time: those of "drivers" and "servers" mostly wait.
TEST_GROUPS = {
    "codecs": ("tests/bson", "tests/compat", "tests/copies", "tests/json", "tests/text"),
    "drivers": ("tests/gateway", "tests/postgres", "tests/rows/test_lying_drivers.py", "tests/rows/test_stalls.py"),
    "servers": ("tests/cli", "tests/docs", "tests/examples", "tests/moving", "tests/serve", "tests/web"),
}
#: Cargo's profile for tests: CI uses `quick`, which has no link-time optimisation.
PROFILE = os.environ.get("ONECOPY_PROFILE", "release")


def build_options(profile: str) -> list[str]:
    """The options of maturin for a Cargo profile.

    The test profile `quick` includes the planted faults, which a variable of the environment
    activates, so that no second build is needed to test the copy counter.
    """
    planted = ["--features", "planted-copy"] if profile == "quick" else []
    return ["--profile", profile, "--locked", *planted]


def say(text: str) -> None:
    """Prints a line for the user."""
    print(text, flush=True)


def give_up(text: str, code: int = 1) -> NoReturn:
    """Exits with a message: its first line is the problem, the next ones are the remedy."""
    print(text, file=sys.stderr, flush=True)
    raise SystemExit(code)


@contextmanager
def step(title: str) -> Iterator[None]:
    """A context with a title; its duration is printed at its end, also if it fails."""
    say(f"-- {title}")
    begun = time.monotonic()
    try:
        yield
    finally:
        say(f"   {title}: {time.monotonic() - begun:.1f} s")


def run(command: list[str], env: dict[str, str] | None = None, quiet: bool = False, cwd: Path = ROOT) -> None:
    """Runs a command in a directory; exits with its exit code if it fails.

    With ``quiet``, the end of its output is shown, and only if it failed.
    """
    out = subprocess.PIPE if quiet else None
    done = subprocess.run(
        command, cwd=cwd, env=env, stdout=out, stderr=subprocess.STDOUT if quiet else None, check=False
    )
    if done.returncode != 0:
        if quiet:
            for line in done.stdout.decode(errors="replace").splitlines()[-12:]:
                print(line[:300], file=sys.stderr)
        give_up(f"`{' '.join(command)}` failed with exit code {done.returncode}", done.returncode or 1)


def wait_or_abort(process: subprocess.Popen[str], limit_s: float) -> tuple[int, float]:
    """Waits for a process; returns its exit code, and the processor seconds of it and its children.

    After ``limit_s`` the process is ended with SIGABRT. Python then prints the stacks of its
    threads if ``PYTHONFAULTHANDLER`` is set.
    """
    signals = iter(((signal.SIGABRT, 20), (signal.SIGKILL, math.inf)))
    deadline = time.monotonic() + limit_s
    # `Popen.wait` does not return the usage of resources.
    while (ended := os.wait4(process.pid, os.WNOHANG))[0] == 0:
        if time.monotonic() > deadline:
            number, more_s = next(signals)
            say(f"process {process.pid} is still running after {limit_s:.0f} s: {number.name}\n{process.args!r}")
            process.send_signal(number)
            deadline = time.monotonic() + more_s
        time.sleep(0.1)
    _, status, usage = ended
    process.returncode = os.waitstatus_to_exitcode(status)
    return process.returncode, usage.ru_utime + usage.ru_stime


def main(function: Callable[[], int]) -> NoReturn:
    """Runs a script's function; Ctrl-C ends it with exit code 130 and without a traceback."""
    try:
        raise SystemExit(function())
    except KeyboardInterrupt:
        raise SystemExit(130) from None


def in_ci() -> bool:
    """Returns true in continuous integration, where a skip is a failure."""
    return os.environ.get("CI", "").lower() in ("1", "true", "yes")
