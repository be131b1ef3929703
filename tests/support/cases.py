"""HTTP conformance cases: each has a name and a check, which raises if a server's response is
wrong."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, NamedTuple

from tests.support.raw_http import REFUSALS, Answer, Closed, Line, request
from tests.support.serving import Serving


class Lenient(AssertionError):
    """The server accepted a request that RFC 9110 and 9112 permit it to accept or to refuse."""


class Case(NamedTuple):
    """A row of the conformance table.

    ``check`` raises `Lenient`, `Silent` or another `AssertionError` if the response is not ideal.
    """

    name: str
    check: Callable[[Serving], None]


class Cases(list[Case]):
    """The conformance cases of one file, in order of definition."""

    def behaves(self, name: str) -> Callable[[Callable[[Serving], None]], Callable[[Serving], None]]:
        """Returns a decorator that adds a function as the check of the case ``name``."""

        def add(check: Callable[[Serving], None]) -> Callable[[Serving], None]:
            self.append(Case(name, check))
            return check

        return add

    def refuses(
        self, name: str, sent: bytes, *, choice: Callable[[Answer], None] | None = None, by_exception: bool = False
    ) -> None:
        """Adds a case whose bytes a server must refuse.

        A refusal is an error status after which the server closes the connection, or only the
        close.

        Args:
            name: the name of the case.
            sent: all bytes that the client sends.
            choice: for bytes that the RFCs allow a server to accept: asserts that the response
                shows the only permitted interpretation.
            by_exception: status 500 counts as a refusal too: the application's `read()` raised.
        """

        def check(server: Serving) -> None:
            refused(server, sent, choice, by_exception)

        self.append(Case(name, check))


def refused(
    server: Serving, sent: bytes, choice: Callable[[Answer], None] | None = None, by_exception: bool = False
) -> None:
    """Sends bytes and asserts that the server refuses them; the arguments are those of
    `Cases.refuses`."""
    with server.connect() as line:
        line.send(sent)
        try:
            answer = line.answer()
        except Closed:
            return
        if answer.status in REFUSALS or (by_exception and answer.status == 500):
            # Further bytes on such a connection cannot be distinguished from the rest of the bad
            # request.
            if not line.ends():
                raise Lenient(f"refused with {answer.status}, but the connection stays open")
            return
        if choice is not None:
            choice(answer)
            raise Lenient(f"taken: {answer.status}")
        raise AssertionError(f"taken: {answer.status} {answer.body[:300]!r}")


def echoed(answer: Answer) -> dict[str, Any]:
    """The request as the application received it, parsed from a response of `/echo`."""
    assert answer.status == 200 and answer.whole, answer
    seen: dict[str, Any] = json.loads(answer.body)
    return seen


def is_hello(answer: Answer) -> None:
    """Asserts that ``answer`` is the complete response of `/hello`."""
    assert (answer.status, answer.body, answer.whole) == (200, b"hello, world", True), answer


def then_hello(line: Line, answer: Answer) -> None:
    """Asserts that the connection can be reused after ``answer``: the next response is correct.

    Raises:
        Lenient: the server closes the connection with `Connection: close`, which is permitted but
            unnecessary.
    """
    if b"close" in answer.all("connection"):
        assert line.ends()
        raise Lenient("the connection closes")
    line.send(request())
    is_hello(line.answer())
