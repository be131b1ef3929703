"""Connections to SQLite for the tests of rows, and each ODBC database in turn."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import onecopy
from tests.conftest import Database


@pytest.fixture
def con() -> Iterator[onecopy.Connection]:
    """A database in memory."""
    connection = onecopy.connect("sqlite::memory:")
    yield connection
    connection.close()


@pytest.fixture
def numbers(con: onecopy.Connection) -> onecopy.Connection:
    """A database in memory with a table ``n`` of 1,000 rows: ``i`` from 0, and ``t``, its text."""
    con.execute("create table n (i integer, t text)")
    con.executemany("insert into n values (?, ?)", ((i, f"näme {i}") for i in range(1000)))
    con.commit()
    return con


@pytest.fixture
def database(any_odbc: Database) -> Database:
    """Each ODBC database, through each of its drivers."""
    return any_odbc
