"""Deferred values by PostgreSQL's native protocol: the last columns of a long row are read in parts
while the row arrives.

Memory does not grow with the length of a value.
"""

from __future__ import annotations

import random
import subprocess
import sys
from io import TextIOBase
from typing import Any

import pytest

import onecopy
from tests.conftest import Database

TEXT = "repeat('xäöü€😀', {})"
BYTES = "decode(repeat('00ff10', {}), 'hex')"


@pytest.fixture
def con(postgres_native: Database) -> Any:
    connection = onecopy.connect(postgres_native.odbc)
    yield connection
    connection.close()


def text_of(cur: onecopy.Cursor, column: int) -> TextIOBase:
    """The file object of a deferred text that is not NULL."""
    file = cur.open_text(column)
    assert file is not None
    return file


def read(cur: onecopy.Cursor, column: int, is_text: bool, step: int) -> str | bytes | None:
    """Reads a whole deferred value in steps of ``step`` characters or bytes; `None` is NULL."""
    file: Any = cur.open_text(column) if is_text else cur.open_binary(column)
    if file is None:
        return None
    parts = []
    while part := file.read(step):
        parts.append(part)
    joined: str | bytes = ("" if is_text else b"").join(parts)
    return joined


#: The number of columns that are not deferred, and all columns; the sizes of a row are around the
#: length from which a row is read in pieces, and around that of a part.
CASES: list[tuple[int, list[str]]] = [
    (1, ["1", TEXT.format(60_000)]),
    (0, [TEXT.format(60_000)]),
    (1, ["1", TEXT.format(10)]),
    (1, ["1", TEXT.format(10), TEXT.format(60_000), "null::text", BYTES.format(300_000), TEXT.format(3)]),
    (2, [TEXT.format(70_000), "2", TEXT.format(70_000)]),
    (2, ["null", f"to_jsonb({TEXT.format(70_000)})", TEXT.format(70_000), TEXT.format(70_000)]),
    (1, ["1", BYTES.format(174_737)]),
    (1, ["1", BYTES.format(174_757), BYTES.format(21_845), BYTES.format(21_846), "''::text", "null::bytea"]),
    (
        1,
        [
            "1",
            f"case when n % 2 = 0 then {TEXT.format(200_000)} end",
            f"case when n = 1 then {BYTES.format(200_000)} end",
        ],
    ),
    (3, ["1", "date '2026-11-26'", "array[1, 2]", BYTES.format(1_000_000), TEXT.format(1_000)]),
]


def sql_of(columns: list[str], n_rows: int) -> str:
    named = ", ".join(f"{column} as c{i}" for i, column in enumerate(columns))
    return f"select {named} from generate_series(1, {n_rows}) as n"


@pytest.mark.parametrize("case", range(len(CASES)))
@pytest.mark.parametrize("seed", range(3))
def test_values_are_those_of_whole_rows(con: onecopy.Connection, case: int, seed: int) -> None:
    """Some deferred values are read completely, some partly, some not at all."""
    n_whole, columns = CASES[case]
    draw = random.Random(seed)
    whole = con.execute(sql_of(columns, 4)).fetchall()
    cur = con.execute(sql_of(columns, 4)).defer(*range(n_whole, len(columns)))
    for expected in whole:
        row = cur.fetchone()
        assert row[:n_whole] == expected[:n_whole]
        assert row[n_whole:] == (...,) * (len(columns) - n_whole)
        for column in range(n_whole, len(columns)):
            how = draw.choice(["skip", "begin", "whole", "whole"])
            value = expected[column]
            is_text = "decode" not in columns[column] and "bytea" not in columns[column]
            if how == "whole":
                assert read(cur, column, is_text, draw.choice([1_000, 65_536, 1_000_000])) == value
            elif how == "begin":
                file: Any = cur.open_text(column) if is_text else cur.open_binary(column)
                assert (file is None) == (value is None)
                if file is not None:
                    assert file.read(70_000) == value[:70_000]
    assert cur.fetchone() is None
    assert con.execute("select 7").fetchall() == [(7,)]


@pytest.mark.parametrize("case", range(len(CASES)))
def test_rows_without_their_deferred_values(con: onecopy.Connection, case: int) -> None:
    n_whole, columns = CASES[case]
    deferred = range(n_whole, len(columns))
    rest = (...,) * len(deferred)
    expected = [row[:n_whole] + rest for row in con.execute(sql_of(columns, 3)).fetchall()]
    assert con.execute(sql_of(columns, 3)).defer(*deferred).fetchall() == expected
    cur = con.execute(sql_of(columns, 3)).defer(*deferred)
    assert [*cur.fetchmany(2), *cur] == expected
    assert cur.fetchall() == []
    with pytest.raises(onecopy.ProgrammingError, match="complete columns"):
        con.execute(sql_of(columns, 3)).defer(*deferred).fetch_columns()


def test_a_stream_after_defer_has_all_values(con: onecopy.Connection) -> None:
    sql = sql_of(["1", TEXT.format(100_000)], 2)
    expected = con.execute(sql).ndjson().read()
    assert con.execute(sql).defer(1).ndjson().read() == expected
    cur = con.execute(sql).defer(1)
    cur.defer()
    assert cur.fetchall() == con.execute(sql).fetchall()


@pytest.mark.parametrize("n", [1, 100_000])
def test_values_are_read_in_the_order_of_columns(con: onecopy.Connection, n: int) -> None:
    """Deferred values can be read only from left to right, whatever their length.

    If a column that is not deferred follows them, they can be read in any order.
    """
    sql = sql_of(["1", TEXT.format(n), TEXT.format(n)], 2)
    cur = con.execute(sql, defer=[1, 2])
    cur.fetchone()
    assert text_of(cur, 2).read() == "xäöü€😀" * n
    with pytest.raises(onecopy.NotSupportedError, match="left to right") as raised:
        text_of(cur, 1)
    assert raised.value.column == (1, "c1")
    cur.fetchone()
    assert text_of(cur, 1).read() == text_of(cur, 2).read()
    cur = con.execute(sql_of([TEXT.format(n), TEXT.format(n), "1"], 2), defer=[0, 1])
    for _ in range(2):
        cur.fetchone()
        assert text_of(cur, 1).read() == text_of(cur, 0).read()


def test_other_statements_may_run_inside_of_a_value(con: onecopy.Connection) -> None:
    cur = con.execute(sql_of(["n", TEXT.format(300_000)], 3), defer=[1])
    for n in (1, 2, 3):
        assert cur.fetchone() == (n, ...)
        file = text_of(cur, 1)
        begin = file.read(50_000)
        if n != 1:
            assert con.execute("select 7").fetchall() == [(7,)]
        assert begin + file.read() == "xäöü€😀" * 300_000
    assert cur.fetchone() is None


def test_a_value_whose_cursor_executes_again_cannot_be_read(con: onecopy.Connection) -> None:
    cur = con.execute(sql_of(["n", TEXT.format(500_000)], 3), defer=[1])
    cur.fetchone()
    file = text_of(cur, 1)
    file.read(10)
    assert cur.execute("select 7").fetchall() == [(7,)]
    with pytest.raises(onecopy.InterfaceError, match="has passed"):
        file.read(1_000_000)


def test_a_cancel_inside_of_a_value(con: onecopy.Connection) -> None:
    """A cancel does not interrupt the value: the server has sent the first row completely.

    The second row, which would take a minute, is cancelled.
    """
    sleeping = "case when n = 2 then pg_sleep(60)::text end"
    cur = con.execute(sql_of([sleeping, TEXT.format(2_000_000)], 2), defer=[1])
    cur.fetchone()
    file = text_of(cur, 1)
    begin = file.read(10)
    con.cancel()
    assert begin + file.read() == "xäöü€😀" * 2_000_000
    with pytest.raises(onecopy.OperationalError) as raised:
        cur.fetchone()
    assert raised.value.sqlstate == "57014"
    con.rollback()
    assert con.execute("select 7").fetchall() == [(7,)]


def test_a_lost_connection_inside_of_a_value(postgres_native: Database, con: onecopy.Connection) -> None:
    ((pid,),) = con.execute("select pg_backend_pid()").fetchall()
    cur = con.execute(sql_of(["n", TEXT.format(4_000_000)], 2), defer=[1])
    cur.fetchone()
    file = text_of(cur, 1)
    file.read(10)
    with onecopy.connect(postgres_native.odbc, autocommit=True) as other:
        other.execute("select pg_terminate_backend(?)", [pid]).fetchall()
    with pytest.raises(onecopy.OperationalError, match=r"lost|terminat"):
        file.read()
    assert not con.usable


PEAK = """
import sys
import onecopy

def peak():
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmHWM:"))

def read(sql):
    n = 0
    cur = con.execute(sql, defer=["v"])
    while cur.fetchone():
        file = cur.open_text("v") if "decode" not in sql else cur.open_binary("v")
        while part := file.read(50_000):
            n += len(part)
    return n

url, sql = sys.argv[1:]
con = onecopy.connect(url)
read(sql.replace("REPEAT", "1000"))
before = peak()
print(read(sql.replace("REPEAT", "100000")), peak() - before)
"""


@pytest.mark.parametrize(
    "value", ["repeat(repeat('xä', 1000), REPEAT)", "decode(repeat(repeat('00ff', 500), REPEAT), 'hex')"]
)
def test_memory_does_not_grow_with_a_deferred_value(postgres_native: Database, value: str) -> None:
    command = [sys.executable, "-c", PEAK, postgres_native.odbc, f"select 1 as a, {value} as v"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    n_read, n_kib = map(int, done.stdout.split())
    assert n_read >= 100_000_000
    assert n_kib < 4096
