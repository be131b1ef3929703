"""All fetch methods return the same rows, and a result that fails before its end never looks
complete."""

from __future__ import annotations

import itertools
import random
from typing import Any

import pytest

import onecopy

# Row 700 holds malformed UTF-8: bytes that were cast to text.
BROKEN = "select i, case when i = 700 then cast(x'61ff62' as text) else t end as name from n"


@pytest.mark.parametrize("seed", range(20))
def test_any_mix_of_fetches_returns_every_row_once_and_in_order(numbers: onecopy.Connection, seed: int) -> None:
    choose = random.Random(seed)
    cur = numbers.execute("select i, t from n")
    got: list[tuple[Any, ...]] = []
    while len(got) < 1000:
        match choose.randrange(4):
            case 0:
                got += filter(None, [cur.fetchone()])
            case 1:
                got += itertools.islice(cur, choose.randrange(40))
            case 2:
                got += cur.fetchmany(choose.randrange(300))
            case _:
                got += cur.fetchall() if choose.random() < 0.05 else cur.fetchmany(7)
    assert got == [(i, f"näme {i}") for i in range(1000)]
    assert (cur.fetchone(), cur.fetchmany(), cur.fetchall(), list(cur)) == (None, [], [], [])


def test_iteration_returns_the_rows_of_fetchall(numbers: onecopy.Connection) -> None:
    assert list(numbers.execute("select * from n")) == numbers.execute("select * from n").fetchall()


def test_a_row_is_returned_before_the_next_one_is_fetched(con: onecopy.Connection) -> None:
    # The second row fails: the first one must be returned nevertheless.
    cur = con.execute("select 1 union all select abs(-9223372036854775807 - 1)")
    assert cur.fetchone() == (1,)
    with pytest.raises(onecopy.DatabaseError, match="integer overflow"):
        cur.fetchone()


def check(error: onecopy.Error) -> None:
    assert isinstance(error, onecopy.DataError)
    assert (error.column, error.row) == ((1, "name"), 700)
    assert "invalid start byte at byte 1" in str(error)
    assert 'errors="replace"' in str(error)


def test_iteration_returns_the_rows_before_a_malformed_text_then_the_error(numbers: onecopy.Connection) -> None:
    got: list[int] = []
    with pytest.raises(onecopy.DataError) as caught:
        got.extend(row[0] for row in numbers.execute(BROKEN))
    check(caught.value)
    assert got == list(range(700))


def test_fetchone_returns_the_rows_before_an_error(numbers: onecopy.Connection) -> None:
    cur = numbers.execute(BROKEN)
    for i in range(700):
        assert cur.fetchone() == (i, f"näme {i}")
    with pytest.raises(onecopy.DataError) as caught:
        cur.fetchone()
    check(caught.value)


@pytest.mark.parametrize("fetch", ["fetchone", "fetchmany", "fetchall", "__next__"])
def test_a_result_that_failed_never_looks_complete(numbers: onecopy.Connection, fetch: str) -> None:
    cur = numbers.execute(BROKEN)
    with pytest.raises(onecopy.DataError):
        cur.fetchall()
    for _ in range(2):
        with pytest.raises(onecopy.DataError) as caught:
            getattr(cur, fetch)()
        check(caught.value)


def test_fetchmany_returns_the_rows_before_an_error(numbers: onecopy.Connection) -> None:
    cur = numbers.execute(BROKEN)
    assert len(cur.fetchmany(600)) == 600
    assert cur.fetchmany(600) == [(i, f"näme {i}") for i in range(600, 700)]
    with pytest.raises(onecopy.DataError) as caught:
        cur.fetchmany(600)
    check(caught.value)


def test_fetchall_returns_no_rows_if_one_fails(numbers: onecopy.Connection) -> None:
    cur = numbers.execute(BROKEN)
    assert cur.fetchone() == (0, "näme 0")
    with pytest.raises(onecopy.DataError) as caught:
        cur.fetchall()
    check(caught.value)


def test_the_policy_replace_reads_malformed_text(con: onecopy.Connection) -> None:
    lossy = onecopy.connect("sqlite::memory:", errors="replace")
    sql = "select cast(x'61ff62e29c' as text)"
    assert lossy.execute(sql).fetchall() == [(b"\x61\xff\x62\xe2\x9c".decode("utf-8", "replace"),)]
    lossy.close()
    with pytest.raises(onecopy.DataError):
        con.execute(sql).fetchall()


def test_rows_have_a_single_reference_to_each_value(numbers: onecopy.Connection) -> None:
    import sys

    rows = numbers.execute("select i + 100000, t from n").fetchall()
    row = rows[10]
    # Compared with a list and a tuple created here: CPython 3.14 and newer borrow an argument,
    # which earlier versions count.
    made = [(object(), object()) for _ in rows]
    pair = made[10]
    assert sys.getrefcount(row) == sys.getrefcount(pair)
    assert [sys.getrefcount(v) for v in row] == [sys.getrefcount(v) for v in pair]
    keeps = (pair[0],)
    assert sys.getrefcount(keeps[0]) == sys.getrefcount(pair[1]) + 1  # The call itself adds a reference.


def test_rows_are_not_tracked_by_the_collector(numbers: onecopy.Connection) -> None:
    import gc

    rows = numbers.execute("select * from n").fetchall()
    assert not any(map(gc.is_tracked, rows))
    assert not any(map(gc.is_tracked, numbers.execute("select * from n")))


def test_the_collector_keeps_its_state(numbers: onecopy.Connection) -> None:
    import gc

    assert gc.isenabled()
    numbers.execute("select * from n").fetchall()
    assert gc.isenabled()
    with pytest.raises(onecopy.DataError):
        numbers.execute(BROKEN).fetchall()
    assert gc.isenabled()
    gc.disable()
    try:
        numbers.execute("select * from n").fetchall()
        assert not gc.isenabled()
    finally:
        gc.enable()


def test_a_finalizer_may_use_the_connection(numbers: onecopy.Connection) -> None:
    import gc

    class Cycle:
        def __init__(self) -> None:
            self.me = self
            self.cursor = numbers.execute("select i from n")

        def __del__(self) -> None:
            # A collection may start while a statement is executed: the connection then reports that
            # it is in use.
            try:
                seen.append(self.cursor.fetchone())
            except onecopy.InterfaceError as error:
                seen.append(str(error).splitlines()[0])

    seen: list[Any] = []
    busy = "the connection is in the middle of a call of this thread"
    threshold = gc.get_threshold()
    gc.set_threshold(5)
    try:
        for _ in range(20):
            Cycle()
            assert len(numbers.execute("select * from n").fetchall()) == 1000
    finally:
        gc.set_threshold(*threshold)
    gc.collect()
    assert len(seen) == 20 and all(one in ((0,), busy) for one in seen), seen


def test_two_cursors_of_a_connection_interleave(numbers: onecopy.Connection) -> None:
    one, two = numbers.execute("select i from n"), numbers.execute("select -i from n")
    assert [(a[0], b[0]) for a, b in zip(one, two, strict=True)] == [(i, -i) for i in range(1000)]


def test_a_cursor_ended_by_a_rollback_raises(numbers: onecopy.Connection) -> None:
    numbers.execute("insert into n values (-1, '')")
    cur = numbers.execute("select i from n")
    assert cur.fetchone() == (0,)
    numbers.rollback()
    with pytest.raises(onecopy.Error, match="rolled back"):
        cur.fetchall()


def test_text_leaves_no_utf8_cache(con: onecopy.Connection) -> None:
    import sys

    texts = ["ä" * 50, "я" * 50, "東" * 50, "😀" * 50]
    for text in texts:
        ((got,),) = con.execute("select ?", (text,)).fetchall()
        assert sys.getsizeof(got) == sys.getsizeof("".join(list(text)))
