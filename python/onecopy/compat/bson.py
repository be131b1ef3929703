"""The names of pymongo's `bson` over `onecopy.bson`: `from onecopy.compat import bson`.

`encode`, `decode`, `decode_all`, `decode_iter`, `decode_file_iter`, `is_valid`, `BSON` and `gen_list_name`, with pymongo's arguments. Where
pymongo is installed, its types, its `CodecOptions` and its exceptions are given and raised; where it is not, those of this package stand
under the same names. What differs, and why, stands in `docs/guide/move-from-pymongo-bson.md` in the repository.

>>> from onecopy.compat import bson
>>> bson.encode({"a": 1})
b'\\x0c\\x00\\x00\\x00\\x10a\\x00\\x01\\x00\\x00\\x00\\x00'
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import onecopy.bson as _ours
from onecopy.compat._bson_names import (
    DEFAULT_CODEC_OPTIONS,
    PYMONGO,
    Binary,
    Code,
    CodecOptions,
    DatetimeConversion,
    DatetimeMS,
    DBRef,
    Decimal128,
    Int64,
    InvalidBSON,
    InvalidDocument,
    InvalidStringData,
    MaxKey,
    MinKey,
    ObjectId,
    Regex,
    Timestamp,
    UuidRepresentation,
)

if TYPE_CHECKING:
    from typing import IO

    from _typeshed import ReadableBuffer

__all__ = [
    "BSON",
    "DEFAULT_CODEC_OPTIONS",
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
    "decode",
    "decode_all",
    "decode_file_iter",
    "decode_iter",
    "encode",
    "gen_list_name",
    "has_c",
    "is_valid",
]

#: Numbers of pymongo's `UuidRepresentation`.
_REPRESENTATIONS = {0: "unspecified", 3: "python_legacy", 4: "standard", 5: "java_legacy", 6: "csharp_legacy"}

#: What pymongo has no form for, and leaves to type encoders.
_LEFT = ("buffer", "dataclass", "date", "decimal", "enum", "numpy")


def _checked(options: Any) -> Any:
    """The options, or those that stand where none are given."""
    if options is None:
        return DEFAULT_CODEC_OPTIONS
    if not isinstance(options, CodecOptions):
        raise TypeError("codec_options must be an instance of CodecOptions")
    return options


def _representation(options: Any) -> Any:
    return _REPRESENTATIONS[options.uuid_representation]


def _default_of(options: Any) -> Callable[[Any], Any] | None:
    """What a registry of types has encoders for."""
    registry = options.type_registry
    encoders = getattr(registry, "_encoder_map", None)
    fallback = getattr(registry, "_fallback_encoder", None)
    if not encoders and fallback is None:
        return None

    def default(value: Any) -> Any:
        encoder = encoders.get(type(value)) if encoders else None
        if encoder is not None:
            return encoder(value)
        if fallback is not None:
            return fallback(value)
        raise _ours.BSONTypeError(f"an object of type `{type(value).__qualname__}` has no form in BSON")

    return default


def encode(document: Mapping[str, Any], check_keys: bool = False, codec_options: Any = None) -> bytes:
    """A document as BSON, `_id` first, as pymongo has it.

    Copies: as `onecopy.bson.encode`.

    Raises what pymongo raises where it is installed: it is asked for the same then, and what it makes of it is the answer. Else
    `InvalidDocument`, and `OverflowError` for an int past 64 bits.
    """
    options = _checked(codec_options)
    try:
        return _ours.encode(
            _id_first(document),
            check_keys=check_keys,
            uuid_representation=_representation(options),
            default=_default_of(options),
            passthrough=_LEFT,  # type: ignore[arg-type]
        )
    except (_ours.BSONError, RuntimeError) as error:
        if PYMONGO is not None:
            return bytes(PYMONGO.encode(document, check_keys, options))
        kind = getattr(error, "kind", "")
        if kind == "int":
            raise OverflowError("MongoDB can only handle up to 8-byte ints") from None
        if isinstance(error, _ours.BSONTypeError) and error.path == "$" and kind == "type":
            raise TypeError(str(error)) from None
        if kind in ("uuid", "depth"):
            raise
        raise (InvalidStringData if kind == "text" else InvalidDocument)(str(error)) from None


def _id_first(document: Any) -> Any:
    """The same members with `_id` before the others."""
    if isinstance(document, dict) and "_id" in document and next(iter(document)) != "_id":
        rest = {key: value for key, value in document.items() if key != "_id"}
        return {"_id": document["_id"], **rest}
    return document


def _is_plain(options: Any) -> bool:
    """Whether the fast way serves: no converters of types, no zone, no documents of a class that holds bytes."""
    registry = options.type_registry
    if getattr(registry, "_decoder_map", None) or getattr(options.document_class, "_type_marker", None) == 101:
        return False
    return options.tzinfo is None


#: Numbers of pymongo's `DatetimeConversion`.
_RANGES = {1: "error", 2: "clamp", 3: "raw", 4: "auto"}


def _keywords(options: Any) -> dict[str, Any]:
    """How `onecopy.bson` is asked for the same."""
    return {
        "types": "onecopy" if PYMONGO is None else "pymongo",
        "document_class": options.document_class,
        "tz_aware": bool(options.tz_aware),
        "uuid_representation": _representation(options),
        "on_invalid_utf8": options.unicode_decode_error_handler or "strict",
        "datetime_range": _RANGES[int(options.datetime_conversion)],
    }


def _decoded(name: str, data: Any, options: Any) -> Any:
    """What a function of `onecopy.bson` makes of the data, or pymongo's of the same name where options or errors are its own."""
    if PYMONGO is not None and not _is_plain(options):
        return getattr(PYMONGO, name)(data, options)
    try:
        return getattr(_ours, name)(data, **_keywords(options))
    except _ours.BSONDecodeError as error:
        if PYMONGO is not None:
            return getattr(PYMONGO, name)(data, options)
        raise InvalidBSON(str(error)) from None


def decode(data: ReadableBuffer, codec_options: Any = None) -> Any:
    """A document as a `dict`, or of the class that the options name. Raises `InvalidBSON`."""
    return _decoded("decode", data, _checked(codec_options))


def decode_all(data: ReadableBuffer, codec_options: Any = None) -> list[Any]:
    """Documents one behind the other. Raises `InvalidBSON`."""
    made: list[Any] = _decoded("decode_all", data, _checked(codec_options))
    return made


def decode_iter(data: ReadableBuffer, codec_options: Any = None) -> Iterator[Any]:
    """As `decode_all`, one document at a time."""
    return _each(data, _checked(codec_options), "decode_iter")


def decode_file_iter(file_obj: IO[bytes], codec_options: Any = None) -> Iterator[Any]:
    """The documents of a file, which is read as far as they are asked for."""
    return _each(file_obj, _checked(codec_options), "decode_file_iter")


def _each(source: Any, options: Any, theirs: str) -> Iterator[Any]:
    if PYMONGO is not None and not _is_plain(options):
        yield from getattr(PYMONGO, theirs)(source, options)
        return
    try:
        yield from _ours.decode_iter(source, **_keywords(options))
    except _ours.BSONDecodeError as error:
        raise InvalidBSON(str(error)) from None


def is_valid(bson: bytes) -> bool:
    """Whether it is one document. Raises `TypeError` for what is no `bytes`."""
    if not isinstance(bson, bytes):
        raise TypeError(f"BSON data must be an instance of a subclass of bytes, not {type(bson)}")
    try:
        decode(bson)
    except Exception:
        return False
    return True


class BSON(bytes):
    """A document as bytes that can decode itself."""

    __slots__ = ()

    @classmethod
    def encode(cls, document: Mapping[str, Any], check_keys: bool = False, codec_options: Any = None) -> BSON:
        """As the function `encode`."""
        return cls(encode(document, check_keys, codec_options))

    def decode(self, codec_options: Any = None) -> Any:  # type: ignore[override]
        """As the function `decode`."""
        return decode(self, codec_options)


def gen_list_name() -> Iterator[bytes]:
    """The keys of an array, each with its NUL."""
    return (b"%d\0" % n for n in itertools.count())


def has_c() -> bool:
    """Whether a compiled extension does the work."""
    return True
