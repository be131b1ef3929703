"""Servers of others in processes of their own on loopback, and a client that sees whether an answer is whole."""

from __future__ import annotations

import contextlib
import re
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
#: A server that does not answer is a failure, not a hang.
_PATIENCE_S = 60.0


class Reply(NamedTuple):
    """What came over the wire."""

    status: int
    fields: dict[str, str]
    body: bytes
    #: The last chunk came, or as many bytes as were promised.
    is_whole: bool


class Server:
    """A process that listens on a port of its own choice, which it tells on standard error."""

    def __init__(self, command: list[str], cwd: Path = ROOT) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", *command], cwd=cwd, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True
        )
        self._said: list[str] = []
        self._told = threading.Event()
        self.port = 0
        self._reader = threading.Thread(target=self._read)
        self._reader.start()
        if not (self._told.wait(_PATIENCE_S) and self.port):
            self.stop()
            raise RuntimeError(f"`{command[0]}` does not listen:\n{self.log()}")

    def _read(self) -> None:
        assert self._process.stderr is not None
        for line in self._process.stderr:
            self._said.append(line)
            found = re.search(r"http://127\.0\.0\.1:(\d+)", line)
            if found and not self.port:
                self.port = int(found[1])
                self._told.set()
        self._told.set()

    def log(self) -> str:
        """What it said so far."""
        return "".join(self._said)

    def stop(self) -> None:
        """End it."""
        self._process.terminate()
        try:
            self._process.wait(20)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._reader.join()
        if self._process.stderr is not None:
            self._process.stderr.close()

    def connect(self, path: str, method: str = "GET") -> socket.socket:
        """A connection on which an address was asked for."""
        connection = socket.create_connection(("127.0.0.1", self.port), timeout=_PATIENCE_S)
        connection.sendall(f"{method} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode())
        return connection

    def ask(self, path: str, method: str = "GET") -> Reply:
        """Ask for an address, and read until the server has closed the connection."""
        with self.connect(path, method) as connection:
            received = bytearray()
            with contextlib.suppress(ConnectionResetError):
                while part := connection.recv(1 << 20):
                    received += part
        head, _, rest = bytes(received).partition(b"\r\n\r\n")
        first, *lines = head.decode("latin-1").split("\r\n")
        fields = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        body, is_whole = rest, False
        if fields.get("transfer-encoding") == "chunked":
            body, is_whole = _unchunked(rest)
        elif "content-length" in fields:
            is_whole = len(rest) == int(fields["content-length"])
        return Reply(int(first.split()[1]), fields, body, is_whole)


def _unchunked(data: bytes) -> tuple[bytes, bool]:
    """The bytes of the chunks, and whether the last one is there."""
    body, at = bytearray(), 0
    while (end := data.find(b"\r\n", at)) >= 0:
        size = int(data[at:end], 16)
        if size == 0:
            return bytes(body), True
        body += data[end + 2 : end + 2 + size]
        at = end + 4 + size
    return bytes(body), False


@contextlib.contextmanager
def running(command: list[str], cwd: Path = ROOT) -> Iterator[Server]:
    """A server for a block."""
    server = Server(command, cwd)
    try:
        yield server
    finally:
        server.stop()


#: By their names: what is run, and which applications of `apps` it serves.
WSGI = ["wsgi", "flask", "django", "falcon"]
ASGI = ["fastapi", "fastapi_async", "starlette", "django", "django_async", "falcon"]
_GUNICORN = [
    "gunicorn",
    "--bind",
    "127.0.0.1:0",
    "--workers",
    "1",
    "--graceful-timeout",
    "1",
    "tests.web.apps:all_wsgi",
]
SERVERS = {
    "gunicorn-sync": _GUNICORN,
    "gunicorn-gthread": [*_GUNICORN, "--worker-class", "gthread", "--threads", "2"],
    "uvicorn": ["uvicorn", "--host", "127.0.0.1", "--port", "0", "--lifespan", "off", "tests.web.apps:all_asgi"],
}
#: Each server with each application that it can serve.
PAIRS = [(server, app) for server in SERVERS for app in (ASGI if server == "uvicorn" else WSGI)]
