"""Row streams as responses of Falcon's WSGI and ASGI applications."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

from falcon import Response
from falcon.asgi import Response as AsgiResponse

from onecopy.web._head import Headers, begun, fields, prefetched

if TYPE_CHECKING:
    from onecopy import aio
    from onecopy._core import RowStream

__all__ = ["falcon"]


class _Chunks:
    """A row stream without its ``read`` method, because under other servers Falcon would use
    ``read`` to read small blocks."""

    def __init__(self, stream: RowStream) -> None:
        self._stream = stream

    def __iter__(self) -> Iterator[bytes]:
        return self._stream

    def close(self) -> None:
        """Close the stream."""
        self._stream.close()


def falcon(
    resp: Response,
    rowstream: RowStream | aio.RowStream,
    *,
    filename: str | None = None,
    content_type: str | None = None,
    status: int = 200,
    headers: Headers = (),
) -> None:
    """Set ``stream``, status and headers of a response of Falcon.

    This function blocks until the first chunk is filled. In an asynchronous responder, call ``await
    stream.begin()`` before.

    The other arguments and the exceptions are those of `onecopy.web.response`.

    Copies: none.
    """
    core, n_bytes = begun(rowstream)
    head = fields(core, filename, content_type, headers, n_bytes)
    resp.status = status
    resp.set_headers(head)
    if isinstance(resp, AsgiResponse):
        resp.stream = prefetched(rowstream)
    elif "onecopy.server" in sys.modules:
        resp.stream = core  # The server is onecopy's: its `wsgi.file_wrapper` supports the stream.
    else:
        resp.stream = _Chunks(core)
