"""Threads, forks and the GIL. The tests measure progress by events, never by time."""

from __future__ import annotations

import io
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator

import pytest

import onecopy

# Counts to n inside of SQLite: long, with one row at the end.
COUNT = "with recursive c(i) as (select 1 union all select i + 1 from c where i < {}) select count(*) from c"
# The same with a row for each number.
MANY = "with recursive c(i) as (select 1 union all select i + 1 from c where i < {}) select i, 'row ' || i from c"


@pytest.fixture
def eager_switching() -> Iterator[None]:
    """Makes a waiting thread request the GIL after 10 µs.

    The thread gets the GIL at the next bytecode of another thread, or when a call releases it.
    """
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(interval)


@pytest.mark.usefixtures("eager_switching")
@pytest.mark.parametrize("sql", [COUNT.format(3_000_000), MANY.format(300_000)])
def test_another_thread_runs_while_a_query_does(con: onecopy.Connection, sql: str) -> None:
    turns, running = [0], threading.Event()
    done = threading.Event()

    def count() -> None:
        running.set()
        while not done.is_set():
            turns[0] += 1
            time.sleep(0)  # releases the GIL, without waiting

    thread = threading.Thread(target=count)
    thread.start()
    running.wait()
    try:
        before = turns[0]
        con.execute(sql).fetchall()
        during = turns[0] - before
    finally:
        done.set()
        thread.join()
    # The measured statement has few bytecodes: the other switches happened inside of the two calls.
    assert during > 10


def test_threads_that_share_a_connection_get_correct_rows(numbers: onecopy.Connection) -> None:
    failures: list[BaseException] = []

    def work(k: int) -> None:
        try:
            for i in range(60):
                rows = numbers.execute("select i, t from n where i % 7 = ?", (k,)).fetchall()
                assert rows == [(i, f"näme {i}") for i in range(1000) if i % 7 == k]
                if i % 10 == k:
                    numbers.commit()
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(7)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def test_threads_that_share_a_cursor_get_each_row_once(numbers: onecopy.Connection) -> None:
    cur = numbers.execute("select i from n")
    got: list[int] = []
    lock = threading.Lock()

    def work() -> None:
        for (i,) in cur:
            with lock:
                got.append(i)

    threads = [threading.Thread(target=work) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(got) == list(range(1000))


def test_closing_while_another_thread_fetches_is_safe(numbers: onecopy.Connection) -> None:
    for _ in range(20):
        connection = onecopy.connect("sqlite::memory:")
        cur = connection.execute(MANY.format(100_000_000))
        cur.fetchone()
        began = threading.Event()
        outcome: list[object] = []

        def read(cur: onecopy.Cursor = cur, began: threading.Event = began, out: list[object] = outcome) -> None:
            began.set()
            try:
                out.append(sum(1 for _ in cur))
            except onecopy.Error as error:
                out.append(error)

        thread = threading.Thread(target=read)
        thread.start()
        began.wait()
        connection.close()
        thread.join()
        assert isinstance(outcome[0], onecopy.InterfaceError)


def test_cancel_from_another_thread_stops_the_query_and_leaves_the_connection(con: onecopy.Connection) -> None:
    stop = threading.Event()

    def cancel() -> None:
        # Repeated: a cancel before the query begins has no effect.
        while not stop.wait(0.001):
            con.cancel()

    thread = threading.Thread(target=cancel)
    thread.start()
    try:
        with pytest.raises(onecopy.OperationalError, match=r"cancel|interrupt"):
            con.execute(COUNT.format(10**12)).fetchall()
    finally:
        stop.set()
        thread.join()
    assert con.execute("select 1").fetchall() == [(1,)]


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_child_gets_an_interface_error_and_the_parent_continues(numbers: onecopy.Connection) -> None:
    cur = numbers.execute("select i from n")
    cur.fetchone()
    stream = numbers.execute("select i from n")
    rows = numbers.execute("select i from n").json()
    uses: list[Callable[[], object]] = [
        cur.fetchone,
        cur.fetchall,
        cur.close,
        lambda: cur.description,
        stream.fetchone,
        stream.csv,
        rows.read,
        lambda: next(rows),
        lambda: rows.write_to(io.BytesIO()),
        lambda: rows.write_to("nowhere/rows.json"),
        rows.cancel,
        rows.close,
        numbers.commit,
        numbers.close,
        numbers.cursor,
        lambda: numbers.execute("select 1"),
        lambda: numbers.autocommit,
    ]
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        # No code of pytest may run in the child: it reports by the pipe and exits.
        for use in uses:
            try:
                use()
                answer = b"-"
            except onecopy.InterfaceError as error:
                answer = b"+" if "fork" in str(error) else b"?"
            except BaseException:
                answer = b"!"
            os.write(write, answer)
        del cur, stream, rows, numbers, uses, use
        fresh = onecopy.connect("sqlite::memory:")
        os.write(write, b"=" if fresh.execute("select 7").fetchall() == [(7,)] else b"!")
        os._exit(0)
    os.close(write)
    _, status = os.waitpid(pid, 0)
    answers = os.read(read, 100)
    os.close(read)
    assert os.waitstatus_to_exitcode(status) == 0
    assert answers == b"+" * len(uses) + b"="
    assert cur.fetchall() == [(i,) for i in range(1, 1000)]


def test_a_busy_database_is_waited_for_with_the_gil_released(tmp_path: object) -> None:
    target = f"sqlite:{tmp_path}/t.db?busy_timeout_ms=60000"
    one, two = onecopy.connect(target), onecopy.connect(target)
    one.execute("create table t (a)")
    one.commit()
    one.execute("insert into t values (1)")  # holds the write lock
    waiting = threading.Event()

    def release() -> None:
        waiting.wait()
        one.commit()

    thread = threading.Thread(target=release)
    thread.start()
    waiting.set()
    two.execute("insert into t values (2)")
    two.commit()
    thread.join()
    assert two.execute("select count(*) from t").fetchall() == [(2,)]
    one.close()
    two.close()


def test_a_sub_interpreter_gets_a_clear_import_error() -> None:
    name = {(3, 12): "_xxsubinterpreters", (3, 13): "_interpreters"}.get(sys.version_info[:2], "_xxsubinterpreters")
    interpreters = pytest.importorskip(name)
    interpreter = interpreters.create()
    code = "\n".join(
        [
            "try:",
            "    import onecopy",
            "except ImportError as error:",
            "    assert 'subinterpreters' in str(error), str(error)",
            "else:",
            "    raise AssertionError('it was imported')",
        ]
    )
    try:
        failed = interpreters.run_string(interpreter, f"import sys; sys.path[:] = {sys.path!r}\n{code}")
        assert failed is None
    finally:
        interpreters.destroy(interpreter)
