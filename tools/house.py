"""What the set-up scripts share: places, a step with its duration, a clear end on failure. Standard library only."""

from __future__ import annotations

import os
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
# The scripts use tests/support: what the databases need is known there.
sys.path.insert(0, str(ROOT))


def say(text: str) -> None:
    """A line for the person in front of the terminal."""
    print(text, flush=True)


def give_up(text: str, code: int = 1) -> NoReturn:
    """End with a message: the subject first, the remedy on lines of its own."""
    print(text, file=sys.stderr, flush=True)
    raise SystemExit(code)


@contextmanager
def step(title: str) -> Iterator[None]:
    """A titled step; its duration is printed at its end, also when it fails."""
    say(f"-- {title}")
    begun = time.monotonic()
    try:
        yield
    finally:
        say(f"   {title}: {time.monotonic() - begun:.1f} s")


def run(command: list[str], env: dict[str, str] | None = None, quiet: bool = False) -> None:
    """Run a command from the root; its failure ends this program with its exit code.

    With ``quiet`` only the end of its output is shown, and only when it failed.
    """
    out = subprocess.PIPE if quiet else None
    done = subprocess.run(
        command, cwd=ROOT, env=env, stdout=out, stderr=subprocess.STDOUT if quiet else None, check=False
    )
    if done.returncode != 0:
        if quiet:
            for line in done.stdout.decode(errors="replace").splitlines()[-12:]:
                print(line[:300], file=sys.stderr)
        give_up(f"`{' '.join(command)}` failed with exit code {done.returncode}", done.returncode or 1)


def main(function: Callable[[], int]) -> NoReturn:
    """Run a script's function; Ctrl-C ends it with 130 and no traceback."""
    try:
        raise SystemExit(function())
    except KeyboardInterrupt:
        raise SystemExit(130) from None


def in_ci() -> bool:
    """Whether this is CI, where a skip is a failure."""
    return os.environ.get("CI", "").lower() in ("1", "true", "yes")
