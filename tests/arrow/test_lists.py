"""PostgreSQL arrays as Arrow lists; the expected values are read by psycopg.

`tests/rows/test_random_values.py` compares random values of each element type.
"""

from __future__ import annotations

import datetime
import random
import uuid
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import duckdb
import polars as pl
import psycopg
import pyarrow as pa
import pytest

import onecopy
from tests.conftest import Database

ROW_COUNTS = (0, 1, 2, 1000)


@pytest.fixture
def con(postgres_native: Database) -> Iterator[onecopy.Connection]:
    connection = onecopy.connect(postgres_native.odbc)
    yield connection
    connection.close()


@pytest.fixture
def oracle(postgres_native: Database) -> Iterator[psycopg.Connection[Any]]:
    parts = {"dbname" if k == "database" else k: v for k, v in postgres_native.native.items()}
    connection = psycopg.connect(**parts, options="-c timezone=UTC")
    yield connection
    connection.close()


def made(con: onecopy.Connection, sql: str, **types: Any) -> pa.Table:
    table = pa.table(con.execute(sql).arrow(types=types))
    table.validate(full=True)
    return table


TYPES: list[tuple[str, pa.DataType, list[Any]]] = [
    ("smallint", pa.int16(), [1, None, -32768]),
    ("integer", pa.int32(), [2147483647]),
    ("bigint", pa.int64(), [-(2**63), 2**63 - 1]),
    ("oid", pa.uint32(), [2**32 - 1, None]),
    ("boolean", pa.bool_(), [True, None, False]),
    ("real", pa.float32(), [1.5, float("inf")]),
    ("double precision", pa.float64(), [0.1, None, 1e300]),
    ("numeric(12,2)", pa.decimal128(12, 2), [Decimal("1.50"), Decimal("-0.01"), None]),
    ("numeric(60,4)", pa.decimal256(60, 4), [Decimal("1" * 50 + ".0001")]),
    ("numeric", pa.decimal128(38, 3), [Decimal("0.125"), None, Decimal("-7.000")]),
    ("money", pa.decimal128(19, 2), [Decimal("1.50"), None]),
    ("text", pa.string(), ["a", "NULL", None, 'x,{}"\\', "", "東京 😀"]),
    ("varchar(9)", pa.string(), ["é"]),
    ("bytea", pa.binary(), [b"\0\xff", b"", None]),
    ("date", pa.date32(), [datetime.date(2024, 2, 29), None]),
    ("time", pa.time64("us"), [datetime.time(23, 59, 59, 500_000)]),
    ("time(0)", pa.time32("s"), [datetime.time(23, 59, 59)]),
    ("timestamp", pa.timestamp("us"), [datetime.datetime(2024, 2, 29, 1, 2, 3, 4)]),
    ("timestamp(3)", pa.timestamp("ms"), [datetime.datetime(2024, 2, 29, 1, 2, 3, 4000)]),
    ("timestamptz", pa.timestamp("us", "UTC"), [datetime.datetime(2024, 2, 29, tzinfo=datetime.timezone.utc)]),
    ("interval", pa.string(), ["1 day 02:03:04", None]),
    ("uuid", pa.uuid(), [uuid.UUID(int=7), None]),
    ("json", pa.string(), ['{"a": 1}', None]),
    ("inet", pa.string(), ["127.0.0.1"]),
]


@pytest.mark.parametrize(("name", "item", "value"), TYPES, ids=[name for name, *_ in TYPES])
def test_each_type_of_elements(con: onecopy.Connection, name: str, item: pa.DataType, value: list[Any]) -> None:
    element = name.split("(")[0]
    texts = [None if v is None else v.isoformat() if isinstance(v, datetime.date) else v for v in value]
    con.execute("set lc_monetary = 'C'")
    con.execute(f"create temporary table lists (i int, x {name}[])")
    con.execute(f"insert into lists values (0, null), (1, '{{}}'), (2, cast(? as {element}[])), (3, null)", [texts])
    table = made(con, "select x from lists order by i")
    assert table.schema.field(0).type == pa.list_(item)
    assert table.column(0).to_pylist() == [None, [], value, None]
    again = made(con, "select x from lists order by i", x=pa.list_(item) if item != pa.uuid() else "list<uuid>")
    assert again.equals(table)


@pytest.mark.parametrize("n_rows", ROW_COUNTS)
def test_rows_of_lists_are_those_of_psycopg(
    con: onecopy.Connection, oracle: psycopg.Connection[Any], n_rows: int
) -> None:
    draw = random.Random(n_rows)
    rows = [
        (i, draw.choice([None, [], [draw.choice([None, draw.randrange(99)]) for _ in range(draw.randrange(9))]]))
        for i in range(n_rows)
    ]
    oracle.execute("drop table if exists lists_of_psycopg")
    oracle.execute("create table lists_of_psycopg (i int, x int[], y text[])")
    oracle.cursor().executemany(
        "insert into lists_of_psycopg select %s, v, v::text[] from (select %s::int[] as v) t", rows
    )
    oracle.commit()
    sql = "select * from lists_of_psycopg order by i"
    expected = oracle.execute(sql).fetchall()
    assert [row[:2] for row in expected] == rows
    try:
        for batch_bytes in (1, 1000, 1 << 20):
            stream = con.execute(sql).arrow(batch_bytes=batch_bytes)
            table = pa.table(stream)
            table.validate(full=True)
            assert list(zip(*(c.to_pylist() for c in table.columns), strict=True)) == expected
        frame = pl.DataFrame(con.execute(sql))
        assert frame.schema == {"i": pl.Int32, "x": pl.List(pl.Int32), "y": pl.List(pl.String)}
        assert frame.rows() == expected
        cursor = con.execute(sql)
        found = duckdb.sql("select i, x, y from cursor order by i")
        assert found is not None and found.fetchall() == expected
        del cursor
    finally:
        con.rollback()
        oracle.execute("drop table lists_of_psycopg")
        oracle.commit()


def test_the_schema_is_known_before_the_rows(con: onecopy.Connection) -> None:
    stream = con.execute("select array[1] as x, array[1.5] as y").arrow()
    assert pa.schema(stream) == pa.schema([("x", pa.list_(pa.int32())), ("y", pa.list_(pa.decimal128(38, 1)))])
    assert pa.table(stream).to_pylist() == [{"x": [1], "y": [Decimal("1.5")]}]


def test_a_schema_with_lists_is_requested(con: onecopy.Connection) -> None:
    schema = pa.schema([("x", pa.list_(pa.int64())), ("y", pa.int64())])
    cursor = con.execute("select array[1, null] as x, 2 as y")
    table = pa.RecordBatchReader.from_stream(cursor, schema=schema).read_all()
    assert table.schema == schema and table.to_pylist() == [{"x": [1, None], "y": 2}]


TABLE = "array[[1, 2], [3, null]]"


def test_arrays_of_other_dimensions_are_an_error_that_names_the_column(con: onecopy.Connection) -> None:
    for sql, types, dimensions in (
        (f"select array[1] as x union all select {TABLE}", {}, "an array of other dimensions"),
        (f"select {TABLE} as x", {"x": "list<list<list<int32>>>"}, "an array of other dimensions"),
        ("select array[1] as x", {"x": "list<list<int32>>"}, "an array of other dimensions"),
    ):
        stream = con.execute(sql).arrow(types=types)
        with pytest.raises(pa.ArrowInvalid, match=dimensions):
            pa.table(stream)
        assert isinstance(stream.error, onecopy.DataError)
        assert stream.error.column == (0, "x") and stream.error.row == sql.count("union")


def test_arrays_of_other_dimensions_are_lists_of_lists_or_text_on_request(con: onecopy.Connection) -> None:
    sql = f"select {TABLE} as x union all select '{{}}' union all select null"
    expected = [[[1, 2], [3, None]], [], None]
    table = made(con, sql, x="list<list<int32>>")
    assert table.schema.field(0).type == pa.list_(pa.list_(pa.int32()))
    assert table.column(0).to_pylist() == expected
    assert made(con, sql, x=pa.list_(pa.list_(pa.int64()))).column(0).to_pylist() == expected
    assert made(con, sql, x="string").column(0).to_pylist() == ["{{1,2},{3,NULL}}", "{}", None]
    assert made(con, "select '[0:1]={7,8}'::int[] as x").column(0).to_pylist() == [[7, 8]]


def test_elements_that_do_not_fit_are_an_error_that_names_the_column(con: onecopy.Connection) -> None:
    for sql, words in (
        ("array['NaN'::numeric]", "an element of an array does not go into"),
        ("array[date 'infinity']", "an element of an array is outside"),
    ):
        stream = con.execute(f"select null as a, {sql} as x").arrow()
        with pytest.raises(pa.ArrowInvalid, match=words):
            pa.table(stream)
        assert isinstance(stream.error, onecopy.DataError) and stream.error.column == (1, "x")
    table = made(con, "select array['NaN', 1.5]::numeric[] as x", x="list<string>")
    assert table.column(0).to_pylist() == [["NaN", "1.5"]]


def test_lists_are_refused_as_parameters(con: onecopy.Connection) -> None:
    with pytest.raises(onecopy.NotSupportedError, match="no SQL type corresponds"):
        con.cursor().insert_arrow("insert into t values (?)", pa.table({"x": [[1]]}))
