"""`insert_arrow` into PostgreSQL: by a binary COPY if it supports the values, otherwise by
INSERT."""

from __future__ import annotations

import datetime as dt
import decimal
import random
import uuid
from collections.abc import Iterator
from typing import Any

import pyarrow
import pytest

import onecopy
from tests.conftest import Database

#: More than one batch of parameters, which is what a COPY is used for.
N_ROWS = 5_000


@pytest.fixture
def con(postgres_native: Database) -> Iterator[onecopy.Connection]:
    connection = onecopy.connect(postgres_native.odbc)
    yield connection
    connection.close()


#: For each SQL type its Arrow type, and a function that generates a random value.
COLUMNS: dict[str, tuple[Any, Any]] = {
    "boolean": (pyarrow.bool_(), lambda r: r.random() < 0.5),
    "smallint": (pyarrow.int16(), lambda r: r.randint(-(2**15), 2**15 - 1)),
    "integer": (pyarrow.int32(), lambda r: r.randint(-(2**31), 2**31 - 1)),
    "bigint": (pyarrow.int64(), lambda r: r.choice([0, -1, 2**63 - 1, -(2**63), r.randint(-(2**40), 2**40)])),
    "real": (pyarrow.float32(), lambda r: r.choice([0.0, -0.5, 1e30, float("inf"), float("nan")])),
    "double precision": (pyarrow.float64(), lambda r: r.choice([r.random(), -1e300, 5e-324, float("-inf")])),
    "numeric": (
        pyarrow.decimal128(38, 9),
        lambda r: decimal.Decimal(r.randint(-(10 ** r.randint(1, 29)), 10 ** r.randint(1, 29))) / 10**9,
    ),
    "numeric(12, 2)": (pyarrow.decimal128(12, 2), lambda r: decimal.Decimal(r.randint(-(10**10), 10**10)) / 100),
    "text": (pyarrow.string(), lambda r: r.choice(["", "é", "日本", "𝄞", "x" * 300, "a\tb\\n"])),
    "varchar(20)": (pyarrow.large_string(), lambda r: r.choice(["", "Zürich", "y" * 20])),
    "char(5)": (pyarrow.string(), lambda r: r.choice(["", "ab", "abcde"])),
    "bytea": (pyarrow.binary(), lambda r: r.randbytes(r.randint(0, 40))),
    "uuid": (pyarrow.uuid(), lambda r: uuid.UUID(bytes=r.randbytes(16)).bytes),
    "date": (pyarrow.date32(), lambda r: dt.date.fromordinal(r.randint(1, 3_652_059))),
    "time": (
        pyarrow.time64("us"),
        lambda r: (dt.datetime.min + dt.timedelta(microseconds=r.randrange(86_400_000_000))).time(),
    ),
    "timestamp": (
        pyarrow.timestamp("us"),
        lambda r: dt.datetime(1, 1, 1) + dt.timedelta(microseconds=r.randrange(10**17)),
    ),
    "timestamptz": (
        pyarrow.timestamp("us", "UTC"),
        lambda r: dt.datetime(2, 1, 1, tzinfo=dt.timezone.utc) + dt.timedelta(microseconds=r.randrange(10**17)),
    ),
    "json": (pyarrow.string(), lambda r: r.choice(['{"a": 1}', "[]", "null", '"é"'])),
    "jsonb": (pyarrow.string(), lambda r: r.choice(['{"a": 1}', "[]", "null", '"é"'])),
    "interval": (pyarrow.string(), lambda r: r.choice(["1 day", "-2 mons"])),
    "int4range": (pyarrow.string(), lambda r: "[1,5)"),
}


def table_of(columns: list[str], seed: int) -> Any:
    random_values = random.Random(seed)
    made = {}
    for i, name in enumerate(columns):
        data_type, value = COLUMNS[name]
        values = [None if random_values.random() < 0.1 else value(random_values) for _ in range(N_ROWS)]
        made[f"c{i}"] = pyarrow.array(values, data_type)
    return pyarrow.table({"n": pyarrow.array(range(N_ROWS), pyarrow.int32())} | made)


def create(con: onecopy.Connection, name: str, columns: list[str]) -> None:
    types = "".join(f", c{i} {column}" for i, column in enumerate(columns))
    con.execute(f"create temporary table {name} (n integer{types})")


@pytest.mark.parametrize(
    "columns", [[name] for name in COLUMNS] + [list(COLUMNS)], ids=lambda c: c[0] if len(c) == 1 else "all"
)
def test_rows_are_those_of_insert(con: onecopy.Connection, columns: list[str]) -> None:
    table = table_of(columns, seed=len(columns))
    create(con, "copied", columns)
    create(con, "inserted", columns)
    assert con.cursor().insert_arrow("copied", table).rowcount == N_ROWS
    values = ", ".join("?" for _ in table.column_names)
    assert con.cursor().insert_arrow(f"insert into inserted values ({values})", table).rowcount == N_ROWS
    # Types without equality are compared as text.
    names = ", ".join(f"c{i}::text" for i in range(len(columns)))
    copied, inserted = (
        con.execute(f"select n, {names} from {name} order by n").fetchall() for name in ("copied", "inserted")
    )
    assert len(copied) == N_ROWS and copied == inserted


def test_values_without_a_binary_form_are_inserted_between(con: onecopy.Connection) -> None:
    con.execute("create temporary table mixed (n integer, x smallint)")
    # Out of the range of the column only in the last rows: the server reports it, with the row.
    numbers = [*range(3_000), 40_000]
    table = pyarrow.table({"n": range(3_001), "x": pyarrow.array(numbers, pyarrow.int32())})
    with pytest.raises(onecopy.DataError) as caught:
        con.cursor().insert_arrow("mixed", table)
    assert (caught.value.row, caught.value.sqlstate) == (3_000, "22003")
    con.rollback()
    con.execute("create temporary table mixed (n integer, x numeric)")
    floats = pyarrow.array([None] * 2_000 + [0.1] * 1_000 + [None] * 2_000, pyarrow.float64())
    cur = con.cursor().insert_arrow("mixed", pyarrow.table({"n": range(5_000), "x": floats}))
    assert cur.rowcount == 5_000
    assert con.execute("select count(*), count(x), sum(x), sum(n) from mixed").fetchall() == [
        (5_000, 1_000, decimal.Decimal("100.0"), sum(range(5_000)))
    ]


@pytest.mark.parametrize("autocommit", [False, True])
def test_a_row_that_is_refused_is_named_and_nothing_stays(postgres_native: Database, autocommit: bool) -> None:
    con = onecopy.connect(postgres_native.odbc, autocommit=autocommit)
    con.execute("create temporary table refusing (n integer unique, t text check (t <> 'no'))")
    con.commit()
    for bad, sqlstate in (({"n": 7, "t": "x"}, "23505"), ({"n": 9_999, "t": "no"}, "23514")):
        rows = [{"n": i, "t": "x"} for i in range(4_321)] + [bad] + [{"n": 10_000 + i, "t": "x"} for i in range(4_000)]
        with pytest.raises(onecopy.IntegrityError) as caught:
            con.cursor().insert_arrow("refusing", pyarrow.Table.from_pylist(rows))
        assert (caught.value.row, caught.value.sqlstate) == (4_321, sqlstate)
        con.rollback()
        assert con.execute("select count(*) from refusing").fetchall() == [(0,)]
    con.close()


def test_text_with_nul_is_refused_before_it_is_sent(con: onecopy.Connection) -> None:
    con.execute("create temporary table texts (t text)")
    texts = ["x"] * 3_000 + ["a\0b"] + ["x"] * 3_000
    with pytest.raises(onecopy.DataError, match="NUL") as caught:
        con.cursor().insert_arrow("texts", pyarrow.table({"t": texts}))
    assert caught.value.row == 3_000
    con.rollback()
    assert con.execute("select 1").fetchall() == [(1,)]


def test_an_exception_of_the_stream_ends_it_and_the_connection_goes_on(con: onecopy.Connection) -> None:
    con.execute("create temporary table streamed (n integer)")
    con.commit()
    schema = pyarrow.schema([("n", pyarrow.int32())])

    def batches() -> Iterator[Any]:
        for _ in range(3):
            yield pyarrow.record_batch({"n": pyarrow.array(range(2_000), pyarrow.int32())})
        raise LookupError("no more batches")

    reader = pyarrow.RecordBatchReader.from_batches(schema, batches())
    with pytest.raises(onecopy.Error, match="no more batches"):
        con.cursor().insert_arrow("streamed", reader)
    con.rollback()
    assert con.execute("select count(*) from streamed").fetchall() == [(0,)]


RULE = "create rule r as on insert to target do instead insert into base values (new.n)"


@pytest.mark.parametrize(
    "definition",
    [
        "create view target as select * from base",
        "create view target as select * from base; " + RULE,
        "create table target (n integer); " + RULE,
        "create table target (like base); alter table target enable row level security",
        "create table target (n integer) partition by range (n); create table part partition of target default",
        'create table target (n integer, "Ünï""x" integer generated always as (n + 1) stored)',
    ],
    ids=["view", "view with a rule", "table with a rule", "policies", "partitioned", "generated column"],
)
def test_what_accepts_insert_accepts_it(con: onecopy.Connection, definition: str) -> None:
    con.execute("create schema inserts; set search_path to inserts; create table base (n integer)")
    con.execute(definition)
    table = pyarrow.table({"n": pyarrow.array(range(N_ROWS), pyarrow.int32())})
    for name in ("target", "inserts.target"):
        con.cursor().insert_arrow(name, table)
    total = con.execute("select (select count(*) from base) + (select count(*) from target)").fetchall()
    assert total[0][0] in (2 * N_ROWS, 4 * N_ROWS)
    con.rollback()


def test_what_insert_refuses_it_refuses(con: onecopy.Connection) -> None:
    table = pyarrow.table({"n": pyarrow.array(range(N_ROWS), pyarrow.int32())})
    con.execute("create temporary table numbered (n integer generated always as identity)")
    with pytest.raises(onecopy.Error) as caught:
        con.cursor().insert_arrow("numbered", table)
    assert caught.value.sqlstate == "428C9"
    con.rollback()
    with pytest.raises(onecopy.ProgrammingError) as caught:
        con.cursor().insert_arrow("no_such_table", table)
    assert caught.value.sqlstate == "42P01"


def test_triggers_see_each_row_and_it_is_a_copy(con: onecopy.Connection) -> None:
    con.execute("create temporary table watched (n integer); create temporary table seen (query text, n integer)")
    con.execute(
        "create function pg_temp.note() returns trigger language plpgsql as "
        "$$ begin insert into seen values (current_query(), new.n); return new; end $$"
    )
    con.execute("create trigger t before insert on watched for each row execute function pg_temp.note()")
    con.cursor().insert_arrow("watched", pyarrow.table({"n": pyarrow.array(range(N_ROWS), pyarrow.int32())}))
    found = con.execute("select left(query, 4), count(*), sum(n) from seen group by 1").fetchall()
    assert found == [("COPY", N_ROWS, sum(range(N_ROWS)))]


@pytest.mark.parametrize("where", ["plain", "partitioned", "partition"])
@pytest.mark.parametrize("level", ["row", "statement"])
def test_a_trigger_after_a_row_sees_the_rows_before_it(con: onecopy.Connection, level: str, where: str) -> None:
    con.execute("create temporary table seen (n integer, counted integer)")
    con.execute(f"create temporary table watched (n integer) {'' if where == 'plain' else 'partition by range (n)'}")
    if where != "plain":
        con.execute("create temporary table part partition of watched default")
    con.execute(
        "create function pg_temp.note() returns trigger language plpgsql as "
        f"$$ begin insert into seen values ({'new.n' if level == 'row' else 'null'}, (select count(*) from watched)); "
        "return new; end $$"
    )
    on = "part" if where == "partition" else "watched"
    con.execute(f"create trigger t after insert on {on} for each {level} execute function pg_temp.note()")
    con.cursor().insert_arrow("watched", pyarrow.table({"n": pyarrow.array(range(N_ROWS), pyarrow.int32())}))
    counted = [n for (n,) in con.execute("select counted from seen order by counted")]
    # A trigger for each statement is not executed by an INSERT into the parent of its partition.
    is_executed = (level, where) != ("statement", "partition")
    assert counted == (list(range(1, N_ROWS + 1)) if is_executed else [])


def test_nanoseconds_are_truncated(con: onecopy.Connection) -> None:
    last = 86_399_999_999_999
    table = pyarrow.table(
        {
            "t": pyarrow.array([last] * 3, pyarrow.time64("ns")),
            "s": pyarrow.array([last, -1, 999_999_999], pyarrow.timestamp("ns")),
            "z": pyarrow.array([last, -1, 999_999_999], pyarrow.timestamp("ns", "UTC")),
        }
    )
    con.execute("create temporary table z (t time, s timestamp, z timestamptz, x text)")
    con.execute("set timezone = 'UTC'")
    con.cursor().insert_arrow("insert into z (t, s, z) values (?, ?, ?)", table)
    con.cursor().insert_arrow("insert into z (x) values (cast(? as text))", table.select(["t"]))
    rows = con.execute("select t, s::text, z::text from z where s is not null").fetchall()
    time = dt.time(23, 59, 59, 999_999)
    texts = ["1970-01-01 23:59:59.999999", "1969-12-31 23:59:59.999999", "1970-01-01 00:00:00.999999"]
    assert rows == [(time, text, text + "+00") for text in texts]
    assert con.execute("select distinct x from z where s is null").fetchall() == [("23:59:59.999999",)]
