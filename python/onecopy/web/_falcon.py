"""Falcon, its WSGI and its ASGI application."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

from falcon import Response
from falcon.asgi import Response as AsgiResponse

from onecopy.web._head import Headers, ahead_of, begun, fields

if TYPE_CHECKING:
    from onecopy import aio
    from onecopy._core import RowStream

__all__ = ["falcon"]


class _Chunks:
    """A stream without ``read``, which Falcon would have other servers read small blocks by."""

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
    """Set ``stream``, status and headers of a response of Falcon's.

    In an asynchronous responder the first chunk is waited for here, unless ``await stream.begin()`` stands before it.

    Args, Raises: as `onecopy.web.response`.

    Copies: none.
    """
    core, n_bytes = begun(rowstream)
    head = fields(core, filename, content_type, headers, n_bytes)
    resp.status = status
    resp.set_headers(head)
    if isinstance(resp, AsgiResponse):
        resp.stream = ahead_of(rowstream)
    elif "onecopy.server" in sys.modules:
        resp.stream = core  # onecopy's server runs in this process: its `wsgi.file_wrapper` knows the stream.
    else:
        resp.stream = _Chunks(core)
