"""Requests that arrive in two parts, split at every byte: the responses are those of the undivided
requests."""

from __future__ import annotations

import fcntl
import socket
import struct
import termios
import time

import pytest

from tests.serve.cases.chunks import BROKEN, chunked
from tests.support.raw_http import REFUSALS, Answer, Closed, Line, request
from tests.support.serving import Serving

#: Three requests with bodies and one without, as on one connection.
PIPELINED = [
    request("/echo?1", b"X-A: caf\xe9", b"Content-Length: 11", method="POST", body=b"GET / HTTP/"),
    request(
        "/echo?2",
        b"Transfer-Encoding: chunked",
        method="POST",
        body=b"a;n=v\r\n0123456789\r\n3\r\n\r\n0\r\n0\r\nX-Trailer: t\r\n\r\n",
    ),
    request("/echo?3", b"X-Empty:", b"X-Tab:\ta\t"),
    request("/generator", b"Content-Length: 0", method="POST"),
]
#: Constants of linux/netlink.h and linux/sock_diag.h.
NETLINK_SOCK_DIAG, SOCK_DIAG_BY_FAMILY, NLM_F_REQUEST = 4, 20, 1
ALL_STATES = ANY = 0xFFFFFFFF


def unread_bytes(line: Line) -> int:
    """The bytes that the client has sent and the server has not read, as counted by the kernel
    (sock_diag(7))."""
    (own, own_port), (other, other_port) = line.socket.getsockname(), line.socket.getpeername()
    ends = struct.pack("!HH4s12x4s12x", other_port, own_port, socket.inet_aton(other), socket.inet_aton(own))
    # Any interface, any cookie.
    query = (
        struct.pack("=BBBBI", socket.AF_INET, socket.IPPROTO_TCP, 0, 0, ALL_STATES)
        + ends
        + struct.pack("=III", 0, ANY, ANY)
    )
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, NETLINK_SOCK_DIAG) as kernel:
        kernel.send(struct.pack("=IHHII", 16 + len(query), SOCK_DIAG_BY_FAMILY, NLM_F_REQUEST, 0, 0) + query)
        reply = kernel.recv(1 << 12)
    if struct.unpack_from("=H", reply, 4)[0] != SOCK_DIAG_BY_FAMILY:
        return 0  # The server has closed its end.
    (received,) = struct.unpack_from("=I", reply, 16 + 4 + 48 + 4)
    (sent,) = struct.unpack("=i", fcntl.ioctl(line.socket, termios.TIOCOUTQ, bytes(4)))
    return int(received) + int(sent)


def wait_until_read(line: Line, patience_s: float = 5.0) -> None:
    """Waits until the server has read all bytes, so that the next ones arrive separately."""
    end = time.monotonic() + patience_s
    while unread_bytes(line):
        assert time.monotonic() < end, "the server does not read"
        time.sleep(0.0002)


def test_unread_bytes_are_counted_until_they_are_read() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener, Line(listener.getsockname()) as line:
        accepted, _ = listener.accept()
        with accepted:
            assert unread_bytes(line) == 0
            line.send(b"hello")
            assert unread_bytes(line) == 5
            assert accepted.recv(3) == b"hel"
            assert unread_bytes(line) == 2
            accepted.recv(2)
            assert unread_bytes(line) == 0


def same(answer: Answer) -> Answer:
    """The response without its header field Date, for a comparison."""
    fields = [(name, value) for name, value in answer.fields if name != "date"]
    return answer._replace(fields=fields)


def test_pipelined_requests_are_answered_the_same_at_every_split(server: Serving) -> None:
    sent = b"".join(PIPELINED)
    with server.connect() as line:
        line.send(sent)
        whole = [same(line.answer()) for _ in PIPELINED]
        assert [answer.status for answer in whole] == [200] * len(PIPELINED)
        # One connection for all of them: no state of one round may remain for the next.
        for k in range(1, len(sent)):
            line.send(sent[:k])
            wait_until_read(line)
            line.send(sent[k:])
            assert [same(line.answer()) for _ in PIPELINED] == whole, f"split at {k}: {sent[:k]!r}"


@pytest.mark.parametrize("n_bytes", [1, 2, 3, 7])
def test_pipelined_requests_arrive_in_small_parts(server: Serving, n_bytes: int) -> None:
    sent = b"".join(PIPELINED)
    with server.connect() as line, server.connect() as other:
        line.send(sent)
        whole = [same(line.answer()) for _ in PIPELINED]
        for k in range(0, len(sent), n_bytes):
            other.send(sent[k : k + n_bytes])
            wait_until_read(other)
        assert [same(other.answer()) for _ in PIPELINED] == whole


#: Refused as a whole; a head or a chunk that ends elsewhere must not make them valid.
REFUSED = {
    "head, bare CR": request("/echo", b"X-A: b\rc"),
    "head, bare LF": b"GET /echo HTTP/1.1\r\nHost: a\nX-A: b\r\n\r\n",
    "head, fold": request("/echo", b"X-A: b", b" c"),
    "head, NUL": request("/echo", b"X-A: b\0c"),
    "head, two lengths": request("/echo", b"Content-Length: 5", b"Content-Length: 6", method="POST", body=b"hello!"),
    "head, length and chunked": request(
        "/echo", b"Content-Length: 5", b"Transfer-Encoding: chunked", method="POST", body=b"0\r\n\r\n"
    ),
    **{name: chunked(body) for name, body in BROKEN.items()},
}


@pytest.mark.parametrize("name", REFUSED)
def test_invalid_requests_are_refused_at_every_split(server: Serving, name: str) -> None:
    sent = REFUSED[name]
    for k in range(1, len(sent)):
        with server.connect() as line:
            line.send(sent[:k])
            wait_until_read(line)
            line.send(sent[k:])
            try:
                answer = line.answer()
            except Closed:
                continue
            assert answer.status in REFUSALS, f"split at {k}: {sent[:k]!r}"
            assert line.ends(), f"split at {k}: the connection stays open"
