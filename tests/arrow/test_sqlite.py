"""Arrow results of SQLite, where each value has a type of its own.

The type of a column results from its declared type and its first values.
"""

from __future__ import annotations

import datetime
import math
import uuid
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import onecopy
from tests.support.properties import tried


def table(cursor: Any) -> pa.Table:
    """Reads all batches of a cursor into a table, which pyarrow validates completely."""
    made = pa.RecordBatchReader.from_stream(cursor).read_all()
    made.validate(full=True)
    return made


def rows(made: pa.Table) -> list[tuple[Any, ...]]:
    return list(zip(*(column.to_pylist() for column in made.columns), strict=True)) if made.num_columns else []


def test_storage_classes_have_their_types(con: onecopy.Connection) -> None:
    cur = con.execute("select 1 as i, 2.5 as f, 'Zürich' as t, x'00ff' as b, null as n")
    made = table(cur)
    assert [(f.name, str(f.type)) for f in made.schema] == [
        ("i", "int64"),
        ("f", "double"),
        ("t", "string"),
        ("b", "binary"),
        ("n", "null"),
    ]
    assert rows(made) == [(1, 2.5, "Zürich", b"\x00\xff", None)]


def test_declared_types_take_precedence_over_values(con: onecopy.Connection) -> None:
    con.execute("create table t (a integer, b varchar(9), c double, d blob, e decimal(9, 2), f boolean, g datetime)")
    made = table(con.execute("select * from t"))
    names = ["int64", "string", "double", "binary", "null", "null", "null"]
    assert [str(f.type) for f in made.schema] == names and made.num_rows == 0
    con.execute("insert into t values (null, null, 3, null, 5, true, '2026-11-20 13:05:00')")
    made = table(con.execute("select * from t"))
    assert [str(f.type) for f in made.schema] == ["int64", "string", "double", "binary", "double", "int64", "string"]
    assert rows(made) == [(None, None, 3.0, None, 5.0, 1, "2026-11-20 13:05:00")]


def test_integers_become_floats_if_a_float_follows(con: onecopy.Connection) -> None:
    made = table(con.execute("select 1 as x union all select 2.5 union all select null"))
    assert str(made.schema.field("x").type) == "double" and rows(made) == [(1.0,), (2.5,), (None,)]
    with pytest.raises(
        pa.ArrowInvalid, match=r"a float has more digits than `int64` can represent|column 0 `x`, row 1"
    ):
        table(con.execute("select 9007199254740993 as x union all select 2.5"))


@pytest.mark.parametrize(("second", "what"), [("'b'", "text"), ("x'00'", "binary"), ("2.5", "a float")])
def test_a_value_that_does_not_fit_is_an_error_with_its_position(
    con: onecopy.Connection, second: str, what: str
) -> None:
    con.execute("create table t (a integer)")
    con.execute(f"insert into t values (1), (2), ({second})")
    stream = con.execute("select a from t").arrow()
    with pytest.raises(pa.ArrowInvalid) as raised:
        table(stream)
    assert f"{what} does not go into a column of `int64` (column 0 `a`, row 2)" in str(raised.value)
    assert "types" in str(raised.value)
    error = stream.error
    assert isinstance(error, onecopy.DataError) and (error.row, error.column) == (2, (0, "a"))


def test_types_are_requested_by_name(con: onecopy.Connection) -> None:
    con.execute("create table t (a integer)")
    con.execute("insert into t values (1), ('b'), (2.5)")
    made = table(con.execute("select a from t").arrow(types={"a": "string"}))
    assert rows(made) == [("1",), ("b",), ("2.5",)]
    made = table(
        con.execute("select 1 as a, 2 as b, '3.25' as c").arrow(types={"a": pa.int8(), "c": "decimal128(9, 3)"})
    )
    assert [str(f.type) for f in made.schema] == ["int8", "int64", "decimal128(9, 3)"]
    assert rows(made) == [(1, 2, Decimal("3.250"))]
    for types, error, words in [
        ({"x": "int8"}, onecopy.ProgrammingError, "there is no column `x`"),
        ({"a": "struct<x: int8>"}, ValueError, "is not a type that a column can have"),
        ({"a": "decimal128(50, 2)"}, ValueError, "is not a type"),
        ({1: "int8"}, TypeError, "no `str`"),
    ]:
        with pytest.raises(error, match=words):
            con.execute("select 1 as a").arrow(types=types)  # type: ignore[arg-type]


def test_text_is_converted_to_the_requested_type(con: onecopy.Connection) -> None:
    known = uuid.UUID("00112233-4455-6677-8899-aabbccddeeff")
    types = {
        "d": "date32",
        "s": "timestamp[us]",
        "z": "timestamp[ms, tz=UTC]",
        "t": "time64[us]",
        "u": "uuid",
        "b": "bool",
    }
    sql = f"""select '2026-11-20' as d, '2026-11-20 13:05:00.25' as s, '2026-11-20T13:05:00+02:00' as z,
            '23:59:59.5' as t, '{known}' as u, 1 as b"""
    made = table(con.execute(sql).arrow(types=types))
    utc = datetime.timezone.utc
    assert rows(made) == [
        (
            datetime.date(2026, 11, 20),
            datetime.datetime(2026, 11, 20, 13, 5, 0, 250_000),
            datetime.datetime(2026, 11, 20, 11, 5, tzinfo=utc),
            datetime.time(23, 59, 59, 500_000),
            known,
            True,
        )
    ]
    for value, data_type in [
        ("'2026-02-30'", "date32"),
        ("'2026-11-20 13:05:00.25'", "timestamp[s]"),
        ("'9999-12-31'", "timestamp[ns]"),
        ("'13:05'", "timestamp[us]"),
        ("300", "uint8"),
        ("2", "bool"),
        ("'1.234'", "decimal128(9, 2)"),
        ("12345678", "decimal128(9, 2)"),
        ("x'00'", "string"),
    ]:
        with pytest.raises(pa.ArrowInvalid, match="column 0 `x`, row 0"):
            table(con.execute(f"select {value} as x").arrow(types={"x": data_type}))


def test_a_schema_that_a_reader_requests_is_used_if_possible(con: onecopy.Connection) -> None:
    con.execute("create table t (id integer, at text)")
    con.execute("insert into t values (1, '2026-11-20 13:05:00')")
    schema = pa.schema([("id", pa.int32()), ("at", pa.timestamp("us"))])
    reader = pa.RecordBatchReader.from_stream(con.execute("select * from t"), schema=schema)
    assert reader.schema == schema
    assert reader.read_all().to_pylist() == [{"id": 1, "at": datetime.datetime(2026, 11, 20, 13, 5)}]


def test_batches_are_bounded_in_bytes_and_have_one_type(con: onecopy.Connection) -> None:
    con.execute("create table t (id integer, note text)")
    con.executemany("insert into t values (?, ?)", ((i, "съешь ещё " * (i % 40)) for i in range(5000)))
    stream = con.execute("select * from t").arrow(batch_bytes=64 << 10)
    batches = list(pa.RecordBatchReader.from_stream(stream))
    assert len(batches) > 10 and sum(b.num_rows for b in batches) == stream.n_rows == 5000
    assert all(50_000 < b.nbytes < 90_000 for b in batches[:-1])
    assert pa.Table.from_batches(batches).to_pylist()[4999] == {"id": 4999, "note": "съешь ещё " * 39}
    for wrong in (0, 1 << 31):
        with pytest.raises(ValueError, match="batch_bytes"):
            con.execute("select 1").arrow(batch_bytes=wrong)


def test_a_row_larger_than_a_batch_has_its_own_batch(con: onecopy.Connection) -> None:
    sql = "select value as id, replace(hex(zeroblob(50000)), '0', 'é') as t from (select 1 as value union all select 2)"
    batches = list(pa.RecordBatchReader.from_stream(con.execute(sql).arrow(batch_bytes=1)))
    assert [b.num_rows for b in batches] == [1, 1] and len(batches[0]["t"][0].as_py()) == 100_000


def test_malformed_text_is_an_error_or_read_with_replacements() -> None:
    sql = "select 'a' as x union all select cast(x'61ff62' as text)"
    with pytest.raises(pa.ArrowInvalid, match=r"malformed text: invalid start byte at byte 1 .*column 0 `x`, row 1"):
        table(onecopy.connect("sqlite::memory:").execute(sql))
    # Two halves of one character in two cells do not form a character.
    split = "select cast(x'61c3' as text) as x union all select cast(x'a962' as text)"
    with pytest.raises(pa.ArrowInvalid, match=r"row 0"):
        table(onecopy.connect("sqlite::memory:").execute(split))
    made = table(onecopy.connect("sqlite::memory:", errors="replace").execute(sql))
    assert rows(made) == [("a",), ("a\ufffdb",)]


def test_utf_16_databases_are_supported() -> None:
    con = onecopy.connect("sqlite::memory:")
    con.execute("pragma encoding = 'UTF-16le'")
    con.execute("create table t (x text)")
    texts = ["", "ascii", "Zürich", "東京", "😀 𠮷", "a\0b"]
    con.executemany("insert into t values (?)", [[t] for t in texts])
    assert rows(table(con.execute("select x from t"))) == [(t,) for t in texts]


_VALUES = st.none() | st.integers(-(2**63), 2**63 - 1)
_TEXT = st.none() | st.text(st.characters(exclude_categories=["Cs"]), max_size=40)
_FLOATS = st.none() | st.floats(allow_nan=False)
_BYTES = st.none() | st.binary(max_size=40)


@tried(60)
@given(st.lists(st.tuples(_VALUES, _TEXT, _FLOATS, _BYTES), max_size=80), st.integers(1, 4000))
def test_arrow_equals_fetchall(values: list[tuple[Any, ...]], batch_bytes: int) -> None:
    con = onecopy.connect("sqlite::memory:")
    con.execute("create table t (i integer, t text, f real, b blob)")
    con.executemany("insert into t values (?, ?, ?, ?)", values)
    expected = con.execute("select * from t").fetchall()
    made = table(con.execute("select * from t").arrow(batch_bytes=batch_bytes))
    assert rows(made) == expected
    assert all(
        math.copysign(1, a) == math.copysign(1, b[2])
        for a, b in zip(made["f"].to_pylist(), expected, strict=True)
        if a is not None
    )
    con.close()


def test_a_deferred_column_has_its_values_in_arrow_and_is_refused_as_a_column(con: onecopy.Connection) -> None:
    sql = "select 1 as a, 'long' as b"
    assert rows(table(con.execute(sql, defer=["b"]))) == [(1, "long")]
    cur = con.execute(sql, defer=["b"])
    with pytest.raises(onecopy.ProgrammingError, match="without `defer`"):
        cur.fetch_columns()
    assert cur.fetchall() == [(1, ...)]
