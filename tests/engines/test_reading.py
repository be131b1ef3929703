"""Blocks whose boundaries depend only on the rows."""

from __future__ import annotations

import itertools
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onecopy._engine import _columns, _reading


def _batch(start: int, count: int) -> Any:
    return pa.record_batch({"id": pa.array(range(start, start + count)), "text": ["x" * (i % 9) for i in range(count)]})


@settings(deadline=None)  # The first call loads pyarrow's kernels.
@given(st.lists(st.integers(0, 700), max_size=8), st.lists(st.integers(1, 699), max_size=8))
def test_equal_blocks_do_not_depend_on_the_batches(first: list[int], cuts: list[int]) -> None:
    total = sum(first)
    whole = _batch(0, total)
    edges = sorted({0, total, *(cut for cut in cuts if cut < total)})
    first_edges = [sum(first[:i]) for i in range(len(first) + 1)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_reading, "BLOCK_BYTES", 2000)
        patch.setattr(_reading, "GROUP_ROWS", 64)
        one, two = (
            list(_reading.equal_blocks(whole.slice(a, b - a) for a, b in itertools.pairwise(at)))
            for at in (first_edges, edges)
        )
    assert [block.num_rows for block in one] == [block.num_rows for block in two]
    assert [i for block in one for i in block["id"].to_pylist()] == list(range(total))


@pytest.mark.parametrize("max_rows", [0, 1, 64, 65, 1000])
def test_equal_blocks_end_after_max_rows(max_rows: int) -> None:
    blocks = list(_reading.equal_blocks((_batch(i, 100) for i in range(0, 300, 100)), max_rows))
    assert sum(block.num_rows for block in blocks) == min(max_rows, 300)


def test_each_arrow_type_has_a_type_of_spark() -> None:
    for found, expected in {
        pa.null(): pa.string(),
        pa.uint8(): pa.int16(),
        pa.uint64(): pa.decimal128(20, 0),
        pa.decimal256(50, 2): pa.string(),
        pa.timestamp("s"): pa.timestamp("us"),
        pa.timestamp("ns", "Europe/Zurich"): pa.timestamp("us", "UTC"),
        pa.time64("us"): pa.string(),
        pa.list_(pa.uint32()): pa.list_(pa.int64()),
        pa.int16(): pa.int16(),
        pa.binary(16): pa.binary(),
    }.items():
        assert _columns.for_spark(found) == expected
