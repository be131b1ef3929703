"""A thousand repetitions of each operation leak nothing."""

from __future__ import annotations

import contextlib
import gc
import sys
import tracemalloc
from collections.abc import Callable

import pytest

import onecopy

BROKEN = "select i, cast(x'ff' as text) from n"


def fetchall(con: onecopy.Connection) -> None:
    con.execute("select i, t, i * 1.5, cast(t as blob), null from n limit 50").fetchall()


def iterate(con: onecopy.Connection) -> None:
    for _ in con.execute("select * from n limit 50"):
        pass


def abandon(con: onecopy.Connection) -> None:
    next(con.execute("select * from n"))


def parameters(con: onecopy.Connection) -> None:
    con.execute("select ?, ?, ?, ?", ("я" * 100, b"x" * 100, 10**15, 1.5)).fetchall()


def many(con: onecopy.Connection) -> None:
    con.executemany("insert into n values (?, ?)", [(i, "x" * 50) for i in range(20)])
    con.rollback()


def failure(con: onecopy.Connection) -> None:
    with contextlib.suppress(onecopy.Error):
        con.execute(BROKEN).fetchall()
    with contextlib.suppress(onecopy.Error):
        con.execute("selec 1")
    with contextlib.suppress(TypeError):
        con.execute("select ?", (object(),))


def failure_beside_its_cursor(con: onecopy.Connection) -> None:
    # The traceback of the exception holds this frame, and this frame the cursor and the stream.
    cur, stream = con.execute(BROKEN), con.execute(BROKEN).json()
    with contextlib.suppress(onecopy.Error):
        cur.fetchall()
    with contextlib.suppress(onecopy.Error):
        cur.fetchone()
    with contextlib.suppress(onecopy.Error):
        stream.read()


def ledger(con: onecopy.Connection) -> None:
    with onecopy.ledger() as scope:
        con.execute("select t from n limit 5").fetchall()
    repr(scope), scope.stages


def description(con: onecopy.Connection) -> None:
    _ = con.execute("select * from n").description


def stream(con: onecopy.Connection) -> None:
    b"".join(con.execute("select i, t from n limit 50").json())
    con.execute("select i, t from n limit 50").csv().read()
    next(con.execute("select i, t from n").ndjson())


def connect(con: onecopy.Connection) -> None:
    onecopy.connect("sqlite::memory:").execute("select 1").fetchall()


@pytest.mark.parametrize(
    "use",
    [
        fetchall,
        iterate,
        abandon,
        parameters,
        many,
        failure,
        failure_beside_its_cursor,
        ledger,
        description,
        stream,
        connect,
    ],
    ids=lambda f: f.__name__,
)
def test_a_thousand_runs_leak_no_memory(numbers: onecopy.Connection, use: Callable[[onecopy.Connection], None]) -> None:
    for _ in range(20):
        use(numbers)
    gc.collect()
    tracemalloc.start()
    try:
        use(numbers)
        gc.collect()
        before, _ = tracemalloc.get_traced_memory()
        for _ in range(1000):
            use(numbers)
        gc.collect()
        after, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    # One object lost per run would be 28,000 bytes and more; tables of the interpreter grow
    # occasionally.
    assert after - before < 16_000


def test_constants_and_classes_keep_their_reference_counts(numbers: onecopy.Connection) -> None:
    shared: list[object] = [onecopy.Connection, onecopy.Cursor, tuple, str, onecopy.DataError]
    if sys.version_info < (3, 12):  # immortal from there on
        shared += [None, True]
    fetchall(numbers)
    failure(numbers)
    gc.collect()
    before = [sys.getrefcount(o) for o in shared]
    for _ in range(1000):
        fetchall(numbers)
        failure(numbers)
    gc.collect()
    after = [sys.getrefcount(o) for o in shared]
    assert all(abs(a - b) < 50 for a, b in zip(after, before, strict=True))


def test_connections_and_cursors_can_be_weakly_referenced(con: onecopy.Connection) -> None:
    import weakref

    cur = con.execute("select 1")
    reference = weakref.ref(cur)
    assert reference() is cur
    del cur
    assert reference() is None
