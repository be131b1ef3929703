"""The value types of `onecopy.bson`: constructors, comparison, hashes, copies, pickles, reprs."""

from __future__ import annotations

import copy
import datetime as dt
import decimal
import json
import os
import pickle
import re
import uuid
from decimal import Decimal
from typing import Any

import bson as theirs
import pytest
from hypothesis import given
from hypothesis import strategies as st

import onecopy.json
from onecopy import bson

HEX = "0123456789abcdef01234567"
OID = bson.ObjectId(HEX)
EACH: list[Any] = [
    OID,
    bson.Binary(b"\0\xff", 5),
    bson.Int64(-(2**63)),
    bson.Decimal128("-1.500E+7"),
    bson.Decimal128.from_bid(bytes(range(100, 116))),
    bson.DatetimeMS(-(2**63)),
    bson.Timestamp(2**32 - 1, 0),
    bson.Regex("a'b", "xmi"),
    bson.Code("f()"),
    bson.Code("f()", {"x": [1]}),
    bson.MinKey(),
    bson.MaxKey(),
    bson.Symbol("s'"),
    bson.Undefined(),
    bson.DBPointer("db.c", OID),
]


@pytest.mark.parametrize("value", EACH, ids=repr)
def test_a_value_is_copied_pickled_and_printed(value: Any) -> None:
    made = [copy.copy(value), copy.deepcopy(value), eval(repr(value), vars(bson).copy())]
    made += [pickle.loads(pickle.dumps(value, protocol)) for protocol in range(pickle.HIGHEST_PROTOCOL + 1)]
    for other in made:
        assert other == value
        assert (other != value) is False
        assert type(other) is type(value)
        assert hash(other) == hash(value)
        assert bson.encode({"v": other}) == bson.encode({"v": value})


def test_values_differ_from_all_others() -> None:
    for i, one in enumerate(EACH):
        for k, other in enumerate(EACH):
            assert (one == other) == (i == k)
        assert one != object()


@pytest.mark.parametrize("value", [v for v in EACH if not isinstance(v, (int, str, bytes))], ids=repr)
def test_a_value_cannot_be_changed(value: Any) -> None:
    for name in ("binary", "bid", "time", "pattern", "_value", "collection", "other"):
        with pytest.raises((AttributeError, TypeError)):
            setattr(value, name, 1)


def test_an_object_id_is_created_from_bytes_digits_or_another_one() -> None:
    data = bytes.fromhex(HEX)
    their = theirs.ObjectId(HEX)
    same = [bson.ObjectId(data), bson.ObjectId(HEX), bson.ObjectId(OID), bson.ObjectId(their)]  # type: ignore[arg-type]
    assert same == same[:1] * 4
    assert OID.binary == data
    assert str(OID) == HEX
    assert their == OID
    assert OID.__eq__(their) is True
    assert hash(OID) == hash(their)
    both: dict[object, int] = {their: 1}
    assert both[OID] == 1
    assert OID.generation_time == their.generation_time
    assert bson.ObjectId(HEX.upper()) == OID
    for wrong in ("", "x" * 24, HEX[:-1], b"", data + b"0"):
        with pytest.raises(ValueError, match="12 bytes"):
            bson.ObjectId(wrong)
        assert not bson.ObjectId.is_valid(wrong)
    for other in (5, None, 1.5, bytearray(data)):
        assert not bson.ObjectId.is_valid(other)
    with pytest.raises(TypeError):
        bson.ObjectId(5)  # type: ignore[arg-type]
    assert bson.ObjectId.is_valid(HEX)


def test_object_ids_are_ordered_and_unique() -> None:
    made = [bson.ObjectId() for _ in range(10_000)]
    assert len(set(made)) == 10_000
    assert bson.ObjectId("0" * 24) < OID < bson.ObjectId("f" * 24)
    assert OID <= OID and OID >= OID
    with pytest.raises(TypeError):
        assert OID < "x"  # type: ignore[operator]
    now = dt.datetime.now(dt.timezone.utc)
    assert abs(made[0].generation_time - now) < dt.timedelta(minutes=1)
    moment = dt.datetime(2020, 1, 1)
    assert bson.ObjectId.from_datetime(moment) == theirs.ObjectId.from_datetime(moment)
    with pytest.raises(ValueError, match="1970 to 2106"):
        bson.ObjectId.from_datetime(dt.datetime(1969, 12, 31))


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")  # Another test may have left a thread.
def test_a_forked_child_generates_others() -> None:
    before = bson.ObjectId().binary[4:9]
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(writer, bson.ObjectId().binary[4:9])
        os._exit(0)
    os.waitpid(child, 0)
    assert os.read(reader, 5) != before
    os.close(reader)
    os.close(writer)
    assert bson.ObjectId().binary[4:9] == before


def test_binary_has_its_subtype() -> None:
    assert bson.Binary(b"a", 5) != bson.Binary(b"a", 4)
    assert bson.Binary(b"a") == b"a"
    assert bson.Binary(b"a", 5) != b"a"
    assert bson.Binary(bytearray(b"ab"), 5) == theirs.Binary(b"ab", 5)
    for wrong in (-1, 256):
        with pytest.raises(ValueError, match="0 to 255"):
            bson.Binary(b"", wrong)
    with pytest.raises(TypeError):
        bson.Binary("text")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="not a UUID"):
        bson.Binary(b"x" * 16, 4).as_uuid("java_legacy")
    u = uuid.uuid4()
    for form in ("standard", "python_legacy", "java_legacy", "csharp_legacy"):
        assert bson.Binary.from_uuid(u, form).as_uuid(form) == u


@given(st.decimals(allow_nan=False, allow_infinity=False))
def test_a_decimal_round_trips_through_128_bits_or_is_refused(value: Decimal) -> None:
    try:
        made = bson.Decimal128(value)
    except ValueError:
        with pytest.raises(bson.BSONEncodeError):
            bson.encode({"v": value})
        return
    assert made.to_decimal() == value
    assert bson.encode({"v": value}) == bson.encode({"v": made})
    if len(value.as_tuple().digits) <= 34:
        assert made.bid == theirs.Decimal128(value).bid
        assert made == theirs.Decimal128(value)


@given(st.binary(min_size=16, max_size=16))
def test_any_16_bytes_are_a_decimal_with_text_and_repr(bid: bytes) -> None:
    made = bson.Decimal128.from_bid(bid)
    assert made.bid == bid
    assert eval(repr(made), {"Decimal128": bson.Decimal128}) == made
    assert str(made) == str(made.to_decimal())


@pytest.mark.parametrize(
    "text",
    ["0", "-0", "NaN", "-NaN", "sNaN", "Infinity", "-Infinity", "1E-6176", "9" * 34 + "E+6111", "1E+6144"],
)
def test_extreme_decimals_match_pymongo(text: str) -> None:
    assert bson.Decimal128(text).bid == theirs.Decimal128(text).bid
    assert str(bson.Decimal128(text).to_decimal()) == str(theirs.Decimal128(text).to_decimal())


@pytest.mark.parametrize("wrong", ["", "1,5", "x", "1" * 35, "1E+6145", "1E-6177", "NaN123"])
def test_a_value_without_a_form_in_128_bits_is_refused(wrong: str) -> None:
    with pytest.raises(ValueError, match=r"decimal|digits"):
        bson.Decimal128(wrong)


@pytest.mark.parametrize("wrong", ["1" * 35, "1E+6145", "1E-6177"])
def test_a_decimal_out_of_range_is_refused_with_both_limits(wrong: str) -> None:
    with pytest.raises(ValueError, match="more than 34 digits, or too large or small an exponent"):
        bson.Decimal128(wrong)


@pytest.mark.parametrize("odd", [" ", "\t", "\n", "_", "\xa0", "\u2009", "\u0661", "\uff11", "\0"])
@pytest.mark.parametrize("good", ["1", "10", "+1.50", "-1E+5", "Infinity", "NaN"])
def test_the_text_of_a_decimal_has_only_the_number(good: str, odd: str) -> None:
    assert bson.Decimal128(good).bid == theirs.Decimal128(good).bid
    for text in (odd + good, good + odd, good[:1] + odd + good[1:], odd):
        with pytest.raises(ValueError, match="not a valid decimal"):
            bson.Decimal128(text)
        with pytest.raises(onecopy.json.JSONDecodeError):
            bson.from_json(json.dumps({"d": {"$numberDecimal": text}}))
        if not odd.isdigit():  # pymongo accepts digits of other scripts.
            with pytest.raises(decimal.InvalidOperation):
                theirs.Decimal128(text)


@pytest.mark.parametrize("odd", [" ", "\n", "_", "-", "\xa0", "\u0661", "\uff11", "g"])
def test_the_text_of_an_object_id_has_only_the_digits(odd: str) -> None:
    for wrong in (odd + HEX, HEX + odd, odd + HEX[1:], HEX[:-1] + odd, HEX[:11] + odd + HEX[12:]):
        for of in (bson.ObjectId, theirs.ObjectId):
            with pytest.raises((ValueError, theirs.errors.InvalidId)):
                of(wrong)
        with pytest.raises(onecopy.json.JSONDecodeError):
            bson.from_json(json.dumps({"o": {"$oid": wrong}}))


def test_datetimes_are_milliseconds() -> None:
    east = dt.timezone(dt.timedelta(hours=1))
    assert int(bson.DatetimeMS(dt.datetime(1970, 1, 1, 1, 0, 0, 999, east))) == 0
    assert int(bson.DatetimeMS(dt.datetime(1969, 12, 31, 23, 59, 59, 999_999))) == -1
    assert bson.DatetimeMS(5).as_datetime() == dt.datetime(1970, 1, 1, 0, 0, 0, 5000, dt.timezone.utc)
    assert bson.DatetimeMS(5).as_datetime(tz_aware=False) == dt.datetime(1970, 1, 1, 0, 0, 0, 5000)
    assert bson.DatetimeMS(1) < bson.DatetimeMS(2) < 3
    with pytest.raises(OverflowError):
        bson.DatetimeMS(2**63)
    with pytest.raises(OverflowError):
        bson.DatetimeMS(2**62).as_datetime()
    with pytest.raises(TypeError):
        bson.DatetimeMS("1")  # type: ignore[arg-type]
    stamp = bson.Timestamp(dt.datetime(2020, 1, 1), 3)
    assert stamp == theirs.Timestamp(dt.datetime(2020, 1, 1), 3)
    assert stamp.as_datetime() == dt.datetime(2020, 1, 1, tzinfo=dt.timezone.utc)
    assert bson.Timestamp(1, 2) < bson.Timestamp(1, 3) < bson.Timestamp(2, 0)
    with pytest.raises(ValueError, match="32 bits"):
        bson.Timestamp(2**32, 0)


def test_a_regex_has_letters_and_flags() -> None:
    regex = bson.Regex("A", "xi")
    assert regex.options == "ix"
    assert regex.flags == re.I | re.X
    assert regex.try_compile().match("a")
    assert regex == theirs.Regex("A", "xi")
    assert bson.Regex.from_native(re.compile("a", re.M)).options == "mu"
    assert bson.Regex("a", "q").options == "q"
    for pattern, options in (("a\0", ""), ("a", "\0")):
        with pytest.raises(ValueError, match="NUL"):
            bson.Regex(pattern, options)


def test_minkey_and_maxkey_compare_outside_of_all_values() -> None:
    low, high = bson.MinKey(), bson.MaxKey()
    for other in (0, "x", None, OID):
        assert low < other < high
        assert high > other > low
        assert low <= other <= high
    assert low <= bson.MinKey() and not low < bson.MinKey()
    assert high >= bson.MaxKey() and not high > bson.MaxKey()
    assert low == theirs.MinKey() and high == theirs.MaxKey()


def test_int64_and_code_are_instances_of_int_and_str() -> None:
    assert bson.Int64(5) + 1 == 6
    assert f"{bson.Int64(5)}" == str(bson.Int64(5)) == "5"
    assert bson.Symbol("a") == "a"
    assert str(bson.Code("a", {})) == "a"
    assert type(str(bson.Code("a"))) is str
    assert bson.Code("a") != "a"
    assert not bson.Undefined()


def test_errors_are_pickled_and_have_their_position() -> None:
    for error in (
        bson.BSONEncodeError("wrong\nmend it", "$.a", "int"),
        bson.BSONTypeError("of a wrong type", "$.a", "type"),
        bson.BSONDecodeError("wrong", 7),
    ):
        back = pickle.loads(pickle.dumps(error))
        assert (type(back), str(back), vars(back)) == (type(error), str(error), vars(error))
        assert isinstance(error, bson.BSONError) and isinstance(error, ValueError)
    assert str(bson.BSONEncodeError("wrong\nmend it", "$.a")) == "wrong, at `$.a`\nmend it"
    assert isinstance(bson.BSONTypeError("x"), TypeError)
