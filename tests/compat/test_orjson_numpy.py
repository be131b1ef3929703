"""NumPy objects in `onecopy.compat.orjson` and in orjson: the same bytes, or an error in both.

docs/guide/move-from-orjson.md lists the differences.
"""

# Dtypes are created from text: NumPy's annotations only know literals.
# mypy: disable-error-code="call-overload,assignment,no-any-return,arg-type,unused-ignore"

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import orjson as theirs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from onecopy.compat import orjson as ours
from tests.support.properties import tried

NUMPY = theirs.OPT_SERIALIZE_NUMPY
OPTIONS = [
    theirs.OPT_NAIVE_UTC, theirs.OPT_UTC_Z, theirs.OPT_OMIT_MICROSECONDS, theirs.OPT_INDENT_2, theirs.OPT_SORT_KEYS,
    theirs.OPT_STRICT_INTEGER, theirs.OPT_NON_STR_KEYS, theirs.OPT_APPEND_NEWLINE, theirs.OPT_PASSTHROUGH_DATETIME,
    theirs.OPT_PASSTHROUGH_SUBCLASS, theirs.OPT_PASSTHROUGH_DATACLASS,
]  # fmt: skip
UNITS = ["Y", "M", "W", "D", "h", "m", "s", "ms", "us", "ns"]
NUMBERS = ["?", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8"]
#: Close to the years 1 to 9999; orjson aborts on a negative count of months that is a December.
COUNTS = {
    "Y": 8000,
    "M": 96_000,
    "W": 400_000,
    "D": 2_900_000,
    "h": 69_000_000,
    "m": 4_000_000_000,
    "s": 250_000_000_000,
}


def outcome(dumps: Callable[..., bytes], value: Any, option: int, default: Callable[[Any], Any] | None = None) -> Any:
    """The result of `dumps`, or a constant if it raises."""
    try:
        return dumps(value, default, option)
    except TypeError:
        return TypeError


def check(value: Any, option: int = 0, default: Callable[[Any], Any] | None = None) -> Any:
    """Asserts that both libraries encode the value alike, with the option for NumPy and without
    it."""
    for with_numpy in (option | NUMPY, option):
        mine = outcome(ours.dumps, value, with_numpy, default)
        assert mine == outcome(theirs.dumps, value, with_numpy, default), (value, with_numpy)
    return outcome(ours.dumps, value, option | NUMPY, default)


def random_array(draw: np.random.Generator, dtype: str, shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
    """An array of random items: some have random bits, others a usual magnitude."""
    n = math.prod(shape)
    if dtype.startswith("M8"):
        unit = dtype[3:-1]
        most = COUNTS.get(unit, 1 << 62 if unit == "ns" else 10 ** (13 if unit == "ms" else 16))
        low = 0 if unit == "M" else -(most // 5)
        return draw.integers(low, most, n).view(f"M8[{unit}]").reshape(shape)
    if dtype == "?":
        return draw.random(shape) < 0.5
    bits = draw.integers(0, 256, n * np.dtype(dtype).itemsize, dtype="u1").view(dtype).reshape(shape)
    with np.errstate(all="ignore"):
        usual = (draw.standard_normal(shape) * 10.0 ** draw.integers(-8, 9, shape)).astype(dtype)
    return np.where(draw.random(shape) < 0.5, bits, usual)


SHAPES = [(0,), (1,), (3,), (17,), (64, 2), (2, 0), (0, 2), (2, 3, 4), (1, 1, 1, 1, 2), (500,)]


@pytest.mark.parametrize("dtype", [*NUMBERS, *(f"M8[{unit}]" for unit in UNITS)])
def test_arrays_and_scalars_of_each_type_have_the_bytes_of_orjson(dtype: str) -> None:
    draw = np.random.default_rng(11)
    for shape in SHAPES:
        array = random_array(draw, dtype, shape)
        for option in (0, *OPTIONS, sum(OPTIONS), theirs.OPT_NAIVE_UTC | theirs.OPT_UTC_Z):
            check(array, option)
            check({"b": [array, 1], "a": array}, option)
        scalars = list(array.reshape(-1)[:40])
        for option in (0, *OPTIONS):
            check(scalars, option)
            check({"a": scalars[:1], "b": array}, option, repr)


@given(st.data())
@tried(300)
def test_any_options_and_layouts_have_the_bytes_of_orjson(data: st.DataObject) -> None:
    option = data.draw(st.lists(st.sampled_from(OPTIONS), max_size=6).map(lambda chosen: sum(set(chosen))))
    dtype = data.draw(st.sampled_from([*NUMBERS, *(f"M8[{unit}]" for unit in UNITS), "U2", "S3", "O", "c8", "m8[s]"]))
    shape = data.draw(st.lists(st.integers(0, 4), max_size=4).map(tuple))
    draw = np.random.default_rng(data.draw(st.integers(0, 1 << 32)))
    if dtype in NUMBERS or dtype.startswith("M8"):
        array = random_array(draw, dtype, shape)
    else:
        array = draw.integers(0, 9, shape).astype(dtype)
    for _ in range(data.draw(st.integers(0, 2))):
        change = data.draw(
            st.sampled_from(["transpose", "step", "back", "order", "swap", "derive", "read-only", "view"])
        )
        if change == "transpose":
            array = array.T
        elif change == "step" and array.ndim:
            array = array[..., ::2]
        elif change == "back" and array.ndim:
            array = array[::-1]
        elif change == "order":
            array = np.asfortranarray(array)
        elif change == "swap" and not dtype.startswith("M8"):
            array = array.astype(array.dtype.newbyteorder())
        elif change == "derive":
            array = array.view(np.recarray)
        elif change == "read-only":
            array.setflags(write=False)
        else:
            array = array.view()
    default = data.draw(st.sampled_from([None, lambda o: o.tolist(), lambda o: type(o).__name__, lambda o: None]))
    check(array, option, default)
    check([{"a": array}], option, default)


REFUSED: list[Any] = [
    np.arange(4)[::2], np.arange(4)[::-1], np.ones((2, 3), order="F"), np.array(5), np.array(np.datetime64("2026")),
    np.arange(3).astype(">i4"), np.array(["a"]), np.array([b"a"]), np.array([None]), np.array([1j]),
    np.zeros(2, "i4,i4"),
    np.array([1], "m8[s]"), np.array([1], np.longdouble), np.array(["a"], np.dtypes.StringDType()),
    np.array([[1]]).view(np.matrix),
    np.ma.masked_array([1]), np.longdouble(1), np.complex128(1), np.timedelta64(1, "s"), np.bytes_(b"a"), np.void(b"a"),
    np.array(["NaT"], "M8[s]"), np.datetime64("NaT"), np.datetime64("NaT", "s"), np.array([5], "i8").view("M8"),
    np.array([5], "i8").view("M8[ps]"), np.array([5], "i8").view("M8[as]")[0], np.datetime64(8030, "Y"),
    np.datetime64(-1971, "Y"),
    np.array([2**62], "i8").view("M8[s]"),
]  # fmt: skip


@pytest.mark.parametrize("value", REFUSED, ids=lambda value: f"{type(value).__name__} {value.dtype} {value.shape}")
def test_values_that_orjson_refuses_are_refused_or_passed_to_default(value: Any) -> None:
    for default in (None, lambda o: type(o).__name__, lambda o: 1):
        check(value, 0, default)
        check([1, {"a": value}], 0, default)
    assert outcome(ours.dumps, value, NUMPY) is TypeError


TAKEN: list[Any] = [
    np.arange(3).astype(">i1"), np.asfortranarray(np.ones((3,))), np.arange(3).astype(">i8")[1],
    np.ones((1, 3))[:, :], np.arange(6).reshape(2, 3)[1:], np.zeros((2, 0), order="F"), np.zeros((0, 3))[::-1],
    np.array([5], "i8").view("M8[ps]")[:0], np.zeros((1,) * 40), np.frombuffer(b"\0" * 17, "u1")[1:].view("i8"),
    np.array([np.nan, np.inf, -np.inf, -0.0]), np.float32("nan"), np.float16("-inf"), np.array([2**64 - 1], "u8"),
    np.array([2**60, -(2**60)]), np.int64(2**60), np.uint64(2**64 - 1), np.array([2, 0, 1], "u1").view("?"),
]  # fmt: skip


@pytest.mark.parametrize("value", TAKEN, ids=repr)
def test_values_that_orjson_accepts_are_accepted(value: Any) -> None:
    for option in (0, *OPTIONS):
        assert check(value, option) is not TypeError
        check({"a": value, "b": [value]}, option, lambda o: type(o).__name__)


@pytest.mark.parametrize(
    "key",
    [
        np.int64(1), np.uint8(1), np.float64(1.5), np.float32(1.5), np.float16(1.5), np.bool_(True),
        np.datetime64("2026-01-01"),
        np.datetime64("NaT"), np.bytes_(b"a"), np.longdouble(1), np.complex128(1), np.timedelta64(1, "s"),
    ],
    ids=lambda key: type(key).__name__,
)  # fmt: skip
def test_scalars_as_keys_are_written_as_by_orjson(key: Any) -> None:
    for option in (0, theirs.OPT_NON_STR_KEYS, theirs.OPT_NON_STR_KEYS | theirs.OPT_SORT_KEYS):
        check({key: 1}, option)
        check([{"b": 1, key: np.arange(2)}], option)


def test_a_str_of_numpy_is_written_as_a_subclass_of_str() -> None:
    for option in (0, *OPTIONS):
        for default in (None, repr):
            check([np.str_("é"), np.array([1])], option, default)


def test_keys_of_numpys_str_are_text_as_those_of_subclasses_of_str() -> None:
    for option in (theirs.OPT_NON_STR_KEYS, theirs.OPT_NON_STR_KEYS | theirs.OPT_SORT_KEYS):
        check({np.str_("é"): 1}, option)
    assert ours.dumps({np.str_("é"): 1}, option=NUMPY) == '{"é":1}'.encode()


def test_without_the_option_all_are_passed_to_default_as_in_orjson() -> None:
    seen: list[Any] = []

    def default(value: Any) -> Any:
        seen.append(value)
        return [type(value).__name__]

    values = [
        np.arange(2),
        np.float64(1),
        np.float32(1),
        np.int8(1),
        np.bool_(True),
        np.datetime64("2026"),
        np.array([1j]),
    ]
    assert ours.dumps(values, default) == theirs.dumps(values, default)
    assert all(one is other for one, other in zip(seen[: len(values)], values, strict=True))


def test_values_that_crash_orjson_are_written() -> None:
    assert ours.dumps(np.array([-1], "i8").view("M8[M]"), option=NUMPY) == b'["1969-12-01T00:00:00"]'
    assert ours.dumps(np.array([5, -1], "i8").view("M8[25s]"), option=NUMPY) == (
        b'["1970-01-01T00:02:05","1969-12-31T23:59:35"]'
    )
    assert ours.dumps(np.array([2], "i8").view("M8[7D]")[0], option=NUMPY) == b'"1970-01-15T00:00:00"'


def test_days_and_weeks_past_64_bits_of_seconds_are_errors_where_orjson_writes_another_day() -> None:
    for unit in ("W", "D", "h", "m"):
        array = np.array([2**62], "i8").view(f"M8[{unit}]")
        assert b"1970" in theirs.dumps(array, option=NUMPY)
        with pytest.raises(ours.JSONEncodeError, match="0 to 9999"):
            ours.dumps(array, option=NUMPY)
