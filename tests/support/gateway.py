"""The process of a gateway under test, its stderr, and requests to it."""

from __future__ import annotations

import http.client
import json
import queue
import re
import subprocess
import threading
import time
from collections.abc import Callable
from typing import Any


class Gateway:
    """A running gateway process, and the lines that it has written to stderr."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        self.said: list[str] = []
        self._lines: queue.Queue[str | None] = queue.Queue()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        address = self.wait_for(r"serves at http://([\d.]+:\d+)/").group(1)
        self.address = address

    def _read(self) -> None:
        assert self.process.stderr is not None
        with self.process.stderr:
            for line in self.process.stderr:
                self._lines.put(line)
        self._lines.put(None)

    def stop(self) -> int:
        """Ends the gateway with SIGTERM; returns its exit code."""
        self.process.terminate()
        code = self.process.wait(timeout=60)
        self._reader.join()
        while (line := self._lines.get()) is not None:
            self.said.append(line)
        return code

    def wait_for(self, pattern: str) -> re.Match[str]:
        """Waits for the next line on stderr that matches; fails if the gateway ends or prints
        nothing for 60 s."""
        while (line := self._lines.get(timeout=60)) is not None:
            self.said.append(line)
            if match := re.search(pattern, line):
                return match
        raise AssertionError(f"no line matches {pattern}; it said {self.said}")

    def get(self, path: str) -> tuple[int, bytes]:
        """Sends a GET request; returns status and body. Raises if the response is aborted."""
        connection = http.client.HTTPConnection(self.address, timeout=60)
        connection.request("GET", path)
        response = connection.getresponse()
        body = response.read()
        connection.close()
        return response.status, body

    def free_slot(self, path: str) -> bytes:
        """Requests `path` until the status is not 503; returns the body, whose status must be 200.

        It fails if all slots remain busy for a minute.
        """
        end = time.monotonic() + 60
        while time.monotonic() < end:
            status, body = self.get(path)
            if status != 503:
                assert status == 200, body
                return body
        raise AssertionError(f"no slot came free; it said {self.said}")

    def problem(self, path: str, status: int) -> dict[str, Any]:
        """The JSON body of an error response, which must have the given status."""
        got, body = self.get(path)
        assert got == status, body
        problem: dict[str, Any] = json.loads(body)
        assert problem["status"] == status
        return problem


#: The fixture `serve`: from a database and queries (TOML) to a context manager with the gateway.
Start = Callable[..., Any]
