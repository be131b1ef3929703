"""`onecopy.aio` on PostgreSQL's native protocol: the event loop watches the socket, without a
thread."""

from __future__ import annotations

import asyncio
import gc
import subprocess
import sys
import threading
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

import pytest

import onecopy
from onecopy import aio
from onecopy.aio._event_loop import EventLoopRunner
from tests.postgres.test_lifetime import EXISTS, RUNS, of_port, until
from tests.support.relay import Relay
from tests.support.secured import Secured

SERIES = "select n, 'row ' || n from generate_series(1, ?::int) as n"


@pytest.fixture(params=["disable", "require"])
def target(request: pytest.FixtureRequest, secured: Secured) -> str:
    """A connection string, without and with TLS."""
    return of_port(secured.port, request.param)


def run(main: Callable[[], Coroutine[Any, Any, None]]) -> None:
    asyncio.run(main())


def rows_of(first: int, last: int) -> list[tuple[int, str]]:
    return [(n, f"row {n}") for n in range(first, last + 1)]


async def pid_of(con: aio.Connection) -> int:
    pid: int = (await (await con.execute("select pg_backend_pid()")).fetchall())[0][0]
    return pid


async def until_it_runs(secured: Secured, pid: int) -> None:
    await asyncio.to_thread(until, secured, RUNS, pid, 1)


@pytest.mark.parametrize("n_rows", [0, 1, 2, 1000, 100_000])
def test_rows_are_returned_by_every_fetch(target: str, n_rows: int) -> None:
    async def main() -> None:
        con = await aio.connect(target)
        expected = rows_of(1, n_rows)
        assert await (await con.execute(SERIES, [n_rows])).fetchall() == expected
        assert [row async for row in await con.execute(SERIES, [n_rows])] == expected
        cur = await con.execute(SERIES, [n_rows])
        assert await cur.fetchone() == (expected[0] if expected else None)
        assert await cur.fetchmany(3) == expected[1:4]
        assert await cur.fetchmany(50_000) == expected[4:50_004]
        assert await cur.fetchall() == expected[50_004:]
        assert await cur.fetchone() is None
        assert await cur.fetchmany() == []
        assert await (await con.execute(SERIES, [n_rows])).ndjson().read() == b"".join(
            b'{"n":%d,"?column?":"row %d"}\n' % (n, n) for n, _ in expected
        )
        await con.close()
        await con.close()

    run(main)


def test_no_thread_is_started(target: str) -> None:
    async def main() -> None:
        connections = [await aio.connect(target) for _ in range(20)]
        before = set(threading.enumerate())

        async def work(con: aio.Connection, i: int) -> None:
            for n in range(1, 30):
                assert await (await con.execute(SERIES, [n * i])).fetchall() == rows_of(1, n * i)
                await (con.commit() if n % 2 else con.rollback())

        await asyncio.gather(*(work(con, i) for i, con in enumerate(connections)))
        assert set(threading.enumerate()) <= before
        await asyncio.gather(*(con.close() for con in connections))

    run(main)


def test_calls_of_one_connection_run_one_after_the_other(target: str) -> None:
    async def main() -> None:
        con = await aio.connect(target)
        done: list[int] = []

        async def work(i: int) -> None:
            rows = await (await con.execute("select ?::int, pg_sleep(0.001)", [i])).fetchall()
            assert rows[0][0] == i
            done.append(i)

        await asyncio.gather(*(work(i) for i in range(20)))
        assert done == sorted(done)
        await con.close()

    run(main)


def test_calls_that_block_and_calls_that_suspend_share_a_connection(target: str) -> None:
    async def main() -> None:
        con = await aio.connect(target)
        await con.execute("create temporary table shared (n int)")
        await asyncio.gather(
            *(con.executemany("insert into shared values (?)", ([i] for i in range(100))) for _ in range(5)),
            *(con.execute("insert into shared values (?)", [i]) for i in range(50)),
        )
        assert await (await con.execute("select count(*) from shared")).fetchall() == [(550,)]
        await con.close()

    run(main)


def test_results_of_several_cursors_are_read_in_turns(target: str) -> None:
    async def main() -> None:
        con = await aio.connect(target)
        cursors = [await con.execute(SERIES, [20_000]) for _ in range(3)]
        rows: list[list[Any]] = [[], [], []]
        while len(rows[2]) < 20_000:
            for cur, mine in zip(cursors, rows, strict=True):
                mine += await cur.fetchmany(700)
        assert rows == [rows_of(1, 20_000)] * 3
        await con.close()

    run(main)


def test_a_stream_is_read_while_other_connections_go_on(target: str) -> None:
    async def main() -> None:
        async with aio.Pool(target, max_size=3) as pool:

            async def lines() -> int:
                return sum([chunk.count(b"\n") async for chunk in await pool.stream(SERIES, [50_000], format="ndjson")])

            async def count() -> int:
                async with pool.connection() as con:
                    found: int = (await (await con.execute("select count(*) from generate_series(1, 99)")).fetchall())[
                        0
                    ][0]
                    return found

            found = await asyncio.gather(*(lines() for _ in range(4)), *(count() for _ in range(20)))
            assert found == [50_000] * 4 + [99] * 20

    run(main)


CALLS: dict[str, Callable[[aio.Connection], Awaitable[object]]] = {
    "execute": lambda con: con.execute("select pg_sleep(60)"),
    "executemany": lambda con: con.executemany("select pg_sleep(?)", [[30], [30]]),
    "stream": lambda con: _read_stream(con),
    "fetch": lambda con: _fetch_slowly(con),
}


async def _read_stream(con: aio.Connection) -> None:
    cur = await con.execute(
        "select n, pg_sleep(case when n > 30000 then 60 else 0 end) from generate_series(1, 40000) n"
    )
    await cur.json().read()


async def _fetch_slowly(con: aio.Connection) -> None:
    cur = await con.execute(
        "select n, pg_sleep(case when n > 30000 then 60 else 0 end) from generate_series(1, 40000) n"
    )
    await cur.fetchall()


@pytest.mark.parametrize("name", CALLS)
def test_cancelling_a_task_cancels_its_statement_and_the_connection_survives(
    secured: Secured, target: str, name: str
) -> None:
    async def main() -> None:
        con = await aio.connect(target, autocommit=True)
        pid = await pid_of(con)
        task = asyncio.ensure_future(CALLS[name](con))
        await until_it_runs(secured, pid)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        # It waits for the end of the cancelled statement.
        assert await (await con.execute("select 1")).fetchall() == [(1,)]
        assert con.usable
        await con.close()

    run(main)


SLOW = "select n, pg_sleep(case when n > 20000 then 600 else 0 end) from generate_series(1, 40000) n"


async def read_stream(stream: aio.RowStream) -> None:
    async for _ in stream:
        pass


READS: dict[str, Callable[[aio.Cursor], Coroutine[Any, Any, object]]] = {
    "fetchall": lambda cur: cur.fetchall(),
    "fetchmany": lambda cur: cur.fetchmany(40000),
    "read": lambda cur: cur.ndjson().read(),
    "for": lambda cur: read_stream(cur.csv()),
    "begin": lambda cur: cur.json().begin(),
}


@pytest.mark.parametrize("name", READS)
def test_a_task_that_is_cancelled_before_its_next_call_cancels_its_statement(target: str, name: str) -> None:
    """A task is cancelled while no call to the server is active.

    This is possible because each call first lets other tasks run if the event loop was busy.
    """

    async def main() -> None:
        con = await aio.connect(target, autocommit=True)
        cur = await con.execute(SLOW)
        if name.startswith("fetch"):
            while cur._cur._is_ready:  # Until the next rows have to be received.
                assert cur._cur._fetch_ready(1000)
        runner = con._runner()
        assert isinstance(runner, EventLoopRunner)
        runner._busy_until = 0.0
        task = asyncio.ensure_future(READS[name](cur))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert await (await con.execute("select 1")).fetchall() == [(1,)]
        assert con.usable
        await con.close()

    run(main)


def test_a_call_that_waits_for_its_turn_is_cancelled_without_effect(secured: Secured, target: str) -> None:
    async def main() -> None:
        con = await aio.connect(target, autocommit=True)
        await con.execute("create temporary table once (n int)")
        pid = await pid_of(con)
        first = asyncio.ensure_future(con.execute("select pg_sleep(0.3)"))
        await until_it_runs(secured, pid)
        second = asyncio.ensure_future(con.execute("insert into once values (1)"))
        third = asyncio.ensure_future(con.execute("select 3"))
        await asyncio.sleep(0)
        second.cancel()
        assert await (await first).fetchall() == [("",)]
        assert await (await third).fetchall() == [(3,)]
        with pytest.raises(asyncio.CancelledError):
            await second
        assert await (await con.execute("select count(*) from once")).fetchall() == [(0,)]
        await con.close()

    run(main)


@pytest.mark.parametrize("name", ["execute", "fetch"])
def test_a_time_limit_cancels_the_statement(target: str, name: str) -> None:
    async def main() -> None:
        con = await aio.connect(target, autocommit=True, query_timeout=0.2)
        with pytest.raises(onecopy.OperationalError, match=r"time limit of 0\.2 s") as raised:
            await CALLS[name](con)
        assert raised.value.sqlstate == "HYT00"
        assert await (await con.execute("select 1")).fetchall() == [(1,)]
        await con.close()

    run(main)


@pytest.mark.parametrize("mode", ["disable", "require"])
@pytest.mark.parametrize("name", ["execute", "insert of 4 MB"])
def test_a_silent_network_ends_at_the_time_limit(secured: Secured, mode: str, name: str) -> None:
    async def main() -> None:
        with Relay(secured.port) as relay:
            con = await aio.connect(of_port(relay.port, mode), query_timeout=0.3)
            await (await con.execute("select 1")).fetchall()
            relay.silence()
            with pytest.raises(onecopy.OperationalError, match="time limit"):
                await (
                    con.execute("select 2") if name == "execute" else con.execute("select length(?)", ["x" * (4 << 20)])
                )
            assert not con.usable
            await con.close()

    run(main)


def test_long_parameters_and_answers_are_sent_at_the_same_time(target: str) -> None:
    async def main() -> None:
        con = await aio.connect(target)
        text = "xyzø" * (2 << 20)
        rows = await (await con.execute("select ?, ?, ?", [text, text, text])).fetchall()
        assert rows == [(text, text, text)]
        await con.close()

    run(main)


def test_a_lost_connection_is_an_error(secured: Secured, target: str) -> None:
    async def main() -> None:
        con, idle = await aio.connect(target), await aio.connect(target)
        pids = await pid_of(con), await pid_of(idle)
        task = asyncio.ensure_future(con.execute("select pg_sleep(60)"))
        await until_it_runs(secured, pids[0])
        with secured.admin() as admin:
            for pid in pids:
                admin.execute("select pg_terminate_backend(%s)", [pid])
        with pytest.raises(onecopy.OperationalError) as raised:
            await task
        assert raised.value.sqlstate in ("57P01", "08006")
        for pid in pids:
            await asyncio.to_thread(until, secured, EXISTS, pid, 0)
        with pytest.raises(onecopy.OperationalError):
            await idle.execute("select 1")
        assert not con.usable
        assert not idle.usable
        await con.close()
        await idle.close()

    run(main)


def test_a_blocking_call_on_the_loop_of_a_suspended_one_is_an_error(secured: Secured, target: str) -> None:
    async def main() -> None:
        con = await aio.connect(target, autocommit=True)
        pid = await pid_of(con)
        task = asyncio.ensure_future(con.execute("select pg_sleep(60)"))
        await until_it_runs(secured, pid)
        with pytest.raises(onecopy.InterfaceError, match="on the same event loop"):
            con.sync.execute("select 1")
        # A call of another thread waits.
        other = asyncio.ensure_future(asyncio.to_thread(lambda: con.sync.execute("select 8").fetchall()))
        await con.cancel()
        with pytest.raises(onecopy.OperationalError, match="cancelled"):
            await task
        assert await other == [(8,)]
        await con.close()

    run(main)


def test_a_connection_moves_to_the_next_event_loop(secured: Secured, target: str) -> None:
    connections: list[aio.Connection] = []

    async def first() -> None:
        con = await aio.connect(target)
        connections.append(con)
        assert await (await con.execute("select 1")).fetchall() == [(1,)]

    async def second() -> None:
        assert await (await connections[0].execute("select 2")).fetchall() == [(2,)]
        await connections[0].rollback()
        await connections[0].close()

    run(first)
    run(second)


@pytest.mark.parametrize("mode", ["disable", "require"])
def test_a_call_that_the_loop_does_not_await_to_its_end_closes_the_connection(secured: Secured, mode: str) -> None:
    kept: list[Any] = []

    async def main(relay: Relay) -> None:
        con = await aio.connect(of_port(relay.port, mode))
        pid = await pid_of(con)
        kept.extend([con, asyncio.ensure_future(con.execute("select pg_sleep(60)"))])
        await until_it_runs(secured, pid)
        # The request to cancel does not arrive either.
        relay.silence()

    async def again() -> None:
        # The call was abandoned with its loop.
        with pytest.raises(onecopy.Error):
            await kept[0].execute("select 1")
        assert not kept[0].usable

    with Relay(secured.port) as relay:
        run(lambda: main(relay))
        assert kept.pop().cancelled()
        run(again)
        kept.clear()


def test_connections_that_are_not_closed_leave_nothing_on_the_loop(secured: Secured, target: str) -> None:
    async def main() -> None:
        pids = []
        for _ in range(5):
            con = await aio.connect(target)
            pids.append(await pid_of(con))
            await con.execute("select 1")
            del con
            gc.collect()
        for pid in pids:
            await asyncio.to_thread(until, secured, EXISTS, pid, 0)
        # Descriptors with the same numbers are registered anew.
        connections = [await aio.connect(target) for _ in range(8)]
        await asyncio.gather(*(con.execute("select pg_sleep(0.01)") for con in connections))
        await asyncio.gather(*(con.close() for con in connections))

    run(main)


def test_a_program_ends_while_a_call_is_suspended(secured: Secured, target: str) -> None:
    code = f"""if True:
        import asyncio, onecopy.aio

        async def main():
            con = await onecopy.aio.connect({target!r})
            await con.execute("select 1")
            task = asyncio.ensure_future(con.execute("select pg_sleep(60)"))
            await asyncio.sleep(0)
            globals()["kept"] = con, task
            print("ends")

        asyncio.run(main())
        """
    done = subprocess.run([sys.executable, "-X", "dev", "-c", code], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (0, "ends\n", "")


def test_each_await_lets_other_tasks_run(secured: Secured, target: str) -> None:
    async def main() -> None:
        con = await aio.connect(target)
        ticks = 0
        slow = asyncio.ensure_future(con.execute("select pg_sleep(0.2)"))
        while not slow.done():
            ticks += 1
            await asyncio.sleep(0)
        assert ticks > 10
        await con.close()

    run(main)


def test_an_error_in_a_later_row_comes_after_the_rows_before_it(target: str) -> None:
    async def main() -> None:
        con = await aio.connect(target, autocommit=True)
        sql = "select 10000 / (3000 - n) from generate_series(1, 4000) as n"
        with pytest.raises(onecopy.DataError, match="division by zero"):
            await (await con.execute(sql)).fetchall()
        cur, n_rows = await con.execute(sql), 0
        while n_rows < 2999:
            n_rows += len(await cur.fetchmany(1000))
        assert n_rows == 2999
        with pytest.raises(onecopy.DataError, match="division by zero"):
            await cur.fetchmany(1000)
        assert await (await con.execute("select 1")).fetchall() == [(1,)]
        await con.close()

    run(main)


@pytest.mark.parametrize("is_suspended", [False, True])
def test_a_call_may_be_dropped_by_another_thread(target: str, is_suspended: bool) -> None:
    con = onecopy.connect(target, autocommit=True)
    calls = [con.cursor()._begin_execute("select pg_sleep(0.1)")]
    wait = calls[0].resume()
    assert wait is not None
    if not is_suspended:
        while calls[0].resume() is not None:
            pass
    # An exception that Python cannot raise would fail the test.
    thread = threading.Thread(target=calls.clear)
    thread.start()
    thread.join()
    if not is_suspended:
        assert con.execute("select 1").fetchall() == [(1,)]
        con.close()
