"""NumPy arrays and scalars as BSON: each dtype in each memory layout is encoded, and decoded by
pymongo."""

from __future__ import annotations

import datetime as dt
import math
from typing import Any

import bson as theirs
import numpy as np
import pytest
from bson.codec_options import CodecOptions, DatetimeConversion
from hypothesis import given
from hypothesis import strategies as st

from onecopy import bson
from tests.support.properties import tried

#: The Python value that an item of each dtype is encoded as.
PLAIN: dict[str, Any] = {
    "?": bool,
    "i1": int,
    "i2": int,
    "i4": int,
    "i8": lambda value: bson.Int64(int(value)),
    "u1": int,
    "u2": int,
    "u4": lambda value: bson.Int64(int(value)),
    "u8": lambda value: bson.Int64(int(value)),
    "f2": float,
    "f4": float,
    "f8": float,
}


def plain(array: np.ndarray[Any, Any], one: Any) -> Any:
    """The items of an array as a nested list; ``one`` converts each item."""
    return [plain(item, one) for item in array] if array.ndim else one(array[()])


@pytest.mark.parametrize("dtype", PLAIN)
def test_numbers_are_written_by_their_dtype_in_arrays_and_as_scalars(dtype: str) -> None:
    one = PLAIN[dtype]
    array = (np.arange(0 if dtype == "u8" else -5, 30)[:30] * 7).astype(dtype)
    if dtype[0] in "iu":
        info = np.iinfo(dtype)
        array[:3] = [info.min, info.max if dtype != "u8" else 2**63 - 1, info.max // 2]
    for view in (array, array.reshape(5, 6), array.reshape(5, 6).T, array[::-3], array[:0], array[4:5].reshape(())):
        for held in (view, view.astype(view.dtype.newbyteorder()), np.asfortranarray(view)):
            wanted = bson.encode({"a": plain(view, one), "b": [plain(view, one)]})
            assert bson.encode({"a": held.reshape(view.shape), "b": [held.reshape(view.shape)]}) == wanted
    for scalar in array:
        assert bson.encode({"a": scalar, "b": [scalar]}) == bson.encode({"a": one(scalar), "b": [one(scalar)]})


@given(st.data())
@tried(200)
def test_arrays_of_any_shape_are_read_by_pymongo_as_nested_lists(data: st.DataObject) -> None:
    shape = data.draw(st.lists(st.integers(0, 6), min_size=1, max_size=5).map(tuple))
    dtype = data.draw(st.sampled_from(["i4", "i8", "f8", "?"]))
    array = np.arange(math.prod(shape)).astype(dtype).reshape(shape)
    array = array.transpose(data.draw(st.permutations(range(len(shape)))))[:: data.draw(st.sampled_from([1, 2, -1]))]
    encoded = bson.encode({"a": array, "b": {"c": array}})
    bson.validate(encoded)
    assert theirs.decode(encoded) == {"a": array.tolist(), "b": {"c": array.tolist()}}


def test_a_long_array_has_the_keys_of_a_list() -> None:
    array = np.arange(123_456, dtype="i4")
    assert bson.encode({"a": array}) == bson.encode({"a": array.tolist()})
    place = bytearray(3_000_000)
    n = bson.encode_into({"a": array.reshape(-1, 3)}, place)
    assert bytes(place[:n]) == bson.encode({"a": array.reshape(-1, 3).tolist()})


@pytest.mark.parametrize("unit", ["Y", "M", "W", "D", "h", "m", "s", "ms", "us", "ns", "ps", "fs", "as", "15m"])
def test_datetimes_of_each_unit_are_floored_to_milliseconds(unit: str) -> None:
    counts = np.array([0, 1, -1, 12, 1999, -1999, 2**31, -(2**31)], "i8")
    moments = counts.view(f"M8[{unit}]")
    ms = [int(ms) for ms in moments.astype("M8[ms]").astype("i8")]
    in_range = [-62_135_596_800_000 <= one <= 253_402_300_799_999 for one in ms]
    moments = moments[in_range]
    wanted = {"a": [bson.DatetimeMS(one) for one, is_in in zip(ms, in_range, strict=True) if is_in]}
    assert len(moments) > 2
    assert bson.encode({"a": moments}) == bson.encode(wanted)
    assert bson.encode({"a": list(moments)}) == bson.encode(wanted)


def test_a_datetime64_is_read_back_as_a_datetime() -> None:
    at = np.datetime64("2026-01-02T03:04:05.678901234")
    read = bson.decode(bson.encode({"s": at, "a": np.array([at]), "d": np.array(["2026-01-02"], "M8[D]")}))
    moment = dt.datetime(2026, 1, 2, 3, 4, 5, 678_000, dt.timezone.utc)
    assert read == {"s": moment, "a": [moment], "d": [dt.datetime(2026, 1, 2, tzinfo=dt.timezone.utc)]}


def test_not_a_time_is_null_in_arrays_and_as_a_scalar() -> None:
    for unit in ("[D]", "[ns]", ""):
        array = np.array(["NaT"], f"M8{unit}")
        assert bson.encode({"a": array, "s": array[0]}) == bson.encode({"a": [None], "s": None})


def test_datetimes_past_the_years_follow_the_option() -> None:
    array = np.array([0, 20_000 - 1970], "i8").view("M8[Y]")
    options: CodecOptions[Any] = CodecOptions(datetime_conversion=DatetimeConversion.DATETIME_MS)
    for value in (array, list(array)):
        with pytest.raises(bson.BSONEncodeError, match="years 1 to 9999") as caught:
            bson.encode({"a": [value]})
        assert caught.value.path == "$.a[0][1]"
        raw = theirs.decode(bson.encode({"a": value}, datetime_range="raw"), options)
        assert int(raw["a"][1]) == int(array.astype("M8[ms]").astype("i8")[1])
        clamped = bson.decode(bson.encode({"a": value}, datetime_range="clamp"))
        assert clamped["a"][1].year == 9999
    for wrong in (
        np.array([2**62], "i8").view("M8[D]"),
        np.array([2**62], "i8").view("M8[Y]"),
        np.array([1], "i8").view("M8"),
    ):
        with pytest.raises(bson.BSONEncodeError, match="datetime64"):
            bson.encode({"a": wrong}, datetime_range="raw")


def test_integers_past_64_bits_are_errors_with_their_path() -> None:
    array = np.array([[1, 2**63 - 1], [2, 2**63]], "u8")
    assert bson.decode(bson.encode({"a": array[0]})) == {"a": [1, 2**63 - 1]}
    with pytest.raises(bson.BSONEncodeError, match="64 bits") as caught:
        bson.encode({"a": array})
    assert caught.value.path == "$.a[1][1]"
    with pytest.raises(bson.BSONEncodeError, match="64 bits"):
        bson.encode({"a": array[1, 1]})


def test_texts_binary_and_objects_are_written_as_their_python_types() -> None:
    texts = ["", "é", "東京", "😀", "x" * 5000]
    assert bson.encode({"a": np.array(texts)}) == bson.encode({"a": texts})
    assert bson.encode({"a": np.array(texts, np.dtypes.StringDType())}) == bson.encode({"a": texts})
    assert bson.encode({"a": np.array("é")}) == bson.encode({"a": "é"})
    assert bson.encode({"a": np.array([b"a", b"bc"])}) == bson.encode({"a": [b"a", b"bc"]})
    assert bson.encode({"a": np.bytes_(b"a")}) == bson.encode({"a": b"a"})
    items = [None, {"b": 1}, np.arange(2, dtype="i4"), bson.ObjectId()]
    held = np.empty(len(items), object)
    held[:] = items
    assert bson.encode({"a": held}) == bson.encode({"a": [None, {"b": 1}, [0, 1], items[3]]})
    with pytest.raises(bson.BSONEncodeError, match="lone surrogate") as caught:
        bson.encode({"a": np.array(["a", "\ud800"])})
    assert caught.value.path == "$.a[1]"


@pytest.mark.parametrize(
    "value",
    [np.timedelta64(1, "s"), np.timedelta64(1, "ns"), np.complex64(1), np.longdouble(1), np.zeros(1, "i4,i4")[0]],
    ids=lambda value: f"{type(value).__name__} {value.dtype}",
)
def test_types_without_a_form_are_type_errors_as_scalars_and_in_arrays(value: Any) -> None:
    array = np.array([value], value.dtype)
    for held in (value, array):
        with pytest.raises(bson.BSONTypeError, match=f"{type(held).__name__}.*no form in BSON"):
            bson.encode({"a": held})
        assert bson.encode({"a": held}, default=lambda o: type(o).__name__) == bson.encode({"a": type(held).__name__})


def test_an_array_is_not_a_document_and_its_dimensions_are_levels() -> None:
    for value in (np.arange(3), np.int8(1), np.array(1), np.datetime64("2026")):
        with pytest.raises(bson.BSONTypeError, match="a document is a mapping"):
            bson.encode(value)
    array = np.zeros((1, 1, 1))
    assert bson.encode({"a": array}, max_depth=4) == bson.encode({"a": [[[0.0]]]})
    with pytest.raises(bson.BSONEncodeError, match="more than 3 objects"):
        bson.encode({"a": array}, max_depth=3)
    with pytest.raises(bson.BSONEncodeError, match="longer than 1000 bytes"):
        bson.encode({"a": np.zeros(1000)}, max_bytes=1000)


def test_all_are_passed_to_default_by_option() -> None:
    for value in (np.int8(1), np.float32(1), np.bool_(True), np.datetime64("2026"), np.arange(3)):
        encoded = bson.encode({"a": value}, passthrough=("numpy",), default=lambda o: type(o).__name__)
        assert encoded == bson.encode({"a": type(value).__name__})
    assert bson.encode({"a": np.float64(1.5)}, passthrough=("numpy",)) == bson.encode({"a": 1.5})
