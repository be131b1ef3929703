"""Whole connections split at every byte: the answers are those of the bytes in one piece."""

from __future__ import annotations

import socket
import time
from pathlib import Path

import pytest

from tests.serve.cases.chunks import BROKEN, chunked
from tests.support.raw_http import REFUSALS, Answer, Closed, Line, request
from tests.support.serving import Serving

#: Three requests with bodies and one without, as they stand in one connection.
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


def _hex(address: tuple[str, int]) -> str:
    """An address as proc_net_tcp(5) writes it."""
    return f"{socket.inet_aton(address[0])[::-1].hex()}:{address[1]:04x}".upper()


def wait_until_read(line: Line, patience_s: float = 5.0) -> None:
    """Returns when the server has taken all that was sent, so that what is sent now comes as a piece of its own."""
    own, other = _hex(line.socket.getsockname()), _hex(line.socket.getpeername())
    end = time.monotonic() + patience_s
    while time.monotonic() < end:
        unread = 0
        for entry in Path("/proc/net/tcp").read_text(encoding="ascii").splitlines()[1:]:
            _, local, remote, _, queues = entry.split()[:5]
            sent, received = (int(queue, 16) for queue in queues.split(":"))
            if (local, remote) == (own, other):
                unread += sent
            elif (local, remote) == (other, own):
                unread += received
        if unread == 0:
            return
        time.sleep(0.0005)
    raise AssertionError("the server does not read")


def same(answer: Answer) -> Answer:
    """An answer without the time it was made at."""
    fields = [(name, value) for name, value in answer.fields if name != "date"]
    return answer._replace(fields=fields)


def test_pipelined_requests_are_answered_the_same_wherever_they_are_split(server: Serving) -> None:
    sent = b"".join(PIPELINED)
    with server.connect() as line:
        line.send(sent)
        whole = [same(line.answer()) for _ in PIPELINED]
        assert [answer.status for answer in whole] == [200] * len(PIPELINED)
        # One connection takes all of them: nothing of one round may be left for the next.
        for k in range(1, len(sent)):
            line.send(sent[:k])
            wait_until_read(line)
            line.send(sent[k:])
            assert [same(line.answer()) for _ in PIPELINED] == whole, f"split at {k}: {sent[:k]!r}"


@pytest.mark.parametrize("n_bytes", [1, 2, 3, 7])
def test_pipelined_requests_come_in_small_pieces(server: Serving, n_bytes: int) -> None:
    sent = b"".join(PIPELINED)
    with server.connect() as line, server.connect() as other:
        line.send(sent)
        whole = [same(line.answer()) for _ in PIPELINED]
        for k in range(0, len(sent), n_bytes):
            other.send(sent[k : k + n_bytes])
            wait_until_read(other)
        assert [same(other.answer()) for _ in PIPELINED] == whole


#: Refused as a whole; a head or a chunk that ends elsewhere must not make them good.
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
def test_what_is_refused_is_refused_wherever_it_is_split(server: Serving, name: str) -> None:
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
