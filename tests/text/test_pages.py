"""Large fresh objects stand on large pages where the system grants them."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from onecopy import text

THP = Path("/sys/kernel/mm/transparent_hugepage/enabled")


def advised(address: int) -> bool:
    """Whether the mapping of the address is one that large pages were asked for."""
    inside = False
    for line in Path("/proc/self/smaps").read_text(encoding="utf-8").splitlines():
        head = line.split()[0]
        if "-" in head and not head.endswith(":"):
            start, end = (int(part, 16) for part in head.split("-"))
            inside = start <= address < end
        elif inside and line.startswith("VmFlags:"):
            return "hg" in line.split()
    return False


@pytest.mark.skipif(not THP.exists(), reason="the kernel knows no transparent large pages")
def test_a_large_text_asks_for_large_pages_and_a_smaller_one_does_not() -> None:
    size = 33 << 20
    data = b"a" * (size - 1) + b"\xc3\xa9"
    string = text.utf_8_decode(data)
    assert len(string) == size
    assert advised(id(string) + size // 2)
    encoded = text.utf_8_encode(string)
    assert encoded == data
    assert advised(id(encoded) + size // 2)
    small = text.utf_8_decode(data[: 1 << 20])
    assert sys.getsizeof(small) < 2 << 20
    assert not advised(id(small) + (1 << 19))
