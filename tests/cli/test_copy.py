"""`onecopy copy`: options, bad input and failures, after which the table is as before."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from typing import Any

import pytest

from tests.conftest import Database
from tests.support.copies import COMMAND, Postgres, Sqlite, onecopy, started


def test_parameters_and_types_and_the_report(lite: Sqlite) -> None:
    lite.make("id integer, s text", [(i, "x" * i) for i in range(10)])
    done = lite.copy(
        "--param", "low=7", "--types", "s=large_string", "--progress", "json", sql="select * from t where id > :low"
    )
    assert done.code == 0
    event = json.loads(done.err)
    assert (event["event"], event["rows"]) == ("done", 2) and event["bytes"] > 0
    assert lite.rows() == [(8, "x" * 8), (9, "x" * 9)]
    assert lite.copy("--quiet", sql="select 1 as id, '' as s").err == ""
    done = lite.copy("--types", "s=strange")
    assert done.code == 2 and "is not a column and an Arrow type" in done.err
    done = lite.copy("--types", "no=string")
    assert done.code == 1 and "there is no column `no`" in done.err


def test_malformed_text_is_an_error_or_replaced(lite: Sqlite) -> None:
    lite.make("s text", [])
    sql = "select cast(x'61ff' as text) as s"
    done = lite.copy(sql=sql)
    assert done.code == 1 and "malformed text" in done.err and "--errors replace" in done.err
    assert lite.copy("--errors", "replace", sql=sql).code == 0
    assert lite.rows() == [("a\ufffd",)]


def test_columns_that_only_one_side_has_are_named(lite: Sqlite) -> None:
    lite.make("a integer", [(1,)], target="a integer, b text default 'x'")
    done = lite.copy(sql="select a, a as c from t")
    assert done.code == 1 and "the table `t` has no column `c`" in done.err
    done = lite.copy()
    assert done.code == 1 and "the query has no column `b`" in done.err and "--allow-defaults" in done.err
    done = lite.copy(sql="select a, a from t")
    assert done.code == 1 and "the query has the column `a` twice" in done.err
    assert lite.rows() == []
    assert lite.copy("--allow-defaults").code == 0
    assert lite.rows() == [(1, "x")]


def test_names_of_postgres_have_upper_and_lower_case(pg: Postgres) -> None:
    pg.execute('create table copied_to.t ("Id" integer)')
    done = pg.copy(sql="select 1 as id")
    assert done.code == 1 and "has no column `id`, but `Id`" in done.err and 'as "Id"' in done.err
    assert pg.copy(sql='select 1 as "Id"').code == 0
    assert pg.texts("copied_to") == ["(1)"]


def test_a_missing_table_is_named_with_the_remedy(lite: Sqlite, pg: Postgres) -> None:
    lite.make("a integer", [(1,)])
    for done in (lite.copy(table="absent"), pg.copy(sql="select 1 as a", table="absent")):
        assert done.code == 1
        assert "absent" in done.err and "create the table before the copy" in done.err


def test_the_same_database_as_source_and_target_is_refused(lite: Sqlite, pg: Postgres) -> None:
    lite.make("a integer", [(1,)])
    (lite.folder / "link.db").symlink_to(lite.folder / "from.db")
    pg.execute("create table copied_from.t (a integer)")
    for source, target in (
        ("sqlite:from.db", "sqlite:from.db"),
        ("sqlite:from.db", "sqlite:./from.db"),
        ("sqlite:from.db", "sqlite:link.db"),
        (pg.source, pg.source),
    ):
        done = onecopy("copy", source, "select * from t", target, "t", folder=lite.folder)
        assert done.code == 2 and "the same database" in done.err and "insert into" in done.err


def test_a_constraint_in_a_late_row_leaves_the_table_as_before(lite: Sqlite, pg: Postgres) -> None:
    rows: list[tuple[Any, ...]] = [(i,) for i in range(20_000)]
    lite.make("a integer", [*rows, (None,)], target="a integer not null")
    lite.target.execute("insert into t values (-1)")
    lite.target.commit()
    done = lite.copy()
    assert done.code == 1 and "NOT NULL" in done.err and "row 20000" in done.err
    assert lite.rows() == [(-1,)]
    pg.execute("create table copied_to.t (a integer not null)")
    pg.execute("insert into copied_to.t values (-1)")
    done = pg.from_sqlite(lite)
    assert done.code == 1 and "not-null" in done.err and "row 20000" in done.err
    assert pg.texts("copied_to") == ["(-1)"]


def test_a_deferred_constraint_fails_at_the_commit(pg: Postgres) -> None:
    pg.execute("create table copied_to.t (a integer unique deferrable initially deferred)")
    done = pg.copy(sql="select 1 as a union all select 1")
    assert done.code == 1 and "unique" in done.err
    assert pg.texts("copied_to") == []


def test_wrong_command_lines_are_refused(lite: Sqlite) -> None:
    lite.make("a integer", [])
    assert lite.copy("--create").code == 2
    assert onecopy("copy", "sqlite:from.db", "select 1", "sqlite:to.db", folder=lite.folder).code == 2
    done = lite.copy(sql="create table u (a)")
    assert done.code in (1, 2), done.err
    assert onecopy("copy", "sqlite:absent.db", "select 1 as a", "sqlite:to.db", "t", folder=lite.folder).code == 3
    assert onecopy("copy", "sqlite:from.db", "select 1 as a", "sqlite:absent.db", "t", folder=lite.folder).code == 3
    assert not (lite.folder / "absent.db").exists()


def test_ctrl_c_leaves_the_table_as_before(lite: Sqlite, pg: Postgres) -> None:
    endless = "with recursive n(a) as (select 1 union all select a + 1 from n) select a from n"
    lite.make("a integer", [])
    pg.execute("create table copied_to.t (a integer)")
    for target in ("sqlite:to.db", pg.target):
        with started(
            "copy", "sqlite:from.db", endless, target, "t", "--progress", "json", folder=lite.folder
        ) as running:
            assert running.stderr is not None
            # Rows were inserted.
            assert json.loads(running.stderr.readline())["rows"] > 0
            running.send_signal(signal.SIGINT)
            err = running.stderr.read().decode()
            assert running.wait(30) == 130
        assert json.loads(err.splitlines()[-1]) == {"event": "error", "message": "stopped", "exit_code": 130}
    assert lite.rows() == [] and pg.texts("copied_to") == []


def test_the_time_limit_leaves_the_table_as_before(pg: Postgres) -> None:
    pg.execute("create table copied_to.t (a text)")
    done = pg.copy("--time-limit", "1", sql="select pg_sleep(60)::text as a")
    assert done.code == 1 and "took longer than 1 s" in done.err
    assert pg.texts("copied_to") == []


@pytest.mark.parametrize("schema", ["copied_from", "copied_to"])
def test_a_database_that_goes_away_leaves_the_table_as_before(lite: Sqlite, pg: Postgres, schema: str) -> None:
    pg.execute("create table copied_to.t (a integer)")
    endless = "select generate_series(1, 200000000) as a"
    with started("copy", pg.source, endless, pg.target, "t", "--progress", "json", folder=lite.folder) as running:
        assert running.stderr is not None
        assert json.loads(running.stderr.readline())["rows"] > 0
        of = "select generate_series(%" if schema == "copied_from" else "COPY %"
        kill = "select pg_terminate_backend(pid) from pg_stat_activity where query like %s"
        deadline = time.monotonic() + 30
        while (True,) not in pg.execute(kill, of):
            assert time.monotonic() < deadline
            time.sleep(0.01)
        err = running.stderr.read().decode()
        assert running.wait(60) == 1, err
    event = json.loads(err.splitlines()[-1])
    assert event["exit_code"] == 1 and ("terminat" in event["message"] or "connection" in event["message"])
    assert pg.texts("copied_to") == []


def test_the_memory_is_bounded(lite: Sqlite) -> None:
    lite.make("a integer, s text", [])
    sql = (
        "with recursive n(a) as (select 1 union all select a + 1 from n where a < 300000) "
        "select a, printf('%0400d', a) as s from n"
    )
    program = (
        "import resource, subprocess, sys; code = subprocess.call(sys.argv[1:]); "
        "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss); sys.exit(code)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, *COMMAND, "copy", "sqlite:from.db", sql, "sqlite:to.db", "t"],
        capture_output=True,
        cwd=lite.folder,
        check=True,
    )
    assert lite.rows("count(*)") == [(300_000,)]
    # 120 MB of values; the interpreter itself uses about 30 MB.
    assert int(done.stdout) < 110_000


def test_a_password_is_in_no_message(pg: Postgres, postgres_native: Database) -> None:
    done = pg.copy(sql="select 1 as a", table="absent")
    assert postgres_native.password not in done.err
