"""The WSGI application that every server under test runs: each path does one thing that PEP 3333
allows or forbids.

It uses only the standard library, so that any server can run it. A request may name a word, under
which the application records events: that a body was read completely, or that `close()` was called.
`/seen/WORD` returns them.
"""

from __future__ import annotations

import atexit
import io
import json
import sys
import tempfile
import threading
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from typing import Any
from wsgiref.validate import validator

Environ = dict[str, Any]
#: PEP 3333's `start_response`; the applications here sometimes pass it wrong arguments.
Start = Any
Page = Callable[[Environ, Start, str], Any]

PLAIN = [("Content-Type", "text/plain")]
CHUNK = b"x" * (64 << 10)
LARGE_BYTES = 16 << 20
#: The file of `/file` and `/slice`: each line contains its own offset.
LINES = b"".join(b"%015d\n" % (16 * k) for k in range(40_000))

_seen: dict[str, list[str]] = defaultdict(list)
_gates: dict[str, threading.Event] = defaultdict(threading.Event)
_file = tempfile.NamedTemporaryFile(prefix="onecopy-serve-app-")  # noqa: SIM115
_file.write(LINES)
_file.flush()
atexit.register(_file.close)


class Watched:
    """A response body that records the event ``closed`` when the server calls ``close()``."""

    def __init__(self, items: Iterator[bytes], word: str) -> None:
        self._items, self._word = items, word

    def __iter__(self) -> Iterator[bytes]:
        return self._items

    def close(self) -> None:
        """Called by the server at the end of the response (PEP 3333): after the last item, after an
        exception, or because the client disconnected."""
        _seen[self._word].append("closed")


def _json(start: Start, value: object) -> list[bytes]:
    body = json.dumps(value).encode()
    start("200 OK", [("Content-Type", "application/json"), ("Content-Length", str(len(body)))])
    return [body]


def hello(environ: Environ, start: Start, _: str) -> list[bytes]:
    """Responds with twelve bytes and their Content-Length; does not read the request's body."""
    start("200 OK", [*PLAIN, ("Content-Length", "12")])
    return [b"hello, world"]


def echo(environ: Environ, start: Start, _: str) -> list[bytes]:
    """Returns the request as JSON, as the application received it."""
    body = environ["wsgi.input"].read()
    # The two CGI names without the prefix HTTP_.
    names = ("CONTENT_TYPE", "CONTENT_LENGTH")
    fields = {name: value for name, value in environ.items() if name.startswith("HTTP_") or name in names}
    seen = {
        "method": environ["REQUEST_METHOD"],
        "path": environ["PATH_INFO"],
        "query": environ.get("QUERY_STRING", ""),
        "protocol": environ["SERVER_PROTOCOL"],
        "fields": fields,
        "body": body.decode("latin-1"),
    }
    return _json(start, seen)


def keeps(environ: Environ, start: Start, word: str) -> list[bytes]:
    """Reads the request's body, and records the number of bytes or the error."""
    try:
        n_bytes = len(environ["wsgi.input"].read())
    except Exception as error:
        _seen[word].append(f"error {type(error).__name__}")
        raise
    _seen[word].append(f"read {n_bytes}")
    return _json(start, n_bytes)


def seen(environ: Environ, start: Start, word: str) -> list[bytes]:
    """Returns the events recorded under the word."""
    return _json(start, _seen[word])


def generator(environ: Environ, start: Start, _: str) -> Iterator[bytes]:
    """Yields several items without a Content-Length; one of them is empty."""
    start("200 OK", PLAIN)
    yield b"one,"
    yield b""
    yield b"two,"
    yield b"three"


def bodiless(environ: Environ, start: Start, status: str) -> list[bytes]:
    """Returns a body with status 204 or 304, which must not have a body."""
    start({"204": "204 No Content", "304": "304 Not Modified"}[status], [])
    return [b"nothing of this may be sent"]


#: Text that no header may contain, by where it is inserted.
INJECTIONS: dict[str, tuple[str, tuple[str, str]]] = {
    "crlf": ("200 OK", ("X-A", "a\r\nX-Evil: 1")),
    "lf": ("200 OK", ("X-A", "a\nX-Evil: 1")),
    "cr": ("200 OK", ("X-A", "a\rX-Evil: 1")),
    "nul": ("200 OK", ("X-A", "a\0b")),
    "name": ("200 OK", ("X-A: b\r\nX-Evil", "1")),
    "status": ("200 OK\r\nX-Evil: 1", ("X-A", "a")),
    "beyond": ("200 OK", ("X-A", "a \u20ac b")),
    "name-space": ("200 OK", ("X A", "a")),
    "name-empty": ("200 OK", ("", "a")),
    "name-latin": ("200 OK", ("X-\xe9", "a")),
    "status-beyond": ("200 \u20ac", ("X-A", "a")),
}


def inject(environ: Environ, start: Start, kind: str) -> list[bytes]:
    """Sends a header or status that contains a line end or other forbidden characters."""
    status, header = INJECTIONS[kind]
    start(status, [*PLAIN, header, ("Content-Length", "5")])
    return [b"after"]


def framings(environ: Environ, start: Start, _: str) -> list[bytes]:
    """Sets Transfer-Encoding, which an application must not do, together with Content-Length."""
    start("200 OK", [*PLAIN, ("Transfer-Encoding", "chunked"), ("Content-Length", "5")])
    return [b"5\r\nhello\r\n0\r\n\r\n"]


def longer(environ: Environ, start: Start, _: str) -> list[bytes]:
    """Returns more bytes than its Content-Length."""
    start("200 OK", [*PLAIN, ("Content-Length", "10")])
    return [b"0123456", b"789abcdef", b"and more"]


def shorter(environ: Environ, start: Start, _: str) -> list[bytes]:
    """Returns fewer bytes than its Content-Length."""
    start("200 OK", [*PLAIN, ("Content-Length", "10")])
    return [b"01234"]


def raises(environ: Environ, start: Start, when: str) -> Iterable[bytes]:
    """Raises an exception: `before` start_response, `after` it, in the `first` item, or `late`,
    after an item was sent."""

    def items() -> Iterator[bytes]:
        if when == "late":
            yield CHUNK
        raise RuntimeError(f"raised {when}")

    if when == "before":
        raise RuntimeError("raised before")
    start("200 OK", PLAIN)
    if when == "after":
        raise RuntimeError("raised after")
    return items()


def replaces(environ: Environ, start: Start, _: str) -> list[bytes]:
    """Calls `start_response` a second time, with `exc_info`, before anything was sent.

    The second call replaces the first response.
    """
    start("200 OK", [*PLAIN, ("X-First", "1")])
    try:
        raise RuntimeError("replaced")
    except RuntimeError:
        start("503 Later", [*PLAIN, ("Content-Length", "5")], sys.exc_info())
    return [b"later"]


def latin(environ: Environ, start: Start, _: str) -> list[bytes]:
    """Returns the code points of the request's header X-Text as JSON, and its value in X-Back."""
    value = environ["HTTP_X_TEXT"]
    body = json.dumps([ord(character) for character in value]).encode()
    start("200 OK", [*PLAIN, ("X-Back", value), ("Content-Length", str(len(body)))])
    return [body]


def writes(environ: Environ, start: Start, _: str) -> list[bytes]:
    """Sends data by the legacy function `write()`, then returns an item."""
    write = start("200 OK", PLAIN)
    write(b"written,")
    write(b"twice,")
    return [b"returned"]


def write_gate(environ: Environ, start: Start, word: str) -> list[bytes]:
    """Writes two blocks; the second one after `/open/WORD` was requested."""
    write = start("200 OK", PLAIN)
    write(b"written,")
    if not _gates[word].wait(30):
        raise RuntimeError("nobody opened the gate")
    write(b"twice,")
    return [b"returned"]


def write_many(environ: Environ, start: Start, number: str) -> list[bytes]:
    """Writes ``number`` blocks of 1 MiB, each a separate object."""
    write = start("200 OK", [*PLAIN, ("Content-Length", str(int(number) << 20))])
    for _ in range(int(number)):
        write(bytes(1 << 20))
    return []


def write_generator(environ: Environ, start: Start, _: str) -> Iterator[bytes]:
    """Writes a block before the first item, when the server calls `next` for the first time."""
    write = start("200 OK", PLAIN)
    write(b"written,")
    yield b"yielded,"
    yield b"at last"


def write_long(environ: Environ, start: Start, _: str) -> list[bytes]:
    """Sends more bytes than its Content-Length, by `write()` and as an item."""
    write = start("200 OK", [*PLAIN, ("Content-Length", "10")])
    write(b"0123456")
    write(b"789abc")
    write(b"more")
    return [b"and more"]


def write_none(environ: Environ, start: Start, _: str) -> list[bytes]:
    """Writes an empty block, which must not start the response."""
    start("200 OK", PLAIN)(b"")
    return [b"returned"]


def write_short(environ: Environ, start: Start, _: str) -> list[bytes]:
    """Writes fewer bytes than its Content-Length."""
    start("200 OK", [*PLAIN, ("Content-Length", "10")])(b"01234")
    return []


def write_raises(environ: Environ, start: Start, _: str) -> list[bytes]:
    """Raises an exception after a block was written."""
    start("200 OK", PLAIN)(b"written,")
    raise RuntimeError("raised after a block")


def write_replaces(environ: Environ, start: Start, word: str) -> list[bytes]:
    """Calls `start_response` with `exc_info` after a block was written: the server raises that
    exception."""
    start("200 OK", PLAIN)(b"written,")
    try:
        raise RuntimeError("replaced")
    except RuntimeError:
        try:
            start("500 Failed", PLAIN, sys.exc_info())
        except RuntimeError as error:
            _seen[word].append(f"RuntimeError: {error}")
            raise
    return []


def write_endless(environ: Environ, start: Start, word: str) -> list[bytes]:
    """Writes blocks until `write()` raises; records the exception.

    The exception is raised again if the word ends with `passes`.
    """
    write = start("200 OK", PLAIN)
    try:
        while True:
            write(CHUNK)
    except Exception as error:
        _seen[word].append(type(error).__name__)
        if word.endswith("passes"):
            raise
    return []


def write_late(environ: Environ, start: Start, word: str) -> Iterator[bytes]:
    """Writes a block while the body is iterated, which PEP 3333 forbids; records the exception."""
    write = start("200 OK", PLAIN)
    yield b"one,"
    try:
        write(b"late")
    except Exception as error:
        _seen[word].append(type(error).__name__)
    yield b"two"


def write_echo(environ: Environ, start: Start, _: str) -> list[bytes]:
    """Returns the request's body as one written block."""
    body = environ["wsgi.input"].read()
    start("200 OK", PLAIN)(body)
    return []


def closes(environ: Environ, start: Start, word: str) -> Watched:
    """Returns a body with `close()`, which records its call.

    The body ends normally, raises if the word ends with `raises`, or never ends if it ends with
    `endless`.
    """

    def items() -> Iterator[bytes]:
        yield b"begun"
        if word.endswith("raises"):
            raise RuntimeError("raised")
        while word.endswith("endless"):
            yield CHUNK

    start("200 OK", PLAIN)
    return Watched(items(), word)


def file(environ: Environ, start: Start, _: str) -> Any:
    """Returns the whole file by `wsgi.file_wrapper`."""
    opened = open(_file.name, "rb")  # noqa: SIM115
    start("200 OK", [*PLAIN, ("Content-Length", str(len(LINES)))])
    return environ["wsgi.file_wrapper"](opened, 1 << 16)


def cut(environ: Environ, start: Start, _: str) -> Any:
    """Returns 16 bytes of the file by `wsgi.file_wrapper`, from byte 160,000; the file has more
    bytes."""
    opened = open(_file.name, "rb")  # noqa: SIM115
    opened.seek(160_000)
    start("206 Partial Content", [*PLAIN, ("Content-Length", "16")])
    return environ["wsgi.file_wrapper"](opened)


def no_descriptor(environ: Environ, start: Start, _: str) -> Any:
    """Passes an object without a file descriptor to `wsgi.file_wrapper`; the server has to read
    it."""
    start("200 OK", [*PLAIN, ("Content-Length", str(len(LINES)))])
    return environ["wsgi.file_wrapper"](io.BytesIO(LINES), 1 << 12)


def environ_types(environ: Environ, start: Start, _: str) -> list[bytes]:
    """Returns the types of all values in the environ, and those values that JSON can represent."""
    values = {
        k: v if isinstance(v, (str, bool)) else list(v) if isinstance(v, tuple) else None for k, v in environ.items()
    }
    types = {name: type(value).__name__ for name, value in environ.items()}
    return _json(start, {"is_dict": type(environ) is dict, "types": types, "values": values})


def gate(environ: Environ, start: Start, word: str) -> Iterator[bytes]:
    """Yields an item, and a second one after `/open/WORD` was requested."""
    start("200 OK", PLAIN)
    yield b"first"
    _seen[word].append("waits")
    if not _gates[word].wait(30):
        raise RuntimeError("nobody opened the gate")
    yield b"second"


def blocks(environ: Environ, start: Start, word: str) -> list[bytes]:
    """Does not respond until `/open/WORD` is requested."""
    _seen[word].append("waits")
    _gates[word].wait(30)
    return _json(start, "let through")


def opens(environ: Environ, start: Start, word: str) -> list[bytes]:
    """Lets the requests continue that wait for `/open/WORD`."""
    _gates[word].set()
    return _json(start, "open")


def large(environ: Environ, start: Start, how: str) -> Any:
    """Returns more data than a socket accepts at once: as bytes, as a file or by a generator."""
    start("200 OK", [*PLAIN, ("Content-Length", str(LARGE_BYTES))])
    if how == "bytes":
        return [bytes(LARGE_BYTES)]
    if how == "file":
        opened = tempfile.TemporaryFile()  # noqa: SIM115
        opened.truncate(LARGE_BYTES)
        return environ["wsgi.file_wrapper"](opened, 1 << 16)
    return (CHUNK for _ in range(LARGE_BYTES // len(CHUNK)))


def nonsense(environ: Environ, start: Start, kind: str) -> Any:
    """Does something that PEP 3333 forbids: wrong statuses, headers, lengths or bodies."""
    bodies: dict[str, Any] = {"none": None, "number": 5, "list-of-str": ["text"], "list-of-none": [None]}
    if kind == "no-start":
        return [b"without start_response"]
    if kind == "twice":
        start("200 OK", PLAIN)
        start("200 OK", PLAIN)
    elif kind.startswith("status"):
        start(
            {"status-word": "OK", "status-bytes": b"200 OK", "status-long": "2000 OK", "status-1xx": "100 Continue"}[
                kind
            ],
            PLAIN,
        )
    elif kind.startswith("fields"):
        start(
            "200 OK",
            {
                "fields-none": None,
                "fields-bytes": [(b"X-A", b"a")],
                "fields-flat": ["X-A"],
                "fields-number": [("X-A", 1)],
            }[kind],
        )
    elif kind.startswith("length"):
        start("200 OK", [*PLAIN, ("Content-Length", {"length-word": "five", "length-negative": "-1"}[kind])])
    else:
        start("200 OK", PLAIN)
    return bodies.get(kind, [b"body"])


@validator
def _validated(environ: Any, start: Any) -> Iterable[bytes]:
    environ["wsgi.input"].read(1)
    environ["wsgi.input"].read(1 << 20)
    body = b"valid"
    start("200 OK", [*PLAIN, ("Content-Length", str(len(body)))])
    return [body]


def validated(environ: Environ, start: Start, _: str) -> Iterable[bytes]:
    """The response of an application that is wrapped in `wsgiref.validate`."""
    return _validated(environ, start)


PAGES: dict[str, Page] = {
    "hello": hello,
    "echo": echo,
    "keeps": keeps,
    "seen": seen,
    "generator": generator,
    "bodiless": bodiless,
    "inject": inject,
    "framings": framings,
    "longer": longer,
    "shorter": shorter,
    "raises": raises,
    "replaces": replaces,
    "latin": latin,
    "writes": writes,
    "write-gate": write_gate,
    "write-many": write_many,
    "write-generator": write_generator,
    "write-long": write_long,
    "write-none": write_none,
    "write-short": write_short,
    "write-raises": write_raises,
    "write-replaces": write_replaces,
    "write-endless": write_endless,
    "write-late": write_late,
    "write-echo": write_echo,
    "closes": closes,
    "file": file,
    "slice": cut,
    "no-descriptor": no_descriptor,
    "environ": environ_types,
    "gate": gate,
    "blocks": blocks,
    "open": opens,
    "large": large,
    "nonsense": nonsense,
    "validated": validated,
}


def app(environ: Environ, start_response: Start) -> Any:
    """The WSGI application, which calls the function of the path `/PAGE/WORD`."""
    _, page, word = (environ["PATH_INFO"] + "//").split("/", 3)[:3]
    found = PAGES.get(page)
    if found is None:
        start_response("404 Not Found", [*PLAIN, ("Content-Length", "0")])
        return [b""]
    return found(environ, start_response, word)
