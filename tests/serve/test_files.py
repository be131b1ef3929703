"""`onecopy.files` and `Range` requests for files that applications return, on onecopy's server and
others, compared with a reference implementation."""

from __future__ import annotations

import contextlib
import gzip
import os
import re
import socket
import ssl
import threading
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from wsgiref.simple_server import WSGIRequestHandler, make_server
from wsgiref.validate import validator

import pytest

import onecopy
from tests.serve.ranges import HOSTILE, by_chance, requested_parts
from tests.serve.test_tls import Identity, identity
from tests.support.raw_http import Answer, Line, request

__all__ = ["identity"]

TEXT = bytes(range(48, 98))
LARGE_BYTES = 8 << 20


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    top = tmp_path_factory.mktemp("files")
    root = top / "root"
    (root / "sub").mkdir(parents=True)
    (top / "secret").write_bytes(b"secret")
    (root / "a.txt").write_bytes(TEXT)
    (root / "a.txt.gz").write_bytes(gzip.compress(TEXT))
    (root / "empty").touch()
    (root / "sub" / "index.html").write_bytes(b"<p>index")
    (root / "large").write_bytes(os.urandom(LARGE_BYTES))
    (root / "Grüße.txt").write_bytes(b"hello")
    (root / ".hidden").write_bytes(b"hidden")
    (root / "out").symlink_to("../secret")
    return root


def _ask(address: Any, path: str, *lines: bytes, method: str = "GET") -> Answer:
    with Line(address) as line:
        line.send(request(path, *lines, method=method))
        return line.answer(method)


@pytest.fixture(scope="module")
def native(folder: Path) -> Iterator[Any]:
    """The address of a server of onecopy whose application is the folder."""
    with onecopy.Server(onecopy.files(folder), "127.0.0.1:0") as server:
        yield server.address


def _between(app: Any) -> Callable[..., Any]:
    """A middleware that iterates over the response, so that onecopy's server cannot send the file
    itself."""

    def wrapped(environ: dict[str, Any], start_response: Any) -> Iterator[bytes]:
        body = app(environ, start_response)
        try:
            yield from body
        finally:
            body.close()

    return wrapped


def _starts(app: Any) -> Callable[..., Any]:
    """A middleware that passes its own `start_response` to the application."""
    return lambda environ, start: app(
        environ, lambda status, fields, *more: start(status, [*fields, ("X-Seen", "1")], *more)
    )


class _Quiet(WSGIRequestHandler):
    def log_message(self, *_: object) -> None:
        pass


@contextlib.contextmanager
def _wsgiref(app: Any) -> Iterator[Any]:
    server = make_server("127.0.0.1", 0, app, handler_class=_Quiet)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield server.server_address
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@contextlib.contextmanager
def _ours(app: Any) -> Iterator[Any]:
    with onecopy.Server(app, "127.0.0.1:0") as server:
        yield server.address


_WAYS: dict[str, Callable[[Any], Any]] = {
    "a call": lambda app: _ours(lambda environ, start: app(environ, start)),
    "middleware": lambda app: _ours(_between(app)),
    "its own start_response": lambda app: _ours(_starts(app)),
    "wsgiref": _wsgiref,
    "wsgiref, validated": lambda app: _wsgiref(validator(app)),
}


def _parts(answer: Answer) -> list[tuple[int, int]] | None:
    """The byte ranges in a response, after a check that each contains those bytes of the text.

    The result is `None` for a complete response, and empty if the range was refused (416).
    """
    if answer.status == 200:
        assert answer.body == TEXT
        return None
    if answer.status == 416:
        assert answer.one("content-range") == b"bytes */50"
        return []
    assert answer.status == 206 and answer.whole
    boundary = re.fullmatch(rb"multipart/byteranges; boundary=(\S+)", answer.one("content-type"))
    if boundary is None:
        pieces = [(answer.one("content-range"), answer.body)]
    else:
        assert not answer.all("content-range")
        head = rb"\r\n--%b\r\nContent-Type: text/plain(?:; charset=utf-8)?\r\nContent-Range: ([^\r]*)\r\n\r\n"
        _, *split = re.split(head % boundary[1], answer.body.removesuffix(b"\r\n--%b--\r\n" % boundary[1]))
        pieces = list(zip(split[::2], split[1::2], strict=True))
        assert len(pieces) > 1 and answer.body.endswith(b"--%b--\r\n" % boundary[1])
    found = []
    for place, body in pieces:
        match = re.fullmatch(rb"bytes (\d+)-(\d+)/50", place)
        assert match is not None, place
        first, last = int(match[1]), int(match[2])
        assert body == TEXT[first : last + 1]
        found.append((first, last))
    return found


@pytest.mark.parametrize("value", HOSTILE, ids=lambda value: value[:30])
def test_hostile_ranges_are_answered_as_the_standard_requires(native: Any, value: str) -> None:
    answer = _ask(native, "/a.txt", b"Range: " + value.encode())
    assert _parts(answer) == requested_parts(value, 50)


def test_random_ranges_match_the_reference(native: Any) -> None:
    with Line(native) as line:
        for value in by_chance(20261123, 600):
            line.send(request("/a.txt", b"Range: " + value.encode()))
            assert _parts(line.answer()) == requested_parts(value.strip(), 50), value


def test_ranges_of_an_empty_file(native: Any) -> None:
    for value in ["bytes=0-", "bytes=0-0", "bytes=-0", "bytes=-1", "bytes=1-", "bytes=0-,-1", "bytes=x"]:
        answer = _ask(native, "/empty", b"Range: " + value.encode())
        expected = requested_parts(value, 0)
        assert (answer.status, answer.body if expected is None else b"") == (200 if expected is None else 416, b""), (
            value
        )
        assert expected is None or answer.one("content-range") == b"bytes */0"


@pytest.mark.parametrize("way", _WAYS)
def test_the_folder_is_the_same_application_everywhere(folder: Path, native: Any, way: str) -> None:
    tag = _ask(native, "/a.txt").one("etag")
    fields = (
        "content-type",
        "content-range",
        "etag",
        "last-modified",
        "accept-ranges",
        "location",
        "x-content-type-options",
    )
    with _WAYS[way](onecopy.files(folder)) as address:
        plain = ["/a.txt", "/empty", "/sub/", "/sub", "/sub?a=b", "/nothing", "/", "/Gr%C3%BC%C3%9Fe.txt", "/large"]
        wrong = ["/../secret", "/%2e%2e/secret", "/out", "/.hidden", "/a.txt/"]
        asks: list[tuple[str, list[bytes]]] = [
            *((path, []) for path in [*plain, *wrong]),
            *(("/a.txt", [b"Range: bytes=" + wanted]) for wanted in [b"3-7", b"3-", b"99-"]),
            ("/large", [b"Range: bytes=-70000"]),
            ("/a.txt", [b"If-None-Match: " + tag]),
            ("/a.txt", [b'If-Match: "x"']),
            ("/a.txt", [b"Range: bytes=0-9", b'If-Range: "x"']),
        ]
        for path, lines in asks:
            for method in ["GET", "HEAD"]:
                expected, got = (_ask(each, path, *lines, method=method) for each in (native, address))
                assert (got.status, got.body, got.whole) == (expected.status, expected.body, True), (path, lines)
                assert [got.all(name) for name in fields] == [expected.all(name) for name in fields], (path, lines)
        several = _ask(address, "/a.txt", b"Range: bytes=7-8,0-1,20-")
        assert _parts(several) == [(7, 8), (0, 1), (20, 49)]
        assert _ask(address, "/a.txt", method="POST").status == 405


def test_a_folder_mounted_in_a_larger_application(folder: Path) -> None:
    files = onecopy.files(folder)
    said: list[Any] = []
    environ = {"REQUEST_METHOD": "GET", "SCRIPT_NAME": "/media", "PATH_INFO": "/sub", "QUERY_STRING": "a=b"}
    assert list(files(environ, lambda *arguments: said.append(arguments))) == [b"a folder: its path ends with `/`\n"]
    status, fields = said[0]
    assert status == "301 Moved Permanently" and ("Location", "/media/sub/?a=b") in fields
    assert list(files(environ | {"PATH_INFO": "/sub/"}, lambda *_: None)) == [b"<p>index"]


def test_a_file_that_is_cut_under_another_server_is_an_error(folder: Path) -> None:
    cut = folder / "cut"
    cut.write_bytes(b"x" * 200_000)
    environ = {"REQUEST_METHOD": "GET", "PATH_INFO": "/cut"}
    body = onecopy.files(folder)(environ, lambda *_: None)
    blocks = iter(body)
    assert len(next(blocks)) == 65536
    os.truncate(cut, 70_000)
    assert len(next(blocks)) == 70_000 - 65536
    with pytest.raises(OSError, match="truncated"):
        next(blocks)
    body.close()  # type: ignore[attr-defined]


def test_no_descriptor_is_leaked(folder: Path) -> None:
    files = onecopy.files(folder)
    before = len(os.listdir("/proc/self/fd"))
    for lines in [{}, {"HTTP_RANGE": "bytes=0-1"}, {"HTTP_RANGE": "bytes=0-1,5-6"}]:
        for path in ["/a.txt", "/nothing", "/sub"]:
            environ = {"REQUEST_METHOD": "GET", "PATH_INFO": path} | lines
            body = files(environ, lambda *_: None)
            next(iter(body), None)
            body.close()  # type: ignore[attr-defined]
            with pytest.raises(ZeroDivisionError):
                files(environ, lambda *_: 1 / 0)
            wrapped: Any = files(environ | {"wsgi.file_wrapper": lambda file, size=1: file}, lambda *_: None)
            wrapped.close()
    assert len(os.listdir("/proc/self/fd")) == before


def test_options_and_errors(folder: Path) -> None:
    app = onecopy.files(folder, listing=True, hidden=True, precompressed=True, cache_control="max-age=60")
    assert repr(app) == f"onecopy.files({str(folder)!r})" and app.folder == str(folder)
    with _ours(app) as address:
        page = _ask(address, "/")
        assert page.status == 200 and b".hidden" in page.body and "Grüße.txt".encode() in page.body
        packed = _ask(address, "/a.txt", b"Accept-Encoding: gzip")
        assert packed.one("content-encoding") == b"gzip" and gzip.decompress(packed.body) == TEXT
        assert (packed.one("cache-control"), packed.one("vary")) == (b"max-age=60", b"Accept-Encoding")
    with pytest.raises(FileNotFoundError):
        onecopy.files(folder / "nothing")
    with pytest.raises(NotADirectoryError):
        onecopy.files(folder / "a.txt")
    with pytest.raises(ValueError, match="Cache-Control"):
        onecopy.files(folder, cache_control="a\nb")


def test_ranges_through_tls(folder: Path, identity: Identity) -> None:
    whole = (folder / "large").read_bytes()
    with onecopy.Server(onecopy.files(folder), "127.0.0.1:0", tls=identity.tls) as server:
        with urllib.request.urlopen(server.url + "large", context=identity.context) as answer:
            assert answer.read() == whole
        asks = urllib.request.Request(server.url + "large", headers={"Range": "bytes=1000000-7999999"})
        with urllib.request.urlopen(asks, context=identity.context) as answer:
            assert answer.status == 206 and answer.read() == whole[1_000_000:8_000_000]
        large = folder / "cut-tls"
        large.write_bytes(os.urandom(64 << 20))
        with (
            socket.create_connection(server.address, 30) as plain,  # type: ignore[arg-type]
            identity.context.wrap_socket(plain, server_hostname="127.0.0.1") as line,
        ):
            line.sendall(request("/cut-tls"))
            got = len(line.recv(1000))
            os.truncate(large, 1000)
            with contextlib.suppress(ConnectionResetError, ssl.SSLError):
                while block := line.recv(1 << 20):
                    got += len(block)
            assert got < 64 << 20


# Files that applications return.


def _gives(folder: Path, *fields: tuple[str, str], at: int = 0, status: str = "200 OK") -> Callable[..., Any]:
    def app(environ: dict[str, Any], start: Any) -> Any:
        file = open(folder / "a.txt", "rb")  # noqa: SIM115
        file.seek(at)
        start(status, [("Content-Type", "text/plain"), *fields])
        return environ["wsgi.file_wrapper"](file)

    return app


def test_a_wrapped_file_of_proc_is_read_because_its_size_is_unknown(tmp_path: Path) -> None:
    empty = tmp_path / "empty"
    empty.touch()

    def app(environ: dict[str, Any], start: Any) -> Any:
        file = open(empty if environ["PATH_INFO"] == "/empty" else "/proc/self/cmdline", "rb")  # noqa: SIM115
        file.seek(int(environ["QUERY_STRING"] or 0))
        start("200 OK", [("Content-Type", "text/plain")])
        return environ["wsgi.file_wrapper"](file)

    words = Path("/proc/self/cmdline").read_bytes()
    with _ours(app) as address:
        assert words and _ask(address, "/").body == words
        assert _ask(address, "/?3").body == words[3:]
        answer = _ask(address, "/empty")
        assert (answer.status, answer.body, answer.one("content-length")) == (200, b"", b"0")


@pytest.fixture(scope="module")
def wrapped(folder: Path) -> Iterator[Any]:
    with onecopy.Server(_gives(folder), "127.0.0.1:0") as server:
        yield server.address


@pytest.mark.parametrize("value", HOSTILE, ids=lambda value: value[:30])
def test_a_wrapped_file_answers_hostile_ranges_alike(wrapped: Any, value: str) -> None:
    assert _parts(_ask(wrapped, "/", b"Range: " + value.encode())) == requested_parts(value, 50)


def test_a_wrapped_file_answers_random_ranges_alike(wrapped: Any) -> None:
    with Line(wrapped) as line:
        for value in by_chance(7, 600):
            line.send(request("/", b"Range: " + value.encode()))
            assert _parts(line.answer()) == requested_parts(value.strip(), 50), value


def test_ranges_of_a_wrapped_file_count_from_its_position_and_end_with_its_length(folder: Path) -> None:
    with _ours(_gives(folder, ("Content-Length", "20"), at=10)) as address:
        for value, first, last in [("5-9", 5, 9), ("15-", 15, 19), ("-3", 17, 19), ("0-99", 0, 19)]:
            answer = _ask(address, "/", b"Range: bytes=" + value.encode())
            assert answer.one("content-range") == b"bytes %d-%d/20" % (first, last)
            assert answer.body == TEXT[10 + first : 10 + last + 1]
        assert _ask(address, "/", b"Range: bytes=20-").one("content-range") == b"bytes */20"
        head = _ask(address, "/", b"Range: bytes=0-1", method="HEAD")
        assert (head.status, head.one("content-length"), head.one("accept-ranges")) == (200, b"20", b"bytes")


def test_if_range_is_compared_with_the_fields_of_the_application(folder: Path) -> None:
    date = "Sun, 06 Nov 1994 08:49:37 GMT"
    with _ours(_gives(folder, ("ETag", '"v1"'), ("Last-Modified", date))) as address:
        for value, status in [
            ('"v1"', 206),
            (date, 206),
            ('"v2"', 200),
            ('W/"v1"', 200),
            ("Mon, 07 Nov 1994 08:49:37 GMT", 200),
        ]:
            answer = _ask(address, "/", b"Range: bytes=0-1", b"If-Range: " + value.encode())
            assert answer.status == status, value
            assert answer.one("etag") == b'"v1"'
    with _ours(_gives(folder, ("ETag", 'W/"v1"'))) as address:
        assert _ask(address, "/", b"Range: bytes=0-1", b'If-Range: "v1"').status == 200
        assert _ask(address, "/", b"Range: bytes=0-1").status == 206


@pytest.mark.parametrize(
    "app",
    [
        lambda folder: _gives(folder, ("Accept-Ranges", "none")),
        lambda folder: _gives(folder, ("Content-Encoding", "gzip")),
        lambda folder: _gives(folder, ("Content-Range", "bytes 0-49/50"), status="206 Partial Content"),
        lambda folder: _gives(folder, status="404 Not Found"),
        lambda folder: _gives(folder, status="201 Created"),
    ],
    ids=["none", "encoded", "its own part", "404", "201"],
)
def test_other_responses_of_a_wrapped_file_are_not_changed(folder: Path, app: Any) -> None:
    with _ours(app(folder)) as address:
        plain, ranged = _ask(address, "/"), _ask(address, "/", b"Range: bytes=0-1")
        assert (ranged.status, ranged.body, ranged.all("content-range")) == (
            plain.status,
            TEXT,
            plain.all("content-range"),
        )
        assert ranged.all("accept-ranges") == plain.all("accept-ranges")


def test_a_response_to_post_has_no_ranges(wrapped: Any) -> None:
    answer = _ask(wrapped, "/", b"Range: bytes=0-1", method="POST")
    assert (answer.status, answer.body, answer.all("accept-ranges")) == (200, TEXT, [])
