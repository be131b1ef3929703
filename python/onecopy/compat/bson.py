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
import sys
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

#: pymongo's `_type_marker` of documents that hold their bytes.
_RAW = 101

#: Error handlers that are CPython's own and have an answer for any malformed UTF-8, or none.
_HANDLERS = frozenset({"strict", "replace", "ignore", "backslashreplace", "surrogateescape"})

#: Numbers of pymongo's `DatetimeConversion`.
_RANGES = {1: "error", 2: "clamp", 3: "raw", 4: "auto"}

#: True if `InvalidDocument` has an argument for the document, as from pymongo 4.16 on.
_HOLDS_DOCUMENT = hasattr(InvalidDocument, "document") or PYMONGO is None

_TOO_LARGE = "MongoDB can only handle up to 8-byte ints"

#: Kinds of our errors, and the exceptions that pymongo raises whatever the document is.
_PLAIN: dict[str, tuple[type[Exception], str]] = {
    "int": (OverflowError, _TOO_LARGE),
    "datetime": (OverflowError, "date value out of range"),
    "depth": (RecursionError, "maximum recursion depth exceeded while encoding an object to BSON "),
    "size": (ValueError, "Document would overflow BSON size limit"),
    "uuid": (
        ValueError,
        "cannot encode native uuid.UUID with UuidRepresentation.UNSPECIFIED. UUIDs can be manually converted to "
        "bson.Binary instances using bson.Binary.from_uuid() or a different UuidRepresentation can be configured. "
        "See the documentation for UuidRepresentation for more information.",
    ),
}


class _Prepared:
    """Codec options as arguments of `onecopy.bson`."""

    __slots__ = ("encoders", "fallback", "is_plain", "is_quiet", "keywords", "options", "representation")

    def __init__(self, options: Any) -> None:
        registry, of_class = options.type_registry, options.document_class
        self.options = options
        self.representation: Any = _REPRESENTATIONS[options.uuid_representation]
        #: Encoders by type, and what is called for all other types.
        self.encoders: dict[Any, Callable[[Any], Any]] = getattr(registry, "_encoder_map", None) or {}
        self.fallback: Callable[[Any], Any] | None = getattr(registry, "_fallback_encoder", None)
        #: True if our decoder has these options: no type decoders, no zone, no raw documents.
        has_converters = bool(getattr(registry, "_decoder_map", None))
        self.is_plain = (
            not has_converters and options.tzinfo is None and getattr(of_class, "_type_marker", None) != _RAW
        )
        #: True if no code of the caller's runs while documents are decoded: pymongo may repeat it.
        self.is_quiet = of_class is dict and options.unicode_decode_error_handler in _HANDLERS
        self.keywords: dict[str, Any] = {
            "types": "onecopy" if PYMONGO is None else "pymongo",
            "document_class": of_class,
            "tz_aware": bool(options.tz_aware),
            "uuid_representation": self.representation,
            "on_invalid_utf8": options.unicode_decode_error_handler,
            "datetime_range": _RANGES[int(options.datetime_conversion)],
        }

    def default(self) -> Callable[[Any], Any]:
        """The encoders and the fallback as one function, for one call of `encode`.

        pymongo calls the encoder for a value that has no form, else the fallback, and does not pass a
        result to the same one of the two again. A result is written next, so it comes back here at once
        if it has no form.
        """
        encoders, fallback = self.encoders, self.fallback
        if not encoders and fallback is None:
            return _refuse
        made, maker = None, ""

        def default(value: Any) -> Any:
            nonlocal made, maker
            last = maker if value is made else ""
            encoder = None if last == "encoder" else encoders.get(type(value))
            if encoder is not None:
                maker = "encoder"
            elif fallback is not None and last != "fallback":
                encoder, maker = fallback, "fallback"
            else:
                return _refuse(value)
            made = encoder(value)
            return made

        return default


#: By the address of the options, which the values hold.
_PREPARED: dict[int, _Prepared] = {}


def _prepared(options: Any) -> _Prepared:
    """The arguments for these options, or for pymongo's default options."""
    if options is None:
        options = DEFAULT_CODEC_OPTIONS
    found = _PREPARED.get(id(options))
    if found is None:
        if not isinstance(options, CodecOptions):
            raise TypeError("codec_options must be an instance of CodecOptions")
        if len(_PREPARED) >= 64:
            _PREPARED.clear()
        found = _PREPARED[id(options)] = _Prepared(options)
    return found


def _refuse(value: Any) -> Any:
    """Raises pymongo's exception for a value that has no form."""
    if isinstance(value, int):
        raise OverflowError(_TOO_LARGE)
    raise InvalidDocument(f"cannot encode object: {value!r}, of type: {type(value)!r}")


def encode(document: Mapping[str, Any], check_keys: bool = False, codec_options: Any = None) -> bytes:
    """A document as BSON, `_id` first, as pymongo has it.

    Copies: as `onecopy.bson.encode`.

    Raises pymongo's exceptions: `InvalidDocument`, `TypeError` if the document is not a mapping,
    `OverflowError` for an int past 64 bits, `UnicodeEncodeError` for a lone surrogate,
    `RecursionError`; and those of type encoders. No code of the caller's runs twice.
    """
    prepared = _prepared(codec_options)
    try:
        return _ours.encode(
            _id_first(document),
            check_keys=check_keys,
            uuid_representation=prepared.representation,
            default=prepared.default(),
            passthrough=_LEFT,  # type: ignore[arg-type]
            max_depth=sys.getrecursionlimit(),
        )
    except InvalidDocument as error:
        raise _of_document(str(error), document) from None
    except _ours.BSONEncodeError as error:
        if error.__traceback__ is None or error.__traceback__.tb_next is not None:
            raise  # by code of the caller's
        raise _as_pymongo(error, document) from None


def _of_document(message: str, document: Any) -> Exception:
    """An `InvalidDocument` that holds the document, where pymongo's can."""
    message = f"Invalid document: {message}"
    made: Exception = InvalidDocument(message, document) if _HOLDS_DOCUMENT else InvalidDocument(message)
    return made


def _as_pymongo(error: _ours.BSONEncodeError, document: Any) -> Exception:
    """The exception that pymongo raises for the same document."""
    if error.kind in _PLAIN:
        kind, message = _PLAIN[error.kind]
        return kind(message)
    if error.kind in ("key", "text"):
        text = getattr(error.value, "pattern", error.value)
        try:
            message = _about_key(text) if error.kind == "key" else text.encode()
        except UnicodeEncodeError as surrogates:
            return surrogates
        except AttributeError:
            made: Exception = InvalidStringData("regex patterns must be valid UTF-8")
            return made
        return _of_document(message, document)
    if error.kind == "regex":
        return _of_document("regex patterns must not contain the NULL byte", document)
    return _of_document(str(error), document)


def _about_key(key: Any) -> str:
    """What is wrong with a key."""
    if not isinstance(key, str):
        return f"documents must have only string keys, key was {key!r}"
    if b"\0" in key.encode():
        return "Key names must not contain the NULL byte"
    return f"key '{key}' must not {'start with' if key[0] == '$' else 'contain'} '{'$' if key[0] == '$' else '.'}'"


def _id_first(document: Any) -> Any:
    """The same members with `_id` first. Raises `TypeError` if the document is not a mapping."""
    if not isinstance(document, dict):
        if getattr(document, "_type_marker", None) == _RAW:
            return document
        if not isinstance(document, Mapping):
            raise TypeError(f"encoder expected a mapping type but got: {document!r}")
    if "_id" not in document or next(iter(document)) == "_id":
        return document
    rest = {key: value for key, value in document.items() if key != "_id"}
    return {"_id": document["_id"], **rest}


def _decoded(name: str, data: Any, prepared: _Prepared) -> Any:
    """The result of a function of `onecopy.bson`, or of pymongo's for its own options and errors."""
    options, keywords = prepared.options, prepared.keywords
    if PYMONGO is not None and not prepared.is_plain:
        return getattr(PYMONGO, name)(data, options)
    if not prepared.is_quiet:
        try:
            _ours.validate_all(data) if name == "decode_all" else _ours.validate(data)
        except _ours.BSONDecodeError:
            if PYMONGO is not None:
                return getattr(PYMONGO, name)(data, options)
        else:
            # No text is malformed: the handler is not called, and may be one that does not exist.
            keywords = {**keywords, "on_invalid_utf8": "strict"}
    try:
        return getattr(_ours, name)(data, **keywords)
    except _ours.BSONDecodeError as error:
        if PYMONGO is None:
            raise InvalidBSON(str(error)) from None
        if prepared.is_quiet:
            return getattr(PYMONGO, name)(data, options)
        # A date out of range, or an error of the document class, which pymongo must not call again.
        getattr(PYMONGO, name)(data, options.with_options(document_class=dict, unicode_decode_error_handler="strict"))
        raise


def decode(data: ReadableBuffer, codec_options: Any = None) -> Any:
    """A document as a `dict`, or of the class that the options name. Raises `InvalidBSON`."""
    return _decoded("decode", data, _prepared(codec_options))


def decode_all(data: ReadableBuffer, codec_options: Any = None) -> list[Any]:
    """Documents one behind the other. Raises `InvalidBSON`."""
    made: list[Any] = _decoded("decode_all", data, _prepared(codec_options))
    return made


def decode_iter(data: ReadableBuffer, codec_options: Any = None) -> Iterator[Any]:
    """As `decode_all`, one document at a time."""
    return _each(data, _prepared(codec_options), "decode_iter")


def decode_file_iter(file_obj: IO[bytes], codec_options: Any = None) -> Iterator[Any]:
    """The documents of a file, which is read as far as they are asked for."""
    return _each(file_obj, _prepared(codec_options), "decode_file_iter")


def _each(source: Any, prepared: _Prepared, theirs: str) -> Iterator[Any]:
    if PYMONGO is not None and not prepared.is_plain:
        yield from getattr(PYMONGO, theirs)(source, prepared.options)
        return
    is_quiet = prepared.is_quiet
    documents = _ours.decode_iter(source, **prepared.keywords if is_quiet else {"document_class": _ours.RawDocument})
    while True:
        try:
            document = next(documents, None)
        except _ours.BSONDecodeError as error:
            raise InvalidBSON(str(error)) from None
        if document is None:
            return
        yield document if is_quiet else _decoded("decode", document.raw, prepared)


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
