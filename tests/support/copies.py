"""Databases for `onecopy copy`, and the command; the databases are read by independent clients."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.conftest import Database

#: The command, as in the tests of the gateway.
COMMAND = [os.environ["ONECOPY_COMMAND"]] if "ONECOPY_COMMAND" in os.environ else [sys.executable, "-m", "onecopy"]


class Done(NamedTuple):
    """The end of a command."""

    code: int
    err: str


def onecopy(*arguments: object, folder: Path | None = None) -> Done:
    """Runs the command to its end."""
    done = subprocess.run(
        [*COMMAND, *map(str, arguments)],
        capture_output=True,
        cwd=folder,
        timeout=120,
        check=False,
    )
    err = done.stderr.decode()
    assert "panicked" not in err and "Traceback" not in err
    assert done.stdout == b""
    return Done(done.returncode, err)


class Sqlite:
    """Two SQLite databases in a folder, and an independent reader."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.source = sqlite3.connect(folder / "from.db")
        self.target = sqlite3.connect(folder / "to.db")

    def make(self, columns: str, rows: list[tuple[Any, ...]], target: str | None = None) -> None:
        """Creates the table ``t`` in both databases, and inserts rows into that of the source."""
        self.source.execute(f"create table t ({columns})")
        if rows:
            self.source.executemany(f"insert into t values ({', '.join('?' * len(rows[0]))})", rows)
        self.source.commit()
        self.target.execute(f"create table t ({target or columns})")
        self.target.commit()

    def copy(self, *options: str, sql: str = "select * from t", table: str = "t") -> Done:
        return onecopy("copy", "sqlite:from.db", sql, "sqlite:to.db", table, *options, folder=self.folder)

    def rows(self, what: str = "*") -> list[tuple[Any, ...]]:
        return self.target.execute(f"select {what} from t").fetchall()


class Postgres:
    """A schema for the source and one for the target, and an independent reader."""

    def __init__(self, database: Database, folder: Path) -> None:
        psycopg = pytest.importorskip("psycopg")
        self.con = psycopg.connect(**{"dbname" if k == "database" else k: v for k, v in database.native.items()})
        self.con.autocommit = True
        self.con.execute("drop schema if exists copied_from cascade; create schema copied_from")
        self.con.execute("drop schema if exists copied_to cascade; create schema copied_to")
        self.folder = folder
        joint = "&" if "?" in database.odbc else "?"
        self.source = f"{database.odbc}{joint}options=-csearch_path%3Dcopied_from"
        self.target = f"{database.odbc}{joint}options=-csearch_path%3Dcopied_to"

    def execute(self, sql: str, *values: object) -> list[tuple[Any, ...]]:
        cur = self.con.execute(sql, values or None)
        return cur.fetchall() if cur.description else []

    def texts(self, schema: str) -> list[str]:
        """The rows of the table ``t`` as PostgreSQL writes them."""
        return [row[0] for row in self.execute(f"select t::text from {schema}.t order by 1")]

    def copy(self, *options: str, sql: str = "select * from t", table: str = "t") -> Done:
        return onecopy("copy", self.source, sql, self.target, table, *options)

    def into_sqlite(self, lite: Sqlite, *options: str, sql: str = "select * from t") -> Done:
        return onecopy("copy", self.source, sql, "sqlite:to.db", "t", *options, folder=lite.folder)

    def from_sqlite(self, lite: Sqlite, *options: str, sql: str = "select * from t") -> Done:
        return onecopy("copy", "sqlite:from.db", sql, self.target, "t", *options, folder=lite.folder)


def typed(rows: list[tuple[Any, ...]]) -> list[list[tuple[type, str]]]:
    """The values with their types: 1, 1.0 and True are different."""
    return [[(type(value), repr(value)) for value in row] for row in rows]


@contextlib.contextmanager
def started(*arguments: object, folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Runs the command, and kills it at the end."""
    with subprocess.Popen([*COMMAND, *map(str, arguments)], cwd=folder, stderr=subprocess.PIPE) as running:
        try:
            yield running
        finally:
            running.kill()
