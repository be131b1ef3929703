"""`str` to BSON: what the ledger says is the promise, the witness agrees with it, and a planted fault turns it red."""

from __future__ import annotations

import pytest

from tests.copies.bson_paths import ENCODING
from tests.copies.counting import N_ROWS, TEXTS, Setting, cell, check, check_red

#: Bytes of a character in memory.
WIDTHS = {"ascii": 1, "latin1": 1, "cyrillic": 2, "cjk": 2, "astral": 4}


def _in_memory(kind: str) -> int:
    return WIDTHS[kind] * sum(len(cell(kind, k)) for k in range(N_ROWS))


def _how(kind: str) -> str:
    # ASCII stands in BSON as it does in a `str`.
    return "copied" if kind == "ascii" else "converted"


@pytest.mark.parametrize("kind", TEXTS)
@pytest.mark.parametrize("path", ENCODING)
def test_a_str_becomes_bson_by_one_conversion(setting: Setting, path: str, kind: str) -> None:
    check(setting.run("tests.copies.bson_paths", path, kind), _in_memory(kind), _how(kind))


@pytest.mark.parametrize("fault", ["copy", "conversion"])
@pytest.mark.parametrize("path", ENCODING)
def test_a_planted_fault_turns_encoding_red(planted: Setting, path: str, fault: str) -> None:
    counted = planted.with_fault(fault).run("tests.copies.bson_paths", path, "cyrillic")
    check_red(counted, _in_memory("cyrillic"), "converted")


@pytest.mark.parametrize("path", ENCODING)
def test_the_planted_build_without_its_fault_is_green(planted: Setting, path: str) -> None:
    counted = planted.with_fault("none").run("tests.copies.bson_paths", path, "cyrillic")
    check(counted, _in_memory("cyrillic"), "converted")
