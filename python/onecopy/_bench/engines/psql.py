"""The command `psql`, which writes CSV by COPY."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

from onecopy._bench.database import Database
from onecopy._bench.engines.job import Job
from onecopy._bench.sink import Sink

__all__ = ["open_job"]


def open_job(database: Database, sql: str, way: str, encoder: str) -> Job:
    """Start `psql`, which stays connected and executes one COPY per run."""
    with _service_file(database.keywords) as (descriptor, path):
        # The connection string is in no argument and no environment variable: other users can
        # list the arguments.
        process = subprocess.Popen(
            ["psql", "--no-psqlrc", "--quiet", "--no-password", "--tuples-only", "--no-align", "service=onecopy"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env=os.environ | {"PGSERVICEFILE": path},
            pass_fds=[descriptor],
        )
        assert process.stdin is not None and process.stdout is not None
        lines, answers = process.stdin, process.stdout

        def execute(command: str) -> None:
            """Send a command to `psql`, and wait until the command has ended."""
            lines.write(f"{command}\n\\echo :ERROR :SQLSTATE\n")
            lines.flush()
            said = []
            for line in answers:
                if line.startswith("false 00000"):
                    return
                if line.startswith("true "):
                    break
                said.append(line)
            raise RuntimeError("".join(said).strip() or f"psql has ended with exit code {process.wait()}")

        execute("set default_transaction_read_only = on;")

    def run(sink: Sink) -> None:
        execute(f"copy (\n{sql}\n) to stdout (format csv, header) \\g '{sink.path}'")

    return Job(run, note="COPY, output to a file", pid=process.pid)


@contextmanager
def _service_file(keywords: dict[str, str]) -> Iterator[tuple[int, str]]:
    """Yields a libpq service file in memory, which only this process and its child processes can
    read."""
    descriptor = os.memfd_create("service")
    try:
        os.fchmod(descriptor, 0o600)
        text = "[onecopy]\n" + "".join(f"{key}={value}\n" for key, value in keywords.items())
        os.write(descriptor, text.encode())
        yield descriptor, f"/proc/self/fd/{descriptor}"
    finally:
        os.close(descriptor)
