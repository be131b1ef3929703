"""The clients of the server benchmark: `wrk` on the other core, slow clients, and one that sends a
request occasionally."""

from __future__ import annotations

import contextlib
import json
import os
import select
import selectors
import shutil
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from benches.serving.servers import Absent, Running

HERE = Path(__file__).resolve().parent
CORE = os.environ.get("BENCH_CLIENT_CORE", "1")
HEAD = b"GET /hello HTTP/1.1\r\nHost: a\r\n\r\n"


def wrk(
    running: Running, path: str, n_connections: int, seconds: float, script: str = "report.lua", n_bytes: int = 0
) -> dict[str, Any]:
    """Runs `wrk` once; returns its figures, the server's CPU microseconds per request and its
    resident memory.

    If a run has few requests, the partial ones at its end must count too: with `n_bytes`, that many
    bytes of a response are a request.
    """
    program = shutil.which("wrk")
    if program is None:
        raise Absent("`wrk` is not installed")
    words = ["taskset", "-c", CORE, program, "-t", "1", "-c", str(n_connections), "-d", f"{max(1, round(seconds))}s"]
    words += ["--latency", "-s", script, f"http://127.0.0.1:{running.port}{path}"]
    before = running.cost()
    done = subprocess.run(words, capture_output=True, text=True, cwd=HERE, check=False)
    after = running.cost()
    if done.returncode != 0:
        return {"n_requests": 0, "failed": (done.stderr or done.stdout).strip()[-200:]}
    figures: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    n = figures["n_bytes"] / n_bytes if n_bytes else figures["n_requests"]
    figures["cpu_us"] = after.since(before) / n * 1e6 if n else None
    figures["per_second"] = n / figures["seconds"]
    figures["rss_mib"] = running.resident_mib()
    return figures


def now_and_then(port: int, seconds: float, pause_s: float = 0.002) -> dict[str, Any]:
    """The latencies of a client that sends requests on one connection, with a pause after each
    response."""
    taken: list[float] = []
    n_failed = 0
    line: socket.socket | None = None
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        begun = time.perf_counter()
        try:
            if line is None:
                line = socket.create_connection(("127.0.0.1", port), timeout=5)
                line.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            line.sendall(HEAD)
            got = b""
            while b"hello, world" not in got:
                more = line.recv(4096)
                if not more:
                    raise ConnectionError("closed")
                got += more
        except OSError:
            n_failed += 1
            if line is not None:
                line.close()
            line = None
            taken.append(5.0)
        else:
            taken.append(time.perf_counter() - begun)
        time.sleep(pause_s)
    if line is not None:
        line.close()
    taken.sort()
    at = min(len(taken) - 1, int(len(taken) * 0.99))
    return {
        "n_requests": len(taken),
        "n_failed": n_failed,
        "p50_ms": taken[len(taken) // 2] * 1e3,
        "p99_ms": taken[at] * 1e3,
    }


def dribble(port: int, n_clients: int, most_s: float) -> None:
    """Opens `n_clients` slow connections: each sends one byte of a request's head per second.

    Prints a line of JSON when all are open, and another when the server has closed all of them or
    `most_s` is over. It runs as a program: `load.py dribble PORT CLIENTS SECONDS`.
    """
    poller = selectors.EpollSelector()
    opened: dict[socket.socket, float] = {}
    for _ in range(n_clients):
        try:
            line = socket.create_connection(("127.0.0.1", port), timeout=5)
            line.send(b"GET /hello HTTP/1.1\r\nHost: a\r\nX-A: ")
        except OSError:
            break
        line.setblocking(False)
        poller.register(line, selectors.EVENT_READ)
        opened[line] = time.monotonic()
    print(json.dumps({"n_open": len(opened)}), flush=True)
    begun, ages = time.monotonic(), []
    turn: list[socket.socket] = []
    n_due, last = 0.0, begun
    while opened and time.monotonic() - begun < most_s:
        now = time.monotonic()
        # Spread over the second, since a burst of all would delay this client itself.
        n_due += len(opened) * (now - last)
        last = now
        while n_due >= 1 and opened:
            n_due -= 1
            turn = turn or list(opened)
            line = turn.pop()
            if line in opened:
                with contextlib.suppress(OSError):
                    line.send(b"a")
        for key, _ in poller.select(0.01):
            line = key.fileobj
            assert isinstance(line, socket.socket)
            try:
                cut = line.recv(4096) == b""
            except BlockingIOError:
                cut = False
            except OSError:
                cut = True
            if cut:
                poller.unregister(line)
                ages.append(time.monotonic() - opened.pop(line))
                line.close()
    ages.sort()
    figures = {"n_cut": len(ages), "n_left": len(opened)}
    if ages:
        figures |= {"first_cut_s": ages[0], "median_cut_s": ages[len(ages) // 2], "last_cut_s": ages[-1]}
    print(json.dumps(figures), flush=True)


def with_slow_clients(running: Running, n_clients: int, watch_s: float) -> dict[str, Any]:
    """Measures a normal client while many slow ones are connected.

    Also returns when the server closed the slow connections, and the server's memory per
    connection.
    """
    before_mib = running.resident_mib()
    words = ["taskset", "-c", CORE, sys.executable, "-m", "benches.serving.load", "dribble"]
    words += [str(running.port), str(n_clients), str(watch_s)]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, text=True, cwd=HERE.parents[1])
    assert process.stdout is not None
    ready, _, _ = select.select([process.stdout], [], [], 60)
    if not ready:
        process.kill()
        process.wait()
        return {"n_open": 0, "failed": "the connections are not taken within 60 s"}
    figures: dict[str, Any] = json.loads(process.stdout.readline() or "{}")
    figures["n_turned_away"] = n_clients - figures.get("n_open", 0)
    asks = [*words[:6], "ask", str(running.port), "3"]
    done = subprocess.run(asks, capture_output=True, text=True, cwd=HERE.parents[1], check=False)
    figures |= json.loads(done.stdout or "{}")
    figures["kib_a_client"] = (running.resident_mib() - before_mib) * 1024 / max(1, figures.get("n_open", 0))
    out, _ = process.communicate()
    return figures | json.loads(out.strip() or "{}")


def with_a_sleeping_request(running: Running, seconds: float) -> dict[str, Any]:
    """Runs `wrk` on ten connections while one request of another client sleeps for two seconds."""
    with socket.create_connection(("127.0.0.1", running.port), timeout=10) as sleeper:
        sleeper.sendall(HEAD.replace(b"/hello", b"/sleep"))
        figures = wrk(running, "/hello", 10, seconds)
        try:
            figures["slept"] = sleeper.recv(4096).startswith(b"HTTP/1.1 200")
        except OSError:
            figures["slept"] = False
    return figures


if __name__ == "__main__":
    if sys.argv[1] == "dribble":
        dribble(int(sys.argv[2]), int(sys.argv[3]), float(sys.argv[4]))
    else:
        print(json.dumps(now_and_then(int(sys.argv[2]), float(sys.argv[3]))))
