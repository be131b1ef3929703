"""The function `write` that `start_response` returns (PEP 3333): each block is sent at once."""

from __future__ import annotations

import re
import uuid
from pathlib import Path

import pytest

from tests.serve.cases.wsgi import wait_until_seen
from tests.support.raw_http import request
from tests.support.serving import Serving

CHUNK_1, CHUNK_2 = b"8\r\nwritten,\r\n", b"6\r\ntwice,\r\n"


def _peak_bytes(serving: Serving) -> int:
    status = Path(f"/proc/{serving.process.pid}/status").read_text()
    found = re.search(r"VmHWM:\s+(\d+) kB", status)
    assert found is not None
    return int(found[1]) << 10


def test_a_block_is_sent_before_the_application_returns(server: Serving) -> None:
    word = uuid.uuid4().hex
    with server.connect() as line:
        line.send(request(f"/write-gate/{word}"))
        assert line.head()[1] == 200
        assert line.read(len(CHUNK_1)) == CHUNK_1
        # The application waits, and the gate is closed.
        assert server.ask(f"/open/{word}").status == 200
        rest = CHUNK_2 + b"8\r\nreturned\r\n0\r\n\r\n"
        assert line.read(len(rest)) == rest


def test_blocks_of_600_mib_use_at_most_32() -> None:
    with Serving("--threads", "2") as serving, serving.connect() as line:
        serving.must_serve()
        before = _peak_bytes(serving)
        line.send(request("/write-many/600"))
        assert line.head()[1] == 200
        n_bytes = 0
        while n_bytes < 600 << 20:
            n_bytes += len(line.read(1))
        assert n_bytes == 600 << 20
        assert _peak_bytes(serving) - before <= 32 << 20


@pytest.mark.parametrize(
    ("page", "method", "body", "framing"),
    [
        ("writes", "GET", b"written,twice,returned", "chunked"),
        ("writes", "HEAD", b"", "none"),
        ("write-generator", "GET", b"written,yielded,at last", "chunked"),
        ("write-long", "GET", b"0123456789", "length"),
        ("write-none", "GET", b"returned", "length"),
    ],
)
def test_written_blocks_come_before_the_returned_body(
    server: Serving, page: str, method: str, body: bytes, framing: str
) -> None:
    with server.connect() as line:
        for _ in range(2):
            line.send(request(f"/{page}", method=method))
            answer = line.answer(method)
            assert (answer.status, answer.body, answer.whole) == (200, body, True)
            assert method == "HEAD" or answer.framing == framing


def test_a_short_body_ends_the_connection(server: Serving) -> None:
    with server.connect() as line:
        line.send(request("/write-short"))
        answer = line.answer()
        assert (answer.status, answer.body, answer.whole) == (200, b"01234", False)


def test_an_exception_after_a_block_truncates_the_response(server: Serving) -> None:
    answer = server.ask("/write-raises")
    assert (answer.status, answer.body, answer.whole) == (200, b"written,", False)
    assert "RuntimeError: raised after a block" in server.said()


def test_start_response_after_a_block_raises_the_error_of_its_exc_info(server: Serving) -> None:
    word = uuid.uuid4().hex
    answer = server.ask(f"/write-replaces/{word}")
    assert (answer.status, answer.body, answer.whole) == (200, b"written,", False)
    assert wait_until_seen(server, word, "RuntimeError: replaced")


@pytest.mark.parametrize("how", ["passes", "swallows"])
def test_a_client_that_disconnects_is_a_broken_pipe_and_not_logged(server: Serving, how: str) -> None:
    word = f"{uuid.uuid4().hex}-{how}"
    with server.connect() as line:
        line.send(request(f"/write-endless/{word}"))
        assert line.head()[1] == 200
        line.reset()
    assert wait_until_seen(server, word, "BrokenPipeError")
    assert "BrokenPipeError" not in server.said()


def test_a_block_after_the_application_has_returned_is_refused(server: Serving) -> None:
    word = uuid.uuid4().hex
    assert server.ask(f"/write-late/{word}").body == b"one,two"
    assert wait_until_seen(server, word, "RuntimeError")


def test_a_block_is_sent_while_the_request_waits_for_100_continue(server: Serving) -> None:
    with server.connect() as line:
        fields = (b"Expect: 100-continue", b"Content-Length: 5")
        line.send(request("/write-echo", *fields, method="POST"))
        assert line.read(25).startswith(b"HTTP/1.1 100 Continue\r\n\r\n")
        line.send(b"hello")
        answer = line.answer()
        assert (answer.status, answer.body, answer.whole) == (200, b"hello", True)
