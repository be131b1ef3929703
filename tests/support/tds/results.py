"""The results that a statement can have, and failures that a comment in its SQL requests."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Literal

from tests.support.tds.tokens import Column
from tests.support.tds.types import Parameter

Slice = tuple[bytes | bytearray | memoryview, int]


class SqlError(Exception):
    """An SQL Server error, with number and message; it ends the response."""

    def __init__(self, number: int, message: str, severity: int = 16, state: int = 1) -> None:
        super().__init__(message)
        self.number, self.severity, self.state = number, severity, state


@dataclass
class Rows:
    """A result with rows; each slice is the bytes of whole rows and their number."""

    columns: list[Column]
    slices: Iterator[Slice]


@dataclass
class Affected:
    """The result of a statement without rows: its row count, or None if it has no count.

    ``run``, if present, executes the statement and returns the count.
    """

    count: int | None
    run: Callable[[], int] | None = None


@dataclass
class Wait:
    """The result of WAITFOR: the number of seconds to wait."""

    seconds: float


@dataclass
class Message:
    """The result of PRINT or RAISERROR.

    It is information up to severity 10. Above, it is an error after which the batch continues.
    """

    number: int
    text: str
    severity: int = 0
    state: int = 1
    #: True if the next message belongs to the same statement.
    goes_on: bool = False


@dataclass
class Transaction:
    """The result of BEGIN, COMMIT or ROLLBACK, of a savepoint, or of SET IMPLICIT_TRANSACTIONS."""

    what: Literal["begin", "commit", "rollback", "save", "back", "implicit on", "implicit off"]
    savepoint: str = ""


@dataclass
class Called:
    """The outcome of a procedure: its results, its output parameters with their indices, its return
    status, and the error that ended it."""

    results: list[Result]
    outputs: list[tuple[int, Parameter]] = field(default_factory=list)
    status: int = 0
    error: SqlError | None = None


Result = Rows | Affected | Wait | Message | Transaction | Called


@dataclass(frozen=True)
class Failure:
    """A requested failure of a response, and the number of rows that are sent before it."""

    how: Literal["error", "drop", "stall"]
    after: int


_FAILURE = re.compile(r"/\*\s*(error|drop|stall) after (\d+)\s*\*/", re.I)


def failure(sql: str) -> Failure | None:
    """The failure that a comment in ``sql`` requests; None without such a comment."""
    match = _FAILURE.search(sql)
    return Failure(match[1].lower(), int(match[2])) if match else None  # type: ignore[arg-type]
