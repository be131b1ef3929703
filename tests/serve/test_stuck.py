"""`onecopy run --workers N --timeout S`: workers without progress are killed, replaced and logged."""

from __future__ import annotations

import contextlib
import http.client
import os
import re
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.supervised import Folder, Supervised, running, wait_for_end

BROKEN = (ConnectionError, http.client.HTTPException)
#: Lines of the application that hang, and their names in a stack.
HANGS = """
import re, sys, threading, time

def hold_the_lock():
    sys.stderr.write("holds the lock\\n")
    re.match(r"(a+)+$", "a" * 40 + "b")  # the lock is held here

def wait():
    time.sleep(3600)  # the wait is here

plain_app = app

def stream(environ):
    while True:
        yield b"x" * 16
        with open(os.environ["GATE"]) as gate:
            gate.read()

def app(environ, start_response):
    path = environ["PATH_INFO"]
    if path == "/hold":
        hold_the_lock()
    if path == "/wait":
        wait()
    if path == "/stream":
        start_response("200 OK", [("Content-Type", "text/plain")])
        return stream(environ)
    return plain_app(environ, start_response)
"""


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    folder = Folder(tmp_path)
    folder.write("1", HANGS)
    return folder


def _line_of(folder: Folder, comment: str) -> int:
    lines = (folder.path / "application.py").read_text().splitlines()
    return next(number for number, line in enumerate(lines, 1) if line.endswith(f"# {comment}"))


@contextlib.contextmanager
def _request(supervised: Supervised, path: str) -> Iterator[http.client.HTTPConnection]:
    """Sends a request on a new connection, without reading its response."""
    with contextlib.closing(supervised.connect()) as line:
        line.request("GET", path)
        yield line


def _ends_without_an_answer(line: http.client.HTTPConnection) -> None:
    with pytest.raises(BROKEN):
        line.getresponse()


def _wait_for_the_second_thread(supervised: Supervised, folder: Folder) -> None:
    """Waits until both threads of the server have run once.

    A server thread cannot start while another thread holds the interpreter.
    """
    with _request(supervised, "/gate") as waiting:
        gate = folder.enter()
        with contextlib.closing(supervised.connect()) as line:
            # The request is not handled, and the first thread is busy.
            assert line.sock is not None
            line.sock.sendall(b"nonsense\r\n\r\n")
            assert line.sock.recv(12) == b"HTTP/1.1 400"
        os.close(gate)
        assert waiting.getresponse().status == 200


@pytest.mark.parametrize("n_workers", [1, 2])
def test_a_worker_that_holds_the_interpreter_is_replaced_and_logged(folder: Folder, n_workers: int) -> None:
    options = ("--workers", str(n_workers), "--threads", "4", "--timeout", "1")
    with running(folder, *options) as supervised, _request(supervised.serves(), "/hold") as line:
        pid = supervised.until(r"worker (\d+) has run no Python code: .* for 1 s; it is killed and rep")[1]
        at = _line_of(folder, "the lock is held here")
        supervised.until(rf'application\.py", line {at} in hold_the_lock')
        for _ in range(1_000):
            assert supervised.ask()[1] != pid
        _ends_without_an_answer(line)
        supervised.send(signal.SIGTERM)
        code, said = supervised.ends()
    # It was not a crash, and threads without a request are not listed.
    assert code == 0 and "died by" not in said and "_bootstrap" in said
    assert len(re.findall(r"^(Current t|T)hread ", said, re.MULTILINE)) == 1, said


def test_a_worker_that_holds_the_interpreter_accepts_nothing_and_closes_idle_connections(
    folder: Folder,
) -> None:
    options = ("--workers", "1", "--timeout", "3")
    with running(folder, *options) as supervised, contextlib.ExitStack() as stack:
        pid = int(supervised.serves().ask()[1])
        _wait_for_the_second_thread(supervised, folder)
        idle = stack.enter_context(contextlib.closing(supervised.connect()))
        idle.request("GET", "/")
        assert int(idle.getresponse().read().split()[1]) == pid
        # A suspended supervisor kills nothing: the worker itself closes the connection.
        supervised.send(signal.SIGSTOP)
        stack.enter_context(_request(supervised, "/hold"))
        assert idle.sock is not None
        assert idle.sock.recv(1) == b""
        assert Path(f"/proc/{pid}").exists()
        supervised.send(signal.SIGCONT)
        waiting = stack.enter_context(_request(supervised, "/"))
        # It has waited in the kernel's queue.
        assert int(waiting.getresponse().read().split()[1]) != pid


def test_a_worker_whose_threads_are_all_busy_is_replaced(folder: Folder) -> None:
    options = ("--workers", "1", "--threads", "2", "--timeout", "1")
    with running(folder, *options) as supervised, contextlib.ExitStack() as stack:
        supervised.serves()
        lines = [stack.enter_context(_request(supervised, "/wait")) for _ in range(2)]
        supervised.until("has made no progress: each of its threads is in a request, for 1 s")
        at = _line_of(folder, "the wait is here")
        for _ in lines:
            supervised.until(rf'application\.py", line {at} in wait')
        for line in lines:
            _ends_without_an_answer(line)
        assert supervised.ask()[0] == "1"


def test_slow_requests_are_not_killed_while_a_thread_progresses(folder: Folder) -> None:
    options = ("--workers", "1", "--threads", "2", "--timeout", "1")
    with running(folder, *options) as supervised, _request(supervised.serves(), "/gate") as slow:
        gate = folder.enter()
        pid = supervised.ask()[1]
        # The timeout passes.
        for _ in range(3_000):
            assert supervised.ask()[1] == pid
        os.close(gate)
        assert slow.getresponse().read().split()[1].decode() == pid


@pytest.mark.parametrize(("timeout", "is_watched"), [("0", False), ("30", True)])
def test_a_timeout_of_0_disables_the_watchdog(folder: Folder, timeout: str, is_watched: bool) -> None:
    with running(folder, "--workers", "1", "--timeout", timeout) as supervised:
        pid = supervised.serves().ask()[1]
        status = Path(f"/proc/{pid}/status").read_text()
        caught = int(status.split("SigCgt:")[1].split()[0], 16)
        # The signal whose handler writes the stacks.
        assert bool(caught >> (signal.SIGRTMAX - 2) & 1) == is_watched


def test_a_stop_does_not_wait_for_a_worker_that_is_known_to_be_stuck(folder: Folder) -> None:
    # The stop timeout is longer than the test may run.
    options = ("--workers", "2", "--timeout", "60", "--stop-timeout", "600")
    with running(folder, *options) as supervised, _request(supervised.serves(), "/hold") as line:
        supervised.until("holds the lock")
        supervised.send(signal.SIGTERM)
        supervised.until(r"worker \d+ did not end in time: it is killed")
        code, _ = supervised.ends()
        _ends_without_an_answer(line)
    assert code == 1


def test_a_stuck_worker_without_a_supervisor_ends_by_itself(folder: Folder) -> None:
    with running(folder, "--workers", "1", "--timeout", "1") as supervised:
        pid = int(supervised.serves().ask()[1])
        with _request(supervised, "/hold"):
            supervised.until("holds the lock")
            supervised.send(signal.SIGKILL)
            wait_for_end(pid)


@pytest.mark.parametrize("value", ["-1", "nan", "inf", "x"])
def test_an_invalid_timeout_is_a_usage_error(folder: Folder, value: str) -> None:
    with running(folder, "--workers", "2", f"--timeout={value}") as supervised:
        code, said = supervised.ends()
    assert code == 2 and "--timeout" in said and "Traceback" not in said
