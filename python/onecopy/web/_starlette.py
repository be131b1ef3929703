"""Starlette and FastAPI."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from onecopy.ahead import Ahead
from onecopy.web._head import Headers, ahead_of, begun, fields

if TYPE_CHECKING:
    from onecopy import aio
    from onecopy._core import RowStream

__all__ = ["starlette"]


class _Response(StreamingResponse):
    """A streaming response that begins when its first chunk is there, and gives the stream up whatever happens."""

    def __init__(self, ahead: Ahead, status: int, head: list[tuple[str, str]]) -> None:
        super().__init__(ahead, status_code=status)
        for name, value in head:
            self.headers.append(name, value)
        self._ahead = ahead

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            # A failure in here becomes an error page: nothing was sent.
            n_bytes = await self._ahead.begin()
            if n_bytes is not None:
                self.headers.setdefault("content-length", str(n_bytes))
            if scope.get("method") == "HEAD":
                await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
                await send({"type": "http.response.body", "body": b""})
                return
            await super().__call__(scope, receive, send)
        finally:
            self._ahead.stop()


def starlette(
    rowstream: RowStream | aio.RowStream,
    *,
    filename: str | None = None,
    content_type: str | None = None,
    status: int = 200,
    headers: Headers = (),
) -> StreamingResponse:
    """A streaming response for Starlette and FastAPI, whose chunks a thread fills ahead.

    In a handler that is a plain ``def`` the first chunk is filled here. On the event loop nothing waits: there it is filled
    when the response is called, and a failure goes to the application's exception handlers from there.

    Args, Raises: as `onecopy.web.response`.

    Copies: none.
    """
    n_bytes = None
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        _, n_bytes = begun(rowstream)
    return _Response(ahead_of(rowstream), status, fields(rowstream, filename, content_type, headers, n_bytes))
