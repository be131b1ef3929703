"""`dumps_str` with results of several blocks: each order of storage kinds (Latin-1, UCS-2, …),
after each prediction of the kind, and rare characters in blocks."""

from __future__ import annotations

import gc
import itertools
import json as standard
import sys
from typing import Any, Literal

import pytest

from onecopy import json
from tests.json.test_leaks import measured

#: Texts of each storage kind, one with characters that are escaped.
TEXTS = {"ascii": 'say "a"', "latin1": "Zürich", "ucs2": "Цюрих", "ucs4": "tea 🍵"}
#: Enough for several blocks of 16 KiB each.
N = 5_000


def _is_canonical(string: str) -> bool:
    """Returns true if CPython itself would store the `str` in as many bytes.

    It then has the smallest storage kind, one terminator and no cached UTF-8.
    """
    return sys.getsizeof(string) == sys.getsizeof(string[: len(string) // 2] + string[len(string) // 2 :])


@pytest.mark.parametrize("guess", TEXTS)
@pytest.mark.parametrize(
    "order", [*itertools.permutations(TEXTS, 2), ("ascii", "latin1", "ucs2", "ucs4"), ("ucs4", "ascii")]
)
def test_blocks_of_each_kind_in_each_order_after_each_prediction(guess: str, order: tuple[str, ...]) -> None:
    json.dumps_str([TEXTS[guess]] * N)
    value = [f"{TEXTS[kind]}{k}" for kind in order for k in range(N)]
    made = json.dumps_str(value)
    assert made == standard.dumps(value, ensure_ascii=False, separators=(",", ":"))
    assert _is_canonical(made)
    assert hash(made) == hash(made[:7] + made[7:])
    assert json.dumps_str(value) == made


@pytest.mark.parametrize("kind", TEXTS)
def test_a_prediction_too_long_or_too_wide_leaves_no_trace(kind: str) -> None:
    json.dumps_str([TEXTS["ucs4"]] * 20 * N)
    value = [TEXTS[kind]] * N
    for _ in range(3):
        made = json.dumps_str(value)
        assert made == standard.dumps(value, ensure_ascii=False, separators=(",", ":"))
        assert _is_canonical(made)


@pytest.mark.parametrize("kind", TEXTS)
def test_a_cache_of_utf8_is_not_taken_for_latin1(kind: str) -> None:
    json.dumps_str(["é"] * N)
    value = [TEXTS[kind] * 3 + str(k) for k in range(100)] + [TEXTS[kind] * 3000]
    for string in value:
        string.encode()
        _leave_cache(string)
    assert json.loads(json.dumps_str(value)) == value


@pytest.mark.parametrize("text", ["東", "a東", "é東🍵"], ids=ascii)
def test_a_long_cache_of_utf8_is_not_cut_inside_a_character(text: str) -> None:
    value = ["Ж", text * 20_000]
    _leave_cache(value[1])
    for _ in range(2):
        assert json.dumps_str(value) == standard.dumps(value, ensure_ascii=False, separators=(",", ":"))


@pytest.mark.parametrize("wide", ['Цюрих "', "東京\n\x01" * 20, "Ж" * 70 + "\\", "東" * 30_000, "東\t" * 3000], ids=len)
@pytest.mark.parametrize("between", ["a", "é", "🍵"], ids=ascii)
def test_wide_texts_are_at_their_positions(wide: str, between: str) -> None:
    for guess in TEXTS.values():
        json.dumps_str([guess] * N)
        value = [[wide, 1.5, {between: wide, wide: between}, wide + str(k)] for k in range(max(1, 9000 // len(wide)))]
        made = json.dumps_str(value)
        assert made == standard.dumps(value, ensure_ascii=False, separators=(",", ":"))
        assert _is_canonical(made)
        lone = wide + "\ud800"
        with pytest.raises(ValueError, match="lone surrogate"):
            json.dumps_str([*value, lone])
        replaced = json.dumps_str([*value, lone], errors="replace")
        assert replaced == standard.dumps([*value, wide + "\ufffd"], ensure_ascii=False, separators=(",", ":"))


@pytest.mark.parametrize("mark", ["Ж", '"', "\\", "\n", "\x00", "\x1f", "é", "\uffff"], ids=ascii)
def test_wide_texts_of_every_length_with_a_mark_at_each_index(mark: str) -> None:
    lengths = [*range(1, 70), 127, 128, 129, 4095, 4096, 4097, 9000]
    texts = [
        "東" * (at - 1) + mark + "京" * (n - at)
        for n in lengths
        for at in {1, 2, n // 2 or 1, n - 31, n - 1, n}
        if at > 0
    ]
    for before in ("", "a" * 10, "a" * 63, "a" * 64, "a" * 5000, "é" * 70):
        value = [[before, text, k] for k, text in enumerate(texts)]
        json.dumps_str(["Ж" * 10] * N)
        for options in ({}, {"indent": 1}, {"ensure_ascii": True}):
            made = json.dumps_str(value, **options)
            assert made.encode() == json.dumps(value, **options)
            assert _is_canonical(made)


@pytest.mark.parametrize("errors", ["strict", "replace", "backslashreplace"])
@pytest.mark.parametrize("n", [1, 20, 32, 33, 64, 5000])
def test_lone_surrogates_in_wide_results(errors: Literal["strict", "replace", "backslashreplace"], n: int) -> None:
    json.dumps_str(["Ж" * 10] * N)
    for at in {0, n // 2, n - 1}:
        lone = "Ж" * at + "\udc80" + "東" * (n - 1 - at)
        value = ["Ж" * 10] * N + [lone, {lone: 1}] + ["Ж"] * N
        if errors == "strict":
            with pytest.raises(ValueError, match=rf"lone surrogate, \\udc80 at character {at},"):
                json.dumps_str(value)
        else:
            made = json.dumps_str(value, errors=errors)
            assert made.encode() == json.dumps(value, errors=errors)
            assert _is_canonical(made)


@pytest.mark.parametrize(
    "text", ["\udc80", "a" * 40 + "\udc80", "\udc80" * 5000, "é\udc80", "é" * 40 + "\udc80" + "é" * 40], ids=len
)
@pytest.mark.parametrize(
    "neighbors", [[], ["a"], ["é"], ["a" * 20_000], ["é" * 20_000], ["Ж"]], ids=lambda b: ascii(b)[:9]
)
def test_a_result_is_as_narrow_as_possible_if_surrogates_become_escapes(text: str, neighbors: list[str]) -> None:
    for value in ([*neighbors, text], [text, *neighbors], text):
        json.dumps_str(["Ж" * 10] * N)
        made = json.dumps_str(value, errors="backslashreplace")
        assert made == json.dumps(value, errors="backslashreplace").decode()
        assert _is_canonical(made)


def test_keys_that_are_wide_or_not_in_wide_results() -> None:
    json.dumps_str(["Ж" * 10] * N)
    rows = [{"id": k, "город": "Ж" * (k % 40), "é": "é", "ж" * 33: None, "name": "a" * (k % 70)} for k in range(2000)]
    for options in ({}, {"sort_keys": True}, {"indent": 2}):
        made = json.dumps_str(rows, **options)
        assert made.encode() == json.dumps(rows, **options)
    tuples = [tuple(row.values()) for row in rows]
    assert json.dumps_rows(list(rows[0]), tuples) == json.dumps(rows)


def test_code_that_runs_between_wide_texts() -> None:
    def inner(_: Any) -> Any:
        json.dumps_str(["東" * 100] * 1000)
        gc.collect()
        return ["東", "🍵"] if next(turn) else "Ж"

    turn = itertools.cycle([0] * 50 + [1])
    value = [*["Ж" * 10] * N, *[object(), "Ж" * 50, json.Fragment("1"), json.Fragment('"é"')] * 100]
    json.dumps_str(["Ж" * 10] * N)
    made = json.dumps_str(value, default=inner)
    turn = itertools.cycle([0] * 50 + [1])
    assert made.encode() == json.dumps(value, default=inner)


def _leave_cache(string: str) -> None:
    """Makes CPython cache the UTF-8 of a `str`, by using it as a name."""
    import ctypes

    ctypes.pythonapi.PyUnicode_AsUTF8AndSize.restype = ctypes.c_void_p
    ctypes.pythonapi.PyUnicode_AsUTF8AndSize(ctypes.py_object(string), None)


@pytest.mark.parametrize("before", [0, 10, 3000])
@pytest.mark.parametrize("fragment", ["[1]", '"é"', '"Ж"', '"🍵"', '"' + "é" * 50_000 + '"'], ids=ascii)
def test_a_fragment_in_a_result_of_latin1(fragment: str, before: int) -> None:
    json.dumps_str(["é"] * N)
    value: list[Any] = [*["é" * 10] * before, json.Fragment(fragment), "é", json.Fragment(fragment.encode())]
    wanted = [*["é" * 10] * before, standard.loads(fragment), "é", standard.loads(fragment)]
    assert json.loads(json.dumps_str(value)) == wanted


@pytest.mark.parametrize("before", [0, 3000])
def test_a_fragment_that_is_not_utf8_is_an_error_with_its_path(before: int) -> None:
    with pytest.raises(ValueError, match="Fragment is not UTF-8") as found:
        json.dumps_str([*["Ж"] * before, json.Fragment(b'"\xff"'), *["Ж"] * before])
    assert str(len(("[" + '"Ж",' * before + '"').encode())) in str(found.value)


@pytest.mark.parametrize("kind", TEXTS)
def test_options_in_long_results(kind: str) -> None:
    json.dumps_str(["é"] * N)
    value = {f"{TEXTS[kind]}{k}": [k, k / 7, TEXTS[kind]] for k in range(2000)}
    for options in ({"indent": 2}, {"sort_keys": True}, {"indent": "\t", "sort_keys": True}, {"ensure_ascii": True}):
        made = json.dumps_str(value, **options)
        assert made.encode() == json.dumps(value, **options)
        assert _is_canonical(made)


def test_code_that_runs_meanwhile_may_encode_too() -> None:
    def inner(_: Any) -> Any:
        expected = standard.dumps(["é" * 100] * 1000, ensure_ascii=False, separators=(",", ":"))
        assert json.dumps_str(["é" * 100] * 1000) == expected
        gc.collect()
        return "Ж"

    text = json.dumps_str([*["é" * 100] * 300, object(), "é"], default=inner)
    assert json.loads(text) == [*["é" * 100] * 300, "Ж", "é"]


@pytest.mark.parametrize("text", ["東京都" * 5, "é" * 20, "a" * 30, "🍵" * 10])
def test_it_peaks_at_the_size_of_the_str(text: str) -> None:
    size, peak, kept = measured(f"""
values = [{text!r} + str(k) for k in range(200_000)]
json.dumps_str(values[:10])
before = now(); reset()
made = json.dumps_str(values)
most, size = peak(), sys.getsizeof(made)
del made
print(size, most - before, now() - before)
""")
    assert peak <= 1.1 * size + (1 << 19) and kept < 1 << 19, (size, peak, kept)
