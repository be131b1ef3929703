"""`insert_arrow`: the rows of an Arrow stream are inserted into a table."""

from __future__ import annotations

import datetime
import uuid
from decimal import Decimal
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import onecopy
from tests.support import changing, table
from tests.support.properties import scaled, tried

pytestmark = pytest.mark.filterwarnings("ignore::onecopy.DriverWarning")


def test_a_stream_is_inserted_into_a_named_table(con: onecopy.Connection) -> None:
    con.execute('create table "my ""table" ("the id" integer, name text, rest default 7)')
    made = pa.table({"name": ["Zürich", None], "the id": [1, 2]})
    cur = con.cursor().insert_arrow('my "table', made)
    assert cur.rowcount == 2
    assert con.execute('select * from "my ""table"').fetchall() == [(1, "Zürich", 7), (2, None, 7)]
    con.cursor().insert_arrow('main.my "table', made)
    assert con.execute('select count(*) from "my ""table"').fetchall() == [(4,)]


def test_a_stream_is_inserted_through_a_statement(con: onecopy.Connection) -> None:
    con.execute("create table t (a primary key, b)")
    con.cursor().insert_arrow("insert into t values (?, upper(?))", pl.DataFrame({"x": [1, 2], "y": ["a", "b"]}))
    cur = con.cursor().insert_arrow("update t set b = ? where a = ?", pa.table({"b": ["z"], "a": [2]}))
    assert cur.rowcount == 1
    assert con.execute("select * from t").fetchall() == [(1, "A"), (2, "z")]


LONG = "x" * 40
TYPES: list[tuple[Any, Any]] = [
    (pa.array([True, None, False]), [1, None, 0]),
    (pa.array([1, None, -3], pa.int8()), [1, None, -3]),
    (pa.array([1, None, 2**32 - 1], pa.uint32()), [1, None, 2**32 - 1]),
    (pa.array([1, None, 2**63 - 1], pa.uint64()), [1, None, 2**63 - 1]),
    (pa.array([0.1, None, -2, 134217728.0], pa.float32()), [0.1, None, -2.0, 134217728.0]),
    (pa.array([0.1, None, -2.5]), [0.1, None, -2.5]),
    (pa.array(["a", None, "東京"]), ["a", None, "東京"]),
    (pa.array(["a", None, "東京"], pa.large_string()), ["a", None, "東京"]),
    (pa.array(["a", None, LONG], pa.string_view()), ["a", None, LONG]),
    (pa.array([b"a", None, b"\xff"], pa.binary()), [b"a", None, b"\xff"]),
    (pa.array([b"a", None, LONG.encode()], pa.binary_view()), [b"a", None, LONG.encode()]),
    (pa.array([b"ab", None, b"cd"], pa.binary(2)), [b"ab", None, b"cd"]),
    (pa.array(["x", None, "x"]).dictionary_encode(), ["x", None, "x"]),
    (pa.array([Decimal("1.50"), None, Decimal("-0.25")], pa.decimal128(9, 2)), [1.5, None, -0.25]),
    (pa.array([Decimal("1.50"), None, Decimal(7)], pa.decimal256(50, 2)), [1.5, None, 7]),
    (pa.array([datetime.date(2026, 11, 20), None, datetime.date(1, 1, 1)]), ["2026-11-20", None, "0001-01-01"]),
    (pa.array([datetime.date(2026, 11, 20), None, None], pa.date64()), ["2026-11-20", None, None]),
    (pa.array([datetime.time(1, 2, 3), None, None], pa.time32("s")), ["01:02:03", None, None]),
    (pa.array([datetime.time(1, 2, 3, 5), None, None]), ["01:02:03.000005", None, None]),
    (
        pa.array([datetime.datetime(2026, 11, 20, 1), None, None], pa.timestamp("ns")),
        ["2026-11-20 01:00:00", None, None],
    ),
    (
        pa.array([datetime.datetime(2026, 11, 20, 1), None, None], pa.timestamp("s", "Asia/Tokyo")),
        ["2026-11-20 01:00:00+00:00", None, None],
    ),
    (pa.array([None, None, None]), [None, None, None]),
    (pa.array([uuid.UUID(int=7), None, None], pa.uuid()), [str(uuid.UUID(int=7)), None, None]),
]


@pytest.mark.parametrize(("values", "expected"), TYPES, ids=lambda v: str(getattr(v, "type", "")))
def test_every_type_becomes_the_parameter_of_its_kind(
    con: onecopy.Connection, values: Any, expected: list[Any]
) -> None:
    con.execute("create table t (x)")
    whole = pa.table({"x": values})
    con.cursor().insert_arrow("t", whole)
    # Also as a slice of a longer array.
    con.cursor().insert_arrow("t", pa.table({"x": pa.chunked_array([values, values])}).slice(1, 4))
    got = [value for (value,) in con.execute("select x from t")]
    assert got == expected + (expected * 2)[1:5]


@pytest.mark.parametrize(
    "values", [pa.array([1, 2**63], pa.uint64()), pa.array([Decimal(1), Decimal("-0.05")], pa.decimal128(9, 2))]
)
def test_numbers_outside_of_the_range_of_sqlite_are_refused(con: onecopy.Connection, values: Any) -> None:
    con.execute("create table t (x)")
    with pytest.raises(onecopy.DataError, match="no exact number") as raised:
        con.cursor().insert_arrow("t", pa.table({"x": values}))
    assert raised.value.row == 1


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (pa.array([0.1, -1.5, None, float("inf")], pa.float16()), [0.1, -1.5, None, float("inf")]),
        (pa.array(["a", "b", None, "a"]).dictionary_encode(), ["a", "b", None, "a"]),
        (pa.array(["a", "x" * 20], pa.string_view()), ["a", "x" * 20]),
        (pa.array([b"a", b"x" * 20], pa.binary_view()), [b"a", b"x" * 20]),
        (pa.array([b"abc", None], pa.binary(3)), [b"abc", None]),
        (pa.array([86_400_000, None], pa.date64()), ["1970-01-02", None]),
    ],
    ids=lambda of: str(of.type) if isinstance(of, pa.Array) else "",
)
def test_types_that_are_only_inserted(con: onecopy.Connection, values: Any, expected: list[Any]) -> None:
    con.execute("create table t (x)")
    con.cursor().insert_arrow("t", pa.table({"x": values}))
    assert [x for (x,) in con.execute("select x from t")] == expected


def test_types_without_a_counterpart_are_refused(con: onecopy.Connection) -> None:
    con.execute("create table t (x)")
    for values in (pa.array([[1]]), pa.array([{"a": 1}]), pa.array([1], pa.duration("s"))):
        with pytest.raises(onecopy.NotSupportedError, match=r"no SQL type corresponds to it \(column 0 `x`\)"):
            con.cursor().insert_arrow("t", pa.table({"x": values}))
    wrong: list[Any] = [[1], pa.array([1]), pa.array([{"x": 1}]), None]
    for stream in wrong:
        with pytest.raises(TypeError, match=r"a `\w+` has no `__arrow_c_stream__`\ngive a table"):
            con.cursor().insert_arrow("t", stream)
    with pytest.raises(onecopy.ProgrammingError):
        con.cursor().insert_arrow("absent", pa.table({"x": [1]}))


@pytest.mark.parametrize("names", [["x", "x"], ["x", "X"], ["y", "x", "y"]])
def test_equal_columns_of_a_table_are_refused(con: onecopy.Connection, names: list[str]) -> None:
    con.execute("create table t (x, y)")
    stream = pa.table([[1]] * len(names), names=names)
    with pytest.raises(onecopy.ProgrammingError, match=f"two columns have the name `{names[-1]}`"):
        con.cursor().insert_arrow("t", stream)
    assert con.execute("select count(*) from t").fetchone() == (0,)


def test_a_row_that_fails_is_named_and_those_before_it_stay(con: onecopy.Connection) -> None:
    con.execute("create table t (x integer primary key)")
    with pytest.raises(onecopy.IntegrityError) as raised:
        con.cursor().insert_arrow("t", pa.table({"x": [1, 2, 3, 2]}))
    assert raised.value.row == 3
    assert con.execute("select count(*) from t").fetchall() == [(3,)]


def test_a_stream_that_fails_is_an_error(con: onecopy.Connection) -> None:
    def batches() -> Any:
        yield pa.record_batch({"x": pa.array([1, 2])})
        raise RuntimeError("no more")

    con.execute("create table t (x)")
    stream = pa.RecordBatchReader.from_batches(pa.schema({"x": pa.int64()}), batches())
    with pytest.raises(onecopy.OperationalError, match="no more"):
        con.cursor().insert_arrow("t", stream)


def test_a_cursor_is_inserted_into_another_database(con: onecopy.Connection) -> None:
    other = onecopy.connect("sqlite::memory:")
    other.execute("create table t (id integer, name text)")
    source = con.execute("select 1 as id, 'Zürich' as name union all select 2, null")
    assert other.cursor().insert_arrow("t", source).rowcount == 2
    assert other.execute("select * from t").fetchall() == [(1, "Zürich"), (2, None)]


def test_the_ledger_counts_texts_of_a_stream(con: onecopy.Connection) -> None:
    con.execute("create table t (x)")
    with onecopy.ledger() as ledger:
        con.cursor().insert_arrow("t", pa.table({"x": ["abc", "東京"]}))
    assert ledger.stages == {"parameters": {"taken": 9, "converted": 0, "copied": 9, "conversions": 0}}


@pytest.mark.parametrize("profile", ["postgres_native", "postgres", "mariadb"])
def test_the_table_round_trips_through_arrow(request: pytest.FixtureRequest, profile: str) -> None:
    con = onecopy.connect(request.getfixturevalue(profile).odbc)
    con.execute("create temporary table arrow_in as select * from t1000 where 1 = 0")
    made = pa.table(con.execute("select * from t1000 order by id"))
    frame = pd.DataFrame.from_arrow(made) if profile == "postgres" else pl.DataFrame(made)
    assert con.cursor().insert_arrow("arrow_in", made).rowcount == 1000
    assert con.execute("select * from arrow_in order by id").fetchall() == [tuple(row) for row in table.rows(1000)]
    assert len(frame) == 1000
    sql = "insert into arrow_in (id, name) values (?, ?)"
    too_long = pa.table({"id": [1, 2, 3, 4, 5, 6], "name": ["a"] * 5 + ["x" * 3000]})
    with pytest.raises(onecopy.Error) as raised:
        con.cursor().insert_arrow(sql, too_long)
    assert raised.value.row == 5
    con.rollback()
    con.close()


_CELLS = st.tuples(
    st.none() | st.integers(-(2**63), 2**63 - 1),
    st.none() | st.text(st.characters(exclude_categories=["Cs"]), max_size=30),
    st.none() | st.binary(max_size=30),
    st.none() | st.floats(allow_nan=False),
)


@tried(50)
@given(st.lists(_CELLS, max_size=60), st.integers(1, 20))
def test_a_stream_means_the_same_as_its_rows(rows: list[tuple[Any, ...]], chunk: int) -> None:
    con = onecopy.connect("sqlite::memory:")
    con.execute("create table by_row (i, t, b, f)")
    con.execute("create table by_stream (i, t, b, f)")
    con.executemany("insert into by_row values (?, ?, ?, ?)", rows)
    schema = pa.schema([("i", pa.int64()), ("t", pa.string()), ("b", pa.binary()), ("f", pa.float64())])
    made = pa.Table.from_pylist([dict(zip("itbf", row, strict=True)) for row in rows], schema=schema)
    con.cursor().insert_arrow("by_stream", pa.RecordBatchReader.from_batches(schema, made.to_batches(chunk)))
    assert con.execute("select * from by_stream").fetchall() == con.execute("select * from by_row").fetchall()
    con.close()


@pytest.mark.parametrize("writer", ["thread", "process"])
def test_an_array_that_changes_gives_rows_of_well_formed_text_or_an_error(writer: str) -> None:
    changing.run("insert_arrow", "", writer, scaled(200))
