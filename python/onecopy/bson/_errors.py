"""Exceptions for values that BSON cannot represent, and for invalid BSON."""

from __future__ import annotations

from typing import Any

__all__ = ["BSONDecodeError", "BSONEncodeError", "BSONError", "BSONTypeError"]


class BSONError(ValueError):
    """The base class of errors in encoding and decoding BSON."""


class BSONEncodeError(BSONError):
    """Raised if a value cannot be represented in BSON, for example an int of more than 64 bits, a
    lone surrogate, a key that contains NUL, or too deep nesting.

    `reason` describes the error; `path` is the path to the value: ``$.rows[3].price``. `kind` is
    one of ``"datetime"``, ``"decimal"``, ``"depth"``, ``"int"``, ``"key"``, ``"raw"``, ``"regex"``,
    ``"size"``, ``"text"``, ``"type"``, ``"uuid"``.
    """

    #: The reason; a second line gives the remedy, if there is one.
    reason: str
    #: The path to the value, starting at the outermost document ``$``.
    path: str
    #: The kind of the error: one of the words in the docstring of the class.
    kind: str
    #: The value or key that BSON cannot represent. It is `None` if no single value is wrong, and
    #: after unpickling.
    value: Any

    def __init__(self, reason: str, path: str = "$", kind: str = "type") -> None:
        what, newline, remedy = reason.partition("\n")
        super().__init__(f"{what}, at `{path}`{newline}{remedy}")
        self.reason = reason
        self.path = path
        self.kind = kind
        self.value = None

    def __reduce__(self) -> tuple[type[BSONEncodeError], tuple[str, str, str]]:
        return self.__class__, (self.reason, self.path, self.kind)


class BSONTypeError(BSONEncodeError, TypeError):
    """Raised if an object's type cannot be represented in BSON, or a key is not a `str`. This class
    is also derived from `TypeError`."""


class BSONDecodeError(BSONError):
    """Raised if bytes are not valid BSON, or exceed the limits of the call.

    `reason` describes the error; `offset_bytes` is its position, from 0.
    """

    #: The reason why the bytes were rejected.
    reason: str
    #: Offset of the error in bytes, from the start of the input, from 0.
    offset_bytes: int

    def __init__(self, reason: str, offset_bytes: int = 0) -> None:
        super().__init__(f"{reason}, at byte {offset_bytes}")
        self.reason = reason
        self.offset_bytes = offset_bytes

    def __reduce__(self) -> tuple[type[BSONDecodeError], tuple[str, int]]:
        return self.__class__, (self.reason, self.offset_bytes)
