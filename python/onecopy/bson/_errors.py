"""Why a document cannot be written, or is none."""

from __future__ import annotations

from typing import Any

__all__ = ["BSONDecodeError", "BSONEncodeError", "BSONError", "BSONTypeError"]


class BSONError(ValueError):
    """The base of what is raised for values and bytes that have no form in BSON, or no meaning."""


class BSONEncodeError(BSONError):
    """A value has no form in BSON: an int past 64 bits, a lone surrogate, NUL in a key, containers too deep in each other.

    `reason` says what is wrong, `path` what leads to the value: ``$.rows[3].price``. `kind` is one of ``"datetime"``, ``"decimal"``,
    ``"depth"``, ``"int"``, ``"key"``, ``"raw"``, ``"regex"``, ``"size"``, ``"text"``, ``"type"``, ``"uuid"``.
    """

    #: What is wrong, and on a second line what can be done about it, where anything can.
    reason: str
    #: What leads to the value, from the outermost document ``$``.
    path: str
    #: What kind of value it is.
    kind: str
    #: The value or key that has no form, as it was given; `None` where it is no single one, and after unpickling.
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
    """An object is of a type that has no form in BSON, or a key is no `str`: a `TypeError` too."""


class BSONDecodeError(BSONError):
    """Bytes are no BSON, or none that was asked for.

    `reason` says what is wrong, `offset_bytes` is the byte where, from 0.
    """

    #: What is wrong.
    reason: str
    #: Byte where it is wrong, from the start of what was given, from 0.
    offset_bytes: int

    def __init__(self, reason: str, offset_bytes: int = 0) -> None:
        super().__init__(f"{reason}, at byte {offset_bytes}")
        self.reason = reason
        self.offset_bytes = offset_bytes

    def __reduce__(self) -> tuple[type[BSONDecodeError], tuple[str, int]]:
        return self.__class__, (self.reason, self.offset_bytes)
