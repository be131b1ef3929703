"""The header fields of a response, for the format of the row stream and the caller's options."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Final, TypeAlias
from urllib.parse import quote

if TYPE_CHECKING:
    from onecopy import aio
    from onecopy._core import RowStream
    from onecopy._prefetch import Prefetcher
    from onecopy.aio._stream import LoopChunks

__all__ = ["CONTENT_TYPES", "Headers", "begun", "disposition", "fields", "prefetched"]

Headers: TypeAlias = Mapping[str, str] | Iterable[tuple[str, str]]

#: The media types of the row streams, by `RowStream.format`.
CONTENT_TYPES: Final = {
    "json": "application/json",
    "ndjson": "application/x-ndjson",
    "csv": "text/csv; charset=utf-8",
    "bson": "application/bson",
}
#: The characters that RFC 5987 permits unescaped (`attr-char`), except letters and digits.
_ATTRIBUTE: Final = "!#$&+-.^_`|~"
#: Replaces characters that have a meaning in paths, quoted strings or lines.
_IN_NO_NAME: Final = {ord(c): "_" for c in '/\\"\x7f'} | dict.fromkeys(range(32), "_")


def fields(
    stream: RowStream | aio.RowStream,
    filename: str | None,
    content_type: str | None,
    headers: Headers,
    n_bytes: int | None,
) -> list[tuple[str, str]]:
    """Return the header fields of a response. A field that the caller has given replaces the
    default field with the same name.

    Raises:
        ValueError: a field of the caller's contains a line end or NUL.
    """
    given = list(headers.items()) if isinstance(headers, Mapping) else list(headers)
    made = [("Content-Type", content_type or CONTENT_TYPES[stream.format])]
    if filename is not None:
        made.append(("Content-Disposition", disposition(filename)))
    # Browsers must not render rows that contain HTML as a page.
    made.append(("X-Content-Type-Options", "nosniff"))
    if n_bytes is not None:
        made.append(("Content-Length", str(n_bytes)))
    names = {name.lower() for name, _ in given}
    whole = [field for field in made if field[0].lower() not in names] + given
    for name, value in whole:
        if any(c in f"{name}{value}" for c in "\r\n\0"):
            raise ValueError(f"the field `{name!r}` contains a line end or NUL")
    return whole


def disposition(filename: str) -> str:
    """Return the value of Content-Disposition for this file name (RFC 6266). A name that is not
    plain ASCII is added in UTF-8 (RFC 5987).

    >>> disposition("cities.csv")
    'attachment; filename="cities.csv"'
    >>> disposition("Städte 50%.csv")
    'attachment; filename="St_dte 50_.csv"; filename*=UTF-8\\'\\'St%C3%A4dte%2050%25.csv'
    """
    name = filename.translate(_IN_NO_NAME)
    # Some browsers decode percent signs in the parameter `filename` too.
    plain = "".join(c if c.isascii() and c != "%" else "_" for c in name)
    value = f'attachment; filename="{plain}"'
    if plain != name:
        value += f"; filename*=UTF-8''{quote(name.encode('utf-8', 'replace'), safe=_ATTRIBUTE)}"
    return value


def begun(stream: RowStream | aio.RowStream) -> tuple[RowStream, int | None]:
    """Fill the first chunk of a stream. Return two values: the underlying stream, and the length of
    the whole response in bytes (None if it is not known).

    Raises:
        Error: the statement failed.
        TypeError: the object is not a row stream.
    """
    from onecopy._core import RowStream

    core = stream if isinstance(stream, RowStream) else getattr(stream, "sync", None)
    if not isinstance(core, RowStream):
        raise TypeError(
            f"`{type(stream).__name__}` is not a row stream\n"
            "pass a result of `cursor.json()`, `ndjson()`, `csv()` or `bson()`"
        )
    return core, core.begin()


def prefetched(stream: RowStream | aio.RowStream) -> Prefetcher | LoopChunks:
    """Return an asynchronous iterator over the chunks of a stream, for an event loop."""
    from onecopy._core import RowStream
    from onecopy._prefetch import Prefetcher

    return Prefetcher(stream) if isinstance(stream, RowStream) else stream._chunks()
