"""`text.decode_column`: texts in a buffer of cells with the same size, as ODBC drivers return
them."""

from __future__ import annotations

import array
import codecs
import gc
import random
import sys

import pytest

from onecopy import text


def column(cells: list[str | None], stride: int, encoding: str = "utf-16-le") -> tuple[bytes, array.array[int]]:
    """The buffer and the lengths in bytes of a column, as an ODBC driver would return them.

    Each cell has ``stride`` bytes; the length of NULL is -1.
    """
    data, lengths = bytearray(), array.array("q")
    for cell in cells:
        encoded = b"" if cell is None else cell.encode(encoding, "surrogatepass")
        lengths.append(-1 if cell is None else len(encoded))
        data += encoded.ljust(stride, b"\xa5")
    return bytes(data), lengths


CELLS: list[str | None] = ["", "a", "é", "Zürich", None, "東京", "😀a", "a" * 60, "Ж" * 60, None, "x" * 59 + "é"]


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be", "utf-8", "utf-32-le", "latin-1"])
@pytest.mark.parametrize("repeats", [1, 50, 700])
def test_each_cell_is_decoded(encoding: str, repeats: int) -> None:
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
    # Distinct, then few, then distinct again: the cache is disabled and enabled again.
    mixed: list[str | None] = [*distinct[:5000], *few, *distinct[5000:]]
    data, lengths = column(mixed, 40)
    assert text.decode_column(data, lengths, 40) == mixed


def test_lengths_of_four_bytes_are_accepted() -> None:
    assert text.decode_column(b"abcd", array.array("i", [2, 1]), 2, "utf-8") == ["ab", "c"]


@pytest.mark.parametrize(
    ("data", "lengths", "stride", "said"),
    [
        (b"abcd", array.array("q", [2, 2, 0, 1]), 2, "cell 3 is after the end of the data: 4 bytes at a stride of 2"),
        (b"abcd", array.array("q", [3]), 2, "the text of cell 0 is 3 bytes long, and the stride is 2"),
        (b"", array.array("q", [2**62]), 2**62, "cell 0 is after the end"),
    ],
)
def test_a_length_past_its_cell_is_an_error(data: bytes, lengths: array.array[int], stride: int, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        text.decode_column(data, lengths, stride, "utf-8")


def test_lengths_of_another_type_are_refused() -> None:
    with pytest.raises(TypeError, match=r"signed integers.*format 'B'\n.*array"):
        text.decode_column(b"abcd", b"\x01", 2)


def test_a_malformed_cell_raises_or_is_replaced() -> None:
    data, lengths = column(["ab", "a\ud800b"], 8)
    with pytest.raises(UnicodeDecodeError) as e:
        text.decode_column(data, lengths, 8)
    assert (e.value.start, e.value.end) == (2, 4)
    assert text.decode_column(data, lengths, 8, errors="replace") == ["ab", "a\ufffdb"]


@pytest.mark.parametrize("shift", [0, 1])
@pytest.mark.parametrize("stride", [24, 25, 131])
def test_cells_start_at_any_offset_and_the_last_may_end_with_the_data(shift: int, stride: int) -> None:
    cells: list[str | None] = ["Zürich", "東京", None, "a😀b", "ab", "", "x", "Ж", "ÿé", "last one é"]
    data, lengths = column(cells, stride)
    rest = len(cells[-1] or "") * 2
    cut = memoryview(b"\xa5" * shift + data[: stride * (len(cells) - 1) + rest])[shift:]
    assert text.decode_column(cut, lengths, stride) == cells
    with pytest.raises(ValueError, match="cell 9 is after the end"):
        text.decode_column(cut[:-1], lengths, stride)


def test_every_length_of_every_kind_is_decoded() -> None:
    for wide in ("a", "é", "Ж", "東", "😀", "a😀"):
        cells: list[str | None] = [(wide * n)[:n] for n in range(140)]
        for encoding in ("utf-16-le", "utf-16-be", "utf-8"):
            data, lengths = column(cells, 600, encoding)
            made = text.decode_column(data, lengths, 600, encoding)
            assert made == cells
            assert [str(cell).isascii() for cell in made] == [str(cell).isascii() for cell in cells]
            assert {hash(cell) for cell in made} == {hash(cell) for cell in cells}


def test_a_lone_surrogate_among_valid_cells_is_reported_with_its_position() -> None:
    for at in range(3, 60):
        bad = "😀" * 10 + "Ж" * (at - 3) + "\udc00" + "😀" * 5
        cells: list[str | None] = ["good", "东西", bad, "good"]
        data, lengths = column(cells, 240)
        with pytest.raises(UnicodeDecodeError) as error:
            text.decode_column(data, lengths, 240)
        with pytest.raises(UnicodeDecodeError) as theirs:
            bad.encode("utf-16-le", "surrogatepass").decode("utf-16-le")
        said, expected = error.value, theirs.value
        assert (said.start, said.end, said.reason) == (expected.start, expected.end, expected.reason)


#: A text that is first in no list of another test.
BEFORE = "b4#~7q"


def test_a_handler_that_writes_to_the_data_changes_no_cell() -> None:
    cells: list[str | None] = [BEFORE, "\ud800", BEFORE, BEFORE]
    data, lengths = column(cells, 12)
    buffer = bytearray(data)

    def handler(error: UnicodeError) -> tuple[str, int]:
        # The list that is being filled is not visible yet.
        lists = [found for found in gc.get_objects() if type(found) is list and found is not cells]
        assert not [found for found in lists if found[:1] == [BEFORE]]
        buffer[0:12] = "others".encode("utf-16-le")
        buffer[36:48] = "others".encode("utf-16-le")
        assert isinstance(error, UnicodeDecodeError)
        return "?", error.end

    codecs.register_error("onecopy.test_column", handler)
    made = text.decode_column(buffer, lengths, 12, errors="onecopy.test_column")
    # The data was copied before the first cell was decoded.
    assert made == [BEFORE, "?", BEFORE, BEFORE]


def test_shared_cells_are_counted_and_the_list_is_tracked_by_the_collector() -> None:
    values: list[str | None] = [f"number {k} é" for k in range(10)]
    data, lengths = column(values * 100, 40)
    made = text.decode_column(data, lengths, 40)
    assert gc.is_tracked(made)
    shared = {id(cell): cell for cell in made}
    held = sum(made.count(cell) for cell in values)
    assert held == 1000
    for cell in list(shared.values()):
        same = sum(1 for other in made if other is cell)
        # The list, the dictionary, the list that is iterated, the variable and the call.
        assert sys.getrefcount(cell) == same + 4
    del made, shared


def test_a_failure_half_way_leaks_nothing() -> None:
    cells: list[str | None] = [f"cell {i} é" for i in range(1000)]
    data, lengths = column([*cells, "\ud800"], 40)
    gc.collect()
    before = sys.getallocatedblocks()
    for _ in range(20):
        with pytest.raises(UnicodeDecodeError):
            text.decode_column(data, lengths, 40)
    gc.collect()
    assert sys.getallocatedblocks() - before < 500
