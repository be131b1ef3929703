"""`onecopy.Pool`: connections are lent in order of request, to any thread, despite forks and lost
connections."""

from __future__ import annotations

import asyncio
import os
import pathlib
import signal
import subprocess
import sys
import threading
from typing import Any

import pytest

import onecopy
import onecopy.aio
from onecopy import _pool_core
from tests.conftest import Database

MEMORY = "sqlite::memory:"


class Clock:
    """A clock for the pool whose time the test sets."""

    def __init__(self) -> None:
        self.seconds = 1000.0

    def __call__(self) -> float:
        return self.seconds


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(_pool_core, "now", made)
    return made


@pytest.fixture
def file(tmp_path: pathlib.Path) -> str:
    target = f"sqlite:{tmp_path / 't.db'}"
    with onecopy.connect(target) as con:
        con.execute("create table t (a)")
    con.close()
    return target


def until_waiting(pool: onecopy.Pool, n: int) -> None:
    """Waits until ``n`` callers wait for a connection of the pool."""
    while pool.stats().waiting != n:
        pass


def test_a_block_commits_and_returns_the_connection_and_an_exception_rolls_back(file: str) -> None:
    with onecopy.Pool(file, max_size=1) as pool:
        with pool.connection() as con:
            con.execute("insert into t values (1)")

        def fail() -> None:
            with pool.connection() as con:
                con.execute("insert into t values (2)")
                raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            fail()
        with pool.connection() as again:
            assert pool.stats().opened == 1
            assert again.execute("select a from t").fetchall() == [(1,)]
        assert pool.stats() == onecopy.PoolStats(1, 0, 0, 0, opened=1, dropped=0, lent=3, timeouts=0)


def test_uncommitted_changes_are_rolled_back_at_release(file: str) -> None:
    with onecopy.Pool(file, max_size=1) as pool:
        con = pool.acquire()
        con.execute("insert into t values (1)")
        pool.release(con)
        with pool.connection() as con:
            assert con.execute("select count(*) from t").fetchone() == (0,)


def test_min_size_connections_are_opened_at_once_and_kept(clock: Clock) -> None:
    pool = onecopy.Pool(MEMORY, min_size=2, max_size=3, max_idle=10)
    assert pool.stats()[:5] == (2, 0, 0, 0, 2)
    three = [pool.acquire() for _ in range(3)]
    for con in three:
        pool.release(con)
    assert pool.stats().idle == 3
    clock.seconds += 11
    pool.release(pool.acquire())
    assert pool.stats().idle == 2
    assert pool.stats().dropped == 1
    pool.close()


def test_a_connection_that_is_too_old_is_not_lent_again(clock: Clock) -> None:
    pool = onecopy.Pool(MEMORY, max_size=1, max_age=60, max_idle=None)
    first = pool.acquire()
    pool.release(first)
    clock.seconds += 59
    first = pool.acquire()
    assert pool.stats().opened == 1
    clock.seconds += 1
    pool.release(first)
    assert pool.stats()[:2] == (0, 0)
    with pytest.raises(onecopy.InterfaceError, match="returned to its pool"):
        first.execute("select 1")
    assert pool.acquire() is not first
    pool.close()


def test_settings_changed_by_a_borrower_are_restored(file: str) -> None:
    pool = onecopy.Pool(file, max_size=1, configure=lambda con: con.adapters.update({complex: str}))
    con = pool.acquire()
    con.autocommit = True
    con.row_factory = onecopy.rows.dict_row
    con.adapters[list] = str
    con.converters["text"] = str.upper
    pool.release(con)
    again = pool.acquire()
    assert pool.stats().opened == 1
    assert (again.autocommit, again.row_factory, again.adapters) == (False, None, {complex: str})
    assert again.converters == {}
    pool.close()


def test_reset_may_be_a_function_or_nothing(file: str) -> None:
    seen: list[onecopy.Connection] = []
    with onecopy.Pool(file, reset=seen.append) as pool:
        con = pool.acquire()
        pool.release(con)
    assert len(seen) == 1 and seen != [con]
    with onecopy.Pool(file, reset=None, probe=None, max_size=1) as pool:
        con = pool.acquire()
        con.execute("insert into t values (1)")
        pool.release(con)
        assert pool.acquire().execute("select a from t").fetchall() == [(1,)]


def test_a_connection_whose_probe_fails_is_replaced(file: str) -> None:
    with onecopy.Pool(file, max_size=1, probe="select * from probe", configure=make_probe) as pool:
        first = pool.acquire()
        pool.release(first)
        first = pool.acquire()
        assert pool.stats().opened == 1
        first.execute("drop table temp.probe")
        first.commit()
        pool.release(first)
        second = pool.acquire()
        assert second is not first
        assert pool.stats()[:6] == (0, 1, 0, 0, 2, 1)


def make_probe(con: onecopy.Connection) -> None:
    con.execute("create temporary table probe (a)")
    con.commit()


def test_waiters_are_served_first_come_first_served() -> None:
    pool = onecopy.Pool(MEMORY, max_size=1)
    con = pool.acquire()
    order: list[int] = []

    def work(number: int) -> None:
        with pool.connection():
            order.append(number)

    threads = []
    for number in range(5):
        threads.append(threading.Thread(target=work, args=(number,)))
        threads[-1].start()
        until_waiting(pool, number + 1)
    pool.release(con)
    for thread in threads:
        thread.join()
    assert order == [0, 1, 2, 3, 4]
    pool.close()


def test_the_timeout_reports_how_many_connections_are_out_and_for_how_long(clock: Clock) -> None:
    pool = onecopy.Pool(MEMORY, max_size=2, timeout=0)
    pool.acquire()
    clock.seconds += 5
    pool.acquire()
    clock.seconds += 2.5
    with pytest.raises(onecopy.PoolTimeout) as caught:
        pool.acquire()
    error = caught.value
    assert isinstance(error, onecopy.OperationalError)
    assert (error.n_out, error.longest_s, error.waited_s, error.sqlstate) == (2, 7.5, 0.0, "HYT00")
    assert "2 of 2 connections are out, for 7.5 s, 2.5 s\n" in str(error)
    with pytest.raises(onecopy.PoolTimeout), pool.connection(timeout=0.001):
        pass
    assert pool.stats().timeouts == 2
    assert pool.stats().waiting == 0
    pool.close()


def test_many_threads_never_hold_more_than_max_size(file: str) -> None:
    pool = onecopy.Pool(file, max_size=3, min_size=1)
    held, most, failures, lock = 0, 0, list[BaseException](), threading.Lock()

    def work() -> None:
        nonlocal held, most
        try:
            for _ in range(50):
                with pool.connection() as con:
                    with lock:
                        held += 1
                        most = max(most, held)
                    con.execute("select 1").fetchall()
                    with lock:
                        held -= 1
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work) for _ in range(10)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    assert 1 <= most <= 3
    assert pool.stats()[1:5:2] == (0, 0)
    assert (pool.stats().lent, pool.stats().timeouts) == (501, 0)
    pool.close()


def test_opening_a_connection_does_not_block_others() -> None:
    opening, go_on = threading.Event(), threading.Event()

    def slow(con: onecopy.Connection) -> None:
        if threading.current_thread() is not threading.main_thread():
            opening.set()
            go_on.wait()

    pool = onecopy.Pool(MEMORY, max_size=2, configure=slow)
    first = pool.acquire()
    thread = threading.Thread(target=lambda: pool.release(pool.acquire()))
    thread.start()
    opening.wait()
    assert pool.stats().opening == 1
    pool.release(first)
    first = pool.acquire()
    assert pool.stats().idle == 0
    with pytest.raises(onecopy.PoolTimeout, match=r"1 of 2 connections are out, .*, 1 being opened"):
        pool.acquire(timeout=0)
    go_on.set()
    thread.join()
    assert pool.stats()[:3] == (1, 1, 0)
    pool.close()


def test_a_connection_that_cannot_be_opened_frees_its_slot() -> None:
    missing = "sqlite:/no/such/dir/x.db"
    pool = onecopy.Pool(missing, max_size=1)
    for _ in range(3):
        with pytest.raises(onecopy.OperationalError):
            pool.acquire()
    assert pool.stats()[:4] == (0, 0, 0, 0)
    with pytest.raises(onecopy.OperationalError):
        onecopy.Pool(missing, min_size=1)


def test_returning_twice_or_to_another_pool_is_an_interface_error() -> None:
    pool, other = onecopy.Pool(MEMORY), onecopy.Pool(MEMORY)
    con = pool.acquire()
    with pytest.raises(onecopy.InterfaceError, match="not lent out by this pool"):
        other.release(con)
    pool.release(con)
    with pytest.raises(onecopy.InterfaceError, match="not lent out by this pool"):
        pool.release(con)


def test_closing_notifies_waiters_and_closes_returned_connections() -> None:
    pool = onecopy.Pool(MEMORY, max_size=1)
    con = pool.acquire()
    outcome: list[object] = []

    def wait() -> None:
        try:
            pool.acquire()
        except onecopy.Error as error:
            outcome.append(error)

    thread = threading.Thread(target=wait)
    thread.start()
    until_waiting(pool, 1)
    pool.close()
    thread.join()
    assert isinstance(outcome[0], onecopy.InterfaceError)
    assert con.execute("select 1").fetchone() == (1,)
    pool.release(con)
    with pytest.raises(onecopy.InterfaceError, match="returned to its pool"):
        con.execute("select 1")
    with pytest.raises(onecopy.InterfaceError, match="pool is closed"):
        pool.acquire()
    assert repr(pool) == "<onecopy.Pool: closed>"


# CPython 3.12 and newer warn about a fork in a process with threads, which this test does.
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_child_has_its_own_pool(file: str) -> None:
    pool = onecopy.Pool(file, max_size=1, timeout=5)
    con = pool.acquire()
    child = os.fork()
    if child == 0:
        code = 1
        try:
            with pool.connection() as own:
                fine = own is not con and own.execute("select count(*) from t").fetchone() == (0,)
            try:
                pool.release(con)
            except onecopy.InterfaceError:
                code = 0 if fine else 2
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    pool.release(con)
    assert pool.acquire().usable and pool.stats().opened == 1
    pool.close()


INTERRUPTED = """
import threading, onecopy
pool = onecopy.Pool("sqlite::memory:", max_size=1, timeout=None)
con = pool.acquire()

def ready():
    while not pool.stats().waiting:
        pass
    print("ready", flush=True)

threading.Thread(target=ready, daemon=True).start()
try:
    pool.acquire()
except KeyboardInterrupt:
    pool.release(con)
    print(pool.stats()[:4], pool.acquire().usable, flush=True)
"""


def test_ctrl_c_ends_the_wait() -> None:
    child = subprocess.Popen([sys.executable, "-c", INTERRUPTED], stdout=subprocess.PIPE, text=True)
    try:
        assert child.stdout is not None
        assert child.stdout.readline() == "ready\n"
        child.send_signal(signal.SIGINT)
        out, _ = child.communicate(timeout=60)
    finally:
        child.kill()
        child.wait()
    assert out == "(1, 0, 0, 0) True\n"


@pytest.mark.parametrize(
    "keywords",
    [
        {"min_size": -1},
        {"max_size": 0},
        {"min_size": 3, "max_size": 2},
        {"timeout": -1},
        {"max_age": float("nan")},
        {"max_idle": -1},
        {"reset": "commit"},
    ],
)
def test_invalid_arguments_are_refused(keywords: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=next(iter(keywords))):
        onecopy.Pool(MEMORY, **keywords)


@pytest.mark.parametrize("format", ["arrow", "fetchall", "close", "xml"])
def test_a_stream_of_an_unknown_format_is_refused(format: Any) -> None:
    with onecopy.Pool("sqlite::memory:", max_size=1) as pool:
        with pytest.raises(ValueError, match="'json', 'ndjson', 'csv', 'bson', not '" + format):
            pool.stream("select 1 as a", format=format)
        assert pool.stats().out == 0

    async def main() -> None:
        async with onecopy.aio.Pool("sqlite::memory:", max_size=1) as pool:
            with pytest.raises(ValueError, match="not '" + format):
                await pool.stream("select 1 as a", format=format)
            assert pool.stats().out == 0

    asyncio.run(main())


def test_options_are_passed_to_connect(file: str) -> None:
    with onecopy.Pool(file, read_only=True, autocommit=True, row_factory=onecopy.rows.dict_row) as pool:
        con = pool.acquire()
        assert con.autocommit
        assert con.execute("select count(*) as n from t").fetchone() == {"n": 0}
        with pytest.raises(onecopy.OperationalError, match="readonly"):
            con.execute("insert into t values (1)")
    with pytest.raises(TypeError, match="autocomit"):
        onecopy.Pool(file, min_size=1, autocomit=True)


def test_a_connection_that_the_server_ended_is_replaced(postgres: Database) -> None:
    admin = onecopy.connect(postgres.odbc, autocommit=True)
    pid = "select pg_backend_pid()"
    with onecopy.Pool(postgres.odbc, max_size=1) as pool:
        assert postgres.password not in repr(pool) + repr(vars(pool))
        with pool.connection() as con:
            first = con.execute(pid).fetchone()[0]
        # An idle connection: the check before it is lent finds it lost.
        admin.execute(f"select pg_terminate_backend({first})")
        with pool.connection() as con:
            second = con.execute(pid).fetchone()[0]
        assert second != first

        # A lent connection: the error is raised, and the connection is not reused.
        def work() -> None:
            with pool.connection() as con:
                admin.execute(f"select pg_terminate_backend({second})")
                con.execute("select 1").fetchall()

        with pytest.raises(onecopy.OperationalError):
            work()
        assert pool.stats()[:2] == (0, 0)
        with pool.connection() as con:
            assert con.execute(pid).fetchone()[0] not in (first, second)
    admin.close()


def test_a_wrong_password_is_not_shown(postgres: Database) -> None:
    wrong = postgres.odbc.replace(postgres.password, "s3cr3t-wrong")
    pool = onecopy.Pool(wrong, max_size=1)
    with pytest.raises(onecopy.OperationalError) as caught:
        pool.acquire()
    assert "s3cr3t-wrong" not in f"{caught.value!r} {caught.value} {pool!r}"


@pytest.mark.parametrize("reset", ["rollback", None])
@pytest.mark.parametrize("profile", ["sqlite", "postgres_native", "postgres", "mariadb"])
@pytest.mark.filterwarnings("ignore::onecopy.DriverWarning")
def test_a_released_connection_is_closed_for_its_borrower(
    request: pytest.FixtureRequest, profile: str, reset: Any, file: str
) -> None:
    target = file if profile == "sqlite" else request.getfixturevalue(profile).odbc
    with onecopy.Pool(target, max_size=1, reset=reset, autocommit=True) as pool:
        con = pool.acquire()
        con.adapters[complex] = str
        cur = con.execute("select 1 union all select 2")
        assert cur.fetchone() == (1,)
        pool.release(con)
        assert con.closed and not con.usable
        for use in (
            con.cursor,
            con.commit,
            lambda: con.execute("select 1"),
            lambda: con.executemany("select ?", [(1,)]),
            lambda: cur.execute("select 1"),
            cur.fetchone,
            cur.fetchall,
            lambda: next(cur),
            cur.json,
        ):
            with pytest.raises(onecopy.InterfaceError, match="returned to its pool"):
                use()
        con.close()  # Has no effect on the next borrower.
        cur.close()
        with pool.connection() as again:
            assert again.execute("select 3").fetchall() == [(3,)]
            assert (complex in again.adapters) == (reset is None)
        assert pool.stats().opened == 1
