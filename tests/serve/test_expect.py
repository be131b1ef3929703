"""`Expect: 100-continue`: the application is called at once, and its first read of the body sends
100.

The tests use TCP, unix sockets and TLS.
"""

from __future__ import annotations

import contextlib
import os
import queue
import socket
import ssl
import threading
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, BinaryIO

import pytest
import trustme

import onecopy
from tests.serve.app import app as pages
from tests.support.serving import Serving

Start = Callable[..., object]
Environ = dict[str, Any]
#: The longest wait for an expected event.
PATIENCE_S = 60
PLAIN = [("Content-Type", "text/plain")]


class Application:
    """A WSGI application that calls the method named by the path, and records events."""

    def __init__(self) -> None:
        self.seen: queue.Queue[object] = queue.Queue()
        self.gate = threading.Event()

    def __call__(self, environ: Environ, start: Start) -> Iterable[bytes]:
        page = getattr(self, environ["PATH_INFO"].strip("/"))
        try:
            answer: Iterable[bytes] = page(environ["wsgi.input"], environ, start)
        except OSError as error:
            self.seen.put(error)
            raise
        return answer

    def next(self) -> object:
        """Waits for the next recorded event."""
        return self.seen.get(timeout=PATIENCE_S)

    def reads(self, body: Any, environ: Environ, start: Start) -> Iterable[bytes]:
        """Reads the whole body at once; records its Content-Length before."""
        self.seen.put(environ["CONTENT_LENGTH"])
        read = body.read()
        assert body.read() == body.readline() == b""
        start("200 OK", PLAIN)
        return [read]

    def parts(self, body: Any, environ: Environ, start: Start) -> Iterable[bytes]:
        """Reads the body in several parts, after two reads of length 0."""
        assert body.read(0) == body.readline(0) == b""
        self.seen.put("called")
        assert self.gate.wait(PATIENCE_S)
        read = [body.read(3), body.read(2), body.read(-1)]
        start("200 OK", PLAIN)
        return [b"|".join(read)]

    def lines(self, body: Any, environ: Environ, start: Start) -> Iterable[bytes]:
        """Reads the body line by line, with each method that reads lines."""
        read = [body.readline(), body.readline(2), next(body), *body.readlines()]
        start("200 OK", PLAIN)
        return [b"|".join(read)]

    def iterates(self, body: Any, environ: Environ, start: Start) -> Iterable[bytes]:
        """Reads the body by iterating over its lines."""
        read = list(body)
        start("200 OK", PLAIN)
        return read

    def ignores(self, body: Any, environ: Environ, start: Start) -> Iterable[bytes]:
        """Responds without reading the body."""
        start("403 Forbidden", PLAIN)
        return [b"not wanted"]

    def ignores_slowly(self, body: Any, environ: Environ, start: Start) -> Iterable[bytes]:
        """Responds item by item without reading the body."""
        start("200 OK", PLAIN)
        yield b"not "
        yield b"wanted"

    def late(self, body: Any, environ: Environ, start: Start) -> Iterable[bytes]:
        """Reads the body after `start_response`, and before a `write` that sends data."""
        write = start("200 OK", PLAIN)
        assert callable(write)
        write(b"")
        come = body.read()
        write(b"read ")
        return [come]

    def after_a_block(self, body: Any, environ: Environ, start: Start) -> Iterable[bytes]:
        """Reads the body after `write` has started the response."""
        write = start("200 OK", PLAIN)
        assert callable(write)
        write(b"begun")
        return [body.read()]

    def lazily(self, body: Any, environ: Environ, start: Start) -> Iterable[bytes]:
        """Reads a part of the body before the first item of the response, the rest after it."""
        start("200 OK", PLAIN)
        yield body.read(2)
        yield b"|"
        yield body.read()

    def too_late(self, body: Any, environ: Environ, start: Start) -> Iterable[bytes]:
        """Reads the body for the first time after the first item of the response; records the
        error."""
        start("200 OK", PLAIN)
        yield b"begun"
        try:
            body.read()
        except OSError as error:
            self.seen.put(error)
            raise

    def catches(self, body: Any, environ: Environ, start: Start) -> Iterable[bytes]:
        """Catches the errors of three reads if no body arrives, and responds with 503."""
        errors = []
        for read in (body.read, body.readline, lambda: next(body)):
            try:
                read()
            except OSError as error:
                errors.append(type(error).__name__)
        start("503 Later", PLAIN)
        return [" ".join(errors).encode()]

    def breaks(self, body: Any, environ: Environ, start: Start) -> Iterable[bytes]:
        """Raises an exception of its own after a failed read of the body."""
        with contextlib.suppress(OSError):
            body.read()
        raise RuntimeError("of its own")

    def forks(self, body: Any, environ: Environ, start: Start) -> Iterable[bytes]:
        """Reads the body in a forked child, where the read must fail, and then in the parent."""
        child = os.fork()
        if child == 0:
            try:
                body.read()
            except onecopy.InterfaceError:
                os._exit(7)
            finally:
                os._exit(1)
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        start("200 OK", PLAIN)
        return [b"%d " % code, body.read()]

    def keeps(self, body: Any, environ: Environ, start: Start) -> Iterable[bytes]:
        """Passes the input object to the test, which reads it in another thread."""
        self.seen.put(body)
        start("200 OK", PLAIN)
        return [b"kept"]


class Client:
    """A client's connection, with methods to send requests and to parse responses."""

    def __init__(self, connected: socket.socket) -> None:
        self.socket = connected
        self._file: BinaryIO = connected.makefile("rb")

    def ask(self, path: str, *fields: str, body: bytes = b"") -> Client:
        """Sends a request with `Expect: 100-continue`, followed by ``body``."""
        head = [f"POST /{path} HTTP/1.1", "Host: a", "Expect: 100-continue", *fields]
        self.send("\r\n".join([*head, "", ""]).encode() + body)
        return self

    def send(self, data: bytes) -> None:
        """Sends ``data`` unchanged."""
        self.socket.sendall(data)

    def head(self) -> tuple[int, dict[str, str]]:
        """Reads the head of the next response; returns its status and its header fields."""
        line = self._file.readline()
        assert line.startswith(b"HTTP/1.1 "), line
        fields = {}
        while (field := self._file.readline().decode().strip()) != "":
            name, _, value = field.partition(":")
            fields[name.lower()] = value.strip()
        return int(line.split()[1]), fields

    def goes_on(self, body: bytes = b"") -> None:
        """Reads the response 100 Continue, then sends ``body``."""
        assert self.head() == (100, {})
        self.send(body)

    def answer(self) -> tuple[int, bytes, bool]:
        """Reads the final response; returns its status, its body, and true if it has `Connection:
        close`."""
        status, fields = self.head()
        if "content-length" in fields:
            body = self._file.read(int(fields["content-length"]))
        else:
            assert fields["transfer-encoding"] == "chunked"
            parts = []
            while size := int(self._file.readline() or b"-1", 16):
                assert size > 0, "the connection ended"
                parts.append(self._file.read(size))
                self._file.readline()
            assert self._file.readline() == b"\r\n"
            body = b"".join(parts)
        return status, body, fields.get("connection") == "close"

    def rest(self) -> bytes:
        """All bytes up to the end of the connection."""
        return self._file.read()

    def close(self) -> None:
        """Closes the connection."""
        self._file.close()
        self.socket.close()


class Place:
    """A running server with an application, and the clients of a test."""

    def __init__(self, server: onecopy.Server, context: ssl.SSLContext | None) -> None:
        self.server, self._context, self._clients = server, context, contextlib.ExitStack()

    def connect(self) -> Client:
        """A new client that is connected to the server."""
        if isinstance(self.server.address, str):
            plain = socket.socket(socket.AF_UNIX)
            plain.settimeout(PATIENCE_S)
            plain.connect(self.server.address)
        else:
            plain = socket.create_connection(self.server.address, PATIENCE_S)
        client = Client(self._context.wrap_socket(plain, server_hostname="localhost") if self._context else plain)
        self._clients.callback(client.close)
        return client

    def ask(self, path: str, *fields: str, body: bytes = b"") -> Client:
        """A new client that has sent a request with `Expect: 100-continue`."""
        return self.connect().ask(path, *fields, body=body)

    def close(self) -> None:
        """Closes the connections of all clients."""
        self._clients.close()


@pytest.fixture(scope="module")
def identity(tmp_path_factory: pytest.TempPathFactory) -> tuple[onecopy.Tls, ssl.SSLContext]:
    folder = tmp_path_factory.mktemp("tls")
    authority = trustme.CA()
    made = authority.issue_cert("localhost")
    made.private_key_and_cert_chain_pem.write_to_path(str(folder / "both.pem"))
    context = ssl.create_default_context()
    authority.configure_trust(context)
    return onecopy.Tls(folder / "both.pem", folder / "both.pem"), context


@pytest.fixture
def app() -> Application:
    return Application()


@pytest.fixture(params=["tcp", "unix", "tls"])
def place(
    request: pytest.FixtureRequest, app: Application, identity: tuple[onecopy.Tls, ssl.SSLContext], tmp_path: Path
) -> Iterator[Place]:
    """A server with the application, for each transport."""
    bind = f"unix:{tmp_path / 's'}" if request.param == "unix" else "127.0.0.1:0"
    tls, context = identity if request.param == "tls" else (None, None)
    with onecopy.Server(app, bind, tls=tls) as server:
        made = Place(server, context)
        yield made
        made.close()


@contextlib.contextmanager
def serving(app: Application, **options: Any) -> Iterator[Place]:
    """A server with the application on TCP, with further options."""
    with onecopy.Server(app, "127.0.0.1:0", **options) as server:
        made = Place(server, None)
        yield made
        made.close()


@pytest.mark.parametrize("size", [5, 70_000, 3_000_000])
def test_the_first_read_asks_for_the_whole_body(place: Place, app: Application, size: int) -> None:
    client = place.connect()
    body = bytes(range(256)) * (size // 256) + b"x" * (size % 256)
    for _ in range(2):  # The connection stays open.
        client.ask("reads", f"Content-Length: {size}")
        assert app.next() == str(size)
        client.goes_on(body)
        assert client.answer() == (200, body, False)


def test_the_body_is_read_in_parts(place: Place, app: Application) -> None:
    client = place.ask("parts", "Content-Length: 10")
    assert app.next() == "called"  # It was called, and has read nothing.
    app.gate.set()
    client.goes_on(b"0123")
    client.send(b"456789")
    assert client.answer() == (200, b"012|34|56789", False)


def test_the_body_is_read_in_lines(place: Place) -> None:
    for path, read in (("lines", b"a\n|bb|b\n|c\n|d"), ("iterates", b"a\nbbb\nc\nd")):
        client = place.ask(path, "Content-Length: 9")
        client.goes_on(b"a\nbbb\nc\nd")
        assert client.answer() == (200, read, False)


@pytest.mark.parametrize(("path", "status"), [("ignores", 403), ("ignores_slowly", 200)])
def test_a_client_without_continue_gets_the_answer_and_the_end(place: Place, path: str, status: int) -> None:
    client = place.ask(path, "Content-Length: 1000000")
    assert client.answer() == (status, b"not wanted", True)  # No 100 before it.
    with contextlib.suppress(OSError):  # A body sent nevertheless is not treated as a request.
        client.send(b"GET /reads HTTP/1.1\r\nHost: a\r\n\r\n")
    assert client.rest() == b""


def test_the_body_is_read_after_start_response(place: Place) -> None:
    client = place.ask("late", "Content-Length: 5")
    client.goes_on(b"hello")
    assert client.answer() == (200, b"read hello", False)


def test_a_generator_reads_it_before_its_first_item(place: Place) -> None:
    client = place.ask("lazily", "Content-Length: 5")
    client.goes_on(b"hello")
    assert client.answer() == (200, b"he|llo", False)


@pytest.mark.parametrize("path", ["too_late", "after_a_block"])
def test_a_response_that_has_started_cannot_send_continue(place: Place, app: Application, path: str) -> None:
    client = place.ask(path, "Content-Length: 5")
    status, fields = client.head()
    assert (status, fields["connection"]) == (200, "close")
    with contextlib.suppress(ssl.SSLEOFError):
        assert not client.rest().endswith(b"0\r\n\r\n")  # Aborted, visibly.
    error = app.next()
    assert isinstance(error, OSError) and "read it before" in str(error)


def test_a_chunked_body_has_its_length_in_the_environ(place: Place, app: Application) -> None:
    # CGI has no body without a length, so it is received before the application is called.
    client = place.ask("reads", "Transfer-Encoding: chunked")
    client.goes_on(b"3\r\nabc\r\n")
    client.send(b"2\r\nde\r\n0\r\n\r\n")
    assert app.next() == "5"
    assert client.answer() == (200, b"abcde", False)


def test_a_client_that_does_not_wait_gets_no_continue(place: Place, app: Application) -> None:
    client = place.ask("ignores", "Content-Length: 5", body=b"hello")
    client.goes_on()
    assert client.answer() == (403, b"not wanted", False)


def test_a_client_that_disconnects_ends_the_read(place: Place, app: Application) -> None:
    for sent in (b"", b"hal"):
        client = place.ask("reads", "Content-Length: 5")
        client.goes_on(sent)
        assert app.next() == "5"
        client.close()
        assert isinstance(app.next(), ConnectionAbortedError)
    assert place.ask("ignores", "Content-Length: 5").answer()[0] == 403


def test_a_client_that_sends_nothing_gets_408_and_is_disconnected(
    app: Application, capsys: pytest.CaptureFixture[str]
) -> None:
    with serving(app, limits=onecopy.Limits(body_timeout=0.2)) as place:
        client = place.ask("reads", "Content-Length: 5")
        client.goes_on(b"hal")
        assert app.next() == "5" and isinstance(app.next(), TimeoutError)
        status, body, is_last = client.answer()
        assert (status, is_last) == (408, True) and b"in time" in body
        client = place.ask("catches", "Content-Length: 5")
        client.goes_on()
        assert client.answer() == (503, b"TimeoutError TimeoutError TimeoutError", True)
        assert capsys.readouterr().err == ""  # The error is the client's, not the application's.
        client = place.ask("breaks", "Content-Length: 5")
        client.goes_on()
        assert client.answer()[0] == 500
    assert "of its own" in capsys.readouterr().err


def test_a_body_over_the_limit_is_refused_without_the_application(app: Application) -> None:
    with serving(app, limits=onecopy.Limits(max_body_bytes=4)) as place:
        status, _, is_last = place.ask("reads", "Content-Length: 5").answer()
        assert (status, is_last) == (413, True)
    assert app.seen.empty()


def test_half_of_the_threads_may_wait_and_the_others_serve(app: Application) -> None:
    with serving(app, threads=4) as place:
        waiting = [place.ask("reads", "Content-Length: 5") for _ in range(2)]
        for client in waiting:
            client.goes_on()
            assert app.next() == "5"
        more = [place.ask("reads", "Content-Length: 6") for _ in range(8)]
        for client in more:  # Received by the server; the application was not called yet.
            client.goes_on()
        assert place.ask("ignores", "Content-Length: 0").answer()[0] == 403
        assert app.seen.empty()
        for client in more:
            client.send(b"second")
            assert client.answer() == (200, b"second", False)
        for client in waiting:
            client.send(b"first")
            assert client.answer() == (200, b"first", False)


def test_a_server_of_one_thread_receives_first(app: Application) -> None:
    with serving(app, threads=1) as place:
        client = place.ask("ignores", "Content-Length: 5")
        client.goes_on()
        assert place.ask("ignores", "Content-Length: 0").answer()[0] == 403  # The thread is free.
        client.send(b"hello")
        assert client.answer() == (403, b"not wanted", False)


def test_a_server_that_is_cut_ends_the_read(place: Place, app: Application) -> None:
    client = place.ask("reads", "Content-Length: 5")
    client.goes_on(b"hal")
    assert app.next() == "5"
    place.server.stop(now=True)
    assert isinstance(app.next(), ConnectionAbortedError)


def test_a_server_that_stops_receives_the_body(place: Place, app: Application) -> None:
    client = place.ask("reads", "Content-Length: 5")
    client.goes_on(b"hal")
    assert app.next() == "5"
    stop = threading.Thread(target=place.server.stop)
    stop.start()
    client.send(b"lo")
    assert client.answer()[:2] == (200, b"hallo")
    stop.join(PATIENCE_S)
    assert not stop.is_alive()


# CPython 3.12 and newer warn about a fork in a process with threads, which this test does.
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_child_is_refused_and_the_parent_reads(place: Place) -> None:
    client = place.ask("forks", "Content-Length: 5")
    client.goes_on(b"hello")
    assert client.answer() == (200, b"7 hello", False)


def test_a_body_used_after_its_request_raises(app: Application) -> None:
    with serving(app) as place:
        assert place.ask("keeps", "Content-Length: 5").answer() == (200, b"kept", True)
        body: Any = app.next()
        with pytest.raises(OSError, match="the response has begun"):
            body.read()
    with pytest.raises(OSError, match="the response has begun"):
        body.readline()
    assert body.read(0) == b""


def test_wsgiref_finds_no_violation() -> None:
    with onecopy.Server(pages, "127.0.0.1:0") as server:
        place = Place(server, None)
        client = place.ask("validated", "Content-Length: 5")
        client.goes_on(b"hello")
        assert client.answer() == (200, b"valid", False)
        place.close()


def test_the_command_supports_it_with_its_default_threads() -> None:
    with Serving() as command, socket.create_connection(command.address, PATIENCE_S) as line:
        client = Client(line).ask("hello", "Content-Length: 5")
        assert client.answer() == (200, b"hello, world", True)
        client.close()
