"""`executemany`, which sends rows in groups: the rows, the error and the state afterwards are those
of one `execute` per row."""

from __future__ import annotations

import datetime
import uuid
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import Any

import pytest

import onecopy
from tests.conftest import Database

pytestmark = pytest.mark.filterwarnings("ignore::onecopy.DriverWarning")

#: Columns of the table: each database's name of the type, and values of it.
TYPES = {
    "small": ("integer", "integer"),
    "large": ("bigint", "bigint"),
    "exact": ("numeric(20,6)", "decimal(20,6)"),
    "near": ("double precision", "double"),
    "word": ("varchar(200)", "varchar(200)"),
    "story": ("text", "longtext"),
    "raw": ("bytea", "longblob"),
    "day": ("date", "date"),
    "clock": ("time(6)", "time(6)"),
    "moment": ("timestamp(6)", "datetime(6)"),
}
ALPHABETS = ("abc xyz", "Zürich é", "Москва", "東京都", "tea 🍵🌱", 'it\'s \\ "q" $$ ? :x %s \n\t', "'; -- \\'")


def _value(column: str, draw: Random) -> Any:
    if draw.random() < 0.15:
        return None
    match column:
        case "small":
            return draw.randrange(-(2**31), 2**31)
        case "large":
            return draw.choice((draw.randrange(100), draw.randrange(-(2**63), 2**63)))
        case "exact":
            return Decimal(draw.randrange(-(10**12), 10**12)).scaleb(-draw.choice((0, 2, 2, 2, 6)))
        case "near":
            return draw.choice((draw.uniform(-1e6, 1e6), float(draw.randrange(10))))
        case "word":
            return "".join(draw.choices(draw.choice(ALPHABETS), k=draw.randrange(40)))
        case "story":
            return draw.choice(ALPHABETS) * draw.choice((0, 1, 10, 100, 3000))
        case "raw":
            return draw.randbytes(draw.choice((0, 1, 40, 9000)))
        case "day":
            return datetime.date(draw.randrange(1, 10_000), 1, 1) + datetime.timedelta(days=draw.randrange(300))
        case "clock":
            return datetime.time(draw.randrange(24), 5, 6, draw.choice((0, 120_000)))
        case _:
            return datetime.datetime(2000, 1, 1) + datetime.timedelta(
                seconds=draw.randrange(10**9), microseconds=draw.choice((0, 0, 123_456))
            )


@pytest.fixture(params=["postgres_native", "postgres", "postgres_ansi", "mariadb"])
def con(request: pytest.FixtureRequest) -> Iterator[onecopy.Connection]:
    """A connection with an empty table ``many``, for each database that supports parameter
    arrays."""
    database: Database = request.getfixturevalue(request.param)
    connection = onecopy.connect(database.odbc)
    place = 1 if request.param == "mariadb" else 0
    columns = ", ".join(f"{name} {types[place]}" for name, types in TYPES.items())
    connection.execute("drop table if exists many")
    end = " default charset utf8mb4" if place else ""
    connection.execute(f"create table many (id integer primary key, {columns}){end}")
    connection.commit()
    yield connection
    connection.rollback()
    connection.execute("drop table if exists many")
    connection.commit()
    connection.close()


INSERT = f"insert into many values ({', '.join('?' * (1 + len(TYPES)))})"


def _rows(n: int, seed: int) -> list[tuple[Any, ...]]:
    draw = Random(seed)
    return [(k, *(_value(column, draw) for column in TYPES)) for k in range(n)]


def _is_native(con: onecopy.Connection) -> bool:
    """Returns true for PostgreSQL's native protocol.

    With it a failed statement ends the transaction, while psqlodbc sets savepoints.
    """
    return con.driver_name == "onecopy"


def _kept(con: onecopy.Connection) -> list[tuple[Any, ...]]:
    kept: list[tuple[Any, ...]] = con.execute("select * from many order by id").fetchall()
    return kept


@pytest.mark.parametrize("seed", range(6))
def test_slices_of_rows_have_the_effect_of_single_rows(con: onecopy.Connection, seed: int) -> None:
    rows = _rows(300, seed)
    for row in rows:
        con.execute(INSERT, row)
    wanted = _kept(con)
    con.rollback()
    assert con.executemany(INSERT, iter(rows)).rowcount == 300
    assert _kept(con) == wanted


def test_rows_of_one_shape_in_several_slices(con: onecopy.Connection) -> None:
    sql = "insert into many (id, word, story) values (?, ?, ?)"
    rows = [(k, f"word {k} é東🍵", "long " * 500) for k in range(3000)]
    assert con.executemany(sql, rows).rowcount == 3000
    assert con.execute("select id, word, story from many order by id").fetchall() == rows


@pytest.mark.parametrize("autocommit", [False, True])
@pytest.mark.parametrize("at", [0, 3, 40, 1500, 2999])
def test_a_row_that_fails_is_named_and_later_ones_are_not_executed(
    con: onecopy.Connection, at: int, autocommit: bool
) -> None:
    con.autocommit = autocommit
    con.execute("insert into many (id) values (100000)")
    con.commit()
    rows = [(k if k != at else 100_000, f"w{k}") for k in range(3000)]
    with pytest.raises(onecopy.IntegrityError) as failed:
        con.executemany("insert into many (id, word) values (?, ?)", rows)
    assert failed.value.row == at and failed.value.sqlstate.startswith("23")
    is_all_undone = _is_native(con)
    if is_all_undone and not autocommit:
        with pytest.raises(onecopy.Error, match="current transaction is aborted"):
            con.execute("select 1")
        con.rollback()
    kept = [row[0] for row in con.execute("select id from many order by id").fetchall()]
    assert kept == ([100_000] if is_all_undone else [*range(at), 100_000])


def test_a_value_that_does_not_fit_is_a_data_error_of_its_row(con: onecopy.Connection) -> None:
    rows = [(k, "x" * (201 if k == 77 else 10)) for k in range(200)]
    with pytest.raises(onecopy.DataError) as failed:
        con.executemany("insert into many (id, word) values (?, ?)", rows)
    assert failed.value.row == 77
    if _is_native(con):
        con.rollback()
    else:
        assert con.execute("select count(*) from many").fetchone() == (77,)


def test_a_wrong_number_of_values_names_its_row(con: onecopy.Connection) -> None:
    rows: list[tuple[Any, ...]] = [(k, "x") for k in range(50)]
    rows[20] = (20,)
    with pytest.raises(onecopy.ProgrammingError) as failed:
        con.executemany("insert into many (id, word) values (?, ?)", rows)
    assert failed.value.row == 20
    assert con.execute("select count(*) from many").fetchone() == (20,)


def test_exceptions_of_the_iterable_are_passed_on(con: onecopy.Connection) -> None:
    def rows() -> Iterator[tuple[int, str]]:
        yield from ((k, "x") for k in range(10))
        raise LookupError("no more")

    with pytest.raises(LookupError, match="no more"):
        con.executemany("insert into many (id, word) values (?, ?)", rows())


@pytest.mark.parametrize("n", [10, 5000])
def test_rows_may_be_generated_with_the_same_connection(con: onecopy.Connection, n: int) -> None:
    def rows() -> Iterator[tuple[int, str]]:
        for k in range(n):
            if k % 1000 == 3:
                assert con.execute("select count(*) from many").fetchone() is not None
            yield (k, f"w{k}")

    assert con.executemany("insert into many (id, word) values (?, ?)", rows()).rowcount == n
    doubled = con.execute("select id + 100000, word from many order by id")
    assert con.executemany("insert into many (id, word) values (?, ?)", doubled).rowcount == n
    assert con.execute("select count(*), count(distinct word) from many").fetchone() == (2 * n, n)


@pytest.mark.parametrize("name", ["postgres_native", "postgres", "mariadb"])
def test_a_connection_closed_by_the_iterable_is_an_error(request: pytest.FixtureRequest, name: str) -> None:
    con = onecopy.connect(request.getfixturevalue(name).odbc)
    con.execute("create temporary table closed (id integer)")

    def rows() -> Iterator[tuple[int]]:
        for k in range(3000):
            if k == 2500:
                con.close()
            yield (k,)

    with pytest.raises(onecopy.InterfaceError, match="closed"):
        con.executemany("insert into closed values (?)", rows())


def test_batches_are_bounded_by_their_size(con: onecopy.Connection) -> None:
    # One megabyte each: only a few are generated in advance of the one that fails.
    made = []

    def rows() -> Iterator[tuple[int, str]]:
        for k in range(200):
            made.append(k)
            yield (0, "x" * (1 << 20))

    with pytest.raises(onecopy.IntegrityError) as failed:
        con.executemany("insert into many (id, story) values (?, ?)", rows())
    assert failed.value.row == 1
    assert len(made) < 10


def test_updates_and_deletes_are_counted(con: onecopy.Connection) -> None:
    con.executemany("insert into many (id, small) values (?, ?)", [(k, k % 10) for k in range(500)])
    cur = con.executemany("update many set word = ? where small = ?", [(f"w{k}", k) for k in range(12)])
    assert cur.rowcount == 500
    assert con.executemany("delete from many where id = ?", [(k,) for k in range(490, 510)]).rowcount == 10
    assert con.execute("select count(*) from many where word = 'w3'").fetchone() == (49,)


def test_rows_may_be_mappings(con: onecopy.Connection) -> None:
    rows = [{"word": f"w{k}", "id": k, "besides": None} for k in range(30)]
    assert con.executemany("insert into many (id, word) values (:id, :word)", rows).rowcount == 30
    assert con.execute("select word from many where id = %(id)s", {"id": 7}).fetchone() == ("w7",)


def test_a_row_of_another_kind_than_the_first_is_refused(con: onecopy.Connection) -> None:
    rows: list[Any] = [{"id": 1}, (2,)]
    with pytest.raises(TypeError, match="first row of parameters is a mapping, this one is a `tuple`"):
        con.executemany("insert into many (id) values (:id)", rows)


@pytest.mark.parametrize("autocommit", [False, True])
def test_the_cursor_of_another_statement_stays_open(con: onecopy.Connection, autocommit: bool) -> None:
    con.executemany("insert into many (id, word) values (?, ?)", [(k, f"word {k}") for k in range(20_000)])
    con.commit()
    con.autocommit = autocommit
    cur = con.execute("select id from many order by id")
    first = cur.fetchmany(100)
    assert con.executemany("insert into many (id) values (?)", [(k,) for k in range(20_000, 20_050)]).rowcount == 50
    assert [row[0] for row in first + cur.fetchall()] == list(range(20_000))
    assert con.execute("select count(*) from many").fetchone() == (20_050,)


def test_uuids_and_columns_of_nulls(con: onecopy.Connection) -> None:
    key = uuid.UUID(int=7)
    rows = [(k, None, str(key)) for k in range(20)]
    con.executemany("insert into many (id, story, word) values (?, ?, ?)", rows)
    assert con.execute("select distinct story, word from many").fetchall() == [(None, str(key))]


def test_inserts_that_return_rows_run_one_by_one(con: onecopy.Connection) -> None:
    rows = [(k, "x") for k in range(10)]
    assert con.executemany("insert into many (id, word) values (?, ?) returning id", rows).rowcount in (10, -1)
    assert con.execute("select count(*) from many").fetchone() == (10,)


def test_slices_and_single_rows_in_a_transaction_leave_no_savepoint(psqlodbc: Database) -> None:
    with onecopy.connect(psqlodbc.odbc, autocommit=False) as con:
        con.execute("create temporary table mixed (n int, d numeric)")
        # A slice has decimals of one scale; the rows between the slices run one by one.
        rows = [(i, Decimal(i) / 100 if i % 9 == 0 else Decimal(i)) for i in range(1, 400)]
        con.executemany("insert into mixed values (?, ?)", rows)
        # Each savepoint after which rows were inserted has a transaction id, and so a lock.
        sql = "select count(*) from pg_locks where locktype = 'transactionid' and pid = pg_backend_pid()"
        assert con.execute(sql).fetchall()[0][0] <= 4
        assert con.execute("select * from mixed order by n").fetchall() == rows
        con.rollback()


@pytest.mark.parametrize("at", [0, 5])
def test_bytes_in_a_text_column_are_those_of_a_single_execution(postgres: Database, at: int) -> None:
    con = onecopy.connect(postgres.odbc)
    con.execute("create temporary table texts (id integer, word varchar(40), raw bytea)")
    con.commit()
    rows: list[tuple[int, Any, bytes]] = [(k, b"xyz" if k == at else "abc", b"\0\xff") for k in range(10)]
    try:
        for row in rows:
            con.execute("insert into texts values (?, ?, ?)", row)
        stored = con.execute("select * from texts order by id").fetchall()
        con.rollback()
        con.executemany("insert into texts values (?, ?, ?)", rows)
        assert con.execute("select * from texts order by id").fetchall() == stored
    except onecopy.DatabaseError:
        con.rollback()
        with pytest.raises((onecopy.ProgrammingError, onecopy.DataError)):
            con.executemany("insert into texts values (?, ?, ?)", rows)
    con.rollback()
    con.executemany("insert into texts values (?, ?, ?)", [(k, "abc", raw) for k, _, raw in rows])
    assert con.execute("select distinct word, raw from texts").fetchall() == [("abc", b"\0\xff")]
    con.close()


@pytest.fixture(params=["postgres_native", "postgres", "mariadb", "sqlite"])
def target(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The connection string of a database in which INSERT and DELETE can return rows.

    The database has an empty table ``returned``.
    """
    string = f"sqlite:{tmp_path / 'returned.db'}"
    if request.param != "sqlite":
        database: Database = request.getfixturevalue(request.param)
        string = database.odbc
    end = " default charset utf8mb4" if request.param == "mariadb" else ""
    with onecopy.connect(string, autocommit=True) as con:
        con.execute("drop table if exists returned")
        con.execute(f"create table returned (id integer primary key, name varchar(100)){end}")
    return string


INSERT_RETURNING = "insert into returned (id, name) values (?, ?) returning id, name"


def _results(cur: onecopy.Cursor) -> list[list[Any]]:
    results = [cur.fetchall()]
    while cur.nextset():
        results.append(cur.fetchall())
    return results


def test_rows_that_many_statements_return_are_consecutive_results(target: str) -> None:
    con = onecopy.connect(target)
    rows = [(1, "Ærø"), (2, None), (3, "東京" * 20)]
    cur = con.cursor().executemany(INSERT_RETURNING, iter(rows))
    assert [column[0] for column in cur.description or ()] == ["id", "name"]
    assert cur.rowcount == 3
    assert _results(cur) == [[row] for row in rows]
    assert cur.nextset() is None
    con.rollback()
    # Parameters as columns, and rows in another format.
    cur = con.cursor().executemany(INSERT_RETURNING, columns=[[4, 5, 6], ["a", "b", "c"]])
    assert b"".join(cur.json()) == b'[{"id":4,"name":"a"}]'
    assert con.execute("select count(*) from returned").fetchone() == (3,)
    con.close()


@pytest.mark.parametrize("autocommit", [False, True])
def test_an_error_among_statements_that_return_rows_names_its_row(target: str, autocommit: bool) -> None:
    con = onecopy.connect(target, autocommit=autocommit)
    with pytest.raises(onecopy.IntegrityError) as failed:
        con.cursor().executemany(INSERT_RETURNING, [(1, "a"), (2, "b"), (1, "c")])
    assert failed.value.row == 2
    assert con.autocommit is autocommit
    con.rollback()
    assert con.execute("select count(*) from returned").fetchone() == (0,)
    con.close()


def test_statements_that_return_no_row_are_empty_results(target: str) -> None:
    con = onecopy.connect(target)
    con.executemany(INSERT_RETURNING, [(1, "a"), (2, "b")])
    cur = con.cursor().executemany("delete from returned where id = ? returning name", [[2], [7], [1]])
    assert cur.rowcount == 2
    assert _results(cur) == [[("b",)], [], [("a",)]]
    cur = con.cursor().executemany(INSERT_RETURNING, [])
    assert cur.rowcount == 0
    assert cur.description is None

    # An exception of the iterable is passed on, and the rows before it are in the transaction.
    def rows() -> Iterator[tuple[int, str]]:
        yield 1, "a"
        raise LookupError("no more")

    with pytest.raises(LookupError, match="no more"):
        con.cursor().executemany(INSERT_RETURNING, rows())
    assert con.execute("select count(*) from returned").fetchone() == (1,)
    con.close()


def test_results_of_many_statements_are_read_as_columns_and_one_by_one(target: str) -> None:
    con = onecopy.connect(target)
    rows = [(k, f"name {k}") for k in range(50)]
    cur = con.cursor().executemany(INSERT_RETURNING, rows)
    found = [cur.fetchone()]
    while cur.nextset():
        found += cur.fetchmany(10)
    assert found == rows
    cur = con.cursor().executemany("delete from returned where id < ? returning id", [[20], [50]])
    assert sorted(row[0] for row in cur) == list(range(20))
    assert cur.nextset()
    assert sorted(memoryview(cur.fetch_columns()[0]).tolist()) == list(range(20, 50))
    con.close()
