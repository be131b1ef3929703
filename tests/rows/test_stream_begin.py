"""Row streams that are begun explicitly, read in parts, and call functions when they are closed."""

from __future__ import annotations

import functools
import gc
import io
import pathlib
import socket
import threading
import weakref
from collections.abc import Callable
from typing import Any

import pytest

import onecopy

ROWS = (
    "with recursive c(i) as (select 0 union all select i + 1 from c where i < 19999) "
    "select i, case when i = {} then cast(x'ff' as text) else 'text ' || i end as t from c"
)
LONG = ROWS.format(-1)
FAILS_LATE = ROWS.format(15_000)
FAILS_AT_ONCE = ROWS.format(5)


def test_a_begun_stream_returns_the_same_bytes(con: onecopy.Connection, tmp_path: pathlib.Path) -> None:
    def stream() -> onecopy.RowStream:
        return con.execute(LONG).json()

    def begun() -> onecopy.RowStream:
        rows = stream()
        assert rows.begin() is None
        assert rows.begin() is None
        assert 0 < rows.n_rows < 20_000
        return rows

    whole = stream().read()
    assert b"".join(begun()) == whole
    assert begun().read() == whole
    buffer = io.BytesIO()
    assert begun().write_to(buffer) == len(whole) and buffer.getvalue() == whole
    path = tmp_path / "rows.json"
    assert begun().write_to(path) == len(whole) and path.read_bytes() == whole
    rows = begun()
    first = next(rows)
    assert rows.begin() is None
    assert first + rows.read() == whole


def test_a_begun_stream_is_written_to_a_socket_whole(con: onecopy.Connection) -> None:
    here, there = socket.socketpair()
    received = bytearray()

    def receive() -> None:
        while part := there.recv(1 << 16):
            received.extend(part)

    reader = threading.Thread(target=receive)
    reader.start()
    rows = con.execute(LONG).csv()
    rows.begin()
    with here:
        here.settimeout(30)
        n_bytes = rows.write_to(here)
    reader.join()
    there.close()
    assert (n_bytes, bytes(received)) == (len(received), con.execute(LONG).csv().read())


@pytest.mark.parametrize(("sql", "data"), [("select 1 as id", b'[{"id":1}]'), ("select 1 as id where 0", b"[]")])
def test_the_length_of_a_short_answer_is_known_and_its_statement_over(
    con: onecopy.Connection, sql: str, data: bytes
) -> None:
    over: list[bool] = []
    rows = con.execute(sql).json()
    rows.on_close(lambda: over.append(True))
    assert (rows.begin(), over) == (len(data), [True])
    assert rows.begin() == len(data)
    assert rows.read() == data
    assert rows.begin() is None
    assert list(rows) == []


def test_an_empty_answer_has_no_bytes(con: onecopy.Connection) -> None:
    rows = con.execute("select 1 as id where 0").ndjson()
    assert rows.begin() == 0
    assert list(rows) == []


def test_begin_raises_errors_of_the_first_chunk(con: onecopy.Connection) -> None:
    rows = con.execute(FAILS_AT_ONCE).json()
    for use in (rows.begin, rows.begin, rows.read, rows.__next__):
        with pytest.raises(onecopy.DataError) as failure:
            use()
        assert failure.value.row == 5
    rows = con.execute(FAILS_LATE).json()
    assert rows.begin() is None
    with pytest.raises(onecopy.DataError):
        list(rows)


def test_a_begun_stream_that_is_closed_returns_nothing(con: onecopy.Connection) -> None:
    for sql in (LONG, "select 1 as id"):
        rows = con.execute(sql).json()
        rows.begin()
        rows.close()
        for use in (rows.begin, rows.read, rows.__next__, lambda: rows.read(1)):  # noqa: B023  # Used in this turn.
            with pytest.raises(onecopy.InterfaceError, match="closed"):
                use()


@pytest.mark.parametrize("size", [1, 7, 4096, 100_000, 1 << 20])
def test_read_returns_at_most_so_many_bytes(con: onecopy.Connection, size: int) -> None:
    sql = LONG if size > 7 else "select 'text' as t, 1 as i"
    rows, pieces = con.execute(sql).csv(), []
    while piece := rows.read(size):
        pieces.append(piece)
    assert max(map(len, pieces)) <= size
    assert b"".join(pieces) == con.execute(sql).csv().read()
    assert rows.read(size) == rows.read() == b""


def test_parts_and_chunks_may_alternate(con: onecopy.Connection) -> None:
    rows = con.execute(LONG).json()
    start = rows.read(10) + rows.read(0) + rows.read(3)
    assert len(start) == 13
    parts = [start, next(rows), rows.read(5), rows.read()]
    assert b"".join(parts) == con.execute(LONG).json().read()
    assert con.execute("select 1 as id").json().read(-1) == con.execute("select 1 as id").json().read(None)


def test_parts_are_counted_as_copies_and_whole_chunks_are_not(con: onecopy.Connection) -> None:
    with onecopy.ledger() as ledger:
        rows = con.execute(LONG).ndjson()
        rows.begin()
        n_bytes = sum(map(len, rows))
    assert ledger.copied == 0
    with onecopy.ledger() as ledger:
        rows = con.execute(LONG).ndjson()
        while rows.read(8192):
            pass
    assert 0 < ledger.copied <= n_bytes
    with onecopy.ledger() as ledger:
        rows = con.execute(LONG).ndjson()
        rows.begin()
        rows.read()
    assert 0 < ledger.copied < 70_000


def ended(rows: onecopy.RowStream) -> None:
    rows.read()


def failed(rows: onecopy.RowStream) -> None:
    with pytest.raises(onecopy.DataError):
        list(rows)


def closed(rows: onecopy.RowStream) -> None:
    next(rows)
    rows.close()


@pytest.mark.parametrize(("sql", "use"), [(LONG, ended), (FAILS_LATE, failed), (LONG, closed)])
def test_functions_are_called_once_when_a_stream_is_over(sql: str, use: Callable[[Any], None]) -> None:
    con = onecopy.connect("sqlite::memory:")
    there = weakref.ref(con)
    rows = con.execute(sql).json()
    del con
    calls: list[int] = []
    for i in range(3):
        rows.on_close(lambda i=i: calls.append(i))  # type: ignore[misc]
    gc.collect()
    assert there() is not None and calls == []
    use(rows)
    assert calls == [0, 1, 2] and there() is None
    rows.close()
    assert calls == [0, 1, 2]
    # The stream is over, so the function is called at once.
    rows.on_close(lambda: calls.append(3))
    assert calls == [0, 1, 2, 3]


def test_functions_are_called_when_a_stream_is_collected(con: onecopy.Connection) -> None:
    calls: list[bool] = []
    rows = con.execute(LONG).json()
    rows.on_close(lambda: calls.append(True))
    try:
        _ = 1 / 0
    except ZeroDivisionError:
        del rows
    assert calls == [True]


def test_a_function_that_raises_is_reported_and_the_next_is_called(
    con: onecopy.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    reported: list[Any] = []
    monkeypatch.setattr("sys.unraisablehook", lambda report: reported.append(report.exc_type))
    calls: list[bool] = []
    rows = con.execute("select 1 as id").json()
    rows.on_close(lambda: [][0])
    rows.on_close(lambda: calls.append(True))
    assert rows.read() == b'[{"id":1}]'
    assert (reported, calls) == ([IndexError], [True])
    with pytest.raises(TypeError, match="cannot be called"):
        rows.on_close(7)  # type: ignore[arg-type]


def test_a_function_may_use_the_connection_again(con: onecopy.Connection) -> None:
    rows, seen = con.execute("select 1 as id").json(), []
    rows.on_close(lambda: seen.extend(con.execute("select 2").fetchall()))
    rows.close()
    assert seen == [(2,)]


def test_a_stream_that_its_own_function_holds_is_collected(con: onecopy.Connection) -> None:
    # Not called: the objects that it needs may be gone by then.
    rows = con.execute(LONG).json()
    rows.on_close(functools.partial(onecopy.RowStream.close, rows))
    there = weakref.ref(rows)
    del rows
    gc.collect()
    assert there() is None


@pytest.fixture
def pool(tmp_path: pathlib.Path) -> onecopy.Pool:
    return onecopy.Pool(f"sqlite:{tmp_path / 'rows.db'}", max_size=1, timeout=0)


def test_a_stream_of_a_pool_returns_its_connection(pool: onecopy.Pool) -> None:
    uses: list[tuple[str, Callable[[Any], None]]] = [(LONG, ended), (FAILS_LATE, failed), (LONG, closed)]
    for sql, use in uses:
        rows = pool.stream(sql)
        assert pool.stats().out == 1
        use(rows)
        assert pool.stats().out == 0
    del rows
    assert next(pool.stream("select ? as i", [7], format="ndjson")) == b'{"i":7}\n'
    assert (pool.stats().out, pool.stats().opened) == (0, 1)


def test_a_stream_that_cannot_be_created_returns_its_connection(pool: onecopy.Pool) -> None:
    for sql in ("select * from nowhere", "create table made (i)", "select 1 as a, 2 as a"):
        with pytest.raises(onecopy.ProgrammingError):
            pool.stream(sql)
        assert pool.stats().out == 0
