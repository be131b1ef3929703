"""The process of `onecopy serve-files`: its output, the system calls that transfer bytes, and the
memory and threads of downloads."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.serve.test_tls import Identity, identity
from tests.support.raw_http import Line, request
from tests.support.serving import START_S, Serving
from tests.support.skips import need

__all__ = ["identity"]

N_DOWNLOADS = 64
LARGE_BYTES = 64 << 20


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("served")
    (root / "a.txt").write_bytes(b"0123456789")
    (root / "large").write_bytes(os.urandom(1 << 20) * (LARGE_BYTES >> 20))
    return root


@contextlib.contextmanager
def _serving(folder: Path, *options: str) -> Iterator[Serving]:
    with Serving(module=["onecopy", "serve-files", str(folder), "--bind", "127.0.0.1:0", *options]) as serving:
        yield serving


def _status(pid: int, name: str) -> int:
    """A number from /proc/PID/status: a size in KiB, or a count."""
    text = Path(f"/proc/{pid}/status").read_text(encoding="ascii")
    match = re.search(rf"^{name}:\s*(\d+)", text, re.MULTILINE)
    assert match is not None, text
    return int(match[1])


def _ends(serving: Serving, number: signal.Signals) -> int:
    serving.process.send_signal(number)
    return serving.process.wait(START_S)


def test_it_serves_prints_its_address_and_stops(folder: Path, tmp_path: Path) -> None:
    log = tmp_path / "access.log"
    with _serving(folder, "--access-log", str(log), "--access-log-format", "json") as serving:
        assert "Ctrl-C stops" in serving.said()
        answer = serving.ask("/a.txt", b"Range: bytes=-3", b"Host: 127.0.0.1:%d" % serving.address[1])
        assert answer.status == 400, "two hosts"
        with serving.connect() as line:
            line.send(b"GET /a.txt HTTP/1.1\r\nHost: localhost:%d\r\nRange: bytes=-3\r\n\r\n" % serving.address[1])
            answer = line.answer()
            assert (answer.status, answer.body) == (206, b"789")
        assert _ends(serving, signal.SIGTERM) == 0
    lines = [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()]
    assert [(line["path"], line["status"]) for line in lines if "path" in line] == [("/a.txt", 206)]


def test_on_loopback_only_local_host_names_are_answered(folder: Path) -> None:
    with _serving(folder, "--host", "files.example") as serving:
        port = serving.address[1]
        for host, status in [
            (b"localhost:%d" % port, 200),
            (b"127.0.0.1:%d" % port, 200),
            (b"[::1]:%d" % port, 200),
            (b"files.example", 200),
            (b"FILES.example", 200),
            (b"evil.example", 421),
            (b"evil.example:%d" % port, 421),
            (b"localhost.evil.example:%d" % port, 421),
        ]:
            with serving.connect() as line:
                line.send(b"GET /a.txt HTTP/1.1\r\nHost: %b\r\n\r\n" % host)
                assert line.answer().status == status, host


def test_it_serves_tls(folder: Path, identity: Identity) -> None:
    options = ["--certfile", str(identity.tls.certfile), "--keyfile", str(identity.tls.keyfile)]
    with _serving(folder, *options) as serving, serving.connect() as line:
        assert "https://127.0.0.1:" in serving.said()
        line.socket = identity.context.wrap_socket(line.socket, server_hostname="127.0.0.1")
        line.send(b"GET /a.txt HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n\r\n" % serving.address[1])
        assert line.answer().body == b"0123456789"


def test_many_downloads_use_no_memory_and_no_thread_each(folder: Path) -> None:
    ask = request("/large").replace(b"Host: a", b"Host: files")
    with _serving(folder, "--host", "files") as serving, contextlib.ExitStack() as stack:
        pid = serving.process.pid
        with serving.connect() as line:
            line.send(ask)
            assert line.answer().whole
        before = _status(pid, "RssAnon"), _status(pid, "Threads")
        lines: list[Line] = [stack.enter_context(serving.connect()) for _ in range(N_DOWNLOADS)]
        for line in lines:
            line.send(ask)
        # All are active, and their readers read only the heads.
        assert {line.head()[1] for line in lines} == {200}
        assert _status(pid, "RssAnon") - before[0] <= 1024
        assert _status(pid, "Threads") == before[1]
        with serving.connect() as other:
            other.send(ask.replace(b"/large", b"/a.txt"))
            assert other.answer().body == b"0123456789"
        n_sent = lines[-1].read(LARGE_BYTES)
        assert len(n_sent) == LARGE_BYTES
        assert _status(pid, "RssAnon") - before[0] <= 1024


def test_no_byte_of_a_file_is_read_or_written(folder: Path, tmp_path: Path) -> None:
    need(shutil.which("strace"), "`strace` is not installed")
    trace = tmp_path / "trace"
    words = ["strace", "-f", "-qq", "-o", str(trace)]
    words += [
        "-e",
        "trace=accept4,sendfile,splice,mmap,read,readv,pread64,preadv,preadv2,"
        "recvfrom,recvmsg,write,writev,sendto,sendmsg",
    ]
    words += [sys.executable, "-m", "onecopy", "serve-files", str(folder), "--bind", "127.0.0.1:0", "--host", "files"]
    with subprocess.Popen(words, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stderr is not None
            said = process.stderr.readline()
            match = re.search(r"http://127\.0\.0\.1:(\d+)/", said)
            need(match or "ptrace" not in said.lower(), f"strace may not look at processes here: {said}")
            assert match is not None, said
            payload = 0
            with Line(("127.0.0.1", int(match[1])), START_S) as line:
                for wanted in [
                    b"",
                    b"Range: bytes=1000000-30000000\r\n",
                    b"Range: bytes=0-999999, 2000000-2999999\r\n",
                ]:
                    line.send(b"GET /large HTTP/1.1\r\nHost: files\r\n" + wanted + b"\r\n")
                    answer = line.answer()
                    assert answer.whole and answer.status in (200, 206)
                    payload += len(answer.body)
        finally:
            # strace does not forward signals: its child is signalled.
            children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text(encoding="ascii").split()
            for child in children:
                os.kill(int(child), signal.SIGTERM)
            process.wait(START_S)
    calls = trace.read_text(encoding="ascii", errors="replace").splitlines()
    begin = next(i for i, call in enumerate(calls) if re.search(r"accept4.* = \d+$", call))
    moved = {"sendfile": 0, "others": 0}
    for call in calls[begin:]:
        done = re.match(r"\d+\s+(?:<\.\.\. )?(\w+)[ (].*= (\d+)$", call)
        if done is not None and done[1] not in ("accept4", "mmap"):
            moved["sendfile" if done[1] == "sendfile" else "others"] += int(done[2])
    # Bytes other than the file's: heads of requests and responses, boundaries, wake-ups.
    heads = payload - moved["sendfile"]
    assert 0 <= heads < 2000, moved
    assert moved["others"] < 16384, moved
    assert not any(re.search(r"mmap\(.*MAP_SHARED.*= 0x", call) for call in calls[begin:])
