"""Repeats the comparison of meinheld from the documents with which this project started: `wrk` with
two threads and ten connections, for two ways to encode response headers.

onecopy's server runs the same application in two variants. In `before`, each name and value of the
response's headers is first encoded into a `bytes` object, as meinheld did before its change. In
`after`, they are not. The server itself reads headers directly from the `str` both times, so the
difference is the cost of the temporary objects.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from typing import Any

from benches.engines.compiled import peer
from tests.support.process import free_port

HEADERS = [
    ("Content-Type", "text/plain"),
    ("Content-Length", "12"),
    *((f"X-Field-{k}", f"value {k}") for k in range(8)),
]


def after(environ: dict[str, Any], start: Any) -> list[bytes]:
    """A WSGI application that responds with ten header fields."""
    start("200 OK", [(name, value) for name, value in HEADERS])
    return [b"hello, world"]


def before(environ: dict[str, Any], start: Any) -> list[bytes]:
    """The application `after`, but it first encodes each header field into temporary objects."""
    fields = [(name, value) for name, value in HEADERS]
    _objects().encode(fields)
    start("200 OK", fields)
    return [b"hello, world"]


_peers: list[Any] = []


def _objects() -> Any:
    if not _peers:
        _peers.append(peer("latin1_objects"))
    return _peers[0]


def main(once: bool) -> None:
    """Runs `wrk` three times for each of both applications, as in the original document."""
    program = shutil.which("wrk")
    if program is None:
        print("\nmeinheld's table: `wrk` is not installed")
        return
    runs, seconds = (1, 1) if once else (3, 10)
    figures: dict[str, list[float]] = {}
    for way in ("before", "after"):
        port = free_port()
        command = ["-m", "onecopy", "run", f"benches.engines.seed_server:{way}", "--bind", f"127.0.0.1:{port}"]
        server = subprocess.Popen([sys.executable, *command], stderr=subprocess.PIPE, text=True)
        try:
            assert server.stderr is not None
            server.stderr.readline()  # The server is ready.
            print(
                f"\n{'Through temporary objects' if way == 'before' else 'Directly from the data'}:"
                " wrk, 2 threads and 10 connections"
            )
            for _ in range(runs):
                words = [program, "-t", "2", "-c", "10", "-d", f"{seconds}s", f"http://127.0.0.1:{port}/"]
                said = subprocess.run(words, capture_output=True, text=True, check=True).stdout
                print("".join(f"  {line}\n" for line in said.splitlines()[2:]), end="", flush=True)
                rate = next(line for line in said.splitlines() if line.startswith("Requests/sec:"))
                figures.setdefault(way, []).append(float(rate.split()[1]))
        finally:
            server.terminate()
            server.wait()
    ratio = sorted(figures["after"])[runs // 2] / sorted(figures["before"])[runs // 2]
    print(f"\nstraight from the data: {ratio:.2f} times as many requests a second (the medians); the seed's: 1.08")
