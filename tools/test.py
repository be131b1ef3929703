"""`make test`: runs every test of the project, in Rust, Python and Java, with real databases on
loopback.

    python3 tools/test.py [--all] [PYTEST ARGUMENTS …]

As root it installs the packages of the databases, otherwise it prints the command for that. Tests
that lack something are skipped with the reason; under `CI=true` a skip is a failure.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import NamedTuple

import dev
import rust
from house import CACHE, ROOT, TEST_GROUPS, in_ci, main, say, step, wait_or_abort
from tests.support import packages


class Result(NamedTuple):
    """The result of a test suite."""

    title: str
    code: int
    seconds: float
    cpu_s: float


#: Seconds for one test suite.
_LIMIT_S = 3000
_CARGO = ["cargo", "test", "--workspace", "--locked", "--no-fail-fast", "-q"]


def _databases_installed() -> bool:
    """Installs the databases' packages as root; otherwise prints the command. Returns true if they
    are installed."""
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
    """Starts the databases with .venv's interpreter; returns the environment variables for the
    tests."""
    command = [python, "-m", "tests.support.servers", "json"]
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True)
    # The larger table, for tests that compare drivers over many blocks.
    subprocess.run([*command[:-1], "load", "31000"], cwd=ROOT, check=True)
    return dict(json.loads(done.stdout))


def _stop_servers(python: str) -> None:
    subprocess.run([python, "-m", "tests.support.servers", "stop"], cwd=ROOT, check=False)


@contextmanager
def _concurrently(title: str, command: list[str], environment: dict[str, str]) -> Iterator[Callable[[], Result]]:
    """Starts a test suite in a separate process.

    The returned function waits for the suite, shows its output, and returns its result.
    """
    begun = time.monotonic()
    with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as output:
        process = subprocess.Popen(
            command, cwd=ROOT, env=environment, stdout=output, stderr=subprocess.STDOUT, text=True
        )

        ended: list[Result] = []

        def watch() -> None:
            code, cpu_s = wait_or_abort(process, _LIMIT_S)
            ended.append(Result(title, code, time.monotonic() - begun, cpu_s))

        watcher = threading.Thread(target=watch)
        watcher.start()

        def result() -> Result:
            watcher.join()
            output.seek(0)
            say(f"-- {title}\n{output.read().rstrip()}")
            return ended[0]

        try:
            yield result
        finally:
            # On an early exit, it stops the servers that it has started.
            if not ended:
                process.send_signal(signal.SIGINT)
                watcher.join()


def _all_tests(pytest: list[str], everything: bool, environment: dict[str, str]) -> list[Result]:
    """Runs all tests of Rust, Python and Java at the same time.

    Compilers run at a lower priority: they use the processors while tests wait, and do not make
    tests exceed their time limits.
    """
    with ExitStack() as stack:
        results = []

        def start(title: str, command: list[str], variables: dict[str, str]) -> None:
            results.append(stack.enter_context(_concurrently(title, command, variables)))

        start("Rust tests", ["nice", *_CARGO], environment)
        start("Java tests", ["nice", sys.executable, "tools/maven.py"], environment)
        start(
            "Python tests that build",
            ["nice", *pytest, "-q", "-m", "builds", "tests/copies", "tests/wheel"],
            environment,
        )
        pytest = [*pytest, "-m", "not builds" if everything else "not builds and not slow"]
        for name, files in TEST_GROUPS.items():
            # Separate databases, since the tests use the same tables.
            own = environment | {"ONECOPY_TEST_SERVERS": str(CACHE / f"servers-{name}")}
            start(f"Python tests, {name}", [*pytest, "-q", *files], own)
        others = [f"--ignore={file}" for files in TEST_GROUPS.values() for file in files]
        return [_suite("Python tests", [*pytest, *others, "tests"], environment), *(result() for result in results)]


def _suite(title: str, command: list[str], environment: dict[str, str]) -> Result:
    say(f"-- {title}")
    begun = time.monotonic()
    with subprocess.Popen(command, cwd=ROOT, env=environment, text=True) as process:
        code, cpu_s = wait_or_abort(process, _LIMIT_S)
    return Result(title, code, time.monotonic() - begun, cpu_s)


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
    environment = rust.environment() | {"PYO3_PYTHON": python, "PYTHONFAULTHANDLER": "1"}
    try:
        with step("databases on loopback"):
            environment |= _start_servers(python)
        for key, reason in environment.items():
            if key.startswith("ONECOPY_TEST_") and key.endswith("_MISSING"):
                say(f"   without {key[13:-8].lower()}: {reason.splitlines()[0]}")
        pytest = [python, "-m", "pytest", *(["-m", ""] if everything else []), *arguments]
        if arguments:
            results += [_suite("Rust tests", _CARGO, environment), _suite("Python tests", pytest, environment)]
        else:
            results += _all_tests([python, "-m", "pytest"], everything, environment)
        if everything:
            other = [python, "tools/pythons.py"]
            results.append(_suite("other CPythons", other, environment))
    finally:
        # With KEEP_SERVERS=1 the next run reuses the servers, which are found by pid.
        if not os.environ.get("KEEP_SERVERS"):
            _stop_servers(python)
    say("")
    for result in results:
        # pytest's exit code 5: nothing was collected, which is not a success.
        ok = "ok    " if result.code == 0 else "FAILED"
        say(f"{ok} {result.title} ({result.seconds:.0f} s, {result.cpu_s:.0f} s of processor time)")
    say(f"{time.monotonic() - begun:.0f} s in all")
    return 0 if all(result.code == 0 for result in results) else 1


if __name__ == "__main__":
    main(_main)
