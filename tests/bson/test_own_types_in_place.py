"""Values of BSON types of onecopy and pymongo, which the encoder reads directly from their memory.

The first value of a class and later ones are encoded as by pymongo. Instances of subclasses and of
changed classes are read by their attributes.
"""

from __future__ import annotations

import enum
from typing import Any

import bson as pymongo
import pytest
from bson.raw_bson import RawBSONDocument
from hypothesis import given
from hypothesis import strategies as st

from onecopy import bson, json
from tests.support.properties import tried

_TWELVE, _SIXTEEN = st.binary(min_size=12, max_size=12), st.binary(min_size=16, max_size=16)
_INTEGERS = st.integers(-(2**63), 2**63 - 1)


@given(st.lists(_TWELVE), st.lists(_SIXTEEN), st.lists(_INTEGERS))
@tried(100)
def test_values_of_both_libraries_are_written_as_by_pymongo(
    ids: list[bytes], decimals: list[bytes], integers: list[int]
) -> None:
    def of(library: Any) -> dict[str, Any]:
        return {
            "ids": [library.ObjectId(each) for each in ids],
            "decimals": [library.Decimal128.from_bid(each) for each in decimals],
            "integers": [library.Int64(each) for each in integers],
        }

    expected = pymongo.encode(of(pymongo))
    for values in (of(bson), of(pymongo)):
        assert bson.encode(values) == expected
        assert bson.encode(values, check_keys=True) == expected


_TEXTS = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=40)
_LETTERS = st.sets(st.sampled_from("ilmsux"))
_SECONDS = st.integers(0, 2**32 - 1)


@given(
    st.lists(st.tuples(st.binary(max_size=60), st.sampled_from([0, 1, 2, 3, 4, 5, 9, 128, 254]))),
    st.lists(st.tuples(_TEXTS, _LETTERS)),
    st.lists(st.tuples(_SECONDS, _SECONDS)),
    st.lists(_INTEGERS),
    st.lists(st.tuples(_TEXTS, st.sampled_from([None, {}, {"a": 1}]))),
)
@tried(100)
def test_the_other_types_of_both_libraries_are_written_as_by_pymongo(
    binaries: list[tuple[bytes, int]],
    patterns: list[tuple[str, set[str]]],
    stamps: list[tuple[int, int]],
    moments: list[int],
    codes: list[tuple[str, dict[str, int] | None]],
) -> None:
    def of(library: Any) -> dict[str, Any]:
        return {
            "binaries": [library.Binary(*each) for each in binaries],
            "patterns": [library.Regex(text, "".join(letters)) for text, letters in patterns],
            "stamps": [library.Timestamp(*each) for each in stamps],
            "moments": [library.DatetimeMS(each) for each in moments],
            "codes": [library.Code(*each) for each in codes],
            "keys": [library.MinKey(), library.MaxKey()],
        }

    expected = pymongo.encode(of(pymongo))
    for values in (of(bson), of(pymongo)):
        assert bson.encode(values) == expected
        assert b"".join(bson.encode_many([values, values], chunk_bytes=64)) == expected * 2
    raw = RawBSONDocument(expected)
    assert bson.encode({"raw": [raw, raw]}) == pymongo.encode({"raw": [raw, raw]})


@pytest.mark.parametrize("size", [0, 100, 400, 511, 512, 513, 5000, 100_000])
@pytest.mark.parametrize("library", [bson, pymongo])
def test_long_values_of_these_types(library: Any, size: int) -> None:
    text = "x" * size
    values = [
        library.Binary(b"x" * size, 5),
        library.Code(text),
        library.Code(text + "é"),
        library.Regex(text, "i"),
    ] * 9
    expected = pymongo.encode({"v": [pymongo.Binary(b"x" * size, 5), pymongo.Code(text), pymongo.Code(text + "é")]})
    assert bson.encode({"v": values[:3]}) == expected
    assert bson.decode(bson.encode({"v": values}))["v"][3].pattern == text


def test_values_that_were_changed_are_errors_or_written_by_their_attributes() -> None:
    binary = bson.Binary(b"x")
    binary.subtype = 300
    with pytest.raises(OverflowError):
        bson.encode({"v": [binary]})
    regex = bson.Regex("a")
    object.__setattr__(regex, "pattern", "a\0b")
    with pytest.raises(bson.BSONEncodeError, match="NUL"):
        bson.encode({"v": [regex]})
    stamp = bson.Timestamp(1, 2)
    object.__setattr__(stamp, "time", 2**32)
    with pytest.raises(OverflowError):
        bson.encode({"v": [stamp]})
    raw = RawBSONDocument(pymongo.encode({"a": 1}))
    raw._RawBSONDocument__raw = raw.raw[:-1]  # type: ignore[attr-defined]
    with pytest.raises(bson.BSONEncodeError, match="raw document"):
        bson.encode({"v": [raw]})


@pytest.mark.parametrize("library", [bson, pymongo])
def test_a_derived_class_is_written_by_its_attributes(library: Any) -> None:
    class Decimal(library.Decimal128):  # type: ignore[misc]
        @property
        def bid(self) -> bytes:
            return bytes(16)

    class Long(library.Int64):  # type: ignore[misc]
        pass

    zero = bson.Decimal128.from_bid(bytes(16))
    for _ in range(3):
        made = bson.encode({"d": [Decimal.__new__(Decimal)] * 2, "n": Long(5)})
        assert made == bson.encode({"d": [zero] * 2, "n": bson.Int64(5)})


def test_a_derived_object_id_of_pymongos_is_written_by_its_attribute() -> None:
    class Id(pymongo.ObjectId):
        @property
        def binary(self) -> bytes:
            return b"x" * 12

    assert bson.encode({"i": [Id(), Id()]}) == bson.encode({"i": [bson.ObjectId(b"x" * 12)] * 2})


def test_bytes_of_another_length_are_refused() -> None:
    good, bad = bson.Decimal128("1"), bson.Decimal128("1")
    object.__setattr__(bad, "bid", b"short")
    assert len(bson.encode({"d": [good, good]})) > 16
    with pytest.raises(bson.BSONEncodeError, match=r"16 bytes, at `\$\.d\[1\]`") as caught:
        bson.encode({"d": [good, bad]})
    assert caught.value.value is bad


@pytest.mark.parametrize("library", [bson, pymongo])
def test_an_int64_past_64_bits_is_refused(library: Any) -> None:
    for value in (2**63, -(2**63) - 1, 2**200):
        with pytest.raises(bson.BSONEncodeError, match="past 64 bits"):
            bson.encode({"n": [library.Int64(1), library.Int64(value)]}, default=lambda _: 0)


def test_json_writes_an_int64_as_an_int() -> None:
    assert json.dumps([bson.Int64(5), pymongo.Int64(2**60)]) == b"[5,1152921504606846976]"


def test_functions_of_a_metaclass_are_not_called_for_each_value() -> None:
    calls: list[str] = []

    class Meta(type):
        def __getattr__(cls, name: str) -> Any:
            calls.append(name)
            raise AttributeError(name)

    class Strange(metaclass=Meta):
        pass

    class Colour(enum.Enum):
        RED = "red"

    assert bson.encode({"v": [Strange()]}, default=lambda _: 1) == bson.encode({"v": [1]})
    calls.clear()
    assert bson.encode({"v": [Strange() for _ in range(9)]}, default=lambda _: 1) == bson.encode({"v": [1] * 9})
    assert calls == []
    left = bson.encode({"v": [Colour.RED] * 9}, default=lambda value: value.value, passthrough=("enum",))
    assert left == bson.encode({"v": [Colour.RED] * 9})
