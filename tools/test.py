"""`make test`: every test of the project, Rust, Python and Java, with real databases on loopback.

    python3 tools/test.py [--all] [PYTEST ARGUMENTS …]

Installs what the databases need where it runs as root, otherwise prints the line that would. Tests that lack something
are skipped with the reason; under `CI=true` a skip is a failure.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import dev
import rust
from house import CACHE, ROOT, in_ci, main, say, step
from tests.support import packages


def _databases_installed() -> bool:
    """Install the databases' packages as root; otherwise say how."""
    absent = packages.missing()
    if not absent:
        return True
    if os.geteuid() == 0:
        with step(f"apt-get install {' '.join(absent)}"):
            if packages.install(absent):
                return True
    say(f"These packages are missing; tests that need them are skipped:\n    {packages.install_line(absent)}")
    return False


def _start_servers(python: str) -> dict[str, str]:
    """Start the databases with .venv's interpreter; the variables that name them to the tests."""
    command = [python, "-m", "tests.support.servers", "json"]
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True)
    # The larger table, for the tests that compare drivers over many blocks.
    subprocess.run([*command[:-1], "load", "31000"], cwd=ROOT, check=True)
    return dict(json.loads(done.stdout))


def _stop_servers(python: str) -> None:
    subprocess.run([python, "-m", "tests.support.servers", "stop"], cwd=ROOT, check=False)


@contextmanager
def _beside(
    title: str, command: list[str], environment: dict[str, str]
) -> Iterator[Callable[[], tuple[str, int, float]]]:
    """A suite in a process of its own. The function that is given waits for it and shows what it printed."""
    begun = time.monotonic()
    with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as output:
        process = subprocess.Popen(command, cwd=ROOT, env=environment, stdout=output, stderr=subprocess.STDOUT)

        def result() -> tuple[str, int, float]:
            code = process.wait()
            seconds = time.monotonic() - begun
            output.seek(0)
            say(f"-- {title}\n{output.read().rstrip()}")
            return title, code, seconds

        try:
            yield result
        finally:
            # Ended early, it stops what it has started.
            if process.poll() is None:
                process.send_signal(signal.SIGINT)
                process.wait()


#: These need the databases least, and run beside the others, with databases of their own: the tests use the same tables.
_BESIDE = tuple(f"tests/{room}" for room in ("copies", "json", "wheel"))


def _python_and_java_tests(pytest: list[str], environment: dict[str, str]) -> list[tuple[str, int, float]]:
    """All Python tests, in two processes: one alone waits more than it works; and those of Java beside them."""
    own = environment | {"ONECOPY_TEST_SERVERS": str(CACHE / "servers-beside")}
    title = f"Python tests beside them: {' '.join(_BESIDE)}"
    with (
        _beside(title, [*pytest, "-q", *_BESIDE], own) as python,
        _beside("Java tests", [sys.executable, "tools/maven.py"], environment) as java,
    ):
        rest = [*pytest, *(f"--ignore={folder}" for folder in _BESIDE), "tests"]
        return [_suite("Python tests", rest, environment), python(), java()]


def _suite(title: str, command: list[str], environment: dict[str, str]) -> tuple[str, int, float]:
    say(f"-- {title}")
    begun = time.monotonic()
    code = subprocess.run(command, cwd=ROOT, env=environment, check=False).returncode
    return title, code, time.monotonic() - begun


def _main() -> int:
    begun = time.monotonic()
    arguments = sys.argv[1:]
    everything = "--all" in arguments
    arguments = [argument for argument in arguments if argument != "--all"]
    python = str(dev.build())
    complete = _databases_installed()
    if in_ci() and not complete:
        say("CI=true: a skip is a failure, and without these packages tests would be skipped")
        return 1
    results = []
    environment = rust.environment() | {"PYO3_PYTHON": python}
    try:
        with step("databases on loopback"):
            environment |= _start_servers(python)
        for key, reason in environment.items():
            if key.startswith("ONECOPY_TEST_") and key.endswith("_MISSING"):
                say(f"   without {key[13:-8].lower()}: {reason.splitlines()[0]}")
        cargo = ["cargo", "test", "--workspace", "--locked", "--no-fail-fast", "-q"]
        results.append(_suite("Rust tests", cargo, environment))
        pytest = [python, "-m", "pytest", *(["-m", ""] if everything else []), *arguments]
        if arguments:
            results.append(_suite("Python tests", pytest, environment))
        else:
            results += _python_and_java_tests(pytest, environment)
        if everything:
            other = [python, "tools/pythons.py"]
            results.append(_suite("other CPythons", other, environment))
    finally:
        # KEEP_SERVERS=1 saves their start on the next run: they are found by pid and used again.
        if not os.environ.get("KEEP_SERVERS"):
            _stop_servers(python)
    say("")
    for title, code, seconds in results:
        # pytest's 5: nothing was collected, which is no pass.
        say(f"{'ok    ' if code == 0 else 'FAILED'} {title} ({seconds:.0f} s)")
    say(f"{time.monotonic() - begun:.0f} s in all")
    return 0 if all(code == 0 for _, code, _ in results) else 1


if __name__ == "__main__":
    main(_main)
