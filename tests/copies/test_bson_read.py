"""Decoding of BSON to `str`: the ledger has the promised counts, the copy counter confirms them,
and planted faults are detected."""

from __future__ import annotations

import pytest

from tests.copies.bson_read_paths import DECODING
from tests.copies.counting import N_ROWS, TEXTS, Setting, cell, check, check_red


def _in_utf8(kind: str) -> int:
    return sum(len(cell(kind, k).encode()) for k in range(N_ROWS))


@pytest.mark.parametrize("kind", TEXTS)
@pytest.mark.parametrize("path", DECODING)
def test_bson_becomes_a_str_by_one_conversion(setting: Setting, path: str, kind: str) -> None:
    # ASCII has the same bytes in a `str` and in BSON.
    how = "copied" if kind == "ascii" else "converted"
    check(setting.run("tests.copies.bson_read_paths", path, kind), _in_utf8(kind), how)


@pytest.mark.parametrize("fault", ["copy", "conversion"])
@pytest.mark.parametrize("path", DECODING)
def test_a_planted_fault_in_bson_decoding_is_detected(planted: Setting, path: str, fault: str) -> None:
    counted = planted.with_fault(fault).run("tests.copies.bson_read_paths", path, "cyrillic")
    check_red(counted, _in_utf8("cyrillic"), "converted")
