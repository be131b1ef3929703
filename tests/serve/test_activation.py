"""Socket activation and notifications of a service manager, in the protocol of systemd but without
systemd."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from onecopy import _systemd
from tests.support.supervised import PATIENCE_S, Folder, Supervised, of_command

#: Moves the listener to systemd's descriptor, sets the variables, and executes the server in the
#: same process.
_MANAGER = """
import os, sys
listener, count, pid, *command = sys.argv[1:]
if int(listener) >= 0:
    os.dup2(int(listener), 3)
os.environ.update(LISTEN_FDS=count, LISTEN_PID=pid or str(os.getpid()))
os.execv(sys.executable, [sys.executable, "-m", "onecopy", "run", "application:app", *command])
"""


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path)


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as made:
        made.set_inheritable(True)
        yield made


@contextlib.contextmanager
def _activated(
    folder: Folder,
    listener: socket.socket | None,
    *options: str,
    count: str = "1",
    pid: str = "",
    env: dict[str, str] | None = None,
) -> Iterator[Supervised]:
    number = listener.fileno() if listener else -1
    command = ["-c", _MANAGER, str(number), count, pid, *options]
    with of_command(folder, command, env, pass_fds=[number] if listener else []) as supervised:
        yield supervised


@pytest.mark.parametrize("workers", [[], ["--workers", "2"]])
@pytest.mark.parametrize("bind", [[], ["--bind", "systemd"]])
def test_the_passed_socket_is_served(
    folder: Folder, listener: socket.socket, workers: list[str], bind: list[str]
) -> None:
    with _activated(folder, listener, *bind, *workers) as supervised:
        # Before the server is up: the kernel queues the connection.
        supervised.port = listener.getsockname()[1]
        assert supervised.ask()[0] == "1"
        supervised.until(f"at http://127.0.0.1:{supervised.port}/")
        supervised.send(signal.SIGTERM)
        assert supervised.ends()[0] == 0


def test_an_explicit_address_takes_precedence_over_the_socket(folder: Folder, listener: socket.socket) -> None:
    with _activated(folder, listener, "--bind", "127.0.0.1:0") as supervised:
        assert supervised.serves().port != listener.getsockname()[1]


def test_the_application_sees_no_socket_of_the_manager(folder: Folder, listener: socket.socket) -> None:
    folder.write("1", "VERSION = str([name for name in os.environ if name.startswith('LISTEN_')])")
    with _activated(folder, listener) as supervised:
        assert supervised.serves().ask()[0] == "[]"


def test_the_unit_of_the_guide_serves(folder: Folder, listener: socket.socket) -> None:
    page = (Path(__file__).resolve().parents[2] / "docs" / "guide" / "deploy.md").read_text(encoding="utf-8")
    started = re.search(r"^ExecStart=/\S+/onecopy run hello:app (.*)$", page, re.MULTILINE)
    assert started and "ExecReload=/bin/kill -HUP $MAINPID" in page
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(str(folder.path / "notify"))
        manager.settimeout(PATIENCE_S)
        env = {"NOTIFY_SOCKET": str(folder.path / "notify")}
        with _activated(folder, listener, *started[1].split(), env=env) as supervised:
            assert manager.recv(99) == b"READY=1"
            assert supervised.serves().ask()[0] == "1"
            supervised.send(signal.SIGTERM)
            assert supervised.ends()[0] == 0


@pytest.mark.parametrize(
    ("count", "pid", "bind", "says"),
    [
        ("2", "", [], "2 sockets were passed, but only one is supported"),
        ("1", "1", ["--bind", "systemd"], "the socket was passed to process 1, and this is"),
        ("", "", ["--bind", "systemd"], "no socket was passed"),
        ("x", "", [], "x sockets were passed"),
        ("1", "", [], "the socket that was passed is not open: .*Bad file descriptor"),
    ],
)
@pytest.mark.parametrize("workers", [[], ["--workers", "2"]])
def test_errors_of_activation_are_reported(
    folder: Folder, count: str, pid: str, bind: list[str], says: str, workers: list[str]
) -> None:
    with _activated(folder, None, *bind, *workers, count=count, pid=pid) as supervised:
        supervised.until(says)
        assert supervised.ends()[0] == 1


def test_the_manager_is_notified_of_each_step(folder: Folder, tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(str(tmp_path / "notify"))
        manager.settimeout(PATIENCE_S)
        command = ["-m", "onecopy", "run", "application:app", "--bind", "127.0.0.1:0", "--workers", "2"]
        with of_command(folder, command, {"NOTIFY_SOCKET": str(tmp_path / "notify")}) as supervised:
            assert manager.recv(99) == b"READY=1"
            supervised.serves().ask()
            supervised.send(signal.SIGHUP)
            kind, moment = manager.recv(99).decode().split("\n")
            assert kind == "RELOADING=1" and moment.partition("=")[0] == "MONOTONIC_USEC"
            assert int(moment.partition("=")[2]) > 0
            assert manager.recv(99) == b"READY=1"
            folder.write("2", "raise RuntimeError('broken')")
            supervised.send(signal.SIGHUP)
            assert manager.recv(99).startswith(b"RELOADING=1")
            assert manager.recv(99) == b"READY=1"  # The former workers are still ready.
            supervised.send(signal.SIGTERM)
            assert manager.recv(99) == b"STOPPING=1"
            assert supervised.ends()[0] == 0


def test_the_manager_is_notified_by_a_single_process(folder: Folder, tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(str(tmp_path / "notify"))
        manager.settimeout(PATIENCE_S)
        command = ["-m", "onecopy", "run", "application:app", "--bind", "127.0.0.1:0"]
        with of_command(folder, command, {"NOTIFY_SOCKET": str(tmp_path / "notify")}) as supervised:
            assert manager.recv(99) == b"READY=1"
            supervised.send(signal.SIGTERM)
            assert manager.recv(99) == b"STOPPING=1"
            assert supervised.ends()[0] == 0


@pytest.mark.parametrize("path", ["", "relative", "/nowhere/at/all", "vsock:2:1234"])
def test_a_missing_manager_is_ignored(monkeypatch: pytest.MonkeyPatch, path: str) -> None:
    monkeypatch.setenv("NOTIFY_SOCKET", path)
    _systemd.notify("READY=1")


def test_an_abstract_socket_is_notified_too(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.settimeout(PATIENCE_S)
        name = f"onecopy-test-{os.getpid()}"
        manager.bind(f"\0{name}")
        monkeypatch.setenv("NOTIFY_SOCKET", f"@{name}")
        _systemd.notify("READY=1", "STATUS=x")
        assert manager.recv(99) == b"READY=1\nSTATUS=x"
