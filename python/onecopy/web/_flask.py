"""Flask, and what else answers by a response of Werkzeug's."""

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
    """A response of Flask's, passed through to the server (``direct_passthrough``): it is given the stream itself.

    Args, Raises: as `onecopy.web.response`.

    Copies: none.
    """
    stream, n_bytes = begun(rowstream)
    head = fields(stream, filename, content_type, headers, n_bytes)
    return Response(stream, status=status, headers=head, direct_passthrough=True)
