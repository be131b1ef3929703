"""Django, under WSGI and ASGI."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any, Final

from django.http import StreamingHttpResponse

from onecopy._core import RowStream
from onecopy.web._head import Headers, ahead_of, begun, fields

if TYPE_CHECKING:
    from onecopy import aio

__all__ = ["django"]


class _Response(StreamingHttpResponse):  # type: ignore[misc]  # Django has no types.
    """The stream as it is, on Django's own way for files (``wsgi.file_wrapper``) where the server's wrapper is onecopy's."""

    #: What Django tells the wrapper; a row stream has chunks of its own.
    block_size: Final = 65536

    def __init__(self, stream: RowStream | aio.RowStream, core: RowStream, is_whole: bool, **options: Any) -> None:
        super().__init__(core, **options)
        self._rows, self._core, self._is_whole = stream, core, is_whole

    @property
    def file_to_stream(self) -> Any:
        # Django's handler looks three times: whether there is something, then for what it sets `close` of to the close of the
        # response, then for what it gives the wrapper. A short answer is there already, and needs no wrapper.
        if self._is_whole or self._iterator is not self._core or not self._has_our_wrapper():
            return None
        if "close" not in vars(self):
            return self
        del self.close
        self._core.on_close(self.close)
        return self._core

    def _has_our_wrapper(self) -> bool:
        # Django's handler has put the close of the request among those that the response closes.
        for closer in self._resource_closers:
            environ = getattr(getattr(closer, "__self__", None), "environ", None)
            if isinstance(environ, dict):
                module = getattr(environ.get("wsgi.file_wrapper"), "__module__", None) or ""
                return module.partition(".")[0] == "onecopy"
        return False

    async def __aiter__(self) -> AsyncIterator[bytes]:
        if self._iterator is not self._core:  # A middleware has put its own in front.
            async for part in super().__aiter__():
                yield part
            return
        ahead = ahead_of(self._rows)
        try:
            async for chunk in ahead:
                yield chunk
        finally:
            ahead.stop()


def django(
    rowstream: RowStream | aio.RowStream,
    *,
    filename: str | None = None,
    content_type: str | None = None,
    status: int = 200,
    headers: Headers = (),
) -> StreamingHttpResponse:
    """A streaming response of Django's.

    In an asynchronous view the first chunk is waited for here, unless ``await stream.begin()`` stands before it.

    Args, Raises: as `onecopy.web.response`.

    Copies: none.
    """
    core, n_bytes = begun(rowstream)
    made = _Response(rowstream, core, n_bytes is not None, status=status)
    for name, value in fields(core, filename, content_type, headers, n_bytes):
        made[name] = value
    return made
