"""Random values of each column type in Arrow's batches, against an independent client."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from tests.rows import test_random_values as of_rows
from tests.rows.test_random_values import Pair
from tests.support import random_values
from tests.support.random_values import ROW_COUNTS

pytestmark = pytest.mark.filterwarnings("ignore::onecopy.DriverWarning")

tables = of_rows.tables
pair = of_rows.pair


def _values(column: Any) -> list[Any]:
    values = column.to_pylist()
    return [random_values.shortest_float32(value) for value in values] if column.type == pa.float32() else values


@pytest.mark.parametrize("n_rows", ROW_COUNTS)
def test_batches_hold_those_values(pair: Pair, n_rows: int) -> None:
    # A column of SQLite without a type may hold all of them; a span of time is text here.
    kept = [k for k, column in enumerate(pair.columns) if column.sql not in ("", "numeric") or column.read != "{}"]
    names = ", ".join(f"c{k}" for k in kept)
    sql = of_rows.select(n_rows).replace("*", f"i, {names}")
    texts = {f"c{k}": "string" for k in kept if pair.columns[k].text}
    stream = pair.con.execute(sql).arrow(types=texts, batch_bytes=20_000)
    made = pa.RecordBatchReader.from_stream(stream).read_all()
    made.validate(full=True)
    expected = pair.read("random_theirs", n_rows)
    assert _values(made.column(0)) == [row[0] for row in expected]
    for k in kept:
        values = [row[k + 1] for row in expected]
        got = _values(made[f"c{k}"])
        if f"c{k}" in texts:
            assert [value is None for value in got] == [value is None for value in values]
        else:
            assert got == values, pair.columns[k].sql
