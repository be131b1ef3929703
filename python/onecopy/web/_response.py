"""`response`: a response for the framework that handles the current request."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from onecopy.web._head import Headers

if TYPE_CHECKING:
    from onecopy import aio
    from onecopy._core import RowStream

__all__ = ["response"]


def response(
    rowstream: RowStream | aio.RowStream,
    into: Any = None,
    /,
    *,
    filename: str | None = None,
    content_type: str | None = None,
    status: int = 200,
    headers: Headers = (),
) -> Any:
    """Return a response for the framework that handles the current request: Flask, Django,
    Starlette, FastAPI or Falcon.

    Args:
        rowstream: the row stream to send, of ``onecopy`` or ``onecopy.aio``.
        into: only for Falcon: the response object of the responder, whose stream, status and
            headers are set; the result is None.
        filename: the name under which browsers save the response; it may contain characters of any
            script.
        content_type: the media type; by default that of the stream's format.
        status: the HTTP status code of the response.
        headers: additional fields, as pairs or a mapping; they replace default ones with the same
            name.

    Returns:
        The framework's response. If the first chunk is the whole response, it has a Content-Length.

    Raises:
        Error: the query failed before the first rows were ready.
        RuntimeError: no request of a supported framework was found.
        ValueError: a header contains a line end or NUL.

    The response keeps the stream and its connection alive, and releases them when everything was
    sent, when the client disconnects, or after an exception. With a pool, use `Pool.stream`, since
    a block of ``with pool.connection()`` ends before the response is sent.

    Copies: none.
    """
    import onecopy.web as web

    options: dict[str, Any] = {
        "filename": filename,
        "content_type": content_type,
        "status": status,
        "headers": headers,
    }
    if into is not None:
        return web.falcon(into, rowstream, **options)
    return getattr(web, _framework())(rowstream, **options)


def _framework() -> str:
    """Return the framework that handles the current request. Flask and Django are detected by their
    request context, Starlette and FastAPI by the call stack."""
    flask, urls = sys.modules.get("flask"), sys.modules.get("django.urls")
    if flask is not None and flask.has_request_context():
        return "flask"
    # Django sets the URL configuration while it handles a request.
    if urls is not None and urls.get_urlconf() is not None:
        return "django"
    if "starlette.routing" in sys.modules:
        frame = sys._getframe(1)
        while frame is not None:
            # A handler that is not a coroutine runs in a thread of AnyIO.
            if frame.f_globals.get("__name__", "").partition(".")[0] in ("starlette", "fastapi", "anyio"):
                return "starlette"
            frame = frame.f_back  # type: ignore[assignment]
    raise RuntimeError(
        "no request of Flask, Django, Starlette or FastAPI is active here\n"
        "call `onecopy.web.flask`, `django`, `starlette` or `wsgi`; in Falcon pass its response: `response(rows, resp)`"
    )
