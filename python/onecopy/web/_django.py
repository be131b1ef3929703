"""Row streams as responses of Django, under WSGI and ASGI."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any, Final

from django.http import StreamingHttpResponse

from onecopy._core import RowStream
from onecopy.web._head import Headers, begun, fields, prefetched

if TYPE_CHECKING:
    from onecopy import aio

__all__ = ["django"]


class _Response(StreamingHttpResponse):  # type: ignore[misc]  # Django has no types.
    """A response that passes its row stream to onecopy's server, in the way in which a file is
    passed by ``wsgi.file_wrapper``. Other servers iterate over the chunks."""

    #: Django passes this number to the wrapper. It has no effect, since a row stream has its own
    #: chunk size.
    block_size: Final = 65536

    def __init__(self, stream: RowStream | aio.RowStream, core: RowStream, is_whole: bool, **options: Any) -> None:
        super().__init__(core, **options)
        self._rows, self._core, self._is_whole = stream, core, is_whole

    @property
    def file_to_stream(self) -> Any:
        # Django's handler reads this three times: to check it, to set its `close` to that of the
        # response, and to pass it to the wrapper. A short response is complete already, and needs
        # no wrapper.
        if self._is_whole or self._iterator is not self._core or not self._has_our_wrapper():
            return None
        if "close" not in vars(self):
            return self
        del self.close
        self._core.on_close(self.close)
        return self._core

    def _has_our_wrapper(self) -> bool:
        # Django's handler has added the `close` of the request to the functions that close the
        # response.
        for closer in self._resource_closers:
            environ = getattr(getattr(closer, "__self__", None), "environ", None)
            if isinstance(environ, dict):
                module = getattr(environ.get("wsgi.file_wrapper"), "__module__", None) or ""
                return module.partition(".")[0] == "onecopy"
        return False

    async def __aiter__(self) -> AsyncIterator[bytes]:
        if self._iterator is not self._core:  # A middleware has wrapped the content.
            async for part in super().__aiter__():
                yield part
            return
        chunks = prefetched(self._rows)
        try:
            async for chunk in chunks:
                yield chunk
        finally:
            chunks.stop()


def django(
    rowstream: RowStream | aio.RowStream,
    *,
    filename: str | None = None,
    content_type: str | None = None,
    status: int = 200,
    headers: Headers = (),
) -> StreamingHttpResponse:
    """Return a streaming response of Django.

    This function blocks until the first chunk is filled. In an asynchronous view, call ``await
    stream.begin()`` before.

    The other arguments and the exceptions are those of `onecopy.web.response`.

    Copies: none.
    """
    core, n_bytes = begun(rowstream)
    made = _Response(rowstream, core, n_bytes is not None, status=status)
    for name, value in fields(core, filename, content_type, headers, n_bytes):
        made[name] = value
    return made
