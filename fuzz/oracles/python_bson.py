"""Checks that `onecopy.bson.decode` returns objects with the meaning of the bytes, and that they
are encoded as the same bytes again.

The meaning is determined by a separate implementation: `to_json` converts the bytes to Extended
JSON without creating objects, the standard library's `json` parses it, and this module converts the
decoded objects to the same form one by one. In addition, the types of the objects are compared with
those that pymongo returns.
"""

from __future__ import annotations

import base64
import datetime
import json
import math
import struct
import sys
import uuid
from collections.abc import Iterator
from typing import Any

import bson as pymongo
from bson.binary import UuidRepresentation
from bson.codec_options import CodecOptions, DatetimeConversion

from objects import Source
from onecopy import bson

_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc)
_MS = datetime.timedelta(milliseconds=1)

sys.setrecursionlimit(12_000)
sys.set_int_max_str_digits(0)


def _binary(data: bytes, subtype: int) -> dict[str, Any]:
    return {"$binary": {"base64": base64.b64encode(data).decode(), "subType": f"{subtype:02x}"}}


def _number(value: float) -> dict[str, Any]:
    return {"$numberDouble": value}


def form(value: Any) -> Any:
    """The value as canonical Extended JSON, in which a double is a float.

    Values must have exactly the types of BSON; instances of subclasses are not accepted.
    """
    kind = type(value)
    if value is None or kind is bool or kind is str:
        return value
    if kind is dict:
        return {key: form(item) for key, item in value.items()}
    if kind is list:
        return [form(item) for item in value]
    if kind is int:
        return {"$numberInt" if -(2**31) <= value < 2**31 else "$numberLong": str(value)}
    if kind is float:
        return _number(value)
    if kind is bytes:
        return _binary(value, 0)
    if kind is uuid.UUID:
        return _binary(value.bytes, 4)
    if kind is datetime.datetime:
        return {"$date": {"$numberLong": str((value - _EPOCH) // _MS)}}
    of_own = _OWN.get(kind)
    assert of_own is not None, f"{value!r} is of no type that BSON has"
    return of_own(value)


def _code(value: bson.Code) -> dict[str, Any]:
    said: dict[str, Any] = {"$code": str(value)}
    if value.scope is not None:
        said["$scope"] = form(value.scope)
    return said


_OWN: dict[type, Any] = {
    bson.Int64: lambda value: {"$numberLong": str(int(value))},
    bson.Binary: lambda value: _binary(bytes(value), value.subtype),
    bson.ObjectId: lambda value: {"$oid": str(value)},
    # Extended JSON has one word for all that is not a number.
    bson.Decimal128: lambda value: {"$numberDecimal": "NaN" if "NaN" in str(value) else str(value)},
    bson.DatetimeMS: lambda value: {"$date": {"$numberLong": str(int(value))}},
    bson.Timestamp: lambda value: {"$timestamp": {"t": value.time, "i": value.inc}},
    bson.Regex: lambda value: {"$regularExpression": {"pattern": value.pattern, "options": value.options}},
    bson.Code: _code,
    bson.MinKey: lambda value: {"$minKey": 1},
    bson.MaxKey: lambda value: {"$maxKey": 1},
    bson.Symbol: lambda value: {"$symbol": str(value)},
    bson.Undefined: lambda value: {"$undefined": True},
    bson.DBPointer: lambda value: {"$dbPointer": {"$ref": value.collection, "$id": {"$oid": str(value.id)}}},
}


def _read(text: bytes) -> Any:
    """Parses Extended JSON and converts `$numberDouble` to floats.

    A document whose only key is `$numberDouble` is converted too, since it looks the same.
    """

    def members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        if len(pairs) == 1 and pairs[0][0] == "$numberDouble" and isinstance(pairs[0][1], str):
            return _number(float(pairs[0][1]))
        return dict(pairs)

    return json.loads(text, object_pairs_hook=members)


def _same(ours: Any, theirs: Any) -> None:
    stack = [(ours, theirs)]
    while stack:
        a, b = stack.pop()
        if isinstance(a, float) and isinstance(b, float):
            assert (math.isnan(a) and math.isnan(b)) or struct.pack("<d", a) == struct.pack("<d", b), (a, b)
            continue
        assert type(a) is type(b), (a, b)
        if isinstance(a, dict):
            assert list(a) == list(b), (a, b)
            stack.extend((a[key], b[key]) for key in a)
        elif isinstance(a, list):
            assert len(a) == len(b), (a, b)
            stack.extend(zip(a, b, strict=True))
        else:
            assert a == b, (a, b)


def _decoded(data: Any, **options: Any) -> Any:
    """The decoded document or the error, after a check that the error's offset is inside of the
    data."""
    count = sys.getrefcount(data)
    found: Any
    try:
        found = bson.decode(data, **options)
    except bson.BSONDecodeError as error:
        found = error.with_traceback(None)
    # Of the shortest `bytes` there is one for all.
    assert len(data) < 2 or sys.getrefcount(data) == count, "a reference to the data is not given back"
    assert not isinstance(found, Exception) or 0 <= found.offset_bytes <= len(data), found
    return found


def _options(source: Source) -> dict[str, Any]:
    choices: list[tuple[str, Any]] = [
        ("tz_aware", (False, True)),
        ("datetime_range", ("error", "clamp", "raw", "auto")),
        ("uuid_representation", ("python_legacy", "java_legacy", "csharp_legacy", "unspecified", "standard")),
        ("errors", ("replace", "surrogateescape", "ignore", "backslashreplace", "strict")),
        ("decimals", ("decimal", "decimal128")),
        ("array_keys", ("strict", "any")),
        ("max_depth", (0, 1, 2, 8, 64, 65, 3000)),
        ("max_bytes", (5, 16, 64, 2147483647)),
    ]
    bits = source.byte()
    return {name: source.pick(values) for i, (name, values) in enumerate(choices) if bits >> i & 1}


#: pymongo's options, with which it accepts each datetime and each UUID, and ours for the comparison.
_AS_OURS = CodecOptions(
    tz_aware=True,
    uuid_representation=UuidRepresentation.STANDARD,
    datetime_conversion=DatetimeConversion.DATETIME_AUTO,
)
#: The depth limit for the comparison with pymongo, which decodes by recursion.
_LEVELS = 60


def _as_pymongo(data: bytes) -> None:
    """Asserts that `decode` with `compat="pymongo"` returns the same objects as pymongo."""
    try:
        ours = bson.decode(data, compat="pymongo", datetime_range="auto", max_depth=_LEVELS)
    except bson.BSONDecodeError:
        return
    theirs = pymongo.decode(data, _AS_OURS)
    assert _alike(ours, theirs), (ours, theirs)


def _alike(a: Any, b: Any) -> bool:
    if isinstance(a, dict):
        return isinstance(b, dict) and list(a) == list(b) and all(_alike(value, b[key]) for key, value in a.items())
    if isinstance(a, list):
        return isinstance(b, list) and len(a) == len(b) and all(map(_alike, a, b))
    if isinstance(a, float):
        return isinstance(b, float) and struct.pack("<d", a) == struct.pack("<d", b)
    if isinstance(a, pymongo.Code):
        return type(a) is type(b) and str(a) == str(b) and _alike(a.scope, b.scope)
    return type(a) is type(b) and bool(a == b)


def _parts(data: bytes, at: int) -> Iterator[bytes]:
    yield data[:at]
    yield data[at:]


def _read_otherwise(data: bytes, document: Any, at: int) -> None:
    """Asserts that `RawDocument` and `decode_iter` return the same objects as `decode`."""
    said = form(document)
    raw = bson.RawDocument(data, datetime_range="auto")
    _same(form(raw.decode()), said)
    assert list(dict.fromkeys(raw)) and set(raw) == set(document) if document else not list(raw)
    for key in document:
        value = raw[key]
        if isinstance(value, bson.RawDocument):
            value = value.decode()
        elif isinstance(value, list):
            value = document[key]  # Its documents are raw ones; the whole was compared above.
        _same(form(value), said[key])
    found = list(bson.decode_iter(_parts(data + data, at % (2 * len(data))), datetime_range="auto"))
    assert len(found) == 2
    for each in found:
        _same(form(each), said)


def _same_refusal(document: Any, error: bson.BSONDecodeError) -> None:
    """Asserts that `decode` has refused the data like `validate`, with the same reason and
    offset."""
    assert isinstance(document, bson.BSONDecodeError), f"{document!r} of data that is refused: {error}"
    assert (error.reason, error.offset_bytes) == (document.reason, document.offset_bytes), (error, document)


def check(data: bytes) -> None:
    """Checks one input of the fuzzer; raises if a result is wrong."""
    source = Source(data)
    head, options = source.byte(), _options(source)
    data = data[source.at :]
    if options:
        for held in (data, bytearray(data), memoryview(data)):
            _decoded(held, **options)
    document = _decoded(data, datetime_range="auto")
    _as_pymongo(data)
    try:
        bson.validate(data)
    except bson.BSONDecodeError as error:
        _same_refusal(document, error)
        return
    assert not isinstance(document, Exception), f"{document} of what `validate` takes"
    text = bson.to_json(data, canonical=True)
    _same(form(document), _read(text))
    _read_otherwise(data, document, head)
    again = bson.encode(document)
    # Canonical text round-trips as well; keys that look like a wrapper's may not,
    # and a key twice is one in a `dict`.
    try:
        is_canonical = bson.from_json(text) == data
    except ValueError:
        is_canonical = False
    if is_canonical and len(again) == len(data):
        assert again == data, (again, data)
    _same(form(bson.decode(again, datetime_range="auto")), form(document))
