"""Checks of what a server is given: the application, and the limits on its clients."""

from __future__ import annotations

import inspect
import math
import operator
import sys
from typing import Any

__all__ = ["check_application", "check_limit"]

#: Limits in seconds that are above 0: with 0 no client would be fast enough.
_ABOVE_ZERO = frozenset({"header_timeout", "body_timeout", "write_timeout"})
_FROM_ZERO = frozenset({"idle_timeout", "stop_timeout", "timeout"})
#: The longest time, ten years: a longer one is a mistake.
_LONGEST_S = 315_360_000.0
#: Limits that are whole numbers, and the smallest value of each.
_SMALLEST = {
    "max_header_bytes": 64,
    "max_headers": 1,
    "max_body_bytes": 0,
    "max_body_memory_bytes": 0,
    "max_connections": 1,
}


def check_limit(name: str, value: Any) -> float:
    """The value of a limit, by its name in `onecopy.Limits`, or ``timeout`` of ``onecopy run``.

    Raises:
        ValueError: the value is out of range; the message has the range.
        TypeError: it is not a number, or not a whole one where it has to be.
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
    """Checks that an object can be called as a WSGI application.

    Raises:
        TypeError: it is not callable, or an ASGI application; the message says how to serve that.
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
    """Whether it can be called with scope, receive and send, and not with two values."""
    try:
        signature = inspect.signature(app)
    except (TypeError, ValueError):
        return False  # One of C, which has none.
    return not _takes(signature, 2) and _takes(signature, 3)


def _takes(signature: inspect.Signature, n: int) -> bool:
    try:
        signature.bind(*range(n))
    except TypeError:
        return False
    return True
