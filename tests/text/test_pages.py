"""Large new objects use huge pages if the operating system provides them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from onecopy import text

THP = Path("/sys/kernel/mm/transparent_hugepage/enabled")
ROOT = Path(__file__).resolve().parents[2]
SMALL = """
from onecopy import text
from tests.text.test_pages import advised

small = text.utf_8_decode(b"a" * (1 << 20))
print(advised(id(small) + (1 << 19)))
"""


def advised(address: int) -> bool:
    """Returns true if huge pages were requested for the memory mapping that contains the
    address."""
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
def test_a_large_text_requests_huge_pages() -> None:
    size = 33 << 20
    data = b"a" * (size - 1) + b"\xc3\xa9"
    string = text.utf_8_decode(data)
    assert len(string) == size
    assert advised(id(string) + size // 2)
    encoded = text.utf_8_encode(string)
    assert encoded == data
    assert advised(id(encoded) + size // 2)


@pytest.mark.skipif(not THP.exists(), reason="the kernel knows no transparent large pages")
def test_a_smaller_text_requests_none() -> None:
    # In a separate process: the heap may have huge pages since a large object of another test.
    done = subprocess.run([sys.executable, "-c", SMALL], cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("False\n", "")
