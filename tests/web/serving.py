"""Servers of other projects in separate processes on loopback, and requests to them."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Iterator
from typing import NamedTuple

from tests.support.raw_http import request
from tests.support.serving import Serving

#: A server that does not respond is a failure, not a hang.
_PATIENCE_S = 60.0


class Reply(NamedTuple):
    """A response as received, also if it is incomplete."""

    status: int
    fields: dict[str, str]
    body: bytes
    #: True if the last chunk arrived, or as many bytes as announced.
    is_whole: bool


class Server:
    """A server process on a free port; ``command`` has the arguments of ``python -m``."""

    def __init__(self, command: list[str]) -> None:
        self._serving = Serving(module=command, patience_s=_PATIENCE_S)

    def log(self) -> str:
        """Everything that the server has written to its output."""
        return self._serving.said()

    def stop(self) -> None:
        """Stops the server."""
        self._serving.stop()

    def connect(self, path: str, method: str = "GET") -> socket.socket:
        """Sends a request on a new connection; returns the socket, from which nothing was read."""
        line = self._serving.connect()
        line.send(request(path, b"Connection: close", method=method))
        return line.socket

    def ask(self, path: str, method: str = "GET") -> Reply:
        """Sends a request, and reads the response as far as it arrives."""
        answer = self._serving.ask(path, b"Connection: close", method=method)
        fields = {name: value.decode("latin-1") for name, value in answer.fields}
        return Reply(answer.status, fields, answer.body, answer.whole)


@contextlib.contextmanager
def running(command: list[str]) -> Iterator[Server]:
    """Starts a server for the duration of a `with` block."""
    server = Server(command)
    try:
        yield server
    finally:
        server.stop()


#: By name: the command, and the applications of `apps` that it serves.
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
