"""The ledger counts text by stage, in the scope in which the work was started."""

from __future__ import annotations

import asyncio
import contextvars
import threading

import onecopy


def test_outside_of_a_scope_nothing_is_counted(con: onecopy.Connection) -> None:
    with onecopy.ledger() as ledger:
        pass
    con.execute("select 'abc'").fetchall()
    assert (ledger.taken, ledger.converted, ledger.copied, ledger.conversions) == (0, 0, 0, 0)
    assert ledger.stages == {}


def test_a_cell_is_converted_once_or_copied_once(con: onecopy.Connection) -> None:
    with onecopy.ledger() as ledger:
        con.execute("select 'ascii', 'Zürich', '東京', 1, 2.5, null, x'ff'").fetchall()
    # UTF-8 as SQLite stores it: 5 bytes are the same in an ASCII `str`, 7 and 6 are not.
    assert ledger.stages == {"decode": {"taken": 18, "converted": 13, "copied": 5, "conversions": 2}}
    assert (ledger.taken, ledger.converted, ledger.copied, ledger.conversions) == (18, 13, 5, 2)


def test_parameters_are_a_separate_stage(con: onecopy.Connection) -> None:
    with onecopy.ledger() as ledger:
        con.execute("select 1 where ? = 'x'", ("äö",))
    # Latin-1 as Python stores it: two bytes.
    assert ledger.stages == {"parameters": {"taken": 2, "converted": 2, "copied": 0, "conversions": 1}}


def test_inner_scopes_count_in_the_outer_ones_too(con: onecopy.Connection) -> None:
    with onecopy.ledger() as outer:
        con.execute("select 'ab'").fetchall()
        with onecopy.ledger() as inner:
            con.execute("select 'abc'").fetchall()
        con.execute("select 'abcd'").fetchall()
    assert (inner.taken, outer.taken) == (3, 9)


def test_a_scope_belongs_to_its_context(con: onecopy.Connection) -> None:
    def fetch() -> None:
        con.execute("select 'abc'").fetchall()

    with onecopy.ledger() as ledger:
        threading_context = contextvars.copy_context()
        inside = threading.Thread(target=threading_context.run, args=(fetch,))
        inside.start()
        inside.join()
        assert ledger.taken == 3
        empty = contextvars.Context()
        empty.run(fetch)
        assert ledger.taken == 3


def test_tasks_of_asyncio_count_separately() -> None:
    async def one(text: str) -> int:
        connection = onecopy.connect("sqlite::memory:")
        with onecopy.ledger() as ledger:
            for _ in range(10):
                await asyncio.to_thread(lambda: connection.execute("select ?", (text,)).fetchall())
        connection.close()
        return ledger.stages["decode"]["taken"]

    async def both() -> tuple[int, int]:
        return await asyncio.gather(one("a"), one("bb"))

    assert [*asyncio.run(both())] == [10, 20]


def test_a_scope_ends_when_its_block_raises(con: onecopy.Connection) -> None:
    ledger = onecopy.ledger()
    try:
        with ledger:
            raise LookupError
    except LookupError:
        pass
    con.execute("select 'abc'").fetchall()
    assert ledger.taken == 0


def test_repr_shows_the_counts(con: onecopy.Connection) -> None:
    with onecopy.ledger() as ledger:
        con.execute("select 'Zürich'").fetchall()
    assert repr(ledger) == (
        "<onecopy.Ledger: 7 bytes of text taken, 7 converted in 1 conversions, 0 copied; "
        "decode: 7 taken, 7 converted, 0 copied>"
    )


ROWS = (
    "with recursive n(k) as (select 1 union all select k + 1 from n where k < ?)"
    " select printf('%.1000c', 'x') as t from n"
)


def test_read_copies_and_counts_the_first_chunk_if_there_are_more(con: onecopy.Connection) -> None:
    for n_rows, copies in ((10, False), (1_000, True), (70_000, True)):  # The last result is past 64 MiB.
        with onecopy.ledger() as ledger:
            got = con.execute(ROWS, (n_rows,)).ndjson().read()
        assert got == b'{"t":"%s"}\n' % (b"x" * 1000) * n_rows
        encode = ledger.stages["encode"]
        assert encode["taken"] == encode["converted"] == 1000 * n_rows
        assert (0 < encode["copied"] <= 64 << 10) if copies else encode["copied"] == 0


def test_one_ledger_is_left_by_two_threads_in_any_order() -> None:
    ledger = onecopy.ledger()
    both_entered, first_left = threading.Barrier(2, timeout=60), threading.Barrier(2, timeout=60)
    failures: list[Exception] = []

    def enter_and_leave(is_first: bool) -> None:
        try:
            with ledger:
                both_entered.wait()
                if not is_first:
                    first_left.wait()
            if is_first:
                first_left.wait()
            # Not counted: this thread has left the ledger.
            onecopy.json.dumps("é" * 100)
        except Exception as error:
            failures.append(error)

    threads = [threading.Thread(target=enter_and_leave, args=(is_first,)) for is_first in (True, False)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert ledger.taken == 0
