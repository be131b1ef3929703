"""TLS between onecopy's server and OpenSSL: the data, the end of the stream, and unusable
certificate files."""

from __future__ import annotations

import http.client
import os
import socket
import ssl
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import trustme

import onecopy
from tests.serve.app import app as pages
from tests.support.serving import ROOT, Serving

Start = Callable[..., object]
Environ = dict[str, Any]
PATIENCE_S = 60


class Identity(NamedTuple):
    """The files of a server's certificate, and a client's context that trusts this certificate."""

    tls: onecopy.Tls
    context: ssl.SSLContext


@pytest.fixture(scope="module")
def identity(tmp_path_factory: pytest.TempPathFactory) -> Identity:
    folder = tmp_path_factory.mktemp("tls")
    authority = trustme.CA()
    made = authority.issue_cert("localhost", "127.0.0.1")
    tls = onecopy.Tls(folder / "cert.pem", folder / "key.pem")
    made.private_key_pem.write_to_path(str(tls.keyfile))
    for n, blob in enumerate(made.cert_chain_pems):
        blob.write_to_path(str(tls.certfile), append=n > 0)
    context = ssl.create_default_context()
    authority.configure_trust(context)
    return Identity(tls, context)


@pytest.fixture
def server(identity: Identity) -> Iterator[onecopy.Server]:
    """A server with the application of `app.py` over TLS."""
    with onecopy.Server(pages, "127.0.0.1:0", tls=identity.tls) as server:
        yield server


def _port(server: onecopy.Server) -> int:
    return int(server.address[1])


def _ask(server: onecopy.Server, identity: Identity, target: str = "/", body: bytes | None = None) -> bytes:
    request = urllib.request.Request(server.url + target.lstrip("/"), body)
    with urllib.request.urlopen(request, timeout=PATIENCE_S, context=identity.context) as answer:
        read: bytes = answer.read()
        return read


def _connect(server: onecopy.Server, context: ssl.SSLContext) -> ssl.SSLSocket:
    """A TLS connection whose reads raise if the peer closes it without close_notify."""
    plain = socket.create_connection(("127.0.0.1", _port(server)), PATIENCE_S)
    return context.wrap_socket(plain, server_hostname="localhost", suppress_ragged_eofs=False)


def _rest(connection: ssl.SSLSocket) -> tuple[bytes, bool]:
    """All bytes up to the end of the connection, and true if close_notify was received."""
    come = b""
    try:
        while block := connection.recv(1 << 16):
            come += block
    except (ssl.SSLEOFError, ConnectionResetError):
        return come, False
    return come, True


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_each_version_is_spoken(server: onecopy.Server, identity: Identity, version: ssl.TLSVersion) -> None:
    context = ssl.create_default_context()
    context.load_verify_locations(cadata=_roots(identity.context))
    context.minimum_version = context.maximum_version = version
    context.set_alpn_protocols(["h2", "http/1.1"])
    with _connect(server, context) as connection:
        assert connection.selected_alpn_protocol() == "http/1.1"
        for _ in range(3):  # The connection is kept alive.
            connection.sendall(b"GET /hello HTTP/1.1\r\nHost: x\r\n\r\n")
            come = b""
            while not come.endswith(b"hello, world"):
                come += connection.recv(1 << 16)


def _roots(context: ssl.SSLContext) -> str:
    return "".join(map(ssl.DER_cert_to_PEM_cert, context.get_ca_certs(binary_form=True)))


def test_the_environ_says_https(identity: Identity) -> None:
    def app(environ: Environ, start: Start) -> Iterable[bytes]:
        start("200 OK", [])
        return [repr((environ["wsgi.url_scheme"], environ["HTTPS"], environ["REMOTE_ADDR"])).encode()]

    with onecopy.Server(app, "127.0.0.1:0", tls=identity.tls) as server:
        assert server.url == f"https://127.0.0.1:{_port(server)}/"
        assert _ask(server, identity) == b"('https', 'on', '127.0.0.1')"


@pytest.mark.parametrize("page", ["validated", "file", "slice", "no-descriptor", "generator", "writes", "large/bytes"])
def test_bodies_of_each_kind_are_those_of_plain_http(server: onecopy.Server, identity: Identity, page: str) -> None:
    with onecopy.Server(pages, "127.0.0.1:0") as plain:
        expected = urllib.request.urlopen(f"{plain.url}{page}", timeout=PATIENCE_S).read()
    assert _ask(server, identity, page) == expected


def test_long_bodies_are_transferred_in_both_directions_at_once(identity: Identity) -> None:
    def app(environ: Environ, start: Start) -> Iterable[bytes]:
        start("200 OK", [])
        return [environ["wsgi.input"].read()]

    body = os.urandom(5_000_000)
    with onecopy.Server(app, "127.0.0.1:0", tls=identity.tls) as server:
        assert _ask(server, identity, body=body) == body
        assert _ask(server, identity, body=body[:70_000]) == body[:70_000]


def test_rows_are_streamed(identity: Identity) -> None:
    def app(environ: Environ, start: Start) -> Iterable[bytes]:
        start("200 OK", [("Content-Type", "text/csv")])
        query = "with recursive c(i) as (select 1 union all select i + 1 from c where i < 100000) select i from c"
        return onecopy.connect("sqlite::memory:").execute(query).csv()

    with onecopy.Server(app, "127.0.0.1:0", tls=identity.tls) as server:
        assert _ask(server, identity) == b"i\n" + b"".join(b"%d\n" % i for i in range(1, 100_001))


def test_a_chunk_is_sent_before_the_application_creates_the_next(identity: Identity) -> None:
    gate = threading.Event()

    def app(environ: Environ, start: Start) -> Iterator[bytes]:
        start("200 OK", [])
        yield b"first"
        assert gate.wait(PATIENCE_S)
        yield b"second"

    with onecopy.Server(app, "127.0.0.1:0", tls=identity.tls) as server, _connect(server, identity.context) as line:
        line.sendall(b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        come = b""
        while not come.endswith(b"first\r\n"):
            come += line.recv(1 << 16)
        gate.set()
        assert _rest(line) == (b"6\r\nsecond\r\n0\r\n\r\n", True)


@pytest.mark.parametrize("whole", [True, False])
def test_close_notify_is_sent_only_after_a_complete_body_without_length(
    identity: Identity, whole: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stderr", open(os.devnull, "w"))  # noqa: SIM115  # The traceback is expected.

    def app(environ: Environ, start: Start) -> Iterator[bytes]:
        start("200 OK", [])
        yield b"first"
        if not whole:
            raise RuntimeError("fails half-way")

    with onecopy.Server(app, "127.0.0.1:0", tls=identity.tls) as server, _connect(server, identity.context) as line:
        line.sendall(b"GET / HTTP/1.0\r\n\r\n")
        come, said = _rest(line)
        assert said is whole
        assert not whole or come.endswith(b"first")
    sys.stderr.close()


def test_plain_http_on_a_tls_port_gets_an_explanation(server: onecopy.Server) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", _port(server), timeout=PATIENCE_S)
    connection.request("GET", "/")
    answer = connection.getresponse()
    assert (answer.status, b"https" in answer.read()) == (400, True)
    connection.close()


def test_a_client_that_rejects_the_certificate_affects_no_other(server: onecopy.Server, identity: Identity) -> None:
    with pytest.raises(ssl.SSLCertVerificationError):
        _connect(server, ssl.create_default_context()).close()
    assert _ask(server, identity, "/hello") == b"hello, world"


def test_tls_works_on_a_unix_socket(identity: Identity, tmp_path: Path) -> None:
    path = tmp_path / "s.sock"
    with onecopy.Server(pages, f"unix:{path}", tls=identity.tls) as server:
        assert server.url.startswith("https+unix://")
        plain = socket.socket(socket.AF_UNIX)
        plain.settimeout(PATIENCE_S)
        plain.connect(str(path))
        with identity.context.wrap_socket(plain, server_hostname="localhost", suppress_ragged_eofs=False) as line:
            line.sendall(b"GET /hello HTTP/1.0\r\n\r\n")
            come, said = _rest(line)
            assert said and come.endswith(b"hello, world")


def test_the_command_serves_tls(identity: Identity) -> None:
    files = ["--certfile", str(identity.tls.certfile), "--keyfile", str(identity.tls.keyfile)]
    command = ["onecopy", "run", "tests.serve.app:app", "--bind", "127.0.0.1:0", *files]
    with Serving(module=command) as serving:
        url = f"https://127.0.0.1:{serving.address[1]}/hello"
        assert url.removesuffix("hello") in serving.said()
        answer = urllib.request.urlopen(url, timeout=PATIENCE_S, context=identity.context)
        assert answer.read() == b"hello, world"
        answer.close()


def test_the_command_reports_errors_of_its_certificate_files(identity: Identity) -> None:
    for words, message in (
        (["--keyfile", str(identity.tls.keyfile)], "--certfile FILE"),
        (["--certfile", "/nowhere.pem"], "`/nowhere.pem` cannot be read"),
        (["--certfile", str(identity.tls.certfile)], "contains no private key"),
    ):
        command = [sys.executable, "-m", "onecopy", "run", "tests.serve.app:app", "--bind", "127.0.0.1:0", *words]
        ended = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, check=False, cwd=ROOT)
        assert (ended.returncode, message in ended.stderr) == (2, True), ended.stderr


def test_unusable_certificate_files_are_reported_at_the_start(identity: Identity, tmp_path: Path) -> None:
    certfile, keyfile = map(Path, identity.tls)
    other = trustme.CA().issue_cert("localhost").private_key_pem.bytes()
    (tmp_path / "other.pem").write_bytes(other)
    (tmp_path / "locked.pem").write_text(
        "-----BEGIN ENCRYPTED PRIVATE KEY-----\nAA==\n-----END ENCRYPTED PRIVATE KEY-----\n"
    )
    both = tmp_path / "both.pem"
    both.write_bytes(keyfile.read_bytes() + certfile.read_bytes())
    with pytest.raises(FileNotFoundError, match="nowhere"):
        onecopy.Server(pages, "127.0.0.1:0", tls=onecopy.Tls(tmp_path / "nowhere.pem", keyfile))
    for key, message in (("other.pem", "is not the key of the certificate"), ("locked.pem", "locked with a password")):
        with pytest.raises(ValueError, match=message):
            onecopy.Server(pages, "127.0.0.1:0", tls=onecopy.Tls(certfile, tmp_path / key))
    with pytest.raises(ValueError, match="contains no certificate"):
        onecopy.Server(pages, "127.0.0.1:0", tls=onecopy.Tls(keyfile, keyfile))
    with onecopy.Server(pages, "127.0.0.1:0", tls=onecopy.Tls(both, both)) as server:
        assert _ask(server, identity, "/hello") == b"hello, world"
