"""`str` to JSON and back: the ledger has the promised counts, the copy counter confirms them, and
planted faults are detected."""

from __future__ import annotations

import pytest

from tests.copies.counting import N_ROWS, TEXTS, Setting, cell, check, check_red
from tests.copies.json_paths import DECODING, ENCODING

#: Bytes of a character in memory.
WIDTHS = {"ascii": 1, "latin1": 1, "cyrillic": 2, "cjk": 2, "astral": 4}


def _in_memory(kind: str) -> int:
    return WIDTHS[kind] * sum(len(cell(kind, k)) for k in range(N_ROWS))


def _in_utf8(kind: str) -> int:
    return sum(len(cell(kind, k).encode()) for k in range(N_ROWS))


@pytest.mark.parametrize("kind", TEXTS)
@pytest.mark.parametrize("path", ENCODING)
def test_a_str_becomes_json_by_one_conversion(setting: Setting, path: str, kind: str) -> None:
    check(setting.run("tests.copies.json_paths", path, kind), _in_memory(kind), "converted")


@pytest.mark.parametrize("kind", TEXTS)
@pytest.mark.parametrize("path", DECODING)
def test_json_becomes_a_str_by_one_conversion(setting: Setting, path: str, kind: str) -> None:
    # ASCII has the same bytes in a `str` and in JSON.
    how = "copied" if kind == "ascii" else "converted"
    check(setting.run("tests.copies.json_paths", path, kind), _in_utf8(kind), how)


@pytest.mark.parametrize("fault", ["copy", "conversion"])
@pytest.mark.parametrize("path", ENCODING)
def test_a_planted_fault_in_encoding_is_detected(planted: Setting, path: str, fault: str) -> None:
    counted = planted.with_fault(fault).run("tests.copies.json_paths", path, "cyrillic")
    check_red(counted, _in_memory("cyrillic"), "converted")


@pytest.mark.parametrize("fault", ["copy", "conversion"])
@pytest.mark.parametrize("path", DECODING)
def test_a_planted_fault_in_decoding_is_detected(planted: Setting, path: str, fault: str) -> None:
    counted = planted.with_fault(fault).run("tests.copies.json_paths", path, "cyrillic")
    check_red(counted, _in_utf8("cyrillic"), "converted")
