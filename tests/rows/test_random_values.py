"""Random values of each column type of each database in results of several lengths, against an independent client."""

from __future__ import annotations

import csv
import io
import sqlite3
from collections.abc import Iterator
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import bson
import psycopg
import pymysql
import pytest

import onecopy
from tests.conftest import Database
from tests.support import random_values
from tests.support.random_values import ROW_COUNTS, Column, Row

pytestmark = pytest.mark.filterwarnings("ignore::onecopy.DriverWarning")

EPOCH = datetime(1970, 1, 1)


class Client(Protocol):
    """The independent client: psycopg, PyMySQL or sqlite3."""

    def cursor(self) -> Any: ...

    def commit(self) -> None: ...

    def rollback(self) -> None: ...

    def close(self) -> None: ...


class Pair(NamedTuple):
    """Both clients of one database, and the columns of its table."""

    con: onecopy.Connection
    client: Client
    columns: list[Column]

    def read(self, table: str, n_rows: int, *, of_text: bool = False) -> list[Row]:
        """The first rows of a table by the independent client."""
        cur = self.client.cursor()
        cur.execute(random_values.selection(table, self.columns, n_rows, of_text=of_text))
        found = random_values.converted(self.columns, [tuple(row) for row in cur.fetchall()])
        self.client.commit()  # Its locks would keep the other client from dropping the table.
        return found


def _clients(database: Database) -> tuple[Client, list[Column], str]:
    native = database.native
    if database.profile.startswith("postgres"):
        reached = " ".join(f"{'dbname' if k == 'database' else k}='{v}'" for k, v in native.items())
        return psycopg.connect(reached, options="-c timezone=UTC"), random_values.POSTGRES, "%s"
    if database.profile == "mariadb":
        client = pymysql.connect(**native, charset="utf8mb4", init_command="set time_zone = '+00:00'")
        return client, random_values.MARIADB, "%s"
    columns = [column._replace(write="?") for column in random_values.SQLITE_ODBC]
    return sqlite3.connect(native["database"]), columns, "?"


class Tables(NamedTuple):
    """A database whose table of random values is filled."""

    target: str
    client: Client
    columns: list[Column]
    mark: str


def _tables(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Tables:
    if request.param == "sqlite":
        file: Path = tmp_path_factory.mktemp("random") / "values.db"
        columns = [column._replace(write="?") for column in random_values.SQLITE]
        return Tables(f"sqlite:{file}", sqlite3.connect(file), columns, "?")
    database: Database = request.getfixturevalue(request.param)
    return Tables(database.odbc, *_clients(database))


@pytest.fixture(scope="module", params=["postgres", "postgres_ansi", "mariadb", "sqlite_odbc", "sqlite"])
def tables(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tables]:
    """Each database with its table of random values, through each of its drivers."""
    made = _tables(request, tmp_path_factory)
    cur = made.client.cursor()
    cur.execute("drop table if exists random_theirs")
    cur.execute(random_values.definition("random_theirs", made.columns))
    rows = random_values.rows(made.columns, max(ROW_COUNTS))
    cur.executemany(random_values.insertion("random_theirs", made.columns, mark=made.mark), rows)
    made.client.commit()
    yield made
    made.client.rollback()
    for table in ("random_theirs", "random_ours"):
        cur.execute(f"drop table if exists {table}")
    made.client.commit()
    made.client.close()


@pytest.fixture
def pair(tables: Tables) -> Iterator[Pair]:
    """A new connection to each of them, and the independent client."""
    con = onecopy.connect(tables.target)
    if tables.columns is random_values.MARIADB:
        con.execute("set time_zone = '+00:00'")
    yield Pair(con, tables.client, tables.columns)
    con.close()


def select(n_rows: int) -> str:
    """The table's first rows, prepared by the server or not."""
    return f"select * from random_theirs where i < {n_rows} order by i"


def same(got: list[Row], expected: list[Row]) -> None:
    """Rows are equal in value and type."""
    assert got == expected
    for row, wanted in zip(got, expected, strict=True):
        assert [type(value) for value in row] == [type(value) for value in wanted]
        assert str(row) == str(wanted)


@pytest.mark.parametrize("n_rows", ROW_COUNTS)
def test_rows_are_those_of_the_independent_client(pair: Pair, n_rows: int) -> None:
    expected = pair.read("random_theirs", n_rows)
    same(pair.con.execute(select(n_rows)).fetchall(), expected)
    same(list(pair.con.execute(select(n_rows))), expected)
    # Prepared, which MariaDB sends in its binary form; executed again it is kept.
    for _ in range(4):
        prepared = pair.con.execute("select * from random_theirs where i < ? order by i", [n_rows])
        same(prepared.fetchmany(2) + prepared.fetchall(), expected)


@pytest.mark.parametrize("n_rows", ROW_COUNTS)
def test_json_and_csv_are_the_texts_of_those_values(pair: Pair, n_rows: int) -> None:
    expected = pair.read("random_theirs", n_rows, of_text=True)
    from_json = random_values.json_cells(pair.con.execute(select(n_rows)).json().read())
    data = pair.con.execute(select(n_rows)).csv().read().decode()
    _, *from_csv = csv.reader(io.StringIO(data, newline=""))
    for cells, fields, row in zip(from_json, from_csv, expected, strict=True):
        wrong = [
            (column.sql, cell, field, value)
            for column, cell, field, value in zip(
                [Column("i", lambda _: 0), *pair.columns], cells, fields, row, strict=True
            )
            if not (random_values.is_text_of(cell, value) and random_values.is_text_of(field, value))
        ]
        assert not wrong


def _of_bson(value: Any, expected: Any) -> Any:
    """What is expected of a value that pymongo has read, in the form of the rows."""
    match expected, value:
        case Decimal(), bson.Decimal128():
            return value.to_decimal()
        case int(), bson.Decimal128():
            return int(value.to_decimal())
        case time(), str():
            return time.fromisoformat(value)
        case datetime(), datetime():
            return value
    return value


def _in_bson(expected: Any) -> Any:
    """A moment is milliseconds, floored; a date is its midnight."""
    if isinstance(expected, datetime):
        utc = expected.replace(tzinfo=None)
        return EPOCH + (utc - EPOCH) // timedelta(milliseconds=1) * timedelta(milliseconds=1)
    if isinstance(expected, date):
        return datetime.combine(expected, time())
    return expected


@pytest.mark.parametrize("n_rows", ROW_COUNTS)
def test_bson_holds_those_values(pair: Pair, n_rows: int) -> None:
    options: Any = bson.codec_options.CodecOptions(uuid_representation=bson.binary.UuidRepresentation.STANDARD)
    documents = bson.decode_all(pair.con.execute(select(n_rows)).bson().read(), options)
    for document, row in zip(documents, pair.read("random_theirs", n_rows), strict=True):
        values = list(document.values())
        for k, (value, expected) in enumerate(zip(values, row, strict=True)):
            if isinstance(expected, timedelta):
                values[k] = expected  # Its text is compared in JSON.
                assert isinstance(value, str)
            else:
                values[k] = _of_bson(value, expected)
        assert values == [_in_bson(value) for value in row]


def _of_column(column: Any) -> list[Any]:
    """The values of a column that `fetch_columns` gave."""
    if isinstance(column, list):
        return column
    shortest = random_values.shortest_float32 if column.format == "f" else lambda value: value
    mask = column.null_mask or bytes(len(column))
    return [None if null else shortest(v) for v, null in zip(memoryview(column), memoryview(mask), strict=True)]


@pytest.mark.parametrize("n_rows", ROW_COUNTS)
def test_columns_are_those_values(pair: Pair, n_rows: int) -> None:
    expected = pair.read("random_theirs", n_rows)
    # A column of SQLite without a type may hold all of them.
    names = ", ".join(f"c{k}" for k, column in enumerate(pair.columns) if column.sql not in ("", "numeric"))
    sql = select(n_rows).replace("*", f"i, {names}")
    kept = [0, *(k + 1 for k, column in enumerate(pair.columns) if column.sql not in ("", "numeric"))]
    for k, column in zip(kept, pair.con.execute(sql).fetch_columns(), strict=True):
        values = [row[k] for row in expected]
        is_moment = isinstance(column, onecopy.Column) and column.unit is not None
        got = _of_column(column)
        if is_moment:
            assert [value is None for value in got] == [value is None for value in values]
        else:
            assert got == values


@pytest.mark.parametrize("n_rows", [1, 3, 1000])
def test_what_is_written_is_what_the_independent_client_reads(pair: Pair, n_rows: int) -> None:
    pair.con.rollback()
    pair.con.execute("drop table if exists random_ours")
    pair.con.execute(random_values.definition("random_ours", pair.columns))
    pair.con.commit()
    rows = random_values.rows(pair.columns, n_rows)
    pair.con.executemany(random_values.insertion("random_ours", pair.columns, ours=True), rows)
    pair.con.commit()
    same(pair.read("random_ours", n_rows), pair.read("random_theirs", n_rows))


def test_a_hundred_thousand_rows_are_a_hundred_times_a_thousand(pair: Pair) -> None:
    expected = pair.read("random_theirs", 1000)
    hundred = "with recursive s (k) as (select 1 union all select k + 1 from s where k < 100) "
    cur = pair.con.execute(f"{hundred} select random_theirs.* from random_theirs cross join s order by k, i")
    for _ in range(100):
        assert cur.fetchmany(1000) == expected
    assert cur.fetchone() is None
