"""System calls of operations that claim zero copies: no payload byte passes through read, write,
send or recv."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.skips import need

SIZE = 6_000_000
#: Calls that move bytes through the memory of a process, and calls that do not.
COPYING = (
    "read",
    "pread64",
    "readv",
    "preadv",
    "write",
    "pwrite64",
    "writev",
    "sendto",
    "sendmsg",
    "recvfrom",
    "recvmsg",
)
MOVING = ("sendfile", "splice", "copy_file_range", "ioctl")
#: All threads, no signals, no contents; the list of calls follows.
STRACE = ("strace", "-f", "-qq", "-e", "signal=none", "-s", "0", "-e")

PAIR = """if True:
    import socket, sys, threading, onecopy
    def pair():
        return socket.socketpair()
    def tcp():
        with socket.create_server(("127.0.0.1", 0)) as listener:
            here = socket.create_connection(listener.getsockname())
            return here, listener.accept()[0]
"""
#: Scripts that move the file `data` to `got`.
SCRIPTS = {
    "send_file and recv_file over unix sockets": """
    a, b = pair()
    def send():
        with open("data", "rb") as f: onecopy.send_file(a, f)
        a.close()
    thread = threading.Thread(target=send); thread.start()
    with open("got", "wb") as f: onecopy.recv_file(b, f, 1 << 40)
    thread.join()
""",
    "the same over TCP, without blocking": """
    import asyncio
    a, b = tcp()
    a.setblocking(False); b.setblocking(False)
    async def send():
        with open("data", "rb") as f: await onecopy.aio.send_file(a, f)
        a.close()
    async def main():
        with open("got", "wb") as f: await asyncio.gather(send(), onecopy.aio.recv_file(b, f, 1 << 40))
    asyncio.run(main())
""",
    "copy_file": """
    onecopy.copy_file("data", "got")
""",
}


def traced(command: list[str], folder: Path) -> dict[str, int]:
    """Runs a command under strace; returns the bytes that each system call moved in all its
    processes."""
    log = folder / "strace.log"
    calls = ",".join((*COPYING, *MOVING))
    done = subprocess.run(
        [*STRACE, f"trace={calls}", "-o", str(log), *command],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    moved = dict.fromkeys((*COPYING, *MOVING), 0)
    # A call that is interrupted by another thread's line ends as `<... sendfile resumed>…) = N`.
    for name, count in re.findall(
        r"^\d+ +(?:<\.\.\. )?(\w+)(?: resumed>|\().*\) += (\d+)", log.read_text(encoding="utf-8"), re.M
    ):
        moved[name] += int(count)
    return moved


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    need(shutil.which("strace"), "`strace` is not installed")
    (tmp_path / "data").write_bytes(b"payload!" * (SIZE // 8))
    return tmp_path


@pytest.mark.parametrize("name", SCRIPTS)
def test_no_payload_goes_through_the_process(folder: Path, name: str) -> None:
    empty = folder / "empty"
    empty.mkdir()
    (empty / "data").touch()
    script = PAIR + SCRIPTS[name]
    # The reads of an interpreter's startup, measured by a run with an empty file, are subtracted.
    before = traced([sys.executable, "-c", script], empty)
    moved = traced([sys.executable, "-c", script], folder)
    assert (folder / "got").read_bytes() == (folder / "data").read_bytes()
    copied = sum(moved[call] - before[call] for call in COPYING)
    assert abs(copied) < SIZE // 100, moved
    by_kernel = sum(moved[call] for call in ("sendfile", "splice", "copy_file_range"))
    is_shared = name == "copy_file" and moved["copy_file_range"] == 0
    assert by_kernel >= SIZE or is_shared, moved


def test_the_trace_shows_copies(folder: Path) -> None:
    script = "open('got', 'wb').write(open('data', 'rb').read())"
    moved = traced([sys.executable, "-W", "ignore", "-c", script], folder)
    assert moved["read"] >= SIZE and moved["write"] >= SIZE


@pytest.mark.parametrize("hashed", [True, False], ids=["hashed", "not hashed"])
def test_send_and_receive_move_files_by_the_kernel(folder: Path, hashed: bool) -> None:
    script = Path(sys.executable).with_name("onecopy")
    receiver = subprocess.Popen(
        [script, "receive", "inbox", "--bind", "127.0.0.1:0"], cwd=folder, stderr=subprocess.PIPE, text=True
    )
    assert receiver.stderr is not None
    address = receiver.stderr.readline().removeprefix("listening on ").strip()
    # Over loopback, hashed data would be sent from memory; here it is sent as to another machine.
    options = ["--by-sendfile"] if hashed else ["--no-hash"]
    moved = traced([str(script), "send", "data", "--to", address, *options], folder)
    receiver.communicate(timeout=60)
    assert receiver.returncode == 0
    assert (folder / "inbox" / "data").read_bytes() == (folder / "data").read_bytes()
    assert moved["sendfile"] == SIZE
    # Hashed data is read once; only messages are written.
    assert (moved["pread64"] >= SIZE) is hashed
    assert sum(moved[call] for call in ("write", "sendto", "sendmsg", "writev")) < SIZE // 100
    assert moved["pread64"] < SIZE * 1.2


def test_an_unhashed_file_is_received_by_the_kernel(folder: Path) -> None:
    script = Path(sys.executable).with_name("onecopy")
    log = folder / "strace.log"
    calls = ",".join((*COPYING, *MOVING))
    receiver = subprocess.Popen(
        [*STRACE, f"trace={calls}", "-o", str(log), str(script), "receive", "inbox", "--bind", "127.0.0.1:0"],
        cwd=folder,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert receiver.stderr is not None
    address = receiver.stderr.readline().removeprefix("listening on ").strip()
    subprocess.run([script, "send", "data", "--to", address, "--no-hash", "-q"], cwd=folder, check=True, timeout=60)
    receiver.communicate(timeout=60)
    assert (folder / "inbox" / "data").read_bytes() == (folder / "data").read_bytes()
    lines = log.read_text(encoding="utf-8")
    spliced = sum(int(n) for n in re.findall(r"^\d+ +(?:<\.\.\. )?splice.*\) += (\d+)", lines, re.M))
    written = sum(int(n) for n in re.findall(r"^\d+ +(?:<\.\.\. )?p?write.*\) += (\d+)", lines, re.M))
    # Into the pipe and out of it.
    assert spliced == 2 * SIZE
    assert written < SIZE // 100
