"""Callbacks of a database call that use the connections and cursors of other threads, which wait
for the callback.

Each call must end, with a result or an error. A scenario runs in a separate process. If its threads
do not end, the process is killed and the test fails.
"""

from __future__ import annotations

import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

_BEGIN = """
import sys, threading, onecopy
def memory():
    return onecopy.connect("sqlite::memory:", autocommit=True)
def one(con, sql="select 1"):
    return con.execute(sql).fetchone()[0]
both = threading.Barrier(2)
outcomes = []
def crossed(work):
    # Both threads hold their own lock here: at least one wait closes a circle.
    both.wait()
    try:
        outcomes.append(work())
    except onecopy.Error as e:
        outcomes.append(type(e).__name__)
        assert "deadlock" in str(e), e
def run(*works):
    threads = [threading.Thread(target=work) for work in works]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
a, b = memory(), memory()
"""

#: Scenarios by name: each thread reaches `crossed` while it holds the object that the other one
#: needs next.
_CROSSED = {
    "functions": """
        a.create_function("f", 0, lambda: crossed(lambda: one(b)))
        b.create_function("f", 0, lambda: crossed(lambda: one(a)))
        run(lambda: one(a, "select f()"), lambda: one(b, "select f()"))
    """,
    "functions while rows are fetched": """
        a.create_function("f", 1, lambda x: crossed(lambda: one(b)) if x == 2 else x)
        b.create_function("f", 1, lambda x: crossed(lambda: one(a)) if x == 2 else x)
        sql = "select f(x) from (select 1 x union all select 2 union all select 3)"
        run(lambda: a.execute(sql).fetchall(), lambda: b.execute(sql).fetchall())
    """,
    "aggregates": """
        def aggregate(other):
            class Count:
                def step(self, x): pass
                def finalize(self): return crossed(lambda: one(other))
            return Count
        a.create_aggregate("f", 1, aggregate(b))
        b.create_aggregate("f", 1, aggregate(a))
        run(lambda: one(a, "select f(1)"), lambda: one(b, "select f(1)"))
    """,
    "collations": """
        a.create_collation("c", lambda x, y: crossed(lambda: one(b)) and 0 or 0)
        b.create_collation("c", lambda x, y: crossed(lambda: one(a)) and 0 or 0)
        sql = "select 'x' < 'y' collate c"
        run(lambda: one(a, sql), lambda: one(b, sql))
    """,
    "a backup and a function": """
        a.create_function("f", 0, lambda: crossed(lambda: one(b)))
        run(lambda: one(a, "select f()"),
            lambda: memory().backup(b, progress=lambda *_: crossed(lambda: one(a))))
    """,
    "a value in place and a function": """
        for con in (a, b):
            con.execute("create table t (x)")
            con.execute("insert into t values ('text')")
        of_a, of_b = a.blob_open("t", "x", 1), b.blob_open("t", "x", 1)
        a.create_function("f", 0, lambda: crossed(lambda: len(of_b.read())))
        b.create_function("f", 0, lambda: crossed(lambda: len(of_a.read())))
        run(lambda: one(a, "select f()"), lambda: one(b, "select f()"))
    """,
    "closing": """
        a.create_function("f", 0, lambda: crossed(b.close) or 0)
        b.create_function("f", 0, lambda: crossed(a.close) or 0)
        def ended(con):
            try:
                one(con, "select f()")
            except onecopy.Error:
                pass
        run(lambda: ended(a), lambda: ended(b))
    """,
    "parameters of two cursors": """
        for con in (a, b):
            con.execute("create table t (x)")
        first, second = a.cursor(), b.cursor()
        def rows(other):
            yield [1]
            crossed(lambda: other.execute("select 1"))
        sql = "insert into t values (?)"
        run(lambda: first.executemany(sql, rows(second)),
            lambda: second.executemany(sql, rows(first)))
    """,
}


def _ends(code: str, *arguments: object) -> None:
    program = textwrap.dedent(_BEGIN) + textwrap.dedent(code) + '\nprint("ended")'
    done = subprocess.run(
        [sys.executable, "-c", program, *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, "ended\n"), done.stdout + done.stderr


@pytest.mark.parametrize("name", _CROSSED)
def test_two_threads_that_would_wait_for_each_other_both_end(name: str) -> None:
    both = 'assert len(outcomes) == 2 and "InterfaceError" in outcomes, outcomes'
    _ends(textwrap.dedent(_CROSSED[name]) + both)


def test_converters_run_while_no_lock_is_held() -> None:
    _ends("""
        for con in (a, b):
            con.execute("create table t (x integer)")
            con.execute("insert into t values (2)")
        a.converters["integer"] = lambda value: crossed(lambda: b.total_changes)
        b.converters["integer"] = lambda value: crossed(lambda: a.total_changes)
        run(lambda: one(a, "select x from t"), lambda: one(b, "select x from t"))
        assert outcomes == [1, 1], outcomes
    """)


def test_a_circle_of_five_threads_ends() -> None:
    _ends("""
        cons = [memory() for _ in range(5)]
        both = threading.Barrier(5)
        for at, con in enumerate(cons):
            def f(other=cons[(at + 1) % 5]):
                return crossed(lambda: one(other))
            con.create_function("f", 0, f)
        run(*[lambda con=con: one(con, "select f()") for con in cons])
        assert len(outcomes) == 5 and 1 <= outcomes.count("InterfaceError") < 5, outcomes
    """)


def test_threads_whose_functions_use_each_others_connections_at_random_all_end() -> None:
    _ends("""
        import random
        cons = [memory() for _ in range(4)]
        def f(depth, seed):
            choice = random.Random(seed)
            try:
                other = choice.choice(cons)
                return one(other, f"select f({depth - 1}, {seed + 1})") if depth else 1
            except onecopy.InterfaceError:
                return 0
        for con in cons:
            con.create_function("f", 2, f)
        def work(number):
            for seed in range(300):
                outcomes.append(one(cons[number], f"select f(3, {seed * 4 + number})"))
        run(*[lambda number=number: work(number) for number in range(4)])
        assert len(outcomes) == 1200 and set(outcomes) == {0, 1}, set(outcomes)
    """)


def test_backups_in_both_directions_at_the_same_time_both_end(tmp_path: Path) -> None:
    _ends(
        """
        def file(name):
            return onecopy.connect(f"sqlite:{sys.argv[1]}/{name}.db", autocommit=True)
        a, b = file("a"), file("b")
        for con in (a, b):
            con.execute("create table t (x)")
            con.execute("insert into t values (zeroblob(100000))")
        def copy(source, target):
            for _ in range(50):
                source.backup(target, pages=3, progress=lambda *_: outcomes.append(1))
        run(lambda: copy(a, b), lambda: copy(b, a))
        assert one(a, "select count(*) from t") == one(b, "select count(*) from t") == 1
        """,
        tmp_path,
    )


@pytest.mark.parametrize(
    "call",
    [
        "one(a)",
        "a.commit()",
        "a.rollback()",
        "a.close()",
        "a.total_changes",
        "a.create_function('g', 0, None)",
        "a.create_collation('c', None)",
        "a.backup(b)",
        "b.backup(a)",
        "a.blob_open('t', 'x', 1)",
        "blob.read()",
        "blob.close()",
        "cursor.fetchone()",
        "cursor.execute('select 1')",
        "a.executemany('insert into t values (?)', [[1]])",
        "setattr(a, 'autocommit', True)",
    ],
)
def test_a_call_on_the_connection_whose_function_runs_is_an_error(call: str) -> None:
    _ends(f"""
        a.execute("create table t (x)")
        a.execute("insert into t values ('text')")
        blob, cursor = a.blob_open("t", "x", 1), a.cursor()
        def f():
            try:
                {call}
            except onecopy.InterfaceError as e:
                outcomes.append(str(e))
            return 1
        a.create_function("f", 0, f)
        assert cursor.execute("select f()").fetchone() == (1,)
        assert len(outcomes) == 1, outcomes
        assert one(a) == 1
    """)


@pytest.mark.parametrize("call", ["a.interrupt()", "a.cancel()"])
def test_a_function_can_interrupt_its_statement(call: str) -> None:
    _ends(f"""
        a.create_function("f", 0, lambda: {call})
        count = "with recursive c(i) as (select f() union all select ifnull(i, 0) + 1 from c)"
        count += " select count(*) from c"
        try:
            one(a, count)
        except onecopy.OperationalError:
            outcomes.append("interrupted")
        assert outcomes == ["interrupted"]
        a.create_function("f", 0, lambda: 1)
        assert one(a, "select f()") == 1
    """)


@pytest.mark.parametrize("call", ["cursor.close()", "del cursor", "del blob", "del result"])
def test_objects_that_a_function_drops_are_closed(call: str) -> None:
    _ends(f"""
        a.execute("create table t (x)")
        a.execute("insert into t values ('text')")
        blob, cursor = a.blob_open("t", "x", 1), a.cursor()
        result = a.execute("select x from t union all select 2")
        cursor.execute("select x from t union all select 2")
        def f():
            global blob, cursor, result
            {call}
            return 1
        a.create_function("f", 0, f)
        assert one(a, "select f()") == 1
        blob = cursor = result = None
        a.execute("drop table t")
    """)


def test_a_backup_that_fails_while_its_source_waits_for_it_ends_with_the_sources_call() -> None:
    _ends("""
        a.execute("create table t (x)")
        a.execute("insert into t values (zeroblob(100000))")
        c, refused = memory(), []
        begun, waits = threading.Event(), threading.Event()
        def f():
            begun.set()
            waits.wait()
            try:
                # The other thread's backup to `b` waits for this statement, or is about to: when the
                # circle is closed by this thread it is refused here, else there.
                one(b)
            except onecopy.InterfaceError as e:
                refused.append(str(e))
            return 1
        a.create_function("f", 0, f)
        def progress(*_):
            if not begun.is_set():
                thread.start()
                begun.wait()
                waits.set()
        thread = threading.Thread(target=lambda: one(a, "select f()"))
        try:
            a.backup(b, pages=1, progress=progress)
        except onecopy.InterfaceError as e:
            refused.append(str(e))
        thread.join()
        assert len(refused) >= 1 and any("deadlock" in text for text in refused), refused
        # All is free again.
        a.backup(c)
        a.backup(b)
        assert one(b, "select length(x) from t") == one(c, "select length(x) from t") == 100000
        b.close()
        a.close()
    """)
