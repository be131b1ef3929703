"""The head of an answer: its fields, by the format of the stream and what the caller asks for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Final, TypeAlias
from urllib.parse import quote

if TYPE_CHECKING:
    from onecopy import aio
    from onecopy._core import RowStream
    from onecopy.ahead import Ahead

__all__ = ["CONTENT_TYPES", "Headers", "ahead_of", "begun", "disposition", "fields"]

Headers: TypeAlias = Mapping[str, str] | Iterable[tuple[str, str]]

#: By `RowStream.format`.
CONTENT_TYPES: Final = {
    "json": "application/json",
    "ndjson": "application/x-ndjson",
    "csv": "text/csv; charset=utf-8",
    "bson": "application/bson",
}
#: `attr-char` of RFC 5987, but for letters and digits.
_ATTRIBUTE: Final = "!#$&+-.^_`|~"
#: What a path, a quoted string or a line is made of.
_IN_NO_NAME: Final = {ord(c): "_" for c in '/\\"\x7f'} | dict.fromkeys(range(32), "_")


def fields(
    stream: RowStream | aio.RowStream,
    filename: str | None,
    content_type: str | None,
    headers: Headers,
    n_bytes: int | None,
) -> list[tuple[str, str]]:
    """The fields of the head; those of the caller stand in place of those of ours by the same name.

    Raises:
        ValueError: one of the caller's holds a line end or NUL.
    """
    given = list(headers.items()) if isinstance(headers, Mapping) else list(headers)
    made = [("Content-Type", content_type or CONTENT_TYPES[stream.format])]
    if filename is not None:
        made.append(("Content-Disposition", disposition(filename)))
    # A browser must not take rows that hold HTML for a page.
    made.append(("X-Content-Type-Options", "nosniff"))
    if n_bytes is not None:
        made.append(("Content-Length", str(n_bytes)))
    names = {name.lower() for name, _ in given}
    whole = [field for field in made if field[0].lower() not in names] + given
    for name, value in whole:
        if any(c in f"{name}{value}" for c in "\r\n\0"):
            raise ValueError(f"the field `{name!r}` holds a line end or NUL")
    return whole


def disposition(filename: str) -> str:
    """A Content-Disposition that saves under this name: RFC 6266, with the name in UTF-8 (RFC 5987) where it is not plain ASCII.

    >>> disposition("cities.csv")
    'attachment; filename="cities.csv"'
    >>> disposition("Städte 50%.csv")
    'attachment; filename="St_dte 50_.csv"; filename*=UTF-8\\'\\'St%C3%A4dte%2050%25.csv'
    """
    name = filename.translate(_IN_NO_NAME)
    # Some browsers decode a percent sign here, too.
    plain = "".join(c if c.isascii() and c != "%" else "_" for c in name)
    value = f'attachment; filename="{plain}"'
    if plain != name:
        value += f"; filename*=UTF-8''{quote(name.encode('utf-8', 'replace'), safe=_ATTRIBUTE)}"
    return value


def begun(stream: RowStream | aio.RowStream) -> tuple[RowStream, int | None]:
    """The stream behind, its first chunk filled, and the length of the whole answer where that is known.

    Raises:
        Error: the statement failed.
        TypeError: it is no row stream.
    """
    from onecopy._core import RowStream

    core = stream if isinstance(stream, RowStream) else getattr(stream, "sync", None)
    if not isinstance(core, RowStream):
        raise TypeError(
            f"`{type(stream).__name__}` is no row stream\ngive what `cursor.json()`, `ndjson()`, `csv()` or `bson()` gives"
        )
    return core, core.begin()


def ahead_of(stream: RowStream | aio.RowStream) -> Ahead:
    """The chunks of a stream for an event loop."""
    from onecopy._core import RowStream
    from onecopy.ahead import Ahead

    return Ahead(stream) if isinstance(stream, RowStream) else stream._ahead()
