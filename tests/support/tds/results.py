"""Results of a statement: rows, a count, a wait, a message, an error; and failures that a comment
requests."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Literal

from tests.support.tds.tokens import Column
from tests.support.tds.types import Parameter

Slice = tuple[bytes | bytearray | memoryview, int]


class SqlError(Exception):
    """An error for the client: SQL Server's number and message; it ends the response."""

    def __init__(self, number: int, message: str, severity: int = 16, state: int = 1) -> None:
        super().__init__(message)
        self.number, self.severity, self.state = number, severity, state


@dataclass
class Rows:
    """A result with rows; ``slices`` are bytes of whole rows and their number."""

    columns: list[Column]
    slices: Iterator[Slice]


@dataclass
class Affected:
    """A statement without a result: the row count, or None; ``run`` executes it and returns the
    count."""

    count: int | None
    run: Callable[[], int] | None = None


@dataclass
class Wait:
    """WAITFOR: seconds until done."""

    seconds: float


@dataclass
class Message:
    """PRINT and RAISERROR: up to severity 10 information, above it an error after which the batch
    continues."""

    number: int
    text: str
    severity: int = 0
    state: int = 1
    #: True if the next message belongs to the same statement.
    goes_on: bool = False


@dataclass
class Transaction:
    """BEGIN, COMMIT, ROLLBACK, savepoints, and implicit transactions turned on or off."""

    what: Literal["begin", "commit", "rollback", "save", "back", "implicit on", "implicit off"]
    savepoint: str = ""


@dataclass
class Called:
    """The outcome of a procedure: results, values of its output parameters by index, its return
    status, and the error that ends it."""

    results: list[Result]
    outputs: list[tuple[int, Parameter]] = field(default_factory=list)
    status: int = 0
    error: SqlError | None = None


Result = Rows | Affected | Wait | Message | Transaction | Called


@dataclass(frozen=True)
class Failure:
    """The failure of a response, and the number of rows before it."""

    how: Literal["error", "drop", "stall"]
    after: int


_FAILURE = re.compile(r"/\*\s*(error|drop|stall) after (\d+)\s*\*/", re.I)


def failure(sql: str) -> Failure | None:
    """The failure that a comment in ``sql`` requests."""
    match = _FAILURE.search(sql)
    return Failure(match[1].lower(), int(match[2])) if match else None  # type: ignore[arg-type]
