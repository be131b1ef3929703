"""Slow clients and applications: other requests do not wait for them, and each item is sent as soon
as it exists."""

from __future__ import annotations

import contextlib
import threading
import uuid
from collections.abc import Iterator

import pytest

from tests.serve.cases.connections import HEADER_TIMEOUT_S
from tests.serve.cases.wsgi import wait_until_seen
from tests.support.cases import is_hello
from tests.support.raw_http import Closed, Line, request
from tests.support.serving import Serving

N_THREADS = 4


@pytest.fixture
def hasty() -> Iterator[Serving]:
    """A server that closes connections whose request head takes longer than `HEADER_TIMEOUT_S`."""
    with Serving("--threads", str(N_THREADS), "--header-timeout", str(HEADER_TIMEOUT_S)) as serving:
        yield serving
        serving.must_serve()


def test_a_chunk_is_sent_before_the_application_creates_the_next(server: Serving) -> None:
    word = uuid.uuid4().hex
    with server.connect() as line:
        line.send(request(f"/gate/{word}"))
        _, status, _, _ = line.head()
        assert status == 200
        first = line.read(len(b"5\r\nfirst\r\n"))
        # The application waits before its second item, and the gate is closed.
        assert first == b"5\r\nfirst\r\n"
        assert server.ask(f"/open/{word}").status == 200
        assert line.read(len(b"6\r\nsecond\r\n0\r\n\r\n")) == b"6\r\nsecond\r\n0\r\n\r\n"


def test_an_application_that_blocks_occupies_one_thread(server: Serving) -> None:
    words = [uuid.uuid4().hex for _ in range(N_THREADS - 1)]
    with contextlib.ExitStack() as stack:
        lines = [stack.enter_context(server.connect()) for _ in words]
        for line, word in zip(lines, words, strict=True):
            line.send(request(f"/blocks/{word}"))
        # Pipelined after a response that is being generated: it waits for its turn, in order.
        lines[0].send(request())
        for word in words:
            assert wait_until_seen(server, word, "waits")
        is_hello(server.ask("/hello"))
        for word in words:
            assert server.ask(f"/open/{word}").status == 200
        for line in lines:
            assert line.answer().body == b'"let through"'
        is_hello(lines[0].answer())


@pytest.mark.parametrize("how", ["bytes", "file", "generator"])
def test_a_client_that_reads_nothing_occupies_no_thread(server: Serving, how: str) -> None:
    with contextlib.ExitStack() as stack:
        lines = [stack.enter_context(server.connect()) for _ in range(3 * N_THREADS)]
        for line in lines:
            line.send(request(f"/large/{how}"))
            assert line.head()[1] == 200
        is_hello(server.ask("/hello"))


@pytest.mark.parametrize(
    "part",
    [b"", b"GET", b"GET /hello HTTP/1.1\r\n", b"GET /hello HTTP/1.1\r\nHost: a\r\nX-A: b\r\n", request()[:-1]],
    ids=["nothing", "a method", "a line", "fields", "all but one byte"],
)
def test_a_missing_head_is_cut_at_the_limit(hasty: Serving, part: bytes) -> None:
    with hasty.connect() as line:
        line.send(part)
        try:
            answer = line.answer()
        except Closed:
            return
        assert answer.status == 408 and line.ends()


def test_a_head_that_dribbles_is_cut_at_the_limit(hasty: Serving) -> None:
    # An occasional byte is no progress: the limit applies to the whole head.
    with hasty.connect() as line:
        line.send(b"GET /hello HTTP/1.1\r\nHost: a\r\nX-A: ")
        stop = threading.Event()

        def dribble(line: Line) -> None:
            while not stop.wait(0.05):
                with contextlib.suppress(OSError):
                    line.send(b"b")

        thread = threading.Thread(target=dribble, args=(line,))
        thread.start()
        try:
            with contextlib.suppress(Closed):
                assert line.answer().status == 408
            line.ends()
        finally:
            stop.set()
            thread.join()
        assert line.ended


def test_a_request_after_a_complete_one_has_its_own_time_limit(hasty: Serving) -> None:
    with hasty.connect() as line:
        line.send(request() + b"GET /hello HTTP/1.1\r\nHo")
        is_hello(line.answer())
        line.send(b"st: a\r\n\r\n")
        is_hello(line.answer())
