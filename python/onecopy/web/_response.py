"""`response`: the framework's answer, whichever framework it is."""

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
    """The answer of the framework in whose request it is called: a response to return from Flask, Django, Starlette or FastAPI.

    Args:
        rowstream: the rows, of ``onecopy`` or ``onecopy.aio``.
        into: for Falcon, the response that it gives the responder: that is set, and nothing returned.
        filename: the browser saves the answer under this name, which may be of any script.
        content_type: in place of that of the stream's format.
        status: the status code.
        headers: further fields, as pairs or a mapping; one of a name that is set here takes its place.

    Returns:
        The framework's response. Where the first chunk is the whole answer it has a Content-Length.

    Raises:
        Error: the query failed before its first rows were there.
        RuntimeError: no framework's request is known here.
        ValueError: a header holds a line end or NUL.

    The response keeps the stream and its connection alive, and lets them go when all is sent, the client has left, or an
    exception ends it. With a pool, use `Pool.stream`: what ``with pool.connection()`` lends is back before the answer is sent.

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
    """The framework in whose request this runs: by its own context where it has one, else by who called."""
    flask, urls = sys.modules.get("flask"), sys.modules.get("django.urls")
    if flask is not None and flask.has_request_context():
        return "flask"
    # Set in the context of each request.
    if urls is not None and urls.get_urlconf() is not None:
        return "django"
    if "starlette.routing" in sys.modules:
        frame = sys._getframe(1)
        while frame is not None:
            # A handler that is no coroutine runs in a thread of AnyIO's.
            if frame.f_globals.get("__name__", "").partition(".")[0] in ("starlette", "fastapi", "anyio"):
                return "starlette"
            frame = frame.f_back  # type: ignore[assignment]
    raise RuntimeError(
        "no request of Flask, Django, Starlette or FastAPI is under way here\n"
        "call `onecopy.web.flask`, `django`, `starlette` or `wsgi`; in Falcon give its response too: `response(rows, resp)`"
    )
