"""`WorkerProcess`: starts a worker process and sends it commands, with a time limit."""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import TracebackType
from typing import Any

__all__ = ["EngineFailed", "WorkerProcess"]

_CHILD = Path(__file__).with_name("child.py")
#: Seconds after which a process that should end is killed.
_PATIENCE_S = 2.0


class EngineFailed(Exception):
    """Raised if an engine has crashed, raised an exception, or not answered within the time limit.

    ``kind`` is `crashed`, `timeout`, `missing` or `error`. ``answer`` is the worker's answer that
    describes the exception, if there is one.
    """

    def __init__(self, kind: str, message: str, answer: dict[str, Any] | None = None) -> None:
        super().__init__(message)
        self.kind = kind
        self.answer = answer or {}


class WorkerProcess:
    """A process that runs one engine. It has its own process group, so Ctrl-C in a terminal sends
    SIGINT only to the command, which then ends its workers."""

    def __init__(self, database: dict[str, Any], core: int | None, time_limit_s: float) -> None:
        self._first: dict[str, Any] = {"database": database, "core": core}
        self._time_limit_s = time_limit_s
        self._pending = b""
        self._answers, theirs = os.pipe()
        try:
            self._process = subprocess.Popen(
                [sys.executable, str(_CHILD), str(theirs), str(os.getpid())],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                pass_fds=[theirs],
                # Hashes of text are compared between processes, so all of them use the same seed.
                env=os.environ | {"PYTHONHASHSEED": "0"},
                start_new_session=True,
            )
        except BaseException:
            os.close(self._answers)
            raise
        finally:
            os.close(theirs)
        self._send(json.dumps(sys.path))

    def __enter__(self) -> WorkerProcess:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if kind is None:
            self.close()
        else:
            self.kill()

    def call(self, do: str, **arguments: Any) -> dict[str, Any]:
        """Send a command to the process, and return the answer.

        Raises:
            EngineFailed: the engine has failed. After a crash or a timeout the process has ended.
        """
        self._send(json.dumps(self._first | {"do": do} | arguments))
        self._first = {}
        line = self._receive()
        answer: dict[str, Any] = json.loads(line)
        if "error" in answer:
            raise EngineFailed("missing" if answer.get("is_missing") else "error", answer["error"], answer)
        return answer

    def close(self) -> None:
        """Wait until the process has closed its connection and ended. Kill the process if it does
        not end."""
        if self._answers < 0:
            return
        assert self._process.stdin is not None
        with contextlib.suppress(OSError):
            self._process.stdin.close()
        try:
            self._process.wait(timeout=_PATIENCE_S)
        except subprocess.TimeoutExpired:
            pass
        finally:
            self.kill()

    def kill(self) -> None:
        """Kill the process and its children, and wait for its end."""
        if self._answers < 0:
            return
        # The group exists as long as the process or one of its children does.
        with contextlib.suppress(OSError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        assert self._process.stdin is not None
        with contextlib.suppress(OSError):
            self._process.stdin.close()
        os.close(self._answers)
        self._answers = -1

    def _send(self, line: str) -> None:
        assert self._process.stdin is not None
        # A process that has ended is reported by `_receive`.
        with contextlib.suppress(OSError):
            self._process.stdin.write(line.encode() + b"\n")
            self._process.stdin.flush()

    def _receive(self) -> bytes:
        """Return the next line that the process has written to its pipe, within the time limit."""
        end = time.monotonic() + self._time_limit_s
        with selectors.DefaultSelector() as selector:
            selector.register(self._answers, selectors.EVENT_READ)
            while b"\n" not in self._pending:
                left = end - time.monotonic()
                if left <= 0 or not selector.select(left):
                    self.kill()
                    raise EngineFailed("timeout", f"no answer within {self._time_limit_s:g} s")
                part = os.read(self._answers, 1 << 16)
                if not part:
                    raise EngineFailed("crashed", self._describe_end())
                self._pending += part
        line, _, self._pending = self._pending.partition(b"\n")
        return line

    def _describe_end(self) -> str:
        """Wait for the end of a process that has closed its pipe, and describe how it ended."""
        try:
            code = self._process.wait(timeout=self._time_limit_s)
        except subprocess.TimeoutExpired:
            code = -signal.SIGKILL
        self.kill()
        if code >= 0:
            return f"ended with exit code {code}"
        try:
            return f"crashed ({signal.Signals(-code).name})"
        except ValueError:
            return f"crashed (signal {-code})"
