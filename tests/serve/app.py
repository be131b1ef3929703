"""The WSGI application that every server under test runs: each path does one thing that PEP 3333
allows or forbids.

It uses only the standard library, so that any server can run it. Events are recorded under a word
that the test chooses, and returned by `/seen/WORD`: if a body was read whole, if `close()` was
called.
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
    """A body whose end is recorded: the rest of it when ``close()`` is called."""

    def __init__(self, items: Iterator[bytes], word: str) -> None:
        self._items, self._word = items, word

    def __iter__(self) -> Iterator[bytes]:
        return self._items

    def close(self) -> None:
        """PEP 3333: called upon completion, normal, by an exception, or because the client
        disconnected."""
        _seen[self._word].append("closed")


def _json(start: Start, value: object) -> list[bytes]:
    body = json.dumps(value).encode()
    start("200 OK", [("Content-Type", "application/json"), ("Content-Length", str(len(body)))])
    return [body]


def hello(environ: Environ, start: Start, _: str) -> list[bytes]:
    """Twelve bytes with their length; the request's body is not read."""
    start("200 OK", [*PLAIN, ("Content-Length", "12")])
    return [b"hello, world"]


def echo(environ: Environ, start: Start, _: str) -> list[bytes]:
    """The request, as the application saw it."""
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
    """Reads the body and records the outcome."""
    try:
        n_bytes = len(environ["wsgi.input"].read())
    except Exception as error:
        _seen[word].append(f"error {type(error).__name__}")
        raise
    _seen[word].append(f"read {n_bytes}")
    return _json(start, n_bytes)


def seen(environ: Environ, start: Start, word: str) -> list[bytes]:
    """The events recorded under that word."""
    return _json(start, _seen[word])


def generator(environ: Environ, start: Start, _: str) -> Iterator[bytes]:
    """Items of which one is empty, without a length."""
    start("200 OK", PLAIN)
    yield b"one,"
    yield b""
    yield b"two,"
    yield b"three"


def bodiless(environ: Environ, start: Start, status: str) -> list[bytes]:
    """A body with a status that has no body."""
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
    """A header that would break out of its line."""
    status, header = INJECTIONS[kind]
    start(status, [*PLAIN, header, ("Content-Length", "5")])
    return [b"after"]


def framings(environ: Environ, start: Start, _: str) -> list[bytes]:
    """Transfer-Encoding, which the application must not set, together with a length."""
    start("200 OK", [*PLAIN, ("Transfer-Encoding", "chunked"), ("Content-Length", "5")])
    return [b"5\r\nhello\r\n0\r\n\r\n"]


def longer(environ: Environ, start: Start, _: str) -> list[bytes]:
    """More bytes than its Content-Length."""
    start("200 OK", [*PLAIN, ("Content-Length", "10")])
    return [b"0123456", b"789abcdef", b"and more"]


def shorter(environ: Environ, start: Start, _: str) -> list[bytes]:
    """Fewer bytes than its Content-Length."""
    start("200 OK", [*PLAIN, ("Content-Length", "10")])
    return [b"01234"]


def raises(environ: Environ, start: Start, when: str) -> Iterable[bytes]:
    """An exception: `before` start_response, `after` it, in the `first` item, or `late`, after one
    was sent."""

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
    """A second `start_response` with `exc_info` before anything was sent: it replaces the first
    response."""
    start("200 OK", [*PLAIN, ("X-First", "1")])
    try:
        raise RuntimeError("replaced")
    except RuntimeError:
        start("503 Later", [*PLAIN, ("Content-Length", "5")], sys.exc_info())
    return [b"later"]


def latin(environ: Environ, start: Start, _: str) -> list[bytes]:
    """Echoes a Latin-1 value, and its code points."""
    value = environ["HTTP_X_TEXT"]
    body = json.dumps([ord(character) for character in value]).encode()
    start("200 OK", [*PLAIN, ("X-Back", value), ("Content-Length", str(len(body)))])
    return [body]


def writes(environ: Environ, start: Start, _: str) -> list[bytes]:
    """The legacy `write()`, then items."""
    write = start("200 OK", PLAIN)
    write(b"written,")
    write(b"twice,")
    return [b"returned"]


def write_gate(environ: Environ, start: Start, word: str) -> list[bytes]:
    """Two blocks; the second one after `/open/WORD` was requested."""
    write = start("200 OK", PLAIN)
    write(b"written,")
    if not _gates[word].wait(30):
        raise RuntimeError("nobody opened the gate")
    write(b"twice,")
    return [b"returned"]


def write_many(environ: Environ, start: Start, number: str) -> list[bytes]:
    """That many blocks of 1 MiB, each a separate object."""
    write = start("200 OK", [*PLAIN, ("Content-Length", str(int(number) << 20))])
    for _ in range(int(number)):
        write(bytes(1 << 20))
    return []


def write_generator(environ: Environ, start: Start, _: str) -> Iterator[bytes]:
    """Blocks before the first item, once the server has called `next`."""
    write = start("200 OK", PLAIN)
    write(b"written,")
    yield b"yielded,"
    yield b"at last"


def write_long(environ: Environ, start: Start, _: str) -> list[bytes]:
    """More bytes than announced, in both ways."""
    write = start("200 OK", [*PLAIN, ("Content-Length", "10")])
    write(b"0123456")
    write(b"789abc")
    write(b"more")
    return [b"and more"]


def write_none(environ: Environ, start: Start, _: str) -> list[bytes]:
    """An empty block, which does not start the response."""
    start("200 OK", PLAIN)(b"")
    return [b"returned"]


def write_short(environ: Environ, start: Start, _: str) -> list[bytes]:
    """Fewer bytes than announced."""
    start("200 OK", [*PLAIN, ("Content-Length", "10")])(b"01234")
    return []


def write_raises(environ: Environ, start: Start, _: str) -> list[bytes]:
    """An exception after a block."""
    start("200 OK", PLAIN)(b"written,")
    raise RuntimeError("raised after a block")


def write_replaces(environ: Environ, start: Start, word: str) -> list[bytes]:
    """A second head with `exc_info` after a block: the server re-raises the application's error."""
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
    """Blocks without an end; the error of the last one is passed on, except for `…-swallows`."""
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
    """A block written while the body is iterated, which PEP 3333 forbids."""
    write = start("200 OK", PLAIN)
    yield b"one,"
    try:
        write(b"late")
    except Exception as error:
        _seen[word].append(type(error).__name__)
    yield b"two"


def write_echo(environ: Environ, start: Start, _: str) -> list[bytes]:
    """The body of the request as one block."""
    body = environ["wsgi.input"].read()
    start("200 OK", PLAIN)(body)
    return []


def closes(environ: Environ, start: Start, word: str) -> Watched:
    """A body with `close()`: complete, with an exception (`…-raises`), or without an end (`…-endless`)."""

    def items() -> Iterator[bytes]:
        yield b"begun"
        if word.endswith("raises"):
            raise RuntimeError("raised")
        while word.endswith("endless"):
            yield CHUNK

    start("200 OK", PLAIN)
    return Watched(items(), word)


def file(environ: Environ, start: Start, _: str) -> Any:
    """The whole file by `wsgi.file_wrapper`."""
    opened = open(_file.name, "rb")  # noqa: SIM115
    start("200 OK", [*PLAIN, ("Content-Length", str(len(LINES)))])
    return environ["wsgi.file_wrapper"](opened, 1 << 16)


def cut(environ: Environ, start: Start, _: str) -> Any:
    """16 bytes of the file, from byte 160,000; the file continues after them."""
    opened = open(_file.name, "rb")  # noqa: SIM115
    opened.seek(160_000)
    start("206 Partial Content", [*PLAIN, ("Content-Length", "16")])
    return environ["wsgi.file_wrapper"](opened)


def no_descriptor(environ: Environ, start: Start, _: str) -> Any:
    """`wsgi.file_wrapper` of an object without a descriptor: it is read."""
    start("200 OK", [*PLAIN, ("Content-Length", str(len(LINES)))])
    return environ["wsgi.file_wrapper"](io.BytesIO(LINES), 1 << 12)


def environ_types(environ: Environ, start: Start, _: str) -> list[bytes]:
    """The types of everything in the environ, and the values that JSON can represent."""
    values = {
        k: v if isinstance(v, (str, bool)) else list(v) if isinstance(v, tuple) else None for k, v in environ.items()
    }
    types = {name: type(value).__name__ for name, value in environ.items()}
    return _json(start, {"is_dict": type(environ) is dict, "types": types, "values": values})


def gate(environ: Environ, start: Start, word: str) -> Iterator[bytes]:
    """One item, then nothing until `/open/WORD` is requested."""
    start("200 OK", PLAIN)
    yield b"first"
    _seen[word].append("waits")
    if not _gates[word].wait(30):
        raise RuntimeError("nobody opened the gate")
    yield b"second"


def blocks(environ: Environ, start: Start, word: str) -> list[bytes]:
    """No response until `/open/WORD` is requested."""
    _seen[word].append("waits")
    _gates[word].wait(30)
    return _json(start, "let through")


def opens(environ: Environ, start: Start, word: str) -> list[bytes]:
    """Opens the gate for the responses that wait."""
    _gates[word].set()
    return _json(start, "open")


def large(environ: Environ, start: Start, how: str) -> Any:
    """More than a socket accepts at once, for a client that does not read."""
    start("200 OK", [*PLAIN, ("Content-Length", str(LARGE_BYTES))])
    if how == "bytes":
        return [bytes(LARGE_BYTES)]
    if how == "file":
        opened = tempfile.TemporaryFile()  # noqa: SIM115
        opened.truncate(LARGE_BYTES)
        return environ["wsgi.file_wrapper"](opened, 1 << 16)
    return (CHUNK for _ in range(LARGE_BYTES // len(CHUNK)))


def nonsense(environ: Environ, start: Start, kind: str) -> Any:
    """Actions that PEP 3333 forbids to an application."""
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
    """An application wrapped in `wsgiref.validate`."""
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
    """The application: `/PAGE/WORD`."""
    _, page, word = (environ["PATH_INFO"] + "//").split("/", 3)[:3]
    found = PAGES.get(page)
    if found is None:
        start_response("404 Not Found", [*PLAIN, ("Content-Length", "0")])
        return [b""]
    return found(environ, start_response, word)
