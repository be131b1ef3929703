"""Row streams of each framework on onecopy's own server: they are sent while the database returns
rows."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import onecopy
from tests.web import apps
from tests.web.serving import WSGI, Server, running

every_app = pytest.mark.parametrize("app", WSGI)
HELLO = b"hello"


@pytest.fixture(scope="module", params=[1, 4], ids=["1 thread", "4 threads"])
def server(request: pytest.FixtureRequest, database: str) -> Iterator[Server]:
    command = ["onecopy", "run", "tests.web.own:app", "--bind", "127.0.0.1:0", "--threads", str(request.param)]
    with running(command) as started:
        yield started


@every_app
def test_bytes_are_the_streams_own_and_nothing_is_copied(server: Server, database: str, app: str) -> None:
    con = onecopy.connect(database)
    long, short = (con.execute(apps.QUERIES[name]).json().read() for name in ("long", "short"))
    server.ask("/ledger")
    reply = server.ask(f"/{app}/long")
    assert (reply.status, reply.is_whole) == (200, True)
    assert reply.body == long
    counted = onecopy.json.loads(server.ask("/ledger").body)
    assert counted["copied"] == 0 and counted["converted"] == counted["taken"] > 0
    # The server got the stream itself, not a Python object around it.
    assert counted["given"] == "RowStream"
    reply = server.ask(f"/{app}/short")
    assert (reply.body, reply.is_whole) == (short, True)
    assert reply.fields["content-length"] == str(len(short))


@every_app
def test_a_complete_response_ends_with_the_trailer(server: Server, app: str) -> None:
    with server.connect(f"/{app}/long") as client:
        received = bytearray()
        while part := client.recv(1 << 20):
            received += part
    assert b"onecopy-status: ok; rows=60000\r\n\r\n" in received[-100:].lower()


@every_app
def test_an_error_before_the_first_chunk_is_an_error_page(server: Server, app: str) -> None:
    assert server.ask(f"/{app}/atonce").status == 500
    assert server.ask(f"/{app}/short").status == 200


@every_app
def test_an_error_after_the_first_chunk_truncates_the_response(server: Server, app: str) -> None:
    reply = server.ask(f"/{app}/late")
    assert (reply.status, reply.is_whole) == (200, False)
    assert reply.body.startswith(b'[{"i":0,"t":"text 0"},') and not reply.body.endswith(b"]")
    assert server.ask(f"/{app}/short").status == 200


@every_app
def test_a_client_that_disconnects_frees_the_connection(server: Server, app: str) -> None:
    with server.connect(f"/{app}/endless") as client:
        assert client.recv(1 << 16).startswith(b"HTTP/1.1 200")
    # There is one connection, and this waits for it.
    assert server.ask(f"/{app}/short").status == 200


@every_app
def test_a_head_request_frees_the_connection(server: Server, app: str) -> None:
    assert server.ask(f"/{app}/long", "HEAD").status == (405 if app == "falcon" else 200)
    assert server.ask(f"/{app}/short").status == 200


@every_app
def test_a_client_that_reads_nothing_occupies_no_thread(server: Server, app: str) -> None:
    with server.connect(f"/{app}/endless"):
        # More requests than threads, all answered meanwhile.
        for _ in range(6):
            assert server.ask("/hello").body == HELLO
    assert server.ask(f"/{app}/short").status == 200
