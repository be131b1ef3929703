"""NumPy arrays and scalars as JSON: each dtype in each memory layout, compared with NumPy's text."""

# Dtypes are created from text: NumPy's annotations only know literals.
# mypy: disable-error-code="call-overload,assignment,no-any-return,arg-type,unused-ignore"

from __future__ import annotations

import decimal
import io
import json as standard
import math
import subprocess
import sys
import threading
import uuid
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from onecopy import json
from tests.support.properties import tried

INTEGERS = ["i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8"]
FLOATS = ["f2", "f4", "f8"]
NUMBERS = ["?", *INTEGERS, *FLOATS]
UNITS = ["Y", "M", "W", "D", "h", "m", "s", "ms", "us", "ns", "ps", "fs", "as"]
NOT_A_TIME = np.iinfo("i8").min


def text_of(value: Any) -> str:
    """The expected JSON text of a number, boolean or datetime, formatted by NumPy itself."""
    if isinstance(value, np.bool_):
        return "true" if value else "false"
    if isinstance(value, np.integer):
        return str(int(value))
    if isinstance(value, np.floating):
        return str(value)
    return moment_of(value)


def moment_of(value: np.datetime64) -> str:
    if np.isnat(value):
        return "null"
    unit, _ = np.datetime_data(value.dtype)
    if unit in ("Y", "M", "W", "D"):
        return f'"{value.astype("M8[D]")}"'
    if unit in ("h", "m", "s", "ms", "us"):
        return f'"{value.astype("M8[us]").item().isoformat()}"'
    text = str(np.datetime_as_string(value.astype("M8[ns]"), unit="ns"))
    for zeros in ("000000000", "000"):
        if text.endswith("." + zeros if len(zeros) == 9 else zeros):
            text = text[: -len(zeros)]
            break
    return f'"{text.rstrip(".")}"'


def is_same_text(text: str, wanted: str) -> bool:
    """Returns true if both texts are equal, or are equal numbers with the same number of digits."""
    if text == wanted:
        return True
    try:
        one, other = decimal.Decimal(text), decimal.Decimal(wanted)
    except decimal.InvalidOperation:
        return False
    is_negative = one.is_signed() == other.is_signed()
    return is_negative and one == other and one.normalize().as_tuple().digits == other.normalize().as_tuple().digits


def check_row(array: np.ndarray[Any, Any], **options: Any) -> None:
    """Compares the JSON of a one-dimensional array and of its scalars with NumPy's text."""
    items = json.dumps(array, **options).decode()[1:-1].split(",") if array.size else []
    assert len(items) == array.size
    for item, value in zip(items, array, strict=True):
        assert is_same_text(item, text_of(value)), (item, value)
        assert json.dumps(value, **options).decode() == item
        assert json.dumps_str([value], **options) == f"[{item}]"


def samples(dtype: str) -> np.ndarray[Any, Any]:
    """An array with small, large and random items of a dtype."""
    draw = np.random.default_rng(7)
    if dtype == "?":
        return draw.random(300) < 0.5
    if dtype in INTEGERS:
        info = np.iinfo(dtype)
        listed = [0, 1, 9, 10, 99, 100, info.min, info.max, info.max - 1, info.max // 2, info.max // 10]
        spread = draw.integers(info.min, info.max, 300, dtype=dtype, endpoint=True)
        return np.concatenate([np.array(listed, dtype), spread])
    bits = draw.integers(0, 256, (3000, np.dtype(dtype).itemsize), dtype="u1").view(dtype)[:, 0]
    with np.errstate(all="ignore"):
        edges = np.array([0.0, -0.0, 0.1, 0.5, 1.0, -1.5, 2.5, 1e-7, 1e22, 123456.789, 16777216.0, 65504.0]).astype(
            dtype
        )
        near = (draw.standard_normal(500) * 10.0 ** draw.integers(-6, 7, 500)).astype(dtype)
    values: np.ndarray[Any, Any] = np.concatenate([edges, near, bits])
    finite: np.ndarray[Any, Any] = values[np.isfinite(values)]
    return finite


@pytest.mark.parametrize("dtype", NUMBERS)
def test_numbers_are_written_with_the_digits_of_their_own_width(dtype: str) -> None:
    check_row(samples(dtype))


def test_each_float_of_16_bits_is_written_as_numpy_writes_it() -> None:
    values = np.arange(1 << 16, dtype="u4").astype("u2").view("f2")
    check_row(values[np.isfinite(values)])


@pytest.mark.parametrize("unit", UNITS)
def test_datetimes_of_each_unit_have_all_their_digits(unit: str) -> None:
    draw = np.random.default_rng(3)
    counts = [0, 1, -1, 12, -13, 999, 1000, -1000, 10**6, *draw.integers(-(10**15), 10**15, 300)]
    days_each = {"Y": 366, "M": 31, "W": 7, "D": 1, "h": 1 / 24, "m": 1 / 1440, "s": 1 / 86_400}
    days = np.array(counts, "f8") * days_each.get(unit, 1 / 86_400_000)
    moments = np.array(counts, "i8").view(f"M8[{unit}]")
    check_row(moments[(days > -700_000) & (days < 2_900_000)])


def test_datetimes_with_a_multiple_of_a_unit_are_written() -> None:
    quarters = np.array([0, 1, 5, -1], "i8").view("M8[15m]")
    assert json.dumps(quarters) == json.dumps(quarters.astype("M8[m]"))
    assert json.dumps(list(quarters)) == json.dumps(quarters)


@pytest.mark.parametrize("unit", [*UNITS, None])
def test_not_a_time_is_null_in_arrays_and_as_a_scalar(unit: str | None) -> None:
    array = np.array(["NaT"], "M8" if unit is None else f"M8[{unit}]")
    assert json.dumps(array) == b"[null]"
    assert json.dumps(array[0]) == b"null"
    assert json.dumps({"a": [array, array[0]]}) == b'{"a":[[null],null]}'


@pytest.mark.parametrize("unit", UNITS[:9])
def test_a_datetime_outside_of_the_years_0_to_9999_is_an_error_with_its_path(unit: str) -> None:
    start = "0000-01-08" if unit == "W" else "0000-01-01"
    first, last = np.array([start, "9999-12-31T23"], f"M8[{unit}]")
    assert standard.loads(json.dumps(np.array([first, last])))[0].startswith("0000-01-0")
    for count in (first.astype("i8") - 8, last.astype("i8") + 10**12, np.iinfo("i8").max, NOT_A_TIME + 1):
        array = np.array([0, count], "i8").view(f"M8[{unit}]")
        with pytest.raises(json.JSONEncodeError, match=r"0 to 9999.*`\$\.a\[1\]`"):
            json.dumps({"a": array})
        with pytest.raises(json.JSONEncodeError, match=r"0 to 9999.*`\$\[1\]`"):
            json.dumps(list(array))


def test_a_datetime_without_a_unit_is_an_error() -> None:
    array = np.array([5], "i8").view("M8")
    for value in (array, array[0]):
        with pytest.raises(json.JSONEncodeError, match="no unit"):
            json.dumps(value)


def layouts(array: np.ndarray[Any, Any]) -> Iterator[np.ndarray[Any, Any]]:
    """Arrays with the same items as ``array`` in other memory layouts."""
    yield array
    yield np.asfortranarray(array)
    yield array.T
    yield array[::-1]
    yield array[..., ::-2]
    yield array[1:, 1:]
    yield array[:0]
    yield array[:, :0]
    yield np.broadcast_to(array[:1], array.shape)
    yield array[np.newaxis, :, np.newaxis]
    yield array.astype(array.dtype.newbyteorder())
    if array.dtype != "O":
        odd = np.zeros(array.nbytes + 1, "u1")[1:].view(array.dtype).reshape(array.shape)
        odd[...] = array
        yield odd
    read_only = array.copy()
    read_only.setflags(write=False)
    yield read_only
    yield array[0]
    yield array[0, 0, np.newaxis]
    yield array[1:2, 1].reshape(())


@pytest.mark.parametrize("dtype", [*NUMBERS, "M8[s]", "M8[D]", "M8[ns]", "U5", "O"])
def test_arrays_of_any_layout_are_written_as_their_nested_scalars(dtype: str) -> None:
    array: np.ndarray[Any, Any] = (np.arange(20) * 5 % 17).reshape(4, 5).astype(dtype)

    def nested(part: Any) -> Any:
        if not isinstance(part, np.ndarray):
            return part
        return [nested(item) for item in part] if part.ndim else part[()]

    for view in layouts(array):
        wanted = json.dumps(nested(view) if view.dtype != "O" else view.tolist())
        assert json.dumps(view) == wanted
        assert json.dumps({"a": [view, 1], "b": view}) == b'{"a":[' + wanted + b',1],"b":' + wanted + b"}"
        assert json.dumps(view, indent=2) == json.dumps(standard.loads(wanted), indent=2)


@given(st.data())
@tried(300)
def test_any_selection_of_an_array_is_written_as_its_list(data: st.DataObject) -> None:
    shape = data.draw(st.lists(st.integers(0, 5), max_size=6).map(tuple))
    dtype = data.draw(st.sampled_from([*INTEGERS, "?", "f8"]))
    n = math.prod(shape)
    array = (np.arange(n) * data.draw(st.integers(1, 10**6)) % 251).astype(dtype).reshape(shape)
    order = data.draw(st.permutations(range(len(shape))))
    index = tuple(
        slice(data.draw(st.integers(0, 5)), data.draw(st.integers(0, 5)), data.draw(st.sampled_from([None, 1, 2, 3])))
        if data.draw(st.booleans())
        else slice(None, None, data.draw(st.sampled_from([None, -1, -2])))
        for _ in shape
    )
    view = array.transpose(order)[index]
    if data.draw(st.booleans()):
        view = view.astype(view.dtype.newbyteorder())
    wanted = view.tolist()
    assert json.dumps(view) == json.dumps(wanted)
    indent = data.draw(st.sampled_from([" ", "   ", "\t"]))
    assert json.dumps({"a": [view]}, indent=indent) == json.dumps({"a": [wanted]}, indent=indent)
    assert json.dumps_str([view, "é", view]) == json.dumps_str([wanted, "é", wanted])


def test_arrays_of_text_are_written_as_strings_of_any_characters() -> None:
    texts = ["", "a", 'q"\\\n', "é", "я", "東京", "😀", "a\x00b", "x" * 300, "\x7f"]
    array = np.array(texts)
    choices: list[dict[str, Any]] = [{}, {"ensure_ascii": True}, {"indent": 1}]
    for options in choices:
        assert json.dumps(array, **options) == json.dumps(texts, **options)
        assert json.dumps_str(array, **options) == json.dumps_str(texts, **options)
    assert json.dumps(array.astype(array.dtype.newbyteorder())[::-1]) == json.dumps(texts[::-1])
    assert json.dumps_str(array[:4]) == json.dumps_str(texts[:4])
    assert json.dumps(np.array("я")) == '"я"'.encode()
    assert json.dumps(array.astype(np.dtypes.StringDType())) == json.dumps(texts)
    missing = np.array(["a", None], np.dtypes.StringDType(na_object=None))
    assert json.dumps(missing) == b'["a",null]'


def test_surrogates_in_an_array_of_text_are_treated_as_in_a_str() -> None:
    array = np.array(["ab", "c\ud800"])
    with pytest.raises(json.JSONEncodeError, match=r"lone surrogate.*character 1, at `\$\[1\]`"):
        json.dumps(array)
    assert json.dumps(array, errors="backslashreplace") == b'["ab","c\\ud800"]'
    assert json.dumps(array, errors="replace") == '["ab","c\ufffd"]'.encode()
    with pytest.raises(ValueError, match="U\\+110000"):
        json.dumps(np.array([0x110000], "u4").view("U1"))


def test_the_items_of_an_array_of_objects_are_written_as_any_objects() -> None:
    items = [None, 1, 2**70, "é", [1, {"a": ()}], np.arange(2), uuid.UUID(int=1)]
    array = np.empty(len(items), object)
    array[:] = items
    assert json.dumps(array) == json.dumps(items)
    assert json.dumps(np.empty((2, 1), object)) == b"[[null],[null]]"
    array[1] = {1, 2}
    with pytest.raises(TypeError, match=r"`set`.*`\$\[1\]`"):
        json.dumps(array)
    assert json.dumps(array[1:2], default=list) == b"[[1,2]]"
    array[0] = array
    with pytest.raises(json.JSONEncodeError, match="inside of each other"):
        json.dumps(array[:1])


REFUSED: list[Any] = [
    np.timedelta64(5, "s"), np.timedelta64(5, "ns"), np.timedelta64("NaT"), np.complex64(1), np.complex128(1j),
    np.longdouble(1), np.clongdouble(1), np.bytes_(b"a"), np.void(b"a"), np.zeros(2, "i4,f8")[0],
]  # fmt: skip


@pytest.mark.parametrize("value", REFUSED, ids=lambda value: f"{type(value).__name__} {value.dtype}")
def test_types_without_a_form_are_type_errors_as_scalars_and_in_arrays(value: Any) -> None:
    array = np.array([value, value], value.dtype)
    assert array.dtype == value.dtype
    for given_ in (value, array, array[:0], array[0]):
        name = "ndarray of " if isinstance(given_, np.ndarray) else type(given_).__name__
        with pytest.raises(TypeError, match=rf"`numpy\.{name}.*no form in JSON, at `\$\.a`"):
            json.dumps({"a": given_})
        seen: list[Any] = []
        assert json.dumps([given_], default=lambda o, seen=seen: seen.append(o)) == b"[null]"  # type: ignore[misc]
        assert seen[0] is given_


def test_array_subclasses_with_only_memory_are_written_and_others_passed_to_default(tmp_path: Any) -> None:
    mapped = np.memmap(tmp_path / "map", dtype="i4", mode="w+", shape=(2, 2))
    mapped[:] = [[1, 2], [3, 4]]
    assert json.dumps(mapped) == b"[[1,2],[3,4]]"
    assert json.dumps(np.array([[1.5, 2.0]]).view(np.matrix)) == b"[[1.5,2.0]]"

    class Measured(np.ndarray[Any, Any]):
        pass

    class Level(np.int64):
        pass

    for value in (
        np.ma.masked_array([1, 2], [False, True]),
        np.arange(2).view(Measured),
        np.arange(2).view(np.recarray),
        Level(1),
    ):
        with pytest.raises(TypeError, match="no form in JSON"):
            json.dumps(value)
        assert json.dumps([value], default=lambda o: type(o).__name__) == f'["{type(value).__name__}"]'.encode()


def test_nan_and_infinities_follow_the_option_and_an_error_has_the_index() -> None:
    for dtype in FLOATS:
        array = np.array([[1, 2], [3, np.nan], [np.inf, -np.inf]], dtype)
        assert json.dumps(array, nan="null") == b"[[1.0,2.0],[3.0,null],[null,null]]"
        assert json.dumps(array, nan="text") == b'[[1.0,2.0],[3.0,"NaN"],["Infinity","-Infinity"]]'
        assert json.dumps(list(array[2]), nan="text") == b'["Infinity","-Infinity"]'
        with pytest.raises(json.JSONEncodeError, match=r"NaN.*`\$\.a\[0\]\[1\]\[1\]`"):
            json.dumps({"a": [array]})
        with pytest.raises(json.JSONEncodeError, match=r"NaN.*`\$\[1\]`"):
            json.dumps(list(array[1]))


def test_large_integers_follow_the_option_as_ints_do() -> None:
    values = [0, 2**53 - 1, 2**53, -(2**53), -(2**53) + 1, 2**63 - 1, -(2**63)]
    for array in (np.array(values, "i8"), np.array([0, 2**53 - 1, 2**53, 2**64 - 1], "u8")):
        plain = array.tolist()
        for how in ("exact", "text53", "error"):
            assert json.dumps(array, big_ints=how) == json.dumps(plain, big_ints=how)
            assert json.dumps(list(array), big_ints=how) == json.dumps(plain, big_ints=how)
        for value in (array, list(array)):
            with pytest.raises(json.JSONEncodeError, match=r"the int is too large for this `big_ints`, at `\$\[2\]`"):
                json.dumps(value, big_ints="error53")
        assert json.dumps(array[:2], big_ints="error53") == json.dumps(plain[:2])


def test_datetimes_follow_the_options_of_times() -> None:
    at = np.array(["2026-01-02T03:04:05.678901234"], "M8[ns]")
    day = np.array(["2026-01-02"], "M8[D]")
    for value in (at, [at[0]]):
        assert json.dumps(value) == b'["2026-01-02T03:04:05.678901234"]'
        assert json.dumps(value, naive_utc=True) == b'["2026-01-02T03:04:05.678901234+00:00"]'
        assert json.dumps(value, naive_utc=True, utc_z=True) == b'["2026-01-02T03:04:05.678901234Z"]'
        assert json.dumps(value, omit_microseconds=True) == b'["2026-01-02T03:04:05"]'
    for value in (day, [day[0]]):
        assert json.dumps(value, naive_utc=True) == b'["2026-01-02"]'


def test_dimensions_count_as_levels() -> None:
    array = np.zeros((1, 1, 1))
    assert json.dumps([array], max_depth=4) == b"[[[[0.0]]]]"
    for value, most in ((array, 2), ([array], 3), ([[[array]]], 5), (np.zeros((1,) * 40), 39)):
        with pytest.raises(json.JSONEncodeError, match=f"more than {most} objects"):
            json.dumps(value, max_depth=most)
    assert json.dumps(np.zeros((1,) * 60)).count(b"[") == 60


def test_all_are_passed_to_default_by_option() -> None:
    for value in (np.int8(1), np.float32(1), np.bool_(True), np.datetime64("2026"), np.arange(3)):
        assert json.dumps([value], passthrough=["numpy"], default=lambda o: type(o).__name__) == (
            f'["{type(value).__name__}"]'.encode()
        )
    assert json.dumps([np.float64(1.5)], passthrough=["numpy"]) == b"[1.5]"


def test_scalars_are_written_as_keys() -> None:
    keys: list[Any] = [
        np.int8(-1), np.uint64(2**64 - 1), np.float16(0.1), np.float32(0.1), np.float64(0.1), np.bool_(True),
        np.str_("é"),
        np.datetime64("2026-01-02"), np.datetime64("2026-01-02T03:04"), np.datetime64("NaT"),
    ]  # fmt: skip
    for key in keys:
        text = json.dumps_str(key)
        text = text if text.startswith('"') else f'"{text}"'
        assert json.dumps_str({key: 1}, non_str_keys=True) == f"{{{text}:1}}"
        assert json.dumps_str({key: 1}, non_str_keys=True, sort_keys=True) == f"{{{text}:1}}"
    with pytest.raises(TypeError, match="key is of type"):
        json.dumps({np.int8(1): 1})
    with pytest.raises(TypeError, match="key is of type"):
        json.dumps({np.timedelta64(1, "s"): 1}, non_str_keys=True)
    assert (
        json.dumps({np.int8(2): 1, np.int8(1): 2, "0": 3}, non_str_keys=True, sort_keys=True) == b'{"0":3,"1":2,"2":1}'
    )


class Chunks(io.RawIOBase):
    """A file object that stores the parts written to it."""

    def __init__(self, after: Callable[[], None] = lambda: None) -> None:
        self.chunks: list[bytes] = []
        self.after = after

    def write(self, data: Any) -> int:
        self.chunks.append(bytes(data))
        self.after()
        return len(self.chunks[-1])


@pytest.mark.parametrize("dtype", ["f8", "i4", "?", "M8[us]", "U9"])
def test_all_outputs_are_equal_and_chunks_stay_small(dtype: str) -> None:
    array: np.ndarray[Any, Any] = (np.arange(120_000) * 7919 % 100_003).astype(dtype).reshape(400, 300)
    wanted = json.dumps(array)
    assert wanted == json.dumps([list(row) for row in array])
    assert json.dumps_str(array).encode() == wanted
    assert json.dumps_str(["é", array]) == f'["é",{wanted.decode()}]'
    assert json.dumps_str(["я", array, "я"]) == f'["я",{wanted.decode()},"я"]'
    place = bytearray(len(wanted))
    assert json.dumps_into(array, place) == len(wanted) and place == wanted
    with pytest.raises(BufferError):
        json.dumps_into(array, bytearray(len(wanted) - 1))
    file = Chunks()
    assert json.dump({"a": array}, file) == len(wanted) + 6
    assert b"".join(file.chunks) == b'{"a":' + wanted + b"}"
    assert max(map(len, file.chunks)) < 100_000 and len(file.chunks) > 5
    chunks = list(json.iter_chunks(array, chunk_bytes=10_000))
    assert b"".join(chunks) == wanted
    assert max(map(len, chunks)) < 10_000 + len(wanted) // 200
    assert json.dumps_lines(array[:3]) == b"".join(json.dumps(row) + b"\n" for row in array[:3])
    assert b"".join(json.iter_chunks(array[0])) == json.dumps(array[0])


def test_objects_with_arrays_are_sorted_and_indented_as_with_lists() -> None:
    value = {"b": np.arange(4).reshape(2, 2), "a": {"d": np.zeros((2, 0)), "c": [np.array(["x"]), np.int8(1)]}}
    plain = {"b": [[0, 1], [2, 3]], "a": {"d": [[], []], "c": [["x"], 1]}}
    assert json.dumps(value, sort_keys=True, indent=4).decode() == standard.dumps(plain, sort_keys=True, indent=4)
    assert json.dumps(value, sort_keys=True) == json.dumps(plain, sort_keys=True)


def test_a_file_that_moves_the_array_s_memory_ends_the_call_with_an_error() -> None:
    def shrunk(array: np.ndarray[Any, Any]) -> None:
        array.resize(1, refcheck=False)

    def replaced(array: np.ndarray[Any, Any]) -> None:
        state: Any = np.arange(7.0).__reduce__()
        array.__setstate__(state[2])

    for change in (shrunk, replaced):
        for dtype in ("f8", "i2", "?", "U3", "M8[s]"):
            array = np.zeros(200_000, dtype)
            file = Chunks(lambda change=change, array=array: change(array))  # type: ignore[misc]
            with pytest.raises(RuntimeError, match=r"array was changed.*`\$\.a\[0\]"):
                json.dump({"a": [array]}, file)


def test_an_array_that_a_file_removes_from_its_list_is_written_to_its_end() -> None:
    array = np.arange(100_000)
    wanted = json.dumps([array])
    held: list[Any] = [array]
    del array
    file = Chunks(held.clear)
    assert json.dump(held, file) == len(wanted)
    assert b"".join(file.chunks) == wanted


def test_an_array_that_another_thread_writes_to_gives_each_item_one_of_its_values() -> None:
    array = np.zeros(50_000, "i8")
    low, high = 1, 2**62 + 3
    array[:] = low
    stop = threading.Event()

    def write() -> None:
        while not stop.is_set():
            array[:] = high  # This releases the GIL.
            array[:] = low

    thread = threading.Thread(target=write)
    thread.start()
    try:
        for _ in range(50):
            assert set(standard.loads(json.dumps(array))) <= {low, high}
    finally:
        stop.set()
        thread.join()


def test_the_first_call_of_a_process_writes_the_same_as_later_ones() -> None:
    code = """
import numpy as np
from onecopy import json
values = [np.int64(5), np.float32(0.1), np.float64(0.1), np.datetime64(5, "25s"), np.arange(3),
          np.zeros(2, "M8[ns]"), np.array(["a"]), np.arange(3, dtype=">i2"), np.bool_(True),
          np.longlong(3), np.uint8(3), np.float16(0.1)]
for value in values:
    first = json.dumps(value)
    assert first == json.dumps(value) == json.dumps([value])[1:-1], (value, first)
print(json.dumps(values).decode())
"""
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    times = '["1970-01-01T00:00:00","1970-01-01T00:00:00"]'
    assert ran.stdout == f'[5,0.1,0.1,"1970-01-01T00:02:05",[0,1,2],{times},["a"],[0,1,2],true,3,3,0.1]\n'


def test_many_dtypes_are_cached_and_evicted() -> None:
    for _ in range(2):
        for n_units in range(1, 60):
            array = np.array([1, 2], "i8").view(f"M8[{n_units}s]")
            assert json.dumps([array, array]) == json.dumps([array.tolist()] * 2)


def test_the_option_for_orjson_matches_orjson() -> None:
    at = np.array(["2026-01-02T03:04:05.678901234"], "M8[ns]")
    assert json.dumps(at, compat="orjson") == b'["2026-01-02T03:04:05.678901"]'
    assert json.dumps(np.datetime64("2026"), compat="orjson") == b'"2026-01-01T00:00:00"'
    assert json.dumps(np.float16(0.1), compat="orjson") == b"0.099975586"
    with pytest.raises(TypeError):
        json.dumps(np.arange(4)[::2], compat="orjson")
