"""A scripted PostgreSQL server: a function of the test handles each connection, and reads and
writes bytes of the protocol."""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing_extensions import Self

SSL_REQUEST = 80877103
CANCEL_REQUEST = 80877102


def message(tag: bytes, body: bytes = b"", *, length: int | None = None) -> bytes:
    """A message of the server; ``length`` replaces the correct value of its length field."""
    return tag + struct.pack(">i", len(body) + 4 if length is None else length) + body


AUTH_OK = message(b"R", struct.pack(">i", 0))
READY = message(b"Z", b"I")
PARSED, BOUND, NO_DATA = message(b"1"), message(b"2"), message(b"n")
NO_PARAMETERS = message(b"t", struct.pack(">h", 0))


def status(name: str, value: str) -> bytes:
    """A ParameterStatus message."""
    return message(b"S", name.encode() + b"\0" + value.encode() + b"\0")


def key(process: int = 1, secret: int = 2) -> bytes:
    """A BackendKeyData message."""
    return message(b"K", struct.pack(">ii", process, secret))


def fields(*names: str) -> bytes:
    """A RowDescription message for columns of type int4 in binary format."""
    columns = (name.encode() + b"\0" + struct.pack(">ihihih", 0, 0, 23, 4, -1, 1) for name in names)
    return message(b"T", struct.pack(">h", len(names)) + b"".join(columns))


def row(*values: int) -> bytes:
    """A DataRow message with int4 values."""
    return message(b"D", struct.pack(">h", len(values)) + b"".join(struct.pack(">ii", 4, v) for v in values))


def complete(tag: str) -> bytes:
    """A CommandComplete message."""
    return message(b"C", tag.encode() + b"\0")


def error(code: str, text: str, severity: str = "ERROR") -> bytes:
    """An ErrorResponse message; ``code`` is its SQLSTATE."""
    parts = (("S", severity), ("V", severity), ("C", code), ("M", text))
    return message(b"E", b"".join(f"{k}{v}\0".encode() for k, v in parts) + b"\0")


GREETING = AUTH_OK + status("server_version", "15.0") + status("TimeZone", "UTC") + key() + READY
#: The answers to Parse, Describe, Flush, and to Bind, Execute, Sync, of a query with three rows.
DESCRIBED = PARSED + NO_PARAMETERS + fields("n")
ROWS = BOUND + row(1) + row(2) + row(3) + complete("SELECT 3") + READY


class Peer:
    """The server's end of a client's connection."""

    def __init__(self, sock: socket.socket) -> None:
        self.sock = sock
        self.parameters: dict[str, str] = {}
        #: True if TLS was requested; the scripted server has none.
        self.requested_tls = False
        #: True if the connection is a CancelRequest.
        self.is_cancel = False

    def exactly(self, n_bytes: int) -> bytes:
        """Receives exactly ``n_bytes`` bytes from the client."""
        data = b""
        while len(data) < n_bytes:
            part = self.sock.recv(n_bytes - len(data))
            if not part:
                raise ConnectionResetError("the client has left")
            data += part
        return data

    def startup(self) -> None:
        """Reads the startup message or CancelRequest; refuses a request for TLS before it."""
        while True:
            length, version = struct.unpack(">ii", self.exactly(8))
            rest = self.exactly(length - 8)
            if version != SSL_REQUEST:
                break
            self.requested_tls = True
            self.send(b"N")
        self.is_cancel = version == CANCEL_REQUEST
        words = rest.decode().split("\0")
        self.parameters = dict(zip(words[::2], words[1::2], strict=False))
        self.parameters.pop("", None)

    def message(self) -> tuple[bytes, bytes]:
        """The client's next message: its tag and its body."""
        head = self.exactly(5)
        return head[:1], self.exactly(struct.unpack(">i", head[1:])[0] - 4)

    def until(self, tag: bytes) -> None:
        """Reads messages up to and including the next one with this tag."""
        while self.message()[0] != tag:
            pass

    def send(self, data: bytes) -> None:
        """Sends all of ``data`` to the client."""
        self.sock.sendall(data)

    def answer(self, prepared: bytes = DESCRIBED, executed: bytes = ROWS, begun: bytes | None = None) -> None:
        """Answers one query of a connection with autocommit.

        ``prepared`` is the response to Parse and Describe, ``executed`` the one to Bind and
        Execute.
        """
        self.until(b"H")
        self.send(prepared)
        self.until(b"S")
        self.send(executed)


class Server:
    """Listens on loopback; ``script`` is called with each connection, in a thread of its own."""

    def __init__(self, script: Callable[[Peer], object]) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._script = script
        self._peers: list[socket.socket] = []
        self._threads: list[threading.Thread] = []
        self._accepting = threading.Thread(target=self._accept)
        self._accepting.start()

    def url(self, rest: str = "", **options: str) -> str:
        """The URL of a connection to this server; ``options`` are query parameters."""
        query = "&".join(f"{k}={v}" for k, v in {"sslmode": "disable", **options}.items())
        return f"postgresql://u:secret-word@127.0.0.1:{self.port}/d{rest}?{query}"

    def _accept(self) -> None:
        while True:
            try:
                sock = self._listener.accept()[0]
            except OSError:
                return
            self._peers.append(sock)
            thread = threading.Thread(target=self._serve, args=(sock,))
            self._threads.append(thread)
            thread.start()

    def _serve(self, sock: socket.socket) -> None:
        with sock, contextlib.suppress(OSError):
            self._script(Peer(sock))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, raised: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._accepting.join()
        self._listener.close()
        for sock in self._peers:
            with contextlib.suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join()
