"""COPY in chunks, notifications and the fields of errors, by PostgreSQL's native protocol."""

from __future__ import annotations

import asyncio
import io
from collections.abc import Callable, Iterator

import pytest

import onecopy
from onecopy import aio
from tests.conftest import Database


@pytest.fixture
def con(postgres_native: Database) -> Iterator[onecopy.Connection]:
    connection = onecopy.connect(postgres_native.odbc)
    connection.execute("create temporary table copied (i int, t text)")
    connection.commit()
    yield connection
    connection.close()


def test_copy_out_round_trips_through_copy_in(con: onecopy.Connection) -> None:
    con.execute("insert into copied select i, repeat('é', i % 50) from generate_series(1, 20000) as g(i)")
    with con.cursor().copy_out("copy copied to stdout (format binary)") as chunks:
        data = list(chunks)
        assert chunks.rowcount == 20_000
    assert len(data) > 2
    con.execute("create temporary table again (like copied)")
    assert con.cursor().copy_in("copy again from stdin (format binary)", data).rowcount == 20_000
    assert con.execute("select count(*) from (select * from copied except select * from again) d").fetchall() == [(0,)]


@pytest.mark.parametrize("given", ["bytes", "text", "file", "iterator"])
def test_chunks_may_have_any_type(con: onecopy.Connection, given: str) -> None:
    text = "1,Zürich\n2,\n"
    chunks = {"bytes": text.encode(), "text": text, "file": io.BytesIO(text.encode()), "iterator": iter(text)}[given]
    assert con.cursor().copy_in("copy copied from stdin (format csv)", chunks).rowcount == 2  # type: ignore[arg-type]
    assert con.execute("select * from copied").fetchall() == [(1, "Zürich"), (2, None)]


def test_an_exception_of_the_chunks_ends_the_copy(con: onecopy.Connection) -> None:
    def chunks() -> Iterator[bytes]:
        yield b"1\tx\n"
        with pytest.raises(onecopy.InterfaceError, match="COPY is under way"):
            con.execute("select 1")
        raise LookupError("no more")

    with pytest.raises(LookupError, match="no more"):
        con.cursor().copy_in("copy copied from stdin", chunks())
    con.rollback()
    assert con.execute("select * from copied").fetchall() == []


def test_errors_of_a_copy_are_those_of_the_server(con: onecopy.Connection) -> None:
    with pytest.raises(onecopy.DataError) as caught:
        con.cursor().copy_in("copy copied from stdin", [b"1\ta\n", b"x\tb\n", *[b"3\tc\n"] * 100_000])
    assert caught.value.sqlstate == "22P02" and "line 2" in caught.value.details["context"]
    con.rollback()
    for sql in ("select 1", "insert into copied values (1)", "copy copied to stdout"):
        with pytest.raises(onecopy.ProgrammingError, match="FROM STDIN"):
            con.cursor().copy_in(sql, [b""])
        con.rollback()
    for sql in ("select 1", "copy copied from stdin"):
        with pytest.raises(onecopy.ProgrammingError, match="TO STDOUT"):
            con.cursor().copy_out(sql)
        con.rollback()
    with pytest.raises(onecopy.ProgrammingError, match="nowhere"):
        con.cursor().copy_out("copy nowhere to stdout")
    con.rollback()
    with pytest.raises(onecopy.NotSupportedError, match="copy_out"):
        con.execute("copy copied to stdout")
    assert con.execute("select 1").fetchall() == [(1,)]


NOT_ONE_COPY = [
    ("copy_out", "copy copied to stdout; select 1", "more than one statement"),
    ("copy_out", "copy copied to stdout; copy copied to stdout", "more than one statement"),
    ("copy_out", "delete from copied", "is not a COPY"),
    ("copy_out", "copy copied to '/dev/null'", "is not a COPY"),
    ("copy_out", "copy copied from stdin", "copies from the client"),
    ("copy_in", "insert into copied values (2); copy copied from stdin", "more than one statement"),
    ("copy_in", "copy copied from stdin; copy copied from stdin", "more than one statement"),
    ("copy_in", "copy copied to stdout", "copies to the client"),
    ("copy_in", "", "is not a COPY"),
]


@pytest.mark.parametrize(("method", "sql", "message"), NOT_ONE_COPY)
def test_a_text_that_is_not_one_copy_is_not_executed(
    con: onecopy.Connection, method: str, sql: str, message: str
) -> None:
    con.execute("insert into copied values (1)")
    arguments = [sql] if method == "copy_out" else [sql, b"3\tx\n"]
    with pytest.raises(onecopy.ProgrammingError, match=message) as caught:
        getattr(con.cursor(), method)(*arguments)
    assert method in str(caught.value)
    # Nothing was sent to the server, so the transaction continues.
    assert con.execute("select i from copied").fetchall() == [(1,)]


async def _async_copy(cur: aio.Cursor, method: str, sql: str) -> None:
    if method == "copy_out":
        async for _chunk in cur.copy_out(sql):
            pass
    else:
        await cur.copy_in(sql, b"3\tx\n")


async def _refused_copy(odbc: str, method: str, sql: str) -> list[tuple[int]]:
    async with await aio.connect(odbc) as con:
        cur = con.cursor()
        with pytest.raises(onecopy.ProgrammingError, match="more than one statement"):
            await _async_copy(cur, method, sql)
        await cur.execute("select 1")
        return await cur.fetchall()


@pytest.mark.parametrize(
    ("method", "sql"),
    [("copy_out", "copy (select 1) to stdout; select 1"), ("copy_in", "select 1; copy pg_class from stdin")],
)
def test_asyncio_checks_the_text_of_a_copy(postgres_native: Database, method: str, sql: str) -> None:
    assert asyncio.run(_refused_copy(postgres_native.odbc, method, sql)) == [(1,)]


def test_comments_and_semicolons_around_a_copy_are_allowed(con: onecopy.Connection) -> None:
    assert con.cursor().copy_in("/* ; */ ; copy copied from stdin ; -- end", b"1\tx\n").rowcount == 1
    assert con.cursor().copy_out("-- ;\ncopy (select i, ';' from copied) to stdout;").read() == b"1\t;\n"


@pytest.mark.parametrize(
    "second", ["select 1", "copy copied to stdout", "copy copied from stdin", "delete from copied"]
)
@pytest.mark.parametrize("method", ["copy_out", "copy_in"])
def test_a_hidden_second_statement_leaves_the_connection_usable(
    con: onecopy.Connection, method: str, second: str
) -> None:
    # With this setting the server ends the string at another quote than standard SQL does.
    con.execute("set standard_conforming_strings = off")
    con.execute("set escape_string_warning = off")
    if method == "copy_out":
        sql = f"copy (select 'a\\'') to stdout; {second} --') to stdout"
        with pytest.raises(onecopy.ProgrammingError, match="more than one statement"):
            con.cursor().copy_out(sql).read()
    else:
        sql = f"copy copied from stdin where t <> '\\''; {second} --'"
        with pytest.raises(onecopy.ProgrammingError, match="more than one statement"):
            con.cursor().copy_in(sql, b"3\tx\n")
    assert con.usable
    con.rollback()
    assert con.execute("select 1").fetchall() == [(1,)]


def test_a_copy_that_is_closed_early_leaves_the_connection_usable(con: onecopy.Connection) -> None:
    copy = con.cursor().copy_out("copy (select generate_series(1, 100000000)) to stdout")
    assert next(copy).startswith(b"1\n2\n")
    with pytest.raises(onecopy.InterfaceError, match="COPY is under way"):
        con.execute("select 1")
    copy.close()
    con.rollback()
    assert con.execute("select 1").fetchall() == [(1,)]


def test_notifications_come_with_their_payload(con: onecopy.Connection, postgres_native: Database) -> None:
    con.autocommit = True
    con.execute("listen news")
    assert con.notifications() == []
    with onecopy.connect(postgres_native.odbc, autocommit=True) as other:
        ((process,),) = other.execute("select pg_backend_pid()").fetchall()
        other.execute("notify news, 'Zürich'")
        (found,) = con.notifications(timeout=30)
        assert (found.channel, found.payload, found.process_id) == ("news", "Zürich", process)
        other.execute("notify news")
        # A notification also arrives with the result of a statement.
        con.execute("select 1").fetchall()
        assert [n.payload for n in con.notifications(timeout=30)] == [""]
        # Without a time to wait, notifications that have arrived are received too.
        other.execute("notify news, 'again'")
        while not (received := con.notifications()):
            pass
        assert [n.payload for n in received] == ["again"]
    assert con.notifications() == []
    with pytest.raises(ValueError, match="timeout"):
        con.notifications(timeout=-1)


def test_errors_have_the_fields_of_the_report(con: onecopy.Connection) -> None:
    con.execute("create temporary table parts (i int constraint positive check (i > 0) unique)")
    con.commit()
    with pytest.raises(onecopy.IntegrityError) as caught:
        con.execute("insert into parts values (-1)")
    details = caught.value.details
    assert (details["constraint"], details["table"], details["severity"]) == ("positive", "parts", "ERROR")
    assert "-1" in details["detail"]
    con.rollback()
    with pytest.raises(onecopy.ProgrammingError) as wrong:
        con.execute("select 1, nothing_here")
    assert wrong.value.details["position"] == "11"
    assert "LINE 1: select 1, nothing_here\n                  ^" in str(wrong.value)
    con.rollback()


def test_copies_and_notifications_in_asyncio(postgres_native: Database) -> None:
    async def main() -> None:
        con = await aio.connect(postgres_native.odbc, autocommit=True)
        await con.execute("create temporary table copied (i int, t text)")
        cur = con.cursor()
        assert (await cur.copy_in("copy copied from stdin (format csv)", ["1,a\n", b"2,b\n"])).rowcount == 2
        assert b"".join([chunk async for chunk in cur.copy_out("copy copied to stdout")]) == b"1\ta\n2\tb\n"
        await con.execute("listen other_news")
        await con.execute("notify other_news, 'x'")
        assert [n.payload for n in await con.notifications(timeout=30)] == ["x"]
        await con.close()

    asyncio.run(main())


COPY_MANY = "copy (select i, repeat('x', 100) from generate_series(1, 20000) as i) to stdout"


def test_copies_on_the_event_loop_are_those_of_blocking_calls(
    postgres_native: Database, con: onecopy.Connection
) -> None:
    expected = con.cursor().copy_out(COPY_MANY).read()

    async def read(target: aio.Connection, sql: str = COPY_MANY) -> bytes:
        return b"".join([chunk async for chunk in target.cursor().copy_out(sql)])

    async def main() -> None:
        connections = [await aio.connect(postgres_native.odbc) for _ in range(5)]
        assert await asyncio.gather(*map(read, connections)) == [expected] * 5
        for sql, error in (
            ("copy nowhere to stdout", onecopy.ProgrammingError),
            ("select 1", onecopy.ProgrammingError),
            ("copy (select 1 / (3 - i) from generate_series(1, 5) as i) to stdout", onecopy.DataError),
        ):
            with pytest.raises(error):
                await read(connections[0], sql)
            await connections[0].rollback()
        for other in connections:
            await other.close()

    asyncio.run(main())


def test_a_copy_on_the_event_loop_that_ends_early_leaves_the_connection_usable(postgres_native: Database) -> None:
    endless = "copy (select generate_series(1, 100000000)) to stdout"

    async def main() -> None:
        con = await aio.connect(postgres_native.odbc)
        chunks = con.cursor().copy_out(endless)
        assert (await chunks.__anext__()).startswith(b"1\n2\n")
        with pytest.raises(onecopy.InterfaceError, match="COPY is under way"):
            await con.execute("select 1")
        await chunks.aclose()
        await con.rollback()
        assert await (await con.execute("select 1")).fetchall() == [(1,)]

        async def read() -> None:
            async for _ in con.cursor().copy_out("copy (select pg_sleep(600)) to stdout"):
                pass

        task = asyncio.ensure_future(read())
        for _ in range(20):
            await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await con.rollback()
        assert await (await con.execute("select 1")).fetchall() == [(1,)]
        await con.close()

    asyncio.run(main())


ENDLESS = "copy (select generate_series(1, 100000000)) to stdout"


def test_a_rollback_ends_a_copy(con: onecopy.Connection) -> None:
    con.execute("insert into copied values (1)")
    chunks = con.cursor().copy_out(ENDLESS)
    assert next(chunks).startswith(b"1\n2\n")
    con.rollback()
    cur = con.execute("select 1 from generate_series(1, 100000)")
    # Neither call disturbs the statement.
    with pytest.raises(onecopy.InterfaceError, match="ended by a rollback"):
        next(chunks)
    chunks.close()
    assert len(cur.fetchall()) == 100_000


def test_an_exception_during_a_copy_rolls_back(postgres_native: Database) -> None:
    def read(con: onecopy.Connection) -> None:
        chunks = con.cursor().copy_out(ENDLESS)
        with con:
            for _ in chunks:
                raise LookupError

    with onecopy.connect(postgres_native.odbc) as con:
        with pytest.raises(LookupError):
            read(con)
        assert con.execute("select 1").fetchall() == [(1,)]


def test_a_pool_ends_the_copy_of_a_connection_that_is_returned(postgres_native: Database) -> None:
    with onecopy.Pool(postgres_native.odbc, max_size=1) as pool:
        con = pool.acquire()
        chunks = con.cursor().copy_out(ENDLESS)
        assert next(chunks)
        with pytest.raises(onecopy.InterfaceError, match="COPY is under way"):
            con.commit()
        pool.release(con)
        with pool.connection() as con:
            assert con.execute("select 1").fetchall() == [(1,)]
        chunks.close()
        assert pool.stats().opened == 1


@pytest.mark.parametrize("call", [onecopy.Connection.rollback, onecopy.Connection.commit, lambda con: con.execute("")])
def test_a_call_during_copy_in_is_an_error_and_changes_nothing(
    con: onecopy.Connection, call: Callable[[onecopy.Connection], object]
) -> None:
    def chunks() -> Iterator[str]:
        for line in ("1\tx\n", "2\ty\n"):
            yield line
            with pytest.raises(onecopy.InterfaceError, match="COPY is under way"):
                call(con)

    assert con.cursor().copy_in("copy copied from stdin", chunks()).rowcount == 2
    assert con.execute("select i, t from copied").fetchall() == [(1, "x"), (2, "y")]


def test_a_copy_on_the_event_loop_that_is_left_is_ended_by_the_pool(postgres_native: Database) -> None:
    left = []

    async def leave(pool: aio.Pool) -> None:
        async with pool.connection() as con:
            chunks = con.cursor().copy_out(ENDLESS)
            left.append(chunks)
            async for _chunk in chunks:
                raise LookupError

    async def main() -> None:
        async with aio.Pool(postgres_native.odbc, max_size=1) as pool:
            for _ in range(3):
                with pytest.raises(LookupError):
                    await leave(pool)
            async with pool.connection() as con:
                await left.pop().aclose()
                assert await (await con.execute("select 1")).fetchall() == [(1,)]
            assert pool.stats().opened == 1
            for chunks in left:
                await chunks.aclose()

    asyncio.run(main())
