"""Streams, notifications and pools of `onecopy.aio` on PostgreSQL's native protocol, without a
thread."""

from __future__ import annotations

import asyncio
import contextlib
import json
import threading
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

import onecopy
from onecopy import aio
from tests.postgres.test_event_loop import SERIES, pid_of, run, until_it_runs
from tests.postgres.test_lifetime import of_port
from tests.support.secured import Secured

#: A query whose last 10,000 rows never arrive.
STALLS = "select n, pg_sleep(case when n > 30000 then 60 else 0 end) from generate_series(1, 40000) n"
#: A query that fails in row 3,000.
FAILS = "select n, 10000 / (3000 - n) as x, repeat('x', 100) as t from generate_series(1, 4000) as n"


@pytest.fixture(params=["disable", "require"])
def target(request: pytest.FixtureRequest, secured: Secured) -> str:
    """A connection string, without and with TLS."""
    return of_port(secured.port, request.param)


def lines(n_rows: int) -> bytes:
    return b"".join(b'{"n":%d,"?column?":"row %d"}\n' % (n, n) for n in range(1, n_rows + 1))


def expected(target: str, format: str, n_rows: int) -> bytes:
    """The bytes that a connection without asyncio returns in this format."""
    with onecopy.connect(target) as con:
        stream: onecopy.RowStream = getattr(con.execute(SERIES, [n_rows]), format)()
        return stream.read()


async def _collect(stream: aio.RowStream, chunks: list[bytes]) -> None:
    async for chunk in stream:
        chunks.append(chunk)


async def _iterate(stream: aio.RowStream) -> bytes:
    chunks: list[bytes] = []
    await _collect(stream, chunks)
    return b"".join(chunks)


async def _read(stream: aio.RowStream) -> bytes:
    return await stream.read()


async def _begin_and_read(stream: aio.RowStream) -> bytes:
    await stream.begin()
    return await stream.read()


async def _begin_and_iterate(stream: aio.RowStream) -> bytes:
    n_bytes = await stream.begin()
    found = await _iterate(stream)
    assert n_bytes in (None, len(found))
    return found


async def _read_after_a_chunk(stream: aio.RowStream) -> bytes:
    chunks = aiter(stream)
    first = await anext(chunks, b"")
    return first + await stream.read()


async def _write(stream: aio.RowStream) -> bytes:
    class Target:
        def __init__(self) -> None:
            self.written = b""

        def write(self, data: bytes) -> None:
            self.written += data

    to = Target()
    assert await stream.write_to(to) == len(to.written)
    return to.written


READERS: list[Callable[[aio.RowStream], Coroutine[Any, Any, bytes]]] = [
    _iterate,
    _read,
    _begin_and_read,
    _begin_and_iterate,
    _read_after_a_chunk,
    _write,
]


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("format", ["json", "ndjson", "csv", "bson"])
@pytest.mark.parametrize("n_rows", [0, 1, 3000, 50_000])
def test_each_reader_returns_the_bytes_of_a_connection_that_blocks(
    secured: Secured, reader: Callable[[aio.RowStream], Coroutine[Any, Any, bytes]], format: str, n_rows: int
) -> None:
    target = of_port(secured.port, "disable")

    async def main() -> None:
        con = await aio.connect(target)
        stream: aio.RowStream = getattr(await con.execute(SERIES, [n_rows]), format)()
        assert await reader(stream) == expected(target, format, n_rows)
        assert stream.n_rows == n_rows
        assert await stream.read() == b""
        await stream.close()
        assert await (await con.execute("select 1")).fetchall() == [(1,)]
        await con.close()

    run(main)


def test_no_thread_is_started(target: str) -> None:
    async def main() -> None:
        async with aio.Pool(target, max_size=5, min_size=5) as pool:
            cons = [await pool.acquire() for _ in range(5)]
            for con in cons:
                await pool.release(con)
            before = set(threading.enumerate())

            async def work(i: int) -> None:
                async with pool.connection() as con:
                    assert await _iterate((await con.execute(SERIES, [i * 1000])).ndjson()) == lines(i * 1000)
                    assert await (await con.execute(SERIES, [i * 1000])).ndjson().read() == lines(i * 1000)
                    await con.set_autocommit(True)
                    await con.notifications()
                    stream = (await con.execute(SERIES, [i * 1000])).json()
                    await stream.begin()
                    await stream.close()

            await asyncio.gather(*(work(i) for i in range(25)))
            assert set(threading.enumerate()) <= before

    run(main)


@pytest.mark.parametrize("reader", READERS[:5])
def test_cancelling_a_task_cancels_its_stream_and_the_connection_survives(
    secured: Secured, target: str, reader: Callable[[aio.RowStream], Coroutine[Any, Any, bytes]]
) -> None:
    async def main() -> None:
        con = await aio.connect(target, autocommit=True)
        pid = await pid_of(con)
        stream = (await con.execute(STALLS)).json()
        task = asyncio.ensure_future(reader(stream))
        await until_it_runs(secured, pid)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert await (await con.execute("select 1")).fetchall() == [(1,)]
        with pytest.raises(onecopy.Error):
            await stream.read()
        assert con.usable
        await con.close()

    run(main)


def test_rows_before_a_failure_come_first_and_each_later_read_fails(target: str) -> None:
    async def main() -> None:
        con = await aio.connect(target, autocommit=True)
        stream = (await con.execute(FAILS)).ndjson()
        chunks: list[bytes] = []
        with pytest.raises(onecopy.DataError, match="division by zero"):
            await _collect(stream, chunks)
        assert [json.loads(line)["n"] for line in b"".join(chunks).splitlines()] == list(range(1, 3000))
        for call in (stream.read, stream.begin, lambda: _iterate(stream)):
            with pytest.raises(onecopy.Error):
                await call()
        for reader in (_read, _begin_and_read, _begin_and_iterate, _read_after_a_chunk):
            with pytest.raises(onecopy.DataError, match="division by zero"):
                await reader((await con.execute(FAILS)).ndjson())
        assert await (await con.execute("select 1")).fetchall() == [(1,)]
        await con.close()

    run(main)


@pytest.mark.parametrize("reader", [_begin_and_read, _begin_and_iterate])
def test_a_failure_in_the_first_chunk_is_raised_by_begin(
    target: str, reader: Callable[[aio.RowStream], Coroutine[Any, Any, bytes]]
) -> None:
    async def main() -> None:
        con = await aio.connect(target, autocommit=True)
        stream = (await con.execute("select 1 / (5 - n) from generate_series(1, 9) n")).json()
        with pytest.raises(onecopy.DataError, match="division by zero"):
            await stream.begin()
        with pytest.raises(onecopy.DataError, match="division by zero"):
            await reader(stream)
        await con.close()

    run(main)


def test_a_stream_that_is_left_early_is_closed_and_frees_its_connection(target: str) -> None:
    async def main() -> None:
        con = await aio.connect(target)
        stream = (await con.execute(SERIES, [100_000])).ndjson()
        async for chunk in stream:
            assert chunk == lines(100_000)[: len(chunk)]
            break
        with pytest.raises(onecopy.InterfaceError, match="closed"):
            await stream.read()
        assert await (await con.execute("select 1")).fetchall() == [(1,)]
        await con.close()

    run(main)


def test_streams_of_one_connection_are_read_in_turns(target: str) -> None:
    async def main() -> None:
        con = await aio.connect(target)
        streams = [(await con.execute(SERIES, [20_000])).ndjson() for _ in range(3)]
        assert await asyncio.gather(*map(_iterate, streams)) == [lines(20_000)] * 3
        await con.close()

    run(main)


def test_only_one_task_waits_for_the_next_chunk(secured: Secured, target: str) -> None:
    async def main() -> None:
        con = await aio.connect(target, autocommit=True)
        pid = await pid_of(con)
        chunks = aiter((await con.execute(STALLS)).json())

        async def rest() -> None:
            async for _chunk in chunks:
                pass

        task = asyncio.ensure_future(rest())
        await until_it_runs(secured, pid)
        with pytest.raises(RuntimeError, match="another task waits"):
            await anext(chunks)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await con.close()

    run(main)


def test_a_long_stream_lets_other_tasks_run(target: str) -> None:
    async def main() -> None:
        con = await aio.connect(target)
        n_turns = 0

        async def count() -> None:
            nonlocal n_turns
            while True:
                n_turns += 1
                await asyncio.sleep(0)

        counter = asyncio.ensure_future(count())
        assert await (await con.execute(SERIES, [200_000])).ndjson().read() == lines(200_000)
        after_read = n_turns
        assert await _iterate((await con.execute(SERIES, [200_000])).ndjson()) == lines(200_000)
        assert (after_read > 3, n_turns > after_read + 3) == (True, True)
        counter.cancel()
        await con.close()

    run(main)


def test_notifications_are_awaited(target: str) -> None:
    async def main() -> None:
        listener, sender = await aio.connect(target, autocommit=True), await aio.connect(target, autocommit=True)
        await listener.execute("listen news")
        assert await listener.notifications() == []
        waits = asyncio.ensure_future(listener.notifications(60))
        await sender.execute("notify news, 'text'")
        found = await waits
        assert [(one.channel, one.payload) for one in found] == [("news", "text")]
        assert await listener.notifications(0.01) == []
        with pytest.raises(ValueError, match="timeout"):
            await listener.notifications(-1)
        await listener.close()
        await sender.close()

    run(main)


def test_a_pool_probes_its_connections_and_replaces_those_that_were_lost(secured: Secured, target: str) -> None:
    async def main() -> None:
        async with aio.Pool(target, max_size=1) as pool:
            async with pool.connection() as con:
                pid = await pid_of(con)
            with secured.admin() as admin:
                admin.execute("select pg_terminate_backend(%s)", [pid])
            async with pool.connection() as con:
                assert await pid_of(con) != pid
            assert (pool.stats().opened, pool.stats().dropped) == (2, 1)

    run(main)


def test_a_pool_resets_what_a_borrower_left(target: str) -> None:
    async def main() -> None:
        async with aio.Pool(target, max_size=1) as pool:
            con = await pool.acquire()
            await con.execute("create temporary table left_open (n int)")
            await con.execute("select * from left_open")
            await pool.release(con)
            async with pool.connection() as con:
                found = await (await con.execute("select to_regclass('left_open') is null")).fetchall()
                assert found == [(True,)]
            con = await pool.acquire()
            with pytest.raises(onecopy.ProgrammingError):
                await con.execute("select 1 from nowhere")
            await con.set_autocommit(False)
            await pool.release(con)
            async with pool.connection() as con:
                assert await (await con.execute("select 1")).fetchall() == [(1,)]
            assert pool.stats().opened == 1

    run(main)


@pytest.mark.parametrize("n_turns", range(6))
def test_a_task_that_is_cancelled_while_it_returns_a_connection_leaves_a_sound_pool(target: str, n_turns: int) -> None:
    async def main() -> None:
        async with aio.Pool(target, max_size=1) as pool:
            con = await pool.acquire()
            await con.execute("select 1")
            release = asyncio.ensure_future(pool.release(con))
            for _ in range(n_turns):
                await asyncio.sleep(0)
            # After some turns it may have ended; before the first one, the connection is still out.
            release.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await release
            if n_turns == 0:
                await pool.release(con)
            async with pool.connection(timeout=60) as con:
                assert await (await con.execute("select 2")).fetchall() == [(2,)]
            assert (pool.stats().idle, pool.stats().out) == (1, 0)

    run(main)
