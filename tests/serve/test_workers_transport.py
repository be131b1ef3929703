"""Workers with other transports: TLS, whose certificate is loaded again, and unix sockets, which
the supervisor keeps open."""

from __future__ import annotations

import contextlib
import http.client
import os
import signal
import socket
import ssl
import time
from pathlib import Path

import pytest
import trustme

from tests.serve.test_reload import RELOADED
from tests.serve.test_unix import Connection
from tests.support.supervised import PATIENCE_S, Folder, Supervised, of_command


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path)


class Certificates:
    """Certificates that replace each other in the same files, and a client's context that trusts
    them all."""

    def __init__(self, folder: Path) -> None:
        self.certfile, self.keyfile = folder / "cert.pem", folder / "key.pem"
        self._authority = trustme.CA()
        self.context = ssl.create_default_context()
        self._authority.configure_trust(self.context)
        self.renew()

    def renew(self) -> bytes:
        """Replaces the certificate and its key by new ones; returns the certificate in DER."""
        made = self._authority.issue_cert("localhost", "127.0.0.1")
        self.put(made.cert_chain_pems[0].bytes(), made.private_key_pem.bytes())
        return ssl.PEM_cert_to_DER_cert(made.cert_chain_pems[0].bytes().decode())

    def put(self, certificate: bytes, key: bytes) -> None:
        """Replaces the files of the certificate and of the key, each atomically."""
        for path, content in ((self.certfile, certificate), (self.keyfile, key)):
            new = path.with_suffix(".new")
            new.write_bytes(content)
            new.rename(path)


def _ask(port: int, context: ssl.SSLContext) -> tuple[bytes, list[str]]:
    """Sends a request on a new connection; returns the server's certificate and the words of the
    response."""
    with contextlib.closing(
        http.client.HTTPSConnection("127.0.0.1", port, timeout=PATIENCE_S, context=context)
    ) as line:
        line.connect()
        shown = line.sock.getpeercert(binary_form=True)
        line.request("GET", "/")
        with line.getresponse() as answer:
            assert answer.status == 200 and shown
            return shown, answer.read().decode().split()


def _run(folder: Folder, *options: str) -> list[str]:
    return ["-m", "onecopy", "run", "application:app", *options]


def test_a_reload_loads_the_new_certificate(folder: Folder) -> None:
    certificates = Certificates(folder.path)
    first = certificates.renew()
    files = ["--certfile", str(certificates.certfile), "--keyfile", str(certificates.keyfile)]
    command = _run(folder, "--bind", "127.0.0.1:0", "--workers", "2", *files)
    with of_command(folder, command) as supervised:
        port = int(supervised.until(r"https://127\.0\.0\.1:(\d+)/")[1])
        shown, words = _ask(port, certificates.context)
        assert shown == first and words[2:] == ["True", "https"]
        # An existing connection keeps its certificate, and is served to its end.
        with contextlib.closing(socket.create_connection(("127.0.0.1", port), PATIENCE_S)) as plain:
            kept = certificates.context.wrap_socket(plain, server_hostname="localhost")
            kept.sendall(b"GET /gate HTTP/1.1\r\nHost: x\r\n\r\n")
            gate = folder.enter()
            second = certificates.renew()
            supervised.send(signal.SIGHUP)
            supervised.until(RELOADED)
            _shows(supervised, port, certificates, second)
            os.close(gate)
            assert kept.recv(1 << 16).startswith(b"HTTP/1.1 200 ")
            kept.close()
        # An unusable certificate is reported, and the former workers keep theirs.
        certificates.put(b"no certificate", b"no key")
        supervised.send(signal.SIGHUP)
        supervised.until("contains no certificate")
        supervised.until("reload failed: worker .* the former workers serve on")
        assert _ask(port, certificates.context)[0] == second
        supervised.send(signal.SIGTERM)
        assert supervised.ends()[0] == 0


def _shows(supervised: Supervised, port: int, certificates: Certificates, wanted: bytes) -> None:
    """Waits until new connections get the certificate ``wanted``.

    An old worker may still accept a connection while it receives the signal to stop.
    """
    end = time.monotonic() + PATIENCE_S
    while _ask(port, certificates.context)[0] != wanted:
        assert time.monotonic() < end, f"it shows another one; it said:\n{supervised.said()}"


@pytest.mark.parametrize("handed_over", [False, True])
def test_a_unix_socket_is_kept_over_reloads_and_deaths(folder: Folder, handed_over: bool) -> None:
    path = folder.path / "s"
    with socket.socket(socket.AF_UNIX) as listener:
        bind, mode, fds = f"unix:{path}", ["--socket-mode", "600"], []
        if handed_over:
            listener.bind(str(path))
            listener.listen()
            bind, mode, fds = f"fd://{listener.fileno()}", [], [listener.fileno()]
        command = _run(folder, "--bind", bind, "--workers", "2", *mode)
        with of_command(folder, command, pass_fds=fds) as supervised:
            listener.close()  # The supervisor keeps it open.
            supervised.until(r"serves application:app at http\+unix://.* with 2 workers")
            place = path.stat()
            assert handed_over or place.st_mode & 0o777 == 0o600
            pid = _words(path)[1]
            os.kill(int(pid), signal.SIGKILL)
            supervised.until(f"worker {pid} died by SIGKILL")
            assert _words(path)[0] == "1"  # Connections meanwhile are not refused.
            folder.write("2")
            supervised.send(signal.SIGHUP)
            supervised.until(RELOADED)
            end = time.monotonic() + PATIENCE_S
            while _words(path)[0] != "2":
                assert time.monotonic() < end
            # The same file as before, so a proxy can keep its path.
            assert (path.stat().st_ino, path.stat().st_mode) == (place.st_ino, place.st_mode)
            supervised.send(signal.SIGTERM)
            assert supervised.ends()[0] == 0
    # It is removed by its creator.
    assert path.exists() == handed_over


def _words(path: Path) -> list[str]:
    """Sends a request to a unix socket; returns the words of the response."""
    with contextlib.closing(Connection(path)) as line:
        line.request("GET", "/")
        with line.getresponse() as answer:
            return answer.read().decode().split()
