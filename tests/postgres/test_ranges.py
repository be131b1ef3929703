"""PostgreSQL ranges and multiranges as `onecopy.Range`; the expected values are read by psycopg."""

from __future__ import annotations

import copy
import datetime
import json
import pickle
import random
from collections.abc import Callable, Iterator
from decimal import Decimal
from typing import Any

import bson
import psycopg
import pytest
from psycopg.types.range import Range as PsycopgRange

import onecopy
from onecopy import Range
from tests.conftest import Database
from tests.support.random_values.draw import range_text
from tests.support.random_values.postgres import RANGES, as_range

ROW_COUNTS = (0, 1, 2, 1000)


@pytest.fixture
def con(postgres_native: Database) -> Iterator[onecopy.Connection]:
    connection = onecopy.connect(postgres_native.odbc)
    connection.execute("set timezone = 'UTC'")
    yield connection
    connection.close()


@pytest.fixture
def oracle(postgres_native: Database) -> Iterator[psycopg.Connection[Any]]:
    parts = {"dbname" if k == "database" else k: v for k, v in postgres_native.native.items()}
    connection = psycopg.connect(**parts, options="-c timezone=UTC")
    yield connection
    connection.close()


def test_a_range_has_the_attributes_of_psycopgs() -> None:
    for arguments in ((1, 5), (1, 5, "[]"), (1, 5, "(]"), (None, 5), (1, None, "[]"), (None, None), (), (5, 1)):
        ours, theirs = Range(*arguments), PsycopgRange(*arguments)
        assert repr(ours) == repr(theirs)
        assert (ours.lower, ours.upper, ours.bounds, ours.isempty) == (
            theirs.lower, theirs.upper, theirs.bounds, theirs.isempty,
        )  # fmt: skip
        for value in (0, 1, 3, 5, 6):
            assert (value in ours) == (value in theirs)
    empty = Range(empty=True)
    assert repr(empty) == "Range(empty=True)" and (empty.bounds, empty.isempty, 1 in empty) == ("", True, False)
    assert Range(1, 5, empty=True) == empty and Range(1, 5, "[]", empty=True).lower is None


def test_ranges_are_values() -> None:
    ranges = [Range(1, 5), Range(1, 5, "[]"), Range(1), Range(None, 5), Range(), Range(empty=True), Range(2, 5)]
    for i, one in enumerate(ranges):
        for other in (copy.copy(one), copy.deepcopy(one), pickle.loads(pickle.dumps(one))):
            assert other == one and hash(other) == hash(one) and repr(other) == repr(one)
        assert [one == other for other in ranges] == [i == k for k in range(len(ranges))]
    assert Range(None, 5, "[)") == Range(None, 5, "()")
    assert Range(1, 5) != (1, 5) and Range(1, 5) != "[1,5)"
    assert len({Range(1, 5), Range(1.0, 5), Range(Decimal(1), 5)}) == 1
    with pytest.raises(AttributeError):
        ranges[0].lower = 3  # type: ignore[misc]
    with pytest.raises(TypeError):
        _ = "x" in ranges[0]
    with pytest.raises(TypeError):
        _ = ranges[0] < ranges[1]  # type: ignore[operator]
    for bounds in ("", "[", "<>", ")("):
        with pytest.raises(ValueError, match="`bounds` is one of"):
            Range(1, 5, bounds)  # type: ignore[arg-type]


@pytest.mark.parametrize("n_rows", ROW_COUNTS)
@pytest.mark.parametrize("name", RANGES)
def test_ranges_are_those_of_psycopg(
    con: onecopy.Connection, oracle: psycopg.Connection[Any], name: str, n_rows: int
) -> None:
    draw = random.Random(n_rows)
    multi = name.replace("range", "multirange")
    make: Callable[[random.Random], str] = range_text(RANGES[name])

    def texts() -> list[str] | None:
        return None if draw.random() < 0.2 else [make(draw) for _ in range(draw.randrange(4))]

    made = [(i, None if draw.random() < 0.3 else make(draw), texts()) for i in range(n_rows)]
    oracle.execute("drop table if exists ranges_of_psycopg")
    oracle.execute(f"create table ranges_of_psycopg (i int, one {name}, many {multi}, list {name}[])")
    oracle.cursor().executemany(
        f"insert into ranges_of_psycopg values (%s, %s::text::{name}, %s::text::{multi}, %s::text[]::{name}[])",
        [(i, one, None if many is None else "{" + ",".join(many) + "}", many) for i, one, many in made],
    )
    oracle.commit()
    sql = "select one, many, list from ranges_of_psycopg order by i"
    expected = [tuple(map(as_range, row)) for row in oracle.execute(sql).fetchall()]
    as_text = oracle.execute(sql.replace("one, many, list", "one::text, many::text, array_to_json(list)")).fetchall()
    try:
        rows = con.execute(sql).fetchall()
        assert repr(rows) == repr(expected) and rows == expected
        found = [tuple(row.values()) for row in json.loads(con.execute(sql).json().read())]
        assert found == as_text
        documents = bson.decode_all(con.execute(sql).bson().read())
        assert [tuple(document.values()) for document in documents] == as_text
        assert con.execute(sql).csv().read().count(b"\n") == n_rows + 1
        con.execute(f"create temporary table ours (i int, one {name}, many {multi}, list {name}[])")
        con.executemany("insert into ours values (?, ?, ?, ?)", [(i, *row) for i, row in enumerate(rows)])
        assert con.execute("select one, many, list from ours order by i").fetchall() == expected
        for i, (one, many, ranges) in list(enumerate(rows))[:20]:
            test = "one is not distinct from ? and many is not distinct from ? and list is not distinct from ?"
            assert con.execute(f"select i from ours where i = ? and {test}", [i, one, many, ranges]).fetchall() == [
                (i,)
            ]
    finally:
        con.rollback()
        oracle.execute("drop table ranges_of_psycopg")
        oracle.commit()


def test_the_type_code_of_ranges(con: onecopy.Connection) -> None:
    cursor = con.execute("select '[1,5)'::int4range as a, '{[1,5)}'::int4multirange as b")
    assert [column[1] for column in cursor.description or ()] == ["range", "range"]
    con.converters["range"] = repr
    assert con.execute("select '[1,5)'::int4range").fetchall() == [("Range(1, 5, '[)')",)]


def test_ranges_are_parameters_of_the_type_that_the_statement_expects(con: onecopy.Connection) -> None:
    day = datetime.date(2026, 3, 1)
    for sql, value in (
        ("select ?::int8range @> 3::int8", Range(1, 5)),
        ("select ?::numrange @> 1.5", Range(Decimal("1.50"), None)),
        ("select ?::daterange @> date '2026-03-31'", Range(day, datetime.date(2026, 4, 1))),
        ("select ?::tsrange @> timestamp '2026-03-01 00:00:01'", Range(datetime.datetime(2026, 3, 1), None, "()")),
        ("select ?::int4multirange @> 8", (Range(1, 5), Range(7, 9))),
        ("select isempty(?::int4range)", Range(empty=True)),
        ("select isempty(?::int4multirange)", ()),
        ("select int4range(1, 5) = any(?)", [Range(7, 9), Range(1, 5)]),
        ("select '{[1,5)}'::int4multirange = any(?)", [(), (Range(1, 5),)]),
    ):
        assert con.execute(sql, [value]).fetchall() == [(True,)]
    con.execute("""create type textrange as range (subtype = text)""")
    texts = Range('a"b\\', "c,d)")
    assert con.execute("select lower(r), upper(r) from (select ?::textrange as r) t", [texts]).fetchall() == [
        (texts.lower, texts.upper)
    ]
    with pytest.raises(TypeError, match="parameter 1 is a `tuple`"):
        con.execute("select ?", [(Range(1, 5), 1)])


def test_ranges_are_refused_by_other_databases() -> None:
    con = onecopy.connect("sqlite::memory:")
    for value in (Range(1, 5), ()):
        with pytest.raises(TypeError, match="parameter 1 is a"):
            con.execute("select ?", [value])


def test_ranges_of_other_types_are_text(con: onecopy.Connection) -> None:
    con.execute("create type floatrange as range (subtype = float8)")
    assert con.execute("select '[1,2.5)'::floatrange").fetchall() == [("[1,2.5)",)]


def test_far_bounds_are_an_error_or_text(con: onecopy.Connection, postgres_native: Database) -> None:
    sql = "select '[2026-03-01,infinity)'::daterange as x, '{}'::datemultirange as y, '[2026-03-01,)'::daterange as z"
    with pytest.raises(onecopy.DataError, match="infinity"):
        con.execute(sql).fetchall()
    assert con.execute(sql).json().read() == b'[{"x":"[2026-03-01,infinity)","y":"{}","z":"[2026-03-01,)"}]'
    with onecopy.connect(postgres_native.odbc, datetime_range="text") as far:
        expected = ("[2026-03-01,infinity)", (), Range(datetime.date(2026, 3, 1)))
        assert far.execute(sql).fetchall() == [expected]
        many = far.execute("select '{(,\"0044-03-15 BC\")}'::datemultirange").fetchall()
        assert many == [('{(,"0044-03-15 BC")}',)]
