"""The servers of the benchmark: their command lines, pinned to one core, and the processor time and
memory of their processes."""

from __future__ import annotations

import importlib.util
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

from benches.serving.apps import FILES, make_files
from tests.support.process import children, free_port, stop, tail

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
DATA = HERE.parent / ".data"
CORE = os.environ.get("BENCH_CORE", "0")
WSGI, ASGI = "benches.serving.apps:app", "benches.serving.apps:asgi"
TICKS = os.sysconf("SC_CLK_TCK")


class Absent(Exception):
    """A server is not available on this machine; the message has the reason."""


class Cost(NamedTuple):
    """The processor time of a process tree so far: the scheduler's run time of each thread, and the
    clock ticks of each process."""

    run_s: dict[int, float]
    ticks_s: dict[int, float]

    def since(self, before: Cost) -> float:
        """The CPU seconds between two readings.

        The run time of threads is exact, but excludes threads that have ended. The ticks of
        processes include those, with a resolution of 10 ms.
        """
        exact = sum(now - before.run_s.get(task, 0.0) for task, now in self.run_s.items())
        coarse = sum(now - before.ticks_s.get(pid, 0.0) for pid, now in self.ticks_s.items())
        return coarse if coarse > 1.1 * exact + 0.05 else exact


def _floor() -> str:
    """The path of the minimal server in C, which is compiled if its source is newer."""
    source, built = HERE.parent / "peers" / "floor.c", DATA / "floor"
    DATA.mkdir(exist_ok=True)
    if not built.exists() or built.stat().st_mtime < source.stat().st_mtime:
        subprocess.run(["cc", "-O2", "-Wall", str(source), "-o", str(built)], check=True)
    return str(built)


def _nginx(port: int) -> list[str]:
    """The command line of nginx: one worker, files from a folder of the benchmark, no log."""
    program = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin:/sbin")
    if program is None:
        raise Absent("`nginx` is not installed")
    home = DATA / "nginx"
    make_files()
    places = "".join(
        f"{name}_temp_path {home}/{name};\n" for name in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    user = "user root;\n" if os.geteuid() == 0 else ""
    (home / "nginx.conf").write_text(
        f"{user}daemon off;\nworker_processes 1;\npid {home}/pid;\nerror_log stderr error;\n"
        "events { worker_connections 12000; }\n"
        "http {\naccess_log off;\nkeepalive_requests 1000000000;\ndefault_type text/plain;\nsendfile on;\n"
        f"client_header_timeout 10s;\n{places}"
        f"server {{\nlisten 127.0.0.1:{port} backlog=4096;\nroot {home}/files;\n"
        'location = /hello { return 200 "hello, world"; }\n}\n}\n',
        encoding="utf-8",
    )
    return [program, "-c", str(home / "nginx.conf"), "-p", str(home)]


def _needs(module: str) -> None:
    if importlib.util.find_spec(module) is None:
        raise Absent(f"`{module}` is not installed")


def _ours() -> None:
    said = subprocess.run(
        [sys.executable, "-c", "import onecopy; onecopy.serve"], capture_output=True, text=True, cwd=ROOT, check=False
    )
    if said.returncode != 0:
        raise Absent((said.stderr.strip().splitlines() or ["it does not say why"])[-1])


def command(name: str, app: str, port: int) -> list[str]:
    """The command line of the server ``name`` for an application and a port.

    Raises:
        Absent: the server is not available on this machine.
    """
    python = [sys.executable, "-m"]
    at = f"127.0.0.1:{port}"
    match name:
        case "onecopy":
            _ours()
            return [*python, "onecopy", "run", app or WSGI, "--bind", at]
        case "onecopy-files":
            _ours()
            make_files()
            return [*python, "onecopy", "serve-files", str(FILES), "--bind", at]
        case "floor":
            return [_floor(), str(port)]
        case "nginx":
            return _nginx(port)
        case "bjoern" | "fastpysgi":
            _needs(name)
            return [sys.executable, str(HERE / "launch.py"), name, app or WSGI, str(port)]
        case "granian":
            _needs(name)
            options = ["--interface", "wsgi", "--http", "1", "--no-ws", "--log-level", "warning"]
            return [*python, "granian", *options, "--host", "127.0.0.1", "--port", str(port), app or WSGI]
        case "gunicorn":
            _needs(name)
            options = ["-k", "gthread", "--threads", "8", "--worker-connections", "20000", "--keep-alive", "60"]
            return [*python, "gunicorn", *options, "--log-level", "warning", "-b", at, app or WSGI]
        case "uvicorn":
            _needs(name)
            options = ["--no-access-log", "--log-level", "warning", "--loop", "uvloop", "--http", "httptools"]
            return [*python, "uvicorn", *options, "--host", "127.0.0.1", "--port", str(port), app or ASGI]
        case "waitress":
            _needs(name)
            options = ["--connection-limit=20000", "--asyncore-use-poll"]
            return [*python, "waitress", *options, f"--listen={at}", app or WSGI]
    raise Absent(f"no server is called `{name}`")


class Running:
    """A server process that runs on the server's core.

    Raises:
        Absent: the server is not available on this machine, or does not listen.
    """

    def __init__(self, name: str, app: str = "", **environment: str) -> None:
        self.name, self.app, self._environment = name, app, environment
        self.log = DATA / f"{name}-{app.rpartition(':')[2]}.log"
        DATA.mkdir(exist_ok=True)
        self._start()

    def _start(self) -> None:
        self.port = free_port()
        words = command(self.name, self.app, self.port)
        path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH", "")]))
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen(
                ["taskset", "-c", CORE, *words],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=ROOT,
                env=os.environ | {"PYTHONPATH": path, "PYTHONWARNINGS": "ignore"} | self._environment,
            )
        end = time.monotonic() + 30
        while time.monotonic() < end and self.is_alive():
            try:
                socket.create_connection(("127.0.0.1", self.port), timeout=1).close()
            except OSError:
                time.sleep(0.02)
            else:
                return
        self.stop()
        raise Absent(f"it does not listen: {tail(self.log, 1)}")

    def revive(self) -> bool:
        """Restarts the server if its process has ended; returns true in this case."""
        if self.is_alive():
            return False
        self._start()
        return True

    def is_alive(self) -> bool:
        """Returns true if the server's first process runs."""
        return self.process.poll() is None

    def pids(self) -> list[int]:
        """The process IDs of the server, the first process before its children."""
        parents: dict[int, list[int]] = {}
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit():
                try:
                    stat = (entry / "stat").read_text(encoding="ascii", errors="replace")
                except OSError:
                    continue
                parents.setdefault(int(stat.rpartition(")")[2].split()[1]), []).append(int(entry.name))
        found = [self.process.pid]
        for pid in found:
            found += parents.get(pid, [])
        return found

    def cost(self) -> Cost:
        """The processor time of all the server's processes so far."""
        run_s: dict[int, float] = {}
        ticks_s: dict[int, float] = {}
        for pid in self.pids():
            folder = Path(f"/proc/{pid}")
            try:
                fields = (folder / "stat").read_text(encoding="ascii", errors="replace").rpartition(")")[2].split()
                # proc_pid_stat(5): utime and stime, fields 14 and 15.
                ticks_s[pid] = (int(fields[11]) + int(fields[12])) / TICKS
                for task in (folder / "task").iterdir():
                    run_s[int(task.name)] = int((task / "schedstat").read_text(encoding="ascii").split()[0]) / 1e9
            except OSError:
                continue
        return Cost(run_s, ticks_s)

    def resident_mib(self) -> float:
        """The resident memory of all the server's processes; memory that they share counts for
        each."""
        total = 0
        for pid in self.pids():
            try:
                status = Path(f"/proc/{pid}/status").read_text(encoding="ascii", errors="replace")
            except OSError:
                continue
            total += next((int(line.split()[1]) for line in status.splitlines() if line.startswith("VmRSS")), 0)
        return total / 1024

    def stop(self) -> None:
        """Stops the server, and any child processes that remain."""
        left = [child for pid in self.pids() for child in children(pid)]
        if self.is_alive():
            self.process.terminate()
            try:
                self.process.wait(timeout=5)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        for child in left:
            stop(child, signal.SIGKILL)
