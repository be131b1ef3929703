"""Features of SQLite: functions in Python, collations, backups, and operators and functions that
are optional in SQLite's build."""

from __future__ import annotations

import contextlib
import math
import sqlite3
import subprocess
import sys
import threading
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

import onecopy

#: Result codes of SQLite.
BUSY, DONE = 5, 101


def _one(con: onecopy.Connection, sql: str, *parameters: object) -> Any:
    row = con.execute(sql, parameters).fetchone()
    assert row is not None
    return row[0]


# Functions that are compiled in.


@pytest.mark.parametrize(
    ("sql", "value"),
    [
        ("sqrt(2)", math.sqrt(2)),
        ("pow(2, 10)", 1024.0),
        ("floor(-1.5)", -2.0),
        ("ceil(1.2)", 2.0),
        ("ln(10)", math.log(10)),
        ("log(2, 8)", 3.0),
        ("pi()", math.pi),
        ("mod(7.5, 2)", 1.5),
        ("""json_extract('{"a": [1, 2]}', '$.a[1]')""", 2),
    ],
)
def test_math_and_json_functions_exist(con: onecopy.Connection, sql: str, value: object) -> None:
    assert _one(con, f"select {sql}") == value


def test_full_text_search_and_r_trees_exist(con: onecopy.Connection) -> None:
    con.execute("create virtual table t using fts5(x)")
    con.execute("insert into t values ('the quick brown fox')")
    assert con.execute("select x from t where t match 'quick AND fox'").fetchall() == [("the quick brown fox",)]
    con.execute("create virtual table r using rtree(id, x0, x1)")
    con.execute("insert into r values (1, 0, 10)")
    assert con.execute("select id from r where x0 <= 5 and x1 >= 5").fetchall() == [(1,)]


def test_a_connection_with_statements_of_virtual_tables_is_rolled_back_and_closed() -> None:
    con = onecopy.connect("sqlite::memory:")
    con.execute("create virtual table t using fts5(x)")
    con.commit()
    con.execute("insert into t values ('the quick brown fox')")
    cursor = con.execute("select x from t where t match 'quick'")
    con.rollback()
    with pytest.raises(onecopy.Error, match="rolled back"):
        cursor.fetchone()
    con.executemany("insert into t values (?)", [("quick",), ("slow",)])
    cursor = con.execute("select x from t where t match 'quick'")
    con.close()
    with pytest.raises(onecopy.InterfaceError):
        cursor.fetchone()


@pytest.mark.parametrize(
    ("text", "pattern", "matches"),
    [
        ("Ærøskøbing", "^Æ.*bing$", 1),
        ("abc", "B", 0),
        ("abc", "(?i)B", 1),
        ("x1y", r"\d", 1),
        (12.5, r"^12\.5$", 1),
        (b"ab", "b", 1),
        (None, "a", None),
        ("a", None, None),
    ],
)
def test_regexp_searches(con: onecopy.Connection, text: object, pattern: object, matches: object) -> None:
    assert _one(con, "select ? regexp ?", text, pattern) == matches


def test_a_wrong_pattern_is_an_error_with_its_position(con: onecopy.Connection) -> None:
    with pytest.raises(onecopy.OperationalError, match="unclosed group"):
        con.execute("select 'a' regexp '('")


def test_many_patterns_in_one_statement_work(con: onecopy.Connection) -> None:
    numbers = "with recursive n(k) as (select 0 union all select k + 1 from n where k < 199) "
    assert _one(con, numbers + "select sum(('x' || k) regexp ('^x' || (k % 40) || '$')) from n") == 40


def test_a_function_of_the_application_replaces_regexp(con: onecopy.Connection) -> None:
    con.create_function("regexp", 2, lambda pattern, text: pattern == text)
    assert _one(con, "select 'a.c' regexp 'a.c'") == 1
    assert _one(con, "select 'abc' regexp 'a.c'") == 0


# Functions in Python.


@pytest.mark.parametrize("value", [None, 0, -(2**63), 1.5, math.inf, "", "東京 \0 x", b"", b"\0\xff"])
def test_values_are_passed_to_a_function_and_back_unchanged(con: onecopy.Connection, value: object) -> None:
    seen = []

    def same(x: object) -> object:
        seen.append(x)
        return x

    con.create_function("same", 1, same)
    assert _one(con, "select same(?)", value) == value
    assert seen == [value] and type(seen[0]) is type(value)


def test_a_function_takes_any_number_of_arguments(con: onecopy.Connection) -> None:
    con.create_function("total", -1, lambda *args: sum(args))
    assert con.execute("select total(), total(1), total(1, 2, 3)").fetchall() == [(0, 1, 6)]
    assert b"".join(con.execute("select total(1, 2)").json()) == b'[{"total(1, 2)":3}]'


def test_a_function_that_raises_ends_the_statement_and_is_named(con: onecopy.Connection) -> None:
    con.create_function("bad", 0, lambda: 1 // 0)
    with pytest.raises(onecopy.OperationalError, match="`bad` raised ZeroDivisionError"):
        con.execute("select bad()")
    con.create_function("list_of", 0, lambda: [1])
    with pytest.raises(onecopy.OperationalError, match="`list_of` raised TypeError"):
        con.execute("select list_of()")
    assert _one(con, "select 1") == 1


def test_a_decimal_of_a_function_is_a_number_or_an_error(con: onecopy.Connection) -> None:
    con.create_function("number", 1, Decimal)
    assert con.execute("select number('1.5'), number('7.00')").fetchall() == [(1.5, 7)]
    for text in ("0.1", str(2**63)):
        with pytest.raises(onecopy.OperationalError, match="no number that is exactly"):
            con.execute("select number(?)", [text])


def test_a_function_can_be_removed(con: onecopy.Connection) -> None:
    con.create_function("f", 0, lambda: 1)
    assert _one(con, "select f()") == 1
    con.create_function("f", 0, None)
    with pytest.raises(onecopy.DatabaseError, match="no such function"):
        con.execute("select f()")


def test_only_a_deterministic_function_may_be_used_in_an_index(con: onecopy.Connection) -> None:
    con.execute("create table t (x)")
    con.create_function("loose", 1, abs)
    with pytest.raises(onecopy.ProgrammingError, match="non-deterministic"):
        con.execute("create index i on t (loose(x))")
    con.create_function("strict", 1, abs, deterministic=True)
    con.execute("create index i on t (strict(x))")


def test_a_function_must_not_use_its_connection_but_may_use_another(con: onecopy.Connection) -> None:
    con.create_function("own", 0, lambda: con.execute("select 1").fetchone()[0])
    with pytest.raises(onecopy.OperationalError, match="InterfaceError: the connection is in the middle of a call"):
        con.execute("select own()")
    other = onecopy.connect("sqlite::memory:")
    con.create_function("theirs", 1, lambda x: _one(other, "select ? + 1", x))
    assert con.execute("select theirs(1), theirs(2)").fetchall() == [(2, 3)]


def test_a_function_is_called_while_rows_are_fetched_and_streamed(con: onecopy.Connection) -> None:
    con.create_function("half", 1, lambda x: x / 2)
    numbers = "with recursive n(k) as (select 1 union all select k + 1 from n where k < 3000) "
    sql = numbers + "select half(k) as h from n"
    want = [k / 2 for k in range(1, 3001)]
    assert [h for (h,) in con.execute(sql)] == [h for (h,) in con.execute(sql).fetchall()] == want
    (column,) = con.execute(sql).fetch_columns()
    assert memoryview(column).tolist() == want
    assert b"".join(con.execute(sql).json()).count(b'"h"') == 3000


def test_a_function_is_called_if_several_threads_share_the_connection(con: onecopy.Connection) -> None:
    con.create_function("plus", 2, lambda a, b: a + b)
    wrong = []

    def work(n: int) -> None:
        for k in range(200):
            if _one(con, "select plus(?, ?)", n, k) != n + k:
                wrong.append((n, k))

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_a_function_lives_as_long_as_it_is_used(con: onecopy.Connection) -> None:
    class Callable:
        def __call__(self) -> int:
            return 7

    func = Callable()
    before = sys.getrefcount(func)
    con.create_function("f", 0, func)
    assert sys.getrefcount(func) == before + 1
    assert _one(con, "select f()") == 7
    con.close()
    # Objects are released when the interpreter's lock is taken next.
    onecopy.connect("sqlite::memory:").close()
    assert sys.getrefcount(func) == before


@pytest.mark.parametrize("method", ["create_function", "create_aggregate"])
def test_an_object_that_is_not_callable_is_refused(con: onecopy.Connection, method: str) -> None:
    with pytest.raises(TypeError, match="callable"):
        getattr(con, method)("f", 1, 7)
    with pytest.raises(onecopy.Error):
        getattr(con, method)("f\0", 1, print)
    with pytest.raises(onecopy.Error):
        getattr(con, method)("f", 100_000, print)


# Aggregates.


class Product:
    def __init__(self) -> None:
        self.value = 1

    def step(self, x: int) -> None:
        if x == 13:
            raise ValueError("thirteen")
        self.value *= x

    def finalize(self) -> int:
        return self.value


def test_an_aggregate_has_a_state_for_each_group(con: onecopy.Connection) -> None:
    con.create_aggregate("product", 1, Product)
    con.execute("create table t (g, x)")
    con.executemany("insert into t values (?, ?)", [("a", 2), ("b", 5), ("a", 3), ("b", 7)])
    assert con.execute("select g, product(x) from t group by g order by g").fetchall() == [("a", 6), ("b", 35)]
    assert _one(con, "select product(x) from t where false") == 1
    con.execute("insert into t values ('a', 13)")
    with pytest.raises(onecopy.OperationalError, match="`product` raised ValueError: thirteen"):
        con.execute("select g, product(x) from t group by g").fetchall()


def test_an_aggregate_whose_class_cannot_be_instantiated_is_an_error(con: onecopy.Connection) -> None:
    con.create_aggregate("bad", 1, lambda: 1 // 0)
    with pytest.raises(onecopy.OperationalError, match="`bad` raised ZeroDivisionError"):
        con.execute("select bad(1)").fetchall()


# Backups.


def _filled(path: Path) -> onecopy.Connection:
    con = onecopy.connect(f"sqlite:{path}")
    con.execute("create table t (k, x)")
    con.executemany("insert into t values (?, ?)", [(k, "x" * 500) for k in range(2000)])
    con.commit()
    return con


def test_a_backup_is_the_whole_database(tmp_path: Path) -> None:
    with _filled(tmp_path / "a.db") as con:
        steps: list[tuple[int, int, int]] = []
        target = onecopy.connect(f"sqlite:{tmp_path / 'b.db'}")
        con.backup(target, pages=100, progress=lambda *at: steps.append(at))
        target.close()
    status, remaining, total = zip(*steps, strict=True)
    assert status[-1] == 101 and set(status[:-1]) == {0}
    assert remaining == tuple(max(0, total[0] - 100 * n) for n in range(1, len(steps) + 1))
    with contextlib.closing(sqlite3.connect(tmp_path / "b.db")) as other:
        assert other.execute("select count(*), sum(length(x)) from t").fetchone() == (2000, 1_000_000)


def test_the_source_may_be_used_during_a_backup(tmp_path: Path) -> None:
    con = _filled(tmp_path / "a.db")
    counts = []
    target = onecopy.connect("sqlite::memory:")
    con.backup(target, pages=50, progress=lambda *_: counts.append(_one(con, "select count(*) from t")))
    assert set(counts) == {2000}
    assert _one(target, "select count(*) from t") == 2000


def test_an_exception_of_progress_ends_the_backup(tmp_path: Path) -> None:
    con = _filled(tmp_path / "a.db")
    target = onecopy.connect("sqlite::memory:")
    with pytest.raises(ZeroDivisionError):
        con.backup(target, pages=1, progress=lambda *_: 1 // 0)
    con.backup(target)
    assert _one(target, "select count(*) from t") == 2000


def test_a_backup_waits_for_the_lock_of_another_connection(tmp_path: Path) -> None:
    _filled(tmp_path / "a.db").close()
    con = onecopy.connect(f"sqlite:{tmp_path / 'a.db'}?busy_timeout_ms=1")
    with onecopy.connect(f"sqlite:{tmp_path / 'a.db'}", autocommit=True) as other:
        other.execute("begin exclusive")
        status: list[int] = []

        def progress(code: int, remaining: int, total: int) -> None:
            status.append(code)
            if code == BUSY and len(status) == 3:
                other.execute("rollback")

        target = onecopy.connect("sqlite::memory:")
        con.backup(target, progress=progress, sleep=0)
    assert status[:3] == [BUSY] * 3 and status[-1] == DONE
    assert _one(target, "select count(*) from t") == 2000


def test_ctrl_c_ends_a_backup_that_waits(tmp_path: Path) -> None:
    code = """if True:
        import signal, sys, threading, onecopy
        con = onecopy.connect(f"sqlite:{sys.argv[1]}?busy_timeout_ms=1")
        other = onecopy.connect(f"sqlite:{sys.argv[1]}", autocommit=True)
        other.execute("begin exclusive")
        target = onecopy.connect("sqlite::memory:")
        begun = threading.Event()
        threading.Thread(target=lambda: (begun.wait(), signal.raise_signal(signal.SIGINT))).start()
        try:
            con.backup(target, progress=lambda *_: begun.set(), sleep=3600)
        except KeyboardInterrupt:
            sys.exit(7)
    """
    _filled(tmp_path / "a.db").close()
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path / "a.db")], timeout=60, check=False)
    assert done.returncode == 7


def test_a_source_that_is_closed_meanwhile_ends_the_backup(tmp_path: Path) -> None:
    con = _filled(tmp_path / "a.db")
    target = onecopy.connect("sqlite::memory:")
    with pytest.raises(onecopy.InterfaceError, match="closed"):
        con.backup(target, pages=1, progress=lambda *_: con.close())
    assert con.closed


def test_a_backup_in_the_callback_of_another_is_refused(con: onecopy.Connection) -> None:
    con.execute("create table t (x)")
    other = onecopy.connect("sqlite::memory:")
    with pytest.raises(onecopy.InterfaceError, match="under way"):
        con.backup(other, progress=lambda *_: other.backup(con))
    con.backup(other)
    assert _one(other, "select count(*) from t") == 0


def test_a_function_may_back_up_other_connections(con: onecopy.Connection) -> None:
    other, third = onecopy.connect("sqlite::memory:"), onecopy.connect("sqlite::memory:")
    other.execute("create table t (x)")

    def back_up() -> int:
        other.backup(third)
        with pytest.raises(onecopy.InterfaceError, match="in the middle of a call"):
            con.backup(third)
        return int(_one(third, "select count(*) from t"))

    con.create_function("back_up", 0, back_up)
    assert con.execute("select back_up()").fetchone() == (0,)
    assert _one(third, "select 1") == 1
    other.close()
    third.close()


def test_backups_in_both_directions_do_not_deadlock(tmp_path: Path) -> None:
    a, b = _filled(tmp_path / "a.db"), _filled(tmp_path / "b.db")
    threads = [
        threading.Thread(target=lambda p=pair: [p[0].backup(p[1], pages=20) for _ in range(10)])
        for pair in ((a, b), (b, a))
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive()
    assert _one(a, "select count(*) from t") == _one(b, "select count(*) from t") == 2000


def test_a_backup_refuses_invalid_arguments(con: onecopy.Connection) -> None:
    with pytest.raises(onecopy.ProgrammingError, match="another connection"):
        con.backup(con)
    with pytest.raises(onecopy.Error, match="nowhere"):
        con.backup(onecopy.connect("sqlite::memory:"), name="nowhere")
    with pytest.raises(ValueError, match="sleep"):
        con.backup(onecopy.connect("sqlite::memory:"), sleep=-1)
    closed = onecopy.connect("sqlite::memory:")
    closed.close()
    with pytest.raises(onecopy.InterfaceError, match="closed"):
        con.backup(closed)


# Miscellaneous.


def test_total_changes_counts_from_the_beginning(con: onecopy.Connection) -> None:
    assert con.total_changes == 0
    con.execute("create table t (x)")
    con.executemany("insert into t values (?)", [(k,) for k in range(5)])
    con.execute("delete from t where x < 2")
    assert con.total_changes == 7
    con.close()
    with pytest.raises(onecopy.InterfaceError, match="closed"):
        con.total_changes  # noqa: B018


def test_interrupt_stops_a_statement_of_another_thread(con: onecopy.Connection) -> None:
    inside = threading.Event()
    con.create_function("enter", 0, inside.set)
    failed = []

    def work() -> None:
        try:
            con.execute("select enter() union all select count(*) from (with recursive n(k) as"
                        " (select 1 union all select k + 1 from n) select k from n)").fetchall()  # fmt: skip
        except onecopy.OperationalError as error:
            failed.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    assert inside.wait(60)
    while thread.is_alive():
        con.interrupt()
        thread.join(0.01)
    assert len(failed) == 1


def test_other_databases_do_not_have_these(request: pytest.FixtureRequest) -> None:
    database = request.getfixturevalue("sqlite_odbc")
    with pytest.warns(onecopy.errors.DriverWarning):
        con = onecopy.connect(database.odbc)
    with con:
        for call in (
            lambda: con.create_function("f", 0, print),
            lambda: con.create_aggregate("f", 0, print),
            lambda: con.create_collation("f", None),
            lambda: con.backup(con),
            lambda: con.total_changes,
            lambda: con.blob_open("t", "x", 1),
        ):
            with pytest.raises(onecopy.NotSupportedError, match="only a connection to `sqlite:`"):
                call()
