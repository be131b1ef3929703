"""SIGHUP to `onecopy run --workers` starts workers with the current files, without any failed
request."""

from __future__ import annotations

import contextlib
import http.client
import os
import signal
import threading
import time
from pathlib import Path

import pytest

from tests.support.supervised import PATIENCE_S, Folder, Supervised, of_command, running

RELOADED = r"reloaded: \d new workers? serves?"


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path)


def _answers_with(supervised: Supervised, version: str) -> None:
    """Waits until responses come from that version of the application.

    An old worker may still accept a connection while it receives the signal to stop.
    """
    end = time.monotonic() + PATIENCE_S
    while (answered := supervised.ask()[0]) != version:
        assert time.monotonic() < end, f"it still answers with {answered}; it said:\n{supervised.said()}"


class Client(threading.Thread):
    """A thread that sends requests without pause, on one connection or on a new one for each
    request."""

    def __init__(self, supervised: Supervised, *, keeps: bool) -> None:
        super().__init__()
        self._supervised, self._keeps = supervised, keeps
        self._stop_asked = threading.Event()
        self.versions: list[str] = []
        self.failures: list[Exception] = []
        self._has_asked = threading.Semaphore(0)

    def run(self) -> None:
        line: http.client.HTTPConnection | None = None
        while not self._stop_asked.is_set():
            try:
                line = line or self._supervised.connect()
                line.request("GET", "/")
                with line.getresponse() as answer:
                    self.versions.append(answer.read().decode().split()[0])
                    is_last = answer.will_close
            except (OSError, http.client.HTTPException) as error:
                self.failures.append(error)
                is_last = True
            self._has_asked.release()
            if line and (is_last or not self._keeps):
                line.close()
                line = None
        if line:
            line.close()

    def asks(self, n: int) -> None:
        """Waits until the client has sent ``n`` more requests."""
        for _ in range(n):
            assert self._has_asked.acquire(timeout=60)

    def end(self) -> None:
        """Stops the client, and waits for the end of its thread."""
        self._stop_asked.set()
        self.join(60)


@pytest.mark.parametrize("n_workers", ["1", "2"])
def test_no_request_fails_over_reloads(folder: Folder, n_workers: str) -> None:
    with running(folder, "--workers", n_workers) as supervised:
        supervised.serves()
        clients = [Client(supervised, keeps=keeps) for keeps in (False, True, False, True)]
        for client in clients:
            client.start()
        try:
            for version in ("2", "3", "4", "5"):
                for client in clients:
                    client.asks(20)
                folder.write(version)
                supervised.send(signal.SIGHUP)
                supervised.until(RELOADED)
                _answers_with(supervised, version)
        finally:
            for client in clients:
                client.end()
        supervised.send(signal.SIGTERM)
        code, said = supervised.ends()
    assert code == 0, said
    for client in clients:
        assert client.failures == [] and client.versions[0] == "1" and len(client.versions) >= 80


def test_an_active_request_is_finished_by_the_former_worker(folder: Folder) -> None:
    with running(folder, "--workers", "1") as supervised:
        with contextlib.closing(supervised.serves().connect()) as line:
            line.request("GET", "/gate")
            gate = folder.enter()
            folder.write("2")
            supervised.send(signal.SIGHUP)
            supervised.until(RELOADED)
            _answers_with(supervised, "2")
            os.close(gate)
            assert line.getresponse().read().startswith(b"1 ")
        supervised.send(signal.SIGTERM)
        assert supervised.ends()[0] == 0


@pytest.mark.parametrize("n_workers", ["1", "2"])
def test_an_application_that_does_not_load_keeps_the_former_workers(folder: Folder, n_workers: str) -> None:
    with running(folder, "--workers", n_workers) as supervised:
        supervised.serves()
        folder.write("2", "raise RuntimeError('half edited')")
        supervised.send(signal.SIGHUP)
        # Its traceback comes before, perhaps between lines of another worker's.
        supervised.until(
            "reload failed: worker .* ended with exit code 1 before it was ready; the former workers serve"
        )
        assert supervised.ask()[0] == "1"
        folder.write("3")
        supervised.send(signal.SIGHUP)
        supervised.until(RELOADED)
        _answers_with(supervised, "3")


def test_a_reload_during_another_one_loads_the_newest_files(folder: Folder) -> None:
    with running(folder, "--workers", "1") as supervised:
        supervised.serves()
        folder.write("2", "open(os.environ['GATE']).read()")
        supervised.send(signal.SIGHUP)
        gate = folder.enter()  # It is being loaded, and blocks.
        folder.write("3")
        supervised.send(signal.SIGHUP)
        supervised.until(RELOADED)
        _answers_with(supervised, "3")
        os.close(gate)
        supervised.send(signal.SIGTERM)
        code, said = supervised.ends()
    assert code == 0 and "died" not in said


def test_a_worker_that_dies_after_the_files_broke_is_tried_again(folder: Folder) -> None:
    with running(folder, "--workers", "2") as supervised:
        supervised.serves()
        pids: set[str] = set()
        while len(pids) < 2:
            pids.add(supervised.ask()[1])
        folder.write("2", "raise RuntimeError('broken meanwhile')")
        os.kill(int(pids.pop()), signal.SIGKILL)
        supervised.until("before it was ready; the next one is started in 1 s")
        assert supervised.ask()[0] == "1"
        folder.write("3")
        _answers_with(supervised, "3")  # It is started automatically.


def test_workers_are_added_and_removed_by_signals(folder: Folder) -> None:
    with running(folder, "--workers", "1") as supervised:
        first = supervised.serves().ask()[1]
        supervised.send(signal.SIGTTIN)
        supervised.until("2 workers from now on")
        while supervised.ask()[1] == first:
            pass
        supervised.send(signal.SIGTTOU)
        supervised.until("1 worker from now on")
        supervised.send(signal.SIGTTOU)
        supervised.until("1 worker from now on")
        assert supervised.ask()[0] == "1"
        supervised.send(signal.SIGTERM)
        assert supervised.ends()[0] == 0


#: The named terminal is its controlling terminal; the process itself becomes the server. SIGHUP has
#: its default action, as in a shell, even if the tests run under nohup(1), where a closed terminal
#: ends nothing.
_ON_TERMINAL = """
import os, signal, sys
signal.signal(signal.SIGHUP, signal.SIG_DFL)
os.open(sys.argv[1], os.O_RDWR)
os.execv(sys.executable, [sys.executable, "-m", "onecopy", "run", "application:app", *sys.argv[2:]])
"""


def test_a_closed_terminal_stops_it(folder: Folder) -> None:
    ours, theirs = os.openpty()
    command = ["-c", _ON_TERMINAL, os.ttyname(theirs), "--bind", "127.0.0.1:0", "--workers", "1"]
    with of_command(folder, command) as supervised:
        supervised.serves()
        os.close(theirs)
        supervised.send(signal.SIGHUP)  # While the terminal exists, this is a reload.
        supervised.until(RELOADED)
        os.close(ours)
        code, said = supervised.ends()
    assert code == 0 and said.count("reloaded") == 1
