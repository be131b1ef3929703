"""`onecopy.Server` in this process: how it begins and ends, and applications that say more than one thing."""

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

Start = Callable[..., Callable[[bytes], object]]
ROWS = "with recursive c(i) as (select 1 union all select i + 1 from c where i < 3) select i from c"


def _asked(app: Callable[[dict[str, Any], Start], Iterable[bytes]]) -> bytes:
    with onecopy.Server(app, "127.0.0.1:0", threads=2) as server:
        body: bytes = urllib.request.urlopen(server.url, timeout=60).read()
        return body


def test_what_was_written_stands_before_a_file(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"file")

    def app(environ: dict[str, Any], start: Start) -> Iterable[bytes]:
        start("200 OK", [])(b"written ")
        wrapped: Iterable[bytes] = environ["wsgi.file_wrapper"](open(file, "rb"))  # noqa: SIM115  # The wrapper closes it.
        return wrapped

    assert _asked(app) == b"written file"


@pytest.mark.parametrize("in_wrapper", [False, True])
@pytest.mark.parametrize("written", [b"", b"written "])
def test_what_was_written_stands_before_rows(in_wrapper: bool, written: bytes) -> None:
    def app(environ: dict[str, Any], start: Start) -> Iterable[bytes]:
        write = start("200 OK", [])
        if written:
            write(written)
        rows = onecopy.connect("sqlite::memory:").execute(ROWS).csv()
        return environ["wsgi.file_wrapper"](rows) if in_wrapper else rows

    assert _asked(app) == written + b"i\n1\n2\n3\n"


def test_a_row_stream_that_fails_is_told_once(monkeypatch: pytest.MonkeyPatch) -> None:
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


def test_it_begins_once_and_ends_with_its_block() -> None:
    def app(environ: dict[str, Any], start: Start) -> Iterable[bytes]:
        start("200 OK", [])
        return [environ["wsgi.input"].read()]

    before = set(threading.enumerate())
    with onecopy.Server(app, "127.0.0.1:0") as server:
        assert isinstance(server.address, tuple)
        host, port = server.address
        assert server.url == f"http://{host}:{port}/" and port > 0
        assert urllib.request.urlopen(server.url, data=b"body", timeout=60).read() == b"body"
        with pytest.raises(RuntimeError, match="started before"):
            server.start()
        with pytest.raises(OSError, match=f"{port}"):
            onecopy.Server(app, f"127.0.0.1:{port}")
    with pytest.raises(urllib.error.URLError):
        urllib.request.urlopen(server.url, timeout=60)
    with pytest.raises(RuntimeError, match="runs once"):
        server.run()
    assert not set(threading.enumerate()) - before


@pytest.mark.parametrize("bind", ["", "8000", "127.0.0.1:", "127.0.0.1:http", "127.0.0.1:65536", "127.0.0.1:-1"])
def test_what_is_no_address_is_refused(bind: str) -> None:
    with pytest.raises(ValueError, match="HOST:PORT"):
        onecopy.Server(lambda environ, start: [], bind)


def test_a_socket_that_listens_already_is_served_on() -> None:
    def app(environ: dict[str, Any], start: Start) -> Iterable[bytes]:
        start("200 OK", [])
        return [environ["SERVER_PORT"].encode()]

    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        for _ in range(2):  # The descriptor stays the caller's: a second server takes it as the first did.
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
