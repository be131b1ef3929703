"""The chunked coding (RFC 9112, 7.1): sizes and ends that two implementations could interpret
differently."""

from __future__ import annotations

from tests.support.cases import Cases, echoed
from tests.support.raw_http import Answer, request

CASES = Cases()
END = b"0\r\n\r\n"


def chunked(body: bytes) -> bytes:
    """A POST request to `/echo` whose body is ``body``, already in chunked coding."""
    return request("/echo", b"Transfer-Encoding: chunked", method="POST", body=body)


def _took_hello(answer: Answer) -> None:
    assert echoed(answer)["body"] == "hello"


def _dropped_trailers(answer: Answer) -> None:
    echo = echoed(answer)
    assert echo["body"] == "hello"
    assert echo["fields"].get("CONTENT_LENGTH") in (None, "", "5") and echo["fields"]["HTTP_X_U"] == "true"


#: The name of the row, and the coded body. An application that streams the body gets an exception.
BROKEN: dict[str, bytes] = {
    # Modulo 2^64 it is 5.
    "chunk size 2^64+5": b"10000000000000005\r\nhello\r\n" + END,
    "chunk 0x5": b"0x5\r\nhello\r\n" + END,
    "chunk +5": b"+5\r\nhello\r\n" + END,
    "chunk -5": b"-5\r\nhello\r\n" + END,
    "chunk 0_5": b"0_5\r\nhello\r\n" + END,
    "chunk empty size": b"\r\nhello\r\n" + END,
    "chunk size led by space": b" 5\r\nhello\r\n" + END,
    "chunk data too long": b"5\r\nhello!\r\n" + END,
    "chunk size line bare LF": b"5\nhello\r\n" + END,
    "chunk data end bare LF": b"5\r\nhello\n" + END,
    "chunk data no CRLF": b"5\r\nhello" + END,
    "chunk ext bare LF": b"5;a\nb\r\nhello\r\n" + END,
    "chunk ext bare CR": b"5;a\rb\r\nhello\r\n" + END,
    "last chunk bare LF": b"5\r\nhello\r\n0\n\n",
}
for _name, _body in BROKEN.items():
    CASES.refuses(_name, chunked(_body), by_exception=True)
# RFC 9112, 7.1.1: a recipient ought to limit their length.
CASES.refuses(
    "chunk ext 1 MB", chunked(b"5;" + b"a" * 1_000_000 + b"\r\nhello\r\n" + END), choice=_took_hello, by_exception=True
)
# RFC 9110, 6.5.1: framing is forbidden in trailers. A server that accepts the request drops them.
CASES.refuses(
    "trailer CL/X-U not merged",
    request(
        "/echo",
        b"X-U: true",
        b"Transfer-Encoding: chunked",
        method="POST",
        body=b"5\r\nhello\r\n0\r\nContent-Length: 3\r\nX-U: evil\r\n\r\n",
    ),
    choice=_dropped_trailers,
    by_exception=True,
)
