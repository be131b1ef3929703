"""The counts of `onecopy.ledger` with each web framework: the rows of a response are converted
once, into the bytes that are sent, and never copied."""

from __future__ import annotations

import contextlib
import http.client
import socket
import ssl
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import trustme

import onecopy
from tests.web import apps
from tests.web.serving import ASGI, WSGI, Server, running

#: The text of all rows of `long`, as the database stores it. Numbers and column names are not text.
PAYLOAD_BYTES = sum(len(f"Städtchen {i} 東京".encode()) for i in range(60_000))
PATIENCE_S = 60
Ask = Callable[[str], bytes]


@pytest.fixture(scope="module", params=["tcp", "unix", "tls"])
def ask(request: pytest.FixtureRequest, database: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ask]:
    """Returns a function that sends a request to onecopy's own server, for each transport."""
    from tests.web import own

    apps.pool.cache_clear()
    folder: Path = tmp_path_factory.mktemp("own")
    authority = trustme.CA()
    authority.issue_cert("localhost").private_key_and_cert_chain_pem.write_to_path(str(folder / "both"))
    tls = onecopy.Tls(folder / "both", folder / "both") if request.param == "tls" else None
    bind = f"unix:{folder / 's'}" if request.param == "unix" else "127.0.0.1:0"
    with onecopy.Server(own.app, bind, tls=tls) as server:
        if isinstance(server.address, str):
            connected = socket.socket(socket.AF_UNIX)
            connected.settimeout(PATIENCE_S)
            connected.connect(server.address)
        else:
            connected = socket.create_connection(server.address, PATIENCE_S)
        if tls is not None:
            context = ssl.create_default_context()
            authority.configure_trust(context)
            connected = context.wrap_socket(connected, server_hostname="localhost")
        with contextlib.closing(http.client.HTTPConnection("localhost")) as line:
            line.sock = connected

            def get(path: str) -> bytes:
                line.request("GET", path)
                with line.getresponse() as answer:
                    assert answer.status == 200
                    return answer.read()

            yield get
    apps.pool.cache_clear()


def _must_have_been_converted_once(ledger: bytes, given: str) -> None:
    assert onecopy.json.loads(ledger) == {
        "taken": PAYLOAD_BYTES,
        "converted": PAYLOAD_BYTES,
        "copied": 0,
        "given": given,
    }


@pytest.mark.parametrize("app", WSGI)
def test_rows_reach_our_server_as_the_stream_itself(ask: Ask, database: str, app: str) -> None:
    expected = onecopy.connect(database).execute(apps.QUERIES["long"]).json().read()
    ask("/ledger")
    assert ask(f"/{app}/long") == expected
    # Through TLS too: the chunk that the rows were written into is encrypted.
    _must_have_been_converted_once(ask("/ledger"), "RowStream")


@pytest.fixture(scope="module")
def uvicorn(database: str) -> Iterator[Server]:
    """A running uvicorn for the ASGI applications, which onecopy's servers do not support."""
    command = ["uvicorn", "--host", "127.0.0.1", "--port", "0", "--lifespan", "off", "tests.web.own:asgi"]
    with running(command) as started:
        yield started


@pytest.mark.parametrize("app", ASGI)
def test_rows_reach_uvicorn_in_the_original_chunks(uvicorn: Server, database: str, app: str) -> None:
    expected = onecopy.connect(database).execute(apps.QUERIES["long"]).json().read()
    uvicorn.ask("/ledger")
    assert uvicorn.ask(f"/{app}/long").body == expected
    _must_have_been_converted_once(uvicorn.ask("/ledger").body, "bytes")
