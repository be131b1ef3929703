"""No call of `onecopy.aio` on the native protocol uses a thread."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import os
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator

import pytest

import onecopy
from onecopy import aio
from tests.postgres.test_lifetime import of_port
from tests.support.secured import Secured

#: Calls that use a thread, because they write to files, which blocks.
WITH_THREAD = {"RowStream.write_to"}

ROWS = [(i, f"row {i}") for i in range(3000)]
SELECT = "select i, 'row ' || i as t from generate_series(0, 2999) as i"


#: The statement of SQLite for the same rows.
SERIES = (
    "with recursive k(i) as (select 0 union all select i + 1 from k where i < 2999) select i, 'row ' || i as t from k"
)


def coroutines() -> list[str]:
    """The public methods that are awaited or iterated with `async for` or `async with`."""
    found = []
    for cls in (aio.Connection, aio.Cursor, aio.RowStream, aio.Pool):
        for name, member in vars(cls).items():
            function = inspect.unwrap(member) if callable(member) else member
            is_public = not name.startswith("_") or name.startswith("__")
            if is_public and (inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function)):
                found.append(f"{cls.__name__}.{name}")
    return found


@contextlib.asynccontextmanager
async def connected(target: str) -> AsyncIterator[aio.Connection]:
    con = await aio.connect(target)
    await con.execute("create temporary table numbers (i int, t text)")
    yield con
    await con.close()


async def _fail_in(block: contextlib.AbstractAsyncContextManager[aio.Connection]) -> None:
    async with block as con:
        await con.execute("select 1")
        raise LookupError


CASES: dict[str, Callable[[str], Awaitable[None]]] = {}


def case(*names: str) -> Callable[[Callable[[str], Awaitable[None]]], Callable[[str], Awaitable[None]]]:
    """Registers the function that calls these coroutines."""

    def register(function: Callable[[str], Awaitable[None]]) -> Callable[[str], Awaitable[None]]:
        assert not CASES.keys() & set(names)
        CASES.update(dict.fromkeys(names, function))
        return function

    return register


@case("Connection.execute", "Connection.commit", "Connection.rollback", "Connection.set_autocommit")
async def _transactions(target: str) -> None:
    async with connected(target) as con:
        await con.execute("insert into numbers values (?, ?)", [1, "x"])
        await con.commit()
        await con.execute("delete from numbers")
        await con.rollback()
        await con.set_autocommit(True)
        assert await (await con.execute("select * from numbers")).fetchall() == [(1, "x")]


@case("Connection.executemany", "Cursor.executemany")
async def _executemany(target: str) -> None:
    async with connected(target) as con:
        cur = await con.executemany("insert into numbers values (?, ?)", iter(ROWS))
        assert cur.rowcount == len(ROWS)
        columns = [[i for i, _ in ROWS], [t for _, t in ROWS]]
        assert (await cur.executemany("insert into numbers values (?, ?)", columns=columns)).rowcount == len(ROWS)
        assert await (await con.execute("select * from numbers")).fetchall() == ROWS * 2
        await cur.executemany("insert into numbers values (?, ?) returning i", ROWS[:2])
        assert await cur.fetchall() == [(0,)]
        assert await cur.nextset()
        assert await cur.fetchall() == [(1,)]
        assert await cur.nextset() is None


@case("Connection.notifications")
async def _notifications(target: str) -> None:
    async with connected(target) as con:
        await con.set_autocommit(True)
        await con.execute("listen threads")
        await con.execute("notify threads, 'x'")
        assert [one.payload for one in await con.notifications(60)] == ["x"]


@case("Connection.cancel")
async def _cancel(target: str) -> None:
    async with connected(target) as con:
        await con.cancel()


@case("Connection.close", "Connection.aclose")
async def _close(target: str) -> None:
    async with contextlib.aclosing(await aio.connect(target)) as con:
        await con.close()


@case("Connection.__aenter__", "Connection.__aexit__")
async def _with(target: str) -> None:
    async with connected(target) as con:
        async with con:
            await con.execute("insert into numbers values (1, 'x')")
        with pytest.raises(LookupError):
            await _fail_in(con)
        assert await (await con.execute("select * from numbers")).fetchall() == [(1, "x")]


@case("Cursor.execute", "Cursor.fetchone", "Cursor.fetchmany", "Cursor.fetchall", "Cursor.__anext__", "Cursor.scroll")
async def _fetch(target: str) -> None:
    async with connected(target) as con:
        cur = await con.cursor().execute(SELECT)
        assert await cur.fetchone() == ROWS[0]
        assert await cur.fetchmany(3) == ROWS[1:4]
        assert await anext(cur) == ROWS[4]
        await cur.scroll(2000)
        assert await cur.fetchone() == ROWS[2005]
        await cur.scroll(2500, "absolute")
        assert await cur.fetchall() == ROWS[2500:]
        with pytest.raises(IndexError):
            await cur.scroll(1)


@case("Cursor.insert_arrow")
async def _insert_arrow(target: str) -> None:
    async with connected(target) as con:
        cur = con.cursor()
        for into in ("numbers", "insert into numbers values (?, ?)"):
            stream = onecopy.connect("sqlite::memory:").execute(SERIES)
            assert (await cur.insert_arrow(into, stream)).rowcount == len(ROWS)
        assert await (await con.execute("select * from numbers")).fetchall() == ROWS * 2


@case("Cursor.fetch_columns", "Cursor.arrow")
async def _columns(target: str) -> None:
    async with connected(target) as con:
        cur = await con.execute(SELECT)
        for first, last in ((0, 700), (700, 2999), (2999, 3000), (3000, 3000)):
            numbers, texts = await cur.fetch_columns(last - first)
            assert memoryview(numbers).tolist() == [i for i, _ in ROWS[first:last]]
            assert texts == [t for _, t in ROWS[first:last]]
        cur = await con.execute(SELECT)
        assert await cur.fetchone() == ROWS[0]
        stream = await (await con.execute(SELECT + " order by i")).arrow()
        copy = onecopy.connect("sqlite::memory:").execute("create table copy (i integer, t text)")
        assert copy.insert_arrow("insert into copy values (?, ?)", stream).rowcount == len(ROWS)


@case("Cursor.nextset")
async def _nextset(target: str) -> None:
    async with connected(target) as con:
        cur = await con.execute(f"select 1; {SELECT}; delete from numbers; select 3")
        assert await cur.fetchall() == [(1,)]
        assert await cur.nextset() is True
        assert await cur.fetchmany(10) == ROWS[:10]
        assert await cur.nextset() is True
        assert await cur.fetchall() == [(3,)]
        assert await cur.nextset() is None
        assert await cur.nextset() is None


@case("Cursor.callproc")
async def _callproc(target: str) -> None:
    async with connected(target) as con:
        await con.execute(
            "create function thread_twice(inout n int, out t text) language sql as $$ select n * 2, 'x' $$"
        )
        assert await con.cursor().callproc("thread_twice", [4, None]) == [8, "x"]
        cur = con.cursor()
        assert await cur.callproc("generate_series", [1, 3]) == [1, 3]
        assert await cur.fetchall() == [(1,), (2,), (3,)]


@case("Cursor.copy_in", "Cursor.copy_out")
async def _copy(target: str) -> None:
    async with connected(target) as con:
        cur = con.cursor()
        chunks = (f"{i}\t{t}\n" for i, t in ROWS)
        assert (await cur.copy_in("copy numbers from stdin", chunks)).rowcount == len(ROWS)
        data = b"".join([chunk async for chunk in cur.copy_out("copy numbers to stdout")])
        assert data.count(b"\n") == len(ROWS)
        endless = cur.copy_out("copy (select generate_series(1, 100000000)) to stdout")
        await anext(endless)
        await endless.aclose()
        await con.rollback()  # The COPY was cancelled, which has ended the transaction.
        assert await (await con.execute("select 1")).fetchall() == [(1,)]


@case("Cursor.close", "Cursor.aclose", "Cursor.__aenter__", "Cursor.__aexit__")
async def _close_cursor(target: str) -> None:
    async with connected(target) as con:
        async with await con.execute(SELECT) as cur:
            await cur.fetchone()
        await (await con.execute(SELECT)).aclose()


@case("RowStream.begin", "RowStream.read")
async def _read(target: str) -> None:
    async with connected(target) as con:
        stream = (await con.execute(SELECT)).csv()
        await stream.begin()
        assert (await stream.read()).count(b"\n") == len(ROWS) + 1
        assert await stream.read() == b""


@case("RowStream.close", "RowStream.aclose", "RowStream.__aenter__", "RowStream.__aexit__")
async def _close_stream(target: str) -> None:
    async with connected(target) as con:
        async with (await con.execute(SELECT)).csv() as stream:
            async for chunk in stream:
                assert chunk
        await (await con.execute(SELECT)).json().aclose()


@case("Pool.open", "Pool.acquire", "Pool.release", "Pool.close", "Pool.aclose")
async def _pool(target: str) -> None:
    pool = aio.Pool(target, min_size=3, max_size=3)
    await pool.open()
    assert pool.stats().idle == 3
    con = await pool.acquire()
    await con.execute("select 1")
    await pool.release(con)
    con = await pool.acquire()
    await con.close()
    await pool.release(con)
    assert pool.stats()[:4] == (2, 0, 0, 0)
    con = await pool.acquire()
    await pool.close()
    await pool.release(con)
    assert pool.stats()[:4] == (0, 0, 0, 0)


@case("Pool.connection", "Pool.stream", "Pool.__aenter__", "Pool.__aexit__")
async def _pool_stream(target: str) -> None:
    async with aio.Pool(target, max_size=1) as pool:
        with pytest.raises(LookupError):
            await _fail_in(pool.connection())
        for n_rows in (1, 3000, 100_000):
            stream = await pool.stream("select n from generate_series(1, ?::int) as n", [n_rows], format="csv")
            await stream.begin()
            assert (await stream.read()).count(b"\n") == n_rows + 1
            chunks = await pool.stream("select n from generate_series(1, ?::int) as n", [n_rows], format="csv")
            assert sum([chunk.count(b"\n") async for chunk in chunks]) == n_rows + 1
        assert pool.stats().opened == 1


@contextlib.contextmanager
def no_thread(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Python starts no thread in the block, and the process has no new one after it."""
    started: list[threading.Thread] = []

    def start(thread: threading.Thread) -> None:
        started.append(thread)
        raise AssertionError("a thread is started")

    before = set(os.listdir("/proc/self/task"))
    with monkeypatch.context() as patched:
        patched.setattr(threading.Thread, "start", start)
        yield
    assert started == []
    assert set(os.listdir("/proc/self/task")) <= before


@pytest.mark.parametrize("mode", ["disable", "require"])
@pytest.mark.parametrize("name", coroutines())
def test_no_call_uses_a_thread(secured: Secured, monkeypatch: pytest.MonkeyPatch, name: str, mode: str) -> None:
    if name in WITH_THREAD:
        assert name not in CASES
        return
    with secured.admin() as admin:
        admin.execute("grant create on schema public to scram_user")

    async def main() -> None:
        with no_thread(monkeypatch):
            await CASES[name](of_port(secured.port, mode))

    asyncio.run(main())
