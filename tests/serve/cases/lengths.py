"""The end of a request's body (RFC 9112, 6; RFC 9110, 8.6).

If two implementations determine different ends, request smuggling is possible.
"""

from __future__ import annotations

from tests.support.cases import Cases, Lenient, echoed
from tests.support.raw_http import REFUSALS, Answer, Closed, Malformed, request
from tests.support.serving import Serving

CASES = Cases()
HELLO = b"5\r\nhello\r\n0\r\n\r\n"


def post(*lines: bytes, body: bytes = b"hello", version: bytes = b"HTTP/1.1") -> bytes:
    """A POST request to `/echo` with these header lines and this body."""
    return request("/echo", *lines, method="POST", body=body, version=version)


def _took_hello(answer: Answer) -> None:
    assert echoed(answer)["body"] == "hello"


def _took_hello_or_nothing(answer: Answer) -> None:
    assert echoed(answer)["body"] in ("hello", "")


CASES.refuses("CL differing twice", post(b"Content-Length: 5", b"Content-Length: 6", body=b"hello!"))
CASES.refuses("CL list 5, 6", post(b"Content-Length: 5, 6", body=b"hello!"))
# RFC 9110, 8.6: a recipient may treat equal ones as one.
CASES.refuses("CL same twice", post(b"Content-Length: 5", b"Content-Length: 5"), choice=_took_hello)
CASES.refuses("CL +5", post(b"Content-Length: +5"))
CASES.refuses("CL -5", post(b"Content-Length: -5"))
CASES.refuses("CL 0x5", post(b"Content-Length: 0x5"))
CASES.refuses("CL 1_0", post(b"Content-Length: 1_0", body=b"0123456789"))
CASES.refuses("CL empty", post(b"Content-Length: "))
CASES.refuses("CL 5abc", post(b"Content-Length: 5abc"))
# Modulo 2^64 it is 5.
CASES.refuses("CL 2^64+5", post(b"Content-Length: 18446744073709551621"))
CASES.refuses("CL 5 5", post(b"Content-Length: 5 5"))


def _one_answer(server: Serving, sent: bytes, chunked: str, counted: str) -> None:
    """Checks a request whose body has both a chunked coding and a Content-Length.

    The server must refuse it, or read the chunked body and then close the connection. To read the
    body by its Content-Length, or to keep the connection open, is lenient.
    """
    with server.connect() as line:
        line.send(sent)
        try:
            answer = line.answer()
        except Closed:
            return
        if answer.status not in REFUSALS:
            body = echoed(answer)["body"]
            assert body in (chunked, counted), f"the body was read as {body!r}"
            if body == counted:
                raise Lenient("read by its Content-Length")
        try:
            closed = line.ends()
        except Malformed as error:
            raise AssertionError(f"what is hidden in the body was answered: {error}") from None
        if not closed:
            raise Lenient("the connection stays open")


@CASES.behaves("CL + TE (TE must win, then close)")
def _(server: Serving) -> None:
    # By its length, the body is the first bytes of a chunk, and the rest is a second request.
    lines = (b"Content-Length: 6", b"Transfer-Encoding: chunked")
    with server.connect() as line:
        line.send(post(*lines, body=HELLO))
        try:
            answer = line.answer()
        except Closed:
            return
        if answer.status not in REFUSALS:
            assert echoed(answer)["body"] == "hello"
        if not line.ends():
            raise Lenient("the connection stays open")


@CASES.behaves("CL + TE smuggle (CL wins?)")
def _(server: Serving) -> None:
    hidden = b"0\r\n\r\n" + request("/hello")
    sent = post(b"Content-Length: %d" % len(hidden), b"Transfer-Encoding: chunked", body=hidden)
    _one_answer(server, sent, chunked="", counted=hidden.decode())


CASES.refuses("TE xchunked", post(b"Transfer-Encoding: xchunked", body=HELLO))
CASES.refuses("TE identity", post(b"Transfer-Encoding: identity", b"Content-Length: 5"))
CASES.refuses("TE chunked, identity", post(b"Transfer-Encoding: chunked, identity", body=HELLO))
CASES.refuses("TE chunked x2", post(b"Transfer-Encoding: chunked", b"Transfer-Encoding: chunked", body=HELLO))
CASES.refuses("TE \\x0bchunked", post(b"Transfer-Encoding: \x0bchunked", body=HELLO))
# Empty list elements are ignored (RFC 9110, 5.6.1.2); with a length in addition it is an attack.
CASES.refuses(
    "TE ,chunked + CL", post(b"Transfer-Encoding: ,chunked", b"Content-Length: 5", body=HELLO), choice=_took_hello
)
# RFC 9112, 6.1: its framing is faulty; a server that accepts it closes the connection after it.
CASES.refuses(
    "TE in HTTP/1.0",
    post(b"Transfer-Encoding: chunked", body=HELLO, version=b"HTTP/1.0"),
    choice=_took_hello_or_nothing,
)
