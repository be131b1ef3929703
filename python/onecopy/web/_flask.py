"""Row streams as responses of Flask, and of other frameworks that use Werkzeug's response."""

from __future__ import annotations

from typing import TYPE_CHECKING

from flask import Response

from onecopy.web._head import Headers, begun, fields

if TYPE_CHECKING:
    from onecopy._core import RowStream

__all__ = ["flask"]


def flask(
    rowstream: RowStream,
    *,
    filename: str | None = None,
    content_type: str | None = None,
    status: int = 200,
    headers: Headers = (),
) -> Response:
    """Return a response of Flask that passes the stream itself to the server
    (``direct_passthrough``).

    The arguments and the exceptions are those of `onecopy.web.response`.

    Copies: none.
    """
    stream, n_bytes = begun(rowstream)
    head = fields(stream, filename, content_type, headers, n_bytes)
    return Response(stream, status=status, headers=head, direct_passthrough=True)
