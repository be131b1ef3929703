"""``onecopy run module:app``: a WSGI application from the shell."""

from __future__ import annotations

import argparse
import importlib
import os
import sys
from typing import Any

from onecopy.server import Limits, Server, Tls

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
    try:
        tls = _tls(given.certfile, given.keyfile)
        server = Server(app, given.bind, threads=given.threads, limits=limits, tls=tls, socket_mode=given.socket_mode)
    except (OSError, ValueError) as error:
        print(f"onecopy run: {error}", file=sys.stderr)
        return 1
    print(f"onecopy {_version()} serves {given.app} at {server.url} with {given.threads} threads", file=sys.stderr)
    sys.stderr.flush()
    server.run()
    return 0


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


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="onecopy run",
        description="Serve a WSGI application (PEP 3333) over HTTP/1.1.",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    default = Limits()
    add = parser.add_argument
    add("app", metavar="MODULE:APP", help="where the application is; `MODULE:FACTORY()` is called for it")
    where = "where to listen: `HOST:PORT` (port 0 takes a free one), `unix:PATH` or `fd://N`"
    add("--bind", default="127.0.0.1:8000", metavar="ADDRESS", help=where)
    add("--socket-mode", type=_octal, metavar="MODE", help="permissions of a unix socket, as `660`")
    add("--certfile", metavar="FILE", help="certificates in PEM, the server's own first: the server speaks TLS")
    add("--keyfile", metavar="FILE", help="the certificate's key in PEM; by default it stands in --certfile")
    add("--threads", type=int, default=8, metavar="N", help="requests that the application is asked at once")
    add("--chdir", default=".", metavar="FOLDER", help="where modules are looked for first")
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


def _octal(text: str) -> int:
    return int(text, 8)


def _tls(certfile: str | None, keyfile: str | None) -> Tls | None:
    if certfile is None:
        if keyfile is not None:
            raise ValueError("`--keyfile` is the key of a certificate\ngive its file too: `--certfile FILE`")
        return None
    return Tls(certfile, keyfile or certfile)


def _version() -> str:
    from onecopy._core import __version__

    return __version__
