"""Views of the UTF-8 of a `str`: no copy is made, and no cached UTF-8 is created in the `str`."""

from __future__ import annotations

import gc
import sys
import weakref

import pytest

import onecopy
from onecopy import text


def test_a_view_of_ascii_is_the_memory_of_the_str() -> None:
    string = "plain text"
    view = text.utf8_view(string)
    assert (bytes(view), view.readonly, view.format) == (b"plain text", True, "B")
    with pytest.raises(TypeError):
        view[0] = 0


def test_a_view_keeps_its_str_alive() -> None:
    class Held(str):
        __slots__ = ("__weakref__",)

    string = Held("x" * 1000)
    alive = weakref.ref(string)
    view = text.utf8_view(string)
    del string
    gc.collect()
    assert alive() is not None
    assert bytes(view) == b"x" * 1000
    del view
    gc.collect()
    assert alive() is None


@pytest.mark.parametrize("string", ["é", "Ж", "東", "😀"])
def test_without_cached_utf8_there_is_no_view_and_none_is_created(string: str) -> None:
    fresh = string * 20
    size = sys.getsizeof(fresh)
    with pytest.raises(ValueError, match=r"UTF-8 form of this str is not in memory.*\n.*encode"):
        text.utf8_view(fresh)
    text.encode(fresh)
    text.utf_8_encode(fresh)
    text.encoded_length(fresh)
    text.encode_into(fresh, bytearray(200))
    assert sys.getsizeof(fresh) == size


def test_cached_utf8_is_used_without_a_conversion() -> None:
    fresh = "Ж" * 20
    # CPython creates the cache when C code requests UTF-8: here, of the name of an error handler.
    with pytest.raises(LookupError):
        "é".encode("ascii", fresh)
    assert sys.getsizeof(fresh) > sys.getsizeof("Ж" * 20)
    assert bytes(text.utf8_view(fresh)) == fresh.encode()
    with onecopy.ledger() as ledger:
        text.encode(fresh)
    assert (ledger.converted, ledger.conversions, ledger.copied) == (0, 0, 40)


def test_a_conversion_is_counted_once() -> None:
    with onecopy.ledger() as ledger:
        text.decode("Жя".encode("utf-16-le") * 10, "utf-16-le")
        text.utf_8_decode(b"a\xc3\xa9")
        text.utf_8_encode("é" * 3)  # A single character is shared, and may have a UTF-8 cache.
    assert (ledger.taken, ledger.copied, ledger.converted, ledger.conversions) == (46, 40, 6, 2)


def test_slices_are_views_of_the_same_memory() -> None:
    place = bytearray(b"abcdefg")
    parts = list(text.slices(place, 3))
    assert [bytes(part) for part in parts] == [b"abc", b"def", b"g"]
    parts[1][0] = ord("X")
    assert place == b"abcXefg"
    rows = list(text.slices(memoryview(bytes(range(12))).cast("H", (3, 2)), 2))
    assert [(part.format, part.shape) for part in rows] == [("H", (2, 2)), ("H", (1, 2))]
    assert list(text.slices(b"", 4)) == []
    with pytest.raises(ValueError, match="at least 1, not 0"):
        text.slices(b"x", 0)
