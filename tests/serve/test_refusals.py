"""Invalid requests in addition to those of the conformance table, and similar valid ones."""

from __future__ import annotations

import pytest

from tests.serve.cases.chunks import END, chunked
from tests.serve.cases.lengths import HELLO, post
from tests.support.cases import echoed, refused
from tests.support.raw_http import request
from tests.support.serving import Serving

REFUSED = {
    "two empty lines before a request": b"\r\n\r\n" + request("/echo"),
    "chunked, chunked": post(b"Transfer-Encoding: chunked, chunked", body=HELLO),
    "chunked, then another coding": post(b"Transfer-Encoding: chunked", b"Transfer-Encoding: gzip", body=HELLO),
    "a coding before chunked": post(b"Transfer-Encoding: gzip, chunked", body=HELLO),
    "an empty coding": post(b"Transfer-Encoding: ", b"Content-Length: 5"),
    "a parameter of chunked": post(b"Transfer-Encoding: chunked;a=b", body=HELLO),
    "chunked in quotes": post(b'Transfer-Encoding: "chunked"', body=HELLO),
    "no-break space before chunked": post(b"Transfer-Encoding: \xa0chunked", body=HELLO),
    "Content-Length in Arabic digits of Latin-1": post(b"Content-Length: \xb95"),
    "Content-Length with a fraction": post(b"Content-Length: 5.0"),
    "Content-Length of 2^63": post(b"Content-Length: 9223372036854775808"),
    "Content-Length list of equal ones": post(b"Content-Length: 5, 5"),
    "chunked and a length of 0": post(b"Transfer-Encoding: chunked", b"Content-Length: 0", body=HELLO),
    "chunk size with a space after it": chunked(b"5 \r\nhello\r\n" + END),
    "chunk size with a tab after it": chunked(b"5\t\r\nhello\r\n" + END),
    "chunk size of 17 digits": chunked(b"00000000000000005\r\nhello\r\n" + END),
    "chunk size of 2^63": chunked(b"8000000000000000\r\nhello\r\n" + END),
    "chunk size of another alphabet": chunked(b"g\r\nhello\r\n" + END),
    "chunk extension with NUL": chunked(b"5;a\0b\r\nhello\r\n" + END),
    "trailer with a bare LF": chunked(b"5\r\nhello\r\n0\r\nX-A: b\n\r\n"),
    "trailer with a fold": chunked(b"5\r\nhello\r\n0\r\nX-A: b\r\n c\r\n\r\n"),
    "trailer that is a coding": chunked(b"5\r\nhello\r\n0\r\nTransfer-Encoding: chunked\r\n\r\n"),
    "trailer without a colon": chunked(b"5\r\nhello\r\n0\r\nhello\r\n\r\n"),
    "an underscore in Content_Length": post(b"Content_Length: 5", b"Content-Length: 0"),
    "an empty Host twice": b"GET /echo HTTP/1.1\r\nHost:\r\nHost:\r\n\r\n",
    "Host with a space": b"GET /echo HTTP/1.1\r\nHost: a b\r\n\r\n",
    "Host with a user": b"GET /echo HTTP/1.1\r\nHost: u@a\r\n\r\n",
    "Host as a list": b"GET /echo HTTP/1.1\r\nHost: a, b\r\n\r\n",
    "no version": b"GET /echo\r\nHost: a\r\n\r\n",
    "HTTP/0.9": b"GET /echo\r\n\r\n",
    "HTTP/2.0": b"GET /echo HTTP/2.0\r\nHost: a\r\n\r\n",
    "the preface of HTTP/2": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "HTTP/1.": b"GET /echo HTTP/1.\r\nHost: a\r\n\r\n",
    "HTTP/ 1.1": b"GET /echo HTTP/ 1.1\r\nHost: a\r\n\r\n",
    "a space after the version": b"GET /echo HTTP/1.1 \r\nHost: a\r\n\r\n",
    "a space before the method": b" GET /echo HTTP/1.1\r\nHost: a\r\n\r\n",
    "a method that is no token": b"G(T /echo HTTP/1.1\r\nHost: a\r\n\r\n",
    "no target": b"GET  HTTP/1.1\r\nHost: a\r\n\r\n",
    "a target of one word": b"GET echo HTTP/1.1\r\nHost: a\r\n\r\n",
    "a fragment in the target": b"GET /echo#a HTTP/1.1\r\nHost: a\r\n\r\n",
    "* for a GET": b"GET * HTTP/1.1\r\nHost: a\r\n\r\n",
    "authority-form for a GET": b"GET a:80 HTTP/1.1\r\nHost: a:80\r\n\r\n",
    "TLS": b"\x16\x03\x01\x02\0\x01\0\x01\xfc\x03\x03" + bytes(200),
    "CONNECT": b"CONNECT a:443 HTTP/1.1\r\nHost: a:443\r\n\r\n",
    "a coding before chunked, in a line of its own": post(
        b"Transfer-Encoding: gzip", b"Transfer-Encoding: chunked", body=HELLO
    ),
    "Content-Type twice": request("/echo", b"Content-Type: a/b", b"content-type: c/d"),
    "Authorization twice": request("/echo", b"Authorization: Basic YQ==", b"Authorization: Basic YQ=="),
    "User-Agent twice": request("/echo", b"User-Agent: a", b"User-Agent: b"),
    "an unknown expectation": request("/echo", b"Expect: 200-ok", b"Content-Length: 5", method="POST", body=b"hello"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_request_is_refused(server: Serving, name: str) -> None:
    refused(server, REFUSED[name])


TAKEN = {
    # RFC 9112, 2.2: at least one empty line is ignored.
    "an empty line before a request": (b"\r\n" + post(b"Content-Length: 5"), "hello"),
    "leading zeros of a length": (post(b"Content-Length: 0005"), "hello"),
    "leading zeros of a chunk": (chunked(b"0005\r\nhello\r\n000\r\n\r\n"), "hello"),
    "hexadecimal of both cases": (chunked(b"a\r\n0123456789\r\nA\r\n0123456789\r\n" + END), "01234567890123456789"),
    "chunked of another case": (post(b"Transfer-Encoding: Chunked", body=HELLO), "hello"),
    "white space around values": (post(b"Content-Length:\t 5 \t"), "hello"),
    "an extension in quotes": (chunked(b'5;a="b c";d\r\nhello\r\n' + END), "hello"),
    "a harmless trailer": (chunked(b"5\r\nhello\r\n0\r\nX-A: b\r\n\r\n"), "hello"),
    "absolute-form": (b"GET http://a/echo HTTP/1.1\r\nHost: a\r\n\r\n", ""),
    "HTTP/1.0 without Host": (b"GET /echo HTTP/1.0\r\n\r\n", ""),
    "a body of a GET": (request("/echo", b"Content-Length: 5", body=b"hello"), "hello"),
    "a method of one's own": (request("/echo", method="M-SEARCH"), ""),
}


@pytest.mark.parametrize("name", TAKEN)
def test_request_is_accepted(server: Serving, name: str) -> None:
    sent, body = TAKEN[name]
    with server.connect() as line:
        line.send(sent)
        echo = echoed(line.answer())
        assert (echo["path"], echo["body"]) == ("/echo", body)
        assert "HTTP_X_A" not in echo["fields"], "a trailer is not a field"


@pytest.mark.parametrize(
    ("sent", "host"),
    [
        (b"GET http://other.example:99/echo?a=b HTTP/1.1\r\nHost: a\r\n\r\n", "other.example:99"),
        (b"GET http://other.example/echo?a=b HTTP/1.0\r\n\r\n", "other.example"),
        (b"GET https://[::1]/echo?a=b HTTP/1.1\r\nhost: a\r\n\r\n", "[::1]"),
    ],
    ids=["1.1", "1.0 without Host", "https"],
)
def test_the_host_of_an_absolute_url_replaces_the_field(server: Serving, sent: bytes, host: str) -> None:
    # Twice, since the second environ is a copy of the first one's fields.
    for _ in range(2):
        with server.connect() as line:
            line.send(sent)
            seen = echoed(line.answer())
            assert (seen["path"], seen["query"], seen["fields"]["HTTP_HOST"]) == ("/echo", "a=b", host)


@pytest.mark.parametrize("codings", [(b"gzip, chunked",), (b"gzip", b"chunked"), (b"gzip",)], ids=str)
def test_an_unknown_coding_is_501_in_one_field_or_several(server: Serving, codings: tuple[bytes, ...]) -> None:
    with server.connect() as line:
        line.send(post(*(b"Transfer-Encoding: " + coding for coding in codings), body=HELLO))
        assert line.answer().status == 501
