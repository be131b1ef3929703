"""`executemany` of an INSERT: several rows are sent in one INSERT if the result is the same."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import pytest

import onecopy
from tests.conftest import Database

PREPARED = "select count(*) from pg_prepared_statements where statement like '%), ($%'"


@pytest.fixture
def con(postgres_native: Database) -> Iterator[onecopy.Connection]:
    connection = onecopy.connect(postgres_native.odbc)
    yield connection
    connection.close()


def repeats(con: onecopy.Connection) -> bool:
    """Returns true if the session has prepared an INSERT of several rows."""
    return con.execute(PREPARED).fetchall() != [(0,)]


def is_single(con: onecopy.Connection) -> bool:
    """Returns true if the session has prepared only INSERTs of one row. They are not prepared for
    rows that are inserted by COPY."""
    inserts = "select count(*) from pg_prepared_statements where statement ilike 'insert%'"
    return not repeats(con) and con.execute(inserts).fetchall() != [(0,)]


@pytest.mark.parametrize("n_rows", [1, 127, 128, 129, 159, 160, 1023, 1024, 1025, 1055, 2048, 5000])
@pytest.mark.parametrize("prepare", ["auto", "never"])
def test_each_row_is_inserted_once_in_order(postgres_native: Database, n_rows: int, prepare: Any) -> None:
    con = onecopy.connect(postgres_native.odbc, prepare=prepare)
    con.execute("create temporary table numbered (id serial, a int, b text, c int default 7)")
    rows = [[i, None if i % 5 == 0 else f"text {i}"] for i in range(n_rows)]
    cur = con.executemany("insert into numbered (a, b, c) values (?, ?, default)", rows)
    assert cur.rowcount == n_rows
    found = con.execute("select id, a, b, c from numbered order by id").fetchall()
    assert found == [(i + 1, a, b, 7) for i, (a, b) in enumerate(rows)]
    assert repeats(con) == (n_rows >= 128 and prepare == "auto")
    con.close()


def test_values_have_the_types_of_their_columns(con: onecopy.Connection) -> None:
    columns = "u uuid, d date, j jsonb, n numeric(10, 2), s smallint, t timestamptz, b bytea, a int[], v varchar(9)"
    one = [
        "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11",
        "2024-02-29",
        '{"a": 1}',
        "12.345",
        5,
        "2024-01-01 00:00+00",
        b"\0\xff",
        [1, None],
        "x",
    ]
    con.execute(f"create temporary table typed ({columns})")
    marks = ", ".join(["?"] * len(one))
    con.executemany(f"insert into typed values ({marks})", [one, [None] * len(one)] * 100)
    assert repeats(con)
    many = con.execute("select * from typed").fetchall()
    con.execute("delete from typed")
    con.execute(f"insert into typed values ({marks})", one)
    single = con.execute("select * from typed").fetchall()
    assert many == [single[0], (None,) * len(one)] * 100


def test_types_that_differ_between_batches(con: onecopy.Connection) -> None:
    con.execute("create temporary table mixed (a double precision)")
    values = [*range(1024), *(n / 4 for n in range(1024)), *[None] * 200, *(2**40 + n for n in range(300))]
    con.executemany("insert into mixed values (?)", [[value] for value in values])
    assert [a for (a,) in con.execute("select a from mixed").fetchall()] == values


@pytest.mark.parametrize("autocommit", [True, False])
@pytest.mark.parametrize("failing", [0, 31, 32, 700, 1500, 1999])
def test_a_row_that_fails_is_named(postgres_native: Database, autocommit: bool, failing: int) -> None:
    con = onecopy.connect(postgres_native.odbc, autocommit=autocommit)
    con.execute("create temporary table checked (a int check (a <> 5000), b int)")
    con.commit()
    rows = [[i, i] for i in range(2000)]
    rows[failing][0] = 5000
    with pytest.raises(onecopy.IntegrityError, match="violates check constraint") as raised:
        con.executemany("insert into checked values (?, ?)", rows)
    assert raised.value.row == failing
    con.rollback()
    assert con.execute("select count(*) from checked").fetchall() == [(0,)]
    con.close()


def test_a_value_that_cannot_be_sent_names_its_row(con: onecopy.Connection) -> None:
    con.execute("create temporary table texts (a text)")
    rows = [["x"]] * 300
    with pytest.raises(onecopy.DataError, match="NUL") as raised:
        con.executemany("insert into texts values (?)", [*rows, ["a\0b"]])
    assert raised.value.row == 300


def test_rows_before_in_the_transaction_stay_after_an_error_that_is_rolled_back_to(con: onecopy.Connection) -> None:
    con.execute("create temporary table kept (a int primary key)")
    con.execute("insert into kept values (-1)")
    con.execute("savepoint here")
    with pytest.raises(onecopy.IntegrityError) as raised:
        con.executemany("insert into kept values (?)", [[i % 150] for i in range(200)])
    assert raised.value.row == 150
    con.execute("rollback to here")
    assert con.execute("select a from kept").fetchall() == [(-1,)]


@pytest.mark.parametrize(
    "definition",
    [
        "create function noted() returns trigger language plpgsql as $$ begin insert into notes values (1); "
        "return null; end $$; create trigger noted after insert on target for each statement "
        "execute function noted()",
        "create rule noted as on insert to target do also insert into notes values (1)",
    ],
    ids=["trigger", "rule"],
)
def test_effects_of_each_statement_are_kept(con: onecopy.Connection, definition: str) -> None:
    con.execute("create schema own")
    con.execute("set search_path to own")
    con.execute("create table notes (n int)")
    con.execute("create table target (a int)")
    for piece in definition.split("$$; "):
        con.execute(piece + "$$" if piece.count("$$") == 1 else piece)
    con.executemany("insert into target values (?)", [[i] for i in range(300)])
    assert con.execute("select count(*) from notes").fetchall() == [(300,)]
    assert is_single(con)
    con.rollback()


@pytest.mark.parametrize("table", ["plain", "partitioned", "partition"])
@pytest.mark.parametrize("when", ["before", "after"])
def test_row_triggers_see_each_row(con: onecopy.Connection, when: str, table: str) -> None:
    con.execute("create schema own")
    con.execute("set search_path to own")
    con.execute("create table notes (a int, counted int)")
    con.execute(f"create table target (a int) {'' if table == 'plain' else 'partition by range (a)'}")
    if table != "plain":
        con.execute("create table part partition of target default")
    con.execute(
        "create function noted() returns trigger language plpgsql as $$ begin "
        "insert into notes values (new.a, (select count(*) from target)); return new; end $$"
    )
    on = "part" if table == "partition" else "target"
    con.execute(f"create trigger noted {when} insert on {on} for each row execute function noted()")
    con.executemany("insert into target (a) values (?)", [[i] for i in range(300)])
    assert is_single(con)
    first = 0 if when == "before" else 1
    expected = [(i, i + first) for i in range(300)]
    assert con.execute("select a, counted from notes order by a").fetchall() == expected
    con.rollback()


def test_a_table_with_a_foreign_key_has_no_triggers_of_its_own(con: onecopy.Connection) -> None:
    con.execute("create temporary table parent (a int primary key)")
    con.execute("create temporary table child (a int references parent)")
    con.executemany("insert into parent values (?)", [[i] for i in range(300)])
    con.executemany("insert into child values (?)", [[i] for i in range(300)])
    assert con.execute("select count(*) from child").fetchall() == [(300,)]
    assert not repeats(con) and not is_single(con)
    with pytest.raises(onecopy.IntegrityError) as raised:
        con.executemany("insert into child values (?)", [[i] for i in range(200, 400)])
    assert raised.value.row == 100
    con.rollback()


def test_a_foreign_key_of_the_table_itself_is_checked_for_each_row(con: onecopy.Connection) -> None:
    con.execute("create temporary table tree (a int primary key, parent int references tree)")
    con.executemany("insert into tree values (?, ?)", [[-1 - i, None] for i in range(300)])
    assert is_single(con)
    rows = [[i, i + 1 if i == 150 else None] for i in range(300)]
    with pytest.raises(onecopy.IntegrityError) as raised:
        con.executemany("insert into tree values (?, ?)", rows)
    assert raised.value.row == 150
    con.rollback()


FLOATS: list[Any] = [0, 1, -7, 2.5, None, -0.0, 2**31, 2**53, -(2**53), 2**53 + 1, 2**62 + 1, 0.1, 16_777_217, 1e300]
DECIMALS: list[Any] = [0, -1, Decimal("0.125"), None, 2**62 + 1, Decimal("-1e20"), Decimal("NaN"), 12345]


@pytest.mark.parametrize(
    ("declared", "values", "is_combined"),
    [
        ("double precision", FLOATS, False),
        ("double precision", [v for v in FLOATS if not isinstance(v, int) or abs(v) <= 2**53], True),
        ("real", [0, 0.1, 2.5, None, 16_777_217, 16_777_217.0], True),
        ("numeric", [*DECIMALS, Decimal("1e-30")], True),
        ("numeric", [0.1, 1 / 3, 5, Decimal("0.1")], False),
        ("numeric(30, 2)", DECIMALS, True),
        ("text", [0, 0.5, 10**6, 1e20, 2**53], False),
        ("bigint", [0, 0.5, 1.5, 2.5, 2**53 + 1], False),
    ],
)
def test_numbers_of_several_types_are_stored_as_by_execute(
    con: onecopy.Connection, declared: str, values: list[Any], is_combined: bool
) -> None:
    con.execute(f"create temporary table mixed (k int, x {declared})")
    con.execute(f"create temporary table single (k int, x {declared})")
    rows = [(k, values[k % len(values)]) for k in range(1500)]
    assert con.executemany("insert into mixed values (?, ?)", rows).rowcount == 1500
    assert repeats(con) == is_combined
    for row in rows[: len(values)]:
        con.execute("insert into single values (?, ?)", row)
    one = [x for (x,) in con.execute("select x::text from single order by k")]
    many = [x for (x,) in con.execute("select x::text from mixed order by k")]
    assert many == [one[k % len(values)] for k in range(1500)]


def test_a_number_that_fails_among_others_is_named(con: onecopy.Connection) -> None:
    con.execute("create temporary table checked (x double precision check (x <> 1001))")
    with pytest.raises(onecopy.IntegrityError) as raised:
        con.executemany("insert into checked values (?)", [[k if k % 2 else k + 0.5] for k in range(1500)])
    assert raised.value.row == 1001
