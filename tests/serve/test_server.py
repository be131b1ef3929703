"""`onecopy.Server` in the process of the tests: its start and end, and applications with several
kinds of output."""

from __future__ import annotations

import io
import os
import socket
import sys
import threading
import urllib.error
import urllib.request
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

import onecopy
from tests.support.raw_http import Line, request

Start = Callable[..., Callable[[bytes], object]]
ROWS = "with recursive c(i) as (select 1 union all select i + 1 from c where i < 3) select i from c"


def _line_to(server: onecopy.Server) -> Line:
    assert isinstance(server.address, tuple)
    return Line(server.address)


def _request(app: Callable[[dict[str, Any], Start], Iterable[bytes]]) -> bytes:
    with onecopy.Server(app, "127.0.0.1:0", threads=2) as server:
        body: bytes = urllib.request.urlopen(server.url, timeout=60).read()
        return body


def test_written_blocks_come_before_a_file(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"file")

    def app(environ: dict[str, Any], start: Start) -> Iterable[bytes]:
        start("200 OK", [])(b"written ")
        wrapped: Iterable[bytes] = environ["wsgi.file_wrapper"](open(file, "rb"))  # noqa: SIM115
        return wrapped

    assert _request(app) == b"written file"


@pytest.mark.parametrize("in_wrapper", [False, True])
@pytest.mark.parametrize("written", [b"", b"written "])
def test_written_blocks_come_before_rows(in_wrapper: bool, written: bytes) -> None:
    def app(environ: dict[str, Any], start: Start) -> Iterable[bytes]:
        write = start("200 OK", [])
        if written:
            write(written)
        rows = onecopy.connect("sqlite::memory:").execute(ROWS).csv()
        return environ["wsgi.file_wrapper"](rows) if in_wrapper else rows

    assert _request(app) == written + b"i\n1\n2\n3\n"


def test_an_error_of_a_row_stream_is_logged_once(monkeypatch: pytest.MonkeyPatch) -> None:
    said = io.StringIO()
    monkeypatch.setattr(sys, "stderr", said)

    def app(environ: dict[str, Any], start: Start) -> Iterable[bytes]:
        start("200 OK", [])
        return onecopy.connect("sqlite::memory:").execute("select 9e999 as x").json()

    with onecopy.Server(app, "127.0.0.1:0") as server, pytest.raises(urllib.error.HTTPError) as error:
        urllib.request.urlopen(server.url, timeout=60)
    assert error.value.code == 500
    error.value.close()
    assert said.getvalue().count("a row stream failed") == 1, said.getvalue()
    assert "DataError" in said.getvalue()


def test_hop_by_hop_fields_are_dropped_with_one_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    said = io.StringIO()
    monkeypatch.setattr(sys, "stderr", said)
    # As many examples of server-sent events set it; the same tuple each time.
    fields = [("Connection", "keep-alive"), ("Keep-Alive", "timeout=5"), ("Transfer-Encoding", "chunked"), ("X-A", "b")]

    def app(environ: dict[str, Any], start: Start) -> Iterable[bytes]:
        start("200 OK", fields)
        return iter([b"one", b"two"])

    with onecopy.Server(app, "127.0.0.1:0") as server, _line_to(server) as line:
        for _ in range(3):
            line.send(request("/"))
            answer = line.answer()
            assert (answer.status, answer.body, answer.one("x-a")) == (200, b"onetwo", b"b")
            assert answer.all("connection") == answer.all("keep-alive") == []
    assert said.getvalue().count("the application sets `Connection`") == 1, said.getvalue()
    assert said.getvalue().count("\n") == 1, said.getvalue()


def test_an_application_that_sends_close_has_its_connection_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    said = io.StringIO()
    monkeypatch.setattr(sys, "stderr", said)

    def app(environ: dict[str, Any], start: Start) -> Iterable[bytes]:
        start("200 OK", [("Connection", "close")])
        return [b"ok"]

    with onecopy.Server(app, "127.0.0.1:0") as server, _line_to(server) as line:
        line.send(request("/"))
        answer = line.answer()
        assert (answer.body, answer.one("connection")) == (b"ok", b"close")
        assert line.ends()
    assert said.getvalue() == ""


def test_a_205_response_has_no_body() -> None:
    def app(environ: dict[str, Any], start: Start) -> Iterable[bytes]:
        start("205 Reset Content", [("Content-Length", "4")])
        return [b"body"]

    with onecopy.Server(app, "127.0.0.1:0") as server, _line_to(server) as line:
        line.send(request("/") + request("/"))
        for _ in range(2):
            answer = line.answer()
            assert (answer.status, answer.body, answer.one("content-length")) == (205, b"", b"0")


def test_head_of_an_iterator_has_the_fields_of_get() -> None:
    def app(environ: dict[str, Any], start: Start) -> Iterable[bytes]:
        start("200 OK", [("Content-Type", "text/plain")])
        return iter([b"one", b"two"])

    with onecopy.Server(app, "127.0.0.1:0") as server, _line_to(server) as line:
        line.send(request("/"))
        get = [field for field in line.answer().fields if field[0] != "date"]
        line.send(request("/", method="HEAD"))
        head = [field for field in line.answer("HEAD").fields if field[0] != "date"]
    assert head == get


def test_it_starts_once_and_ends_with_its_block() -> None:
    def app(environ: dict[str, Any], start: Start) -> Iterable[bytes]:
        start("200 OK", [])
        return [environ["wsgi.input"].read()]

    before = set(threading.enumerate())
    with onecopy.Server(app, "127.0.0.1:0") as server:
        assert isinstance(server.address, tuple)
        host, port = server.address
        assert server.url == f"http://{host}:{port}/" and port > 0
        assert urllib.request.urlopen(server.url, data=b"body", timeout=60).read() == b"body"
        with pytest.raises(RuntimeError, match="already started"):
            server.start()
        with pytest.raises(OSError, match=f"{port}"):
            onecopy.Server(app, f"127.0.0.1:{port}")
    with pytest.raises(urllib.error.URLError):
        urllib.request.urlopen(server.url, timeout=60)
    with pytest.raises(RuntimeError, match="runs once"):
        server.run()
    assert not set(threading.enumerate()) - before


@pytest.mark.parametrize("bind", ["", "8000", "127.0.0.1:", "127.0.0.1:http", "127.0.0.1:65536", "127.0.0.1:-1"])
def test_an_invalid_address_is_refused(bind: str) -> None:
    with pytest.raises(ValueError, match="HOST:PORT"):
        onecopy.Server(lambda environ, start: [], bind)


def test_a_listening_socket_is_served() -> None:
    def app(environ: dict[str, Any], start: Start) -> Iterable[bytes]:
        start("200 OK", [])
        return [environ["SERVER_PORT"].encode()]

    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        for _ in range(2):  # The caller keeps the descriptor: a second server can use it again.
            with onecopy.Server(app, f"fd://{listener.fileno()}") as server:
                assert server.address == ("127.0.0.1", port)
                assert urllib.request.urlopen(server.url, timeout=60).read() == str(port).encode()


def test_a_descriptor_that_does_not_listen_is_refused() -> None:
    number = os.open(os.devnull, os.O_RDONLY)
    try:
        with pytest.raises(OSError, match="socket"):
            onecopy.Server(lambda environ, start: [], f"fd://{number}")
    finally:
        os.close(number)
    with pytest.raises(OSError, match="Bad file descriptor"):
        onecopy.Server(lambda environ, start: [], f"fd://{number}")


def test_options_out_of_their_range_are_refused() -> None:
    with pytest.raises(TypeError, match="not callable"):
        onecopy.Server("app", "127.0.0.1:0")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="at least 1"):
        onecopy.Server(lambda environ, start: [], "127.0.0.1:0", threads=0)
    with pytest.raises(ValueError, match="header_timeout"):
        onecopy.Server(lambda environ, start: [], "127.0.0.1:0", limits=onecopy.Limits(header_timeout=-1.0))
