"""Types that only PostgreSQL has, by its native protocol; the expected values are read by
psycopg."""

from __future__ import annotations

import datetime
import gc
import json
import random
import uuid
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import bson
import psycopg
import pytest

import onecopy
from tests.conftest import Database
from tests.support.random_values.draw import time_with_offset


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


UTC = datetime.timezone.utc
ARRAYS = [
    "array[1, null, -3]::int2[]",
    "array[1, null, 2147483647]",
    "'{}'::int8[]",
    "array[9223372036854775807, -9223372036854775808]::int8[]",
    "array[[1, 2], [3, null]]",
    "'[0:1][2:2]={{1},{2}}'::int[]",
    "array['a', null, '', 'NULL', 'x,y', '{}', 'q\"b\\c', 'Zürich 東京 😀', ' ']",
    "array['a'::varchar(3), 'b']",
    "array[true, false, null]",
    "array[1.5::real, 'NaN', 'Infinity', 0.1]",
    "array[1e300, '-Infinity', 0.1]::float8[]",
    "array[1.50, -0.001, 123456789012345678901234567890]",
    "array['NaN', 'Infinity', '-Infinity', 1.5, null]::numeric[]",
    "array['\\x00ff'::bytea, '', null]",
    "array[date '2024-02-29', null, '0001-01-01']",
    "array[time '23:59:59.5', '00:00']",
    "array[timetz '23:59:59.5+05:30', '00:00-12:00:15', null]",
    "array[timestamp '2024-02-29 01:02:03.000004', '1970-01-01']",
    "array[timestamptz '2024-02-29 01:02:03+05:30']",
    "array['a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'::uuid]",
    "array[interval '1 day 02:03:04', '-1 s']",
    "array[interval '200000000 days', '999999999 days 23:59:59.999999', '-999999999 days']",
]


def _value(oracle: psycopg.Connection[Any], sql: str) -> Any:
    """The value of a query with one row and column, read by psycopg."""
    row = oracle.execute(sql).fetchone()
    assert row is not None
    return row[0]


@pytest.mark.parametrize("sql", ARRAYS)
def test_arrays_are_lists(con: onecopy.Connection, oracle: psycopg.Connection[Any], sql: str) -> None:
    con.execute("set timezone = 'UTC'")
    expected = _value(oracle, f"select {sql}")
    ((got,),) = con.execute(f"select {sql} as x").fetchall()
    assert repr(got) == repr(expected)
    (row,) = con.execute(f"select {sql} as x")
    assert repr(row) == repr((expected,))
    if "NaN" not in sql and "nfinity" not in sql:
        rows = json.loads(con.execute(f"select {sql} as x").json().read(), parse_float=Decimal)
        in_json = rows[0]["x"]
        of_server = _value(oracle, f"select array_to_json({sql})::text")
        if not any(word in sql for word in ("bytea", "timestamp", "time ")):
            assert in_json == json.loads(of_server, parse_float=Decimal)
    text = con.execute(f"select {sql} as x").csv().read().decode()
    as_text = _value(oracle, f"select ({sql})::text")
    assert text.removeprefix("x\n").removesuffix("\n").removeprefix('"').removesuffix('"').replace('""', '"') == as_text
    if "x'" not in sql:
        document = bson.decode(con.execute(f"select {sql} as x").bson().read())
        assert _n_values(document["x"]) == _n_values(got)


def _n_values(value: Any) -> Any:
    return [_n_values(v) for v in value] if isinstance(value, list) else value is None


def test_rows_with_lists_are_tracked_by_the_collector(con: onecopy.Connection) -> None:
    (row,) = con.execute("select array[1, 2], 'x'").fetchall()
    assert gc.is_tracked(row)
    row[0].append(row)
    del row
    assert gc.collect() >= 1


LISTS: list[tuple[Any, str]] = [
    ([1, None, 3], "bigint[]"),
    ([[1, 2], [3, 4]], "bigint[]"),
    ([1.5, float("inf")], "double precision[]"),
    ([True, None], "boolean[]"),
    ([Decimal("1.50")], "numeric[]"),
    ([b"\0\xff", b""], "bytea[]"),
    ([datetime.date(2024, 2, 29)], "date[]"),
    ([datetime.datetime(2024, 2, 29, 1, 2, 3, 4)], "timestamp without time zone[]"),
    ([datetime.datetime(2024, 2, 29, tzinfo=UTC)], "timestamp with time zone[]"),
    ([uuid.UUID(int=7)], "uuid[]"),
    ([datetime.timedelta(days=1)], "interval[]"),
    ([datetime.time(1, 2, tzinfo=UTC), None], "time with time zone[]"),
]


@pytest.mark.parametrize(("value", "name"), LISTS)
def test_lists_are_parameters(con: onecopy.Connection, value: Any, name: str) -> None:
    con.execute("set timezone = 'UTC'")
    assert con.execute("select ?, pg_typeof(?)::text", [value, value]).fetchall() == [(value, name)]


def test_lists_of_text_have_the_type_that_the_statement_expects(con: onecopy.Connection) -> None:
    texts = ["a", None, "NULL", 'q"b\\c', "x,y{}", ""]
    assert con.execute("select ?::text[]", [texts]).fetchall() == [(texts,)]
    assert con.execute("select 'b' = any(?::text[])", [["a", "b"]]).fetchall() == [(True,)]
    con.execute("create temporary table lists (a int[], b text[])")
    con.executemany("insert into lists values (?, ?)", [([1, 2], ["x"]), ([], []), (None, [None])])
    assert con.execute("select a, b from lists").fetchall() == [([1, 2], ["x"]), ([], []), (None, [None])]
    with pytest.raises(ValueError, match="6 dimensions"):
        con.execute("select ?", [[[[[[[[1]]]]]]]])


def test_elements_of_money_are_decimals(con: onecopy.Connection) -> None:
    con.execute("set lc_monetary = 'C'")
    sql = "select array['-$1,234.50', null, '92233720368547758.07']::money[] as x"
    expected = [Decimal("-1234.50"), None, Decimal("92233720368547758.07")]
    assert con.execute(sql).fetchall() == [(expected,)]
    assert con.execute(sql).json().read() == b'[{"x":[-1234.50,null,92233720368547758.07]}]'
    assert bson.decode(con.execute(sql).bson().read())["x"][0].to_decimal() == expected[0]
    assert con.execute(sql).type_names == ["money[]"]


TEXT_ARRAYS = [
    ("array[pg_lsn '16/B374D848', null]", ["16/B374D848", None]),
    ("array['pg_class'::regclass, 'pg_type']", ["pg_class", "pg_type"]),
    ("array['int4'::regtype]", ["integer"]),
    ("array[tid '(0,1)', '(7,2)']", ["(0,1)", "(7,2)"]),
    ("array['a'::refcursor, 'b c']", ["a", "b c"]),
    ("array[row(1, 'a b'), row(null, '')]", ['(1,"a b")', '(,"")']),
    ("array['1 2'::int2vector]", ["1 2"]),
    ("array['1 2'::oidvector, '']", ["1 2", ""]),
    ("array['$.a'::jsonpath]", ['$."a"']),
    ("array[row('a', 1)]::record[]", ["(a,1)"]),
    ("array['1'::xid8]", ["1"]),
]


@pytest.mark.parametrize(("sql", "expected"), TEXT_ARRAYS)
def test_arrays_of_other_built_in_types_are_lists_of_text(
    con: onecopy.Connection, sql: str, expected: list[str | None]
) -> None:
    assert con.execute(f"select {sql} as x").fetchall() == [(expected,)]
    assert json.loads(con.execute(f"select {sql} as x").json().read()) == [{"x": expected}]


def test_an_array_of_each_built_in_type_is_a_list(con: onecopy.Connection) -> None:
    sql = """
        select a.oid::regtype::text from pg_catalog.pg_type a join pg_catalog.pg_type e on e.oid = a.typelem
        where a.typcategory = 'A' and a.oid < 10000 and e.typarray = a.oid and e.typdelim = ',' and e.typtype <> 'c'
        and e.typname <> 'cstring'
    """
    names = [name for (name,) in con.execute(sql)]
    assert len(names) > 60
    found = con.execute("select " + ", ".join(f"'{{}}'::{name}" for name in names)).fetchall()[0]
    assert [name for name, value in zip(names, found, strict=True) if value != []] == []
    # The elements of a box are separated by semicolons.
    assert con.execute("select array['(1,1),(0,0)'::box]").fetchall() == [("{(1,1),(0,0)}",)]


def test_elements_of_json_are_objects_if_requested(postgres_native: Database) -> None:
    sql = """select array['{"a": [1]}', null, '"x"']::jsonb[], array[['1'], ['[null]']]::json[], null::jsonb[]"""
    with onecopy.connect(postgres_native.odbc, json="objects") as con:
        assert con.execute(sql).fetchall() == [([{"a": [1]}, None, "x"], [[1], [[None]]], None)]
    with onecopy.connect(postgres_native.odbc) as con:
        assert con.execute(sql).fetchall() == [(['{"a": [1]}', None, '"x"'], [["1"], ["[null]"]], None)]


@pytest.mark.parametrize("value", ["'{value}'::json", "array['1', '{value}']::json[]"])
def test_json_that_python_cannot_read_is_a_data_error(postgres_native: Database, value: str) -> None:
    deep = "[" * 2000 + "]" * 2000
    with (
        onecopy.connect(postgres_native.odbc, json="objects") as con,
        pytest.raises(onecopy.DataError, match="not valid JSON") as raised,
    ):
        con.execute("select " + value.format(value=deep)).fetchall()
    assert isinstance(raised.value.__cause__, onecopy.json.JSONDecodeError)


def test_json_is_a_value_in_json_and_text_or_objects_in_python(
    con: onecopy.Connection, postgres_native: Database
) -> None:
    sql = """select '{"b": [1.50,\n null]}'::json as a, '{"b":"é"}'::jsonb as b, '1'::jsonb as c"""
    assert con.execute(sql).json().read().decode() == '[{"a":{"b": [1.50,  null]},"b":{"b": "é"},"c":1}]'
    assert con.execute(sql).ndjson().read().count(b"\n") == 1
    assert con.execute(sql).fetchall() == [('{"b": [1.50,\n null]}', '{"b": "é"}', "1")]
    with onecopy.connect(postgres_native.odbc, json="objects") as objects:
        assert objects.execute(sql).fetchall() == [({"b": [1.5, None]}, {"b": "é"}, 1)]
    value = {"a": [1, None, "é"]}
    assert json.loads(con.execute("select ?::jsonb", [onecopy.Json(value)]).fetchall()[0][0]) == value
    with pytest.raises(ValueError, match="json"):
        onecopy.connect(postgres_native.odbc, json="x")  # type: ignore[arg-type]


@pytest.mark.parametrize("n_rows", [0, 1, 2, 1000])
def test_times_with_an_offset_are_those_of_psycopg(
    con: onecopy.Connection, oracle: psycopg.Connection[Any], n_rows: int
) -> None:
    draw = random.Random(n_rows)
    values = [None if draw.random() < 0.3 else time_with_offset(draw) for _ in range(n_rows)]
    con.execute("create temporary table offsets (i int, x timetz, y timetz(0))")
    con.executemany("insert into offsets values (?, ?, ?)", [(i, v, v) for i, v in enumerate(values)])
    rows = con.execute("select x from offsets order by i").fetchall()
    assert repr(rows) == repr([(v,) for v in values])
    texts = [row[0] for row in con.execute("select x::text from offsets order by i")]
    theirs = [_value(oracle, f"select {'null' if t is None else repr(t)}::timetz") for t in texts[:50]]
    assert repr(theirs) == repr(values[:50])
    objects = json.loads(con.execute("select x from offsets order by i").json().read())
    assert [row["x"] for row in objects] == texts
    documents = bson.decode_all(con.execute("select x from offsets order by i").bson().read())
    assert [row["x"] for row in documents] == texts
    lines = con.execute("select x from offsets order by i").csv().read().decode().split("\n")
    assert lines == ["x", *(text or "" for text in texts), ""]
    cursor = con.execute("select x, y from offsets")
    assert [column[1] for column in cursor.description or ()] == ["timetz"] * 2
    assert [column[4] for column in cursor.description or ()] == [6, 0]
    for value in values[:50]:
        assert con.execute("select ?, ? = x from offsets where x = ?", [value] * 3).fetchall()[:1] in (
            [],
            [(value, True)],
        )


def test_a_time_with_an_offset_that_python_does_not_have_is_an_error(con: onecopy.Connection) -> None:
    sql = "select timetz '24:00:00+01' as x"
    with pytest.raises(onecopy.DataError, match="hour must be in"):
        con.execute(sql).fetchall()
    assert con.execute(sql).json().read() == b'[{"x":"24:00:00+01"}]'
    assert con.execute("select (timetz '24:00:00+01')::text").fetchall() == [("24:00:00+01",)]


def _read(con: onecopy.Connection, sql: str, form: str) -> None:
    """Executes a query and reads its rows in one format."""
    read = getattr(con.execute(sql), form)()
    if form != "fetchall":
        read.read()


@pytest.mark.parametrize(
    ("sql", "text"),
    [
        ("date 'infinity'", "infinity"),
        ("timestamp '-infinity'", "-infinity"),
        ("timestamptz 'infinity'", "infinity"),
        ("date '0044-03-15 BC'", "0044-03-15 BC"),
        ("timestamp '0044-03-15 01:02:03.5 BC'", "0044-03-15 01:02:03.5 BC"),
        ("timestamptz '12020-03-15 01:02:03+00'", "12020-03-15 01:02:03+00"),
    ],
)
def test_far_dates_are_an_error_or_text(
    con: onecopy.Connection, postgres_native: Database, sql: str, text: str
) -> None:
    con.execute("set timezone = 'UTC'")
    assert con.execute(f"select ({sql})::text").fetchall() == [(text,)]
    for form in ("fetchall", "json", "csv", "bson"):
        with pytest.raises(onecopy.DataError):
            _read(con, f"select {sql} as x", form)
    with onecopy.connect(postgres_native.odbc, datetime_range="text") as con:
        con.execute("set timezone = 'UTC'")
        assert con.execute(f"select {sql} as x, date '2024-02-29'").fetchall() == [(text, datetime.date(2024, 2, 29))]
        assert json.loads(con.execute(f"select {sql} as x").json().read()) == [{"x": text}]
        arrays = f"select array[{sql}, null, date '2024-02-29'] as x, array[array[{sql}]] as y"
        typed = con.execute(arrays)
        (x, y) = typed.fetchall()[0]
        assert (x[:2], str(x[2])[:10], y) == ([text, None], "2024-02-29", [[text]])
        assert json.loads(con.execute(arrays).json().read())[0]["y"] == [[text]]


@pytest.mark.parametrize("sql", ["'{[-infinity,2024-01-01)}'::datemultirange", "'[0044-03-15 BC,)'::daterange"])
def test_ranges_of_far_dates_in_arrays_are_text(postgres_native: Database, sql: str) -> None:
    with onecopy.connect(postgres_native.odbc, datetime_range="text") as con:
        ((values, text),) = con.execute(f"select array[{sql}], ({sql})::text").fetchall()
        assert values == [text]
        ((values,), (text,)) = con.execute(f"select array[{sql}], ({sql})::text").fetch_columns()
        assert values == [text]
        many = con.execute(f"select array[{sql}] from generate_series(1, 3000)")
        assert many.fetch_columns()[0] == [[text]] * 3000


NOT_FINITE = ["NaN", "Infinity", "-Infinity"]


@pytest.mark.parametrize("value", NOT_FINITE)
def test_a_numeric_that_is_not_finite_is_a_decimal(
    con: onecopy.Connection, oracle: psycopg.Connection[Any], value: str
) -> None:
    sql = f"select '{value}'::numeric as x, array['{value}']::numeric[] as y, 1.5::numeric as z"
    expected = oracle.execute(sql).fetchall()
    assert repr(expected) == repr([(Decimal(value), [Decimal(value)], Decimal("1.5"))])
    assert repr(con.execute(sql).fetchall()) == repr(expected)
    assert repr([repr(row) for row in con.execute(sql)]) == repr([repr(row) for row in expected])
    assert repr(con.execute(sql).fetch_columns()[0]) == repr([Decimal(value)])
    assert repr(con.execute("select ?", [Decimal(value)]).fetchall()) == repr([(Decimal(value),)])
    con.execute("create temporary table finite (k int, x numeric)")
    con.executemany("insert into finite values (?, ?)", [(k, Decimal(t)) for k, t in enumerate(["1.50", value, "-2"])])
    rows = con.execute("select x from finite order by k").fetchall()
    assert repr(rows) == repr([(Decimal("1.50"),), (Decimal(value),), (Decimal("-2"),)])


@pytest.mark.parametrize("value", NOT_FINITE)
def test_a_numeric_that_is_not_finite_in_each_format(con: onecopy.Connection, value: str) -> None:
    sql = f"select '{value}'::numeric as x, array['{value}']::numeric[] as y"
    for read in ("json", "ndjson", "csv"):
        with pytest.raises(onecopy.DataError, match=r"not finite|NaN|Infinity") as raised:
            getattr(con.execute(f"select 1.5 as w, '{value}'::numeric as x"), read)().read()
        assert raised.value.column == (1, "x")
    document = bson.decode(con.execute(sql).bson().read())
    assert [str(document["x"]), str(document["y"][0])] == [value, value]
    assert type(document["x"]) is type(document["y"][0]) is bson.Decimal128
    assert bson.decode(con.execute(sql).bson(decimals="text").read()) == {"x": value, "y": [value]}


def test_bounds_of_ranges_may_not_be_finite(con: onecopy.Connection) -> None:
    sql = "select numrange('-Infinity', 'Infinity'), numrange(1, 'NaN')"
    ((one, two),) = con.execute(sql).fetchall()
    assert repr([one.lower, one.upper, two.upper]) == repr([Decimal("-Infinity"), Decimal("Infinity"), Decimal("NaN")])


@pytest.mark.parametrize(
    "text",
    [
        "106751992 days",
        "-106751992 days",
        "999999999 days 23:59:59.999999",
        "-999999999 days",
        "200000000 days -00:00:00.000001",
        "2562047788:00:54.775807",
    ],
)
def test_an_interval_that_a_timedelta_can_hold_is_one(
    con: onecopy.Connection, oracle: psycopg.Connection[Any], text: str
) -> None:
    expected = _value(oracle, f"select interval '{text}'")
    assert type(expected) is datetime.timedelta
    for _ in range(2):
        assert con.execute(f"select interval '{text}' as x").fetchall() == [(expected,)]
    assert con.execute("select ?, ?::text", [expected, expected]).fetchall()[0][0] == expected
    assert json.loads(con.execute(f"select interval '{text}' as x").json().read()) == [{"x": text}]


@pytest.mark.parametrize("text", ["1000000000 days", "-999999999 days -00:00:00.000001", "1 mon 200000000 days"])
def test_an_interval_that_a_timedelta_cannot_hold_is_text(con: onecopy.Connection, text: str) -> None:
    assert con.execute(f"select interval '{text}'").fetchall() == [(text,)]
