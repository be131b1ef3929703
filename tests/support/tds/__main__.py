"""Runs the TDS responder: ``python3 -m tests.support.tds --port 14330``."""

from __future__ import annotations

import argparse
import contextlib
import signal
import socket
import sys
import threading

from tests.support.tds.session import Dropped, Session


def _serve(sock: socket.socket, user: str, password: str) -> None:
    with sock:
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        with contextlib.suppress(ConnectionError, Dropped):
            Session(sock, user, password).run()


def main() -> None:
    """Serves clients on 127.0.0.1 until SIGTERM or Ctrl-C, each in a thread of its own."""
    parser = argparse.ArgumentParser(prog="tests.support.tds", description="A small TDS responder.")
    parser.add_argument("--port", type=int, default=14330)
    parser.add_argument("--user", default="sa")
    parser.add_argument("--password", default="x")
    parser.add_argument("--label", help="by which a responder that was forgotten is known again")
    arguments = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    with socket.create_server(("127.0.0.1", arguments.port), backlog=64) as listener:
        while True:
            sock, _ = listener.accept()
            threading.Thread(target=_serve, args=(sock, arguments.user, arguments.password), daemon=True).start()


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        sys.exit(130)
