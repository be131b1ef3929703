"""`Server` and `serve`: serve a WSGI application (PEP 3333) with onecopy's HTTP/1.1 server."""

from __future__ import annotations

import atexit
import contextlib
import os
import threading
import weakref
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

from onecopy import _core
from onecopy._wsgi import address_of, check_application, check_limit
from onecopy.observe import AccessLog, Metrics
from onecopy.static import Files

if TYPE_CHECKING:
    from types import TracebackType

__all__ = ["Limits", "Server", "Tls", "serve"]

App = Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]]


class Limits(NamedTuple):
    """The limits that a `Server` applies to its clients. Times are in seconds, sizes in bytes."""

    header_timeout: float = 10.0
    """The time for the head of a request, from its first byte (or from connecting, including a TLS
    handshake). A request that exceeds it gets status 408."""
    body_timeout: float = 30.0
    """The time without a byte of a request's body. A request that exceeds it gets status 408."""
    idle_timeout: float = 60.0
    """The time between requests on a connection. A connection that exceeds it is closed."""
    write_timeout: float = 30.0
    """The time in which the client accepts no byte of the response. A response that exceeds it is
    aborted."""
    stop_timeout: float = 30.0
    """The time that active requests have when the server is stopped. Then they are aborted."""
    max_header_bytes: int = 64 << 10
    """The largest size of the head of a request. A larger head gets status 431, or 414 if the
    target is too long."""
    max_headers: int = 100
    """The largest number of header fields of a request. A request with more gets status 431."""
    max_body_bytes: int = 1 << 30
    """The largest size of the body of a request. A larger body gets status 413."""
    max_body_memory_bytes: int = 1 << 20
    """The largest size of a request body that is kept in memory. A larger body is stored in a
    temporary file."""
    max_connections: int = 50_000
    """The largest number of concurrent connections. A further connection gets status 503. If the
    limit of open files is lower, further connections wait."""


class Tls(NamedTuple):
    """The files of the certificate and the key for TLS 1.2 and 1.3, in PEM (RFC 7468). The files
    are read once, when the server is created."""

    certfile: str | os.PathLike[str]
    """The file with the server's certificate, followed by its chain."""
    keyfile: str | os.PathLike[str]
    """The file with the private key (PKCS#8, PKCS#1 or SEC1), not encrypted. It may be the file of
    the certificate."""


class Server:
    """An HTTP/1.1 server for a WSGI application. It listens as soon as it is created.

    Args:
        app: a WSGI application (PEP 3333), called by up to ``threads`` threads concurrently.
        bind: ``HOST:PORT``; port 0 picks a free one, see `address`. ``unix:PATH``: a unix socket; a
            stale socket at that path is replaced, any other file is an error. ``fd://N``: the
            descriptor of a listening socket (TCP or unix), which is duplicated.
        threads: the maximum number of requests that the application handles concurrently.
        streams: the maximum number of row streams that are filled concurrently, each in its own
            thread.
        limits: see `Limits`.
        multiprocess: the value of ``wsgi.multiprocess``.
        tls: certificate and key, to serve ``https``; by default plain HTTP.
        socket_mode: permissions of a unix socket's file, as for `os.chmod` (``0o660``); by default
            the umask applies.
        access_log: the access log: a path (in the common format), or an `AccessLog`.
        metrics: a `Metrics` with counters that several servers share; by default the server has its
            own counters. `Server.metrics` returns the counters in both cases.

    As a context manager it serves in background threads until the block ends:

    >>> def app(environ, start_response):
    ...     start_response("200 OK", [("Content-Type", "text/plain")])
    ...     return [b"hello"]
    >>> import urllib.request
    >>> with onecopy.Server(app, "127.0.0.1:0") as server:
    ...     urllib.request.urlopen(server.url).read()
    b'hello'

    Raises:
        OSError: the address is in use or invalid; a file of `Tls` cannot be read.
        TypeError: ``app`` is not a WSGI application.
        ValueError: an option is out of range; a file of `Tls` does not contain a certificate or a
            key.
    """

    def __init__(
        self,
        app: App,
        bind: str = "127.0.0.1:8000",
        *,
        threads: int = 8,
        streams: int = 16,
        limits: Limits | None = None,
        multiprocess: bool = False,
        tls: Tls | None = None,
        socket_mode: int | None = None,
        access_log: AccessLog | str | os.PathLike[str] | None = None,
        metrics: Metrics | None = None,
    ) -> None:
        check_application(app)
        if threads < 1 or streams < 1:
            raise ValueError("`threads` and `streams` must be at least 1")
        options: dict[str, float] = {"threads": threads, "streams": streams, "multiprocess": multiprocess}
        for name, value in (limits or Limits())._asdict().items():
            options[name] = check_limit(name, value)
        files = None if tls is None else (os.fspath(tls.certfile), os.fspath(tls.keyfile))
        counted = None if metrics is None else metrics._core
        self._scheme = "http" if tls is None else "https"
        # A `Files` object is served without Python code.
        served = app._core if type(app) is Files else app
        self._core = _core.Server(served, address_of(bind), options, files, socket_mode, _log(access_log), counted)
        self._thread: threading.Thread | None = None
        _servers.add(self)

    @property
    def address(self) -> tuple[str, int] | str:
        """The host and port of the listening socket; for a unix socket, its path as a `str`."""
        return self._core.address

    @property
    def url(self) -> str:
        """The address as a URL. For a unix socket the URL is ``http+unix://`` followed by the
        percent-encoded path, a form that some clients accept."""
        if isinstance(self.address, str):
            import urllib.parse

            return f"{self._scheme}+unix://{urllib.parse.quote(os.fsencode(self.address), safe='')}/"
        host, port = self.address
        return f"{self._scheme}://[{host}]:{port}/" if ":" in host else f"{self._scheme}://{host}:{port}/"

    def fileno(self) -> int:
        """Return the file descriptor of the listening socket; available only before the server
        runs. Other processes can share the socket with ``bind="fd://N"``.

        Raises:
            RuntimeError: the server runs already, or has stopped.
        """
        return self._core.fileno()

    def metrics(self) -> str:
        """Return the counters as text for Prometheus (format 0.0.4). If the server shares a
        `Metrics`, the text contains the sums over all its servers."""
        return self._core.metrics()

    def reopen_access_log(self) -> None:
        """Reopen the file of the access log before its next line, for log rotation. The signal
        SIGUSR1 does the same if `run` was called in the main thread with ``signals``. Without an
        access log this does nothing.
        """
        self._core.reopen_access_log()

    def run(self, *, signals: bool = True) -> None:
        """Serve until `stop` is called. In the main thread, SIGINT and SIGTERM stop the server too,
        unless ``signals`` is false. A second signal aborts active requests."""
        self._core.run(signals and threading.current_thread() is threading.main_thread())

    def start(self) -> None:
        """Serve requests in background threads, and return immediately."""
        if self._thread is not None:
            raise RuntimeError("the server was already started")
        self._thread = threading.Thread(target=self._core.run, args=(False,), name="onecopy-server", daemon=True)
        self._thread.start()

    def stop(self, *, now: bool = False, idle_grace: float = 0.0) -> None:
        """Stop the server. Idle connections are closed immediately, and active requests may
        continue for `Limits.stop_timeout` seconds. With ``now``, active requests are aborted
        instead.

        ``idle_grace`` is a number of seconds, for a server whose listening socket another process
        has taken over. During this time the server still answers requests on idle connections, and
        closes each connection after its response. A client that is about to send a request is
        therefore not disconnected. If the server runs in background threads, `stop` waits until
        they have ended.
        """
        self._core.stop(now, idle_grace)
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join()

    def __enter__(self) -> Server:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.stop()


def serve(app: App, bind: str = "127.0.0.1:8000", **options: Any) -> None:
    """Serve a WSGI application until SIGINT or SIGTERM; for the options see `Server`."""
    Server(app, bind, **options).run()


def _log(
    access_log: AccessLog | str | os.PathLike[str] | None,
) -> tuple[str | os.PathLike[str] | int, str, bool] | None:
    if access_log is None:
        return None
    if not isinstance(access_log, AccessLog):
        access_log = AccessLog(access_log)
    file, form, query = access_log
    if not isinstance(file, (str, os.PathLike)):
        raise TypeError(
            "`access_log` is not a path or an `AccessLog`\npass the name of a file, or `-` for standard output"
        )
    return 1 if file == "-" else file, form, query


_servers: weakref.WeakSet[Server] = weakref.WeakSet()


@atexit.register
def _stop_all() -> None:
    for server in [*_servers]:
        with contextlib.suppress(Exception):
            if server._thread is not None:
                server.stop(now=True)
