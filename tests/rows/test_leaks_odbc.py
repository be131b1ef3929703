"""A thousand failures with each ODBC driver leak no memory, no handle and no thread."""

from __future__ import annotations

import contextlib
import gc
import os
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

import onecopy
from tests.conftest import Database
from tests.support import servers

pytestmark = [
    pytest.mark.filterwarnings("ignore::onecopy.DriverWarning"),
    pytest.mark.slow,
    pytest.mark.timeout(900),
]
PROFILES = list(servers.PROFILES)
#: For a thousand runs: a message of 5,000 characters, or a leaked handle, would be several
#: megabytes.
MOST_GROWTH_BYTES = 1_500_000
LONG = "я" * 2000


def resident_bytes() -> int:
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def handles() -> int:
    return len(os.listdir("/proc/self/fd"))


def wrong_syntax(con: onecopy.Connection, database: Database) -> None:
    con.execute("selec 1")


def unknown_table(con: onecopy.Connection, database: Database) -> None:
    con.execute("select * from nowhere_at_all where a = ?", [1])


def long_message(con: onecopy.Connection, database: Database) -> None:
    con.execute(f'select * from "{LONG}"')


def wrong_count(con: onecopy.Connection, database: Database) -> None:
    con.execute("select ?, ?", [1])


def wrong_type(con: onecopy.Connection, database: Database) -> None:
    con.execute("select ?, ?", ["x" * 1000, object()])


def closed_cursor(con: onecopy.Connection, database: Database) -> None:
    cur = con.execute("select * from t1000")
    cur.fetchone()
    cur.close()
    cur.fetchone()


def abandoned_rows(con: onecopy.Connection, database: Database) -> None:
    cur = con.execute("select * from t1000 order by id")
    cur.fetchone()


def many_with_a_bad_row(con: onecopy.Connection, database: Database) -> None:
    con.executemany("insert into nowhere_at_all values (?, ?)", [(i, "x" * 100) for i in range(10)])


def ended_by_a_rollback(con: onecopy.Connection, database: Database) -> None:
    cur = con.execute("select * from t1000 order by id")
    cur.fetchone()
    con.rollback()
    cur.fetchall()


def no_connection(con: onecopy.Connection, database: Database) -> None:
    onecopy.connect(database.odbc.replace(database.password, "wrong" + LONG[:5]), connect_timeout=5)


FAILURES = [wrong_syntax, unknown_table, long_message, wrong_count, wrong_type, closed_cursor, abandoned_rows]
FAILURES += [many_with_a_bad_row, ended_by_a_rollback]


def runs(
    n: int, use: Callable[[onecopy.Connection, Database], None], con: onecopy.Connection, database: Database
) -> None:
    for _ in range(n):
        with contextlib.suppress(onecopy.Error, TypeError):
            use(con, database)
        with contextlib.suppress(onecopy.Error):
            con.rollback()


CASES = [
    pytest.param(use, profile, id=f"{use.__name__}-{profile}")
    for use in (*FAILURES, no_connection)
    for profile in PROFILES
    if not (use is no_connection and profile == "sqlite_odbc")  # SQLite has no passwords.
]


@pytest.mark.parametrize(("use", "profile"), CASES)
def test_a_thousand_failures_leak_nothing(
    request: pytest.FixtureRequest, profile: str, use: Callable[[onecopy.Connection, Database], None]
) -> None:
    database: Database = request.getfixturevalue(profile)
    con = onecopy.connect(database.odbc)
    runs(200, use, con, database)
    gc.collect()
    memory, opened, threads = resident_bytes(), handles(), threading.active_count()
    runs(1000, use, con, database)
    gc.collect()
    grown = resident_bytes() - memory
    assert (handles(), threading.active_count()) == (opened, threads)
    assert grown < MOST_GROWTH_BYTES, f"{grown:,} bytes"
    assert con.usable
    con.close()


@pytest.mark.parametrize("profile", ["tds_freetds", "tds_msodbc", "tds_rust"])
def test_a_thousand_lost_connections_leak_nothing(request: pytest.FixtureRequest, profile: str) -> None:
    database: Database = request.getfixturevalue(profile)

    def lose(n: int) -> None:
        for _ in range(n):
            con = onecopy.connect(database.odbc)
            with contextlib.suppress(onecopy.Error):
                con.execute("select 1 as a from repeat(10) /* drop after 5 */").fetchall()
            con.close()

    lose(100)
    gc.collect()
    memory, opened = resident_bytes(), handles()
    lose(1000)
    gc.collect()
    assert handles() == opened
    assert resident_bytes() - memory < MOST_GROWTH_BYTES
