"""`send_file`, `recv_file` and `copy_file`: every kind of socket and file, ends of files, timeouts,
signals, the ledger."""

from __future__ import annotations

import asyncio
import contextlib
import io
import os
import signal
import socket
import ssl
import struct
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any

import pytest
import trustme

import onecopy

#: As `Any`, for calls that the types refuse already.
send_any: Any = onecopy.send_file
receive_any: Any = onecopy.recv_file
DATA = bytes(range(256)) * 8192 + b"the end"


@pytest.fixture
def file(tmp_path: Path) -> Iterator[IO[bytes]]:
    path = tmp_path / "data"
    path.write_bytes(DATA)
    with path.open("rb") as opened:
        yield opened


def unix_pair() -> tuple[socket.socket, socket.socket]:
    return socket.socketpair()


def tcp_pair() -> tuple[socket.socket, socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        here = socket.create_connection(listener.getsockname())
        return here, listener.accept()[0]


@pytest.fixture(params=[unix_pair, tcp_pair], ids=["unix", "tcp"])
def pair(request: pytest.FixtureRequest) -> Iterator[tuple[socket.socket, socket.socket]]:
    here, there = request.param()
    with here, there:
        yield here, there


Temporary = Callable[[], IO[bytes]]


@pytest.fixture
def temporary() -> Iterator[Temporary]:
    """Returns a function that creates anonymous files, which are closed at the end."""
    with contextlib.ExitStack() as stack:
        yield lambda: stack.enter_context(tempfile.TemporaryFile())


class Reader(threading.Thread):
    """A thread that receives from a socket until the peer closes it."""

    def __init__(self, sock: Any) -> None:
        super().__init__()
        self.sock, self.got = sock, b""
        self.start()

    def run(self) -> None:
        while part := self.sock.recv(1 << 16):
            self.got += part

    def all(self) -> bytes:
        self.join()
        return self.got


class Writer(threading.Thread):
    """A thread that sends data to a socket and then shuts down its sending side."""

    def __init__(self, sock: Any, data: bytes) -> None:
        super().__init__()
        self.sock, self.data = sock, data
        self.start()

    def run(self) -> None:
        self.sock.sendall(self.data)
        self.sock.shutdown(socket.SHUT_WR)


@pytest.mark.parametrize("timeout", [None, 60.0], ids=["blocks", "timeout"])
@pytest.mark.parametrize(
    ("offset", "count"),
    [(0, None), (5, None), (300_000, 1_000_000), (7, 0), (len(DATA) - 3, 100), (len(DATA) + 9, None)],
)
def test_a_part_of_a_file_is_transferred(
    pair: tuple[socket.socket, socket.socket], file: IO[bytes], timeout: float | None, offset: int, count: int | None
) -> None:
    here, there = pair
    here.settimeout(timeout)
    expected = DATA[offset:] if count is None else DATA[offset : offset + count]
    file.seek(11)
    reader = Reader(there)
    assert onecopy.send_file(here, file, offset, count) == len(expected)
    here.shutdown(socket.SHUT_WR)
    assert reader.all() == expected
    assert file.tell() == 11


@pytest.mark.parametrize("kind", ["raw", "buffered", "random", "bytesio", "no seek"])
def test_any_file_is_sent(pair: tuple[socket.socket, socket.socket], tmp_path: Path, kind: str) -> None:
    path = tmp_path / "data"
    path.write_bytes(DATA)
    opened: Any
    if kind == "bytesio":
        opened = io.BytesIO(DATA)
    elif kind == "no seek":

        class Plain:
            def __init__(self) -> None:
                self.inner = io.BytesIO(DATA)

            def read(self, size: int) -> bytes:
                return self.inner.read(size)

        opened = Plain()
    elif kind == "random":
        opened = path.open("r+b")
        opened.seek(0, 2)
        opened.write(b"unflushed")
    else:
        opened = path.open("rb", buffering=0 if kind == "raw" else -1)
    expected = DATA + (b"unflushed" if kind == "random" else b"")
    here, there = pair
    reader = Reader(there)
    assert onecopy.send_file(here, opened) == len(expected)
    here.shutdown(socket.SHUT_WR)
    assert reader.all() == expected
    if kind != "no seek":
        opened.close()


@pytest.mark.parametrize("kind", ["raw", "buffered", "random", "append", "bytesio"])
def test_any_file_is_written_at_its_position(
    pair: tuple[socket.socket, socket.socket], tmp_path: Path, kind: str
) -> None:
    path = tmp_path / "got"
    path.write_bytes(b"" if kind == "append" else b"0123456789")
    mode = {"raw": "r+b", "buffered": "wb", "random": "r+b", "append": "ab"}
    opened: Any = io.BytesIO() if kind == "bytesio" else path.open(mode[kind], buffering=0 if kind == "raw" else -1)
    opened.write(b"abc")
    here, there = pair
    writer = Writer(there, DATA)
    assert onecopy.recv_file(here, opened, 1_000_000) == 1_000_000
    assert opened.tell() == 1_000_003
    opened.write(b"|")
    assert onecopy.recv_file(here, opened, 1 << 40) == len(DATA) - 1_000_000
    assert onecopy.recv_file(here, opened, 1) == 0
    opened.write(b"end")
    writer.join()
    opened.flush()
    got = opened.getvalue() if kind == "bytesio" else path.read_bytes()
    assert got == b"abc" + DATA[:1_000_000] + b"|" + DATA[1_000_000:] + b"end"
    opened.close()


def test_a_non_blocking_socket_accepts_what_fits(
    pair: tuple[socket.socket, socket.socket], temporary: Temporary
) -> None:
    here, there = pair
    here.setblocking(False)
    there.setblocking(False)
    with pytest.raises(BlockingIOError):
        onecopy.recv_file(there, temporary(), 1)
    # More than the buffers of a socket hold.
    large = temporary()
    large.truncate(1 << 30)
    sent = onecopy.send_file(here, large)
    assert 0 < sent < 1 << 30
    while True:
        try:
            more = onecopy.send_file(here, large, sent)
        except BlockingIOError:
            break
        sent += more
    got = temporary()
    came = 0
    while came < sent:
        try:
            came += onecopy.recv_file(there, got, sent - came)
        except BlockingIOError:
            continue
    assert got.tell() == came == sent


def test_a_socket_s_timeout_is_kept(pair: tuple[socket.socket, socket.socket], temporary: Temporary) -> None:
    here, there = pair
    here.settimeout(0.02)
    large = temporary()
    large.truncate(1 << 30)
    with pytest.raises(TimeoutError):
        onecopy.send_file(here, large)
    there.settimeout(0.02)
    got = temporary()
    with pytest.raises(TimeoutError):
        onecopy.recv_file(there, got, 1 << 30)
    # The received bytes are there.
    assert got.tell() > 0


def test_a_file_that_is_truncated_meanwhile_gives_a_short_count(tmp_path: Path) -> None:
    path = tmp_path / "data"
    path.write_bytes(bytes(8 << 20))
    here, there = unix_pair()
    with here, there, path.open("rb") as file:
        here.setblocking(False)
        sent = onecopy.send_file(here, file)
        os.truncate(path, sent)
        # Nothing remains of the file, and nothing beyond its end is sent.
        assert onecopy.send_file(here, file, sent, 100) == 0
        assert onecopy.send_file(here, file, sent) == 0


def test_a_peer_that_disconnected_is_a_broken_pipe(pair: tuple[socket.socket, socket.socket], file: IO[bytes]) -> None:
    here, there = pair
    there.close()
    # The first bytes over TCP may be sent before the peer's reset arrives.
    with contextlib.suppress(BrokenPipeError, ConnectionResetError):
        onecopy.send_file(here, file)
    with pytest.raises((BrokenPipeError, ConnectionResetError)):
        onecopy.send_file(here, file)


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda s, f: onecopy.send_file(s, f, -1), ValueError, "`offset` must not be negative"),
        (lambda s, f: onecopy.send_file(s, f, 0, -1), ValueError, "`count` must not be negative"),
        (lambda s, f: onecopy.recv_file(s, f, -1), ValueError, "`count` must not be negative"),
        (lambda s, f: send_any(3, f), TypeError, "not a socket"),
        (lambda s, f: send_any(s, 3), TypeError, "it has no `read`"),
        (lambda s, f: send_any(s, io.StringIO("x")), TypeError, "binary mode"),
        (lambda s, f: onecopy.recv_file(s, f, 1), ValueError, "not open for writing"),
        (lambda s, f: receive_any(s, object(), 1), TypeError, "it has no `write`"),
    ],
)
def test_wrong_arguments_are_refused(
    file: IO[bytes], call: Callable[[Any, Any], int], error: type[Exception], words: str
) -> None:
    here, there = unix_pair()
    with here, there, pytest.raises(error, match=words):
        call(here, file)


def test_closed_and_datagram_sockets_are_refused(file: IO[bytes]) -> None:
    closed = socket.socket()
    closed.close()
    with pytest.raises(ValueError, match="closed"):
        onecopy.send_file(closed, file)
    with socket.socket(type=socket.SOCK_DGRAM) as datagrams, pytest.raises(ValueError, match="no stream"):
        onecopy.send_file(datagrams, file)


def test_the_ledger_distinguishes_bytes_moved_by_the_kernel_and_copied(file: IO[bytes], tmp_path: Path) -> None:
    here, there = unix_pair()
    with here, there:
        reader = Reader(there)
        with onecopy.ledger() as ledger:
            onecopy.send_file(here, file)
        assert (ledger.taken, ledger.copied, ledger.converted) == (len(DATA), 0, 0)
        with onecopy.ledger() as ledger:
            onecopy.send_file(here, io.BytesIO(DATA))
        assert ledger.stages["move"]["copied"] == len(DATA)
        here.shutdown(socket.SHUT_WR)
        assert reader.all() == DATA + DATA
    here, there = tcp_pair()
    with here, there, tempfile.TemporaryFile() as got:
        writer = Writer(there, DATA)
        with onecopy.ledger() as ledger:
            onecopy.recv_file(here, got, len(DATA))
        assert (ledger.taken, ledger.copied) == (len(DATA), 0)
        writer.join()
    with onecopy.ledger() as ledger:
        onecopy.copy_file(tmp_path / "data", tmp_path / "copy")
    assert (ledger.taken, ledger.copied) == (len(DATA), 0)


def test_ctrl_c_ends_a_blocking_call() -> None:
    code = """if True:
        import signal, socket, sys, tempfile, onecopy
        here, there = socket.socketpair()
        # A system call without a time limit resumes after a signal, as if the signal had come
        # before it.
        signal.siginterrupt(signal.SIGINT, False)
        large = tempfile.TemporaryFile()
        large.truncate(1 << 30)
        got = tempfile.TemporaryFile()
        calls = {"send": lambda: onecopy.send_file(here, large), "recv": lambda: onecopy.recv_file(here, got, 1)}
        try:
            # From here on Ctrl-C is caught, wherever it is when it comes.
            print("ready", flush=True)
            calls[sys.argv[1]]()
        except KeyboardInterrupt:
            sys.exit(7)
    """
    for call in ("send", "recv"):
        with subprocess.Popen([sys.executable, "-c", code, call], stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
            process.send_signal(signal.SIGINT)
            assert process.wait(timeout=60) == 7


def test_the_time_limit_of_a_blocking_socket_is_restored(temporary: Temporary) -> None:
    limit = struct.pack("ll", 7, 0)
    here, there = socket.socketpair()
    file = temporary()
    file.write(b"abc")
    with here, there:
        here.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, limit)
        assert onecopy.send_file(here, file, 0) == 3
        assert here.getsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, len(limit)) == limit


def test_other_threads_run_while_it_waits(pair: tuple[socket.socket, socket.socket], temporary: Temporary) -> None:
    here, there = pair
    got = temporary()
    results = []
    thread = threading.Thread(target=lambda: results.append(onecopy.recv_file(here, got, 3)))
    thread.start()
    there.sendall(b"abc")
    thread.join()
    assert results == [3]


@pytest.fixture(scope="module")
def contexts() -> tuple[ssl.SSLContext, ssl.SSLContext]:
    """The TLS contexts of a server and of a client that trusts its certificate."""
    authority = trustme.CA()
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("localhost").configure_cert(server)
    client = ssl.create_default_context()
    authority.configure_trust(client)
    return server, client


def test_tls_goes_through_the_socket_s_methods_and_counts(
    contexts: tuple[ssl.SSLContext, ssl.SSLContext], file: IO[bytes]
) -> None:
    server, client = contexts
    here, there = tcp_pair()
    secured: list[ssl.SSLSocket] = []
    handshake = threading.Thread(target=lambda: secured.append(server.wrap_socket(there, server_side=True)))
    handshake.start()
    with client.wrap_socket(here, server_hostname="localhost") as mine:
        handshake.join()
        with secured[0] as theirs:
            sender = threading.Thread(target=lambda: onecopy.send_file(theirs, file, 5))
            sender.start()
            with tempfile.TemporaryFile() as got, onecopy.ledger() as ledger:
                assert onecopy.recv_file(mine, got, len(DATA) - 5) == len(DATA) - 5
                got.seek(0)
                assert got.read() == DATA[5:]
            assert ledger.copied == len(DATA) - 5
            sender.join()
            mine.setblocking(False)
            with pytest.raises(ssl.SSLWantReadError):
                onecopy.recv_file(mine, io.BytesIO(), 1)


def test_asyncio_transfers_files_while_the_loop_runs(tmp_path: Path) -> None:
    large = tmp_path / "large"
    large.write_bytes(DATA * 4)
    got = tmp_path / "got"

    async def main() -> int:
        here, there = tcp_pair()
        ticks = 0

        async def tick() -> None:
            nonlocal ticks
            while True:
                ticks += 1
                await asyncio.sleep(0)

        ticking = asyncio.create_task(tick())
        with here, there, large.open("rb") as source, got.open("wb") as target:
            with pytest.raises(ValueError, match="blocking mode"):
                await onecopy.aio.send_file(here, source)
            here.setblocking(False)
            there.setblocking(False)
            receiving = asyncio.create_task(onecopy.aio.recv_file(there, target, 1 << 40))
            assert await onecopy.aio.send_file(here, source, 3, 1000) == 1000
            assert await onecopy.aio.send_file(here, source, 1003) == len(DATA) * 4 - 1003
            here.shutdown(socket.SHUT_WR)
            assert await receiving == len(DATA) * 4 - 3
            # Cancelled while it waits, it leaves nothing registered in the loop.
            waiting = asyncio.create_task(onecopy.aio.recv_file(here, target, 1))
            await asyncio.sleep(0)
            waiting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await waiting
            assert not asyncio.get_running_loop().remove_reader(here.fileno())
            with pytest.raises(ValueError, match="negative"):
                await onecopy.aio.recv_file(here, target, -1)
        ticking.cancel()
        return ticks

    assert asyncio.run(main()) > 5
    assert got.read_bytes() == (DATA * 4)[3:]


def test_copies_are_whole_and_keep_holes(tmp_path: Path) -> None:
    source, target = tmp_path / "a", tmp_path / "b"
    with source.open("wb") as file:
        file.truncate(64 << 20)
        file.seek(9_999_999)
        file.write(b"x" * 5000)
    source.chmod(0o751)
    assert onecopy.copy_file(source, str(target)) == 64 << 20
    assert target.stat().st_mode & 0o777 == 0o751
    assert target.stat().st_blocks * 512 < 1 << 20
    with source.open("rb") as a, target.open("rb") as b:
        while part := a.read(1 << 20):
            assert b.read(1 << 20) == part
    assert {path.name for path in tmp_path.iterdir()} == {"a", "b"}


def test_a_failed_copy_leaves_the_old_file(tmp_path: Path) -> None:
    target = tmp_path / "target"
    target.write_text("old")
    target.chmod(0o600)
    os.mkfifo(tmp_path / "pipe")
    link = tmp_path / "link"
    link.symlink_to(target)
    for source, error in (
        (tmp_path / "nowhere", FileNotFoundError),
        (tmp_path, IsADirectoryError),
        (tmp_path / "pipe", ValueError),
        (target, ValueError),
        (link, ValueError),
    ):
        with pytest.raises(error):
            onecopy.copy_file(source, target)
    assert target.read_text() == "old"
    (tmp_path / "new").write_text("new")
    onecopy.copy_file(tmp_path / "new", target)
    assert (target.read_text(), target.stat().st_mode & 0o777) == ("new", 0o600)
    (tmp_path / "empty").touch()
    assert onecopy.copy_file(tmp_path / "empty", target) == 0
    assert target.read_bytes() == b""
    # Files of the kernel report a size of 0.
    assert onecopy.copy_file("/proc/self/status", tmp_path / "status") > 100
