"""Why a document cannot be written, or is none."""

from __future__ import annotations

__all__ = ["BSONDecodeError", "BSONEncodeError", "BSONError"]


class BSONError(ValueError):
    """The base of what is raised for values and bytes that have no form in BSON, or no meaning."""


class BSONEncodeError(BSONError):
    """A value has no form in BSON: an int past 64 bits, a lone surrogate, NUL in a key, containers too deep in each other.

    `reason` says what is wrong, `path` what leads to the value: ``$.rows[3].price``.
    """

    #: What is wrong, and on a second line what can be done about it, where anything can.
    reason: str
    #: What leads to the value, from the outermost document ``$``.
    path: str

    def __init__(self, reason: str, path: str = "$") -> None:
        what, newline, remedy = reason.partition("\n")
        super().__init__(f"{what}, at `{path}`{newline}{remedy}")
        self.reason = reason
        self.path = path

    def __reduce__(self) -> tuple[type[BSONEncodeError], tuple[str, str]]:
        return self.__class__, (self.reason, self.path)


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
