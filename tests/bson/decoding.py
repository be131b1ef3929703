"""Helpers for tests of BSON decoding: documents built byte by byte, Hypothesis strategies for
values, and a strict comparison of values."""

from __future__ import annotations

import datetime
import struct
from typing import Any
from uuid import UUID

import bson
from bson import Binary, Code, DatetimeMS, DBRef, Decimal128, Int64, MaxKey, MinKey, ObjectId, Regex, Timestamp
from hypothesis import strategies as st

import onecopy.bson

#: The module as `Any`: for calls that are wrong on purpose, or whose options are in a variable.
untyped: Any = onecopy.bson


def element(tag: int, value: bytes = b"", key: bytes = b"a") -> bytes:
    """The bytes of an element of a document: its type tag, its key and its value."""
    return bytes([tag]) + key + b"\0" + value


def document(*elements: bytes) -> bytes:
    """The bytes of a document with these elements."""
    body = b"".join(elements)
    return struct.pack("<i", len(body) + 5) + body + b"\0"


def string(text: bytes) -> bytes:
    """The bytes of a string value: its length, the text and a NUL."""
    return struct.pack("<i", len(text) + 1) + text + b"\0"


def binary(data: bytes, subtype: int) -> bytes:
    """The bytes of a binary value: its length, its subtype and the data."""
    return struct.pack("<iB", len(data), subtype) + data


def nested(levels: int, tag: int = 3) -> bytes:
    """The bytes of ``levels`` documents, each the only element of the one around it."""
    size = 5 + 8 * (levels - 1)
    heads = b"".join(struct.pack("<iB", size - 8 * i, tag) + b"0\0" for i in range(levels - 1))
    return heads + b"\x05\0\0\0" + b"\0" * levels


def same(a: Any, b: Any) -> bool:
    """Returns true if two values have equal types and contents, recursively.

    Floats are compared by their bits, dicts also by the order of their keys.
    """
    if isinstance(a, dict):
        return isinstance(b, dict) and list(a) == list(b) and all(same(value, b[key]) for key, value in a.items())
    if isinstance(a, list):
        return isinstance(b, list) and len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, float):
        return isinstance(b, float) and struct.pack("<d", a) == struct.pack("<d", b)
    if isinstance(a, Code):
        return type(a) is type(b) and str(a) == str(b) and same(a.scope, b.scope)
    return type(a) is type(b) and bool(a == b)


class _Later:
    """A constructor call that is executed only after Hypothesis has drawn its arguments.

    It is needed for subclasses of Python's own types, which Hypothesis would treat as the base
    class.
    """

    def __init__(self, make: Any, *parts: Any) -> None:
        self.make, self.parts = make, parts


def _made(value: Any) -> Any:
    if isinstance(value, _Later):
        return value.make(*map(_made, value.parts))
    if isinstance(value, dict):
        return {key: _made(inner) for key, inner in value.items()}
    return [_made(inner) for inner in value] if isinstance(value, list) else value


def _later(make: Any, *parts: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.builds(_Later, st.just(make), *parts)


keys = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=8)
texts = st.one_of(
    st.text(st.characters(exclude_categories=["Cs"]), max_size=30),
    st.text("abcdefgh ", max_size=90),
    st.text("абв東京", max_size=90),
    st.sampled_from(["new", "open", "closed"]),
)
ids = st.binary(min_size=12, max_size=12).map(ObjectId)
moments = st.datetimes().map(lambda at: at.replace(microsecond=at.microsecond // 1000 * 1000))
scalars = st.one_of(
    st.floats(),
    texts,
    st.binary(max_size=40),
    # pymongo cannot write subtype 255.
    _later(Binary, st.binary(max_size=40), st.integers(5, 254)),
    _later(Binary, st.binary(max_size=9), st.just(2)),
    _later(Binary.from_uuid, st.uuids()),
    ids,
    st.booleans(),
    moments,
    st.none(),
    st.builds(Regex, keys, st.integers(0, 127).map(lambda flags: flags & 0b1111110)),
    _later(Code, texts),
    st.integers(-(2**31), 2**31 - 1),
    _later(Int64, st.integers(-(2**63), 2**63 - 1)),
    st.builds(Timestamp, st.integers(0, 2**32 - 1), st.integers(0, 2**32 - 1)),
    st.binary(min_size=16, max_size=16).map(Decimal128.from_bid),
    st.just(MinKey()),
    st.just(MaxKey()),
    st.integers(-(2**63), 2**63 - 1).map(DatetimeMS),
    st.builds(DBRef, keys, ids),
)


def _wider(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    fields = st.dictionaries(keys, inner, max_size=6)
    return st.one_of(st.lists(inner, max_size=8), fields, _later(Code, texts, fields))


documents = st.dictionaries(keys, st.recursive(scalars, _wider, max_leaves=20), max_size=8).map(_made)

#: pymongo's options with which it decodes as onecopy does by default, as far as possible.
OPTIONS: Any = bson.CodecOptions(
    tz_aware=True, uuid_representation=4, datetime_conversion=bson.codec_options.DatetimeConversion.DATETIME_AUTO
)
#: onecopy's options for a comparison with pymongo.
AS_PYMONGO: dict[str, Any] = {"compat": "pymongo", "datetime_range": "auto"}

MOMENT = datetime.datetime(2024, 2, 29, 12, 5, 9, 120_000, tzinfo=datetime.timezone.utc)
MOMENT_MS = 1_709_208_309_120
ID = UUID("00112233-4455-6677-8899-aabbccddeeff")
