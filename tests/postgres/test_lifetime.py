"""The lifetime of connections by PostgreSQL's native protocol: cancel, time limits, silent
networks, lost connections, fork, threads and interpreter exit."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import onecopy
from tests.soak.kills import Kills
from tests.support.relay import Relay
from tests.support.secured import PASSWORD, Secured, keywords

EXISTS = "select count(*) from pg_stat_activity where pid = %s"
RUNS = "select count(*) from pg_stat_activity where pid = %s and state = 'active'"


@pytest.fixture(params=["disable", "require"])
def target(request: pytest.FixtureRequest, secured: Secured) -> str:
    """A connection string, without and with TLS."""
    return of_port(secured.port, request.param)


def of_port(port: int, mode: str) -> str:
    """The connection string of a server on ``port``; ``mode`` is its `sslmode`."""
    values = {"host": "127.0.0.1", "port": port, "dbname": "postgres", "user": "scram_user", "password": PASSWORD}
    return "postgresql:" + keywords(sslmode=mode, **values)


def until(secured: Secured, sql: str, pid: int, count: int) -> None:
    """Executes ``sql`` (a count of sessions with the backend ``pid``) until the result is
    ``count``."""
    with secured.admin() as admin:
        while admin.execute(sql, [pid]).fetchone() != (count,):
            pass


def pid_of(con: onecopy.Connection) -> int:
    """The process ID of the connection's backend."""
    pid: int = con.execute("select pg_backend_pid()").fetchall()[0][0]
    return pid


def test_cancel_from_another_thread(secured: Secured, target: str) -> None:
    con = onecopy.connect(target, autocommit=True)
    pid = pid_of(con)

    def cancel() -> None:
        until(secured, RUNS, pid, 1)
        con.cancel()

    thread = threading.Thread(target=cancel)
    thread.start()
    with pytest.raises(onecopy.OperationalError) as raised:
        con.execute("select pg_sleep(600)").fetchall()
    thread.join()
    assert raised.value.sqlstate == "57014" and con.usable
    assert con.execute("select 1").fetchall() == [(1,)]
    con.close()


def test_a_cancel_reaches_no_later_statement(target: str) -> None:
    con = onecopy.connect(target, autocommit=True)
    for i in range(50):
        assert con.execute("select ?::int", [i]).fetchall() == [(i,)]
        con.cancel()
        assert con.execute("select pg_sleep(0), ?::int", [i]).fetchall()[0][1] == i
    con.close()


def test_the_time_limit_of_a_statement(target: str) -> None:
    con = onecopy.connect(target, autocommit=True, query_timeout=0.2)
    for _ in range(3):
        with pytest.raises(onecopy.OperationalError, match="time limit"):
            con.execute("select pg_sleep(600)").fetchall()
        assert con.usable and con.execute("select 1").fetchall() == [(1,)]
    con.close()


def test_a_stream_is_cancelled_between_its_parts(secured: Secured, target: str) -> None:
    con = onecopy.connect(target, autocommit=True)
    pid = pid_of(con)
    stream = con.execute("select repeat('x', 1000) as t from generate_series(1, 1000000)").ndjson()
    next(stream)
    con.cancel()
    with pytest.raises(onecopy.OperationalError) as raised:
        for _ in stream:
            pass
    assert raised.value.sqlstate == "57014"
    until(secured, RUNS, pid, 0)
    assert con.execute("select 1").fetchall() == [(1,)]
    con.close()


INTERRUPTED = """
import sys
import onecopy
con = onecopy.connect(sys.argv[1], autocommit=True)
print(con.execute("select pg_backend_pid()").fetchall()[0][0], flush=True)
try:
    con.execute("select pg_sleep(600)").fetchall()
except KeyboardInterrupt:
    print("KeyboardInterrupt", con.execute("select 1").fetchall(), flush=True)
"""


def test_ctrl_c(secured: Secured, target: str) -> None:
    command = [sys.executable, "-c", INTERRUPTED, target]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        until(secured, RUNS, int(child.stdout.readline()), 1)
        child.send_signal(signal.SIGINT)
        assert child.communicate(timeout=60)[0] == "KeyboardInterrupt [(1,)]\n"


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_the_server_ends_the_session_of_a_client_that_disconnected(secured: Secured, target: str, number: int) -> None:
    code = "import sys, onecopy\ncon = onecopy.connect(sys.argv[1])\n"
    code += "print(con.execute('select pg_backend_pid()').fetchall()[0][0], flush=True)\nsys.stdin.read()"
    command = [sys.executable, "-c", code, target]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        pid = int(child.stdout.readline())
        child.send_signal(number)
        child.wait()
        until(secured, EXISTS, pid, 0)


CALLS: dict[str, Callable[[onecopy.Connection], object]] = {
    "execute": lambda con: con.execute("select 2"),
    "commit": lambda con: con.commit(),
    "rollback": lambda con: con.rollback(),
    "executemany": lambda con: con.executemany("select ?", [[1], [2]]),
    "insert of 4 MB": lambda con: con.execute("select length(?)", ["x" * (4 << 20)]),
}


@pytest.mark.parametrize("mode", ["disable", "require"])
@pytest.mark.parametrize("name", ["execute", "executemany", "insert of 4 MB"])
def test_a_silent_network_ends_at_the_time_limit(secured: Secured, mode: str, name: str) -> None:
    with Relay(secured.port) as relay:
        con = onecopy.connect(of_port(relay.port, mode), query_timeout=0.3)
        con.execute("select 1").fetchall()
        relay.silence()
        with pytest.raises(onecopy.OperationalError, match="time limit"):
            CALLS[name](con)
        assert not con.usable
        con.close()


@pytest.mark.parametrize("mode", ["disable", "require"])
@pytest.mark.parametrize("begun", ["idle", "transaction", "stream"])
def test_close_on_a_silent_network_is_bounded(secured: Secured, mode: str, begun: str) -> None:
    with Relay(secured.port) as relay:
        con = onecopy.connect(of_port(relay.port, mode), autocommit=begun == "idle")
        cur = con.execute(
            "select repeat('x', 1000) from generate_series(1, 100000)" if begun == "stream" else "select 1"
        )
        cur.fetchone()
        relay.silence()
        start = time.monotonic()
        cur.close()
        con.close()
        # The tests' own limit for a hang is 120 s.
        assert time.monotonic() - start < 20


def test_a_child_of_a_fork_cannot_use_the_connection_and_does_not_disturb_it(secured: Secured, target: str) -> None:
    con = onecopy.connect(target)
    cur = con.execute("select n from generate_series(1, 50000) as n")
    assert cur.fetchone() == (1,)
    read, write = os.pipe()
    with warnings.catch_warnings():
        # Python 3.12 and later warn about a fork in a process with threads.
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if child == 0:
        found = b""
        for call in (lambda: con.execute("select 1"), cur.fetchall, con.commit, con.cancel, cur.close, con.close):
            try:
                call()
            except onecopy.InterfaceError:
                found += b"I"
            except BaseException:
                found += b"x"
        os.write(write, found)
        os._exit(0)
    os.waitpid(child, 0)
    assert os.read(read, 100) == b"IIIIII"
    os.close(read)
    os.close(write)
    assert len(cur.fetchall()) == 49_999
    con.rollback()
    con.close()


def test_threads_share_a_connection(target: str) -> None:
    con = onecopy.connect(target, autocommit=True)
    wrong: list[object] = []

    def work(i: int) -> None:
        try:
            for n in range(60):
                rows = con.execute("select k, ?::int from generate_series(1, ?::int) as k", [i, 10 * n]).fetchall()
                if rows != [(k + 1, i) for k in range(10 * n)]:
                    wrong.append(rows)
        except Exception as error:
            wrong.append(error)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
    con.close()


def test_a_close_ends_the_call_of_another_thread(secured: Secured, target: str) -> None:
    con = onecopy.connect(target, autocommit=True)
    pid = pid_of(con)

    def close() -> None:
        until(secured, RUNS, pid, 1)
        con.close()

    thread = threading.Thread(target=close)
    thread.start()
    with pytest.raises(onecopy.Error):
        con.execute("select pg_sleep(600)").fetchall()
    thread.join()
    assert con.closed


ENDS = """
import sys, threading
import onecopy
started = threading.Barrier(4)
def work(sql):
    con = onecopy.connect(sys.argv[1], autocommit=True)
    started.wait()
    while True:
        b"".join(con.execute(sql).json())
for sql in ("select 1 as a", "select n from generate_series(1, 100000) n", "select pg_sleep(600) as a"):
    threading.Thread(target=work, args=(sql,), daemon=True).start()
kept = onecopy.connect(sys.argv[1])
open_result = kept.execute("select n from generate_series(1, 1000000) n")
open_result.fetchone()
started.wait()
"""


@pytest.mark.parametrize("attempt", range(3))
def test_the_process_ends_with_open_connections_and_daemon_threads(target: str, attempt: int) -> None:
    done = subprocess.run([sys.executable, "-c", ENDS, target], capture_output=True, text=True, timeout=100)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_pool_drops_connections_that_the_server_has_ended(secured: Secured, target: str) -> None:
    with onecopy.Pool(target, max_size=2) as pool:
        with pool.connection() as con:
            pid = pid_of(con)
        with secured.admin() as admin:
            admin.execute("select pg_terminate_backend(%s)", [pid])
        until(secured, EXISTS, pid, 0)
        with pool.connection() as con:
            assert pid_of(con) != pid


def test_a_terminated_session_is_an_error_with_the_servers_message(secured: Secured, target: str) -> None:
    con = onecopy.connect(target)
    pid = pid_of(con)
    with secured.admin() as admin:
        admin.execute("select pg_terminate_backend(%s)", [pid])
    until(secured, EXISTS, pid, 0)
    with pytest.raises(onecopy.OperationalError, match="terminating connection") as raised:
        con.execute("select 1").fetchall()
    assert raised.value.sqlstate == "57P01" and not con.usable
    con.close()


def test_a_copy_of_a_terminated_session_is_an_error_with_the_servers_message(secured: Secured, target: str) -> None:
    con = onecopy.connect(target)
    pid = pid_of(con)
    con.execute("create temporary table t (x text)")

    def chunks() -> Iterator[str]:
        for i in range(1000):
            if i == 100:
                with secured.admin() as admin:
                    admin.execute("select pg_terminate_backend(%s)", [pid])
                until(secured, EXISTS, pid, 0)
            yield "x" * 1000 + "\n"

    with pytest.raises(onecopy.OperationalError, match="terminating connection") as raised:
        con.cursor().copy_in("copy t from stdin", chunks())
    assert raised.value.sqlstate == "57P01" and not con.usable
    con.close()


def test_a_task_that_is_cancelled_cancels_its_statement(secured: Secured, target: str) -> None:
    async def main() -> None:
        con = await onecopy.aio.connect(target, autocommit=True)
        pid = (await (await con.execute("select pg_backend_pid()")).fetchall())[0][0]
        task = asyncio.create_task(con.execute("select pg_sleep(600)"))
        await asyncio.to_thread(until, secured, RUNS, pid, 1)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await asyncio.to_thread(until, secured, RUNS, pid, 0)
        assert await (await con.execute("select 1")).fetchall() == [(1,)]
        await con.close()

    asyncio.run(main())


@pytest.mark.parametrize("seed", range(2))
def test_a_connection_that_ends_at_a_random_point_loses_no_row_silently(postgres: Any, seed: int) -> None:
    kills = Kills(postgres.native, seed)
    try:
        for _ in range(15):
            kills.round()
    finally:
        kills.close()
