"""Chunks prefetched for asyncio: at most two are stored, no thread waits for a slow reader, and
none is lost silently."""

from __future__ import annotations

import asyncio
import gc
import threading
import weakref
from collections.abc import Callable
from typing import Any

import pytest

import onecopy
from onecopy._prefetch import Prefetcher

LONG = (
    "with recursive c(i) as (select 0 union all select i + 1 from c where i < 99999) select i, 'text ' || i as t from c"
)
FAILS = (
    "with recursive c(i) as (select 0 union all select i + 1 from c where i < 99999) "
    "select case when i = 50000 then cast(x'ff' as text) else 'text' end as t from c"
)
ENDLESS = "with recursive c(i) as (select 1 union all select i + 1 from c) select i from c"
#: A query that returns one row, and then never ends.
SILENT = f"{ENDLESS} where i = 1 or i < 0"


class Chunks:
    """A stream of ``n_chunks`` chunks, which records the threads that create them."""

    def __init__(self, n_chunks: int) -> None:
        self.left, self.made, self.threads = n_chunks, 0, set[int]()
        self.is_closed = False
        self.before_each: Callable[[], object] = lambda: None

    def __next__(self) -> bytes:
        self.before_each()
        if not self.left:
            raise StopIteration
        self.left -= 1
        self.made += 1
        self.threads.add(threading.get_ident())
        return b"%d" % self.made

    def cancel(self) -> None:
        self.left = 0

    def close(self) -> None:
        self.is_closed = True


def over(chunks: Chunks, start: Callable[[Callable[[], None]], object] | None = None) -> Prefetcher:
    stream: Any = chunks
    return Prefetcher(stream, start)


def test_chunks_arrive_whole_and_in_order(con: onecopy.Connection) -> None:
    async def main() -> list[bytes]:
        return [chunk async for chunk in con.execute(LONG).json()]

    chunks = asyncio.run(main())
    assert len(chunks) > 20
    assert b"".join(chunks) == con.execute(LONG).json().read()


def test_at_most_two_chunks_are_prefetched_and_the_thread_is_released() -> None:
    chunks, jobs = Chunks(100), list[Callable[[], None]]()

    async def main() -> None:
        prefetcher = over(chunks, jobs.append)
        first = asyncio.ensure_future(anext(prefetcher))
        await asyncio.sleep(0)
        # One job, which returns when two chunks are ready.
        assert len(jobs) == 1
        jobs.pop()()
        assert (chunks.made, len(jobs)) == (2, 0)
        assert await first == b"1"
        # One was taken, so one more is requested, by one job.
        assert len(jobs) == 1
        jobs.pop()()
        assert (chunks.made, len(jobs)) == (3, 0)
        assert await anext(prefetcher) == b"2"
        await check_closed(prefetcher, jobs)

    asyncio.run(main())
    assert chunks.is_closed


async def check_closed(prefetcher: Prefetcher, jobs: list[Callable[[], None]]) -> None:
    prefetcher.stop()
    while jobs:
        jobs.pop()()
    await prefetcher.close()


def test_a_reader_that_keeps_up_costs_no_thread_switch_for_each_chunk() -> None:
    chunks, jobs = Chunks(320), list[threading.Thread]()

    def start(job: Callable[[], None]) -> None:
        jobs.append(threading.Thread(target=job))
        jobs[-1].start()

    async def main() -> int:
        n_chunks, taken = 0, threading.Event()
        taken.set()

        def wait_for_the_reader() -> None:
            # The reader already waits when a chunk is created, as for a slow statement.
            assert taken.wait(30)
            taken.clear()

        chunks.before_each = wait_for_the_reader
        prefetcher = over(chunks, start)
        while (coming := asyncio.ensure_future(anext(prefetcher, None))) is not None:
            await asyncio.sleep(0)
            taken.set()
            if await coming is None:
                return n_chunks
            n_chunks += 1
        return n_chunks

    assert asyncio.run(main()) == 320
    assert len(jobs) <= 320 / 8
    for job in jobs:
        job.join()


def test_ready_chunks_let_other_tasks_run() -> None:
    async def main() -> tuple[int, int]:
        turns, n_chunks = 0, 0

        async def other() -> None:
            nonlocal turns
            while True:
                turns += 1
                await asyncio.sleep(0)

        task = asyncio.create_task(other())
        # Filled synchronously, so each chunk is ready at once.
        async for _ in over(Chunks(50), lambda job: job()):
            n_chunks += 1
        task.cancel()
        return n_chunks, turns

    n_chunks, turns = asyncio.run(main())
    assert n_chunks == 50 and turns >= 49


def test_the_rows_before_an_error_come_first_and_it_is_raised_again(con: onecopy.Connection) -> None:
    async def main() -> None:
        n_bytes, stream = 0, con.execute(FAILS).ndjson()
        chunks = aiter(stream)

        async def read() -> None:
            nonlocal n_bytes
            async for chunk in chunks:
                n_bytes += len(chunk)

        with pytest.raises(onecopy.DataError):
            await read()
        assert n_bytes == 50_000 * len(b'{"t":"text"}\n')
        with pytest.raises(onecopy.Error):
            await anext(chunks)
        with pytest.raises(onecopy.DataError):
            next(stream)

    asyncio.run(main())


def test_begin_raises_errors_of_the_first_chunk_and_returns_the_length(con: onecopy.Connection) -> None:
    async def main() -> None:
        short = Prefetcher(con.execute("select 1 as id").json())
        assert await short.begin() == 10
        assert [chunk async for chunk in short] == [b'[{"id":1}]']
        empty = Prefetcher(con.execute("select 1 as id where 0").ndjson())
        assert await empty.begin() == 0
        assert [chunk async for chunk in empty] == []
        long = Prefetcher(con.execute(LONG).json())
        assert await long.begin() is None
        assert b"".join([chunk async for chunk in long]) == con.execute(LONG).json().read()
        broken = Prefetcher(con.execute("select cast(x'ff' as text) as t").json())
        with pytest.raises(onecopy.DataError):
            await broken.begin()

    asyncio.run(main())


@pytest.mark.parametrize("sql", [ENDLESS, SILENT])
def test_a_cancelled_reader_cancels_the_statement_and_releases_its_connection(sql: str) -> None:
    con = onecopy.connect("sqlite::memory:")
    there, gone = weakref.ref(con), threading.Event()
    stream = con.execute(sql).json()
    stream.on_close(gone.set)
    del con

    async def main() -> None:
        nonlocal stream
        chunks = aiter(stream)

        async def read() -> None:
            async for _ in chunks:
                await asyncio.sleep(0)

        task = asyncio.create_task(read())
        await asyncio.sleep(0)
        if sql == ENDLESS:
            await asyncio.to_thread(lambda: None)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        # The statement never ends by itself: this returns only if it is cancelled.
        await chunks.close()  # type: ignore[attr-defined]
        with pytest.raises(onecopy.Error):
            next(stream)

    asyncio.run(main())
    assert gone.is_set()
    del stream
    gc.collect()
    assert there() is None


def test_an_abandoned_stream_cannot_be_read_further(con: onecopy.Connection) -> None:
    stream = con.execute(LONG).json()

    async def main() -> None:
        async for _ in stream:
            break

    asyncio.run(main())
    gc.collect()
    with pytest.raises(onecopy.OperationalError, match="cancelled"):
        stream.read()


def test_two_tasks_cannot_wait_for_one_stream_and_close_ends_the_wait() -> None:
    jobs: list[Callable[[], None]] = []

    async def main() -> None:
        prefetcher = over(Chunks(3), jobs.append)
        first = asyncio.ensure_future(anext(prefetcher))
        await asyncio.sleep(0)
        with pytest.raises(RuntimeError, match="another task"):
            await anext(prefetcher)
        assert not first.done()
        prefetcher.stop()
        jobs.pop()()
        with pytest.raises(onecopy.InterfaceError, match="closed"):
            await first
        with pytest.raises(onecopy.InterfaceError, match="closed"):
            await anext(prefetcher)

    asyncio.run(main())


def test_stop_without_a_loop_closes_the_stream() -> None:
    chunks = Chunks(3)
    over(chunks).stop()
    assert chunks.is_closed
