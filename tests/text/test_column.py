"""Columns of fixed stride."""

from __future__ import annotations

import array
import random

import pytest

from onecopy import text


def column(cells: list[str | None], stride: int, encoding: str = "utf-16-le") -> tuple[bytes, array.array[int]]:
    """The data and the lengths that a driver would have filled in."""
    data, lengths = bytearray(), array.array("q")
    for cell in cells:
        encoded = b"" if cell is None else cell.encode(encoding, "surrogatepass")
        lengths.append(-1 if cell is None else len(encoded))
        data += encoded.ljust(stride, b"\xa5")
    return bytes(data), lengths


CELLS: list[str | None] = ["", "a", "é", "Zürich", None, "東京", "😀a", "a" * 60, "Ж" * 60, None, "x" * 59 + "é"]


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be", "utf-8", "utf-32-le", "latin-1"])
@pytest.mark.parametrize("repeats", [1, 50, 700])
def test_each_cell_is_its_text(encoding: str, repeats: int) -> None:
    cells = [c for c in CELLS if c is None or encoding != "latin-1" or c.isascii()] * repeats
    random.Random(7).shuffle(cells)
    data, lengths = column(cells, 240, encoding)
    assert text.decode_column(data, lengths, 240, encoding) == cells


def test_equal_cells_may_share_a_str_and_distinct_ones_stay_distinct() -> None:
    few = ["Frankreich", "Österreich", "Česko"] * 2000
    data, lengths = column(list(few), 40)
    made = text.decode_column(data, lengths, 40)
    assert made == few
    assert len({id(cell) for cell in made}) < 100
    distinct: list[str | None] = [f"cell {i} é" for i in range(20_000)]
    data, lengths = column(distinct, 40)
    assert text.decode_column(data, lengths, 40) == distinct
    # Distinct, then few, then distinct again: the table is given up and taken up.
    mixed: list[str | None] = [*distinct[:5000], *few, *distinct[5000:]]
    data, lengths = column(mixed, 40)
    assert text.decode_column(data, lengths, 40) == mixed


def test_lengths_of_four_bytes_are_taken() -> None:
    assert text.decode_column(b"abcd", array.array("i", [2, 1]), 2, "utf-8") == ["ab", "c"]


@pytest.mark.parametrize(
    ("data", "lengths", "stride", "said"),
    [
        (b"abcd", array.array("q", [2, 2, 0, 1]), 2, "cell 3 is behind the end of the data: 4 bytes at a stride of 2"),
        (b"abcd", array.array("q", [3]), 2, "the text of cell 0 is 3 bytes long, and the stride is 2"),
        (b"", array.array("q", [2**62]), 2**62, "cell 0 is behind the end"),
    ],
)
def test_a_length_past_its_cell_is_an_error(data: bytes, lengths: array.array[int], stride: int, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        text.decode_column(data, lengths, stride, "utf-8")


def test_lengths_of_another_type_are_named() -> None:
    with pytest.raises(TypeError, match=r"signed integers.*format 'B'\n.*array"):
        text.decode_column(b"abcd", b"\x01", 2)


def test_a_malformed_cell_raises_or_is_replaced() -> None:
    data, lengths = column(["ab", "a\ud800b"], 8)
    with pytest.raises(UnicodeDecodeError) as e:
        text.decode_column(data, lengths, 8)
    assert (e.value.start, e.value.end) == (2, 4)
    assert text.decode_column(data, lengths, 8, errors="replace") == ["ab", "a\ufffdb"]
