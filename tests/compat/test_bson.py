"""`onecopy.compat.bson` compared with pymongo's `bson`: the same calls give the same bytes and
exceptions."""

from __future__ import annotations

import dataclasses
import datetime as dt
import decimal
import enum
import subprocess
import sys
import uuid
from typing import Any

import bson as theirs
import pytest
from bson.codec_options import CodecOptions, TypeEncoder, TypeRegistry
from bson.datetime_ms import DatetimeMS as TheirDatetimeMS
from bson.raw_bson import RawBSONDocument
from hypothesis import given

import onecopy.bson
from onecopy.compat import bson as ours
from tests.bson.test_encode import DOCUMENTS
from tests.support.properties import tried

OID = theirs.ObjectId()


class Colour(enum.Enum):
    RED = "red"


@dataclasses.dataclass
class Point:
    x: int


class Strange:
    """A class without a BSON representation."""


DOCS: list[Any] = [
    {},
    {"b": 1, "_id": 2, "a": {"x": 1, "_id": 3}},
    {"_id": 1, "b": 2},
    {"u": uuid.uuid4()},
    {"oid": OID, "ref": theirs.DBRef("c", OID), "code": theirs.Code("f", {"a": 1})},
    RawBSONDocument(theirs.encode({"a": 1})),
    theirs.SON([("b", 1), ("_id", 2)]),
    {"i": 2**63},
    {"t": "\ud800"},
    {"k\0": 1},
    {1: 2},
    {"s": {1, 2}},
    {"d": decimal.Decimal(1)},
    {"d": dt.date(2020, 1, 1)},
    {"e": Colour.RED},
    {"p": Point(1)},
    {"b": bytearray(b"x")},
    {"o": Strange()},
    {"$a": 1},
    {"a.b": 1},
    {"deep": {"a.b": 1}},
    {"ref": theirs.DBRef("c", 1)},
    {"t": dt.datetime(9999, 12, 31, 23, tzinfo=dt.timezone(dt.timedelta(hours=-12)))},
    [],
    5,
    None,
]


def outcome(call: Any, *args: Any) -> Any:
    """The result of a call; if it raises, the class and the message of the exception."""
    try:
        return call(*args)
    except Exception as error:
        return type(error), str(error)


@pytest.mark.parametrize("doc", DOCS, ids=lambda doc: repr(doc)[:40])
@pytest.mark.parametrize("check_keys", [False, True])
@pytest.mark.parametrize("representation", [0, 3, 4, 5, 6])
def test_each_document_is_written_or_refused_as_by_pymongo(doc: Any, check_keys: bool, representation: int) -> None:
    options: CodecOptions[Any] = CodecOptions(uuid_representation=representation)
    expected = outcome(theirs.encode, doc, check_keys, options)
    assert outcome(ours.encode, doc, check_keys, options) == expected
    assert outcome(ours.BSON.encode, doc, check_keys, options) == expected


@given(DOCUMENTS)
@tried(100)
def test_any_document_is_written_as_by_pymongo(doc: dict[str, Any]) -> None:
    doc = {**doc, "_id": 5}
    assert ours.encode(doc) == theirs.encode(doc)


def test_values_that_pymongo_writes_are_written_without_pymongo(monkeypatch: pytest.MonkeyPatch) -> None:
    expected = [(doc, theirs.encode(doc)) for doc in DOCS[:3] + DOCS[4:7]]
    monkeypatch.setattr(theirs, "encode", None)
    assert [ours.encode(doc) for doc, _ in expected] == [data for _, data in expected]


class ColourEncoder(TypeEncoder):
    """A type encoder for an enumeration of strings."""

    @property
    def python_type(self) -> Any:
        return Colour

    def transform_python(self, value: Any) -> Any:
        return value.value * 2


def test_nat_of_pandas_is_a_value_error_as_by_pymongo() -> None:
    class NotATime(dt.datetime):
        """As `NaT`, which is not equal to itself; pandas is not installed everywhere."""

        def __eq__(self, other: object) -> bool:
            return False

        def __ne__(self, other: object) -> bool:
            return True

        def utcoffset(self) -> Any:
            raise ValueError("NaTType does not support utcoffset")

        __hash__ = dt.datetime.__hash__

    nat = NotATime(1, 1, 1)
    for doc in ({"a": nat}, {"a": [{"b": nat}]}):
        assert outcome(ours.encode, doc) == outcome(theirs.encode, doc)
    assert outcome(ours.encode, {"a": nat}) == (ValueError, "NaTType does not support utcoffset")


def test_type_encoders_and_the_fallback_are_called() -> None:
    registry = TypeRegistry([ColourEncoder()], fallback_encoder=lambda value: f"<{type(value).__name__}>")
    options: CodecOptions[Any] = CodecOptions(type_registry=registry)
    doc = {"c": Colour.RED, "p": Point(1), "s": {1}, "i": 2**70, "d": decimal.Decimal(1)}
    assert ours.encode(doc, codec_options=options) == theirs.encode(doc, codec_options=options)
    only: CodecOptions[Any] = CodecOptions(type_registry=TypeRegistry([ColourEncoder()]))
    assert outcome(ours.encode, {"s": {1}}, False, only) == outcome(theirs.encode, {"s": {1}}, False, only)


def test_options_of_another_class_are_refused_as_by_pymongo() -> None:
    for call in (ours.encode, theirs.encode):
        with pytest.raises(TypeError, match="codec_options"):
            call({}, False, 5)  # type: ignore[arg-type]


def test_the_names_are_those_of_pymongo() -> None:
    missing = [name for name in ours.__all__ if not hasattr(theirs, name) and name not in ("DEFAULT_CODEC_OPTIONS",)]
    assert missing == []
    assert ours.ObjectId is theirs.ObjectId
    assert ours.InvalidDocument is theirs.InvalidDocument
    names = ours.gen_list_name()
    assert [next(names) for _ in range(12)] == [b"%d\0" % n for n in range(12)]
    assert ours.has_c()


_WITHOUT = """
import sys
sys.modules["bson"] = None
import uuid
from onecopy.compat import bson
assert bson.encode({"b": 1, "_id": bson.ObjectId("0" * 24)})[4:9] == b"\\x07_id\\0"
assert bson.encode({"r": bson.DBRef("c", 1)}) == bson.encode({"r": {"$ref": "c", "$id": 1}})
standard = bson.CodecOptions(uuid_representation=bson.UuidRepresentation.STANDARD)
assert len(bson.encode({"u": uuid.uuid4()}, codec_options=standard)) == 29
for doc, error in (
    ({"i": 2**63}, OverflowError), ({"t": "\\ud800"}, UnicodeEncodeError), ({"k\\0": 1}, bson.InvalidDocument),
    ({1: 2}, bson.InvalidDocument), ({"s": {1}}, bson.InvalidDocument), ({"u": uuid.uuid4()}, ValueError),
    ([], TypeError), ({"a.b": 1}, bson.InvalidDocument),
    ({"p": __import__("re").compile(b"\\xff")}, bson.InvalidStringData),
):
    try:
        bson.encode(doc, check_keys=True)
    except error:
        pass
    else:
        raise AssertionError(doc)
circular = {}
circular["c"] = circular
try:
    bson.encode(circular)
except RecursionError:
    pass
junk = bson.CodecOptions(unicode_decode_error_handler="junk")
assert bson.decode(bson.encode({"a": 1}), junk) == {"a": 1} == next(bson.decode_iter(bson.encode({"a": 1}), junk))
try:
    bson.decode(b"\\5\\0\\0\\0\\1")
except bson.InvalidBSON:
    print("all")
"""


def test_without_pymongo_our_classes_have_its_names() -> None:
    done = subprocess.run([sys.executable, "-c", _WITHOUT], capture_output=True, text=True, check=False)
    assert done.stdout.strip() == "all", done.stderr


if hasattr(onecopy.bson, "decode"):
    GIVEN = [theirs.encode(doc) for doc in DOCS[:3]] + [
        theirs.encode({"a": [1, 2**40, theirs.Int64(5), "é", b"x", None, 1.5, dt.datetime(2020, 1, 1)], "o": OID}),
        theirs.encode(
            {"late": TheirDatetimeMS(1 << 60), "early": TheirDatetimeMS(-(1 << 60)), "now": TheirDatetimeMS(5)}
        ),
        theirs.encode({"ref": theirs.DBRef("c", OID), "re": theirs.Regex("a", "i"), "ts": theirs.Timestamp(1, 2)}),
        b"",
        b"\5\0\0\0",
        b"\5\0\0\0\1",
        b"\x0c\0\0\0\x10a\0\1\0\0\0",
        b"\x0e\0\0\0\x02a\0\2\0\0\0\xff\0\0",
    ]
    OPTIONS: list[CodecOptions[Any]] = [
        CodecOptions(),
        CodecOptions(tz_aware=True),
        CodecOptions(tz_aware=True, tzinfo=dt.timezone(dt.timedelta(hours=2))),
        CodecOptions(document_class=theirs.SON),
        CodecOptions(document_class=RawBSONDocument),
        CodecOptions(unicode_decode_error_handler="replace"),
        *(CodecOptions(datetime_conversion=n) for n in (1, 2, 3, 4)),
    ]

    @pytest.mark.parametrize("data", GIVEN, ids=lambda data: data.hex()[:30])
    @pytest.mark.parametrize("options", OPTIONS)
    def test_each_document_is_read_or_refused_as_by_pymongo(data: bytes, options: CodecOptions[Any]) -> None:
        for name in ("decode", "decode_all"):
            expected = outcome(getattr(theirs, name), data, options)
            made = outcome(getattr(ours, name), data, options)
            assert made == expected
            assert type(made) is type(expected)
        assert ours.is_valid(data) == theirs.is_valid(data)
        both = [outcome(lambda m=m: list(m.decode_iter(data, options))) for m in (ours, theirs)]
        assert both[0][0:1] == both[1][0:1]
