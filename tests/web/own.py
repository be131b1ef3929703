"""The applications of `apps` with a path `/ledger`, for tests with onecopy's own server and
uvicorn.

`/ledger` returns the ledger's counts, and the type of the bodies that the server received.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import onecopy
from tests.web import apps

_counted = onecopy.ledger()
_given = ""


def _told() -> bytes:
    """The ledger's counts and the types of bodies since the last call, as JSON."""
    global _counted, _given
    counts = {name: getattr(_counted, name) for name in ("taken", "converted", "copied")}
    body = onecopy.json.dumps({**counts, "given": _given})
    _counted, _given = onecopy.ledger(), ""
    return body


def app(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
    """Passes a request to `apps.all_wsgi`; ``/ledger`` returns the counts since its last
    request."""
    global _given
    path = environ["PATH_INFO"]
    if path in ("/hello", "/ledger"):
        body = _told() if path == "/ledger" else b"hello"
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


async def asgi(scope: Any, receive: Any, send: Any) -> None:
    """Passes a request to `apps.all_asgi`; ``/ledger`` returns the counts since its last
    request."""
    if scope["type"] != "http":
        return
    if scope["path"] == "/ledger":
        body = _told()
        fields = [(b"content-length", str(len(body)).encode())]
        await send({"type": "http.response.start", "status": 200, "headers": fields})
        await send({"type": "http.response.body", "body": body})
        return

    async def seen(message: Any) -> None:
        global _given
        if message.get("body"):
            _given = " ".join(sorted({*_given.split(), type(message["body"]).__name__}))
        await send(message)

    with _counted:
        await apps.all_asgi(scope, receive, seen)
