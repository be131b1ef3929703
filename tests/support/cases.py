"""Conformance cases: a name, and a check that speaks to a server and raises where the answer is not right."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, NamedTuple

from tests.support.raw_http import REFUSALS, Answer, Closed, Line, request
from tests.support.serving import Serving


class Lenient(AssertionError):
    """The server took what RFC 9110 and 9112 let it take or refuse; a strict one refuses."""


class Case(NamedTuple):
    """A row of the conformance table. ``check`` raises `Lenient`, `Silent` or another `AssertionError`."""

    name: str
    check: Callable[[Serving], None]


class Cases(list[Case]):
    """The cases of one file, in order."""

    def behaves(self, name: str) -> Callable[[Callable[[Serving], None]], Callable[[Serving], None]]:
        """The decorated function is a case of that name."""

        def add(check: Callable[[Serving], None]) -> Callable[[Serving], None]:
            self.append(Case(name, check))
            return check

        return add

    def refuses(
        self, name: str, sent: bytes, *, choice: Callable[[Answer], None] | None = None, told: bool = False
    ) -> None:
        """A case of bytes that are refused: by a status that says so and the end of the connection, or by that alone.

        Args:
            name: the row.
            sent: everything the client sends.
            choice: where the RFCs let a server take it, asserts that it took it in the one way they allow.
            told: an exception in the application's `read()` refuses it too, which makes it a 500.
        """

        def check(server: Serving) -> None:
            refused(server, sent, choice, told)

        self.append(Case(name, check))


def refused(server: Serving, sent: bytes, choice: Callable[[Answer], None] | None = None, told: bool = False) -> None:
    """Sends bytes and asserts that they are refused; see `Cases.refuses`."""
    with server.connect() as line:
        line.send(sent)
        try:
            answer = line.answer()
        except Closed:
            return
        if answer.status in REFUSALS or (told and answer.status == 500):
            # What follows on such a connection cannot be told from the rest of the bad request.
            if not line.ends():
                raise Lenient(f"refused with {answer.status}, but the connection stays open")
            return
        if choice is not None:
            choice(answer)
            raise Lenient(f"taken: {answer.status}")
        raise AssertionError(f"taken: {answer.status} {answer.body[:300]!r}")


def told_of(answer: Answer) -> dict[str, Any]:
    """What `/echo` says the application saw."""
    assert answer.status == 200 and answer.whole, answer
    seen: dict[str, Any] = json.loads(answer.body)
    return seen


def is_hello(answer: Answer) -> None:
    """Asserts the answer of `/hello`."""
    assert (answer.status, answer.body, answer.whole) == (200, b"hello, world", True), answer


def then_hello(line: Line, answer: Answer) -> None:
    """Asserts that the connection goes on after an answer and that the next one is right. One that says `close` and does
    so is lenient: there was no need."""
    if b"close" in answer.all("connection"):
        assert line.ends()
        raise Lenient("the connection closes")
    line.send(request())
    is_hello(line.answer())
