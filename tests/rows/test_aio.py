"""`onecopy.aio`: rows with `await`, cancellation that reaches the database, and pools for tasks."""

from __future__ import annotations

import array
import asyncio
import gc
import pathlib
import subprocess
import sys
import threading
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

import pytest

import onecopy
from onecopy import aio
from tests.conftest import Database

MEMORY = "sqlite::memory:"
COUNT = "with recursive c(i) as (select 1 union all select i + 1 from c where i < {}) select i, 'row ' || i from c"
ENDLESS = "with recursive c(i) as (select 1 union all select i + 1 from c) select count(*) from c"


def run(main: Callable[[], Coroutine[Any, Any, None]]) -> None:
    asyncio.run(main())


def test_rows_are_returned_by_every_fetch() -> None:
    async def main() -> None:
        con = await aio.connect(MEMORY)
        expected = [(i, f"row {i}") for i in range(1, 1001)]
        cur = await con.execute(COUNT.format(1000))
        assert [row async for row in cur] == expected
        cur = await con.execute(COUNT.format(1000))
        assert await cur.fetchone() == expected[0]
        assert await cur.fetchone() == expected[1]
        assert cur.rownumber == 2
        assert await cur.fetchmany(3) == expected[2:5]
        assert await cur.fetchmany(400) == expected[5:405]
        await cur.scroll(5)
        await cur.scroll(500, "absolute")
        assert cur.rownumber == 500
        assert await cur.fetchall() == expected[500:]
        assert await cur.fetchone() is None
        assert await cur.fetchmany() == []
        with pytest.raises(IndexError):
            await cur.scroll(1)
        await con.close()
        await con.close()

    run(main)


def test_a_cursor_scrolls_forward_and_keeps_prefetched_rows() -> None:
    async def main() -> None:
        con = await aio.connect(MEMORY)
        cur = await con.execute(COUNT.format(100))
        for _ in range(3):
            await cur.fetchone()
        with pytest.raises(onecopy.NotSupportedError):
            await cur.scroll(-1)
        with pytest.raises(onecopy.NotSupportedError):
            await cur.scroll(0, "absolute")
        assert await cur.fetchone() == (4, "row 4")
        await cur.scroll(20)
        assert await cur.fetchone() == (25, "row 25")
        await con.close()

    run(main)


def test_a_transaction_is_committed_or_rolled_back_by_the_block(tmp_path: pathlib.Path) -> None:
    async def main() -> None:
        con = await aio.connect(f"sqlite:{tmp_path / 't.db'}")
        async with con:
            await con.execute("create table t (a)")
            cur = await con.executemany("insert into t values (?)", ([i] for i in range(3)))
            assert cur.rowcount == 3

        async def fail() -> None:
            async with con:
                await con.execute("delete from t")
                raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            await fail()
        assert await (await con.execute("select count(*) from t where a < :a", {"a": 2})).fetchone() == (2,)
        assert con.autocommit is False
        await con.commit()
        await con.set_autocommit(True)
        await con.execute("insert into t values (9)")
        await con.rollback()
        assert await (await con.execute("select max(a) from t")).fetchall() == [(9,)]
        await con.close()

    run(main)


def test_streams_are_asynchronous_iterables(tmp_path: pathlib.Path) -> None:
    async def main() -> None:
        con = await aio.connect(MEMORY)
        with onecopy.connect(MEMORY) as sync:
            expected = sync.execute(COUNT.format(20_000)).json().read()
        stream = (await con.execute(COUNT.format(20_000))).json()
        chunks = [chunk async for chunk in stream]
        assert len(chunks) > 1 and b"".join(chunks) == expected
        assert stream.n_rows == 20_000
        assert await (await con.execute("select 1 as a")).ndjson().read() == b'{"a":1}\n'
        file = tmp_path / "a.csv"
        assert await (await con.execute("select 1 as a")).csv().write_to(file) == 4
        assert file.read_bytes() == b"a\n1\n"
        async with (await con.execute(COUNT.format(20_000))).json() as stream:
            await anext(aiter(stream))
        with pytest.raises(onecopy.ProgrammingError):
            (await con.execute("create table t (a)")).json()
        await con.close()

    run(main)


def test_the_loop_runs_while_a_query_does() -> None:
    async def main() -> None:
        con = await aio.connect(MEMORY)
        task = asyncio.ensure_future(con.execute(COUNT.format(300_000) + " order by 2 desc"))
        turns = 0
        while not task.done():
            turns += 1
            await asyncio.sleep(0)
        assert turns > 10
        await task
        await con.close()

    run(main)


def test_calls_of_several_tasks_on_one_connection_run_one_after_the_other() -> None:
    async def main() -> None:
        con = await aio.connect(MEMORY)
        seen: list[str] = []

        def name_of(of: type) -> str:
            seen.append(threading.current_thread().name)
            return of.__name__

        con.adapters[type] = name_of
        cursors = await asyncio.gather(*(con.execute("select ?, ?", (i, int)) for i in range(50)))
        assert [await cur.fetchone() for cur in cursors] == [(i, "int") for i in range(50)]
        assert len(seen) == 50 and len(set(seen)) == 1
        await con.close()

    run(main)


def calls(con: aio.Connection) -> list[Callable[[], Awaitable[object]]]:
    """Functions that each wait for an endless query in another way."""

    async def iterate() -> None:
        async for _ in await con.execute(ENDLESS):
            pass

    async def stream() -> None:
        async for _ in (await con.execute(ENDLESS)).json():
            pass

    async def write() -> None:
        endless = COUNT.replace("where i < {}", "")
        with open("/dev/null", "wb") as file:
            await (await con.execute(endless)).csv().write_to(file)

    async def change() -> None:
        await con.execute(f"insert into t {ENDLESS}")

    return [iterate, stream, write, change]


@pytest.mark.parametrize("which", range(4), ids=["rows", "stream", "file", "insert"])
def test_cancelling_a_task_cancels_its_statement_and_the_connection_survives(which: int) -> None:
    async def main() -> None:
        con = await aio.connect(MEMORY)
        await con.execute("create table t (a)")
        await con.commit()
        task = asyncio.ensure_future(calls(con)[which]())
        for _ in range(50):
            await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        # Submitted after the endless statement to the same thread: it runs only when that one has
        # ended.
        await con.rollback()
        assert await (await con.execute("select count(*) from t")).fetchone() == (0,)
        await con.close()

    run(main)


def test_a_call_cancelled_before_it_starts_never_runs() -> None:
    async def main() -> None:
        con = await aio.connect(MEMORY, autocommit=True)
        await con.execute("create table t (a)")
        endless = asyncio.ensure_future(con.execute(ENDLESS))
        queued = asyncio.ensure_future(con.execute("insert into t values (1)"))
        await asyncio.sleep(0)
        queued.cancel()
        with pytest.raises(asyncio.CancelledError):
            await queued
        endless.cancel()
        with pytest.raises(asyncio.CancelledError):
            await endless
        assert await (await con.execute("select count(*) from t")).fetchone() == (0,)
        await con.close()

    run(main)


def test_the_cancellation_reaches_the_database(postgres: Database) -> None:
    async def main() -> None:
        con = await aio.connect(postgres.odbc)
        watch = await aio.connect(postgres.odbc, autocommit=True)
        active = "select 1 from pg_stat_activity where query like '%pg_sleep(601)%' and pid <> pg_backend_pid() "
        active += "and state = 'active'"
        task = asyncio.ensure_future(con.execute("select pg_sleep(601)"))
        while not await (await watch.execute(active)).fetchall():
            pass
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await con.rollback()
        assert await (await watch.execute(active)).fetchall() == []
        assert await (await con.execute("select 1")).fetchone() == (1,)
        await con.close()
        await watch.close()

    run(main)


def test_errors_are_raised_in_the_task() -> None:
    async def main() -> None:
        con = await aio.connect(MEMORY)
        with pytest.raises(onecopy.ProgrammingError, match="no such table"):
            await con.execute("select * from nowhere")
        with pytest.raises(onecopy.ProgrammingError, match="no rows"):
            await con.cursor().fetchone()
        await con.close()
        with pytest.raises(onecopy.InterfaceError, match="closed"):
            await con.execute("select 1")
        with pytest.raises(onecopy.OperationalError):
            await aio.connect("sqlite:/no/such/dir/x.db")

    run(main)


def test_a_stop_iteration_of_a_callback_is_a_runtime_error() -> None:
    def stop(cursor: object) -> Any:
        return lambda row: next(iter(()))

    async def main() -> None:
        con = await aio.connect(MEMORY, row_factory=stop)
        cur = await con.execute("select 1")
        with pytest.raises(RuntimeError, match="StopIteration"):
            await cur.fetchall()
        await con.close()

    run(main)


def test_a_ledger_counts_the_work_of_the_thread() -> None:
    async def main() -> None:
        con = await aio.connect(MEMORY)
        with onecopy.ledger() as ledger:
            await (await con.execute("select 'Zoë'")).fetchall()
        assert ledger.taken > 0
        await con.close()

    run(main)


def test_row_factories_and_properties_are_those_of_the_cursor() -> None:
    async def main() -> None:
        con = await aio.connect(MEMORY, row_factory=onecopy.rows.dict_row)
        async with con.cursor() as cur:
            assert cur.connection is con
            assert await (await cur.execute("select 1 as a, 'x' as b")).fetchall() == [{"a": 1, "b": "x"}]
            assert cur.description is not None and [d[0] for d in cur.description] == ["a", "b"]
            cur.row_factory = onecopy.rows.scalar_row
            await cur.execute("select null union all select 2")
            assert [value async for value in cur] == [None, 2]
            cur.arraysize = 2
            assert (cur.arraysize, cur.rowcount, cur.messages, await cur.nextset()) == (2, -1, [], None)
            cur.converters["a"] = str
            assert cur.converters == {"a": str} and con.converters == {}
        assert repr(con).startswith("<onecopy.aio.Connection: SQLite")
        assert con.sync.row_factory is con.row_factory
        await con.close()

    run(main)


def test_columns_are_inserted_and_fetched() -> None:
    async def main() -> None:
        con = await aio.connect(MEMORY)
        await con.execute("create table t (i integer, r real, s text)")
        columns = [array.array("q", range(1000)), array.array("d", range(1000)), [f"row {i}" for i in range(1000)]]
        assert (await con.executemany("insert into t values (?, ?, ?)", columns=columns)).rowcount == 1000
        cur = await con.execute("select i, r from t order by i")
        ints, reals = await cur.fetch_columns()
        assert list(memoryview(ints)) == list(range(1000)) and list(memoryview(reals)) == list(map(float, range(1000)))
        cur = await con.execute("select i from t")
        assert await cur.fetchone() == (0,) and await cur.fetchone() == (1,)
        with pytest.raises(onecopy.ProgrammingError, match="were prefetched"):
            await cur.fetch_columns()
        assert len(await cur.fetchall()) == 998
        cur = await con.execute("select i from t")
        assert await cur.fetchone() == (0,)
        with pytest.raises(onecopy.ProgrammingError, match="fetched already"):
            await cur.arrow()
        with pytest.raises(TypeError, match="either rows or `columns`"):
            await con.executemany("insert into t values (1, 2, '')")
        await con.close()

    run(main)


def test_a_pool_lends_to_tasks_in_order(tmp_path: pathlib.Path) -> None:
    async def main() -> None:
        order: list[int] = []
        async with aio.Pool(f"sqlite:{tmp_path / 't.db'}", min_size=1, max_size=2) as pool:
            assert pool.stats()[:2] == (1, 0)
            async with pool.connection() as con:
                await con.execute("create table t (a)")

            async def work(number: int) -> None:
                async with pool.connection() as con:
                    order.append(number)
                    await con.execute("select count(*) from t")

            await asyncio.gather(*(work(i) for i in range(20)))
            assert sorted(order) == list(range(20)) and order.index(19) > 15
            assert pool.stats()[1:4] == (0, 0, 0)
            assert pool.stats().opened <= 2
            with pytest.raises(onecopy.InterfaceError, match="returned to its pool"):
                await con.execute("select 1")
            with pytest.raises(onecopy.InterfaceError, match="not lent out by this pool"):
                await pool.release(con)
        assert repr(pool) == "<onecopy.aio.Pool: closed>"
        with pytest.raises(onecopy.InterfaceError, match="closed"):
            await pool.acquire()

    run(main)


def test_a_task_waits_for_a_connection_until_the_limit() -> None:
    async def main() -> None:
        async with aio.Pool(MEMORY, max_size=1) as pool:
            con = await pool.acquire()
            with pytest.raises(onecopy.PoolTimeout, match="1 of 1 connections are out"):
                await pool.acquire(timeout=0)
            waiting = asyncio.ensure_future(pool.acquire())
            await asyncio.sleep(0)
            assert pool.stats().waiting == 1
            waiting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await waiting
            assert pool.stats().waiting == 0
            waiting = asyncio.ensure_future(pool.acquire())
            await asyncio.sleep(0)
            await pool.release(con)
            assert (await waiting).sync.usable and pool.stats().opened == 1
            late = asyncio.ensure_future(pool.acquire())
            await asyncio.sleep(0)
            await pool.close()
            with pytest.raises(onecopy.InterfaceError, match="closed"):
                await late
            await pool.release(await waiting)
            assert pool.stats()[:4] == (0, 0, 0, 0)

    run(main)


def test_a_task_cancelled_in_its_block_returns_a_usable_connection() -> None:
    async def main() -> None:
        async with aio.Pool(MEMORY, max_size=1) as pool:
            entered = asyncio.Event()

            async def work() -> None:
                async with pool.connection() as con:
                    entered.set()
                    await (await con.execute(ENDLESS)).fetchone()

            task = asyncio.ensure_future(work())
            await entered.wait()
            for _ in range(50):
                await asyncio.sleep(0)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            async with pool.connection() as con:
                assert await (await con.execute("select 1")).fetchone() == (1,)
            assert pool.stats()[:4] == (1, 0, 0, 0)

    run(main)


def test_a_connection_that_is_granted_too_late_is_returned_to_the_pool() -> None:
    async def main() -> None:
        opening, go_on = threading.Event(), threading.Event()

        def slow(con: onecopy.Connection) -> None:
            opening.set()
            go_on.wait()

        pool = aio.Pool(MEMORY, max_size=1, configure=slow)
        task = asyncio.ensure_future(pool.acquire())
        while not opening.is_set():
            await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        go_on.set()
        async with pool.connection() as con:
            assert await (await con.execute("select 1")).fetchone() == (1,)
        assert pool.stats().opened == 1
        await pool.close()

    run(main)


def test_threads_end_with_their_connections() -> None:
    async def main() -> None:
        before = set(threading.enumerate())
        connections = [await aio.connect(MEMORY) for _ in range(3)]
        for con in connections:
            await con.execute("select 1")
        threads = [t for t in threading.enumerate() if t.name.startswith("onecopy-aio") and t not in before]
        assert len(threads) == 3
        for con in connections[:2]:
            await con.close()
        del con, connections
        gc.collect()
        for thread in threads:
            thread.join()

    run(main)


def test_a_program_exits_although_nothing_was_closed() -> None:
    program = f"""
import asyncio, onecopy
async def main():
    con = await onecopy.aio.connect("{MEMORY}")
    pool = onecopy.aio.Pool("{MEMORY}", min_size=2)
    await pool.open()
    other = await pool.acquire()
    task = asyncio.ensure_future(con.execute("{ENDLESS}"))
    await asyncio.sleep(0)
    print(await (await other.execute("select 1")).fetchall())
asyncio.run(main())
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert (done.stdout, done.stderr, done.returncode) == ("[(1,)]\n", "", 0)
