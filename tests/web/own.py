"""`apps.all_wsgi` as onecopy's own server is tested with it: what it counted, and what it was given, can be asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import onecopy
from tests.web import apps

_counted = onecopy.ledger()
_given = ""


def app(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
    """Each WSGI application under its name; ``/ledger`` tells what the last one counted, and begins anew."""
    global _counted, _given
    path = environ["PATH_INFO"]
    if path in ("/hello", "/ledger"):
        body = b"hello"
        if path == "/ledger":
            counts = {name: getattr(_counted, name) for name in ("taken", "converted", "copied")}
            body = onecopy.json.dumps({**counts, "given": _given})
            _counted, _given = onecopy.ledger(), ""
        start_response("200 OK", [("Content-Type", "application/json"), ("Content-Length", str(len(body)))])
        return [body]
    wrapped: list[Any] = []

    def file_wrapper(file: Any, *more: Any) -> Any:
        wrapped.append(file)
        return environ["wsgi.file_wrapper"](file, *more)

    file_wrapper.__module__ = environ["wsgi.file_wrapper"].__module__
    with _counted:
        answer = apps.all_wsgi({**environ, "wsgi.file_wrapper": file_wrapper}, start_response)
    _given = type(wrapped[0] if wrapped else answer).__name__
    return answer
