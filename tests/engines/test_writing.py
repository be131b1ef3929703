"""Rows that tasks write exactly once, although tasks and commits are repeated."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import onecopy
from onecopy._engine._writing import TableWriter

pytestmark = pytest.mark.filterwarnings("ignore::onecopy.DriverWarning")
#: The names of all tables.
_CATALOGS = {
    "sqlite": "select name from sqlite_master",
    "postgresql": "select tablename from pg_tables",
    "mysql": "select table_name from information_schema.tables",
}


@pytest.fixture(params=["sqlite", "postgres_native", "mariadb"])
def target(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A connection to a database with an empty table `written`, which `env:TARGET` names."""
    if request.param == "sqlite":
        url = f"sqlite:{tmp_path / 'target.db'}"
    else:
        url = request.getfixturevalue("_running").database(request.param).odbc
    monkeypatch.setenv("TARGET", url)
    con = onecopy.connect(url, autocommit=True)
    for name in ["written", *_staging(con)]:
        con.execute(f"drop table if exists {name}")
    con.execute("create table written (id integer, name text, note text)")
    yield con
    con.execute("drop table written")
    con.close()


def _batches(count: int) -> list[Any]:
    return [pa.record_batch({"id": pa.array([i], pa.int64()), "name": ["名"]}) for i in range(count)]


def _count(con: Any) -> int:
    return int(con.execute("select count(*) from written").fetchone()[0])


def _staging(con: Any) -> list[str]:
    catalog = _CATALOGS[con.dialect]
    return [name for (name,) in con.execute(catalog) if name.startswith("onecopy_staging")]


def test_only_rows_of_the_committed_attempts_appear_and_only_once(target: Any) -> None:
    writer = TableWriter("env:TARGET", "written", TableWriter.new_job())
    lost, used, empty = writer.write(_batches(3)), writer.write(_batches(3)), writer.write([])
    assert lost.id != used.id and _count(target) == 0
    writer.commit([used, empty])
    writer.commit([used, empty])
    assert _count(target) == 3 and _staging(target) == []
    # A task that is repeated after the commit writes nothing.
    assert writer.write(_batches(3)).rows == 0
    assert _count(target) == 3 and _staging(target) == []


def test_a_job_whose_name_is_committed_writes_nothing(target: Any) -> None:
    job = TableWriter.new_job()
    for _ in range(2):
        writer = TableWriter("env:TARGET", "written", job)
        writer.commit([writer.write(_batches(2))])
    assert _count(target) == 2


def test_missing_rows_of_the_staging_table_are_an_error_and_the_table_is_unchanged(target: Any) -> None:
    writer = TableWriter("env:TARGET", "written", TableWriter.new_job())
    attempt = writer.write(_batches(2))
    with pytest.raises(onecopy.OperationalError, match="2 of 5 rows"):
        writer.commit([dataclasses.replace(attempt, rows=5)])
    assert _count(target) == 0
    writer.abort()
    assert _staging(target) == []


def test_overwrite_replaces_the_rows_at_the_commit(target: Any) -> None:
    target.execute("insert into written (id) values (9)")
    writer = TableWriter("env:TARGET", "written", TableWriter.new_job(), overwrite=True)
    attempt = writer.write(_batches(2))
    assert _count(target) == 1
    writer.commit([attempt])
    assert [i for (i,) in target.execute("select id from written order by id")] == [0, 1]


def test_an_error_of_the_input_leaves_no_row(target: Any) -> None:
    def failing() -> Any:
        yield from _batches(2)
        raise RuntimeError("broken input")

    writer = TableWriter("env:TARGET", "written", TableWriter.new_job())
    with pytest.raises(Exception, match="broken input"):
        writer.write(failing())
    writer.commit([])
    assert _count(target) == 0


def test_a_part_is_committed_once_in_a_transaction_of_its_own(target: Any) -> None:
    writer = TableWriter("env:TARGET", "written", TableWriter.new_job(), "part")
    assert [writer.write(_batches(2), part).rows for part in (0, 0, 1)] == [2, 2, 2]
    assert _count(target) == 4
    with pytest.raises(onecopy.NotSupportedError, match="does not number its tasks"):
        writer.write(_batches(2))


@pytest.mark.parametrize("table", ["a b", "x; drop table y", "", "a..b"])
def test_a_table_that_is_not_a_name_is_refused(table: str) -> None:
    with pytest.raises(onecopy.ProgrammingError, match="not the name of a table"):
        TableWriter("env:TARGET", table, "job")
