"""Encoding of `str` as BSON: the ledger has the promised counts, the copy counter confirms them,
and planted faults are detected."""

from __future__ import annotations

import pytest

from tests.copies.bson_paths import ENCODING
from tests.copies.counting import N_ROWS, TEXTS, Counted, Setting, agree, cell, check_ledger

#: Bytes of a character in memory.
WIDTHS = {"ascii": 1, "latin1": 1, "cyrillic": 2, "cjk": 2, "astral": 4}


def _in_memory(kind: str) -> int:
    return WIDTHS[kind] * sum(len(cell(kind, k)) for k in range(N_ROWS))


def _check_ledger(counted: Counted, path: str, kind: str) -> None:
    # The key `v` occurs once, or in each document.
    n_keys = 1 if path in ("encode", "encode_into") else N_ROWS
    check_ledger(counted, _in_memory(kind), _how(kind), around=n_keys)


def _how(kind: str) -> str:
    # ASCII has the same bytes in BSON and in a `str`.
    return "copied" if kind == "ascii" else "converted"


@pytest.mark.parametrize("kind", TEXTS)
@pytest.mark.parametrize("path", ENCODING)
def test_a_str_becomes_bson_by_one_conversion(setting: Setting, path: str, kind: str) -> None:
    counted = setting.run("tests.copies.bson_paths", path, kind)
    _check_ledger(counted, path, kind)
    assert agree(counted, _in_memory(kind)), counted


@pytest.mark.parametrize("fault", ["copy", "conversion"])
@pytest.mark.parametrize("path", ENCODING)
def test_a_planted_fault_in_encoding_is_detected(planted: Setting, path: str, fault: str) -> None:
    counted = planted.with_fault(fault).run("tests.copies.bson_paths", path, "cyrillic")
    _check_ledger(counted, path, "cyrillic")
    assert not agree(counted, _in_memory("cyrillic")), counted
