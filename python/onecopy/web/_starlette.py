"""Row streams as responses of Starlette and FastAPI."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from onecopy.web._head import Headers, begun, fields, prefetched

if TYPE_CHECKING:
    from onecopy import aio
    from onecopy._core import RowStream
    from onecopy._prefetch import Prefetcher
    from onecopy.aio._stream import LoopChunks

__all__ = ["starlette"]


class _Response(StreamingResponse):
    """A streaming response that starts when its first chunk is ready, and always closes the
    stream."""

    def __init__(self, chunks: Prefetcher | LoopChunks, status: int, head: list[tuple[str, str]]) -> None:
        super().__init__(chunks, status_code=status)
        for name, value in head:
            self.headers.append(name, value)
        self._prefetcher = chunks

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            # Nothing was sent yet, so an error raised here becomes an error page.
            n_bytes = await self._prefetcher.begin()
            if n_bytes is not None:
                self.headers.setdefault("content-length", str(n_bytes))
            if scope.get("method") == "HEAD":
                await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
                await send({"type": "http.response.body", "body": b""})
                return
            await super().__call__(scope, receive, send)
        finally:
            self._prefetcher.stop()


def starlette(
    rowstream: RowStream | aio.RowStream,
    *,
    filename: str | None = None,
    content_type: str | None = None,
    status: int = 200,
    headers: Headers = (),
) -> StreamingResponse:
    """Return a streaming response for Starlette and FastAPI. The chunks of a blocking stream are
    prefetched by a thread; a stream of `onecopy.aio` fills its chunks itself.

    In a handler that is a plain ``def``, this function fills the first chunk. In an ``async def``,
    it does not wait: the first chunk is filled when Starlette calls the response, and an error of
    the query is passed to the application's exception handlers.

    The arguments and the exceptions are those of `onecopy.web.response`.

    Copies: none.
    """
    n_bytes = None
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        _, n_bytes = begun(rowstream)
    return _Response(prefetched(rowstream), status, fields(rowstream, filename, content_type, headers, n_bytes))
