"""The lines of a request's head (RFC 9112, 2.2 and 5; RFC 9110, 5): line ends, names and values."""

from __future__ import annotations

from tests.support.cases import Cases, echoed
from tests.support.raw_http import Answer, request

CASES = Cases()


def get(*lines: bytes) -> bytes:
    """A GET request for `/echo` with these header lines."""
    return request("/echo", *lines)


def post(*lines: bytes) -> bytes:
    """A POST request to `/echo` with the body `hello`; ``lines`` contain its Content-Length."""
    return request("/echo", *lines, method="POST", body=b"hello")


def _unfolded(answer: Answer) -> None:
    # RFC 9112, 5.2: each fold is replaced by spaces before the value is used.
    assert " ".join(echoed(answer)["fields"]["HTTP_X_U"].split()) == "a b"


def _two_fields(answer: Answer) -> None:
    fields = echoed(answer)["fields"]
    assert (fields["HTTP_X_A"], fields["HTTP_X_B"]) == ("1", "2")


def _its_own(answer: Answer) -> None:
    assert echoed(answer)["fields"]["HTTP_X_U"] == "true"


CASES.refuses("space before colon (CL)", post(b"Content-Length : 5"))
CASES.refuses("space before colon (X)", get(b"X-A : b"))
CASES.refuses("tab before colon", get(b"X-A\t: b"))
CASES.refuses("obs-fold", get(b"X-U: a", b" b"), choice=_unfolded)
CASES.refuses("first header led by space", b"GET /echo HTTP/1.1\r\n X-A: b\r\nHost: a\r\n\r\n")
# RFC 9112, 2.2: a recipient may accept a single LF as the end of a line.
CASES.refuses("bare LF after header", b"GET /echo HTTP/1.1\r\nHost: a\r\nX-A: 1\nX-B: 2\r\n\r\n", choice=_two_fields)
CASES.refuses("bare LF everywhere", b"GET /echo HTTP/1.1\nHost: a\nX-A: 1\nX-B: 2\n\n", choice=_two_fields)
CASES.refuses(
    "bare LF hides TE",
    request(
        "/echo",
        b"Content-Length: 15",
        b"X-A: b\nTransfer-Encoding: chunked",
        method="POST",
        body=b"5\r\nhello\r\n0\r\n\r\n",
    ),
)
CASES.refuses("bare CR in value", get(b"X-A: b\rc"))
CASES.refuses("bare CR as line end", b"GET /echo HTTP/1.1\rHost: a\rX-A: b\r\r")
CASES.refuses("NUL in value", get(b"X-A: b\0c"))
CASES.refuses("NUL in name", get(b"X-\0A: b"))
CASES.refuses("NUL in path", request("/echo\0", b"X-A: b"))
CASES.refuses("BEL in value", get(b"X-A: b\x07c"))
CASES.refuses("DEL in value", get(b"X-A: b\x7fc"))
CASES.refuses("bad name X[]", get(b"X[]: b"))
CASES.refuses("name with space", get(b"X A: b"))
CASES.refuses("name latin-1", get(b"X-\xe9: b"))
CASES.refuses("empty name", get(b": b"))
CASES.refuses("no colon", get(b"X-A"))
# Both are HTTP_X_U in CGI; a proxy that forwards requests checks or sets the one with the hyphen.
CASES.refuses("X_U shadows X-U", get(b"X-U: true", b"X_U: evil"), choice=_its_own)
