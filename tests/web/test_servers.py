"""Row streams on servers of other projects: the bytes are the same, a response is truncated after
an error, and the connection is returned."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

import onecopy
from tests.web import apps
from tests.web.serving import PAIRS, SERVERS, Server

every_pair = pytest.mark.parametrize(("server", "app"), PAIRS)


@pytest.fixture(scope="module")
def start(database: str) -> Iterator[Callable[[str], Server]]:
    """Returns a function that starts each server once; all are stopped at the end."""
    started: dict[str, Server] = {}

    def started_once(name: str) -> Server:
        if name not in started:
            started[name] = Server(SERVERS[name])
        return started[name]

    yield started_once
    for server in started.values():
        server.stop()


@every_pair
def test_bytes_are_the_streams_own(start: Callable[[str], Server], database: str, server: str, app: str) -> None:
    con = onecopy.connect(database)
    long, short = (con.execute(apps.QUERIES[name]).json().read() for name in ("long", "short"))
    reply = start(server).ask(f"/{app}/long")
    assert (reply.status, reply.is_whole) == (200, True)
    assert reply.body == long
    assert reply.fields["content-disposition"].endswith("filename*=UTF-8''St%C3%A4dte.json")
    reply = start(server).ask(f"/{app}/short")
    assert (reply.body, reply.is_whole) == (short, True)
    assert reply.fields["content-length"] == str(len(short))


@every_pair
def test_an_error_before_the_first_chunk_is_an_error_page(
    start: Callable[[str], Server], server: str, app: str
) -> None:
    reply = start(server).ask(f"/{app}/atonce")
    assert reply.status == 500
    assert "content-disposition" not in reply.fields
    assert start(server).ask(f"/{app}/short").status == 200


@every_pair
def test_an_error_after_the_first_chunk_truncates_the_response(
    start: Callable[[str], Server], server: str, app: str
) -> None:
    reply = start(server).ask(f"/{app}/late")
    assert reply.status == 200
    assert reply.fields["transfer-encoding"] == "chunked"
    assert not reply.is_whole
    assert reply.body.startswith(b'[{"i":0,"t":"text 0"},') and not reply.body.endswith(b"]")
    assert start(server).ask(f"/{app}/short").status == 200


# Falcon does not check if the client is connected, and uvicorn does not notify it: a stream is read
# to its end.
@pytest.mark.parametrize(("server", "app"), [pair for pair in PAIRS if pair != ("uvicorn", "falcon")])
def test_a_client_that_disconnects_frees_the_connection(start: Callable[[str], Server], server: str, app: str) -> None:
    with start(server).connect(f"/{app}/endless") as client:
        assert client.recv(1 << 16).startswith(b"HTTP/1.1 200")
    # There is one connection, and this waits for it.
    assert start(server).ask(f"/{app}/short").status == 200


@every_pair
def test_a_head_request_frees_the_connection(start: Callable[[str], Server], server: str, app: str) -> None:
    # FastAPI and Falcon answer HEAD only if a route declares it.
    answers = app not in ("fastapi", "fastapi_async", "falcon")
    assert start(server).ask(f"/{app}/long", "HEAD").status == (200 if answers else 405)
    assert start(server).ask(f"/{app}/short").status == 200
