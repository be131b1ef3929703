"""HTTP/1.1 on a raw socket: sends any bytes, and parses responses more strictly than clients do.

Standard clients accept some malformed responses. In this module a bare LF, two lengths or surplus
bytes are failures.
"""

from __future__ import annotations

import contextlib
import re
import socket
from collections.abc import Sequence
from typing import NamedTuple

#: The time limit of a response that must arrive. Correct servers never exhaust it.
PATIENCE_S = 5.0
#: How long a connection is watched for bytes that must not arrive. Correct servers close it, which
#: ends the wait.
GLANCE_S = 0.4
#: Statuses by which a server refuses the request itself; 404 and 405 are an application's
#: responses.
REFUSALS = frozenset({400, 408, 411, 413, 414, 417, 421, 426, 431, 501, 505})

_STATUS_LINE = re.compile(rb"HTTP/(1\.[01]) (\d{3}) ([\t\x20-\x7e\x80-\xff]*)")
_FIELD = re.compile(rb"([!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*([\t\x20-\x7e\x80-\xff]*?)[ \t]*")


class Silent(AssertionError):
    """Within the time limit no response arrived and the connection did not end."""


class Closed(AssertionError):
    """The connection ended before a response began."""


class Malformed(AssertionError):
    """The received bytes are not an HTTP response."""


class Answer(NamedTuple):
    """One response.

    ``framing`` is the mechanism that ends the body: ``length``, ``chunked``, ``close`` or ``none``.
    ``whole`` is true if the body arrived completely.
    """

    version: str
    status: int
    reason: bytes
    fields: list[tuple[str, bytes]]
    body: bytes
    framing: str
    whole: bool
    trailers: Sequence[tuple[str, bytes]] = ()

    def all(self, name: str) -> list[bytes]:
        """The values of all header fields with that name (lower case)."""
        return [value for key, value in self.fields if key == name]

    def one(self, name: str) -> bytes:
        """The value of a header field that must occur exactly once."""
        (value,) = self.all(name)
        return value


class Line:
    """A client's connection to a server under test."""

    def __init__(self, address: tuple[str, int] | str, patience_s: float = PATIENCE_S) -> None:
        assert not isinstance(address, str), "the path of a unix socket"
        self.patience_s = patience_s
        self.socket = socket.create_connection(address, timeout=patience_s)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.ended = False
        #: Interim responses (1xx) before the last one.
        self.interim: list[int] = []
        self._got = bytearray()

    def __enter__(self) -> Line:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Closes the client's socket."""
        self.socket.close()

    def reset(self) -> None:
        """Closes the client's socket with a TCP reset (RST)."""
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\0\0\0\0\0\0\0")
        self.socket.close()

    def send(self, data: bytes) -> None:
        """Sends ``data``.

        If the peer closes the connection meanwhile, the rest is not sent and no error is raised, so
        that the peer's response can still be read.
        """
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            self.socket.sendall(data)

    def _more(self, patience_s: float | None = None) -> bool:
        """Receives the next bytes; returns False at the end of the connection.

        Raises:
            Silent: nothing arrived within the time limit.
        """
        if self.ended:
            return False
        self.socket.settimeout(self.patience_s if patience_s is None else patience_s)
        try:
            got = self.socket.recv(1 << 16)
        except TimeoutError:
            raise Silent(f"nothing more comes; so far {bytes(self._got[:200])!r}") from None
        except ConnectionResetError:
            got = b""
        self._got += got
        self.ended = not got
        return not self.ended

    def _line(self) -> bytes:
        """The next line, without its CRLF."""
        while (end := self._got.find(b"\n")) < 0:
            if not self._more():
                raise Malformed(f"the connection ends inside a line: {bytes(self._got[:200])!r}")
        line = bytes(self._got[: end + 1])
        del self._got[: end + 1]
        if not line.endswith(b"\r\n"):
            raise Malformed(f"a line ends without CR: {line[:200]!r}")
        return line[:-2]

    def _take(self, n_bytes: int) -> tuple[bytes, bool]:
        """Up to ``n_bytes`` of the received bytes, and true if the connection did not end before
        them."""
        while len(self._got) < n_bytes:
            if not self._more():
                break
        taken = bytes(self._got[:n_bytes])
        del self._got[:n_bytes]
        return taken, len(taken) == n_bytes

    def read(self, n_bytes: int) -> bytes:
        """Returns at least ``n_bytes`` raw bytes, fewer only if the connection ends first.

        All other bytes that were received are returned too.
        """
        while len(self._got) < n_bytes and self._more():
            pass
        taken = bytes(self._got)
        self._got.clear()
        return taken

    def _chunks(self) -> tuple[bytes, bool, list[tuple[str, bytes]]]:
        """The body of a chunked response, true if its last chunk arrived, and the trailer
        fields."""
        body = bytearray()
        while True:
            try:
                size_line = self._line()
                if not re.fullmatch(rb"[0-9A-Fa-f]+", size_line):
                    raise Malformed(f"no chunk size: {size_line[:80]!r}")
                size = int(size_line, 16)
                if size == 0:
                    return bytes(body), True, self._fields()
                data, is_whole = self._take(size)
                body += data
                if not is_whole:
                    return bytes(body), False, []
                if (end := self._line()) != b"":
                    raise Malformed(f"a chunk does not end with CRLF: {end[:80]!r}")
            except Malformed:
                if self.ended:
                    return bytes(body), False, []
                raise

    def head(self) -> tuple[str, int, bytes, list[tuple[str, bytes]]]:
        """Reads the head of the next response; returns its version, status, reason and header
        fields."""
        if not self._got and not self._more():
            raise Closed("the connection ended before an answer began")
        line = self._line()
        match = _STATUS_LINE.fullmatch(line)
        if match is None:
            raise Malformed(f"no status line: {line[:200]!r}")
        return match[1].decode(), int(match[2]), match[3], self._fields()

    def _fields(self) -> list[tuple[str, bytes]]:
        """The header fields up to the empty line."""
        fields = []
        while line := self._line():
            field = _FIELD.fullmatch(line)
            if field is None:
                raise Malformed(f"no field: {line[:200]!r}")
            fields.append((field[1].decode().lower(), field[2]))
        return fields

    def answer(self, method: str = "GET") -> Answer:
        """Reads the next final response; ``method`` is the method of the request.

        Interim responses (1xx) are appended to ``interim``.

        Raises:
            Silent: nothing arrived; Closed: the connection ended first; Malformed: it is not HTTP.
        """
        self.interim = []
        while True:
            version, status, reason, fields = self.head()
            if status < 200:
                self.interim.append(status)
                continue
            break
        named = [name for name, _ in fields]
        lengths = [value for name, value in fields if name == "content-length"]
        codings = [value.lower() for name, value in fields if name == "transfer-encoding"]
        if len(lengths) > 1 or len(codings) > 1 or (lengths and codings):
            raise Malformed(f"more than one framing: {fields}")
        if lengths and not lengths[0].isdigit():
            raise Malformed(f"no length: {lengths[0]!r}")
        if version == "1.0" and codings:
            raise Malformed("HTTP/1.0 has no Transfer-Encoding")
        if status == 204 and (lengths or codings):
            raise Malformed(f"204 has no body to frame: {named}")  # RFC 9110, 8.6; RFC 9112, 6.1
        body, is_whole = b"", True
        trailers: list[tuple[str, bytes]] = []
        if method == "HEAD" or status in (204, 304):
            framing = "none"
        elif codings:
            framing = "chunked"
            if codings[0] != b"chunked":
                raise Malformed(f"coding {codings[0]!r}")
            body, is_whole, trailers = self._chunks()
        elif lengths:
            framing = "length"
            body, is_whole = self._take(int(lengths[0]))
        else:
            framing = "close"
            while self._more():
                pass
            body = bytes(self._got)
            self._got.clear()
        return Answer(version, status, reason, fields, body, framing, is_whole, trailers)

    def ends(self, patience_s: float = GLANCE_S) -> bool:
        """Returns True if the peer closes the connection and sends nothing more; False if it stays
        open.

        Raises:
            Malformed: more bytes arrive.
        """
        if not self._got:
            try:
                self._more(patience_s)
            except Silent:
                return False
        if self._got:
            raise Malformed(f"bytes that belong to no answer: {bytes(self._got[:200])!r}")
        return True


def request(
    path: str = "/hello", *lines: bytes, method: str = "GET", body: bytes = b"", version: bytes = b"HTTP/1.1"
) -> bytes:
    """The bytes of a request; ``lines`` are header fields in addition to Host, without CRLF."""
    head = [method.encode() + b" " + path.encode("latin-1") + b" " + version, b"Host: a", *lines]
    return b"\r\n".join(head) + b"\r\n\r\n" + body
