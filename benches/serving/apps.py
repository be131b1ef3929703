"""The applications of the server benchmark: the same pages for WSGI and for ASGI."""

from __future__ import annotations

import functools
import time
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

PLAIN = ("Content-Type", "text/plain")
HELLO = b"hello, world"
CHUNK = b"x" * 1024
#: The folder of the files that nginx and our server serve, the file of 100 MB, and the 1 MiB for
#: Range requests.
FILES = Path(__file__).resolve().parents[1] / ".data" / "nginx" / "files"
LARGE_BYTES = 100_000_000
RANGE = (10 << 20, (11 << 20) - 1)
N_CHUNKS = 100
#: Three of the twenty headers contain é, ü and ß in Latin-1.
FIELDS = [
    *((f"X-Answer-{k}", f"value number {k} of the answer") for k in range(15)),
    ("X-City", "Besan\xe7on, caf\xe9 number 12"),
    ("X-Street", "M\xfchlenstra\xdfe 3, 12345 K\xf6ln"),
    ("X-Name", "J\xf6rg M\xfcller-L\xfcdenscheidt"),
]


@functools.cache
def big() -> bytes:
    """A body of 1,000,000 bytes.

    It is created on first use, so that it counts only in the memory of rows that use it.
    """
    return bytes(range(256)) * 3906 + b"0" * 64


def _hello(environ: dict[str, Any], start: Any) -> list[bytes]:
    start("200 OK", [PLAIN, ("Content-Length", "12")])
    return [HELLO]


def _headers(environ: dict[str, Any], start: Any) -> list[bytes]:
    # As an application that inspects the request's body.
    fields = {name: value for name, value in environ.items() if name[:5] == "HTTP_"}
    body = f"{len(fields)} {fields['HTTP_X_CITY']}".encode("latin-1")
    start("200 OK", [PLAIN, ("Content-Length", str(len(body))), *FIELDS])
    return [body]


def _big(environ: dict[str, Any], start: Any) -> list[bytes]:
    body = big()
    start("200 OK", [PLAIN, ("Content-Length", str(len(body)))])
    return [body]


def _echo(environ: dict[str, Any], start: Any) -> list[bytes]:
    body = environ["wsgi.input"].read(int(environ["CONTENT_LENGTH"]))
    start("200 OK", [PLAIN, ("Content-Length", str(len(body)))])
    return [body]


def _chunks(environ: dict[str, Any], start: Any) -> Iterator[bytes]:
    start("200 OK", [PLAIN])
    for _ in range(N_CHUNKS):
        yield CHUNK


def _sleep(environ: dict[str, Any], start: Any) -> list[bytes]:
    time.sleep(2)
    return _hello(environ, start)


def _large(environ: dict[str, Any], start: Any) -> Any:
    # Its server may answer Range itself.
    file = open(FILES / "large", "rb")  # noqa: SIM115
    start("200 OK", [PLAIN, ("Content-Length", str(LARGE_BYTES))])
    return environ["wsgi.file_wrapper"](file)


def make_files() -> None:
    """Writes the files that the servers send, if they do not exist."""
    FILES.mkdir(parents=True, exist_ok=True)
    (FILES / "big").write_bytes(big())
    if not (FILES / "large").exists() or (FILES / "large").stat().st_size != LARGE_BYTES:
        (FILES / "large").write_bytes(big() * (LARGE_BYTES // len(big())))


_PAGES: dict[str, Callable[[dict[str, Any], Any], Any]] = {
    "/hello": _hello,
    "/headers": _headers,
    "/big": _big,
    "/echo": _echo,
    "/chunks": _chunks,
    "/sleep": _sleep,
    "/large": _large,
}


def app(environ: dict[str, Any], start_response: Any) -> Any:
    """The WSGI application, which all WSGI servers run."""
    return _PAGES[environ["PATH_INFO"]](environ, start_response)


def _lines(*fields: tuple[str, str]) -> list[tuple[bytes, bytes]]:
    return [(name.lower().encode(), value.encode("latin-1")) for name, value in fields]


_PLAIN = _lines(PLAIN)
_FIELDS = _lines(*FIELDS)


async def asgi(
    scope: dict[str, Any], receive: Callable[[], Awaitable[Any]], send: Callable[[Any], Awaitable[None]]
) -> None:
    """The ASGI 3 application with the pages for which uvicorn is measured."""
    if scope["type"] != "http":
        return
    path, fields, body, n_chunks = scope["path"], list(_PLAIN), HELLO, 0
    if path == "/headers":
        own = {name.decode(): value.decode("latin-1") for name, value in scope["headers"]}
        body = f"{len(own)} {own['x-city']}".encode("latin-1")
        fields += _FIELDS
    elif path == "/big":
        body = big()
    elif path == "/echo":
        parts = []
        while True:
            message = await receive()
            parts.append(message.get("body", b""))
            if not message.get("more_body"):
                break
        body = b"".join(parts)
    elif path == "/chunks":
        n_chunks = N_CHUNKS
    if not n_chunks:
        fields.append((b"content-length", str(len(body)).encode()))
    await send({"type": "http.response.start", "status": 200, "headers": fields})
    for _ in range(n_chunks):
        await send({"type": "http.response.body", "body": CHUNK, "more_body": True})
    await send({"type": "http.response.body", "body": b"" if n_chunks else body})
