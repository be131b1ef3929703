"""Packets, [MS-TDS] 2.2.3: a header of eight bytes, then payload. A message has one or more
packets."""

from __future__ import annotations

import select
import socket
import struct

SQL_BATCH, RPC, REPLY, ATTENTION, TRANSACTION, LOGIN7, PRELOGIN = 1, 3, 4, 6, 14, 16, 18
_LAST = 0x01
#: Bytes sent to the kernel at once: enough to keep a fast driver busy, few enough to notice a
#: cancel soon.
_SEND = 256 * 1024


class Cancelled(Exception):
    """The client sent an attention signal (a cancel) during a response."""


class Channel:
    """A client's socket: receives whole messages, and sends a response's payload in packets."""

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock
        self.packet_size = 4096
        self._pending = bytearray()
        self._number = 0

    def _read(self, count: int) -> bytes:
        data = bytearray()
        while len(data) < count:
            part = self._sock.recv(count - len(data))
            if not part:
                raise ConnectionError("the client has gone")
            data += part
        return bytes(data)

    def receive(self) -> tuple[int, bytes]:
        """The client's next message: its type and its payload."""
        payload = bytearray()
        while True:
            kind, status, length = struct.unpack(">BBH4x", self._read(8))
            payload += self._read(length - 8)
            if status & _LAST:
                return kind, bytes(payload)

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Appends payload to the response, and sends whole packets once enough bytes are queued.

        Blocks while the client does not read.

        Raises:
            Cancelled: the client sent an attention signal. ``data`` is still queued completely, so
                that the response does not end inside a token.
        """
        self._pending += data
        if len(self._pending) >= _SEND:
            self._send(last=False)
            self.check()

    def check(self, timeout_s: float = 0) -> None:
        """Waits up to ``timeout_s`` for a message of the client.

        Raises:
            Cancelled: the message is an attention signal.
            ConnectionError: the client disconnected.
        """
        if select.select([self._sock], [], [], timeout_s)[0]:
            kind, _ = self.receive()
            if kind == ATTENTION:
                raise Cancelled

    def flush(self) -> None:
        """Sends the whole packets that are queued, without the end of the message."""
        self._send(last=False)

    def end(self) -> None:
        """Sends all queued data, and ends the message."""
        self._send(last=True)
        self._number = 0

    def abort(self) -> None:
        """Sends the whole packets that are queued, then resets the connection in the middle of the
        message, as a crashed server does."""
        self._send(last=False)
        # Linger 0: the peer sees a reset, not an orderly close.
        self._sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self._sock.close()

    def _send(self, last: bool) -> None:
        capacity = self.packet_size - 8
        view = memoryview(self._pending)
        # The last packet carries the end mark, so one is always kept back until `end`.
        whole = max(0, (len(view) - (0 if last else 1)) // capacity)
        full = struct.pack(">BBH", REPLY, 0, capacity + 8)
        parts: list[bytes | memoryview] = []
        for index in range(whole):
            self._number = self._number + 1 & 0xFF
            parts.append(full + bytes((0, 0, self._number, 0)))
            parts.append(view[index * capacity : (index + 1) * capacity])
        rest = bytes(view[whole * capacity :])
        if last:
            self._number = self._number + 1 & 0xFF
            if not rest and parts:  # The payload fills its last packet, which gets the mark.
                parts[-2] = struct.pack(">BBHHBB", REPLY, _LAST, capacity + 8, 0, self._number, 0)
            else:
                parts.append(struct.pack(">BBHHBB", REPLY, _LAST, len(rest) + 8, 0, self._number, 0))
                parts.append(rest)
            rest = b""
        data = b"".join(parts)
        parts.clear()
        view.release()
        self._pending = bytearray(rest)
        self._sock.sendall(data)
