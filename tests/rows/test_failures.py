"""Errors within the rows of an ODBC result: malformed text, a database error, a lost connection, a
stall.

For each output format the error is raised as an exception of its class. It never looks like the
normal end of the rows.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

import onecopy
import onecopy.aio
from tests.conftest import Database

TDS = ["tds_freetds", "tds_msodbc", "tds_rust"]
pytestmark = pytest.mark.filterwarnings("ignore::onecopy.DriverWarning")


@pytest.fixture(params=TDS)
def sql_server(request: pytest.FixtureRequest) -> Database:
    """The TDS responder, through each driver of SQL Server."""
    database: Database = request.getfixturevalue(request.param)
    return database


def by_iteration(cur: onecopy.Cursor, _: Path) -> object:
    return list(cur)


def by_fetchall(cur: onecopy.Cursor, _: Path) -> object:
    return cur.fetchall()


def by_fetchone(cur: onecopy.Cursor, _: Path) -> object:
    while cur.fetchone() is not None:
        pass
    return None


def by_json(cur: onecopy.Cursor, _: Path) -> object:
    return b"".join(cur.json())


def by_ndjson(cur: onecopy.Cursor, _: Path) -> object:
    return cur.ndjson().read()


def by_csv_file(cur: onecopy.Cursor, folder: Path) -> object:
    return cur.csv().write_to(folder / "rows.csv")


WAYS = [by_iteration, by_fetchall, by_fetchone, by_json, by_ndjson, by_csv_file]
Way = Callable[[onecopy.Cursor, Path], object]
ways = pytest.mark.parametrize("way", WAYS, ids=lambda w: w.__name__)

#: Row 3000 (from 0), after the first block, has a high surrogate without a low one.
LONE = "select 7 as id, N'good' as t from repeat(3000) union all select 8, nchar(0xD800) + N'x'"


@ways
def test_a_lone_surrogate_in_a_cell_is_a_data_error_with_its_position(
    sql_server: Database, way: Way, tmp_path: Path
) -> None:
    con = onecopy.connect(sql_server.odbc)
    with pytest.raises(onecopy.DataError) as caught:
        way(con.execute(LONE), tmp_path)
    assert (caught.value.column, caught.value.row) == ((1, "t"), 3000)
    assert "lone surrogate" in str(caught.value)
    assert str(caught.value).endswith('or connect with `errors="replace"` to read U+FFFD instead')
    assert list(tmp_path.iterdir()) == []
    assert con.execute("select 1").fetchall() == [(1,)]
    con.close()


def test_the_policy_replace_reads_a_lone_surrogate_as_ufffd(sql_server: Database) -> None:
    con = onecopy.connect(sql_server.odbc, errors="replace")
    assert con.execute(LONE).fetchall()[-2:] == [(7, "good"), (8, "\ufffdx")]
    assert con.execute(LONE).csv().read().decode().splitlines()[-2:] == ["7,good", "8,\ufffdx"]
    long = "select replicate(nchar(0xDC00) + N'é', 300000) as t"
    assert con.execute(long).fetchall() == [("\ufffdé" * 300_000,)]
    assert con.execute(long).ndjson().read().decode() == '{"t":"' + "\ufffdé" * 300_000 + '"}\n'
    con.close()


def test_a_lone_surrogate_far_inside_a_long_value_is_found(sql_server: Database) -> None:
    con = onecopy.connect(sql_server.odbc)
    sql = "select replicate(N'é', 300000) + nchar(0xD800) + N'x' as t"
    for way in WAYS[:-1]:
        with pytest.raises(onecopy.DataError, match="lone surrogate") as caught:
            way(con.execute(sql), Path())
        assert (caught.value.column, caught.value.row) == ((0, "t"), 0)
    con.close()


@ways
def test_an_error_inside_the_rows_is_raised_and_the_connection_survives(
    sql_server: Database, way: Way, tmp_path: Path
) -> None:
    con = onecopy.connect(sql_server.odbc)
    cur = con.execute("select 1 as a, N'é' as t from repeat(5000) /* error after 3000 */")
    with pytest.raises(onecopy.ProgrammingError, match="failed half-way") as caught:
        way(cur, tmp_path)
    assert (caught.value.sqlstate, caught.value.native_code) == ("42000", 50000)
    assert list(tmp_path.iterdir()) == []
    assert con.execute("select 1").fetchall() == [(1,)]
    con.close()


def lines(cur: onecopy.Cursor, got: list[object]) -> None:
    for chunk in cur.ndjson():
        got.extend(chunk.splitlines())


def in_sevens(cur: onecopy.Cursor, got: list[object]) -> None:
    while rows := cur.fetchmany(7):
        got.extend(rows)


def one_by_one(cur: onecopy.Cursor, got: list[object]) -> None:
    while (row := cur.fetchone()) is not None:
        got.append(row)


@pytest.mark.parametrize("n", [0, 1, 3000])
@pytest.mark.parametrize("take", [lines, in_sevens, one_by_one, lambda cur, got: got.extend(cur)])
def test_the_rows_before_an_error_come_first(
    sql_server: Database, take: Callable[[onecopy.Cursor, list[object]], None], n: int
) -> None:
    con = onecopy.connect(sql_server.odbc)
    got: list[object] = []
    with pytest.raises(onecopy.ProgrammingError, match="failed half-way"):
        take(con.execute(f"select 1 as a, N'é' as t from repeat(5000) /* error after {n} */"), got)
    assert len(got) == n
    assert set(got) <= {(1, "é"), '{"a":1,"t":"é"}'.encode()}
    con.close()


def test_several_statements_of_a_text_run_and_nextset_returns_the_second_result(sql_server: Database) -> None:
    con = onecopy.connect(sql_server.odbc)
    cur = con.execute("insert into x values (1); select 7 as a; update x set a = 1")
    assert cur.fetchall() == [(7,)]
    got: list[object] = []
    cur = con.execute("select 1 as a from repeat(3); select 2 as b, N'é' as c")
    one_by_one(cur, got)
    assert got == [(1,)] * 3
    assert cur.nextset() is True
    assert cur.fetchall() == [(2, "é")]
    assert cur.nextset() is None
    cur = con.execute("select 1 as a from repeat(3000); select 2 as b")
    assert cur.nextset() is True
    assert cur.fetchall() == [(2,)]
    with pytest.raises(onecopy.NotSupportedError, match="one by one"):
        con.execute("select 1 as a; select 2 as a").json().read()
    assert con.execute("select 5").fetchall() == [(5,)]
    con.close()


@ways
def test_a_connection_that_ends_inside_the_rows_is_an_operational_error(
    sql_server: Database, way: Way, tmp_path: Path
) -> None:
    con = onecopy.connect(sql_server.odbc)
    cur = con.execute("select 1 as a, N'é' as t from repeat(500000) /* drop after 300000 */")
    with pytest.raises(onecopy.OperationalError) as caught:
        way(cur, tmp_path)
    assert sql_server.password not in str(caught.value)
    assert list(tmp_path.iterdir()) == []
    # The result that failed stays failed, and the connection reports that it is lost.
    with pytest.raises(onecopy.Error):
        cur.fetchone()
    with pytest.raises(onecopy.OperationalError):
        con.execute("select 1").fetchall()
    con.close()


@pytest.mark.parametrize(
    "profile", ["tds_freetds", "tds_msodbc"]
)  # Microsoft's Rust driver ignores cancel, and a warning says so.
@ways
def test_a_database_that_falls_silent_inside_the_rows_can_be_cancelled(
    profile: str, way: Way, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    con = onecopy.connect(request.getfixturevalue(profile).odbc)
    cur = con.execute("select 1 as a, N'é' as t from repeat(5000) /* stall after 3000 */")
    done = threading.Event()

    def cancel() -> None:
        # Late enough that all sent data was read: FreeTDS 1.3 can lose the wake-up of a busy reader
        # when another thread cancels. Repeated, since a cancel before the driver waits has no
        # effect.
        while not done.wait(0.3):
            con.cancel()

    thread = threading.Thread(target=cancel)
    thread.start()
    try:
        with pytest.raises(onecopy.OperationalError):
            way(cur, tmp_path)
    finally:
        done.set()
        thread.join()
    assert list(tmp_path.iterdir()) == []
    con.close()


def test_a_driver_that_ignores_cancel_warns_at_connect(tds_rust: Database) -> None:
    with pytest.warns(onecopy.DriverWarning, match="does not obey a cancel"):
        onecopy.connect(tds_rust.odbc).close()


ROWS = "select generate_series(1, 100000000) as i, repeat(chr(233), 50) as t"


@pytest.mark.parametrize("profile", ["postgres_native", "postgres", "postgres_ansi"])
@ways
def test_a_server_that_ends_the_session_inside_the_rows_is_an_operational_error(
    profile: str, way: Way, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    database: Database = request.getfixturevalue(profile)
    con, other = onecopy.connect(database.odbc), onecopy.connect(database.odbc, autocommit=True)
    ((session,),) = con.execute("select pg_backend_pid()").fetchall()
    cur = con.execute(ROWS)
    if way in WAYS[:3]:
        assert cur.fetchone() == (1, "é" * 50)
    assert other.execute(f"select pg_terminate_backend({session})").fetchall() == [(True,)]
    with pytest.raises(onecopy.OperationalError) as caught:
        way(cur, tmp_path)
    assert database.password not in str(caught.value)
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(onecopy.Error):
        con.execute("select 1").fetchall()
    con.close()
    other.close()


def test_a_stream_of_postgresql_raises_where_the_session_ends_between_two_chunks(postgres: Database) -> None:
    con, other = onecopy.connect(postgres.odbc), onecopy.connect(postgres.odbc, autocommit=True)
    ((session,),) = con.execute("select pg_backend_pid()").fetchall()
    rows = con.execute(ROWS).json()
    first = next(rows)
    assert first.startswith(b'[{"i":1,')
    assert other.execute(f"select pg_terminate_backend({session})").fetchall() == [(True,)]
    got = [first]
    with pytest.raises(onecopy.OperationalError):
        got.extend(rows)
    assert not b"".join(got).endswith(b"]")
    with pytest.raises(onecopy.OperationalError):
        next(rows)
    con.close()
    other.close()


def test_a_mariadb_session_that_is_killed_while_it_answers_is_an_operational_error(mariadb: Database) -> None:
    # The driver reads the whole result inside `execute`: a session can be lost only there.
    con, other = onecopy.connect(mariadb.odbc), onecopy.connect(mariadb.odbc, autocommit=True)
    ((session,),) = con.execute("select connection_id()").fetchall()
    runs = f"select count(*) from information_schema.processlist where id = {session} and info like '%sleep(61)%'"

    ended = threading.Event()

    def kill() -> None:
        while other.execute(runs).fetchall() == [(0,)]:
            if ended.is_set():
                return
        other.execute(f"kill {session}")

    thread = threading.Thread(target=kill)
    thread.start()
    try:
        with pytest.raises(onecopy.OperationalError) as caught:
            con.execute("select sleep(61)").fetchall()
    finally:
        ended.set()
        thread.join()
    assert mariadb.password not in str(caught.value)
    con.close()
    other.close()


def test_a_time_limit_that_expires_in_execute_is_the_error_of_the_fetch(postgres_native: Database) -> None:
    con = onecopy.connect(postgres_native.odbc)
    cur = con.cursor()
    cur.query_timeout = 0.3
    # The server sends its first rows, which it has buffered, when it is cancelled.
    cur.execute("select g, pg_sleep(0.01) from generate_series(1, 5000) as g")
    with pytest.raises(onecopy.OperationalError, match="time limit") as failed:
        cur.fetchall()
    assert failed.value.sqlstate == "HYT00"
    con.close()

    async def main() -> None:
        con = await onecopy.aio.connect(postgres_native.odbc, query_timeout=0.3)
        cur = await con.execute("select g, pg_sleep(0.01) from generate_series(1, 5000) as g")
        with pytest.raises(onecopy.OperationalError, match="time limit"):
            await cur.fetchall()
        await con.close()

    asyncio.run(main())
