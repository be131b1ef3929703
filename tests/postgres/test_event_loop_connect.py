"""`onecopy.aio` opens connections to PostgreSQL on the event loop, without a thread."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import threading
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

import onecopy
from onecopy import aio
from tests.postgres.test_lifetime import of_port
from tests.support import scripted
from tests.support.process import free_port
from tests.support.scripted import GREETING, Peer, Server
from tests.support.secured import PASSWORD, Secured


@pytest.fixture(params=["disable", "require"])
def target(request: pytest.FixtureRequest, secured: Secured) -> str:
    """A connection string, without and with TLS."""
    return of_port(secured.port, request.param)


def run(main: Callable[[], Coroutine[Any, Any, None]]) -> None:
    asyncio.run(main())


@contextmanager
def no_thread() -> Iterator[None]:
    """Checks that `onecopy.aio` starts no thread while the context is active."""
    before = set(threading.enumerate())
    yield
    started = set(threading.enumerate()) - before
    assert [thread.name for thread in started if thread.name.startswith("onecopy")] == []


async def answers(con: aio.Connection) -> bool:
    return await (await con.execute("select 7")).fetchall() == [(7,)]


def test_connections_are_opened_at_the_same_time(target: str) -> None:
    async def main() -> None:
        with no_thread():
            connections = await asyncio.gather(*(aio.connect(target) for _ in range(20)))
            assert all(await asyncio.gather(*map(answers, connections)))
            await asyncio.gather(*(con.close() for con in connections))

    run(main)


@pytest.mark.parametrize("mode", ["disable", "allow", "prefer", "require", "verify-ca"])
@pytest.mark.parametrize("user", ["scram_user", "md5_user", "password_user", "tls_user", "plain_user"])
def test_each_way_to_log_in_is_that_of_connect(secured: Secured, mode: str, user: str) -> None:
    url = f"postgresql://{user}:{PASSWORD}@127.0.0.1:{secured.port}/postgres?sslmode={mode}&sslrootcert={secured.root}"

    async def on_loop() -> str:
        with no_thread():
            try:
                con = await aio.connect(url)
            except onecopy.OperationalError as error:
                return str(error)
            assert await answers(con)
            await con.close()
            return "connected"

    def blocking() -> str:
        try:
            onecopy.connect(url).close()
        except onecopy.OperationalError as error:
            return str(error)
        return "connected"

    assert asyncio.run(on_loop()) == blocking()


def test_a_unix_socket(secured: Secured) -> None:
    url = f"postgresql://scram_user:{PASSWORD}@/postgres?host={secured.sockets}&port={secured.port}"

    async def main() -> None:
        con = await aio.connect(url)
        assert await answers(con)
        await con.close()

    run(main)


def test_a_unix_socket_whose_queue_is_full(tmp_path: Any) -> None:
    """The connection attempt is repeated until the listener's queue has space."""
    path = tmp_path / ".s.PGSQL.5432"

    async def main() -> None:
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(str(path))
        listener.listen(0)
        waiting = socket.socket(socket.AF_UNIX)
        waiting.connect(str(path))
        with no_thread(), listener, waiting:
            task = asyncio.ensure_future(aio.connect(f"postgresql://u:p@/d?host={tmp_path}", connect_timeout=30))
            await asyncio.sleep(0)
            listener.accept()[0].close()
            loop = asyncio.get_running_loop()
            listener.setblocking(False)
            peer, _ = await loop.sock_accept(listener)
            with peer:
                assert await loop.sock_recv(peer, 8) != b""
                task.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await task

    run(main)


def test_several_hosts_are_tried(secured: Secured) -> None:
    """Hosts are tried in order; the kernel reuses the descriptor of a failed attempt for the next
    one."""
    hosts = f"127.0.0.1:{free_port()},[::1]:{free_port()},name.invalid,127.0.0.1:{secured.port}"
    url = f"postgresql://scram_user:{PASSWORD}@{hosts}/postgres"

    async def main() -> None:
        for _ in range(5):
            con = await aio.connect(url)
            assert await answers(con)
            await con.close()

    run(main)


def test_errors_are_those_of_connect(secured: Secured) -> None:
    right = f"scram_user:{PASSWORD}@127.0.0.1:{secured.port}"
    for url in (
        f"postgresql://scram_user:wrong@127.0.0.1:{secured.port}/postgres",
        f"postgresql://{right}/no_such_database",
        f"postgresql://{right}/postgres?sslmode=verify-full&sslrootcert={secured.root}",
        f"postgresql://127.0.0.1:{free_port()}/d",
        "postgresql://name.invalid/d",
        "postgresql://127.0.0.1/d?no_such_option=1",
    ):
        with pytest.raises(onecopy.Error) as expected:
            onecopy.connect(url)

        async def main(url: str = url) -> None:
            await aio.connect(url)

        with pytest.raises(type(expected.value)) as raised:
            run(main)
        assert str(raised.value) == str(expected.value)
    with pytest.raises(ValueError, match="connect_timeout"):
        asyncio.run(aio.connect("postgresql://127.0.0.1/d", connect_timeout=0))
    with pytest.raises(TypeError):
        asyncio.run(aio.connect("postgresql://127.0.0.1/d", no_such_option=0))


def silent(peer: Peer) -> None:
    """A server script that reads everything the client sends and never answers."""
    while peer.sock.recv(1 << 16):
        pass


def half(peer: Peer) -> None:
    """A server script that accepts the login, but never completes it."""
    peer.startup()
    peer.send(scripted.AUTH_OK)
    silent(peer)


@pytest.mark.parametrize(("script", "mode"), [(silent, "disable"), (silent, "require"), (half, "disable")])
def test_a_silent_server_does_not_stop_the_event_loop(script: Callable[[Peer], None], mode: str) -> None:
    async def main(url: str) -> None:
        n_turns, ended = 0, False

        async def count() -> None:
            nonlocal n_turns
            while not ended:
                n_turns += 1
                await asyncio.sleep(0)

        counting = asyncio.ensure_future(count())
        with pytest.raises(onecopy.OperationalError) as raised:
            await aio.connect(url, connect_timeout=0.2)
        assert raised.value.sqlstate == "08001" or "TLS" in str(raised.value)
        ended = True
        await counting
        assert n_turns > 5

    with Server(script) as server:
        asyncio.run(main(server.url(sslmode=mode)))


@pytest.mark.parametrize("script", [silent, half])
@pytest.mark.parametrize("n_turns", [0, 1, 2, 5])
def test_a_cancelled_connect_ends_at_once(script: Callable[[Peer], None], n_turns: int) -> None:
    async def main(url: str) -> None:
        with no_thread():
            task = asyncio.ensure_future(aio.connect(url, connect_timeout=600))
            for _ in range(n_turns):
                await asyncio.sleep(0)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

    with Server(script) as server:
        asyncio.run(main(server.url()))


@pytest.mark.parametrize("script", [silent, half])
def test_the_server_sees_that_a_connect_was_cancelled(script: Callable[[Peer], None]) -> None:
    connected, left = threading.Event(), threading.Event()

    def recording(peer: Peer) -> None:
        connected.set()
        try:
            script(peer)
        finally:
            # A client that closes the connection with unread data resets it.
            left.set()

    async def main(url: str) -> None:
        task = asyncio.ensure_future(aio.connect(url, connect_timeout=600))
        await asyncio.to_thread(connected.wait)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await asyncio.to_thread(left.wait)

    with Server(recording) as server:
        asyncio.run(main(server.url()))


def test_a_pool_opens_connections_on_the_event_loop(target: str) -> None:
    async def main() -> None:
        async with aio.Pool(target, max_size=5) as pool:
            with no_thread():
                connections = await asyncio.gather(*(pool.acquire() for _ in range(5)))
                assert all(await asyncio.gather(*map(answers, connections)))
                for con in connections:
                    await pool.release(con)
            assert (pool.stats().opened, pool.stats().idle) == (5, 5)

    run(main)


def test_a_pool_replaces_a_lost_or_old_connection_on_the_event_loop(secured: Secured, target: str) -> None:
    async def main() -> None:
        async with aio.Pool(target, max_size=1) as pool:
            async with pool.connection() as con:
                ((pid,),) = await (await con.execute("select pg_backend_pid()")).fetchall()
            with secured.admin() as admin:
                admin.execute("select pg_terminate_backend(%s)", [pid])
            with no_thread():
                async with pool.connection() as con:
                    assert await answers(con)
            assert (pool.stats().opened, pool.stats().dropped) == (2, 1)
        async with aio.Pool(target, max_size=1, max_age=0) as pool:
            with no_thread():
                for _ in range(3):
                    con = await pool.acquire()
                    assert await answers(con)
                    await pool.release(con)
            assert pool.stats().opened == 3

    run(main)


def test_a_pool_has_its_place_again_after_a_failed_connect() -> None:
    accepts = threading.Event()

    def script(peer: Peer) -> None:
        peer.startup()
        if accepts.is_set():
            peer.send(GREETING)
            peer.answer()
        else:
            peer.send(scripted.error("53300", "too many", "FATAL"))

    async def main(url: str) -> None:
        async with aio.Pool(url, max_size=1, reset=None, autocommit=True) as pool:
            for _ in range(3):
                with pytest.raises(onecopy.OperationalError, match="too many"):
                    await pool.acquire()
            for n_turns in (0, 1, 3, 10):
                task = asyncio.ensure_future(pool.acquire())
                for _ in range(n_turns):
                    await asyncio.sleep(0)
                task.cancel()
                with pytest.raises((asyncio.CancelledError, onecopy.OperationalError)):
                    await task
            assert pool.stats()[:4] == (0, 0, 0, 0)
            accepts.set()
            con = await pool.acquire(timeout=60)
            assert await (await con.execute("select 1")).fetchall() == [(1,), (2,), (3,)]
            await pool.release(con)

    with Server(script) as server:
        asyncio.run(main(server.url()))


def test_a_pool_that_is_closed_meanwhile_closes_the_new_connection(target: str) -> None:
    async def main() -> None:
        pool = aio.Pool(target)
        task = asyncio.ensure_future(pool.acquire())
        await asyncio.sleep(0)
        await pool.close()
        with pytest.raises(onecopy.InterfaceError, match="closed"):
            await task
        assert pool.stats()[:4] == (0, 0, 0, 0)

    run(main)


@pytest.mark.parametrize("n_turns", range(1, 6))
def test_a_pool_that_is_closed_while_a_probe_is_cancelled_closes_the_connection(target: str, n_turns: int) -> None:
    async def main() -> None:
        pool = aio.Pool(target, min_size=1, max_size=1)
        await pool.open()
        task = asyncio.ensure_future(pool.acquire())
        for _ in range(n_turns):
            await asyncio.sleep(0)
        await pool.close()
        task.cancel()
        # The probe may have ended before the pool was closed.
        with contextlib.suppress(asyncio.CancelledError, onecopy.InterfaceError):
            await pool.release(await task)
        assert pool.stats()[:3] == (0, 0, 0)

    asyncio.run(main())
