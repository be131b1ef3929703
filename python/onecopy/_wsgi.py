"""Validates arguments of the server: the application, the address, and the limits for clients."""

from __future__ import annotations

import inspect
import math
import operator
import sys
from typing import Any

__all__ = ["address_of", "check_application", "check_limit"]

#: Limits in seconds that must be greater than 0, since no client could meet a limit of 0.
_ABOVE_ZERO = frozenset({"header_timeout", "body_timeout", "write_timeout"})
_FROM_ZERO = frozenset({"idle_timeout", "stop_timeout", "timeout"})
#: The largest limit in seconds, ten years; a larger value is assumed to be a mistake.
_LONGEST_S = 315_360_000.0
#: The smallest value of each limit that is an integer.
_SMALLEST = {
    "max_header_bytes": 64,
    "max_headers": 1,
    "max_body_bytes": 0,
    "max_body_memory_bytes": 0,
    "max_connections": 1,
}


def check_limit(name: str, value: Any) -> float:
    """Check the value of a limit of `onecopy.Limits`, or of ``timeout`` of ``onecopy run``; return
    the value.

    Raises:
        ValueError: the value is out of range; the message states the range.
        TypeError: the value is not a number, or not an integer where one is required.
    """
    if name in _SMALLEST:
        number = operator.index(value)
        if not _SMALLEST[name] <= number <= sys.maxsize:
            raise ValueError(f"`{name}` is {value}\nset it to a whole number from {_SMALLEST[name]}")
        return number
    seconds = float(value)
    is_in_range = seconds > 0 if name in _ABOVE_ZERO else name in _FROM_ZERO and seconds >= 0
    if not is_in_range or not math.isfinite(seconds) or seconds > _LONGEST_S:
        least = "above 0" if name in _ABOVE_ZERO else "from 0"
        remedy = f"set it to a number of seconds {least}, at most ten years"
        raise ValueError(f"`{name}` is {value}\n{remedy}")
    return seconds


def check_application(app: Any, name: str = "app") -> None:
    """Check that an object is callable as a WSGI application.

    Raises:
        TypeError: the object is not callable, or is an ASGI application; the message names servers
            for ASGI.
    """
    if not callable(app):
        wanted = "a WSGI application is a function of environ and start_response"
        raise TypeError(f"`{name}` is not callable: {wanted}")
    call = app if inspect.isroutine(app) or inspect.isclass(app) else type(app).__call__
    is_coroutine = inspect.iscoroutinefunction(app) or inspect.iscoroutinefunction(call)
    if is_coroutine or _has_three_parameters(app):
        raise TypeError(
            f"`{name}` is an ASGI application, and onecopy serves WSGI applications\n"
            f"serve it with `uvicorn {name}` or `granian --interface asgi {name}`, "
            "or make it a WSGI application: `a2wsgi.ASGIMiddleware(app)`"
        )


def _has_three_parameters(app: Any) -> bool:
    """Return true if the object can be called with three arguments (ASGI's scope, receive and
    send), but not with two."""
    try:
        signature = inspect.signature(app)
    except (TypeError, ValueError):
        return False  # A callable written in C without a signature.
    return not _takes(signature, 2) and _takes(signature, 3)


def _takes(signature: inspect.Signature, n: int) -> bool:
    try:
        signature.bind(*range(n))
    except TypeError:
        return False
    return True


def address_of(bind: str) -> tuple[str, int] | str | int:
    """Parse an address to listen on. Return a host and port, the path of a unix socket, or the
    number of a file descriptor.

    Raises:
        ValueError: the text is not an address.
    """
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
