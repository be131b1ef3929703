"""The request line, Host, and sizes over the limits (RFC 9112, 2.3, 3 and 3.2; RFC 9110, 5.4 and
4.1)."""

from __future__ import annotations

from tests.support.cases import Cases, echoed
from tests.support.raw_http import Answer, request

CASES = Cases()
LONG = 100_000


def line(first: bytes) -> bytes:
    """A request with this request line."""
    return first + b"\r\nHost: a\r\n\r\n"


def _took(answer: Answer) -> None:
    echo = echoed(answer)
    assert (echo["path"], echo["query"][:2], echo["method"]) == ("/echo", "", "GET")


def _took_long_value(answer: Answer) -> None:
    assert len(echoed(answer)["fields"]["HTTP_X_A"]) == LONG


def _took_all(answer: Answer) -> None:
    fields = echoed(answer)["fields"]
    assert all(fields[f"HTTP_X_{k}"] == str(k) for k in range(2000))


def _took_long_target(answer: Answer) -> None:
    assert len(echoed(answer)["query"]) == LONG


# RFC 9112, 3.2: 400 if Host is missing or duplicate.
CASES.refuses("no Host (1.1)", b"GET /echo HTTP/1.1\r\nX-A: b\r\n\r\n")
CASES.refuses("two Hosts", b"GET /echo HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n")
CASES.refuses("HTTP/9.9", line(b"GET /echo HTTP/9.9"))
CASES.refuses("HTTP/1.11", line(b"GET /echo HTTP/1.11"))
CASES.refuses("http/1.1 lower", line(b"GET /echo http/1.1"))
# RFC 9112, 3: a recipient may split the line at any white space.
CASES.refuses("two spaces in line", line(b"GET  /echo HTTP/1.1"), choice=_took)
CASES.refuses("tab in line", line(b"GET\t/echo HTTP/1.1"), choice=_took)
CASES.refuses("space in target", line(b"GET /echo a HTTP/1.1"))
# RFC 9110, 5.4: a server has limits, and reports them. Which size exceeds them is its own choice.
CASES.refuses("100 KB header", request("/echo", b"X-A: " + b"b" * LONG), choice=_took_long_value)
CASES.refuses("2,000 headers", request("/echo", *(b"X-%d: %d" % (k, k) for k in range(2000))), choice=_took_all)
CASES.refuses("1 MB of header, no end", b"GET /echo HTTP/1.1\r\nHost: a\r\nX-A: " + b"b" * 1_000_000)
CASES.refuses("100 KB URI", request("/echo?" + "q" * LONG), choice=_took_long_target)
