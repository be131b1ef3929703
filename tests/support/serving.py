"""The process of an HTTP server under test, its output, and requests to it.

The server is onecopy's own, or the one that the environment variable `ONECOPY_CONFORM_COMMAND`
starts. The variable is a command line with `{port}` for the port, `{app}` for `module:name` of the
application and `{python}` for the interpreter, for example

    ONECOPY_CONFORM_COMMAND="waitress-serve --listen=127.0.0.1:{port} {app}"
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from tests.support.process import free_port, tail
from tests.support.raw_http import PATIENCE_S, Answer, Line, request

ROOT = Path(__file__).resolve().parents[2]
COMMAND = "ONECOPY_CONFORM_COMMAND"
#: The longest wait for a server to listen, and to end after a signal.
START_S = 60

# Metrics have a separate address, in a separate line.
_AT = re.compile(r"^(?!metrics ).*https?://127\.0\.0\.1:(\d+)", re.MULTILINE)


class Serving:
    """A running server; use it as a context manager, or call ``stop``.

    Args:
        options: additional arguments for onecopy's server; other servers are started exactly as
            their command requires.
        app: `module:name` of the application, importable from the root of the checkout.
        module: arguments after `python -m` for a server that picks a free port and prints it; they
            replace the command.
    """

    def __init__(
        self,
        *options: str,
        app: str = "tests.serve.app:app",
        module: Sequence[str] = (),
        patience_s: float = PATIENCE_S,
    ) -> None:
        self.patience_s = patience_s
        self._log = tempfile.NamedTemporaryFile(prefix="onecopy-serve-", suffix=".log", delete=False)  # noqa: SIM115
        self.log = Path(self._log.name)
        other = os.environ.get(COMMAND)
        port = 0
        if module:
            command = [sys.executable, "-m", *module]
        elif other:
            port = free_port()
            named = {"port": str(port), "app": app, "python": sys.executable}
            command = [word.format_map(named) for word in shlex.split(other)]
        else:
            command = [sys.executable, "-m", "onecopy", "run", app, "--bind", "127.0.0.1:0", *options]
        path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH", "")]))
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=self._log,
            stderr=self._log,
            cwd=ROOT,
            env=os.environ | {"PYTHONPATH": path, "PYTHONUNBUFFERED": "1"},
        )
        self._log.close()
        try:
            self.address = ("127.0.0.1", self._listens(port))
        except BaseException:
            self.stop()
            raise

    def __enter__(self) -> Serving:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _listens(self, port: int) -> int:
        """Waits until the server accepts connections; returns its port."""
        end = time.monotonic() + START_S
        while time.monotonic() < end and self.is_alive():
            if port == 0 and (match := _AT.search(self.said())):
                return int(match[1])
            if port:
                try:
                    Line(("127.0.0.1", port)).close()
                except OSError:
                    pass
                else:
                    return port
            time.sleep(0.02)
        raise RuntimeError(f"the server does not listen; it said:\n{tail(self.log)}")

    def said(self) -> str:
        """Everything that the server has written to standard output and error."""
        return self.log.read_text(encoding="utf-8", errors="replace")

    def is_alive(self) -> bool:
        """Returns true if the server's process runs."""
        return self.process.poll() is None

    def connect(self) -> Line:
        """Opens a new connection to the server."""
        return Line(self.address, self.patience_s)

    def ask(self, path: str, *lines: bytes, method: str = "GET", body: bytes = b"") -> Answer:
        """Sends one request on a new connection; returns the response."""
        with self.connect() as line:
            line.send(request(path, *lines, method=method, body=body))
            return line.answer(method)

    def must_serve(self) -> None:
        """Fails if the server's process has ended or if the server does not respond."""
        assert self.is_alive(), f"the server ended with {self.process.returncode}; it said:\n{tail(self.log)}"
        answer = self.ask("/hello")
        assert (answer.status, answer.body) == (200, b"hello, world")

    def stop(self) -> int:
        """Ends the server with SIGTERM, and with SIGKILL if it does not end; returns its exit
        code."""
        self.process.terminate()
        try:
            code = self.process.wait(timeout=START_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            code = self.process.wait()
        self.log.unlink(missing_ok=True)
        return code
