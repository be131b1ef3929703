"""The API of pymongo's `bson` on top of `onecopy.bson`: `from onecopy.compat import bson`.

`encode`, `decode`, `decode_all`, `decode_iter`, `decode_file_iter`, `is_valid`, `BSON` and
`gen_list_name`, with pymongo's arguments. If pymongo is installed, its types, its `CodecOptions`
and its exceptions are used; otherwise onecopy's own classes have these names.
`docs/guide/move-from-pymongo-bson.md` in the repository lists the differences and their reasons.

>>> from onecopy.compat import bson
>>> bson.encode({"a": 1})
b'\\x0c\\x00\\x00\\x00\\x10a\\x00\\x01\\x00\\x00\\x00\\x00'
"""

from __future__ import annotations

import datetime
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

#: Types that pymongo does not encode, but passes to the caller's type encoders.
_LEFT = ("buffer", "dataclass", "date", "decimal", "enum", "numpy")

#: pymongo's `_type_marker` of raw documents.
_RAW = 101

#: Error handlers of CPython that call no code of the caller for malformed UTF-8.
_HANDLERS = frozenset({"strict", "replace", "ignore", "backslashreplace", "surrogateescape"})

#: Numbers of pymongo's `DatetimeConversion`.
_RANGES = {1: "error", 2: "clamp", 3: "raw", 4: "auto"}

#: True if `InvalidDocument` has an argument for the document, as in pymongo 4.16 and later.
_HOLDS_DOCUMENT = hasattr(InvalidDocument, "document") or PYMONGO is None

_TOO_LARGE = "MongoDB can only handle up to 8-byte ints"

#: Maps kinds of onecopy's errors to the exceptions that pymongo raises. For these kinds, the
#: exception does not depend on the document.
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
    """The codec options of pymongo, converted to arguments for `onecopy.bson`."""

    __slots__ = ("encoders", "fallback", "is_plain", "is_quiet", "keywords", "options", "representation")

    def __init__(self, options: Any) -> None:
        registry, of_class = options.type_registry, options.document_class
        self.options = options
        self.representation: Any = _REPRESENTATIONS[options.uuid_representation]
        #: Encoders by type, and the fallback encoder for all other types.
        self.encoders: dict[Any, Callable[[Any], Any]] = getattr(registry, "_encoder_map", None) or {}
        self.fallback: Callable[[Any], Any] | None = getattr(registry, "_fallback_encoder", None)
        #: True if onecopy's decoder supports the options: no type decoders, time zone or raw
        #: documents.
        has_converters = bool(getattr(registry, "_decoder_map", None))
        self.is_plain = (
            not has_converters and options.tzinfo is None and getattr(of_class, "_type_marker", None) != _RAW
        )
        #: True if decoding calls no code of the caller's, so that pymongo may decode the input
        #: again.
        self.is_quiet = of_class is dict and options.unicode_decode_error_handler in _HANDLERS
        self.keywords: dict[str, Any] = {
            "compat": None if PYMONGO is None else "pymongo",
            "document_class": of_class,
            "tz_aware": bool(options.tz_aware),
            "uuid_representation": self.representation,
            "errors": options.unicode_decode_error_handler,
            "datetime_range": _RANGES[int(options.datetime_conversion)],
        }

    def default(self) -> Callable[[Any], Any]:
        """Return a function for the option `default` of one call of `encode`. It combines the type
        encoders and the fallback encoder.

        Like pymongo, the function calls the type encoder for the type of the value, or the fallback
        encoder if there is no such type encoder. If BSON cannot represent the returned value
        either, `encode` calls the function again with that value. In this second call, the function
        does not use the encoder that returned the value.
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


#: The converted options by the `id()` of the codec options. The values keep the codec options
#: alive.
_PREPARED: dict[int, _Prepared] = {}


def _prepared(options: Any) -> _Prepared:
    """Convert codec options to arguments for `onecopy.bson`; `None` means pymongo's default
    options."""
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
    """Raise pymongo's exception for a value that BSON cannot represent."""
    if isinstance(value, int):
        raise OverflowError(_TOO_LARGE)
    if isinstance(value, datetime.datetime):
        value.utcoffset()  # pandas' `NaT` raises `ValueError`.
    raise InvalidDocument(f"cannot encode object: {value!r}, of type: {type(value)!r}")


def encode(document: Mapping[str, Any], check_keys: bool = False, codec_options: Any = None) -> bytes:
    """Encode a document as BSON, with `_id` first, as pymongo does.

    Copies: as in `onecopy.bson.encode`.

    Raises pymongo's exceptions: `InvalidDocument`, `TypeError` if the document is not a mapping,
    `OverflowError` for an int past 64 bits, `UnicodeEncodeError` for a lone surrogate,
    `RecursionError`; and the exceptions of type encoders. Type encoders and the fallback encoder
    are never called twice for the same value.
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
            raise  # The exception comes from code of the caller's.
        raise _as_pymongo(error, document) from None


def _of_document(message: str, document: Any) -> Exception:
    """Create an `InvalidDocument`. The exception gets the document if pymongo's class has an
    argument for it."""
    message = f"Invalid document: {message}"
    made: Exception = InvalidDocument(message, document) if _HOLDS_DOCUMENT else InvalidDocument(message)
    return made


def _as_pymongo(error: _ours.BSONEncodeError, document: Any) -> Exception:
    """Convert onecopy's exception to the one that pymongo raises for the same document."""
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
    """Return the message that pymongo has for an invalid key."""
    if not isinstance(key, str):
        return f"documents must have only string keys, key was {key!r}"
    if b"\0" in key.encode():
        return "Key names must not contain the NULL byte"
    return f"key '{key}' must not {'start with' if key[0] == '$' else 'contain'} '{'$' if key[0] == '$' else '.'}'"


def _id_first(document: Any) -> Any:
    """Return the members of a mapping, `_id` first. Raises `TypeError` if the document is not a
    mapping."""
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
    """Decode with a function of `onecopy.bson`. If the options are supported only by pymongo, or
    the data is malformed, call pymongo's function instead, which raises pymongo's exception."""
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
            # No text is malformed, so the error handler is not called, and need not exist.
            keywords = {**keywords, "errors": "strict"}
    try:
        return getattr(_ours, name)(data, **keywords)
    except _ours.BSONDecodeError as error:
        if PYMONGO is None:
            raise InvalidBSON(str(error)) from None
        if prepared.is_quiet:
            return getattr(PYMONGO, name)(data, options)
        # The error is a date out of range, or an error in the document class. pymongo must not call
        # the document class again.
        getattr(PYMONGO, name)(data, options.with_options(document_class=dict, unicode_decode_error_handler="strict"))
        raise


def decode(data: ReadableBuffer, codec_options: Any = None) -> Any:
    """Decode a document as a `dict` or the document class of the options. Raises `InvalidBSON`."""
    return _decoded("decode", data, _prepared(codec_options))


def decode_all(data: ReadableBuffer, codec_options: Any = None) -> list[Any]:
    """Decode concatenated documents. Raises `InvalidBSON`."""
    made: list[Any] = _decoded("decode_all", data, _prepared(codec_options))
    return made


def decode_iter(data: ReadableBuffer, codec_options: Any = None) -> Iterator[Any]:
    """Decode concatenated documents, one at a time. Raises `InvalidBSON`."""
    return _each(data, _prepared(codec_options), "decode_iter")


def decode_file_iter(file_obj: IO[bytes], codec_options: Any = None) -> Iterator[Any]:
    """Decode the documents of a file, which is read on demand."""
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
    """True if the bytes are one valid document. Raises `TypeError` if the argument is not
    `bytes`."""
    if not isinstance(bson, bytes):
        raise TypeError(f"BSON data must be an instance of a subclass of bytes, not {type(bson)}")
    try:
        decode(bson)
    except Exception:
        return False
    return True


class BSON(bytes):
    """A BSON document as `bytes`, with a method that decodes it."""

    __slots__ = ()

    @classmethod
    def encode(cls, document: Mapping[str, Any], check_keys: bool = False, codec_options: Any = None) -> BSON:
        """Encode a document: see `encode`."""
        return cls(encode(document, check_keys, codec_options))

    def decode(self, codec_options: Any = None) -> Any:  # type: ignore[override]
        """Decode the document: see `decode`."""
        return decode(self, codec_options)


def gen_list_name() -> Iterator[bytes]:
    """Yield the keys of an array, each followed by NUL."""
    return (b"%d\0" % n for n in itertools.count())


def has_c() -> bool:
    """Return true, as pymongo does if its compiled extension is used."""
    return True
