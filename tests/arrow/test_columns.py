"""Columns of `fetch_columns` as writable buffers: shared with NumPy, and used as parameters."""

from __future__ import annotations

import array
import datetime
import math
from decimal import Decimal
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import onecopy
from tests.conftest import Database
from tests.support import table
from tests.support.properties import tried


def values(column: Any) -> list[Any]:
    """Converts a column of `fetch_columns` to the list of values that `fetchall` returns."""
    if isinstance(column, list):
        return column
    return [
        None if null else value for value, null in zip(memoryview(column), memoryview(column.null_mask), strict=True)
    ]


def test_numpy_shares_the_memory(con: onecopy.Connection) -> None:
    con.execute("create table t (id integer, price real, name text)")
    con.executemany("insert into t values (?, ?, ?)", [[i, i / 2, f"näme {i}"] for i in range(1000)])
    id, price, name = con.execute("select * from t").fetch_columns()
    view = np.asarray(price)
    assert view.dtype == np.float64 and view.flags.writeable and not view.flags.owndata
    view *= 2
    assert list(memoryview(price)) == [float(i) for i in range(1000)]
    assert np.asarray(id).sum() == 499_500 and name[999] == "näme 999"
    assert np.asarray(price).__array_interface__["data"] == view.__array_interface__["data"]
    del price, id
    assert view[999] == 999.0  # The array keeps the column alive.


def test_nulls_are_in_a_mask_that_is_a_buffer_too(con: onecopy.Connection) -> None:
    cur = con.execute(
        "select 1 as i, null as f, 'a' as t union all select null, 2.5, null union all select 3, null, 'b'"
    )
    i, f, t = cur.fetch_columns()
    assert (i.name, i.format, i.type_code, len(i), i.n_nulls) == ("i", "q", "integer", 3, 1)
    assert (f.format, f.type_code, f.n_nulls) == ("d", "double", 2)
    assert values(i) == [1, None, 3] and values(f) == [None, 2.5, None] and t == ["a", None, "b"]
    assert memoryview(i)[1] == 0 and math.isnan(memoryview(f)[0])
    mask = np.asarray(i.null_mask)
    assert mask.dtype == np.bool_ and mask.tolist() == [False, True, False]
    assert i.null_mask.null_mask is None and (i.unit, i.is_utc) == (None, False)
    assert repr(i) == "<onecopy.Column `i`: 3 values of format `q`>"
    masked = np.ma.array(np.asarray(i), mask=mask)
    assert masked.sum() == 4


def test_columns_are_fetched_in_parts_and_empty_at_the_end(con: onecopy.Connection) -> None:
    con.execute("create table t (id integer, name text)")
    con.executemany("insert into t values (?, ?)", [[i, str(i)] for i in range(2500)])
    cur = con.execute("select * from t")
    got: list[int] = []
    while len((columns := cur.fetch_columns(1000))[0]):
        id, name = columns
        assert name == [str(i) for i in memoryview(id)]
        got += memoryview(id).tolist()
    assert got == list(range(2500)) and cur.rownumber == 2500
    assert cur.fetch_columns() == [columns[0], []] or len(cur.fetch_columns()[0]) == 0
    assert con.execute("select * from t").fetch_columns(0)[1] == []


def test_rows_and_columns_of_one_result_do_not_mix_after_a_prefetch(con: onecopy.Connection) -> None:
    cur = con.execute("select 1 as i union all select 2 union all select 3")
    cur.fetchone()
    cur.fetchone()
    with pytest.raises(onecopy.ProgrammingError, match="prefetched"):
        cur.fetch_columns()
    cur = con.execute("select 1 as i union all select 2 union all select 3")
    assert cur.fetchmany(1) == [(1,)] and values(cur.fetch_columns()[0]) == [2, 3]
    with pytest.raises(onecopy.ProgrammingError):
        con.execute("create table x (a)").fetch_columns()


def test_a_value_that_is_not_a_number_is_an_error_with_its_position(con: onecopy.Connection) -> None:
    con.execute("create table t (a integer)")
    con.execute("insert into t values (1), ('b')")
    with pytest.raises(onecopy.DataError) as raised:
        con.execute("select a from t").fetch_columns()
    assert (raised.value.row, raised.value.column) == (1, (0, "a"))
    assert con.execute("select cast(a as text) from t").fetch_columns() == [["1", "b"]]


EXPECTED = list(zip(*table.rows(1000), strict=True))


@pytest.mark.filterwarnings("ignore::onecopy.DriverWarning")
@pytest.mark.parametrize(
    "profile",
    [
        "postgres_native",
        "postgres",
        "postgres_ansi",
        "mariadb",
        "tds_freetds",
        "tds_msodbc",
        "tds_rust",
    ],
)
def test_the_table_as_columns(request: pytest.FixtureRequest, profile: str) -> None:
    con = onecopy.connect(request.getfixturevalue(profile).odbc)
    for size in (None, 77):
        cur = con.execute("select * from t1000 order by id")
        got: list[list[Any]] = [[] for _ in EXPECTED]
        while len((columns := cur.fetch_columns(size))[0]):
            for column, new in zip(got, columns, strict=True):
                column += values(new)
        created = [datetime.datetime(1970, 1, 1) + datetime.timedelta(microseconds=us) for us in got[6]]
        assert created == list(EXPECTED[6]) and columns[6].unit == "us"
        assert [c for i, c in enumerate(got) if i != 6] == [list(c) for i, c in enumerate(EXPECTED) if i != 6]
    con.close()


@pytest.mark.filterwarnings("ignore::onecopy.DriverWarning")
def test_types_of_postgres(postgres: Database) -> None:
    con = onecopy.connect(postgres.odbc)
    sql = """select 1::smallint as i2, -2 as i4, 1.5::real as f4, true as b, 12.5::numeric(5, 2) as n,
        '2020-01-01 10:11:12.5+02'::timestamptz as tz, '2020-02-29'::date as d, null::bigint as z"""
    i2, i4, f4, b, n, tz, d, z = con.execute(sql).fetch_columns()
    assert [c.format for c in (i2, i4, f4, b, tz, z)] == ["h", "i", "f", "?", "q", "q"]
    assert [values(c) for c in (i2, i4, f4, b, z)] == [[1], [-2], [1.5], [True], [None]]
    assert (n, d) == ([Decimal("12.50")], [datetime.date(2020, 2, 29)])
    assert (tz.unit, tz.is_utc) == ("us", True)
    assert np.asarray(tz).view(f"M8[{tz.unit}]")[0] == np.datetime64("2020-01-01T08:11:12.5")
    con.close()


# As parameters.


@pytest.fixture
def numbers(con: onecopy.Connection) -> onecopy.Connection:
    con.execute("create table t (a, b)")
    return con


@pytest.mark.parametrize(
    ("column", "expected"),
    [
        (np.arange(3), [0, 1, 2]),
        (np.arange(6)[::2], [0, 2, 4]),
        (np.array([1, 2, 255], np.uint8), [1, 2, 255]),
        (np.array([-1, 2, 3], np.int16), [-1, 2, 3]),
        (np.array([0.1, math.inf, -0.0]), [0.1, math.inf, -0.0]),
        (np.array([0.1, 2, 2**27], np.float32), [0.1, 2.0, 134217728.0]),
        (np.array([True, False, True]), [1, 0, 1]),
        (array.array("d", [1, 2, 3]), [1.0, 2.0, 3.0]),
        (array.array("l", [1, 2, 3]), [1, 2, 3]),
        (memoryview(array.array("i", [1, -2, 3])), [1, -2, 3]),
        (memoryview(b"abc"), [97, 98, 99]),
        ((np.array([1.5, 2.5, 3.5]), np.array([False, True, False])), [1.5, None, 3.5]),
        (
            np.array(["2026-11-20T13:05:00.25", "NaT", "1969-12-31"], "M8[ms]"),
            ["2026-11-20 13:05:00.250000", None, "1969-12-31 00:00:00"],
        ),
        (["a", None, "東京"], ["a", None, "東京"]),
        ((b"a", None, b"b"), [b"a", None, b"b"]),
        (iter([Decimal("1.5"), 2, "x"]), [1.5, 2, "x"]),
    ],
    ids=repr,
)
def test_columns_are_accepted_as_parameters(numbers: onecopy.Connection, column: Any, expected: list[Any]) -> None:
    cur = numbers.cursor().executemany("insert into t values (?, ?)", columns=[range(3), column])
    assert cur.rowcount == 3
    assert numbers.execute("select b from t order by a").fetchall() == [(v,) for v in expected]


def test_our_own_columns_are_inserted_with_their_nulls(numbers: onecopy.Connection) -> None:
    numbers.execute("insert into t values (1, 2.5), (null, null), (3, 4.5)")
    columns = numbers.execute("select * from t").fetch_columns()
    np.asarray(columns[1])[:] *= 2
    numbers.execute("delete from t")
    numbers.executemany("insert into t values (?, ?)", columns=columns)
    assert numbers.execute("select * from t").fetchall() == [(1, 5.0), (None, None), (3, 9.0)]


def test_columns_that_do_not_fit_are_refused(numbers: onecopy.Connection) -> None:
    sql = "insert into t values (?, ?)"
    cases: list[tuple[list[Any], type[Exception], str]] = [
        ([[1], [1, 2]], ValueError, "column 1 has 2 values and the first one 1"),
        ([np.zeros((2, 2)), [1, 2]], TypeError, "of 2 dimensions"),
        ([np.zeros(2, np.float16), [1, 2]], TypeError, "of format `e`"),
        ([np.zeros(2, ">i4"), [1, 2]], TypeError, "byte order"),
        ([np.zeros(2, "M8[D]"), [1, 2]], TypeError, "datetime64"),
        ([(np.zeros(2), np.zeros(3, bool)), [1, 2]], ValueError, "3 values, and its column 2"),
        (["ab", [1, 2]], TypeError, "not `str`"),
        ([b"ab", [1, 2]], TypeError, "not `bytes`"),
        ([[1, 2], [1, object()]], TypeError, "parameter 2 is a `object`"),
        ([[1, 2]], onecopy.ProgrammingError, "has 2 parameters, 1 were given"),
    ]
    for columns, error, words in cases:
        with pytest.raises(error, match=words):
            numbers.cursor().executemany(sql, columns=columns)
    with pytest.raises(TypeError, match="either rows or `columns`"):
        numbers.cursor().executemany(sql)  # type: ignore[call-overload]
    with pytest.raises(TypeError, match="either rows or `columns`"):
        numbers.cursor().executemany(sql, [[1, 2]], columns=[[1], [2]])  # type: ignore[call-overload]
    assert numbers.executemany(sql, columns=[[], []]).rowcount == 0


def test_a_row_that_fails_is_named(con: onecopy.Connection) -> None:
    con.execute("create table u (a integer primary key)")
    with pytest.raises(onecopy.IntegrityError) as raised:
        con.cursor().executemany("insert into u values (?)", columns=[np.array([1, 2, 3, 2])])
    assert raised.value.row == 3
    assert con.execute("select count(*) from u").fetchall() == [(3,)]


@pytest.mark.filterwarnings("ignore::onecopy.DriverWarning")
@pytest.mark.parametrize("profile", ["postgres_native", "postgres", "mariadb"])
def test_columns_are_accepted_by_drivers(request: pytest.FixtureRequest, profile: str) -> None:
    con = onecopy.connect(request.getfixturevalue(profile).odbc)
    con.execute("create temporary table columns_in (a bigint, b double precision, c varchar(20), d timestamp(6) null)")
    n = 3000
    stamps = np.datetime64("2026-11-20T13:05:00.25", "us") + np.arange(n)
    columns: list[Any] = [
        np.arange(n),
        (np.arange(n) / 4, np.arange(n) % 7 == 0),
        [f"näme {i}" for i in range(n)],
        stamps,
    ]
    assert con.executemany("insert into columns_in values (?, ?, ?, ?)", columns=columns).rowcount == n
    a, b, c, d = con.execute("select * from columns_in order by a").fetch_columns()
    assert np.array_equal(np.asarray(a), columns[0]) and c == columns[2]
    assert values(b) == [None if i % 7 == 0 else i / 4 for i in range(n)]
    assert np.array_equal(np.asarray(d).view("M8[us]"), stamps)
    con.close()


@tried(50)
@given(
    st.lists(
        st.tuples(st.none() | st.integers(-(2**63), 2**63 - 1), st.none() | st.floats(allow_nan=False)), max_size=300
    ),
    st.integers(1, 200),
)
def test_columns_equal_fetchall(rows: list[tuple[Any, ...]], size: int) -> None:
    con = onecopy.connect("sqlite::memory:")
    con.execute("create table t (i integer, f real)")
    con.executemany("insert into t values (?, ?)", rows)
    cur = con.execute("select * from t")
    got: list[tuple[Any, ...]] = []
    while len((columns := cur.fetch_columns(size))[0]):
        got += zip(*map(values, columns), strict=True)
    assert got == con.execute("select * from t").fetchall()
    con.close()
