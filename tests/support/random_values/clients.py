"""The two clients of each database: onecopy and an independent client."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol

import psycopg
import pymysql

import onecopy

from .column import Column, Row, converted, definition, insertion, selection
from .mariadb import MARIADB
from .postgres import POSTGRES, POSTGRES_NATIVE
from .readers import MOST_SINGLE_ROWS, Tally, same
from .sqlite import SQLITE, SQLITE_ODBC

#: PostgreSQL by its native protocol, the ODBC profiles, and the built-in SQLite.
NAMES = ("postgres_native", "postgres", "postgres_ansi", "mariadb", "sqlite_odbc", "sqlite")


class Client(Protocol):
    """A connection of the independent client: psycopg, PyMySQL or sqlite3."""

    def cursor(self) -> Any: ...

    def commit(self) -> None: ...

    def rollback(self) -> None: ...

    def close(self) -> None: ...


class Pair(NamedTuple):
    """A connection of onecopy and one of the independent client, and the columns of the test
    tables."""

    con: onecopy.Connection
    client: Client
    columns: Sequence[Column]
    mark: str

    def read(self, table: str, n_rows: int, *, of: str = "value") -> list[Row]:
        """The first ``n_rows`` rows of a table, read by the independent client.

        ``of`` is the form of the values: see `column.selection`.
        """
        cur = self.client.cursor()
        cur.execute(selection(table, self.columns, n_rows, of=of))
        found = converted(self.columns, [tuple(row) for row in cur.fetchall()])
        self.client.commit()  # Otherwise its locks block the other client's DROP TABLE.
        return found

    def fill(self, table: str, rows: Sequence[Row]) -> None:
        """Creates a table and inserts ``rows`` with the independent client."""
        cur = self.client.cursor()
        cur.execute(f"drop table if exists {table}")
        cur.execute(definition(table, self.columns))
        cur.executemany(insertion(table, self.columns, mark=self.mark), rows)
        self.client.commit()

    def drop(self) -> None:
        """Drops both tables of the tests, after a rollback by both clients."""
        self.con.rollback()
        self.client.rollback()
        cur = self.client.cursor()
        for table in ("random_theirs", "random_ours"):
            cur.execute(f"drop table if exists {table}")
        self.client.commit()


def _connected(name: str, odbc: str, native: dict[str, Any]) -> tuple[Client, list[Column], str]:
    if name.startswith("postgres"):
        parts = {"dbname" if k == "database" else k: v for k, v in native.items()}
        reached = " ".join(f"{k}='{v}'" for k, v in parts.items())
        columns = POSTGRES_NATIVE if name == "postgres_native" else POSTGRES
        return psycopg.connect(reached, options="-c timezone=UTC"), columns, "%s"
    if name == "mariadb":
        zone = "set time_zone = '+00:00'"
        return pymysql.connect(**native, charset="utf8mb4", init_command=zone), MARIADB, "%s"
    columns = SQLITE if name == "sqlite" else SQLITE_ODBC
    columns = [column._replace(write="?", equal=column.equal and "{} is {}") for column in columns]
    return sqlite3.connect(native["database"]), columns, "?"


def connect(name: str, odbc: str, native: dict[str, Any]) -> Pair:
    """Connects both clients to the database ``name``, one of `NAMES`.

    ``odbc`` is onecopy's connection string, ``native`` the keywords of the independent client.
    """
    client, columns, mark = _connected(name, odbc, native)
    con = onecopy.connect(odbc)
    if name == "mariadb":
        con.execute("set time_zone = '+00:00'")
        con.commit()
    return Pair(con, client, columns, mark)


def _written_at_once(pair: Pair, sql: str, rows: Sequence[Row]) -> None:
    pair.con.executemany(sql, rows)


def _written_singly(pair: Pair, sql: str, rows: Sequence[Row]) -> None:
    for row in rows:
        pair.con.execute(sql, row)


#: Ways to write, and the number of rows for each.
WRITERS: dict[str, tuple[Callable[[Pair, str, Sequence[Row]], None], int | None]] = {
    "executemany": (_written_at_once, None),
    "execute": (_written_singly, MOST_SINGLE_ROWS),
}


def compare_written(tally: Tally, pair: Pair, rows: Sequence[Row], name: str) -> None:
    """Writes rows with onecopy by the method ``name``, and compares both tables.

    The independent client reads the table that onecopy has written and the one that it has filled
    itself with the same rows.
    """
    write, most_rows = WRITERS[name]
    rows = rows[:most_rows]
    pair.con.rollback()
    pair.con.execute("drop table if exists random_ours")
    pair.con.execute(definition("random_ours", pair.columns))
    pair.con.commit()
    write(pair, insertion("random_ours", pair.columns, ours=True), rows)
    pair.con.commit()
    got = pair.read("random_ours", len(rows))
    expected = pair.read("random_theirs", len(rows))
    tally.compare(name, pair.columns, zip(got, expected, strict=True), same)
