"""A server of several processes under test: tests wait for lines of its output, and all its
processes are killed at the end."""

from __future__ import annotations

import contextlib
import http.client
import os
import queue
import re
import select
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path

#: The longest wait; a hang is a failure.
PATIENCE_S = 60.0

#: The application under test. `/gate` reports by one FIFO that it runs, and waits for another.
APPLICATION = """
import os, signal, sys

def app(environ, start_response):
    path = environ["PATH_INFO"]
    if path == "/die":
        os.kill(os.getpid(), signal.SIGKILL)
    if path == "/exit":
        os._exit(3)
    if path == "/gate":
        with open(os.environ["GATE"]) as gate:
            gate.read()
    start_response("200 OK", [("Content-Type", "text/plain")])
    if path == "/begun":
        return begun()
    return [f"{VERSION} {os.getpid()} {environ['wsgi.multiprocess']} {environ['wsgi.url_scheme']}".encode()]

def begun():
    yield str(os.getpid()).encode()
    with open(os.environ["GATE"]) as gate:
        gate.read()
    yield b"never"
"""


class Folder:
    """A folder with a WSGI application, and the FIFO on which its requests wait."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.gate = path / "gate"
        os.mkfifo(self.gate)
        self.write("1")

    def write(self, version: str, *more: str) -> None:
        """Writes a new version of the application.

        Each version's file has a different length, because changes are detected by the modification
        time in seconds and the length. ``more`` are additional lines of code.
        """
        text = f"VERSION = {version!r}\n{APPLICATION}\n" + "\n".join(more) + "\n"
        # Atomic: a process that starts meanwhile reads one of the two.
        new = self.path / "new"
        new.write_text(text + "#" * (int(version) if version.isdigit() else 0), encoding="utf-8")
        new.rename(self.path / "application.py")

    def enter(self) -> int:
        """Waits until a request of the application waits at the FIFO; returns a descriptor.

        The request continues when the descriptor is closed.
        """
        return os.open(self.gate, os.O_WRONLY)


class Supervised:
    """A supervisor process with its workers, and the lines of their stderr.

    Args:
        command: arguments after the interpreter.
        folder: the working directory, with the application.
        env: additions to the environment.
        pass_fds: descriptors that the process inherits.
    """

    def __init__(
        self, command: Sequence[str], folder: Folder, env: dict[str, str] | None = None, pass_fds: Sequence[int] = ()
    ) -> None:
        self.process = subprocess.Popen(
            [sys.executable, *command],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            encoding="utf-8",
            errors="replace",
            cwd=folder.path,
            env=os.environ | {"GATE": str(folder.gate), "PYTHONUNBUFFERED": "1"} | (env or {}),
            # In a new session, so that a signal to the group reaches only these processes.
            start_new_session=True,
            pass_fds=pass_fds,
        )
        self.lines: list[str] = []
        self._queue: queue.Queue[str | None] = queue.Queue()
        self._reader = threading.Thread(target=self._read)
        self._reader.start()
        self.port = 0

    def _read(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self._queue.put(line.rstrip("\n"))
        self._queue.put(None)

    def until(self, pattern: str) -> re.Match[str]:
        """Reads lines up to the first one in which the pattern is found; fails after a time
        limit."""
        try:
            while (line := self._queue.get(timeout=PATIENCE_S)) is not None:
                self.lines.append(line)
                if match := re.search(pattern, line):
                    return match
            self._queue.put(None)
        except queue.Empty:
            pass
        raise AssertionError(f"`{pattern}` was not said:\n" + "\n".join(self.lines))

    def said(self) -> str:
        """All lines that were read so far, and those that can be read without waiting."""
        with contextlib.suppress(queue.Empty):
            while (line := self._queue.get_nowait()) is not None:
                self.lines.append(line)
            self._queue.put(None)
        return "\n".join(self.lines)

    def serves(self) -> Supervised:
        """Waits until the server prints its port."""
        self.port = int(self.until(r"http://127\.0\.0\.1:(\d+)")[1])
        return self

    def connect(self) -> http.client.HTTPConnection:
        """Opens a new connection to the server."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE_S)
        connection.connect()
        return connection

    def ask(self, path: str = "/") -> list[str]:
        """Sends a GET request on a new connection; returns the words of the body."""
        with contextlib.closing(self.connect()) as connection:
            connection.request("GET", path)
            with connection.getresponse() as answer:
                assert answer.status == 200
                return answer.read().decode().split()

    def send(self, *numbers: int) -> None:
        """Sends signals, in order, to the process that was started."""
        for number in numbers:
            self.process.send_signal(number)

    def ends(self) -> tuple[int, str]:
        """Waits until the process has ended and all others have closed its stderr.

        Returns the exit code and all lines.
        """
        code = self.process.wait(timeout=PATIENCE_S)
        self._reader.join(PATIENCE_S)
        assert not self._reader.is_alive(), "a process is left over"
        return code, self.said()

    def kill(self) -> None:
        """Kills all processes of the server, which are in a session of their own."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait(timeout=PATIENCE_S)
        self._reader.join(PATIENCE_S)
        if self.process.stderr is not None:
            self.process.stderr.close()


@contextlib.contextmanager
def running(folder: Folder, *options: str, env: dict[str, str] | None = None) -> Iterator[Supervised]:
    """Starts ``onecopy run`` with the folder's application on a free port; kills it at the end."""
    command = ["-m", "onecopy", "run", "application:app", "--bind", "127.0.0.1:0", *options]
    with of_command(folder, command, env) as supervised:
        yield supervised


@contextlib.contextmanager
def of_command(
    folder: Folder, command: Sequence[str], env: dict[str, str] | None = None, pass_fds: Sequence[int] = ()
) -> Iterator[Supervised]:
    """Starts the interpreter with the arguments ``command`` in the folder; kills it at the end."""
    supervised = Supervised(command, folder, env, pass_fds)
    try:
        yield supervised
    finally:
        supervised.kill()


def wait_for_end(pid: int) -> None:
    """Waits until the process ``pid``, which need not be a child of this one, has ended."""
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    try:
        assert select.select([descriptor], [], [], PATIENCE_S)[0], f"process {pid} has not ended"
    finally:
        os.close(descriptor)
