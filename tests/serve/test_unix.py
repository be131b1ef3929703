"""Servers on unix sockets: requests and responses, socket files, and listeners that several
processes share."""

from __future__ import annotations

import contextlib
import http.client
import os
import socket
import stat
import subprocess
import sys
import urllib.request
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

import onecopy
from tests.serve.app import app as pages
from tests.support.serving import ROOT

Start = Callable[..., object]


class Connection(http.client.HTTPConnection):
    """The HTTP client of the standard library, connected to a unix socket."""

    def __init__(self, path: Path) -> None:
        super().__init__("localhost", timeout=60)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(60)
        self.sock.connect(os.fspath(self._path))


def ask(path: Path, target: str = "/", body: bytes | None = None) -> bytes:
    """Sends one request on a new connection; returns the body of the response."""
    connection = Connection(path)
    try:
        connection.request("GET" if body is None else "POST", target, body)
        answer = connection.getresponse()
        assert answer.status == 200
        return answer.read()
    finally:
        connection.close()


def environ_and_body(environ: dict[str, Any], start: Start) -> Iterable[bytes]:
    """A WSGI application that returns the environ variables with addresses, and the request's
    body."""
    start("200 OK", [])
    names = ("REMOTE_ADDR", "REMOTE_PORT", "SERVER_NAME", "SERVER_PORT", "wsgi.url_scheme")
    return [repr([environ[name] for name in names]).encode(), environ["wsgi.input"].read()]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A path for a socket; the test fails if the temporary folder's path is too long for one."""
    if len(os.fspath(tmp_path)) < 90:
        return tmp_path / "s.sock"
    pytest.fail(f"the folder of the tests is too long for a socket: {tmp_path}")


def test_a_unix_socket_is_served_and_removed_with_the_server(path: Path) -> None:
    with onecopy.Server(environ_and_body, f"unix:{path}") as server:
        assert server.address == str(path)
        assert server.url == "http+unix://" + str(path).replace("/", "%2F") + "/"
        assert stat.S_ISSOCK(path.stat().st_mode)
        # There are no addresses; PEP 3333 still requires a name and a port of the server.
        assert ask(path) == b"['', '', 'localhost', '80', 'http']"
        body = os.urandom(3_000_000)
        assert ask(path, body=body).endswith(body)
    assert not path.exists()


@pytest.mark.parametrize("page", ["validated", "file", "generator", "large/bytes", "large/file"])
def test_bodies_of_each_kind_are_those_of_tcp(path: Path, page: str) -> None:
    with onecopy.Server(pages, f"unix:{path}"), onecopy.Server(pages, "127.0.0.1:0") as server:
        with urllib.request.urlopen(f"{server.url}{page}", timeout=60) as answer:
            expected = answer.read()
        assert ask(path, f"/{page}") == expected


def test_rows_are_streamed(path: Path) -> None:
    def app(environ: dict[str, Any], start: Start) -> Iterable[bytes]:
        start("200 OK", [("Content-Type", "text/csv")])
        return onecopy.connect("sqlite::memory:").execute("select 1 as i union all select 2").csv()

    with onecopy.Server(app, f"unix:{path}"):
        assert ask(path) == b"i\n1\n2\n"


def test_a_stale_socket_is_replaced_and_one_in_use_is_not(path: Path) -> None:
    left = socket.socket(socket.AF_UNIX)
    left.bind(os.fspath(path))
    left.close()
    with onecopy.Server(environ_and_body, f"unix:{path}"):
        with pytest.raises(OSError, match="in use"):
            onecopy.Server(environ_and_body, f"unix:{path}")
        assert ask(path)


def test_another_file_is_kept(path: Path) -> None:
    path.write_text("text")
    with pytest.raises(OSError, match="is not a socket"):
        onecopy.Server(environ_and_body, f"unix:{path}")
    assert path.read_text() == "text"


def test_the_socket_has_the_requested_mode(path: Path) -> None:
    before = os.umask(0o077)
    try:
        with onecopy.Server(environ_and_body, f"unix:{path}", socket_mode=0o660):
            assert stat.S_IMODE(path.stat().st_mode) == 0o660
        with onecopy.Server(environ_and_body, f"unix:{path}"):
            assert stat.S_IMODE(path.stat().st_mode) == 0o700
    finally:
        os.umask(before)


def test_a_listening_descriptor_is_accepted_and_others_are_refused(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(os.fspath(path))
        with pytest.raises(OSError, match="listen"):
            onecopy.Server(environ_and_body, f"fd://{listener.fileno()}")
        listener.listen()
        with onecopy.Server(environ_and_body, f"fd://{listener.fileno()}") as server:
            assert server.address == str(path)
            assert ask(path)
        assert path.exists()  # The socket file belongs to its creator.


def test_the_command_serves_at_a_path(path: Path) -> None:
    command = [sys.executable, "-m", "onecopy", "run", "tests.serve.app:app", "--bind", f"unix:{path}"]
    command += ["--socket-mode", "600"]
    with _running(command) as process:
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert ask(path, "/hello") == b"hello, world"
        process.terminate()
        assert process.wait(60) == 0
    assert not path.exists()


def test_processes_share_a_listener(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(os.fspath(path))
        listener.listen()
        number = listener.fileno()
        command = [sys.executable, "-m", "onecopy", "run", "tests.serve.app:app", "--bind", f"fd://{number}"]
        with _running(command, number) as first, _running(command, number):
            for _ in range(20):
                assert ask(path, "/hello") == b"hello, world"
            first.terminate()
            assert first.wait(60) == 0
            for _ in range(20):
                assert ask(path, "/hello") == b"hello, world"


@contextlib.contextmanager
def _running(command: list[str], *descriptors: int) -> Iterator[subprocess.Popen[str]]:
    """Starts a server in a separate process, and waits until it has printed its address."""
    with subprocess.Popen(
        command, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, cwd=ROOT, text=True, pass_fds=descriptors
    ) as process:
        try:
            assert process.stderr is not None
            said = process.stderr.readline()
            assert "serves tests.serve.app:app at http+unix://" in said, said
            yield process
        finally:
            process.kill()
