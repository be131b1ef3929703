"""`executemany` of an INSERT into a plain table, which fills it by COPY: the stored values, errors and
counts are those of `execute`."""

from __future__ import annotations

import asyncio
import datetime as dt
import random
import uuid
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import pytest

import onecopy
from onecopy import aio
from tests.conftest import Database
from tests.postgres.test_executemany import is_single, repeats

UTC = dt.timezone.utc


@pytest.fixture
def con(postgres_native: Database) -> Iterator[onecopy.Connection]:
    connection = onecopy.connect(postgres_native.odbc)
    yield connection
    connection.close()


def _moment(draw: random.Random, zone: dt.tzinfo | None) -> dt.datetime:
    return dt.datetime(1, 1, 2, tzinfo=zone) + dt.timedelta(microseconds=draw.randrange(3 * 10**17))


#: Column types, each with a function that draws a parameter for it.
KINDS: dict[str, Any] = {
    "smallint": lambda draw: draw.randrange(-(2**15), 2**15),
    "int": lambda draw: draw.choice([0, -1, draw.randrange(-(2**31), 2**31)]),
    "bigint": lambda draw: draw.choice([5, draw.randrange(-(2**63), 2**63)]),
    "real": lambda draw: draw.choice([1, 0.1, float("nan"), draw.random() * 10 ** draw.randrange(-30, 30)]),
    "double precision": lambda draw: draw.choice([7, 2**53 + 1, float("-inf"), -0.0, draw.random()]),
    "numeric": lambda draw: draw.choice([3, 10**30, Decimal("NaN"), Decimal("1.500"), Decimal("-1e-20"), 0.1]),
    "numeric(12, 2)": lambda draw: draw.choice(
        [1, Decimal("1.005"), Decimal("-123.4"), Decimal(draw.randrange(10**9))]
    ),
    "boolean": lambda draw: draw.choice([True, False, "yes"]),
    "text": lambda draw: draw.choice(["", "a", "Zürich 東京 😀", "\\N", "x" * 3000, 5, 0.5]),
    "varchar(5)": lambda draw: draw.choice(["", "a", "東京 😀", "ab     ", "abcde"]),
    "char(4)": lambda draw: draw.choice(["", "a", "ab  ", "abc     "]),
    "bytea": lambda draw: draw.choice([b"", b"\0\xff", bytearray(b"x"), draw.randbytes(20)]),
    "date": lambda draw: draw.choice([dt.date(1, 1, 1), dt.date(9999, 12, 31), "2024-02-29", "infinity"]),
    "time": lambda draw: draw.choice([dt.time(1, 2, 3, 4), "24:00"]),
    "timestamp": lambda draw: draw.choice([_moment(draw, None), "infinity"]),
    "timestamp(3)": lambda draw: _moment(draw, None),
    "timestamptz": lambda draw: draw.choice([_moment(draw, UTC), _moment(draw, None)]),
    "interval": lambda draw: draw.choice([dt.timedelta(draw.randrange(-9999, 9999), draw.randrange(86400)), "1 mon"]),
    "uuid": lambda draw: draw.choice([uuid.UUID(int=draw.getrandbits(128)), str(uuid.UUID(int=1))]),
    "json": lambda draw: draw.choice(['{"a": 1}', onecopy.Json([1, "é"]), "null"]),
    "jsonb": lambda draw: draw.choice(['{"b":1, "a": 2}', onecopy.Json({"x": None})]),
    "int[]": lambda draw: draw.choice([[], [1, None], "{5}"]),
    "inet": lambda draw: draw.choice(["10.0.0.1", "::1/64"]),
}


@pytest.mark.parametrize("seed", range(30))
def test_values_are_stored_as_by_execute(con: onecopy.Connection, seed: int) -> None:
    draw = random.Random(seed)
    kinds = draw.sample(list(KINDS), draw.randrange(1, 5))
    # In half of the tests, a column has values of one Python type.
    made = [[KINDS[kind](draw) for kind in kinds] for _ in range(draw.choice([1, 300]))]
    rows = [[None if draw.random() < 0.1 else value for value in draw.choice(made)] for _ in range(300)]
    columns = ", ".join(f"c{i} {kind}" for i, kind in enumerate(kinds))
    con.execute("set timezone = 'Europe/Berlin'")
    con.execute(f"create temporary table single (k serial, {columns})")
    con.execute("create temporary table many (like single including all)")
    names = ", ".join(f"c{i}" for i in range(len(kinds)))
    marks = ", ".join("?" * len(kinds))
    for row in rows:
        con.execute(f"insert into single ({names}) values ({marks})", row)
    assert con.executemany(f"insert into many ({names}) values ({marks})", rows).rowcount == len(rows)
    texts = ", ".join(f"c{i}::text" for i in range(len(kinds)))
    stored = con.execute(f"select {texts} from many order by k").fetchall()
    assert stored == con.execute(f"select {texts} from single order by k").fetchall()


@pytest.mark.parametrize("columns", ["", "(a, b)", '(b, "A c", a)', "(a)"])
def test_the_columns_of_the_statement_are_filled(con: onecopy.Connection, columns: str) -> None:
    con.execute("create temporary table target (a int, gone int, b text default 'd', \"A c\" int default 7)")
    con.execute("alter table target drop column gone")
    n = columns.count(",") + 1 if columns else 2
    rows = [[str(i) if name.strip(" ()") == "b" else i for name in (columns or "a, b").split(",")] for i in range(200)]
    con.executemany(f"insert into target {columns} values ({', '.join('?' * n)})", rows)
    assert not repeats(con) and not is_single(con)
    found = con.execute('select a, b, "A c" from target order by a').fetchall()
    expected: Any = {
        "": lambda i: (i, str(i), 7),
        "(a, b)": lambda i: (i, str(i), 7),
        '(b, "A c", a)': lambda i: (i, str(i), i),
        "(a)": lambda i: (i, "d", 7),
    }[columns]
    assert found == [expected(i) for i in range(200)]


@pytest.mark.parametrize("autocommit", [True, False])
@pytest.mark.parametrize(
    ("definition", "sqlstate"),
    [
        ("a int primary key", "23505"),
        ("a int check (a <> 700)", "23514"),
        ("a int, b int generated always as (1 / (a - 700)) stored", "22012"),
        ("a int, b int default null not null", "23502"),
    ],
)
def test_a_refused_row_is_named_and_rows_before_are_kept_in_a_transaction(
    postgres_native: Database, autocommit: bool, definition: str, sqlstate: str
) -> None:
    with onecopy.connect(postgres_native.odbc, autocommit=autocommit) as con:
        con.execute(f"create temporary table target ({definition})")
        rows = [[699] if i == 700 and sqlstate == "23505" else [i] for i in range(2500)]
        with pytest.raises(onecopy.Error) as raised:
            con.executemany("insert into target (a) values (?)", rows)
        assert isinstance(raised.value, onecopy.DatabaseError)
        assert raised.value.sqlstate == sqlstate
        row = 0 if sqlstate == "23502" else 700
        assert raised.value.row == row
        if autocommit:
            assert con.execute("select count(*) from target").fetchall() == [(0,)]
        else:
            with pytest.raises(onecopy.DatabaseError, match="aborted"):
                con.execute("select 1")
            con.rollback()


def test_an_identity_that_is_always_generated_refuses_values(con: onecopy.Connection) -> None:
    con.execute("create temporary table target (a int generated always as identity, b int)")
    with pytest.raises(onecopy.ProgrammingError, match="non-DEFAULT"):
        con.executemany("insert into target values (?, ?)", [[i, i] for i in range(200)])
    con.rollback()
    con.execute("create temporary table target (a int generated always as identity, b int)")
    con.executemany("insert into target (b) values (?)", [[i] for i in range(200)])
    assert con.execute("select sum(a), sum(b) from target").fetchall() == [(20100, 19900)]


@pytest.mark.parametrize(("column", "value"), [("int", True), ("date", 5), ("bytea", 1.5), ("boolean", 1)])
def test_a_type_that_the_column_does_not_have_is_refused(con: onecopy.Connection, column: str, value: Any) -> None:
    con.execute(f"create temporary table target (a {column})")
    for rows in ([[value]] * 200, [[None]] * 150 + [[value]]):
        con.execute("savepoint here")
        with pytest.raises(onecopy.ProgrammingError) as raised:
            con.executemany("insert into target values (?)", rows)
        assert raised.value.sqlstate == "42804"
        con.execute("rollback to here")


def test_declared_types_are_those_of_the_parameters(con: onecopy.Connection) -> None:
    con.execute("create temporary table target (a int)")
    cur = con.cursor()
    cur.setinputsizes([onecopy.STRING])
    with pytest.raises(onecopy.ProgrammingError) as raised:
        cur.executemany("insert into target values (?)", [["1"] for _ in range(200)])
    assert raised.value.sqlstate == "42804"


def test_a_cancelled_batch_is_an_error(postgres_native: Database) -> None:
    with (
        onecopy.connect(postgres_native.odbc) as other,
        onecopy.connect(postgres_native.odbc, query_timeout=0.5) as con,
    ):
        other.execute("create table if not exists locked_copy (a int)")
        other.commit()
        other.execute("lock table locked_copy in exclusive mode")
        with pytest.raises(onecopy.OperationalError) as raised:
            con.executemany("insert into locked_copy values (?)", [[i] for i in range(3000)])
        assert raised.value.sqlstate == "HYT00"
        con.rollback()
        other.rollback()
        con.executemany("insert into locked_copy values (?)", [[i] for i in range(3000)])
        assert con.execute("select count(*) from locked_copy").fetchall() == [(3000,)]
        con.rollback()
        con.execute("drop table locked_copy")
        con.commit()


def test_a_savepoint_of_the_caller_is_kept(con: onecopy.Connection) -> None:
    con.execute("create temporary table target (a int primary key)")
    con.execute("savepoint mine")
    con.executemany("insert into target values (?)", [[i] for i in range(1500)])
    con.execute("rollback to mine")
    assert con.execute("select count(*) from target").fetchall() == [(0,)]
    con.executemany("insert into target values (?)", [[i] for i in range(1500)])
    con.execute("release mine")
    assert con.execute("select count(*) from target").fetchall() == [(1500,)]


def test_on_the_event_loop(postgres_native: Database) -> None:
    async def main() -> None:
        async with await aio.connect(postgres_native.odbc) as con:
            await con.execute("create temporary table target (a int primary key, b text)")
            cur = await con.executemany("insert into target values (?, ?)", [[i, f"t{i}"] for i in range(3000)])
            assert cur.rowcount == 3000
            with pytest.raises(onecopy.IntegrityError) as raised:
                await con.executemany("insert into target values (?, ?)", [[i + 2000, "x"] for i in range(1500)])
            assert raised.value.row == 0
            await con.rollback()

    asyncio.run(main())


def test_a_check_that_reads_the_table_finds_the_rows_before(con: onecopy.Connection) -> None:
    con.execute("create schema own")
    con.execute("set search_path to own")
    con.execute("create table target (a int)")
    con.execute(
        "create function is_new(int) returns bool language plpgsql as "
        "$$ begin return not exists (select from target where a = $1); end $$"
    )
    con.execute("alter table target add check (is_new(a))")
    con.executemany("insert into target values (?)", [[i] for i in range(200)])
    with pytest.raises(onecopy.IntegrityError) as raised:
        con.executemany("insert into target values (?)", [[1000 + i // 2] for i in range(200)])
    assert raised.value.row == 1
    con.rollback()


def test_a_domain_of_a_column_without_value_is_checked(con: onecopy.Connection) -> None:
    con.execute("create domain pg_temp.filled as text not null")
    con.execute("create temporary table target (a int, b pg_temp.filled)")
    with pytest.raises(onecopy.IntegrityError) as raised:
        con.executemany("insert into target (a) values (?)", [[i] for i in range(200)])
    assert (raised.value.sqlstate, raised.value.row) == ("23502", 0)
    con.rollback()


def test_a_limit_of_time_of_the_server_applies_to_each_row(con: onecopy.Connection) -> None:
    con.execute("create temporary table target (a int default 0, b text default pg_sleep(0.004)::text)")
    con.execute("set statement_timeout = 200")
    con.executemany("insert into target (a) values (?)", [[i] for i in range(150)])
    assert con.execute("select count(*) from target").fetchall() == [(150,)]


def test_an_error_of_a_read_only_transaction_names_the_insert(postgres_native: Database) -> None:
    with onecopy.connect(postgres_native.odbc) as con:
        con.execute("create table if not exists written_copy (a int)")
        con.commit()
        con.execute("set transaction read only")
        with pytest.raises(onecopy.DatabaseError, match="cannot execute INSERT") as raised:
            con.executemany("insert into written_copy values (?)", [[i] for i in range(200)])
        assert raised.value.row == 0
        con.rollback()
        con.execute("drop table written_copy")
        con.commit()


def test_a_partition_that_references_its_root_is_filled_row_by_row(con: onecopy.Connection) -> None:
    con.execute("create schema own")
    con.execute("set search_path to own")
    con.execute("create table root (a int primary key, b int references root) partition by range (a)")
    con.execute("create table part partition of root default")
    rows = [[i, i + 1 if i == 150 else None] for i in range(300)]
    with pytest.raises(onecopy.IntegrityError) as raised:
        con.executemany("insert into part values (?, ?)", rows)
    assert raised.value.row == 150
    con.rollback()


def test_a_comment_in_the_name_of_the_table(con: onecopy.Connection) -> None:
    con.execute("create schema own")
    con.execute("create table own.target (a int)")
    con.executemany("insert into own /* mine */ . target values (?)", [[i] for i in range(200)])
    assert con.execute("select count(*) from own.target").fetchall() == [(200,)]
    con.rollback()
