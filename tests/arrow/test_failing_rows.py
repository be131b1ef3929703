"""Rows of parameters that fail in Python, or in the Arrow stream from which they are read."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import onecopy
from tests.conftest import Database


@pytest.fixture(params=["sqlite", "postgres"])
def target(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return f"sqlite:{tmp_path / 'rows.db'}"
    database: Database = request.getfixturevalue("postgres_native")
    return database.odbc


def raising(n_rows: int) -> Iterator[list[str]]:
    for i in range(n_rows):
        yield [f"row {i}"]
    raise LookupError("no more rows")


def batches(n_rows: int) -> Iterator[pa.RecordBatch]:
    for at in range(0, n_rows, 100):
        yield pa.record_batch({"a": [f"row {i}" for i in range(at, min(at + 100, n_rows))]})
    raise LookupError("no more rows")


def arrow(n_rows: int) -> pa.RecordBatchReader:
    return pa.RecordBatchReader.from_batches(pa.schema({"a": pa.string()}), batches(n_rows))


Insert = Callable[[onecopy.Cursor, int], object]
INSERTS: dict[str, Insert] = {
    "value": lambda cur, n: cur.executemany("insert into q values (?)", [*[["a"]] * n, [object()]]),
    "iterator": lambda cur, n: cur.executemany("insert into q values (?)", raising(n)),
    "returning": lambda cur, n: cur.executemany("insert into q values (?) returning a", raising(n)),
    "arrow": lambda cur, n: cur.insert_arrow("insert into q values (?)", arrow(n)),
    "table": lambda cur, n: cur.insert_arrow("q", arrow(n)),
}


@pytest.mark.parametrize("n_rows", [1, 63, 64, 1024, 3000])
@pytest.mark.parametrize("insert", INSERTS)
def test_with_autocommit_no_row_is_stored(target: str, insert: str, n_rows: int) -> None:
    con = onecopy.connect(target, autocommit=True)
    con.execute("drop table if exists q")
    con.execute("create table q (a text)")
    with pytest.raises((TypeError, LookupError, onecopy.OperationalError), match=r"object|no more rows"):
        INSERTS[insert](con.cursor(), n_rows)
    assert con.execute("select count(*) from q").fetchall() == [(0,)]
    # The connection is in autocommit mode again.
    con.execute("insert into q values ('b')")
    con.rollback()
    assert con.execute("select a from q").fetchall() == [("b",)]
    con.execute("drop table q")
    con.close()


@pytest.mark.parametrize("insert", INSERTS)
def test_an_open_transaction_keeps_the_rows_before(target: str, insert: str) -> None:
    con = onecopy.connect(target)
    con.execute("drop table if exists q")
    con.execute("create table q (a text)")
    with pytest.raises((TypeError, LookupError, onecopy.OperationalError), match=r"object|no more rows"):
        INSERTS[insert](con.cursor(), 3000)
    counted: Any = con.execute("select count(*) from q").fetchall()
    assert counted == [(3000,)]
    con.rollback()
    con.close()
