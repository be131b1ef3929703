"""`Server` and `serve`: any WSGI application behind onecopy's HTTP/1.1 server (PEP 3333)."""

from __future__ import annotations

import atexit
import contextlib
import os
import threading
import weakref
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

from onecopy import _core
from onecopy._wsgi import check_application, check_limit
from onecopy.observe import AccessLog, Metrics
from onecopy.static import Files

if TYPE_CHECKING:
    from types import TracebackType

__all__ = ["Limits", "Server", "Tls", "serve"]

App = Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]]


class Limits(NamedTuple):
    """What a client may take. Times are in seconds, sizes in bytes."""

    header_timeout: float = 10.0
    """From the first byte of a request's head (or from connecting, a TLS handshake included) to its end; then 408."""
    body_timeout: float = 30.0
    """Without a byte of the request's body; then 408."""
    idle_timeout: float = 60.0
    """Between the requests of a connection; then it is closed."""
    write_timeout: float = 30.0
    """In which the client takes no byte of the answer; then it is cut."""
    stop_timeout: float = 30.0
    """For requests under way when the server is stopped; then they are cut."""
    max_header_bytes: int = 64 << 10
    """Of a request's head; then 431, or 414 for its target."""
    max_headers: int = 100
    """Header fields of a request; then 431."""
    max_body_bytes: int = 1 << 30
    """Of a request's body; then 413."""
    max_body_memory_bytes: int = 1 << 20
    """Of a request's body that waits in memory; longer ones wait in a temporary file."""
    max_connections: int = 50_000
    """At once; then 503. Where the limit of open files permits fewer, further ones wait."""


class Tls(NamedTuple):
    """The files by which a server speaks TLS (1.2 and 1.3), in PEM (RFC 7468). They are read once, when the server is made."""

    certfile: str | os.PathLike[str]
    """The server's certificate, and behind it those that signed it."""
    keyfile: str | os.PathLike[str]
    """Its private key (PKCS#8, PKCS#1 or SEC1), without a password. It may be the same file."""


class Server:
    """A WSGI application behind an HTTP/1.1 server, listening from the moment it is made.

    Args:
        app: a WSGI application (PEP 3333), called from ``threads`` threads at once.
        bind: ``HOST:PORT``; port 0 takes a free one, see `address`. ``unix:PATH``: a unix socket; one that nobody listens at any
            more is replaced, no other file is. ``fd://N``: the descriptor of a socket that listens (TCP or unix), which is
            duplicated.
        threads: requests that the application is asked at once.
        streams: row streams that are filled at once, each by a thread of its own while it is.
        limits: see `Limits`.
        multiprocess: what ``wsgi.multiprocess`` says.
        tls: certificate and key, to be asked by ``https``; without it the server speaks plain HTTP.
        socket_mode: permissions of the file of a unix socket, as of `os.chmod` (``0o660``); by default what the umask leaves.
        access_log: where to write a line for each request: a path (in the common format), or an `AccessLog`.
        metrics: where it counts, for several servers that are told of together; see `Metrics`. By itself it counts for `metrics` alone.

    As a context manager it serves in threads of its own until the block is left:

    >>> def app(environ, start_response):
    ...     start_response("200 OK", [("Content-Type", "text/plain")])
    ...     return [b"hello"]
    >>> import urllib.request
    >>> with onecopy.Server(app, "127.0.0.1:0") as server:
    ...     urllib.request.urlopen(server.url).read()
    b'hello'

    Raises:
        OSError: the address is in use, or is none; a file of `Tls` cannot be read.
        TypeError: ``app`` is not a WSGI application.
        ValueError: an option is out of its range; a file of `Tls` does not hold what it is to hold.
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
            raise ValueError("`threads` and `streams` are at least 1")
        options: dict[str, float] = {"threads": threads, "streams": streams, "multiprocess": multiprocess}
        for name, value in (limits or Limits())._asdict().items():
            options[name] = check_limit(name, value)
        files = None if tls is None else (os.fspath(tls.certfile), os.fspath(tls.keyfile))
        counted = None if metrics is None else metrics._core
        self._scheme = "http" if tls is None else "https"
        # A folder is served without Python.
        served = app._core if type(app) is Files else app
        self._core = _core.Server(served, _address(bind), options, files, socket_mode, _log(access_log), counted)
        self._thread: threading.Thread | None = None
        _servers.add(self)

    @property
    def address(self) -> tuple[str, int] | str:
        """Host and port that are listened at; the path of a unix socket, as a `str`."""
        return self._core.address

    @property
    def url(self) -> str:
        """The address as a URL; ``http+unix://`` and the quoted path for a unix socket, as some clients take it."""
        if isinstance(self.address, str):
            import urllib.parse

            return f"{self._scheme}+unix://{urllib.parse.quote(os.fsencode(self.address), safe='')}/"
        host, port = self.address
        return f"{self._scheme}://[{host}]:{port}/" if ":" in host else f"{self._scheme}://{host}:{port}/"

    def fileno(self) -> int:
        """The descriptor that listens, to be lent to other processes before the server runs (``fd://N`` there).

        Raises:
            RuntimeError: the server runs already, or has ended.
        """
        return self._core.fileno()

    def metrics(self) -> str:
        """What was counted, as text for Prometheus (format 0.0.4); of all servers of its `Metrics`, where it was given some."""
        return self._core.metrics()

    def reopen_access_log(self) -> None:
        """Have the file of the access log opened anew before its next line, after it was moved away. SIGUSR1 does so where SIGTERM stops the
        server. Without an access log nothing happens.
        """
        self._core.reopen_access_log()

    def run(self, *, signals: bool = True) -> None:
        """Serve until `stop` is called; in the main thread SIGINT and SIGTERM stop it too (a second one cuts requests), unless
        ``signals`` is false."""
        self._core.run(signals and threading.current_thread() is threading.main_thread())

    def start(self) -> None:
        """Serve in threads of its own."""
        if self._thread is not None:
            raise RuntimeError("the server was started before")
        self._thread = threading.Thread(target=self._core.run, args=(False,), name="onecopy-server", daemon=True)
        self._thread.start()

    def stop(self, *, now: bool = False, idle_grace: float = 0.0) -> None:
        """Stop: idle connections at once, requests under way get `Limits.stop_timeout`; with ``now`` they are cut.

        ``idle_grace`` is for a server whose place at the socket another process has taken: so many seconds idle connections may
        still ask, and the answer says that it is the last. A client that was about to ask sees no reset.
        Where the server runs in threads of its own, their end is waited for.
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
    """Serve a WSGI application until SIGINT or SIGTERM; see `Server` for the options."""
    Server(app, bind, **options).run()


def _address(bind: str) -> tuple[str, int] | str | int:
    if bind.startswith("unix:") and len(bind) > 5:
        return bind[5:]
    if bind.startswith("fd://") and bind[5:].isascii() and bind[5:].isdigit():
        return int(bind[5:])
    host, colon, port = bind.rpartition(":")
    if not colon or not port.isascii() or not port.isdigit() or int(port) > 65535:
        raise ValueError(
            f"`{bind}` is not an address\nwrite `HOST:PORT`, for example `127.0.0.1:8000`, `unix:PATH` or `fd://N`"
        )
    return host.strip("[]") or "0.0.0.0", int(port)


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
            "`access_log` is not a path or `AccessLog`\ngive the name of a file, or `-` for standard output"
        )
    return 1 if file == "-" else file, form, query


_servers: weakref.WeakSet[Server] = weakref.WeakSet()


@atexit.register
def _stop_all() -> None:
    for server in [*_servers]:
        with contextlib.suppress(Exception):
            if server._thread is not None:
                server.stop(now=True)
