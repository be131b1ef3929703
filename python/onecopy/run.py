"""``onecopy run module:app``: a WSGI application from the shell."""

from __future__ import annotations

import argparse
import contextlib
import importlib
import os
import sys
from typing import Any

from onecopy.observe import AccessLog, Metrics
from onecopy.server import Limits, Server

__all__ = ["main"]


def main(arguments: list[str]) -> int:
    """Run ``onecopy run`` with these arguments; return its exit code (0 stopped, 1 failed, 2 usage)."""
    given = _parser().parse_args(arguments)
    sys.path.insert(0, os.path.abspath(given.chdir))
    try:
        app = load(given.app)
    except LoadError as error:
        print(f"onecopy run: {error}", file=sys.stderr)
        return 2
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
    log = AccessLog(given.access_log, given.access_log_format, given.access_log_query) if given.access_log else None
    try:
        metrics = _metrics(given)
        server = Server(app, given.bind, threads=given.threads, limits=limits, access_log=log, metrics=metrics)
        told = _telling(metrics, given.metrics)
    except (OSError, ValueError) as error:
        print(f"onecopy run: {error}", file=sys.stderr)
        return 1
    print(f"onecopy {_version()} serves {given.app} at {server.url} with {given.threads} threads", file=sys.stderr)
    if told is not None:
        print(f"metrics are told at {told.url}metrics", file=sys.stderr)
    sys.stderr.flush()
    with told or contextlib.nullcontext():
        server.run()
    return 0


def _metrics(given: argparse.Namespace) -> Metrics | None:
    """Where this process counts: with others where it was given their descriptor."""
    if given.metrics_fd is not None:
        return Metrics.of_descriptor(given.metrics_fd)
    return Metrics() if given.metrics else None


def _telling(metrics: Metrics | None, bind: str | None) -> Server | None:
    """A server of its own that tells them: the application's clients do not see them."""
    if metrics is None or bind is None:
        return None
    return Server(metrics.app, bind, threads=1, limits=Limits(stop_timeout=1.0, max_connections=32, max_body_bytes=0))


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
    if not callable(found):
        raise LoadError(f"`{name}` is not callable: a WSGI application is a function of environ and start_response")
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
    add("--bind", default="127.0.0.1:8000", metavar="HOST:PORT", help="where to listen; port 0 takes a free one")
    add("--threads", type=int, default=8, metavar="N", help="requests that the application is asked at once")
    add("--chdir", default=".", metavar="FOLDER", help="where modules are looked for first")
    add(
        "--access-log",
        metavar="FILE",
        help="write a line for each request; `-` is standard output, SIGUSR1 opens it anew",
    )
    add("--access-log-format", choices=("common", "combined", "json"), default="common", help="the form of its lines")
    add("--access-log-query", action="store_true", help="with query strings in them, which may hold secrets")
    add("--metrics", metavar="HOST:PORT", help="tell counters for Prometheus there, at /metrics")
    add(
        "--metrics-fd", type=int, metavar="N", help=argparse.SUPPRESS
    )  # The `Metrics` of the process that started this one.
    for name, what in (
        ("header_timeout", "seconds for a request's head"),
        ("body_timeout", "seconds without a byte of a request's body"),
        ("idle_timeout", "seconds between the requests of a connection"),
        ("write_timeout", "seconds in which a client takes no byte"),
        ("stop_timeout", "seconds for requests under way when the server stops"),
    ):
        add(f"--{name.replace('_', '-')}", type=float, default=getattr(default, name), metavar="S", help=what)
    for name, what in (
        ("max_header_bytes", "bytes of a request's head"),
        ("max_headers", "header fields of a request"),
        ("max_body_bytes", "bytes of a request's body"),
        ("max_connections", "connections at once"),
    ):
        add(f"--{name.replace('_', '-')}", type=int, default=getattr(default, name), metavar="N", help=what)
    return parser


def _version() -> str:
    from onecopy._core import __version__

    return __version__
