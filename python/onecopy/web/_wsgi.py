"""Row streams as responses of a plain WSGI application (PEP 3333)."""

from __future__ import annotations

from collections.abc import Callable
from http.client import responses
from typing import TYPE_CHECKING, Any

from onecopy.web._head import Headers, begun, fields

if TYPE_CHECKING:
    from onecopy._core import RowStream

__all__ = ["wsgi"]


def wsgi(
    start_response: Callable[..., Any],
    rowstream: RowStream,
    *,
    filename: str | None = None,
    content_type: str | None = None,
    status: int = 200,
    headers: Headers = (),
) -> RowStream:
    """Call ``start_response``, and return the iterable that the application has to return to the
    server: the stream itself.

    ``start_response`` is called when the first chunk is ready. The other arguments and the
    exceptions are those of `response`.

    Copies: none.
    """
    stream, n_bytes = begun(rowstream)
    head = fields(stream, filename, content_type, headers, n_bytes)
    start_response(f"{status} {responses.get(status, 'Status')}", head)
    return stream
