"""`onecopy export` in parts: the files of an export that is killed and resumed are those of one clean
run; several processes write parts of one plan; other plans, options and exporters are refused."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import random
import resource
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import onecopy
from tests.cli.test_export import Done, rows_of
from tests.cli.test_export import onecopy as command
from tests.conftest import Database
from tests.support.relay import Relay

N_ROWS = 20_000
SQL = "select id, name, price, note from item"
#: The numbers of random points at which an export is killed; ONECOPY_KILLS sets another number.
KILLS = int(os.environ.get("ONECOPY_KILLS", "20"))
STAGING = ".onecopy-export"


@pytest.fixture
def here(tmp_path: Path) -> Path:
    """An empty folder with a database."""
    with contextlib.closing(sqlite3.connect(tmp_path / "shop.db")) as con:
        con.execute("create table item (id integer primary key, name text, price double, note text)")
        notes = [None, "", 'a "quote", a comma', "two\r\nlines", "ΐ 🦀 \\"]
        rows = ((i, f"näme {i}", i / 8, notes[i % 5]) for i in range(N_ROWS))
        con.executemany("insert into item values (?, ?, ?, ?)", rows)
        con.commit()
    return tmp_path


def export(folder: Path, *arguments: object, database: str = "sqlite:shop.db") -> Done:
    done = command("export", database, *arguments, folder=folder)
    assert done.code == 0, done.err
    return done


def refused(folder: Path, message: str, *arguments: object, database: str = "sqlite:shop.db", **options: Any) -> None:
    done = command("export", database, *arguments, folder=folder, **options)
    assert done.code in (1, 2, 3) and message in done.err, done


def files(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def manifest(folder: Path) -> dict[str, Any]:
    made: dict[str, Any] = json.loads((folder / "manifest.json").read_text())
    return made


def plan(folder: Path, n_parts: int, name: str = "plan.json", sql: str = SQL) -> None:
    assert command("plan", "sqlite:shop.db", sql, "--parts", n_parts, "-o", name, folder=folder).code == 0


@pytest.mark.parametrize("format", ["json", "ndjson", "csv", "bson", "arrow", "parquet"])
def test_the_parts_together_have_each_row_once(here: Path, format: str) -> None:
    export(here, SQL, "-o", "out/", "--format", format, "--parts", 7, "--jobs", 3, "--check")
    made = manifest(here / "out")
    assert (made["rows"], len(made["files"]), made["query"]) == (N_ROWS, 7, SQL)
    assert sorted(files(here / "out")) == ["manifest.json", *(file["name"] for file in made["files"])]
    found = [row for file in made["files"] for row in rows_of(here / "out" / file["name"], format)]
    assert sorted(int(row["id"]) for row in found) == list(range(N_ROWS))
    assert command("verify", "out", folder=here).code == 0


def postgres_table(database: Database) -> None:
    """Creates the table `item`, with the types that SQLite does not have."""
    with contextlib.closing(onecopy.connect(database.odbc)) as con:
        con.execute("drop table if exists item")
        con.execute(
            "create table item as select n as id, md5(n::text) as name, n / 8.0::float8 as price,"
            " case when n % 3 > 0 then repeat('x', n % 50) end as note, now()::date as day"
            f" from generate_series(0, {N_ROWS - 1}) n"
        )
        con.execute("alter table item add primary key (id)")
        con.execute("analyze item")
        con.commit()


def killed(folder: Path, seconds: float, *arguments: object, database: str = "sqlite:shop.db") -> None:
    """Exports, and kills the command after a time, unless it has ended."""
    line = [sys.executable, "-m", "onecopy", "export", database, *map(str, arguments)]
    with subprocess.Popen(line, cwd=folder, stderr=subprocess.DEVNULL) as process:
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(timeout=seconds)
        process.kill()


@pytest.mark.timeout(60 + 15 * KILLS)
@pytest.mark.parametrize("format", ["csv", "parquet"])
@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_an_export_that_is_killed_and_resumed_has_the_files_of_one_clean_run(
    here: Path, kind: str, format: str, postgres_native: Database
) -> None:
    arguments = [SQL, "-o", "out/", "--format", format, "--parts", 9, "--jobs", 2]
    database = "sqlite:shop.db"
    if kind == "postgres":
        postgres_table(postgres_native)
        database = postgres_native.odbc
        arguments.append("--no-snapshot")
    export(here, *arguments, database=database)
    clean = files(here / "out")
    random_numbers = random.Random(2026)
    for _ in range(KILLS):
        for path in (here / "out").iterdir():
            path.unlink()
        killed(here, random_numbers.uniform(0.0, 0.6), *arguments, database=database)
        if (here / "out" / "manifest.json").exists():
            # A reader may use the folder as soon as it has a manifest.
            assert command("verify", "out", folder=here).code == 0
        export(here, *arguments, "--resume", database=database)
        assert files(here / "out") == clean


def test_an_export_whose_snapshot_has_ended_is_begun_again(here: Path, postgres_native: Database) -> None:
    postgres_table(postgres_native)
    common = [SQL, "-o", "out/", "--format", "csv", "--parts", 9]
    limit = (30_000, 30_000)
    # The disk is full after the plan.
    refused(
        here,
        "",
        *common,
        database=postgres_native.odbc,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, limit),
    )
    refused(here, "begin again with `--overwrite`", *common, "--resume", database=postgres_native.odbc)
    export(here, *common, "--overwrite", database=postgres_native.odbc)
    assert manifest(here / "out")["rows"] == N_ROWS


def test_a_reader_finds_no_part_of_an_unfinished_export_and_complete_parts_are_kept(here: Path) -> None:
    plan(here, 4)
    common = ["--plan", "plan.json", "-o", "out/", "--format", "csv"]
    for number in (1, 3):
        export(here, *common, "--part", f"{number}/4")
    assert [path.name for path in (here / "out").iterdir()] == [STAGING]
    kept = (here / "out" / STAGING / "part-00000.csv").stat().st_ino
    done = command("verify", "out", folder=here)
    assert done.code == 1 and "unfinished export" in done.err
    refused(here, "part 3 is complete", *common, "--part", "3/4")
    export(here, *common, "--part", "3/4", "--resume")
    export(here, *common, "--resume")
    assert (here / "out" / "part-00000.csv").stat().st_ino == kept
    assert command("verify", "out", folder=here).code == 0
    before = files(here / "out")
    assert "complete already" in export(here, *common, "--resume").err
    assert files(here / "out") == before


def test_several_processes_write_the_parts_and_the_last_one_the_manifest(here: Path) -> None:
    plan(here, 8)
    common = ["--plan", "plan.json", "-o", "out/", "--format", "ndjson"]
    ends: list[Done] = []

    def work(numbers: list[int]) -> None:
        for number in numbers:
            ends.append(export(here, *common, "--part", f"{number}/8"))

    threads = [threading.Thread(target=work, args=(list(range(1 + k, 9, 3)),)) for k in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(ends) == 8
    assert command("verify", "out", folder=here).code == 0
    assert manifest(here / "out")["rows"] == N_ROWS
    export(here, *common, "--overwrite")
    assert command("verify", "out", folder=here).code == 0


@pytest.fixture
def unfinished(here: Path) -> Path:
    """A folder `out` in which one of three parts is complete."""
    plan(here, 3)
    export(here, "--plan", "plan.json", "--part", "2/3", "-o", "out/", "--format", "csv")
    return here


def test_another_plan_statement_or_option_is_refused(unfinished: Path) -> None:
    here = unfinished
    plan(here, 4, "other.json")
    for message, arguments in [
        ("the unfinished export of another plan", ["--plan", "other.json", "--resume"]),
        ("the unfinished export of another plan", ["--plan", "other.json", "--part", "1/4"]),
        ("was begun with `--format csv`", ["--plan", "plan.json", "--resume", "--format", "tsv"]),
        ("was begun with `--compression none`", ["--plan", "plan.json", "--resume", "--compression", "gzip"]),
        ("was begun with `--errors strict`", ["--plan", "plan.json", "--resume", "--errors", "replace"]),
        ("was begun with no `--types`", ["--plan", "plan.json", "--resume", "--types", "id=int64"]),
        ("has an unfinished export", ["--plan", "plan.json"]),
        ("has an unfinished export", [SQL]),
        ("another statement", ["select id from item", "--plan", "plan.json", "--resume"]),
        ("another statement", ["select id from item", "--resume"]),
        ("the plan has 3 parts, not 4", ["--plan", "plan.json", "--part", "1/4"]),
        ("as in `3/16`", ["--plan", "plan.json", "--part", "0/3"]),
    ]:
        before = files(here / "out" / STAGING)
        given = ["--format", "csv", *arguments] if "--format" not in arguments else arguments
        refused(here, message, "-o", "out/", *given)
        assert files(here / "out" / STAGING) == before
    refused(
        here, "missing or wrong", "-o", "out/", "--format", "csv", "--plan", f"out/{STAGING}/settings.json", "--resume"
    )
    refused(here, "end the name with `/`", "--plan", "plan.json", "-o", "out.csv")
    refused(here, "end the name with `/`", SQL, "--resume", "-o", "out.csv")
    refused(here, "are for a folder", "--plan", "plan.json", "--part", "1/3", "-o", "out.csv", "--check")
    refused(here, "always has a manifest", SQL, "--parts", 2, "-o", "out/", "--format", "csv", "--no-manifest")
    refused(here, "leave `--param` out", "--plan", "plan.json", "-p", 7, "-o", "out/", "--format", "csv", "--resume")
    for option in ("--check", "--jobs=2", "--no-snapshot", "--key=id", "--part=1/3"):
        refused(here, "required arguments", SQL, "-o", "out.csv", option)
    export(here, SQL, "-o", "out/", "--format", "csv", "--overwrite")
    assert sorted(files(here / "out")) == ["manifest.json", "part-00000.csv"]


def test_processes_of_a_group_can_write_parts(here: Path) -> None:
    plan(here, 2)
    command_line = [sys.executable, "-m", "onecopy", "export", "sqlite:shop.db", "--plan", "plan.json"]
    options = ["--part", "1/2", "-o", "out/", "--format", "csv", "-q"]
    subprocess.run([*command_line, *options], cwd=here, umask=0o002, check=True)
    for path in (here / "out", here / "out" / STAGING):
        assert path.stat().st_mode & 0o777 == 0o775, path


def test_two_exporters_are_refused(unfinished: Path) -> None:
    here = unfinished
    common = ["--plan", "plan.json", "-o", "out/", "--format", "csv"]
    with (here / "out" / STAGING / "part-00000.csv.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        refused(here, "another process writes part 1", *common, "--part", "1/3")
    folder = os.open(here / "out", os.O_RDONLY)
    try:
        fcntl.flock(folder, fcntl.LOCK_SH)
        # A process that writes a part.
        refused(here, "another process exports into the folder", *common, "--resume")
        refused(here, "another process exports into the folder", SQL, "-o", "out/", "--format", "csv", "--overwrite")
        export(here, *common, "--part", "1/3")
        # The other process is still there, so that nobody finishes the export.
        export(here, *common, "--part", "3/3")
        assert not (here / "out" / "manifest.json").exists()
        fcntl.flock(folder, fcntl.LOCK_EX)
        refused(here, "another process exports into the folder", *common, "--part", "1/3", "--resume")
    finally:
        os.close(folder)
    export(here, *common, "--part", "1/3", "--resume")
    assert command("verify", "out", folder=here).code == 0


def test_tables_that_have_changed_are_an_error(unfinished: Path) -> None:
    here = unfinished
    plan(here, 2, "all.json", "select * from item")
    with contextlib.closing(sqlite3.connect(here / "shop.db")) as con:
        row = con.execute("delete from item where id = 10000 returning *").fetchone()
        con.commit()
        common = ["--plan", "plan.json", "-o", "out/", "--format", "csv", "--resume"]
        # The row is in the part that was complete before.
        refused(here, "have 20000 rows, and the statement has 19999", *common, "--check")
        assert not (here / "out" / "manifest.json").exists()
        con.execute("insert into item values (?, ?, ?, ?)", row)
        con.commit()
        export(here, *common, "--check")
        con.execute("alter table item add column more text")
        con.commit()
    refused(here, "make a new plan", "--plan", "all.json", "-o", "all/", "--format", "csv")
    assert not (here / "all" / "manifest.json").exists()


def test_a_database_that_goes_away_is_an_error_and_the_export_is_resumed(unfinished: Path) -> None:
    here = unfinished
    common = ["--plan", "plan.json", "-o", "out/", "--format", "csv", "--resume"]
    (here / "shop.db").rename(here / "away.db")
    refused(here, "", *common)
    assert not (here / "shop.db").exists()
    (here / "away.db").rename(here / "shop.db")
    export(here, *common)
    assert manifest(here / "out")["rows"] == N_ROWS


def test_a_full_disk_is_an_error_and_the_export_is_resumed(unfinished: Path) -> None:
    here = unfinished
    common = ["--plan", "plan.json", "-o", "out/", "--format", "csv", "--resume"]

    def few_bytes() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (30_000, 30_000))

    refused(here, "", *common, preexec_fn=few_bytes)
    names = os.listdir(here / "out" / STAGING)
    assert not any(name.endswith(".partial") for name in names)
    export(here, *common)
    assert command("verify", "out", folder=here).code == 0


def test_columns_of_different_types_are_an_error_that_names_the_remedy(tmp_path: Path) -> None:
    with contextlib.closing(sqlite3.connect(tmp_path / "shop.db")) as con:
        con.execute("create table item (id integer primary key, x)")
        con.executemany("insert into item values (?, ?)", ((i, i if i < 50 else f"n{i}") for i in range(100)))
        con.commit()
    common = ["select * from item", "-o", "out/", "--format", "parquet", "--parts", 2]
    refused(tmp_path, "--types 'x=TYPE'", *common)
    export(tmp_path, *common, "--overwrite", "--types", "x=string")
    rows = [row for part in sorted((tmp_path / "out").glob("*.parquet")) for row in rows_of(part, "parquet")]
    assert [row["x"] for row in rows] == [str(i) if i < 50 else f"n{i}" for i in range(100)]


def test_one_part_can_be_a_file_or_stdout(here: Path) -> None:
    plan(here, 2)
    done = export(here, "--plan", "plan.json", "--part", "2/2", "-o", "-", "--format", "csv")
    export(here, "--plan", "plan.json", "--part", "2/2", "-o", "two.csv")
    assert (here / "two.csv").read_bytes() == done.out
    assert len(rows_of(here / "two.csv", "csv")) == N_ROWS // 2
    assert command("verify", "two.csv", folder=here).code == 0


def test_progress_as_json_has_an_event_for_each_part(here: Path) -> None:
    done = export(here, SQL, "-o", "out/", "--format", "csv", "--parts", 3, "--progress", "json")
    events = [json.loads(line) for line in done.err.splitlines()]
    parts = [event for event in events if event["event"] == "part"]
    assert sorted(event["part"] for event in parts) == [1, 2, 3]
    assert events[-1]["event"] == "done" and events[-1]["rows"] == sum(event["rows"] for event in parts)


@pytest.fixture
def numbers(postgres_native: Database) -> Iterator[str]:
    """The name of a table of PostgreSQL."""
    con = onecopy.connect(postgres_native.odbc)
    con.execute("create table exported_numbers (n integer primary key, t text)")
    con.execute("insert into exported_numbers select n, 'näme ' || n from generate_series(1, 9000) n")
    con.commit()
    try:
        yield "exported_numbers"
    finally:
        con.rollback()
        con.execute("drop table exported_numbers")
        con.commit()
        con.close()


def test_the_parts_of_postgresql_read_one_snapshot(tmp_path: Path, postgres_native: Database, numbers: str) -> None:
    database, sql = postgres_native.odbc, f"select * from {numbers}"
    export(tmp_path, sql, "-o", "out/", "--format", "csv", "--parts", 4, "--check", database=database)
    made = manifest(tmp_path / "out")
    assert made["rows"] == 9000 and made["snapshot"] is not None
    arguments = [sql, "-o", "free/", "--format", "csv", "--parts", 4, "--no-snapshot"]
    export(tmp_path, *arguments, database=database)
    assert manifest(tmp_path / "free")["snapshot"] is None
    clean = files(tmp_path / "free")
    random_numbers = random.Random(7)
    for _ in range(KILLS // 2):
        for path in (tmp_path / "free").iterdir():
            path.unlink()
        killed(tmp_path, random_numbers.uniform(0.0, 0.6), *arguments, database=database)
        export(tmp_path, *arguments, "--resume", database=database)
        assert files(tmp_path / "free") == clean


def test_a_snapshot_that_has_ended_is_an_error(tmp_path: Path, postgres_native: Database, numbers: str) -> None:
    database, sql = postgres_native.odbc, f"select * from {numbers}"
    planner = [sys.executable, "-m", "onecopy", "plan", database, sql, "--parts", "3", "--hold", "-o", "plan.json"]
    common = ["--plan", "plan.json", "-o", "out/", "--format", "csv"]
    with subprocess.Popen(planner, cwd=tmp_path, stderr=subprocess.PIPE, text=True) as holder:
        assert holder.stderr is not None
        for line in holder.stderr:
            if "held until" in line:
                break
        con = onecopy.connect(postgres_native.odbc)
        con.execute(f"delete from {numbers} where n > 10")
        con.commit()
        export(tmp_path, *common, "--part", "1/3", database=database)
        export(tmp_path, *common, "--part", "3/3", database=database)
        holder.terminate()
    refused(tmp_path, "the snapshot ended with the transaction", *common, "--part", "2/3", database=database)
    refused(tmp_path, "the snapshot ended with the transaction", *common, "--resume", database=database)
    con.execute(f"insert into {numbers} select n, 'again' from generate_series(11, 9000) n")
    con.commit()
    con.close()
    assert not (tmp_path / "out" / "manifest.json").exists()


@pytest.mark.parametrize("format", ["csv", "arrow", "parquet"])
def test_a_file_does_not_depend_on_how_the_network_divides_the_rows(
    tmp_path: Path, format: str, postgres_native: Database
) -> None:
    sql = (
        "select n, case when n % 7 > 0 then md5(n::text) || repeat('x', n % 90) end as text, array[n, n / 2] as list,"
        " n / 8.0 as decimal, n % 3 = 0 as flag, now()::date as day from generate_series(1, 60000) n"
    )
    made = []
    for most_bytes in (1 << 16, 3001):
        with Relay(postgres_native.native["port"], most_bytes) as relay:
            database = postgres_native.odbc.replace(f":{postgres_native.native['port']}/", f":{relay.port}/")
            assert str(relay.port) in database
            export(tmp_path, sql, "-o", f"{most_bytes}.{format}", database=database)
        made.append((tmp_path / f"{most_bytes}.{format}").read_bytes())
    assert len(made[0]) > 1_000_000
    assert made[0] == made[1]
