"""Requests with `Expect: 100-continue` to each framework's application on onecopy's server."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import onecopy
from tests.support.raw_http import Line, request
from tests.web import apps

FRAMEWORKS = ["flask", "django", "falcon"]
BODY = bytes(range(256)) * 400


@pytest.fixture(scope="module")
def server() -> Iterator[onecopy.Server]:
    with onecopy.Server(apps.all_wsgi, "127.0.0.1:0") as started:
        yield started


def _upload(line: Line, path: str) -> None:
    fields = [b"Expect: 100-continue", f"Content-Length: {len(BODY)}".encode()]
    line.send(request(path, *fields, method="POST"))


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_continue_is_sent_when_the_upload_is_read(server: onecopy.Server, framework: str) -> None:
    with Line(server.address, 60) as line:
        for _ in range(2):
            _upload(line, f"/{framework}/upload/taken")
            assert line.head()[1] == 100
            line.send(BODY)
            answer = line.answer("POST")
            assert (answer.status, answer.body, answer.all("connection")) == (200, BODY, [])


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_a_refusal_avoids_the_upload(server: onecopy.Server, framework: str) -> None:
    with Line(server.address, 60) as line:
        _upload(line, f"/{framework}/upload/refused")
        answer = line.answer("POST")
        assert (answer.status, answer.body, line.interim) == (403, b"not wanted", [])
        assert answer.one("connection") == b"close" and line.ends(60)
