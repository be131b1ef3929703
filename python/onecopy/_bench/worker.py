"""A worker process: runs one engine, and answers each command on stdin with a line of JSON.

The answers are written to a separate file descriptor, because libraries may print to stdout. The
connection string is in the first command, not in an argument or environment variable.
"""

from __future__ import annotations

import contextlib
import ctypes
import importlib
import importlib.metadata
import json
import os
import signal
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from onecopy._bench.database import Database
from onecopy._bench.digest import result_of
from onecopy._bench.engines.job import Job, Missing
from onecopy._bench.sink import Sink

__all__ = ["main"]

#: Of prctl(2): the signal that this process gets when its parent ends.
_PR_SET_PDEATHSIG = 1


def main() -> None:
    """Answer commands until stdin is closed. The command-line arguments are the file descriptor for
    the answers and the process id of the parent."""
    answers, parent = int(sys.argv[1]), int(sys.argv[2])
    _end_with_parent(parent)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with open(answers, "w", encoding="utf-8", closefd=True) as out:
        worker: _Worker | None = None
        for line in sys.stdin:
            command = json.loads(line)
            try:
                if worker is None:
                    worker = _Worker(command)
                answer = getattr(worker, f"do_{command['do']}")(command)
            except Exception as error:
                # Exceptions of peers have any class.
                answer = {"error": _message(error), "is_missing": isinstance(error, Missing)}
            if "error" in answer and worker is not None:
                answer["error"] = worker.database.without_secrets(answer["error"])
            out.write(json.dumps(answer) + "\n")
            out.flush()


def _end_with_parent(parent: int) -> None:
    """Arrange that the kernel kills this process when its parent ends, even during a library call
    that never returns."""
    with contextlib.suppress(OSError, AttributeError):  # Not on Linux.
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL))
        if os.getppid() != parent:
            os._exit(1)


def _message(error: Exception) -> str:
    text = str(error).strip()
    return text or type(error).__name__


class _Worker:
    """The state of a worker process, which measures one statement with one engine (a database
    library).
    """

    def __init__(self, command: dict[str, Any]) -> None:
        self.database = Database(**command["database"])
        self._command = command
        self._job: Job | None = None
        if command["core"] is not None:
            with contextlib.suppress(OSError, AttributeError):
                os.sched_setaffinity(0, {command["core"]})

    def do_describe(self, command: dict[str, Any]) -> dict[str, Any]:
        """Connect with onecopy; return the database's version, and the SQL to measure."""
        from onecopy._bench.engines.ours import connect
        from onecopy._bench.statement import NoTable, largest_table, limited, of_table

        try:
            connection = connect(self.database)
        except Exception as error:
            return {"error": _message(error), "cannot_connect": True}
        # A connection string does not always name the database.
        dialect, sql, n_rows = connection.dialect, command["sql"], command["n_rows"]
        table: tuple[str, ...] = ()
        if sql is None:
            try:
                table = largest_table(connection)
            except NoTable as error:
                return {"error": str(error)}
        version = f"{connection.dbms_name} {connection.dbms_version}"
        return {
            "dialect": dialect,
            "version": version,
            "driver": f"{connection.driver_name} {connection.driver_version}",
            "table": ".".join(table),
            "sql": of_table(dialect, table, n_rows) if sql is None else limited(dialect, sql, n_rows),
        }

    def do_open(self, command: dict[str, Any]) -> dict[str, Any]:
        """Import the engine's library, and connect to the database with it."""
        module_name, _, function = command["opens"].partition(".")
        opens = getattr(importlib.import_module(f"onecopy._bench.engines.{module_name}"), function)
        arguments = (self.database, command["sql"], command["way"], command["encoder"])
        # The function for drivers and that for libraries serve several engines, and have the name
        # of the engine as first argument.
        self._job = opens(*((command["name"], *arguments) if command["is_named"] else arguments))
        try:
            version = importlib.metadata.version(command["package"]) if command["package"] else ""
        except importlib.metadata.PackageNotFoundError:
            version = ""
        return {"variant": self._job.variant, "note": self._job.note, "version": version}

    def do_warm(self, command: dict[str, Any]) -> dict[str, Any]:
        """Run the statement once. Return the time that it took, and the difference between the peak
        memory during the run and the resident memory before it."""
        job = self._opened()
        pids = [pid for pid in (os.getpid(), job.pid) if pid is not None]
        before = [_reset_peak(pid) for pid in pids]
        begun = time.perf_counter()
        made = job.run(Sink())
        wall = time.perf_counter() - begun
        peak = sum(max(_peak(pid) - idle, 0) for pid, idle in zip(pids, before, strict=True))
        del made
        return {"wall_s": wall, "peak_bytes": peak}

    def do_check(self, command: dict[str, Any]) -> dict[str, Any]:
        """Run the statement once. Return the number of rows and the digest of each column. For the
        columns whose indexes are in ``common``, also return the digest of the values after each
        value was converted to a form that all engines have in common."""
        job = self._opened()
        folder = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
        with tempfile.NamedTemporaryFile(dir=folder) as file:
            sink = Sink(file.name, keep=True)
            result = result_of(command["way"], job.run(sink), sink.contents)
            n_bytes = len(sink.contents())
        return {
            "n_rows": result.n_rows,
            "columns": [column._asdict() for column in result.digests()],
            "common": [result.common_digest(index) for index in command["common"] if index < len(result.columns)],
            "n_bytes": n_bytes,
        }

    def do_time(self, command: dict[str, Any]) -> dict[str, Any]:
        """Run the statement ``times`` times; return the mean wall time and CPU time of a run, in
        seconds."""
        job, times = self._opened(), command["times"]
        wall = cpu = 0.0
        for _ in range(times):
            cpu_begun = time.process_time() + _cpu_s(job.pid)
            begun = time.perf_counter()
            made = job.run(Sink())
            wall += time.perf_counter() - begun
            cpu += time.process_time() + _cpu_s(job.pid) - cpu_begun
            # The result is freed outside of the measured time.
            del made
        return {"wall_s": wall / times, "cpu_s": cpu / times}

    def do_ledger(self, command: dict[str, Any]) -> dict[str, Any]:
        """Run the statement once in onecopy, and return the counts of conversions and copies that
        `onecopy.ledger` reports for it."""
        import onecopy

        with onecopy.ledger() as ledger:
            self._opened().run(Sink())
        names = ("taken", "converted", "copied", "conversions")
        return {name: getattr(ledger, name) for name in names} | {"stages": ledger.stages}

    def _opened(self) -> Job:
        if self._job is None:
            raise RuntimeError("the engine is not open")
        return self._job


def _peak(pid: int) -> int:
    """Return the peak resident memory of a process since the last reset, in bytes; 0 if the system
    does not report it."""
    try:
        status = Path(f"/proc/{pid}/status").read_text(encoding="ascii", errors="replace")
    except OSError:
        return 0
    return next((int(line.split()[1]) * 1024 for line in status.splitlines() if line.startswith("VmHWM")), 0)


def _reset_peak(pid: int) -> int:
    """Reset the peak to the current resident memory of the process `pid`, and return the new peak
    in bytes."""
    with contextlib.suppress(OSError):
        Path(f"/proc/{pid}/clear_refs").write_text("5", encoding="ascii")
    return _peak(pid)


def _cpu_s(pid: int | None) -> float:
    """Return the CPU time in seconds of a child process, which must have only one thread."""
    if pid is None:
        return 0.0
    return int(Path(f"/proc/{pid}/schedstat").read_text(encoding="ascii").split()[0]) / 1e9
