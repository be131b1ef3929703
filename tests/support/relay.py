"""A TCP relay between clients and a server that can stop passing bytes."""

from __future__ import annotations

import select
import socket
import threading


class Relay:
    """Passes bytes between its clients and the server on ``port``, at most ``most_bytes`` at once,
    until `silence` is called."""

    def __init__(self, port: int, most_bytes: int = 1 << 16) -> None:
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self.listener.getsockname()[1]
        self.silent = threading.Event()
        #: Set when a client has sent something that the silent relay keeps.
        self.received = threading.Event()
        self._server_port = port
        self._most_bytes = most_bytes
        self._peers: dict[socket.socket, socket.socket] = {}
        #: Data for an end that it has not accepted yet.
        self._unsent: dict[socket.socket, bytes] = {}
        self._ends, self._end = socket.socketpair()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        while True:
            # A side whose data the other side has not accepted yet is not read, as on a real network.
            open_ends = [one for one in self._peers if self._peers[one] not in self._unsent]
            readable, writable, _ = select.select([self._ends, self.listener, *open_ends], [*self._unsent], [])
            if self._ends in readable:
                if not self._ends.recv(1):
                    break
                # Bytes sent before the silence are passed on if they are accepted: for some (closing a
                # statement) no client waits for a response.
                while any(self._receive(one) for one in [*self._peers] if self._peers.get(one) not in self._unsent):
                    pass
                self.silent.set()
                continue
            for one in writable:
                self._send(one)
            for one in readable:
                if one is self.listener:
                    client = self.listener.accept()[0]
                    server = socket.create_connection(("127.0.0.1", self._server_port))
                    client.setblocking(False)
                    server.setblocking(False)
                    self._peers |= {client: server, server: client}
                else:
                    self._receive(one)
        for one in self._peers:
            one.close()

    def _receive(self, one: socket.socket) -> bool:
        """Receives data from the socket ``one`` and sends it to the opposite end.

        Returns False if nothing was received.
        """
        if one not in self._peers:
            return False
        try:
            data = one.recv(self._most_bytes)
        except BlockingIOError:
            return False
        except ConnectionError:
            data = b""
        if not data:
            self._disconnect(one)
        elif self.silent.is_set():
            self.received.set()
        else:
            self._unsent[self._peers[one]] = data
            self._send(self._peers[one])
        return True

    def _send(self, one: socket.socket) -> None:
        """Sends as much unsent data to the socket ``one`` as it accepts without blocking."""
        data = self._unsent.pop(one, b"")
        try:
            sent = 0 if self.silent.is_set() else one.send(data)
        except BlockingIOError:
            sent = 0
        except ConnectionError:
            self._disconnect(one)
            return
        if sent < len(data) and not self.silent.is_set():
            self._unsent[one] = data[sent:]

    def _disconnect(self, one: socket.socket) -> None:
        other = self._peers.pop(one)
        del self._peers[other]
        for end in (one, other):
            self._unsent.pop(end, None)
            end.close()

    def silence(self) -> None:
        """Stops passing bytes. Bytes that were received before this call are still passed on."""
        self._end.send(b"s")
        assert self.silent.wait(60)

    def __enter__(self) -> Relay:
        return self

    def __exit__(self, *_exception: object) -> None:
        self.close()

    def close(self) -> None:
        """Closes all connections and ends the relay's thread."""
        self._end.close()
        self._thread.join()
        self._ends.close()
        self.listener.close()
