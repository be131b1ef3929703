"""The classes that `onecopy.compat.bson` exports: pymongo's if pymongo is installed, otherwise
onecopy's."""

from __future__ import annotations

import datetime
import enum
from collections.abc import Mapping
from typing import Any, NamedTuple

from onecopy import bson as _ours

__all__ = [
    "DEFAULT_CODEC_OPTIONS",
    "PYMONGO",
    "Binary",
    "Code",
    "CodecOptions",
    "DBRef",
    "DatetimeConversion",
    "DatetimeMS",
    "Decimal128",
    "Int64",
    "InvalidBSON",
    "InvalidDocument",
    "InvalidStringData",
    "MaxKey",
    "MinKey",
    "ObjectId",
    "Regex",
    "Timestamp",
    "UuidRepresentation",
]


class _UuidRepresentation:
    """The numbers of UUID representations, as in pymongo's `UuidRepresentation`."""

    UNSPECIFIED = 0
    STANDARD = 4
    PYTHON_LEGACY = 3
    JAVA_LEGACY = 5
    CSHARP_LEGACY = 6


class _DatetimeConversion(enum.IntEnum):
    """The numbers that select how dates outside of the range of `datetime` are decoded, as in
    pymongo's `DatetimeConversion`."""

    DATETIME = 1
    DATETIME_CLAMP = 2
    DATETIME_MS = 3
    DATETIME_AUTO = 4


class _CodecOptions(NamedTuple):
    """Options of encoding and decoding, without pymongo's type registry."""

    document_class: type[Mapping[str, Any]] = dict
    tz_aware: bool = False
    uuid_representation: int = 0
    unicode_decode_error_handler: str = "strict"
    tzinfo: datetime.tzinfo | None = None
    type_registry: None = None
    datetime_conversion: int = _DatetimeConversion.DATETIME

    def with_options(self, **changed: Any) -> _CodecOptions:
        """Return a copy of the options with the given options changed."""
        return self._replace(**changed)


class _InvalidBSON(_ours.BSONError):
    """Raised if bytes are not valid BSON."""


class _InvalidStringData(_ours.BSONError):
    """Raised if a `str` contains lone surrogates."""


class _InvalidDocument(_ours.BSONError):
    """Raised if a document contains a value or a key that BSON cannot represent."""

    def __init__(self, message: str, document: Any = None) -> None:
        super().__init__(message)
        self.document = document


class _Reference(NamedTuple):
    collection: str
    id: Any
    database: str | None = None


class _DBRef(_Reference):
    """A reference to a document in another collection. BSON represents it by a document with `$ref`
    and `$id`."""

    __slots__ = ()
    _type_marker = 100

    def as_doc(self) -> dict[str, Any]:
        """Return the BSON document of this reference: `$ref`, `$id`, and `$db` if it is known."""
        doc = {"$ref": self.collection, "$id": self.id}
        return doc if self.database is None else {**doc, "$db": self.database}


#: pymongo's package, or `None`.
PYMONGO: Any
Binary: Any
Code: Any
CodecOptions: Any
DBRef: Any
DatetimeConversion: Any
DEFAULT_CODEC_OPTIONS: Any
DatetimeMS: Any
Decimal128: Any
Int64: Any
InvalidBSON: Any
InvalidDocument: Any
InvalidStringData: Any
MaxKey: Any
MinKey: Any
ObjectId: Any
Regex: Any
Timestamp: Any
UuidRepresentation: Any

try:
    import bson as _theirs
    from bson.codec_options import DEFAULT_CODEC_OPTIONS as _default
except ImportError:
    PYMONGO = None
    CodecOptions, DEFAULT_CODEC_OPTIONS = _CodecOptions, _CodecOptions()
    InvalidBSON, InvalidDocument, InvalidStringData = _InvalidBSON, _InvalidDocument, _InvalidStringData
    UuidRepresentation, DatetimeConversion, DBRef = _UuidRepresentation, _DatetimeConversion, _DBRef
    _types: Any = _ours
else:
    PYMONGO = _theirs
    CodecOptions, DEFAULT_CODEC_OPTIONS = _theirs.CodecOptions, _default
    InvalidBSON, InvalidDocument, InvalidStringData = (
        _theirs.InvalidBSON,
        _theirs.InvalidDocument,
        _theirs.InvalidStringData,
    )
    UuidRepresentation, DBRef = _theirs.UuidRepresentation, _theirs.DBRef
    DatetimeConversion = _theirs.DatetimeConversion
    _types = _theirs

Binary, Code, Decimal128, Int64 = _types.Binary, _types.Code, _types.Decimal128, _types.Int64
MaxKey, MinKey, ObjectId, Regex, Timestamp = (
    _types.MaxKey,
    _types.MinKey,
    _types.ObjectId,
    _types.Regex,
    _types.Timestamp,
)
if PYMONGO is None:
    DatetimeMS = _ours.DatetimeMS
else:
    from bson.datetime_ms import DatetimeMS
