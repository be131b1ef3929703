"""Libraries that accept a cursor directly, by Arrow's PyCapsule interface."""

from __future__ import annotations

import subprocess
import sys
from decimal import Decimal
from typing import Any

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import onecopy

SQL = "select 1 as id, 'Zürich' as name, 2.5 as price union all select 2, '東京', null union all select 3, null, -1.0"
ROWS = [(1, "Zürich", 2.5), (2, "東京", None), (3, None, -1.0)]


def test_pyarrow_accepts_a_cursor(con: onecopy.Connection) -> None:
    made = pa.table(con.execute(SQL))
    assert list(zip(*(made[n].to_pylist() for n in made.column_names), strict=True)) == ROWS


def test_polars_accepts_a_cursor(con: onecopy.Connection) -> None:
    frame = pl.DataFrame(con.execute(SQL))
    assert frame.rows() == ROWS
    assert frame.schema == {"id": pl.Int64, "name": pl.String, "price": pl.Float64}


def test_pandas_accepts_a_cursor(con: onecopy.Connection) -> None:
    frame = pd.DataFrame.from_arrow(con.execute(SQL))
    assert list(frame["id"]) == [1, 2, 3] and list(frame["name"])[:2] == ["Zürich", "東京"]
    assert frame["price"].sum() == 1.5


def test_duckdb_queries_a_cursor(con: onecopy.Connection) -> None:
    cities = con.execute(SQL)
    found = duckdb.sql("select sum(id), max(name), count(price) from cities")
    assert found is not None and found.fetchall() == [(6, "東京", 2)]
    del cities


def test_no_reader_is_needed_to_create_a_stream() -> None:
    code = """
import sys, onecopy
stream = onecopy.connect("sqlite::memory:").execute("select 1 as id")
capsule = stream.__arrow_c_stream__()
assert "arrow_array_stream" in repr(capsule), capsule
assert not {"pyarrow", "numpy", "polars"} & set(sys.modules)
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_cursor_returns_its_rows_once(con: onecopy.Connection) -> None:
    cur = con.execute("select 1 as x")
    pa.table(cur)
    with pytest.raises(onecopy.ProgrammingError, match="a stream has taken them"):
        pa.table(cur)
    stream = con.execute("select 1 as x").arrow()
    assert pa.table(stream).num_rows == 1 and stream.n_rows == 1 and stream.error is None
    with pytest.raises(onecopy.ProgrammingError, match="given away"):
        pa.table(stream)
    cur = con.execute("select 1 as x union all select 2")
    cur.fetchone()
    with pytest.raises(onecopy.ProgrammingError, match="fetched already"):
        pa.table(cur)
    with pytest.raises(onecopy.ProgrammingError):
        pa.table(con.execute("create table t (a)"))


def test_the_schema_is_available_before_the_rows(con: onecopy.Connection) -> None:
    stream = con.execute("select 1 as x, 'a' as y").arrow()
    assert pa.schema(stream) == pa.schema([("x", pa.int64()), ("y", pa.string())])
    assert pa.table(stream).to_pylist() == [{"x": 1, "y": "a"}]


def test_names_may_be_empty_or_duplicate(con: onecopy.Connection) -> None:
    made = pa.table(con.execute('select 1 as x, 2 as x, 3 as "", 4 as "東京"'))
    assert made.column_names == ["x", "x", "", "東京"]


def test_the_ledger_counts_each_text_once(con: onecopy.Connection) -> None:
    with onecopy.ledger() as ledger:
        pa.table(con.execute("select 'ascii' as a, 'Zürich' as b, '東京' as c, 1 as d, null as e"))
    assert ledger.stages == {"encode": {"taken": 18, "converted": 0, "copied": 18, "conversions": 0}}


def of_table(made: Any) -> list[tuple[Any, ...]]:
    return list(zip(*(column.to_pylist() for column in made.columns), strict=True))


def test_decimals_are_exact(con: onecopy.Connection) -> None:
    sql = "select '0.1' as x union all select '-12345678901234567890123456789012345.678'"
    made = pa.table(con.execute(sql).arrow(types={"x": "decimal256(60, 3)"}))
    assert of_table(made) == [(Decimal("0.100"),), (Decimal("-12345678901234567890123456789012345.678"),)]
