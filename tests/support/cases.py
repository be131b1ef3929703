"""Conformance cases: a name, and a check that talks to a server and raises if the response is
wrong."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, NamedTuple

from tests.support.raw_http import REFUSALS, Answer, Closed, Line, request
from tests.support.serving import Serving


class Lenient(AssertionError):
    """The server accepted something that RFC 9110 and 9112 allow it to accept or refuse."""


class Case(NamedTuple):
    """A row of the conformance table. ``check`` raises `Lenient`, `Silent` or another `AssertionError`."""

    name: str
    check: Callable[[Serving], None]


class Cases(list[Case]):
    """The cases of one file, in order."""

    def behaves(self, name: str) -> Callable[[Callable[[Serving], None]], Callable[[Serving], None]]:
        """A decorator: the function is the case of that name."""

        def add(check: Callable[[Serving], None]) -> Callable[[Serving], None]:
            self.append(Case(name, check))
            return check

        return add

    def refuses(
        self, name: str, sent: bytes, *, choice: Callable[[Answer], None] | None = None, by_exception: bool = False
    ) -> None:
        """A case of bytes that must be refused: by a status and the end of the connection, or only
        by the end.

        Args:
            name: the name of the row.
            sent: everything the client sends.
            choice: asserts the only permitted interpretation, if the RFCs allow a server to accept
                the bytes.
            by_exception: an exception in the application's `read()`, which leads to a 500, refuses
                them too.
        """

        def check(server: Serving) -> None:
            refused(server, sent, choice, by_exception)

        self.append(Case(name, check))


def refused(
    server: Serving, sent: bytes, choice: Callable[[Answer], None] | None = None, by_exception: bool = False
) -> None:
    """Sends bytes and asserts that they are refused; see `Cases.refuses`."""
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
    """The request as the application saw it, from a response of `/echo`."""
    assert answer.status == 200 and answer.whole, answer
    seen: dict[str, Any] = json.loads(answer.body)
    return seen


def is_hello(answer: Answer) -> None:
    """Asserts the response of `/hello`."""
    assert (answer.status, answer.body, answer.whole) == (200, b"hello, world", True), answer


def then_hello(line: Line, answer: Answer) -> None:
    """Asserts that the connection continues after a response and that the next one is correct.
    Closing it with `close` is lenient, since that was not necessary."""
    if b"close" in answer.all("connection"):
        assert line.ends()
        raise Lenient("the connection closes")
    line.send(request())
    is_hello(line.answer())
