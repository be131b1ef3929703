"""Repeated requests and responses with the same header fields, which the server caches: the results
are correct."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterable
from typing import Any

import pytest

import onecopy
from tests.support.raw_http import Line, request

Start = Callable[..., Callable[[bytes], object]]
NAMES = [
    "Accept",
    "accept",
    "Cookie",
    "X-Request-Id",
    "X-A",
    "x-a",
    "User-Agent",
    "Content-Type",
    "Authorization",
    "Via",
]
#: A duplicate of one of these fields is refused.
SINGLE = {"User-Agent", "Content-Type", "Authorization"}
CONSTANT = [("X-Kept", "the same tuple each time"), ("X-Cafe", "caf\xe9"), ("X-Empty", "")]


def line_to(server: onecopy.Server) -> Line:
    """A connection to a server that listens on TCP."""
    assert isinstance(server.address, tuple)
    return Line(server.address)


def environ_of(fields: list[tuple[str, bytes]]) -> dict[str, str]:
    """The reference implementation: a request's header fields as environ variables, by PEP 3333 and
    RFC 9110 (5.3)."""
    environ: dict[str, str] = {}
    for name, value in fields:
        key = name.upper().replace("-", "_")
        key = key if key == "CONTENT_TYPE" else f"HTTP_{key}"
        joint = "; " if key == "HTTP_COOKIE" else ","
        text = value.decode("latin-1")
        environ[key] = f"{environ[key]}{joint}{text}" if key in environ else text
    return environ


def headers_back(environ: dict[str, Any], start: Start) -> Iterable[bytes]:
    """A WSGI application that returns the request's header fields as JSON."""
    start("200 OK", [])
    kept = {key: value for key, value in environ.items() if key.startswith("HTTP_") or key == "CONTENT_TYPE"}
    environ.clear()  # An application may modify the environ.
    return [json.dumps(kept).encode()]


def test_the_environ_is_that_of_its_own_request() -> None:
    draw = random.Random(7)
    lists = [[draw.choice(NAMES) for _ in range(draw.randint(0, 9))] for _ in range(12)]
    lists = [[name for k, name in enumerate(names) if name not in SINGLE & set(names[:k])] for names in lists]
    values = [b"", b"a", b"other", b"caf\xe9", b"a, b", b"x" * 600]
    with (
        onecopy.Server(headers_back, "127.0.0.1:0", threads=2) as server,
        line_to(server) as one,
        line_to(server) as two,
    ):
        for _ in range(400):
            line = draw.choice([one, two])
            fields = [(name, draw.choice(values)) for name in draw.choice(lists)]
            line.send(request("/", *(name.encode() + b": " + value for name, value in fields)))
            assert json.loads(line.answer().body) == environ_of([("Host", b"a"), *fields])


def test_a_value_of_an_earlier_request_is_in_no_later_one() -> None:
    with onecopy.Server(headers_back, "127.0.0.1:0") as server, line_to(server) as line:
        for _ in range(4):
            line.send(request("/", b"Authorization: Bearer secret", b"X-A: 1"))
            assert json.loads(line.answer().body)["HTTP_AUTHORIZATION"] == "Bearer secret"
        for fields in [
            (b"X-A: 1",),
            (b"X-A: 1", b"Authorization: other"),
            (b"Authorization: other", b"X-A: 1"),
            (),
        ]:
            line.send(request("/", *fields))
            assert b"secret" not in line.answer().body


def test_fields_of_answers_are_those_of_their_own_call() -> None:
    calls = 0

    def app(environ: dict[str, Any], start: Start) -> Iterable[bytes]:
        nonlocal calls
        calls += 1
        start("200 OK", [*CONSTANT, ("X-Call", str(calls)), ("Content-Length", "2")])
        return [b"ok"]

    with onecopy.Server(app, "127.0.0.1:0") as server, line_to(server) as line:
        for k in range(1, 30):
            line.send(request("/"))
            answer = line.answer()
            expected = [(name.lower(), value.encode("latin-1")) for name, value in CONSTANT]
            custom = [field for field in answer.fields if field[0].startswith("x-")]
            assert custom == [*expected, ("x-call", str(k).encode())]
            assert answer.one("content-length") == b"2" and answer.body == b"ok"


def test_a_field_that_cannot_be_sent_is_refused_each_time() -> None:
    bad = [("X-A", "a\r\nX-B: b"), ("X A", "b"), ("Content-Length", "two")]

    def app(environ: dict[str, Any], start: Start) -> Iterable[bytes]:
        start("200 OK", [CONSTANT[0], bad[int(environ["QUERY_STRING"])]])
        return [b"ok"]

    with onecopy.Server(app, "127.0.0.1:0") as server, line_to(server) as line:
        for k in (0, 1, 2) * 4:
            line.send(request(f"/?{k}"))
            answer = line.answer()
            assert answer.status == 500 and not answer.all("x-a") and not answer.all("x-kept")


def test_a_start_response_that_was_kept_cannot_change_a_later_response() -> None:
    kept: list[Any] = []

    def app(environ: dict[str, Any], start: Start) -> Iterable[bytes]:
        if environ["PATH_INFO"] == "/keep":
            kept.append(start)
        elif kept:
            with pytest.raises(RuntimeError, match="called before"):
                kept[0]("500 Late", [])
        start("200 OK", [("X-Path", environ["PATH_INFO"])])
        return [b"ok"]

    with onecopy.Server(app, "127.0.0.1:0", threads=1) as server, line_to(server) as line:
        for path in ("/keep", "/a", "/b", "/a"):
            line.send(request(path))
            answer = line.answer()
            assert (answer.status, answer.one("x-path")) == (200, path.encode())
