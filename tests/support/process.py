"""Processes that outlive the command that started them.

A process is identified by its pid and its start time, never by its name.
"""

from __future__ import annotations

import contextlib
import os
import pwd
import random
import signal
import socket
import subprocess
import time
from pathlib import Path
from typing import NamedTuple


class Process(NamedTuple):
    """The pid and the start time of a process; the start time detects that a pid was reused."""

    pid: int
    started: str


def _start_time(pid: int) -> str | None:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace")
    except OSError:
        return None
    fields = stat.rpartition(")")[2].split()
    # Field 22 of proc_pid_stat(5); a zombie (field 3 `Z`) has ended.
    return None if fields[0] == "Z" else fields[19]


def alive(process: Process) -> bool:
    """Returns true if the process still runs."""
    return _start_time(process.pid) == process.started


def spawn(command: list[str], log: Path, user: str | None = None, cwd: Path | None = None) -> Process:
    """Starts ``command`` in a new session, with its output appended to the file ``log``.

    If ``user`` is given, the process runs as that user, which requires root.
    """
    identity: dict[str, object] = {}
    if user is not None:
        entry = pwd.getpwnam(user)
        identity = {"user": entry.pw_uid, "group": entry.pw_gid, "extra_groups": []}
    with open(log, "ab") as out:
        child = subprocess.Popen(  # type: ignore[call-overload]
            command, stdin=subprocess.DEVNULL, stdout=out, stderr=out, start_new_session=True, cwd=cwd, **identity
        )
    started = _start_time(child.pid)
    if started is None:
        raise RuntimeError(f"`{command[0]}` ended at once; its log:\n{tail(log)}")
    # The parent keeps no handle: the next command identifies the process by its pid.
    child.returncode = 0
    return Process(child.pid, started)


def stop(process: Process, first: signal.Signals = signal.SIGTERM, patience_s: float = 20) -> None:
    """Sends the signal ``first``, and SIGKILL after ``patience_s``; returns when the process has
    ended.

    Does nothing if the process has ended or if its pid was reused.
    """
    for number, seconds in ((first, patience_s), (signal.SIGKILL, 10.0)):
        if not alive(process):
            return
        os.kill(process.pid, number)
        end = time.monotonic() + seconds
        while alive(process) and time.monotonic() < end:
            with contextlib.suppress(ChildProcessError):  # Reaps it if it is our child.
                os.waitpid(process.pid, os.WNOHANG)
            time.sleep(0.02)


def crash(process: Process) -> None:
    """Ends a process and its children with SIGKILL, without a shutdown, like a machine that loses
    power.

    PostgreSQL's backends are in sessions of their own and notify their clients when the parent
    dies. Therefore the parent is stopped first, then the children are killed one by one.
    """
    if not alive(process):
        return
    os.kill(process.pid, signal.SIGSTOP)
    for child in [*children(process.pid), process]:
        stop(child, signal.SIGKILL)


def children(pid: int) -> list[Process]:
    """The running processes whose parent is ``pid``."""
    found = []
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(OSError, ValueError):
            child = int(entry.name)
            parent = int((entry / "stat").read_text(encoding="ascii", errors="replace").rpartition(")")[2].split()[1])
            started = _start_time(child)
            if parent == pid and started is not None:
                found.append(Process(child, started))
    return found


def stop_forgotten(pid_file: Path, directory: Path, first: signal.Signals) -> None:
    """Stops a server that an earlier run left running and whose state was lost.

    The pid is read from ``pid_file``. The process is stopped only if its command contains
    ``directory``.
    """
    try:
        pid = int(pid_file.read_text(encoding="ascii").split()[0])
        command = Path(f"/proc/{pid}/cmdline").read_bytes()
    except (OSError, ValueError, IndexError):
        started = None
    else:
        started = _start_time(pid) if str(directory).encode() in command else None
        if started is not None:
            stop(Process(pid, started), first)
    pid_file.unlink(missing_ok=True)


def free_port(preferred: int = 0) -> int:
    """A free TCP port of 127.0.0.1; ``preferred`` if that port is free.

    The port is below the range that the kernel uses for outgoing connections. A port within that
    range is unsafe: a client that polls until a server is up may be assigned the server's port, be
    connected to itself, and block the port.
    """
    draw = random.SystemRandom()
    while True:
        port = preferred or draw.randrange(12_000, 32_000)
        preferred = 0
        with socket.socket() as probe:
            # As servers bind: a port whose last connections are in TIME_WAIT is free.
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port


def wait_for_port(port: int, process: Process, log: Path, seconds: float = 60) -> None:
    """Returns when ``port`` accepts connections.

    Raises:
        RuntimeError: the process ended first, or the time is up; the message has the end of its
            log.
    """
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if not alive(process):
            break
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except OSError:
            time.sleep(0.05)
        else:
            return
    raise RuntimeError(f"nothing answers on port {port}; the log says:\n{tail(log)}")


def tail(log: Path, lines: int = 12) -> str:
    """The last lines of a log file."""
    try:
        return "\n".join(log.read_text(encoding="utf-8", errors="replace").splitlines()[-lines:])
    except OSError as error:
        return f"(no log: {error})"
