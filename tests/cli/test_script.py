"""The command started by the script of the wheel and by `python -m onecopy`.

The behavior of the command itself is tested in crates/cli.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import onecopy
from tests.support.gateway import Gateway
from tests.support.process import Process, alive, children

ENDLESS = "with recursive c(x) as (select 1 union all select x + 1 from c) select x from c"


@pytest.fixture(params=["script", "module"])
def command(request: pytest.FixtureRequest) -> list[str]:
    """The arguments that start the command, in each of the two ways."""
    if request.param == "module":
        return [sys.executable, "-m", "onecopy"]
    script = Path(sys.executable).with_name("onecopy")
    assert script.exists(), "`make dev` installs the script next to the interpreter"
    return [str(script)]


def run(command: list[str], *arguments: str, folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*command, *arguments], capture_output=True, text=True, encoding="utf-8", cwd=folder, timeout=60, check=False
    )


@pytest.mark.parametrize(
    ("arguments", "code", "out", "said"),
    [
        (["query", "sqlite::memory:", "select 'é' as t, 7 as n"], 0, "t,n\né,7\n", ""),
        (["query", "sqlite::memory:", "select * from nowhere"], 1, "", "error: no such table: nowhere\n"),
        (["query", "sqlite::memory:"], 2, "", "required arguments"),
        (["query", "sqlite:nope.db", "select 1"], 3, "", "there is no such file"),
        (["query", "sqlite::memory:", "select 3 <= ?", "--param", "2.50"], 0, "3 <= ?\n0\n", ""),
        (["query", "sqlite::memory:", "select typeof(?) as t", "--param", "-5"], 0, "t\ninteger\n", ""),
        (["query", "sqlite::memory:", "select 1 as a", "-o", "-"], 0, "a\n1\n", ""),
        (["query", "sqlite::memory:", "select 1 as a", "--format", "ndjson", "-o", "-"], 0, '{"a":1}\n', ""),
        (["send", "a", "--to", "nowhere"], 2, "", "`nowhere` is not the address of a receiver"),
        (["query", "Driver=no-such-driver;Uid=u;Pwd=hush-7f3a", "select 1"], 3, "", "error: "),
        (["serve", "nope.toml"], 2, "", "nope.toml"),
    ],
    ids=[
        "ok",
        "failed",
        "usage",
        "no file",
        "a decimal",
        "a negative number",
        "stdout",
        "stdout in a format",
        "no address",
        "no driver",
        "no configuration",
    ],
)
def test_exit_codes(command: list[str], arguments: list[str], code: int, out: str, said: str, tmp_path: Path) -> None:
    done = run(command, *arguments, folder=tmp_path)
    assert (done.returncode, done.stdout) == (code, out), done.stderr
    assert said in done.stderr if said else done.stderr == ""
    assert "hush" not in done.stderr and "Traceback" not in done.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("redirection", "arguments", "code", "out"),
    [
        ("<&-", ["query", "sqlite::memory:", "-"], 1, ""),
        ("<&-", ["query", "sqlite::memory:", "select 1 as a"], 0, "a\n1\n"),
        (">&-", ["query", "sqlite::memory:", "select 1 as a"], 1, ""),
        ("<&- >&- 2>&-", ["query", "sqlite::memory:", "select 1 as a"], 1, ""),
        (">/dev/full", ["--help"], 1, ""),
        (">/dev/full", ["--version"], 1, ""),
    ],
)
def test_a_standard_stream_that_is_closed_or_full_ends_the_command(
    command: list[str], redirection: str, arguments: list[str], code: int, out: str, tmp_path: Path
) -> None:
    shell = ["sh", "-c", f'exec "$@" {redirection}', "sh"]
    done = run([*shell, *command], *arguments, folder=tmp_path)
    assert (done.returncode, done.stdout) == (code, out), done.stderr
    if ">&-" in redirection or "full" in redirection:
        assert "2>&-" in redirection or "stdout cannot be written" in done.stderr


def test_the_version_is_that_of_the_module(command: list[str], tmp_path: Path) -> None:
    done = run(command, "--version", folder=tmp_path)
    assert done.returncode == 0
    assert done.stdout.startswith(f"onecopy {onecopy.__version__}\n")
    assert f"Python {sys.version_info.major}.{sys.version_info.minor}." in done.stdout


@pytest.mark.parametrize("signum", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c_in_the_middle_of_the_rows_ends_with_130(command: list[str], signum: int) -> None:
    with subprocess.Popen(
        [*command, "query", "sqlite::memory:", ENDLESS], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as running:
        assert running.stdout is not None
        assert running.stdout.readline() == b"x\n"
        running.send_signal(signum)
        _, said = running.communicate(timeout=60)
    assert (running.returncode, said) == (130, b"note: stopped\n")


def test_bson_is_refused_on_a_terminal(command: list[str]) -> None:
    ours, theirs = os.openpty()
    query = [*command, "query", "sqlite::memory:", "select 1 as a", "--format", "bson"]
    done = subprocess.run(query, stdout=theirs, stderr=subprocess.PIPE, timeout=60, check=False)
    os.close(theirs)
    os.close(ours)
    assert (done.returncode, done.stderr.splitlines()[0]) == (2, b"error: BSON is not for a terminal")


def test_ctrl_c_leaves_no_file(command: list[str], tmp_path: Path) -> None:
    with subprocess.Popen(
        [*command, "query", "--quiet", "sqlite::memory:", ENDLESS, "--output", "rows.csv"],
        cwd=tmp_path,
        stderr=subprocess.PIPE,
    ) as running:
        # The temporary file is created when the statement runs.
        while not list(tmp_path.iterdir()):
            assert running.poll() is None
        running.send_signal(signal.SIGINT)
        _, said = running.communicate(timeout=60)
    assert (running.returncode, said) == (130, b"")
    assert list(tmp_path.iterdir()) == []


def test_a_closed_pipe_is_silent_and_ends_with_141(command: list[str]) -> None:
    with subprocess.Popen(
        [*command, "query", "sqlite::memory:", ENDLESS], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as running:
        assert running.stdout is not None and running.stderr is not None
        running.stdout.readline()
        running.stdout.close()
        said = running.stderr.read()
        running.wait(timeout=60)
    assert (running.returncode, said) == (141, b"")


#: The configuration only has to name an ODBC driver; it is not used.
SUPERVISED = """
[databases.d]
url = "sqlite::memory:"
[databases.foreign]
url = "Driver=/nowhere/psqlodbcw.so;Pwd=hush-7f3a"
[queries.one]
database = "d"
sql = "select 1 as one"
"""


def child_of(parent: int, other_than: Process | None = None) -> Process:
    """Waits for the serving child process of the supervisor ``parent``, and returns it.

    If ``other_than`` is given, it waits for a different child.
    """
    end = time.monotonic() + 60
    while time.monotonic() < end:
        for child in children(parent):
            if child != other_than:
                return child
    raise AssertionError("there is no process that serves")


def test_serve_survives_a_crash_and_stops_once(command: list[str], tmp_path: Path) -> None:
    (tmp_path / "c.toml").write_text(SUPERVISED, encoding="utf-8")
    with subprocess.Popen(
        [*command, "serve", "c.toml", "--port", "0"], cwd=tmp_path, stderr=subprocess.PIPE, text=True
    ) as parent:
        gateway = Gateway(parent)
        assert gateway.get("/one.json") == (200, b'[{"one":1}]')
        first = child_of(parent.pid)
        os.kill(first.pid, signal.SIGSEGV)
        line = gateway.wait_for(r"crash: process (\d+) died by SIGSEGV .* foreign \(psqlodbc \(Unicode\)\)")
        assert int(line.group(1)) == first.pid
        assert gateway.get("/one.json") == (200, b'[{"one":1}]')
        second = child_of(parent.pid, first)
        # A terminal sends SIGINT to both processes. The child ignores it, and Python's handler is
        # not called.
        for _ in range(3):
            os.kill(second.pid, signal.SIGINT)
        assert gateway.get("/one.json") == (200, b'[{"one":1}]')
        assert gateway.stop() == 0
        assert not alive(second)
        said = "".join(gateway.said)
        assert "hush" not in said and "Traceback" not in said
