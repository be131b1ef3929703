"""`onecopy.bson.encode`: each type is encoded as the specification defines it and as pymongo
does."""

from __future__ import annotations

import array
import collections
import dataclasses
import datetime as dt
import enum
import re
import struct
import types
import uuid
from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Any, ClassVar

import bson as theirs
import numpy
import pytest
from bson.binary import Binary as TheirBinary
from bson.code import Code as TheirCode
from bson.codec_options import CodecOptions
from bson.datetime_ms import DatetimeMS as TheirDatetimeMS
from bson.raw_bson import RawBSONDocument
from bson.son import SON
from hypothesis import given
from hypothesis import strategies as st

from onecopy import bson
from tests.support.properties import tried

UTC = dt.timezone.utc
EAST = dt.timezone(dt.timedelta(hours=5, minutes=30))
HEX = "0123456789abcdef01234567"


def value(tag: int, data: bytes) -> bytes:
    """The bytes of a document with one element `v`, which has this type tag and these data."""
    body = bytes([tag]) + b"v\0" + data
    return struct.pack("<i", len(body) + 5) + body + b"\0"


def text(tag: int, data: bytes) -> bytes:
    return value(tag, struct.pack("<i", len(data) + 1) + data + b"\0")


BY_THE_LETTER = [
    (1.5, value(0x01, struct.pack("<d", 1.5))),
    (float("nan"), value(0x01, struct.pack("<d", float("nan")))),
    (float("-inf"), value(0x01, struct.pack("<d", float("-inf")))),
    ("Zürich", text(0x02, "Zürich".encode())),
    ("", text(0x02, b"")),
    ("a\0b", text(0x02, b"a\0b")),
    ({}, value(0x03, b"\5\0\0\0\0")),
    ({"a": None}, value(0x03, b"\x08\0\0\0\x0aa\0\0")),
    ([], value(0x04, b"\5\0\0\0\0")),
    ((), value(0x04, b"\5\0\0\0\0")),
    ([True, None], value(0x04, b"\x0c\0\0\0\x080\0\x01\x0a1\0\0")),
    (b"\1\2", value(0x05, b"\2\0\0\0\0\1\2")),
    (bytearray(b"\1\2"), value(0x05, b"\2\0\0\0\0\1\2")),
    (memoryview(b"\1\2\3\4")[::2], value(0x05, b"\2\0\0\0\0\1\3")),
    (bson.Binary(b"\1\2", 128), value(0x05, b"\2\0\0\0\x80\1\2")),
    (bson.Binary(b"\1\2", 2), value(0x05, b"\6\0\0\0\2\2\0\0\0\1\2")),
    (bson.Undefined(), value(0x06, b"")),
    (bson.ObjectId(HEX), value(0x07, bytes.fromhex(HEX))),
    (False, value(0x08, b"\0")),
    (dt.datetime(2026, 11, 20, 1, 2, 3, 456_999), value(0x09, struct.pack("<q", 1_795_136_523_456))),
    (dt.datetime(2026, 11, 20, 1, 2, 3, 456_999, UTC), value(0x09, struct.pack("<q", 1_795_136_523_456))),
    (dt.datetime(2026, 11, 20, 6, 32, 3, 456_999, EAST), value(0x09, struct.pack("<q", 1_795_136_523_456))),
    (dt.datetime(1969, 12, 31, 23, 59, 59, 999_999), value(0x09, struct.pack("<q", -1))),
    (dt.datetime(1, 1, 1), value(0x09, struct.pack("<q", -62_135_596_800_000))),
    (dt.date(2026, 11, 20), value(0x09, struct.pack("<q", 1_795_132_800_000))),
    (bson.DatetimeMS(1 << 62), value(0x09, struct.pack("<q", 1 << 62))),
    (None, value(0x0A, b"")),
    (bson.Regex("a.*", "xi"), value(0x0B, b"a.*\0ix\0")),
    (re.compile("a", re.I | re.S), value(0x0B, b"a\0isu\0")),
    (bson.DBPointer("db.c", bson.ObjectId(HEX)), value(0x0C, b"\5\0\0\0db.c\0" + bytes.fromhex(HEX))),
    (bson.Code("f()"), text(0x0D, b"f()")),
    (bson.Symbol("s"), text(0x0E, b"s")),
    (bson.Code("f()", {"x": 1}), value(0x0F, b"\x18\0\0\0\4\0\0\0f()\0\x0c\0\0\0\x10x\0\1\0\0\0\0")),
    (bson.Code("f()", {}), value(0x0F, b"\x11\0\0\0\4\0\0\0f()\0\5\0\0\0\0")),
    (1, value(0x10, struct.pack("<i", 1))),
    (-(2**31), value(0x10, struct.pack("<i", -(2**31)))),
    (2**31 - 1, value(0x10, struct.pack("<i", 2**31 - 1))),
    (bson.Timestamp(7, 9), value(0x11, struct.pack("<II", 9, 7))),
    (2**31, value(0x12, struct.pack("<q", 2**31))),
    (-(2**31) - 1, value(0x12, struct.pack("<q", -(2**31) - 1))),
    (2**60, value(0x12, struct.pack("<q", 2**60))),
    (2**63 - 1, value(0x12, struct.pack("<q", 2**63 - 1))),
    (-(2**63), value(0x12, struct.pack("<q", -(2**63)))),
    (bson.Int64(1), value(0x12, struct.pack("<q", 1))),
    (Decimal("1.50"), value(0x13, struct.pack("<QQ", 150, (6176 - 2) << 49))),
    (Decimal("-0E+3"), value(0x13, struct.pack("<QQ", 0, 1 << 63 | (6176 + 3) << 49))),
    (Decimal("sNaN"), value(0x13, struct.pack("<QQ", 0, 0x7E << 56))),
    (Decimal("-NaN"), value(0x13, struct.pack("<QQ", 0, 0xFC << 56))),
    (Decimal("-Infinity"), value(0x13, struct.pack("<QQ", 0, 0xF8 << 56))),
    (bson.Decimal128("1.50"), value(0x13, struct.pack("<QQ", 150, (6176 - 2) << 49))),
    (bson.MinKey(), value(0xFF, b"")),
    (bson.MaxKey(), value(0x7F, b"")),
    (uuid.UUID(int=1), value(0x05, b"\x10\0\0\0\4" + b"\0" * 15 + b"\1")),
]


@pytest.mark.parametrize(("given", "expected"), BY_THE_LETTER, ids=lambda x: repr(x)[:40])
def test_a_value_is_written_as_the_specification_defines_it(given: Any, expected: bytes) -> None:
    assert bson.encode({"v": given}) == expected
    # In a list, as the result of `default`, and in a mapping.
    inside = bson.encode({"a": [given]})
    assert inside[11:-2] == expected[4:-1].replace(b"v\0", b"0\0", 1)
    stand_in = types.SimpleNamespace()
    assert bson.encode({"v": stand_in}, default=lambda _: given) == expected
    assert bson.encode(types.MappingProxyType({"v": given})) == expected


class Colour(enum.Enum):
    RED = "red"


class Level(enum.IntEnum):
    LOW = 1


class Text(str):
    """A subclass of `str`, which is encoded like a text."""


class Whole(int):
    """A subclass of `int`, which is encoded like an int."""


class Real(float):
    """A subclass of `float`, which is encoded like a float."""


class Raw(bytes):
    """A subclass of `bytes`, which is encoded like bytes."""


class Items(list[Any]):
    """A subclass of `list`, which is encoded as an array."""


class Pair(collections.namedtuple("Pair", "a b")):
    """A named tuple, which is encoded as an array."""


class Moment(dt.datetime):
    """A subclass of `datetime`, which is encoded like a datetime."""


@dataclasses.dataclass
class Point:
    """A dataclass, which is encoded as a document."""

    x: int
    name: str = "п"
    kind: ClassVar[int] = 3


class Slow(Mapping[str, Any]):
    """A mapping written in Python, which is encoded as a document."""

    def __init__(self, members: dict[str, Any]) -> None:
        self._members = members

    def __getitem__(self, key: str) -> Any:
        return self._members[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._members)

    def __len__(self) -> int:
        return len(self._members)


@pytest.mark.parametrize(
    ("given", "plain"),
    [
        (Colour.RED, "red"),
        (Level.LOW, 1),
        (Text("东京"), "东京"),
        (Whole(5), 5),
        (Whole(2**40), 2**40),
        (Real(1.5), 1.5),
        (Raw(b"x"), b"x"),
        (Items([1, [2]]), [1, [2]]),
        (Items([]), []),
        (Pair(1, "b"), [1, "b"]),
        (Moment(2020, 1, 1, tzinfo=EAST), dt.datetime(2020, 1, 1, tzinfo=EAST)),
        (Point(1), {"x": 1, "name": "п"}),
        (Slow({"b": 1, "a": [2]}), {"b": 1, "a": [2]}),
        (Slow({}), {}),
        (collections.OrderedDict(b=1, a=2), {"b": 1, "a": 2}),
        (collections.defaultdict(int, {"b": 1}), {"b": 1}),
        (SON([("b", 1), ("a", 2)]), {"b": 1, "a": 2}),
        ({Text("b"): 1}, {"b": 1}),
    ],
)
def test_a_subclass_is_written_as_its_base_class(given: Any, plain: Any) -> None:
    assert bson.encode({"v": given}) == bson.encode({"v": plain})
    assert bson.encode({"v": [given, given]}) == bson.encode({"v": [plain, plain]})
    if isinstance(plain, dict):
        assert bson.encode(given) == bson.encode(plain)


def test_scalars_and_arrays_of_numpy_are_written() -> None:
    given = {
        "i": numpy.int32(5),
        "l": numpy.int64(2**40),
        "f": numpy.float64(1.5),
        "b": numpy.bool_(True),
        "t": numpy.datetime64("2020-01-01T00:00:00.123456789"),
        "a": numpy.arange(3),
    }
    moment = dt.datetime(2020, 1, 1, 0, 0, 0, 123_000)
    items = [bson.Int64(0), bson.Int64(1), bson.Int64(2)]
    plain = {"i": 5, "l": 2**40, "f": 1.5, "b": True, "t": moment, "a": items}
    assert bson.encode(given) == bson.encode(plain)


def test_types_of_pymongo_are_written_as_by_pymongo() -> None:
    doc = {
        "oid": theirs.ObjectId(),
        "binary": TheirBinary(b"\1\2", 128),
        "old": TheirBinary(b"\1\2", 2),
        "code": TheirCode("f()"),
        "scoped": TheirCode("f()", {"x": [1, {"y": "z"}]}),
        "long": theirs.Int64(5),
        "decimal": theirs.Decimal128("1.50"),
        "ts": theirs.Timestamp(7, 9),
        "regex": theirs.Regex("a.*", "mi"),
        "bytes": theirs.Regex(b"a.*", "x"),
        "min": theirs.MinKey(),
        "max": theirs.MaxKey(),
        "ref": theirs.DBRef("c", theirs.ObjectId(), "db", extra=[1]),
        "ms": TheirDatetimeMS(-(1 << 60)),
        "raw": RawBSONDocument(theirs.encode({"b": "é"})),
    }
    assert bson.encode(doc) == theirs.encode(doc)
    assert bson.encode(RawBSONDocument(theirs.encode(doc))) == theirs.encode(doc)


def test_pymongo_writes_our_types_as_we_do() -> None:
    doc = {
        "oid": bson.ObjectId(),
        "binary": bson.Binary(b"\1\2", 128),
        "code": bson.Code("f()"),
        "scoped": bson.Code("f()", {"x": 1}),
        "long": bson.Int64(5),
        "decimal": bson.Decimal128("1.50"),
        "ts": bson.Timestamp(7, 9),
        "regex": bson.Regex("a.*", "mi"),
        "min": bson.MinKey(),
        "max": bson.MaxKey(),
        "ms": bson.DatetimeMS(-(1 << 60)),
    }
    assert theirs.encode(doc) == bson.encode(doc)


_REPRESENTATIONS = {"standard": 4, "python_legacy": 3, "java_legacy": 5, "csharp_legacy": 6}


@pytest.mark.parametrize(("name", "number"), _REPRESENTATIONS.items())
def test_a_uuid_is_written_in_the_requested_representation(name: Any, number: int) -> None:
    doc = {"u": uuid.UUID("00112233-4455-6677-8899-aabbccddeeff")}
    options: CodecOptions[Any] = CodecOptions(uuid_representation=number)
    assert bson.encode(doc, uuid_representation=name) == theirs.encode(doc, codec_options=options)
    binary = bson.Binary.from_uuid(doc["u"], name)
    assert bson.encode({"u": binary}) == bson.encode(doc, uuid_representation=name)
    assert binary.as_uuid(name) == doc["u"]


def test_the_order_of_keys_is_kept() -> None:
    assert list(theirs.decode(bson.encode({"b": 1, "_id": 2, "a": 3}))) == ["b", "_id", "a"]


@pytest.mark.parametrize("n", [0, 1, 9, 10, 11, 99, 100, 101, 1000, 1001, 10_001, 100_001])
@pytest.mark.parametrize("member", [1, "x", {}, [None], b"b"], ids=repr)
def test_the_keys_of_arrays_are_their_indexes(n: int, member: Any) -> None:
    doc = {"a": [member] * n}
    assert bson.encode(doc) == theirs.encode(doc)


def test_array_keys_of_eight_digits_are_written() -> None:
    made = bson.encode({"a": [None] * 10_000_002})
    assert made[-21:] == b"\x0a10000000\0\x0a10000001\0\0\0"[-21:]
    assert b"\x0a9999999\0\x0a10000000\0" in made[-40:]


LENGTHS = [0, 1, 2, 21, 22, 31, 32, 33, 63, 64, 65, 127, 128, 200, 4095, 4096, 4097, 9000, 70_000]


@pytest.mark.parametrize("letter", ["a", "é", "я", "東", "😀", "\0", '"', "\n"])
@pytest.mark.parametrize("mixed", [False, True])
def test_texts_of_every_width_and_length_become_utf_8(letter: str, mixed: bool) -> None:
    for n in LENGTHS:
        given = (letter * n)[: max(n - 1, 0)] + "z" if mixed else letter * n
        encoded = given.encode()
        assert bson.encode({"v": given}) == text(0x02, encoded)
        assert bson.encode({"v": [given]})[18:-3] == encoded
        if "\0" not in given:
            assert bson.encode({given: 1}) == theirs.encode({given: 1})
            many = {"rows": [{given: 1}, {given: [2]}, {given: given}]}
            assert bson.encode(many) == theirs.encode(many)


_TEXTS = st.text(st.characters(codec="utf-8"), max_size=80)
_KEYS = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=40)
_LEAVES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**63), 2**63 - 1),
    st.floats(),
    _TEXTS,
    st.binary(max_size=80),
    st.datetimes(),
    st.datetimes(dt.datetime(2, 1, 1), dt.datetime(9998, 1, 1), timezones=st.just(EAST)),
    st.builds(bson.ObjectId),
    st.builds(bson.Timestamp, st.integers(0, 2**32 - 1), st.integers(0, 2**32 - 1)),
    st.builds(bson.Binary, st.binary(max_size=20), st.integers(0, 254)),
    st.builds(bson.Int64, st.integers(-(2**63), 2**63 - 1)),
    st.builds(bson.Code, _TEXTS, st.none() | st.dictionaries(_KEYS, st.integers(0, 9), max_size=3)),
)
_VALUES = st.recursive(
    _LEAVES, lambda v: st.lists(v, max_size=12) | st.dictionaries(_KEYS, v, max_size=8), max_leaves=40
)
DOCUMENTS = st.dictionaries(_KEYS.filter(lambda key: key != "_id"), _VALUES, max_size=10)


@given(DOCUMENTS)
@tried(400)
def test_any_document_is_written_as_by_pymongo(doc: dict[str, Any]) -> None:
    expected = theirs.encode(doc)
    assert bson.encode(doc) == expected
    place = bytearray(len(expected) + 3)
    assert bson.encode_into(doc, place, 3) == len(expected)
    assert place[3:] == expected
    assert b"".join(bson.encode_many([doc, doc], chunk_bytes=1)) == expected * 2


def test_an_array_of_another_module_is_neither_document_nor_value() -> None:
    with pytest.raises(bson.BSONTypeError, match=r"`array\.array` has no form in BSON, at `\$\.v`"):
        bson.encode({"v": array.array("i", [1])})
