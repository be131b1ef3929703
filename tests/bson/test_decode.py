"""`onecopy.bson.decode`: the Python object for each BSON type, and each option."""

from __future__ import annotations

import array
import datetime
import mmap
import struct
import tempfile
from collections import OrderedDict
from decimal import Decimal
from typing import Any
from uuid import UUID

import bson as pymongo
import pytest
from bson import json_util

import onecopy
from onecopy import bson
from tests.bson.decoding import (
    AS_PYMONGO,
    ID,
    MOMENT,
    MOMENT_MS,
    OPTIONS,
    binary,
    document,
    element,
    nested,
    same,
    string,
    untyped,
)
from tests.vectors.bson.make import Case, cases

OID = bytes(range(12))
NAIVE = MOMENT.replace(tzinfo=None)

#: The tag, the value, and the decoded result.
VALUES: list[tuple[int, bytes, Any]] = [
    (0x01, struct.pack("<d", 1.5), 1.5),
    (0x02, string(b"Z\xc3\xbcrich"), "Zürich"),
    (0x02, string(b""), ""),
    (0x02, string(b"a\0b"), "a\0b"),
    (0x02, string("東".encode()), "東"),
    (0x02, string("東京".encode() * 500), "東京" * 500),
    (0x02, string("😀".encode() * 40), "😀" * 40),
    (0x02, string(b"x" * 5000), "x" * 5000),
    (0x03, document(), {}),
    (0x03, document(element(0x0A)), {"a": None}),
    (0x04, document(), []),
    (0x04, document(element(0x10, b"\1\0\0\0", b"0"), element(0x0A, b"", b"1")), [1, None]),
    (0x05, binary(b"plain", 0), b"plain"),
    (0x05, binary(b"", 0), b""),
    (0x05, binary(b"\x05\0\0\0plain", 2), bson.Binary(b"plain", 2)),
    (0x05, binary(ID.bytes, 4), ID),
    (0x05, binary(ID.bytes, 3), bson.Binary(ID.bytes, 3)),
    (0x05, binary(b"own", 128), bson.Binary(b"own", 128)),
    (0x06, b"", bson.Undefined()),
    (0x07, OID, bson.ObjectId(OID)),
    (0x08, b"\0", False),
    (0x08, b"\1", True),
    (0x09, struct.pack("<q", MOMENT_MS), MOMENT),
    (0x09, struct.pack("<q", -1), datetime.datetime(1969, 12, 31, 23, 59, 59, 999000, tzinfo=datetime.timezone.utc)),
    (0x0A, b"", None),
    (0x0B, b"^a\0im\0", bson.Regex("^a", "im")),
    (0x0C, string(b"c") + OID, bson.DBPointer("c", bson.ObjectId(OID))),
    (0x0D, string(b"f()"), bson.Code("f()")),
    (0x0E, string(b"s"), bson.Symbol("s")),
    (0x0F, struct.pack("<i", 8 + 4 + 8) + string(b"f()") + document(element(0x0A)), bson.Code("f()", {"a": None})),
    (0x10, struct.pack("<i", -5), -5),
    (0x10, struct.pack("<i", -(2**31)), -(2**31)),
    (0x11, struct.pack("<II", 7, 2**32 - 1), bson.Timestamp(2**32 - 1, 7)),
    (0x12, struct.pack("<q", 2**31), 2**31),
    (0x12, struct.pack("<q", -(2**63)), -(2**63)),
    (0x12, struct.pack("<q", 2**31 - 1), bson.Int64(2**31 - 1)),
    (0x12, struct.pack("<q", 0), bson.Int64(0)),
    (0x12, struct.pack("<q", -(2**31)), bson.Int64(-(2**31))),
    (0x13, bytes(14) + b"\x40\x30", bson.Decimal128("0")),
    (0x7F, b"", bson.MaxKey()),
    (0xFF, b"", bson.MinKey()),
]


@pytest.mark.parametrize(("tag", "value", "expected"), VALUES)
def test_each_type_is_decoded(tag: int, value: bytes, expected: Any) -> None:
    data = document(element(tag, value), element(tag, value, "ключ".encode()), element(0x10, b"\1\0\0\0", b"z"))
    for made in (bson.decode(data), *bson.decode_all(data * 3)):
        assert made == {"a": expected, "ключ": expected, "z": 1}
        assert type(made["a"]) is type(expected) and repr(made["a"]) == repr(expected)
        assert getattr(made["a"], "subtype", 0) == getattr(expected, "subtype", 0)
        assert getattr(made["a"], "scope", None) == getattr(expected, "scope", None)


@pytest.mark.parametrize(("tag", "value", "expected"), VALUES)
def test_types_of_pymongo_are_decoded_as_by_pymongo(tag: int, value: bytes, expected: Any) -> None:
    data = document(element(tag, value))
    options: Any = pymongo.CodecOptions(tz_aware=True, uuid_representation=4)
    assert same(bson.decode(data, compat="pymongo"), pymongo.decode(data, options))
    options = pymongo.CodecOptions()
    naive = {"compat": "pymongo", "tz_aware": False, "uuid_representation": "unspecified"}
    assert same(untyped.decode(data, **naive), pymongo.decode(data, options))


def test_deprecated_types_are_read_by_pymongo_as_other_types() -> None:
    data = document(*(element(tag, value, b"%d" % tag) for tag, value, _ in VALUES if tag in (0x06, 0x0C, 0x0E)))
    expected = {"6": None, "12": pymongo.DBRef("c", pymongo.ObjectId(OID)), "14": "s"}
    made: Any = bson.decode(data, compat="pymongo")
    assert same(made, expected) and type(made["12"].id) is pymongo.ObjectId
    assert json_util.dumps(made) == json_util.dumps(pymongo.decode(data))


def test_references_are_created_where_pymongo_creates_them() -> None:
    reference = {"$ref": "c", "$id": 1, "$db": "d", "more": 2}
    for value in (
        {"r": reference},
        {"r": {"$ref": "c", "$id": None}},
        {"r": [{"$id": 1, "$ref": "c"}, {"$ref": 1, "$id": 1}, {"$ref": "c"}, {"$ref": "c", "$id": 1, "$db": 5}]},
        reference,
    ):
        data = pymongo.encode(value)
        for made in (bson.decode(data, compat="pymongo"), *bson.decode_all(data, compat="pymongo")):
            assert same(made, pymongo.decode(data))
        assert bson.decode(data) == value


@pytest.mark.parametrize("ms", [-62_135_596_800_001, 253_402_300_800_000, -(2**63), 2**63 - 1])
def test_dates_outside_of_the_range_of_python(ms: int) -> None:
    data = document(element(0x09, struct.pack("<q", ms)))
    with pytest.raises(bson.BSONDecodeError, match="datetime_range") as raised:
        bson.decode(data)
    assert raised.value.offset_bytes == 7
    edge = datetime.datetime.min if ms < 0 else datetime.datetime.max.replace(microsecond=999_000)
    assert bson.decode(data, datetime_range="clamp", tz_aware=False) == {"a": edge}
    aware = edge.replace(tzinfo=datetime.timezone.utc)
    assert bson.decode(data, datetime_range="clamp") == {"a": aware}
    for choice in ("raw", "auto"):
        made = untyped.decode(data, datetime_range=choice)
        assert type(made["a"]) is bson.DatetimeMS and int(made["a"]) == ms
        assert same(untyped.decode(data, datetime_range=choice, compat="pymongo"), {"a": pymongo.DatetimeMS(ms)})


def test_dates_in_the_range_of_python_are_raw_by_option() -> None:
    data = document(element(0x09, struct.pack("<q", MOMENT_MS)))
    assert bson.decode(data, datetime_range="raw") == {"a": bson.DatetimeMS(MOMENT_MS)}
    assert bson.decode(data, datetime_range="auto") == {"a": MOMENT}
    assert bson.decode(data, tz_aware=False) == {"a": NAIVE}
    made = bson.decode(data, compat="pymongo")["a"]
    assert made == MOMENT and made.tzinfo is pymongo.tz_util.utc


@pytest.mark.parametrize("name", ["standard", "python_legacy", "java_legacy", "csharp_legacy", "unspecified"])
def test_uuids_follow_the_representation(name: str) -> None:
    data = document(element(0x05, binary(ID.bytes, 4)), element(0x05, binary(ID.bytes, 3), b"b"))
    number = getattr(pymongo.binary.UuidRepresentation, name.upper())
    expected: Any = pymongo.decode(data, pymongo.CodecOptions(uuid_representation=number))
    assert same(untyped.decode(data, compat="pymongo", uuid_representation=name), expected)
    own = untyped.decode(data, uuid_representation=name)
    assert own == expected and sum(isinstance(value, UUID) for value in own.values()) == (name != "unspecified")


@pytest.mark.parametrize("handler", ["replace", "ignore", "surrogateescape", "surrogatepass", "backslashreplace"])
@pytest.mark.parametrize("place", ["value", "key", "pattern", "code", "long"])
def test_malformed_text_follows_the_error_handler(handler: str, place: str) -> None:
    bad = b"a\xed\xa0\x80b" if handler == "surrogatepass" else b"a\xffb"
    data = {
        "value": document(element(0x02, string(bad))),
        "key": document(element(0x0A, b"", bad)),
        "pattern": document(element(0x0B, bad + b"\0i\0")),
        "code": document(element(0x0D, string(bad))),
        "long": document(element(0x02, string(b"x" * 3000 + bad))),
    }[place]
    with pytest.raises(bson.BSONDecodeError, match="errors"):
        bson.decode(data)
    expected: Any = pymongo.decode(data, pymongo.CodecOptions(unicode_decode_error_handler=handler))
    assert same(bson.decode(data, compat="pymongo", errors=handler), expected)
    # Results of the handler are not cached.
    with pytest.raises(bson.BSONDecodeError, match="errors"):
        bson.decode(data)


def test_an_exception_of_a_handler_is_raised_unchanged() -> None:
    data = document(element(0x02, string(b"\xff")))
    with pytest.raises(UnicodeDecodeError):
        bson.decode(data, errors="surrogatepass")
    with pytest.raises(LookupError):
        bson.decode(data, errors="no such handler")


def test_decimals_have_the_requested_type() -> None:
    texts = ["1.50", "-0", "Infinity", "NaN", "9" * 34, "1E-6176"]
    data = b"".join(pymongo.encode({"a": pymongo.Decimal128(text)}) for text in texts)
    made = [value["a"] for value in bson.decode_all(data, decimals="decimal")]
    assert [str(value) for value in made] == [str(Decimal(text)) for text in texts]
    assert all(type(value["a"]) is bson.Decimal128 for value in bson.decode_all(data))


class Fields(dict[str, Any]):
    """A dict subclass that is used as document class."""


@pytest.mark.parametrize("cls", [OrderedDict, Fields])
def test_documents_have_the_requested_class(cls: type[dict[str, Any]]) -> None:
    value = {"a": {"b": [{}, {"c": 1}]}, "d": {}}
    data = pymongo.encode(value)
    made = bson.decode(data, document_class=cls)
    assert made == value
    assert all(type(inner) is cls for inner in (made, made["a"], *made["a"]["b"], made["d"]))
    made = bson.decode_all(data * 2, document_class=cls)[1]
    assert made == value and type(made) is cls
    scope = pymongo.decode(
        pymongo.encode({"a": pymongo.Code("f", {"x": {}})}), pymongo.CodecOptions(document_class=cls)
    )
    own = bson.decode(pymongo.encode({"a": pymongo.Code("f", {"x": {}})}), document_class=cls, compat="pymongo")
    assert same(own, scope) and type(own["a"].scope) is type(scope["a"].scope) is cls


def test_keys_of_arrays_are_checked_by_option() -> None:
    good = pymongo.encode({"a": [0, [1, [2] * 12, 3], 4, {"b": [5]}, pymongo.Code("f", {"c": [6]}), 7]})
    assert bson.decode(good, array_keys="strict") == bson.decode(good)
    odd = document(element(0x04, document(element(0x0A, b"", b"0"), element(0x0A, b"", b""))))
    assert bson.decode(odd) == {"a": [None, None]}
    with pytest.raises(bson.BSONDecodeError, match="array_keys") as raised:
        bson.decode(odd, array_keys="strict")
    assert raised.value.offset_bytes == 15


def test_a_duplicate_key_has_its_last_value() -> None:
    data = document(element(0x10, b"\1\0\0\0"), element(0x0A, b"", b"b"), element(0x10, b"\2\0\0\0"))
    for _ in range(4):
        assert bson.decode(data) == {"a": 2, "b": None} == pymongo.decode(data)
        assert list(bson.decode(data)) == ["a", "b"]
    assert bson.RawDocument(data)["a"] == 2 and len(bson.RawDocument(data)) == 2


def test_any_buffer_is_accepted() -> None:
    data = pymongo.encode({"a": "東京", "b": [1.5] * 20})
    expected = {"a": "東京", "b": [1.5] * 20}
    doubled = bytes(byte for pair in zip(data, data, strict=True) for byte in pair)
    with tempfile.TemporaryFile() as file:
        file.write(data)
        file.flush()
        with mmap.mmap(file.fileno(), 0) as mapped:
            assert bson.decode(mapped) == expected
    for buffer in (data, bytearray(data), memoryview(data), memoryview(b"x" + data)[1:], memoryview(doubled)[::2]):
        assert bson.decode(buffer) == expected
        assert bson.decode_all(buffer) == [expected] == list(bson.decode_iter(buffer))
        raw = bson.RawDocument(buffer)
        assert raw["a"] == "東京" and raw == expected and bytes(raw.raw) == data
    assert bson.decode_all(array.array("I", b"\x05\0\0\0\0" * 4)) == [{}] * 4
    for wrong in ("text", 5, None, [data]):
        for call in (untyped.decode, untyped.decode_all, untyped.RawDocument):
            with pytest.raises(TypeError):
                call(wrong)


def test_decoding_leaves_no_utf8_cache_on_a_str() -> None:
    # CPython has one str per Latin-1 character for the whole process, which may have a cached UTF-8
    # form.
    made = bson.decode(pymongo.encode({"ключ": "東京" * 50, "b": ["éé", "Ж" * 10]}))
    for text in (*made, made["ключ"], *made["b"]):
        if not text.isascii():
            with pytest.raises(ValueError, match="not in memory"):
                onecopy.text.utf8_view(text)


def test_many_documents_are_one_list() -> None:
    assert bson.decode_all(b"") == []
    values = [{"id": i, "name": f"name {i}", "tags": ["x"] * (i % 5)} for i in range(5000)]
    data = b"".join(map(pymongo.encode, values))
    assert bson.decode_all(data) == values
    assert bson.decode_all(data, compat="pymongo") == values


@pytest.mark.parametrize("tag", [3, 4])
def test_a_hundred_thousand_levels_are_an_error_by_default_and_can_be_allowed(tag: int) -> None:
    deep = 100_000
    data = nested(deep, tag)
    for call in (bson.decode, bson.decode_all, lambda data: bson.RawDocument(data).decode()):
        with pytest.raises(bson.BSONDecodeError, match="max_depth") as raised:
            call(data)
        assert raised.value.offset_bytes == 7 * 1000
    made: Any = bson.decode(data, max_depth=deep)
    levels = 0
    while made:
        made = made.pop() if isinstance(made, list) else made.popitem()[1]
        levels += 1
    assert levels == deep - 1


def test_wrong_options_are_reported() -> None:
    data = document()
    for options in (
        {"compat": "others"},
        {"datetime_range": "none"},
        {"uuid_representation": 4},
        {"decimals": "float"},
        {"array_keys": ""},
        {"max_depth": -1},
        {"max_bytes": -1},
    ):
        (name,) = options
        with pytest.raises(ValueError, match=name):
            untyped.decode(data, **options)
    with pytest.raises(TypeError, match="errors"):
        untyped.decode(data, errors=5)
    with pytest.raises(TypeError, match="document_class"):
        untyped.decode(data, document_class=5)
    with pytest.raises(TypeError, match="unexpected"):
        untyped.decode(data, codec_options=None)


@pytest.mark.parametrize("case", [case for case in cases() if not case.error], ids=lambda case: case.name)
def test_each_vector_round_trips(case: Case) -> None:
    for options in ({}, {"array_keys": "strict"}, {"document_class": OrderedDict}):
        made = untyped.decode(case.data, datetime_range="auto", **options)
        assert list(made) == list(case.json)
        assert bson.encode(made) == case.data
    made = untyped.decode(case.data, **AS_PYMONGO)
    assert bson.encode(made) == bson.encode(pymongo.decode(case.data, OPTIONS))
    raw = bson.RawDocument(case.data, datetime_range="auto")
    assert bson.encode(dict(raw.items())) == bson.encode(raw) == case.data


@pytest.mark.parametrize("case", [case for case in cases() if case.error], ids=lambda case: case.name)
def test_each_wrong_vector_is_refused(case: Case) -> None:
    for call in (bson.decode, lambda data: bson.RawDocument(data).decode()):
        with pytest.raises(bson.BSONDecodeError):
            call(case.data)
