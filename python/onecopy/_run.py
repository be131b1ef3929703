"""``onecopy run module:app``: serve a WSGI application from the command line."""

from __future__ import annotations

import argparse
import contextlib
import importlib
import os
import re
import signal
import sys
from collections.abc import Callable, Iterator
from typing import Any

from onecopy import _core, _systemd
from onecopy._wsgi import address_of, check_application, check_limit
from onecopy.observe import AccessLog, Metrics, log
from onecopy.server import Limits, Server, Tls

__all__ = ["main"]

#: The default of `--bind`.
_BIND = "127.0.0.1:8000"


def main(arguments: list[str]) -> int:
    """Run ``onecopy run`` with these arguments; return its exit code (0 stopped, 1 failed, 2 usage)."""
    # The help of these options states their default. The formatter would show it as "None".
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
        log(str(error))
        return 2
    except _StartError as error:
        log(str(error))
        return error.code


def _serve(given: argparse.Namespace) -> int:
    """Serve in this process, without workers."""
    bind = _bind(given)
    metrics = _metrics(given)
    server = _server(load(given.app, given.chdir), bind, given, log=_log(given), metrics=metrics)
    served = _metrics_server(metrics, given.metrics)
    for number in (signal.SIGINT, signal.SIGTERM):
        # The handlers are set before `run` sets its own: a supervisor may stop the process as soon
        # as it reports that it is ready.
        signal.signal(number, lambda *_: server.stop())
    threads = f"{given.threads} threads for {_connections(server, given)}"
    log(f"onecopy {_version()} serves {given.app} at {server.url} with {threads}", "")
    _systemd.notify("READY=1")
    with served:
        server.run()
    _systemd.notify("STOPPING=1")
    return 0


def _supervise(given: argparse.Namespace, arguments: list[str]) -> int:
    """Run worker processes; the application is loaded only in them."""
    # The module is imported here, because a server without workers does not need it.
    from onecopy._supervisor import Supervisor

    workers = "1 worker" if given.workers == 1 else f"{given.workers} workers"
    listener = _server(_not_here, _bind(given), given)
    threads = f"{given.threads} threads, each for {_connections(listener, given)}"
    title = f"onecopy {_version()} serves {given.app} at {{url}} with {workers} of {threads}"
    # During a reload there are twice as many workers, and signals can increase their number.
    metrics = Metrics(4 * given.workers + 64) if given.metrics else None
    served = _metrics_server(metrics, given.metrics)
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
    with served:
        return supervisor.run()


def _work(given: argparse.Namespace, listener: int, line: int) -> int:
    """Serve as a worker process, on the socket that the supervisor has passed."""
    from onecopy._supervisor import Tie

    os.set_inheritable(listener, False)
    tie = Tie(line, given.stop_timeout, given.timeout)
    metrics = _metrics(given)
    server = _server(
        load(given.app, given.chdir), f"fd://{listener}", given, log=_log(given), metrics=metrics, multiprocess=True
    )
    os.close(listener)
    tie.serve(server)
    return 0


def _connections(server: Server, given: argparse.Namespace) -> str:
    """Return a text that states the maximum number of connections of the server. If this number is
    below the configured one, the text contains the reason."""
    n = server._core.max_connections
    if n >= given.max_connections:
        return f"up to {n} connections"
    return f"up to {n} connections (the limit of open files, `ulimit -Hn`, permits no more)"


def _bind(given: argparse.Namespace) -> str:
    """Return the address to listen on. Without `--bind`, this is the socket that the service
    manager has passed, if any."""
    if given.bind == "systemd" or (given.bind is None and _systemd.is_activated()):
        with _starting():
            return f"fd://{_systemd.take_socket()}"
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
    # A worker gets its socket as a descriptor. The mode was set when the supervisor created the
    # socket.
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
    raise RuntimeError("the supervisor does not handle requests")


def _again(arguments: list[str]) -> Iterator[str]:
    """Return a command line that runs the same command as this process: the interpreter with its
    options, the script or `-m onecopy`, `run`, and the arguments."""
    yield sys.executable
    n_ours = len(arguments) + 1
    if sys.orig_argv[-n_ours:] == ["run", *arguments]:
        yield from sys.orig_argv[1:]
    else:
        yield from ("-m", "onecopy", "run", *arguments)


class _StartError(Exception):
    """Raised if the server cannot listen (exit code 1), or an option is invalid (exit code 2)."""

    def __init__(self, message: str, code: int) -> None:
        super().__init__(message)
        self.code = code


#: The errors of an invalid option, or of a file that an option names. An error of the address, for
#: example because another process listens there, is an `OSError` of no subclass.
_WRONG_ARGUMENTS = (ValueError, FileNotFoundError, IsADirectoryError, NotADirectoryError, PermissionError)


@contextlib.contextmanager
def _starting() -> Iterator[None]:
    try:
        yield
    except (OSError, ValueError) as error:
        raise _StartError(str(error), 2 if isinstance(error, _WRONG_ARGUMENTS) else 1) from None


@contextlib.contextmanager
def _pid_file(path: str | None) -> Iterator[None]:
    """Write the id of this process to a file, which is deleted when the `with` block ends."""
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
    """Return the metrics that this process updates: those of the descriptor that the supervisor has
    passed, or new metrics if the options request them. Otherwise return `None`."""
    if given.metrics_fd is None:
        return Metrics() if given.metrics else None
    metrics = Metrics.of_descriptor(given.metrics_fd)
    os.close(given.metrics_fd)
    return metrics


def _metrics_server(metrics: Metrics | None, bind: str | None) -> contextlib.AbstractContextManager[object]:
    """Start a separate server for the metrics, so that the application's clients cannot read
    them."""
    if metrics is None or bind is None:
        return contextlib.nullcontext()
    limits = Limits(stop_timeout=1.0, max_connections=32, max_body_bytes=0)
    with _starting():
        server = Server(metrics.app, bind, threads=1, limits=limits)
    log(f"metrics are served at {server.url}metrics", "")
    return server


class LoadError(Exception):
    """Raised if the application was not found."""


def load(name: str, folder: str) -> Any:
    """Return the application that ``module:attribute`` names. For ``module:factory()``, call the
    factory and return its result. Modules are searched first in ``folder``. An error message for a
    missing module contains the path of ``folder``.

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
        where = os.path.abspath(folder)
        raise LoadError(f"there is no module `{error.name}` in {where}\nwrite its name as for `import`") from None
    for part in attribute.removesuffix("()").split("."):
        try:
            found = getattr(found, part)
        except AttributeError:
            raise LoadError(
                f"`{module_name}` has no attribute `{part}`\nwrite `module:name of the application`"
            ) from None
    if is_factory:
        found = found()
    try:
        check_application(found, name)
    except TypeError as error:
        raise LoadError(str(error)) from None
    return found


class _Help(argparse.ArgumentDefaultsHelpFormatter):
    """A help formatter that shows the defaults of options that have one."""

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
    add("app", metavar="MODULE:APP", help="the application to serve; `MODULE:FACTORY()` calls a factory for it")
    where = (
        "address to listen on: HOST:PORT (port 0: any free port), unix:PATH, fd://N, or systemd "
        f"(default: the socket that systemd passed, otherwise {_BIND})"
    )
    add("--bind", type=_bind_address, default=argparse.SUPPRESS, metavar="ADDRESS", help=where)
    add("--socket-mode", type=_octal, metavar="MODE", help="permissions of a unix socket, such as `660`")
    add("--certfile", metavar="FILE", help="PEM file with the server's certificate, then its chain; enables TLS")
    add("--keyfile", metavar="FILE", help="PEM file with the certificate's private key; default: --certfile")
    threads = "number of requests that the application handles at once"
    add("--threads", type=_count("threads"), default=8, metavar="N", help=threads)
    served = "number of worker processes; SIGHUP replaces them and reloads the code (default: one process, no reload)"
    add("--workers", type=_count("processes"), default=argparse.SUPPRESS, metavar="N", help=served)
    hangs = (
        "with --workers: seconds after which a worker without progress in any thread is killed and replaced; 0: never"
    )
    add("--timeout", type=_limit("timeout", float), default=30.0, metavar="S", help=hangs)
    add("--as-worker", type=_descriptors, default=argparse.SUPPRESS, help=argparse.SUPPRESS)
    add("--pid", default=argparse.SUPPRESS, metavar="FILE", help="file for the id of this process")
    add("--chdir", type=_folder, default=".", metavar="FOLDER", help="folder that is searched for modules first")
    add(
        "--access-log",
        metavar="FILE",
        help="log a line per request to this file; `-` is standard output, SIGUSR1 reopens the file",
    )
    add(
        "--access-log-format", choices=("common", "combined", "json"), default="common", help="format of the access log"
    )
    add("--access-log-query", action="store_true", help="log query strings too, which may contain secrets")
    add(
        "--metrics",
        type=_bind_address,
        metavar="HOST:PORT",
        help="serve counters for Prometheus on this address, at /metrics",
    )
    # The descriptor of the supervisor's `Metrics`.
    add("--metrics-fd", type=int, metavar="N", help=argparse.SUPPRESS)
    for name, what in (
        ("header_timeout", "seconds until the head of a request is complete"),
        ("body_timeout", "seconds without a byte of the request's body"),
        ("idle_timeout", "seconds between requests on a connection"),
        ("write_timeout", "seconds in which a client accepts no byte"),
        ("stop_timeout", "seconds for active requests when the server stops"),
    ):
        kind = _limit(name, float)
        add(_option(name), type=kind, default=getattr(default, name), metavar="S", help=what)
    for name, what in (
        ("max_header_bytes", "bytes of the head of a request"),
        ("max_headers", "header fields of a request"),
        ("max_body_bytes", "bytes of the body of a request"),
        ("max_connections", "number of concurrent connections"),
    ):
        kind = _limit(name, int)
        add(_option(name), type=kind, default=getattr(default, name), metavar="N", help=what)
    return parser


def _option(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def _limit(name: str, kind: Callable[[str], float]) -> Callable[[str], float]:
    """Return a function that parses the value of the option for the limit ``name``."""

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


def _folder(text: str) -> str:
    if not os.path.exists(text):
        raise argparse.ArgumentTypeError(f"there is no folder `{text}`")
    if not os.path.isdir(text):
        raise argparse.ArgumentTypeError(f"`{text}` is not a folder")
    return text


def _bind_address(text: str) -> str:
    if text != "systemd":
        try:
            address_of(text)
        except ValueError as error:
            raise argparse.ArgumentTypeError(str(error)) from None
    return text


def _octal(text: str) -> int:
    if not re.fullmatch("(0o)?[0-7]{1,4}", text):
        raise argparse.ArgumentTypeError(f"`{text}` is not an octal number, such as `660`")
    return int(text, 8)


def _tls(certfile: str | None, keyfile: str | None) -> Tls | None:
    if certfile is None:
        if keyfile is not None:
            raise ValueError("`--keyfile` requires the certificate\nadd its file: `--certfile FILE`")
        return None
    return Tls(certfile, keyfile or certfile)


def _count(of: str) -> Callable[[str], int]:
    """Return a parser for an integer of at least 1. ``of`` is the noun for the error message, such
    as "workers"."""

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
