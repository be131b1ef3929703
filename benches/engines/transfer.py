"""Transfers of files to sockets on loopback: `onecopy.send_file` compared with the ways of the
standard library, and `onecopy send` with a loop that reads, hashes and sends.

Sender and receiver have one core each. Each transfer is a separate process. The ways are measured
in turns, and each round starts with another one. The time ends with the receiver's confirmation of
the last byte. Processor time and memory are those of the sender.
"""

from __future__ import annotations

import contextlib
import json
import os
import resource
import socket
import statistics
import struct
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
CORE, CLIENT_CORE = os.environ.get("BENCH_CORE", "0"), os.environ.get("BENCH_CLIENT_CORE", "1")
SIZE = 2 << 30


def _reads(size: int) -> Callable[[socket.socket, Path], None]:
    def go(sock: socket.socket, path: Path) -> None:
        with path.open("rb", buffering=0) as file:
            while part := file.read(size):
                sock.sendall(part)

    return go


def _os_sendfile(sock: socket.socket, path: Path) -> None:
    with path.open("rb") as file:
        at = 0
        while sent := os.sendfile(sock.fileno(), file.fileno(), at, 1 << 16):
            at += sent


def _whole(sock: socket.socket, path: Path) -> None:
    with path.open("rb") as file:
        sock.sendall(file.read())


def _socket_sendfile(sock: socket.socket, path: Path) -> None:
    with path.open("rb") as file:
        sock.sendfile(file)


def _ours(sock: socket.socket, path: Path) -> None:
    import onecopy

    with path.open("rb") as file:
        onecopy.send_file(sock, file)


def _hashed(sock: socket.socket, path: Path) -> None:
    import blake3

    hasher = blake3.blake3()
    with path.open("rb", buffering=0) as file:
        while part := file.read(1 << 20):
            hasher.update(part)
            sock.sendall(part)
    sock.sendall(hasher.digest())


WAYS: dict[str, Callable[[socket.socket, Path], None]] = {
    "onecopy.send_file": _ours,
    "whole file, sendall (the seed's)": _whole,
    "read 64 KiB, sendall": _reads(1 << 16),
    "read 1 MiB, sendall": _reads(1 << 20),
    "os.sendfile 64 KiB (the seed's)": _os_sendfile,
    "socket.sendfile": _socket_sendfile,
}
HASHED = "read + hash + sendall 1 MiB"


def _peak() -> int:
    """The peak of this process's resident memory in bytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def one(way: str, path: Path, port: int) -> None:
    """Makes one transfer in this process; prints its time, its processor time and the growth of
    memory."""
    function = _hashed if way == HASHED else WAYS[way]
    if function is _ours:
        import onecopy  # noqa: F401 - not a part of the time
    if function is _hashed:
        import blake3  # noqa: F401
    before = _peak()
    with socket.create_connection(("127.0.0.1", port)) as sock:
        begun, used = time.perf_counter(), time.process_time()
        function(sock, path)
        sock.shutdown(socket.SHUT_WR)
        sock.recv(1)
        wall, cpu = time.perf_counter() - begun, time.process_time() - used
    print(json.dumps({"wall": wall, "cpu": cpu, "memory": _peak() - before}))


def sink(flags: int) -> None:
    """Runs a receiver that discards the data, with or without the protocol of `onecopy receive`.

    With `MSG_TRUNC` in `flags` the kernel discards the data without a copy (tcp(7)). Such a
    receiver uses no core of this machine, like one on another machine. It is unsuitable if the
    sender sends a file's own pages, since nothing would read them.
    """
    with socket.create_server(("127.0.0.1", 0)) as listener:
        print(listener.getsockname()[1], flush=True)
        buffer = bytearray(1 << 20)
        while True:
            connection, _ = listener.accept()
            with connection, contextlib.suppress(ConnectionError):
                start = connection.recv(13, socket.MSG_PEEK | socket.MSG_WAITALL)
                if start[5:] == b"onecopyT":
                    _speak(connection, flags)
                while connection.recv_into(buffer, len(buffer), flags):
                    pass


def _speak(connection: socket.socket, flags: int) -> None:
    """Executes the receiver's side of the protocol for one file with many blocks."""

    def hear() -> tuple[int, bytes]:
        kind, n = struct.unpack("<BI", connection.recv(5, socket.MSG_WAITALL))
        return kind, connection.recv(n, socket.MSG_WAITALL) if n else b""

    def say(kind: int, body: bytes) -> None:
        connection.sendall(struct.pack("<BI", kind, len(body)) + body)

    hear()
    say(11, struct.pack("<H", 1))  # Welcome
    while hear()[0] != 5:  # the end of the list
        pass
    say(12, bytes(8))  # Accepted
    _, head = hear()
    say(13, bytes(8))  # Start
    size = int.from_bytes(head[:8], "little")
    n_blocks = -(-size >> 20)
    left = size + n_blocks * (5 + 37) + 37 + 5
    buffer = bytearray(1 << 20)
    while left:
        left -= connection.recv_into(buffer, min(left, len(buffer)), flags)
    say(14, b"")  # Finished


def _python(core: str, *arguments: str) -> list[str]:
    return ["taskset", "-c", core, sys.executable, "-m", "benches.engines.transfer", *arguments]


@contextlib.contextmanager
def running_sink(flags: int = 0) -> Iterator[int]:
    """Starts a receiver on a core of its own; yields its port."""
    with subprocess.Popen(
        _python(CLIENT_CORE, "sink", str(int(flags))), cwd=ROOT, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        try:
            yield int(process.stdout.readline())
        finally:
            process.kill()


def _measure(way: str, path: Path, port: int) -> dict[str, float]:
    done = subprocess.run(
        _python(CORE, "one", way, str(path), str(port)), cwd=ROOT, check=True, capture_output=True, text=True
    )
    return dict(json.loads(done.stdout))


def _command(arguments: list[str]) -> dict[str, float]:
    """Runs a command; returns its time from start to exit, and its processor time."""
    begun = time.perf_counter()
    # Both threads may use any core: hashing in parallel costs one more core.
    process = subprocess.Popen(arguments, stderr=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    wall = time.perf_counter() - begun
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise RuntimeError(f"`{' '.join(arguments)}` ended with {process.returncode}")
    return {"wall": wall, "cpu": used.ru_utime + used.ru_stime}


def _make(folder: Path, kind: str, size: int) -> Path:
    path = folder / kind
    with path.open("wb") as file:
        if kind == "sparse":
            file.truncate(size)
        else:
            for _ in range(0, size, 1 << 24):
                file.write(os.urandom(min(size, 1 << 24)))
    return path


def _median(times: list[dict[str, float]], key: str) -> float:
    return statistics.median(time[key] for time in times)


def table(kind: str, path: Path, rounds: int, port: int) -> list[dict[str, Any]]:
    """Measures all ways with one file and prints the table; returns the lines of the record."""
    times: dict[str, list[dict[str, float]]] = {way: [] for way in WAYS}
    for k in range(rounds + 1):
        names = list(WAYS)
        for way in names[k % len(names) :] + names[: k % len(names)]:
            measured = _measure(way, path, port)
            if k or rounds == 0:  # The first round warms up.
                times[way].append(measured)
    ours = _median(times["onecopy.send_file"], "wall")
    print(f"{path.stat().st_size / 2**30:.3g} GiB, {kind:8} {'':22} wall      cpu     memory   wall / ours")
    results = []
    for way, measured in times.items():
        wall, cpu, memory = (_median(measured, key) for key in ("wall", "cpu", "memory"))
        print(f"  {way:34} {wall:>8.3f} s {cpu:>6.3f} s {memory / 2**20:>7.1f} MiB {wall / ours:>8.2f}", flush=True)
        paired = sorted(b["wall"] / a["wall"] for a, b in zip(times["onecopy.send_file"], measured, strict=True))
        results.append(
            {
                "row": f"send_file, {kind}: {way}",
                "size": path.stat().st_size,
                "ours_us": ours * 1e6,
                "peer_us": wall * 1e6,
                "ratio": statistics.median(paired),
                "ratio_min": paired[0],
                "ratio_max": paired[-1],
                "at_least": 1.5 if "whole" in way else 1 / 1.05,
            }
        )
    best = min(_median(measured, "wall") for measured in times.values())
    print(f"  onecopy.send_file takes {ours / best:.2f} of the best's time (target: at most 1.05)")
    return results


def seed(once: bool) -> None:
    """Prints the table of the original document: a sparse file of 2 GiB, sent in each way."""
    with tempfile.TemporaryDirectory(dir=ROOT / "benches") as folder, running_sink() as port:
        path = _make(Path(folder), "sparse", 1 << 20 if once else SIZE)
        print("\nthe seed's file through a socket (truncate -s 2G)")
        table("sparse", path, 0 if once else 3, port)


def hashed(path: Path, rounds: int, port: int) -> list[dict[str, Any]]:
    """Compares `onecopy send` with BLAKE3 and a loop that reads, hashes and sends.

    The receiver uses almost no processor time of this machine.
    """
    from benches.engines.transcode import command

    try:
        import blake3  # noqa: F401
    except ImportError:
        print("`blake3` is not installed: `onecopy send` has nothing to be measured against")
        return []
    send = [command(), "send", str(path), "--to", f"127.0.0.1:{port}", "-q"]
    pairs = [(_command(send), _measure(HASHED, path, port)) for _ in range(rounds + 1)]
    pairs = pairs[1:] or pairs
    ours, peer = [a for a, _ in pairs], [b for _, b in pairs]
    ratios = sorted(b["wall"] / a["wall"] for a, b in pairs)
    for name, times in (("onecopy send", ours), (HASHED, peer)):
        wall, cpu = (_median(times, key) for key in ("wall", "cpu"))
        print(f"  {name:34} {wall:>8.3f} s {cpu:>6.3f} s")
    ratio = statistics.median(ratios)
    print(f"  {ratio:.2f} times as fast ({ratios[0]:.2f} - {ratios[-1]:.2f}; target: at least 1.2)")
    return [
        {
            "row": "onecopy send, BLAKE3",
            "size": path.stat().st_size,
            "ours_us": _median(ours, "wall") * 1e6,
            "peer_us": _median(peer, "wall") * 1e6,
            "ratio": ratio,
            "ratio_min": ratios[0],
            "ratio_max": ratios[-1],
            "at_least": 1.2,
        }
    ]


def chunk(path: Path) -> list[dict[str, Any]]:
    """Compares `request_chunk` of examples/video and a slice of bytes, for 20 MiB, as in the
    original document.

    Nothing is sent.
    """
    sys.path.insert(0, str(ROOT / "examples" / "video"))
    from chunks import request_chunk

    size = min(20 << 20, path.stat().st_size // 2)
    data = path.read_bytes()[: 3 * size]
    offset = len(data) - size

    def seconds(call: Callable[[], Any], n: int) -> float:
        begun = time.perf_counter()
        for _ in range(n):
            call()
        return (time.perf_counter() - begun) / n

    with path.open("rb") as video:
        pairs = [
            (
                seconds(lambda: request_chunk(video, offset, size), 2000),
                seconds(lambda: data[offset : offset + size], 10),
            )
            for _ in range(5)
        ]
    ratios = sorted(b / a for a, b in pairs)
    ours, peer = (statistics.median(side) for side in zip(*pairs, strict=True))
    print(
        f"  request_chunk {ours * 1e6:.2f} us, a slice of bytes {peer * 1e6:.0f} us:"
        f" {statistics.median(ratios):.0f} times (target: 100)"
    )
    return [
        {
            "row": "request_chunk, 20 MiB, against a slice",
            "size": size,
            "ours_us": ours * 1e6,
            "peer_us": peer * 1e6,
            "ratio": statistics.median(ratios),
            "ratio_min": ratios[0],
            "ratio_max": ratios[-1],
            "at_least": 100,
        }
    ]


def _most_resident(process: subprocess.Popen[Any]) -> int:
    """The peak of a command's resident memory in bytes, sampled until it ends.

    The figure of `wait4` would include the memory of the parent, before the child executes the
    command.
    """
    most = 0
    while process.poll() is None:
        with contextlib.suppress(OSError, StopIteration):
            status = Path(f"/proc/{process.pid}/status").read_text(encoding="ascii", errors="replace")
            if status.startswith("Name:\tonecopy"):
                most = next(int(line.split()[1]) * 1024 for line in status.splitlines() if line.startswith("VmHWM:"))
        time.sleep(0.005)
    return most


def both_ends(path: Path) -> None:
    """Runs `onecopy send` to `onecopy receive`, which writes to memory; prints the time and the
    memory of both."""
    from benches.engines.transcode import command

    program = command()
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        receive = [program, "receive", folder, "--bind", "127.0.0.1:0"]
        with subprocess.Popen(receive, stderr=subprocess.PIPE, text=True) as receiver:
            assert receiver.stderr is not None
            address = receiver.stderr.readline().removeprefix("listening on ").strip()
            begun = time.perf_counter()
            with subprocess.Popen([program, "send", str(path), "--to", address, "-q"]) as sender:
                memory: list[int] = []
                watcher = threading.Thread(target=lambda: memory.append(_most_resident(receiver)))
                watcher.start()
                memory_of_sender = _most_resident(sender)
                watcher.join()
            taken = time.perf_counter() - begun
        print(
            f"  onecopy send to onecopy receive: {taken:.3f} s,"
            f" memory of the sender {memory_of_sender / 2**20:.1f} MiB,"
        )
        print(f"  of the receiver {memory[0] / 2**20:.1f} MiB (target: at most 16 each)")


def main(once: bool = False) -> list[dict[str, Any]]:
    """Prints the tables; returns the lines of the record."""
    size, rounds = (1 << 22, 0) if once else (SIZE, 5)
    results: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory(dir=ROOT / "benches") as folder, running_sink() as port:
        for kind in ("sparse", "random"):
            path = _make(Path(folder), kind, size)
            results += table(kind, path, rounds, port)
        print("with its hash, random, to a receiver that is elsewhere")
        with running_sink(socket.MSG_TRUNC) as elsewhere:
            results += hashed(path, rounds, elsewhere)
        both_ends(path)
        results += chunk(path)
    return results


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["sink", flags]:
            sink(int(flags))
        case ["one", way, path, port]:
            one(way, Path(path), int(port))
