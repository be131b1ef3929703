"""Connections (RFC 9112, 9; RFC 9110, 10.1.1): their lifetime, the order of messages, and slow
clients."""

from __future__ import annotations

import contextlib
import selectors
import time

from tests.support.cases import Cases, Lenient, echoed, is_hello
from tests.support.raw_http import GLANCE_S, Closed, Line, Silent, request
from tests.support.serving import Serving

CASES = Cases()
#: The time limit of the server for slow clients, and how long they are watched at most.
HEADER_TIMEOUT_S = 1
WATCH_S = 8.0
N_SLOW = 200


@CASES.behaves("Expect: 100-continue")
def _(server: Serving) -> None:
    with server.connect() as line:
        line.send(request("/echo", b"Content-Length: 5", b"Expect: 100-continue", method="POST"))
        version, status, _, _ = line.head()
        assert (version, status) == ("1.1", 100)
        line.send(b"hello")
        assert echoed(line.answer())["body"] == "hello"


@CASES.behaves("Expect, app does not read")
def _(server: Serving) -> None:
    # A client that waits for 100 and gets the final response keeps the body: it need not be sent.
    with server.connect() as line:
        line.send(request("/hello", b"Content-Length: 5", b"Expect: 100-continue", method="POST"))
        with contextlib.suppress(Silent):
            _, status, _, _ = line.head()
            if status == 200:
                return
            assert status == 100
            line.send(b"hello")
            is_hello(line.answer())
            raise Lenient("100 Continue was sent for a body that is not read")
        raise Silent("neither 100 nor an answer")


@CASES.behaves("HTTP/1.0 keep-alive")
def _(server: Serving) -> None:
    with server.connect() as line:
        for _ in range(2):
            line.send(request("/hello", b"Connection: keep-alive", version=b"HTTP/1.0"))
            try:
                answer = line.answer()
            except Closed:
                raise Lenient("closed, though keep-alive was requested") from None
            is_hello(answer)
            if [value.lower() for value in answer.all("connection")] != [b"keep-alive"]:
                raise Lenient("the answer does not say that the connection stays")


@CASES.behaves("HTTP/1.0 close, no chunked")
def _(server: Serving) -> None:
    with server.connect() as line:
        line.send(request("/generator", version=b"HTTP/1.0"))
        answer = line.answer()
        assert (answer.status, answer.body, answer.all("transfer-encoding")) == (200, b"one,two,three", [])
        assert line.ends()


@CASES.behaves("Connection: close")
def _(server: Serving) -> None:
    with server.connect() as line:
        line.send(request("/hello", b"Connection: close"))
        is_hello(line.answer())
        assert line.ends(), "the connection stays open"


@CASES.behaves("10 pipelined GETs")
def _(server: Serving) -> None:
    with server.connect() as line:
        line.send(b"".join(request(f"/echo?{k}") for k in range(10)))
        assert [echoed(line.answer())["query"] for _ in range(10)] == [str(k) for k in range(10)]


@CASES.behaves("pipelined chunked+CL+GET")
def _(server: Serving) -> None:
    with server.connect() as line:
        line.send(
            request(
                "/echo?1", b"Transfer-Encoding: chunked", method="POST", body=b"3\r\nabc\r\n2;x=y\r\nde\r\n0\r\n\r\n"
            )
            + request("/echo?2", b"Content-Length: 3", method="POST", body=b"fgh")
            + request("/echo?3")
        )
        echoes = [echoed(line.answer()) for _ in range(3)]
        assert [(t["query"], t["body"]) for t in echoes] == [("1", "abcde"), ("2", "fgh"), ("3", "")]


@CASES.behaves("unread body, next request")
def _(server: Serving) -> None:
    # The body looks like a request, but is not one.
    hidden = request("/echo?hidden")
    with server.connect() as line:
        line.send(request("/hello", b"Content-Length: %d" % len(hidden), method="POST", body=hidden))
        line.send(request("/echo?next"))
        is_hello(line.answer())
        try:
            answer = line.answer()
        except Closed:
            raise Lenient("the connection closes") from None
        assert echoed(answer)["query"] == "next"


@CASES.behaves("byte-by-byte request")
def _(server: Serving) -> None:
    sent = request("/echo", b"Content-Length: 5", b"X-U: a", method="POST", body=b"hello")
    with server.connect() as line:
        for k in range(len(sent)):
            line.send(sent[k : k + 1])
        echoes = echoed(line.answer())
        assert (echoes["body"], echoes["fields"]["HTTP_X_U"]) == ("hello", "a")


@CASES.behaves("chunked request body")
def _(server: Serving) -> None:
    with server.connect() as line:
        body = b"5\r\nhello\r\n7;name=value\r\n, world\r\n00\r\n\r\n"
        line.send(request("/echo", b"Transfer-Encoding: chunked", method="POST", body=body))
        assert echoed(line.answer())["body"] == "hello, world"
        line.send(request())
        is_hello(line.answer())


def _dribble(lines: list[Line], until: float) -> list[Line]:
    """Repeatedly sends a byte on each connection until the time ``until``.

    Returns the connections that the server has not closed.
    """
    selector = selectors.DefaultSelector()
    for line in lines:
        selector.register(line.socket, selectors.EVENT_READ, line)
    open_lines = set(lines)
    while open_lines and time.monotonic() < until:
        for line in open_lines:
            line.send(b"a")
        for key, _ in selector.select(0.1):
            line = key.data
            try:
                still_open = line.socket.recv(1 << 12) != b""
            except OSError:
                still_open = False
            if not still_open:
                selector.unregister(line.socket)
                open_lines.discard(line)
    selector.close()
    return sorted(open_lines, key=id)


@CASES.behaves("slowloris 200 conns")
def _(server: Serving) -> None:
    lines: list[Line] = []
    # A separate server, whose limit is short enough for a test.
    with Serving("--header-timeout", str(HEADER_TIMEOUT_S)) as short, contextlib.ExitStack() as stack:
        for _ in range(N_SLOW):
            line = stack.enter_context(short.connect())
            line.send(b"GET /hello HTTP/1.1\r\nHost: a\r\nX-Slow: ")
            lines.append(line)
        try:
            is_hello(short.ask("/hello"))
        except Silent as error:
            raise AssertionError(f"a normal client gets no answer: {error}") from None
        if left := _dribble(lines, time.monotonic() + WATCH_S):
            raise Lenient(f"{len(left)} slow clients are still connected")
        short.must_serve()


# The shortest time that the case above takes on a server that cuts its slow clients.
assert HEADER_TIMEOUT_S + GLANCE_S < WATCH_S
