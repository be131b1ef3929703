"""Fixtures of the tests of rows: connections to SQLite, and each ODBC database."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import onecopy
from tests.conftest import Database


@pytest.fixture
def con() -> Iterator[onecopy.Connection]:
    """A connection to an in-memory SQLite database."""
    connection = onecopy.connect("sqlite::memory:")
    yield connection
    connection.close()


@pytest.fixture
def numbers(con: onecopy.Connection) -> onecopy.Connection:
    """A connection to an in-memory SQLite database with a table ``n`` of 1,000 rows.

    Its columns are ``i``, an integer from 0, and ``t``, the integer as text.
    """
    con.execute("create table n (i integer, t text)")
    con.executemany("insert into n values (?, ?)", ((i, f"näme {i}") for i in range(1000)))
    con.commit()
    return con


@pytest.fixture
def database(any_odbc: Database) -> Database:
    """A database for each ODBC driver."""
    return any_odbc
