"""``onecopy run module:app``: a WSGI application from the shell."""

from __future__ import annotations

import argparse
import contextlib
import importlib
import os
import signal
import sys
from collections.abc import Callable, Iterator
from typing import Any

from onecopy import _core, systemd
from onecopy._wsgi import check_application, check_limit
from onecopy.observe import AccessLog, Metrics, tell
from onecopy.server import Limits, Server, Tls

__all__ = ["main"]

#: Where it listens if nothing else is said.
_BIND = "127.0.0.1:8000"


def main(arguments: list[str]) -> int:
    """Run ``onecopy run`` with these arguments; return its exit code (0 stopped, 1 failed, 2 usage)."""
    # Options whose help says what their absence means: it would say "None" otherwise.
    absent = argparse.Namespace(bind=None, workers=None, as_worker=None, pid=None)
    given = _parser().parse_args(arguments, absent)
    sys.path.insert(0, os.path.abspath(given.chdir))
    try:
        with _starting():
            _core.raise_open_files(given.max_connections)
        if given.as_worker:
            return _work(given, *given.as_worker)
        with _pid_file(given.pid):
            return _supervise(given, arguments) if given.workers else _serve(given)
    except LoadError as error:
        tell(str(error))
        return 2
    except _StartError as error:
        tell(str(error))
        return 1


def _serve(given: argparse.Namespace) -> int:
    """Serve in this process."""
    bind = _bind(given)
    metrics = _metrics(given)
    server = _server(load(given.app), bind, given, log=_log(given), metrics=metrics)
    told = _telling(metrics, given.metrics)
    for number in (signal.SIGINT, signal.SIGTERM):
        # Until `run` listens to them itself: whoever reads that it serves may stop it at once.
        signal.signal(number, lambda *_: server.stop())
    threads = f"{given.threads} threads for {_connections(server, given)}"
    tell(f"onecopy {_version()} serves {given.app} at {server.url} with {threads}", "")
    systemd.notify("READY=1")
    with told:
        server.run()
    systemd.notify("STOPPING=1")
    return 0


def _supervise(given: argparse.Namespace, arguments: list[str]) -> int:
    """Have worker processes serve; the application is loaded in them alone."""
    # Loaded by whoever has workers: a server by itself does without.
    from onecopy.workers import Supervisor

    workers = "1 worker" if given.workers == 1 else f"{given.workers} workers"
    listener = _server(_not_here, _bind(given), given)
    threads = f"{given.threads} threads, each for {_connections(listener, given)}"
    title = f"onecopy {_version()} serves {given.app} at {{url}} with {workers} of {threads}"
    # At a reload twice as many live at once, and their number can be raised.
    metrics = Metrics(4 * given.workers + 64) if given.metrics else None
    told = _telling(metrics, given.metrics)
    supervisor = Supervisor(
        listener,
        [*_again(arguments)],
        given.workers,
        given.stop_timeout,
        title,
        metrics,
        timeout=given.timeout,
    )
    del listener
    with told:
        return supervisor.run()


def _work(given: argparse.Namespace, listener: int, line: int) -> int:
    """Serve on a supervisor's socket."""
    from onecopy.workers import Tie

    os.set_inheritable(listener, False)
    tie = Tie(line, given.stop_timeout, given.timeout)
    metrics = _metrics(given)
    server = _server(load(given.app), f"fd://{listener}", given, log=_log(given), metrics=metrics, multiprocess=True)
    os.close(listener)
    tie.serve(server)
    return 0


def _connections(server: Server, given: argparse.Namespace) -> str:
    """The number of connections in force, and the reason where it is not the one that was set."""
    n = server._core.max_connections
    if n >= given.max_connections:
        return f"up to {n} connections"
    return f"up to {n} connections (the limit of open files, `ulimit -Hn`, permits no more)"


def _bind(given: argparse.Namespace) -> str:
    """Where to listen; a socket that a service manager hands over is taken where nothing else is said."""
    if given.bind == "systemd" or (given.bind is None and systemd.is_activated()):
        with _starting():
            return f"fd://{systemd.take_socket()}"
    return given.bind or _BIND


def _server(
    app: Callable[..., Any],
    bind: str,
    given: argparse.Namespace,
    *,
    log: AccessLog | None = None,
    metrics: Metrics | None = None,
    multiprocess: bool = False,
) -> Server:
    limits = Limits(
        header_timeout=given.header_timeout,
        body_timeout=given.body_timeout,
        idle_timeout=given.idle_timeout,
        write_timeout=given.write_timeout,
        stop_timeout=given.stop_timeout,
        max_header_bytes=given.max_header_bytes,
        max_headers=given.max_headers,
        max_body_bytes=given.max_body_bytes,
        max_connections=given.max_connections,
    )
    # A worker's socket is a descriptor: its file was made by the supervisor.
    mode = None if bind.startswith("fd://") else given.socket_mode
    with _starting():
        tls = _tls(given.certfile, given.keyfile)
        return Server(
            app,
            bind,
            threads=given.threads,
            limits=limits,
            tls=tls,
            socket_mode=mode,
            access_log=log,
            metrics=metrics,
            multiprocess=multiprocess,
        )


def _not_here(environ: dict[str, Any], start_response: Any) -> list[bytes]:
    raise RuntimeError("the supervisor answers no requests")


def _again(arguments: list[str]) -> Iterator[str]:
    """The command line of this process: interpreter, its options, the script or `-m onecopy`, `run` and what is behind it."""
    yield sys.executable
    n_ours = len(arguments) + 1
    if sys.orig_argv[-n_ours:] == ["run", *arguments]:
        yield from sys.orig_argv[1:]
    else:
        yield from ("-m", "onecopy", "run", *arguments)


class _StartError(Exception):
    """It cannot listen, or not with these options."""


@contextlib.contextmanager
def _starting() -> Iterator[None]:
    try:
        yield
    except (OSError, ValueError) as error:
        raise _StartError(str(error)) from None


@contextlib.contextmanager
def _pid_file(path: str | None) -> Iterator[None]:
    """Keeps this process's id in a file."""
    if path is None:
        yield
        return
    with _starting(), open(path, "w", encoding="ascii") as file:
        file.write(f"{os.getpid()}\n")
    try:
        yield
    finally:
        with contextlib.suppress(OSError):
            os.unlink(path)


def _log(given: argparse.Namespace) -> AccessLog | None:
    return AccessLog(given.access_log, given.access_log_format, given.access_log_query) if given.access_log else None


def _metrics(given: argparse.Namespace) -> Metrics | None:
    """Where this process counts: with others where it was given their descriptor."""
    if given.metrics_fd is None:
        return Metrics() if given.metrics else None
    metrics = Metrics.of_descriptor(given.metrics_fd)
    os.close(given.metrics_fd)
    return metrics


def _telling(metrics: Metrics | None, bind: str | None) -> contextlib.AbstractContextManager[object]:
    """A server of its own that tells them: the application's clients do not see them."""
    if metrics is None or bind is None:
        return contextlib.nullcontext()
    limits = Limits(stop_timeout=1.0, max_connections=32, max_body_bytes=0)
    with _starting():
        server = Server(metrics.app, bind, threads=1, limits=limits)
    tell(f"metrics are told at {server.url}metrics", "")
    return server


class LoadError(Exception):
    """No application stands where one was said to."""


def load(name: str) -> Any:
    """The application that ``module:attribute`` names; ``module:factory()`` is called for it.

    Raises:
        LoadError: the module cannot be imported, or has no such attribute.
    """
    module_name, _, attribute = name.partition(":")
    attribute = attribute or "app"
    is_factory = attribute.endswith("()")
    try:
        found: Any = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{module_name}.".startswith(f"{error.name}."):
            raise
        raise LoadError(f"there is no module `{error.name}` in {os.getcwd()}\nname it as `import` does") from None
    for part in attribute.removesuffix("()").split("."):
        try:
            found = getattr(found, part)
        except AttributeError:
            raise LoadError(f"`{module_name}` has no `{part}`\nwrite `module:name of the application`") from None
    if is_factory:
        found = found()
    try:
        check_application(found, name)
    except TypeError as error:
        raise LoadError(str(error)) from None
    return found


class _Help(argparse.ArgumentDefaultsHelpFormatter):
    """Tells defaults, where there are any."""

    def _get_help_string(self, action: argparse.Action) -> str | None:
        return action.help if action.default in (None, False) else super()._get_help_string(action)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="onecopy run",
        description="Serve a WSGI application (PEP 3333) over HTTP/1.1.",
        formatter_class=_Help,
    )
    default = Limits()
    add = parser.add_argument
    add("app", metavar="MODULE:APP", help="where the application is; `MODULE:FACTORY()` is called for it")
    where = f"where to listen: HOST:PORT (port 0: a free one), unix:PATH, fd://N, or systemd (default: its socket if it gave one, else {_BIND})"
    add("--bind", default=argparse.SUPPRESS, metavar="ADDRESS", help=where)
    add("--socket-mode", type=_octal, metavar="MODE", help="permissions of a unix socket, as `660`")
    add("--certfile", metavar="FILE", help="certificates in PEM, the server's own first: the server speaks TLS")
    add("--keyfile", metavar="FILE", help="the certificate's key in PEM; by default it stands in --certfile")
    threads = "requests that the application handles at once"
    add("--threads", type=_count("threads"), default=8, metavar="N", help=threads)
    served = (
        "processes that serve; SIGHUP starts new ones from the current files (default: this one process, no reload)"
    )
    add("--workers", type=_count("processes"), default=argparse.SUPPRESS, metavar="N", help=served)
    hangs = (
        "with --workers: seconds without progress of any thread of a worker, after which it is "
        "killed and replaced; 0: never"
    )
    add("--timeout", type=_limit("timeout", float), default=30.0, metavar="S", help=hangs)
    add("--as-worker", type=_descriptors, default=argparse.SUPPRESS, help=argparse.SUPPRESS)
    add("--pid", default=argparse.SUPPRESS, metavar="FILE", help="where to keep the id of this process")
    add("--chdir", default=".", metavar="FOLDER", help="where modules are looked for first")
    add(
        "--access-log",
        metavar="FILE",
        help="write a line for each request; `-` is standard output, SIGUSR1 opens it anew",
    )
    add("--access-log-format", choices=("common", "combined", "json"), default="common", help="the form of its lines")
    add("--access-log-query", action="store_true", help="with query strings in them, which may hold secrets")
    add("--metrics", metavar="HOST:PORT", help="tell counters for Prometheus there, at /metrics")
    # The `Metrics` of the process that started this one.
    add("--metrics-fd", type=int, metavar="N", help=argparse.SUPPRESS)
    for name, what in (
        ("header_timeout", "seconds for a request's head"),
        ("body_timeout", "seconds without a byte of a request's body"),
        ("idle_timeout", "seconds between the requests of a connection"),
        ("write_timeout", "seconds in which a client takes no byte"),
        ("stop_timeout", "seconds for requests under way when the server stops"),
    ):
        kind = _limit(name, float)
        add(_option(name), type=kind, default=getattr(default, name), metavar="S", help=what)
    for name, what in (
        ("max_header_bytes", "bytes of a request's head"),
        ("max_headers", "header fields of a request"),
        ("max_body_bytes", "bytes of a request's body"),
        ("max_connections", "connections at once"),
    ):
        kind = _limit(name, int)
        add(_option(name), type=kind, default=getattr(default, name), metavar="N", help=what)
    return parser


def _option(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def _limit(name: str, kind: Callable[[str], float]) -> Callable[[str], float]:
    """Reads the value of a limit."""

    def read(text: str) -> float:
        try:
            value = kind(text)
        except ValueError:
            raise argparse.ArgumentTypeError(f"`{text}` is not a number") from None
        try:
            return check_limit(name, value)
        except ValueError as error:
            raise argparse.ArgumentTypeError(str(error)) from None

    return read


def _octal(text: str) -> int:
    return int(text, 8)


def _tls(certfile: str | None, keyfile: str | None) -> Tls | None:
    if certfile is None:
        if keyfile is not None:
            raise ValueError("`--keyfile` is the key of a certificate\ngive its file too: `--certfile FILE`")
        return None
    return Tls(certfile, keyfile or certfile)


def _count(of: str) -> Callable[[str], int]:
    """Reads a number of ``of`` from 1."""

    def read(text: str) -> int:
        if not text.isascii() or not text.isdigit() or int(text) < 1:
            raise argparse.ArgumentTypeError(f"`{text}` is not a number of {of}\nwrite 1 or more")
        return int(text)

    return read


def _descriptors(text: str) -> list[int]:
    return [int(number) for number in text.split(",")]


def _version() -> str:
    from onecopy._core import __version__

    return __version__
