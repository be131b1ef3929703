"""Calls of `onecopy.aio` on the native protocol that read Python objects, or wait between results:
cancellation, errors of the iterables, their context, forks and other event loops."""

from __future__ import annotations

import asyncio
import contextvars
import gc
import os
import sys
import threading
import warnings
import weakref
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

import onecopy
from onecopy import aio
from tests.postgres.test_event_loop import pid_of, run
from tests.postgres.test_event_loop_threads import SERIES
from tests.postgres.test_lifetime import of_port, until
from tests.support import scripted
from tests.support.relay import Relay
from tests.support.scripted import GREETING, Peer, Server
from tests.support.secured import Secured

WAITS = "select count(*) from pg_stat_activity where pid = %s and wait_event_type = 'Lock'"

#: The rows after number 30,000 wait for the lock.
LATE_ROWS = "select n, wait_for_lock(n > 30000) from generate_series(1, 40000) as n"

#: A function that waits for the lock, and one with an output parameter.
FUNCTIONS = """
create or replace function wait_for_lock(is_wanted boolean) returns int language plpgsql as $$
begin if is_wanted then lock table locked in access share mode; end if; return 1; end $$;
create or replace function wait_and_return(inout n int) language plpgsql as $$
begin lock table locked in access share mode; n := n + 1; end $$;
"""


@pytest.fixture(params=["disable", "require"])
def target(request: pytest.FixtureRequest, secured: Secured) -> str:
    """A connection string without and with TLS."""
    return of_port(secured.port, request.param)


@pytest.fixture
def lock(secured: Secured) -> Iterator[onecopy.Connection]:
    """A session that has locked the table `locked`."""
    with secured.admin() as admin:
        admin.execute("grant create on schema public to scram_user")
    con = onecopy.connect(of_port(secured.port, "disable"))
    con.execute("drop table if exists locked")
    con.execute("create table locked (i int, t text)")
    con.execute(FUNCTIONS)
    con.commit()
    con.execute("lock table locked in access exclusive mode")
    yield con
    con.rollback()
    con.execute("drop table locked cascade")
    con.commit()
    con.close()


async def _copy_out(con: aio.Connection) -> None:
    async for _ in con.cursor().copy_out("copy locked to stdout"):
        pass


async def _late_columns(con: aio.Connection) -> None:
    await (await con.execute(LATE_ROWS)).fetch_columns()


async def _late_scroll(con: aio.Connection) -> None:
    await (await con.execute(LATE_ROWS)).scroll(40_000)


async def _next_set(con: aio.Connection) -> None:
    # The first result is long, so that the second statement is not executed before `nextset`.
    await (await con.execute("select generate_series(1, 100000); select * from locked")).nextset()


def numbers() -> Iterator[list[Any]]:
    """Rows of parameters without end."""
    i = 0
    while True:
        yield [i, f"row {i}"]
        i += 1


INSERT = "insert into locked values (?, ?)"


def arrow() -> onecopy.Cursor:
    """A stream of 3,000 rows."""
    return onecopy.connect("sqlite::memory:").execute(SERIES)


CALLS: dict[str, Callable[[aio.Connection], Coroutine[Any, Any, object]]] = {
    "executemany": lambda con: con.executemany(INSERT, numbers()),
    "executemany, columns": lambda con: con.executemany(INSERT, columns=[range(9), ["x"] * 9]),
    "executemany, returning": lambda con: con.executemany(INSERT + " returning i", numbers()),
    "insert_arrow, statement": lambda con: con.cursor().insert_arrow(INSERT, arrow()),
    "insert_arrow, table": lambda con: con.cursor().insert_arrow("locked", arrow()),
    "copy_in": lambda con: con.cursor().copy_in("copy locked from stdin", (b"%d\tx\n" % i for i, _ in numbers())),
    "copy_out": _copy_out,
    "fetch_columns": _late_columns,
    "scroll": _late_scroll,
    "nextset": _next_set,
    "callproc": lambda con: con.cursor().callproc("wait_and_return", [1]),
}


@pytest.mark.parametrize("name", CALLS)
def test_cancelling_a_task_that_waits_for_a_lock_cancels_its_statement(
    secured: Secured, lock: onecopy.Connection, target: str, name: str
) -> None:
    async def main() -> None:
        con = await aio.connect(target, autocommit=True)
        pid = await pid_of(con)
        task = asyncio.ensure_future(CALLS[name](con))
        await asyncio.to_thread(until, secured, WAITS, pid, 1)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        # The statement has ended although the lock is still held, and the connection is usable.
        assert await (await con.execute("select 1")).fetchall() == [(1,)]
        assert con.usable
        lock.rollback()
        assert await (await con.execute("select count(*) from locked")).fetchall() == [(0,)]
        await con.close()

    run(main)


@pytest.mark.parametrize("name", CALLS)
def test_a_time_limit_cancels_the_call(lock: onecopy.Connection, target: str, name: str) -> None:
    async def main() -> None:
        con = await aio.connect(target, autocommit=True, query_timeout=0.2)
        if name == "copy_out":
            return  # Each chunk may last as long as the server needs.
        with pytest.raises(onecopy.OperationalError, match=r"time limit of 0\.2 s"):
            await CALLS[name](con)
        assert await (await con.execute("select 1")).fetchall() == [(1,)]
        await con.close()

    run(main)


@pytest.mark.parametrize("name", ["executemany", "copy_in"])
def test_a_call_that_reads_an_endless_iterable_is_cancelled(target: str, name: str) -> None:
    """The server has accepted data, and waits for more; the client never waits for long."""

    async def main() -> None:
        con = await aio.connect(target, autocommit=True)
        await con.execute("create temporary table endless (i int, t text)")
        n_read = 0

        def rows() -> Iterator[Any]:
            nonlocal n_read
            for row in numbers():
                n_read += 1
                yield row if name == "executemany" else b"%d\tx\n" % row[0]

        if name == "executemany":
            task = asyncio.ensure_future(con.executemany("insert into endless values (?, ?)", rows()))
        else:
            task = asyncio.ensure_future(con.cursor().copy_in("copy endless from stdin", rows()))
        while n_read < 20_000:
            await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert await (await con.execute("select count(*) from endless")).fetchall() == [(0,)]
        await con.close()

    run(main)


@asynccontextmanager
async def connected(target: str) -> AsyncIterator[aio.Connection]:
    con = await aio.connect(target, autocommit=True)
    await con.execute("create temporary table t (i int, t text)")
    yield con
    await con.close()


READERS: dict[str, Callable[[aio.Connection, Iterator[Any]], Coroutine[Any, Any, object]]] = {
    "executemany": lambda con, rows: con.executemany("insert into t values (?, ?)", rows),
    "executemany, returning": lambda con, rows: con.executemany("insert into t values (?, ?) returning i", rows),
    "copy_in": lambda con, rows: con.cursor().copy_in("copy t from stdin", (f"{i}\t{t}\n" for i, t in rows)),
}


@pytest.mark.parametrize("name", READERS)
@pytest.mark.parametrize("n_rows", [0, 1, 5000])
def test_an_exception_of_the_iterable_is_raised_and_nothing_is_stored(target: str, name: str, n_rows: int) -> None:
    def rows() -> Iterator[Any]:
        for i in range(n_rows):
            yield i, "x"
        raise LookupError("no more")

    async def main() -> None:
        async with connected(target) as con:
            with pytest.raises(LookupError, match="no more"):
                await READERS[name](con, rows())
            assert await (await con.execute("select count(*) from t")).fetchall() == [(0,)]

    run(main)


@pytest.mark.parametrize("name", READERS)
def test_an_iterable_runs_on_the_stack_of_the_interpreter(target: str, name: str) -> None:
    """A task has a small stack, which Python code must not use."""

    def recurse(n: int) -> int:
        return 0 if n == 0 else 1 + sorted([n], key=lambda n: recurse(n - 1) - n)[0] - n

    def rows() -> Iterator[Any]:
        for i in range(3000):
            if i % 500 == 0:
                with pytest.raises(RecursionError):
                    recurse(100 * sys.getrecursionlimit())
            yield i, "x"

    async def main() -> None:
        async with connected(target) as con:
            await READERS[name](con, rows())
            assert await (await con.execute("select count(*) from t")).fetchall() == [(3000,)]

    run(main)


@pytest.mark.parametrize("name", READERS)
def test_an_iterable_runs_in_the_context_of_its_task(target: str, name: str) -> None:
    variable: contextvars.ContextVar[int] = contextvars.ContextVar("variable")

    async def work(con: aio.Connection, number: int) -> None:
        def rows() -> Iterator[Any]:
            for i in range(3000):
                assert variable.get() == number
                yield i, "x"

        variable.set(number)
        await READERS[name](con, rows())

    async def main() -> None:
        async with connected(target) as first, connected(target) as second:
            await asyncio.gather(work(first, 1), work(second, 2))

    run(main)


def test_an_iterable_may_use_its_own_connection_between_two_batches(target: str) -> None:
    async def main() -> None:
        async with connected(target) as con:

            def rows() -> Iterator[Any]:
                for i in range(3000):
                    if i % 700 == 0:
                        assert con.sync.execute("select ?::int", [i]).fetchall() == [(i,)]
                    yield i, "x"

            await con.executemany("insert into t values (?, ?)", rows())
            assert await (await con.execute("select count(*) from t")).fetchall() == [(3000,)]

    run(main)


def test_other_tasks_run_while_data_is_sent(target: str) -> None:
    async def main() -> None:
        async with connected(target) as con:
            n_turns = 0

            async def count() -> None:
                nonlocal n_turns
                while True:
                    n_turns += 1
                    await asyncio.sleep(0)

            counting = asyncio.ensure_future(count())
            await con.cursor().copy_in("copy t from stdin", (f"{i}\tx\n" for i in range(200_000)))
            after_copy = n_turns
            await con.executemany("insert into t values (?, ?)", ([i, "x"] for i in range(20_000)))
            assert (after_copy > 10, n_turns > after_copy + 10) == (True, True)
            counting.cancel()

    run(main)


class Rows:
    """An iterable of rows that may be referenced weakly, and that runs Python code when it ends."""

    def __init__(self, ended: list[str]) -> None:
        self._ended = ended

    def __iter__(self) -> Iterator[list[Any]]:
        try:
            yield from numbers()
        finally:
            self._ended.append("closed")
            with pytest.raises(RecursionError):
                self._recurse()

    def _recurse(self) -> None:
        self._recurse()


@pytest.mark.parametrize("mode", ["disable", "require"])
def test_a_call_that_its_loop_has_left_releases_its_iterable(secured: Secured, mode: str) -> None:
    ended: list[str] = []
    kept: list[Any] = []
    given = [Rows(ended)]
    watch = weakref.ref(given[0])

    async def main(relay: Relay) -> None:
        con = await aio.connect(of_port(relay.port, mode))
        await con.execute("create temporary table t (i int, t text)")
        kept.extend([con, asyncio.ensure_future(con.executemany("insert into t values (?, ?)", given.pop()))])
        for _ in range(3):
            await asyncio.sleep(0)
        relay.silence()  # The request to cancel does not arrive either.

    async def again() -> None:
        with pytest.raises(onecopy.Error):
            await kept[0].execute("select 1")
        assert not kept[0].usable

    with Relay(secured.port) as relay:
        run(lambda: main(relay))
        assert kept.pop().cancelled()
        run(again)
        assert ended == ["closed"]
        gc.collect()
        assert watch() is None
        kept.clear()


def test_a_child_of_a_fork_cannot_use_a_suspended_call_and_does_not_disturb_it(
    secured: Secured, lock: onecopy.Connection, target: str
) -> None:
    async def use(con: aio.Connection) -> bytes:
        try:
            await con.execute("select 1")
        except onecopy.InterfaceError:
            return b"I"
        return b"x"

    async def main() -> None:
        con = await aio.connect(target, autocommit=True)
        pid = await pid_of(con)
        task = asyncio.ensure_future(con.executemany(INSERT, ([i, "x"] for i in range(3000))))
        await asyncio.to_thread(until, secured, WAITS, pid, 1)
        read, write = os.pipe()
        with warnings.catch_warnings():
            # Python 3.12 and later warn about a fork in a process with threads.
            warnings.simplefilter("ignore", DeprecationWarning)
            child = os.fork()
        if child == 0:
            try:
                os.write(write, asyncio.run(use(con)))
            finally:
                os._exit(0)
        os.waitpid(child, 0)
        assert os.read(read, 10) == b"I"
        os.close(read)
        os.close(write)
        lock.rollback()
        assert (await task).rowcount == 3000
        await con.execute("delete from locked")
        await con.close()

    run(main)


def test_a_call_waits_on_the_event_loop_until_an_earlier_cancel_has_reached_the_server() -> None:
    """Otherwise the request could cancel the wrong statement."""
    order: list[str] = []
    begun, requested, released = threading.Event(), threading.Event(), threading.Event()

    def script(peer: Peer) -> None:
        peer.startup()
        if peer.is_cancel:
            requested.set()
            released.wait()
            return
        peer.send(GREETING)
        peer.until(b"H")
        begun.set()
        requested.wait()
        peer.send(scripted.error("57014", "cancelled"))
        peer.until(b"S")
        peer.send(scripted.READY)
        peer.message()
        order.append("statement")
        peer.answer()

    async def main(url: str) -> None:
        con = await aio.connect(url, autocommit=True)
        task = asyncio.ensure_future(con.execute("select 1"))
        await asyncio.to_thread(begun.wait)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await asyncio.to_thread(requested.wait)
        task = asyncio.ensure_future(con.execute("select 2"))
        for _ in range(1000):
            await asyncio.sleep(0)
        order.append("released")
        released.set()
        assert await (await task).fetchall() == [(1,), (2,), (3,)]
        assert order == ["released", "statement"]
        await con.close()

    with Server(script) as server:
        run(lambda: main(server.url()))


def test_columns_of_a_cursor_that_has_executed_another_statement_are_an_error(target: str) -> None:
    async def main() -> None:
        async with connected(target) as con:
            cur = await con.execute("select n, repeat('x', 100) from generate_series(1, 50000) as n")
            task = asyncio.ensure_future(cur.fetch_columns())
            await asyncio.sleep(0)
            await cur.execute("select 'x' from generate_series(1, 50000)")
            with pytest.raises(onecopy.Error):
                await task
            assert len((await cur.fetch_columns())[0]) == 50_000

    run(main)
