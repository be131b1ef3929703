"""Rules that the server enforces against an application: responses without a body, headers without
line ends, and bodies of the announced length."""

from __future__ import annotations

from tests.support.cases import Cases, Lenient, is_hello, then_hello
from tests.support.raw_http import Closed, Malformed, request
from tests.support.serving import Serving

CASES = Cases()


@CASES.behaves("HEAD, no body bytes (CL)")
def _(server: Serving) -> None:
    with server.connect() as line:
        line.send(request(method="HEAD"))
        answer = line.answer("HEAD")
        assert (answer.status, answer.one("content-length")) == (200, b"12")
        then_hello(line, answer)


@CASES.behaves("HEAD of a generator")
def _(server: Serving) -> None:
    with server.connect() as line:
        line.send(request("/generator", method="HEAD"))
        answer = line.answer("HEAD")
        assert answer.status == 200
        then_hello(line, answer)


def _bodiless(server: Serving, status: int) -> None:
    with server.connect() as line:
        line.send(request(f"/bodiless/{status}"))
        answer = line.answer()
        assert answer.status == status
        then_hello(line, answer)


@CASES.behaves("204 with body")
def _(server: Serving) -> None:
    _bodiless(server, 204)


@CASES.behaves("304 with body")
def _(server: Serving) -> None:
    _bodiless(server, 304)


def injected(server: Serving, kind: str) -> None:
    """Asserts that an injected header is not sent: the response has status 500 or the connection
    closes."""
    with server.connect() as line:
        line.send(request(f"/inject/{kind}"))
        try:
            answer = line.answer()
        except Closed:
            return
        assert not answer.all("x-evil"), answer.fields
        # A changed value is worse than a missing one.
        assert kind != "beyond" or answer.status == 500 or not answer.all("x-a"), answer.fields
        if answer.status != 500:
            raise Lenient(f"answered {answer.status} with {answer.fields}")


for _row, _kind in {
    "inject CRLF in value": "crlf",
    "inject LF": "lf",
    "inject CR": "cr",
    "inject NUL": "nul",
    "inject in name": "name",
    "inject in status": "status",
    "header beyond latin-1": "beyond",
}.items():
    CASES.behaves(_row)(lambda server, kind=_kind: injected(server, kind))  # type: ignore[misc]


@CASES.behaves("app sets TE and CL")
def _(server: Serving) -> None:
    # `answer` refuses two framings. Fields that PEP 3333 forbids may lead to a 500, or be omitted.
    with server.connect() as line:
        line.send(request("/framings"))
        try:
            answer = line.answer()
        except Closed:
            return
        assert answer.status == 500 or answer.whole, answer


@CASES.behaves("body longer than CL")
def _(server: Serving) -> None:
    with server.connect() as line:
        line.send(request("/longer"))
        answer = line.answer()
        assert (answer.status, answer.body) == (200, b"0123456789")
        # Surplus bytes are not sent, not even before the next response.
        try:
            if not line.ends():
                line.send(request())
                is_hello(line.answer())
        except Malformed as error:
            raise AssertionError(f"sent past its length: {error}") from None


@CASES.behaves("body shorter than CL")
def _(server: Serving) -> None:
    # Announced bytes are never taken from the next response: the connection ends, which shows that
    # some are missing.
    with server.connect() as line:
        line.send(request("/shorter") + request())
        try:
            answer = line.answer()
        except Closed:
            return
        if answer.status == 500:
            return
        assert not answer.whole and answer.body == b"01234", answer


@CASES.behaves("exception mid-body")
def _(server: Serving) -> None:
    with server.connect() as line:
        line.send(request("/raises/late"))
        answer = line.answer()
        if answer.framing == "close":
            raise AssertionError("an answer that breaks off looks complete")
        assert answer.status == 200 and not answer.whole


@CASES.behaves("exception early -> 500")
def _(server: Serving) -> None:
    for when in ("before", "after", "first"):
        answer = server.ask(f"/raises/{when}")
        assert answer.status == 500, f"raised {when}: {answer}"
        # The text of an exception is only logged.
        assert b"raised" not in answer.body
