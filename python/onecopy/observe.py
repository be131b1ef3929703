"""Observability of a server: log lines, the access log, and metrics for Prometheus."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable, Iterable
from typing import Any, Literal, NamedTuple

from onecopy import _core

__all__ = ["AccessLog", "Metrics"]


def log(line: str, prefix: str = "onecopy run: ") -> None:
    """Write a line to stderr, if stderr is open."""
    with contextlib.suppress(OSError, ValueError):
        # One write for the whole line, since other processes write to stderr too.
        sys.stderr.write(f"{prefix}{line}\n")
        sys.stderr.flush()


class AccessLog(NamedTuple):
    """The destination and format of a server's access log. If a path is passed instead of an
    `AccessLog`, the log has the common format."""

    file: str | os.PathLike[str] = "-"
    """The file, which is created if it is missing, and appended to; ``-`` is standard output. In
    programs in which SIGTERM stops the server, SIGUSR1 reopens the file."""
    format: Literal["common", "combined", "json"] = "common"
    """``common``: Apache's ``host - - [time] "request line" status bytes``; ``combined``: the same
    with ``"Referer" "User-Agent"``; ``json``: one object per line. Times are the arrival of the
    request, in UTC."""
    query: bool = False
    """If true, query strings are logged; they may contain secrets."""


class Metrics:
    """The counters of one or more servers, which can be exported as text for Prometheus.

    The counters are in shared memory, whose file descriptor can be passed to other processes. Each
    server increments its own counters, and the text contains their sums. After a server has ended,
    the sums still include its counters, but not its gauges (connections and active requests).

    Args:
        servers: the maximum number of servers that may use these counters at the same time.

    >>> metrics = onecopy.Metrics()
    >>> def app(environ, start_response):
    ...     start_response("200 OK", [("Content-Type", "text/plain")])
    ...     return [b"hello"]
    >>> with onecopy.Server(app, "127.0.0.1:0", metrics=metrics):
    ...     "onecopy_http_servers 1" in metrics.text()
    True

    Raises:
        OSError: the shared memory cannot be created.
    """

    def __init__(self, servers: int = 64) -> None:
        self._core = _core.Metrics(servers)

    @classmethod
    def of_descriptor(cls, number: int) -> Metrics:
        """Open the metrics that another process has created, given the number of their file
        descriptor. The descriptor stays open and belongs to the caller.

        Raises:
            OSError: the descriptor is not open.
            ValueError: the descriptor is not that of a `Metrics`, or belongs to another version of
                onecopy.
        """
        metrics = cls.__new__(cls)
        metrics._core = _core.Metrics.of_descriptor(number)
        return metrics

    @property
    def descriptor(self) -> int:
        """The number of the descriptor of the shared memory, for ``pass_fds`` of `subprocess`; the
        descriptor is open while this object exists."""
        return self._core.descriptor

    def text(self) -> str:
        """Return the sum of the counters of all servers, in Prometheus's text format 0.0.4."""
        return self._core.text()

    def app(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        """A WSGI application that serves the counters as text at ``/metrics``. It is intended for a
        separate server that only the monitoring system can access."""
        status, kind, body = "200 OK", "text/plain; version=0.0.4; charset=utf-8", ""
        if environ["PATH_INFO"] != "/metrics":
            status, kind, body = "404 Not Found", "text/plain", "metrics are at /metrics\n"
        elif environ["REQUEST_METHOD"] not in ("GET", "HEAD"):
            status, kind, body = "405 Method Not Allowed", "text/plain", "metrics are read by GET\n"
        content = (body or self.text()).encode()
        fields = [("Content-Type", kind), ("Content-Length", str(len(content)))]
        if status.startswith("405"):
            fields.append(("Allow", "GET, HEAD"))
        start_response(status, fields)
        return [content]
