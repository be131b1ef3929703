"""What is seen of a server from outside: what it says, its access log, and its metrics for Prometheus."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable, Iterable
from typing import Any, Literal, NamedTuple

from onecopy import _core

__all__ = ["AccessLog", "Metrics", "tell"]


def tell(line: str, who: str = "onecopy run: ") -> None:
    """A line on stderr, if there is somebody to read it."""
    with contextlib.suppress(OSError, ValueError):
        # In one piece: other processes write there too.
        sys.stderr.write(f"{who}{line}\n")
        sys.stderr.flush()


class AccessLog(NamedTuple):
    """Where a server writes a line for each request, and how. A path instead of it stands for the common format."""

    file: str | os.PathLike[str] = "-"
    """Made if it is not there, and appended to; ``-`` is standard output. SIGUSR1 has it opened anew, where SIGTERM stops the server."""
    format: Literal["common", "combined", "json"] = "common"
    """``common``: Apache's ``host - - [time] "request line" status bytes``; ``combined``: that with ``"Referer" "User-Agent"``;
    ``json``: an object a line. Times are those at which requests came, in UTC."""
    query: bool = False
    """Whether query strings are written: they may hold secrets."""


class Metrics:
    """Counters of one server or several, as text for Prometheus.

    They lie in memory of a descriptor, which other processes can be given: each counts in a place of its own, and the text is the sum.
    What servers counted that have ended stays in it; their connections and requests under way do not.

    Args:
        servers: how many servers may live at once that count here.

    >>> metrics = onecopy.Metrics()
    >>> def app(environ, start_response):
    ...     start_response("200 OK", [("Content-Type", "text/plain")])
    ...     return [b"hello"]
    >>> with onecopy.Server(app, "127.0.0.1:0", metrics=metrics):
    ...     "onecopy_http_servers 1" in metrics.text()
    True

    Raises:
        OSError: no memory of this kind can be had.
    """

    def __init__(self, servers: int = 64) -> None:
        self._core = _core.Metrics(servers)

    @classmethod
    def of_descriptor(cls, number: int) -> Metrics:
        """The metrics of another process, by the number of their descriptor here, which stays the caller's.

        Raises:
            OSError: it is not open.
            ValueError: it is none of metrics, or of another version of onecopy.
        """
        metrics = cls.__new__(cls)
        metrics._core = _core.Metrics.of_descriptor(number)
        return metrics

    @property
    def descriptor(self) -> int:
        """The number of their descriptor, for ``pass_fds`` of `subprocess`; open for as long as this object lives."""
        return self._core.descriptor

    def text(self) -> str:
        """The sum of all servers, in the text format 0.0.4."""
        return self._core.text()

    def app(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        """A WSGI application that answers with the text at ``/metrics``: for a server of its own, which the public does not reach."""
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
