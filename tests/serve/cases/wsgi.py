"""PEP 3333: the arguments with which a server calls an application, and the server's guarantees."""

from __future__ import annotations

import json
import time
import uuid

from tests.serve.app import LINES
from tests.support.cases import Cases, Lenient, echoed, then_hello
from tests.support.raw_http import GLANCE_S, PATIENCE_S, request
from tests.support.serving import Serving

CASES = Cases()


def _word(end: str = "") -> str:
    """A random word that no other case uses, followed by ``end``."""
    return uuid.uuid4().hex + end


def _seen(server: Serving, word: str) -> list[str]:
    """The events that the application has recorded under the word."""
    answer = server.ask(f"/seen/{word}")
    assert answer.status == 200
    return [str(event) for event in json.loads(answer.body)]


def wait_until_seen(server: Serving, word: str, event: str, patience_s: float = PATIENCE_S) -> bool:
    """Returns true if the application records the event within ``patience_s``."""
    end = time.monotonic() + patience_s
    while event not in _seen(server, word):
        if time.monotonic() > end:
            return False
        time.sleep(0.01)
    return True


@CASES.behaves("wsgiref.validate")
def _(server: Serving) -> None:
    for method, lines, body in (("GET", (), b""), ("POST", (b"Content-Length: 5",), b"hello")):
        answer = server.ask("/validated", *lines, method=method, body=body)
        assert (answer.status, answer.body) == (200, b"valid"), server.said()[-2000:]


@CASES.behaves("generator -> chunked, empty item")
def _(server: Serving) -> None:
    with server.connect() as line:
        line.send(request("/generator"))
        answer = line.answer()
        assert (answer.status, answer.body, answer.whole) == (200, b"one,two,three", True)
        if answer.framing != "chunked":
            raise Lenient(f"its end is marked by {answer.framing}")
        then_hello(line, answer)


@CASES.behaves("latin-1 round trip")
def _(server: Serving) -> None:
    every = bytes([9, *range(32, 127), *range(128, 256)])
    for value in (b"h\xe9llo", b"caf\xc3\xa9", b"a" + every + b"z"):
        answer = server.ask("/latin", b"X-Text: " + value)
        assert answer.status == 200, answer
        assert bytes(points(answer.body)) == value
        assert answer.one("x-back") == value


def points(body: bytes) -> list[int]:
    """The code points in a response of `/latin`."""
    points: list[int] = json.loads(body)
    return points


@CASES.behaves("write()")
def _(server: Serving) -> None:
    with server.connect() as line:
        line.send(request("/writes"))
        answer = line.answer()
        assert (answer.status, answer.body, answer.whole) == (200, b"written,twice,returned", True)


@CASES.behaves("close() called (done, exc, vanish)")
def _(server: Serving) -> None:
    done, raised, vanished = _word("done"), _word("raises"), _word("endless")
    assert server.ask(f"/closes/{done}").body == b"begun"
    assert wait_until_seen(server, done, "closed"), "not at the end of an answer"
    with server.connect() as line:
        line.send(request(f"/closes/{raised}"))
        assert not line.answer().whole or server.is_alive()
    assert wait_until_seen(server, raised, "closed"), "not after an exception"
    with server.connect() as line:
        line.send(request(f"/closes/{vanished}"))
        line.head()
        line.read(100_000)
    assert wait_until_seen(server, vanished, "closed"), "not when the client left"
    assert _seen(server, done) == _seen(server, raised) == _seen(server, vanished) == ["closed"], "more than once"


@CASES.behaves("client vanishes mid-body")
def _(server: Serving) -> None:
    # The application gets an exception, or is not called at all: a part is never passed as the
    # whole.
    for way in ("close", "reset"):
        word = _word()
        with server.connect() as line:
            line.send(request(f"/keeps/{word}", b"Content-Length: 1000000", method="POST", body=bytes(10_000)))
            if way == "reset":
                line.reset()
        end = time.monotonic() + GLANCE_S
        while time.monotonic() < end and not (events := _seen(server, word)):
            time.sleep(0.02)
        assert not any(event.startswith("read") for event in events), f"{way}: the application {events}"


@CASES.behaves("wsgi.file_wrapper")
def _(server: Serving) -> None:
    for path in ("/file", "/no-descriptor"):
        with server.connect() as line:
            line.send(request(path))
            answer = line.answer()
            assert (answer.status, answer.whole) == (200, True)
            assert answer.body == LINES
            then_hello(line, answer)


@CASES.behaves("file slice via file_wrapper")
def _(server: Serving) -> None:
    with server.connect() as line:
        line.send(request("/slice"))
        answer = line.answer()
        assert (answer.status, answer.body) == (206, LINES[160_000:160_016])
        then_hello(line, answer)


@CASES.behaves("environ complete")
def _(server: Serving) -> None:
    answer = server.ask("/environ/a%20b?q=%20", b"Content-Type: text/x", b"X-A: 1", b"X-A: 2", b"Cookie: a=b")
    assert answer.status == 200, answer
    echo = json.loads(answer.body)
    assert echo["is_dict"], "environ is to be a dict of the built-in type"
    types, values = echo["types"], echo["values"]
    texts = [
        "REQUEST_METHOD",
        "SCRIPT_NAME",
        "PATH_INFO",
        "QUERY_STRING",
        "SERVER_NAME",
        "SERVER_PORT",
        "SERVER_PROTOCOL",
        "REMOTE_ADDR",
        "wsgi.url_scheme",
    ]
    assert [name for name in texts if types.get(name) != "str"] == []
    assert {"wsgi.input", "wsgi.errors"} <= set(types)
    assert values["wsgi.version"] == [1, 0]
    assert [types[f"wsgi.{name}"] for name in ("multithread", "multiprocess", "run_once")] == ["bool"] * 3
    wanted = {
        "REQUEST_METHOD": "GET",
        "SCRIPT_NAME": "",
        "PATH_INFO": "/environ/a b",
        "QUERY_STRING": "q=%20",
        "CONTENT_TYPE": "text/x",
        "SERVER_PROTOCOL": "HTTP/1.1",
        "SERVER_PORT": str(server.address[1]),
        "HTTP_HOST": "a",
        "HTTP_COOKIE": "a=b",
        "wsgi.url_scheme": "http",
    }
    assert {name: values.get(name) for name in wanted} == wanted
    # RFC 9110, 5.3: one list.
    assert values["HTTP_X_A"].replace(" ", "") == "1,2"
    assert "HTTP_CONTENT_TYPE" not in types and "HTTP_CONTENT_LENGTH" not in types
    assert echoed(server.ask("/echo"))["fields"].get("CONTENT_LENGTH", "") == ""
