"""Row streams: the bytes are correct in every destination, and a stream is never complete after an
error."""

from __future__ import annotations

import asyncio
import csv
import gzip
import importlib.util
import io
import json
import os
import pathlib
import socket
import tempfile
import threading
from collections.abc import Callable
from typing import Any

import pytest

import onecopy
from tests.support.bson import documents

FORMATS = ["json", "ndjson", "csv", "bson"]
# 200,000 rows of which row 150,000 (from 0) holds malformed UTF-8.
BROKEN = (
    "with recursive c(i) as (select 0 union all select i + 1 from c where i < 199999) "
    "select i, case when i = 150000 then cast(x'ff' as text) else 'text ' || i end as t from c"
)
LARGE = BROKEN.replace("150000", "-1")


def stream(con: onecopy.Connection, format: str, sql: str = "select i, t from n") -> onecopy.RowStream:
    made = getattr(con.execute(sql), format)()
    assert isinstance(made, onecopy.RowStream)
    return made


def parse(format: str, data: bytes) -> list[Any]:
    if format == "bson":
        return [(row["i"].value, row["t"].value) for row in documents(data)]
    text = data.decode()
    match format:
        case "json":
            return [tuple(row.values()) for row in json.loads(text)]
        case "ndjson":
            return [tuple(json.loads(line).values()) for line in text.splitlines()]
        case _:
            return [(int(i), t) for i, t in list(csv.reader(io.StringIO(text)))[1:]]


EXPECTED = [(i, f"näme {i}") for i in range(1000)]


@pytest.mark.parametrize("format", FORMATS)
def test_iteration_returns_the_bytes_of_the_rows(numbers: onecopy.Connection, format: str) -> None:
    rows = stream(numbers, format)
    assert iter(rows) is rows
    chunks = list(rows)
    assert all(type(c) is bytes and c for c in chunks)
    assert parse(format, b"".join(chunks)) == EXPECTED
    assert rows.n_rows == 1000
    assert list(rows) == []


@pytest.mark.parametrize("format", FORMATS)
def test_chunks_stay_small_and_read_joins_them(con: onecopy.Connection, format: str) -> None:
    chunks = list(stream(con, format, LARGE))
    assert len(chunks) > 20
    assert max(map(len, chunks)) <= 1 << 17
    whole = stream(con, format, LARGE).read()
    assert type(whole) is bytes
    assert whole == b"".join(chunks)


@pytest.mark.parametrize("format", FORMATS)
def test_an_empty_result_is_an_empty_document(numbers: onecopy.Connection, format: str) -> None:
    empty = {"json": b"[]", "ndjson": b"", "csv": b"i,t\n", "bson": b""}[format]
    assert b"".join(stream(numbers, format, "select * from n where 0")) == empty
    assert stream(numbers, format, "select * from n where 0").read() == empty


def into_path(rows: onecopy.RowStream, folder: pathlib.Path) -> bytes:
    path = folder / f"rows.{rows.format}"
    assert rows.write_to(path) == path.stat().st_size
    return path.read_bytes()


def into_text_path(rows: onecopy.RowStream, folder: pathlib.Path) -> bytes:
    path = folder / f"räws.{rows.format.upper()}"
    rows.write_to(str(path))
    return path.read_bytes()


def into_gzip_path(rows: onecopy.RowStream, folder: pathlib.Path) -> bytes:
    path = folder / f"rows.{rows.format}.gz"
    assert rows.write_to(path) == path.stat().st_size
    return gzip.decompress(path.read_bytes())


if importlib.util.find_spec("pyarrow"):  # Other CPythons are tested without it.

    def into_zstd_path(rows: onecopy.RowStream, folder: pathlib.Path) -> bytes:
        import pyarrow

        path = folder / f"rows.{rows.format}.zst"
        assert rows.write_to(path) == path.stat().st_size
        with pyarrow.input_stream(path, compression="zstd") as file:
            return bytes(file.read())


def into_buffered_file(rows: onecopy.RowStream, folder: pathlib.Path) -> bytes:
    with open(folder / "rows", "wb") as file:
        file.write(b"before,")
        rows.write_to(file)
        file.write(b",after")
    data = (folder / "rows").read_bytes()
    assert data.startswith(b"before,")
    assert data.endswith(b",after")
    return data[7:-6]


def into_raw_file(rows: onecopy.RowStream, folder: pathlib.Path) -> bytes:
    with open(folder / "rows", "wb", buffering=0) as file:
        rows.write_to(file)
        assert file.tell() == os.path.getsize(file.name)
    return (folder / "rows").read_bytes()


def into_random_access_file(rows: onecopy.RowStream, folder: pathlib.Path) -> bytes:
    with open(folder / "rows", "w+b") as file:
        rows.write_to(file)
        file.seek(0)
        return file.read()


def into_temporary_file(rows: onecopy.RowStream, folder: pathlib.Path) -> bytes:
    with tempfile.NamedTemporaryFile(dir=folder) as file:
        rows.write_to(file)
        file.seek(0)
        return file.read()


def into_bytes_io(rows: onecopy.RowStream, folder: pathlib.Path) -> bytes:
    file = io.BytesIO()
    n_bytes = rows.write_to(file)
    assert n_bytes == len(file.getvalue())
    return file.getvalue()


def into_gzip(rows: onecopy.RowStream, folder: pathlib.Path) -> bytes:
    # It has a `fileno`, but its bytes must not be written to it directly.
    with gzip.open(folder / "rows.gz", "wb") as file:
        rows.write_to(file)
    return gzip.decompress((folder / "rows.gz").read_bytes())


class Slow(io.RawIOBase):
    """A raw file that accepts at most 1,000 bytes per write."""

    def __init__(self) -> None:
        self.data = bytearray()

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        self.data += bytes(data[:1000])
        return min(len(data), 1000)


def into_an_object_that_takes_less(rows: onecopy.RowStream, folder: pathlib.Path) -> bytes:
    file = Slow()
    rows.write_to(file)
    return bytes(file.data)


def receive(sock: socket.socket, into: bytearray) -> None:
    while data := sock.recv(65536):
        into += data


def into_socket(rows: onecopy.RowStream, folder: pathlib.Path, timeout: float | None = None) -> bytes:
    ours, theirs = socket.socketpair()
    ours.settimeout(timeout)
    got = bytearray()
    thread = threading.Thread(target=receive, args=(theirs, got))
    thread.start()
    with theirs:
        try:
            with ours:
                rows.write_to(ours)
        finally:
            thread.join()  # It ends when we close, also after an error.
    return bytes(got)


def into_socket_with_timeout(rows: onecopy.RowStream, folder: pathlib.Path) -> bytes:
    return into_socket(rows, folder, 30)


def into_socket_file(rows: onecopy.RowStream, folder: pathlib.Path) -> bytes:
    ours, theirs = socket.socketpair()
    got = bytearray()
    thread = threading.Thread(target=receive, args=(theirs, got))
    thread.start()
    with theirs:
        try:
            with ours, ours.makefile("wb") as file:
                rows.write_to(file)
        finally:
            thread.join()
    return bytes(got)


async def chunks_of(rows: onecopy.RowStream) -> bytes:
    return b"".join([chunk async for chunk in rows])


def into_asyncio(rows: onecopy.RowStream, folder: pathlib.Path) -> bytes:
    return asyncio.run(chunks_of(rows))


PLACES = [v for k, v in list(globals().items()) if k.startswith("into_")]


@pytest.mark.parametrize("place", PLACES, ids=lambda f: f.__name__)
@pytest.mark.parametrize("sql", ["select i, t from n", LARGE], ids=["small", "large"])
def test_every_destination_gets_the_same_bytes(
    numbers: onecopy.Connection,
    tmp_path: pathlib.Path,
    place: Callable[[onecopy.RowStream, pathlib.Path], bytes],
    sql: str,
) -> None:
    assert place(stream(numbers, "ndjson", sql), tmp_path) == stream(numbers, "ndjson", sql).read()


@pytest.mark.parametrize("place", PLACES, ids=lambda f: f.__name__)
@pytest.mark.parametrize("format", FORMATS)
def test_a_stream_that_fails_raises_for_every_destination(
    con: onecopy.Connection,
    tmp_path: pathlib.Path,
    place: Callable[[onecopy.RowStream, pathlib.Path], bytes],
    format: str,
) -> None:
    rows = stream(con, format, BROKEN)
    if "socket" in place.__name__:
        rows = stream(
            con, format, BROKEN.replace("150000", "150")
        )  # fits into the socket's buffer, as there is no reader
    with pytest.raises(onecopy.DataError) as caught:
        place(rows, tmp_path)
    assert caught.value.column == (1, "t")
    assert caught.value.row in (150_000, 150)
    # Nothing that looks complete, now or later.
    assert not (tmp_path / "rows").exists() or place is not into_path
    assert [p.name for p in tmp_path.iterdir() if ".part" in p.name] == []
    with pytest.raises(onecopy.DataError):
        next(rows)
    with pytest.raises(onecopy.DataError):
        rows.read()
    assert con.execute("select 1").fetchall() == [(1,)]


@pytest.mark.parametrize("format", ["ndjson", "csv", "bson"])
def test_the_rows_before_an_error_are_complete_and_first(con: onecopy.Connection, format: str) -> None:
    expected = [(i, f"text {i}") for i in range(1_500)]
    broken = BROKEN.replace("150000", "1500")

    def check(written: bytes) -> None:
        assert parse(format, written) == expected and written.endswith(b"\0" if format == "bson" else b"\n")

    rows, chunks = stream(con, format, broken), io.BytesIO()
    with pytest.raises(onecopy.DataError) as caught:
        chunks.writelines(rows)
    assert caught.value.row == 1_500
    check(chunks.getvalue())
    assert rows.n_rows == 1_500
    target = io.BytesIO()
    with pytest.raises(onecopy.DataError):
        stream(con, format, broken).write_to(target)
    check(target.getvalue())
    ours, theirs = socket.socketpair()
    with ours, theirs:
        with pytest.raises(onecopy.DataError):
            stream(con, format, broken).write_to(ours)
        ours.shutdown(socket.SHUT_WR)
        check(theirs.makefile("rb").read())


def test_a_failed_write_keeps_the_previous_file(con: onecopy.Connection, tmp_path: pathlib.Path) -> None:
    file = tmp_path / "rows.json"
    file.write_text("the old one")
    with pytest.raises(onecopy.DataError):
        stream(con, "json", BROKEN).write_to(file)
    assert file.read_text() == "the old one"
    assert list(tmp_path.iterdir()) == [file]


def test_the_ending_of_a_path_is_one_of_the_format(con: onecopy.Connection, tmp_path: pathlib.Path) -> None:
    for name, message in {
        "rows": "not the ending of an output format",
        "rows.gz": "not the ending of an output format",
        "rows.txt": r"\.json, \.ndjson, \.jsonl, \.csv, \.tsv, \.bson, \.arrow, \.parquet\n\.gz or \.zst",
        "rows.tsv": "the name of a tsv file, and the stream is csv",
        "rows.parquet": "the name of a parquet file, and the stream is csv",
        "rows.parquet.zst": "not compressed as a whole",
    }.items():
        rows = con.execute("select 1 as a").csv()
        with pytest.raises(ValueError, match=message):
            rows.write_to(tmp_path / name)
        # The stream is still readable.
        assert rows.write_to(tmp_path / "rows.csv") == 4
    assert con.execute("select 1 as a").ndjson().write_to(tmp_path / "rows.jsonl") == 8
    assert {path.name for path in tmp_path.iterdir()} == {"rows.csv", "rows.jsonl"}


def test_a_path_that_cannot_be_written_is_an_os_error(numbers: onecopy.Connection, tmp_path: pathlib.Path) -> None:
    with pytest.raises(OSError, match="nowhere"):
        stream(numbers, "json").write_to(tmp_path / "nowhere" / "rows.json")


def test_a_reader_that_disconnects_is_a_broken_pipe(con: onecopy.Connection) -> None:
    ours, theirs = socket.socketpair()
    theirs.close()
    with ours, pytest.raises(BrokenPipeError):
        stream(con, "json", LARGE).write_to(ours)


def test_a_reader_that_stalls_is_a_timeout(con: onecopy.Connection) -> None:
    ours, theirs = socket.socketpair()
    ours.settimeout(0.05)
    with ours, theirs, pytest.raises(TimeoutError):
        stream(con, "json", LARGE).write_to(ours)


def test_an_object_that_does_not_accept_bytes_is_refused(numbers: onecopy.Connection, tmp_path: pathlib.Path) -> None:
    rows = stream(numbers, "json")
    with open(tmp_path / "text", "w") as text, pytest.raises(TypeError, match="binary mode"):
        rows.write_to(text)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="binary mode"):
        rows.write_to(io.StringIO())  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="cannot write to a `int`"):
        rows.write_to(7)  # type: ignore[arg-type]
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.setblocking(False)
        with pytest.raises(ValueError, match="non-blocking"):
            rows.write_to(ours)
        ours.setblocking(True)
    with pytest.raises(ValueError, match="closed"):
        rows.write_to(ours)
    # None of this has consumed the rows.
    assert parse("json", rows.read()) == EXPECTED


def test_exceptions_of_the_object_are_passed_on_and_the_stream_continues(con: onecopy.Connection) -> None:
    class Full:
        def write(self, data: bytes) -> None:
            raise OSError(28, "disk full")

    rows = stream(con, "json", LARGE)
    with pytest.raises(OSError, match="disk full"):
        rows.write_to(Full())


def test_a_stream_takes_the_rows_from_its_cursor(numbers: onecopy.Connection) -> None:
    cur = numbers.execute("select i, t from n")
    rows = cur.json()
    with pytest.raises(onecopy.ProgrammingError, match="a stream has taken them"):
        cur.fetchone()
    assert cur.description is not None
    cur.execute("select 1")
    assert cur.fetchall() == [(1,)]
    assert parse("json", rows.read()) == EXPECTED


def test_a_stream_is_of_all_rows_or_none(numbers: onecopy.Connection) -> None:
    cur = numbers.execute("select i, t from n")
    cur.fetchone()
    with pytest.raises(onecopy.ProgrammingError, match="fetched already"):
        cur.json()


@pytest.mark.parametrize("format", ["json", "ndjson"])
@pytest.mark.parametrize("sql", ["select 1 as a, 2 as a", "select 1 as ''"])
def test_objects_require_distinct_names(con: onecopy.Connection, format: str, sql: str) -> None:
    with pytest.raises(onecopy.ProgrammingError):
        stream(con, format, sql)
    assert stream(con, "csv", sql).read().count(b"\n") == 2


def test_a_closed_stream_raises_and_does_not_just_end(numbers: onecopy.Connection) -> None:
    rows = stream(numbers, "json", LARGE)
    next(rows)
    rows.close()
    rows.close()
    for use in (rows.__next__, rows.read, lambda: rows.write_to(io.BytesIO())):
        with pytest.raises(onecopy.InterfaceError, match="stream is closed"):
            use()
    with stream(numbers, "json", LARGE) as rows:
        next(rows)
    with pytest.raises(onecopy.InterfaceError):
        next(rows)


def test_a_stream_that_fails_before_its_first_chunk_creates_no_file(
    con: onecopy.Connection, tmp_path: pathlib.Path
) -> None:
    # In a folder that does not exist, creating a file would fail first.
    paths = [tmp_path / "rows.json", tmp_path / "nowhere" / "rows.json"]
    closed, failed = stream(con, "json", LARGE), stream(con, "json", BROKEN)
    closed.close()
    with pytest.raises(onecopy.DataError):
        failed.read()
    for path in paths:
        with pytest.raises(onecopy.InterfaceError, match="stream is closed"):
            closed.write_to(path)
        with pytest.raises(onecopy.DataError):
            failed.write_to(path)
    assert list(tmp_path.iterdir()) == []


def test_a_stream_that_was_read_to_its_end_ends_again_after_close(numbers: onecopy.Connection) -> None:
    rows = stream(numbers, "json")
    rows.read()
    rows.close()
    assert list(rows) == []


def test_cancel_from_another_thread_ends_the_write(con: onecopy.Connection) -> None:
    endless = "with recursive c(i) as (select 1 union all select i + 1 from c) select i from c"
    rows = stream(con, "ndjson", endless)

    class Sink:
        def __init__(self) -> None:
            self.began = threading.Event()

        def write(self, data: bytes) -> None:
            self.began.set()

    sink = Sink()

    def cancel() -> None:
        sink.began.wait()
        rows.cancel()

    thread = threading.Thread(target=cancel)
    thread.start()
    with pytest.raises(onecopy.OperationalError, match="cancelled"):
        rows.write_to(sink)
    thread.join()
    assert con.execute("select 1").fetchall() == [(1,)]


def test_a_cancelled_task_cancels_the_statement(con: onecopy.Connection) -> None:
    endless = "with recursive c(i) as (select 1 union all select i + 1 from c) select i from c where i < 0"
    rows = stream(con, "ndjson", endless.replace("where i < 0", ""))

    async def main() -> None:
        first = asyncio.Event()

        async def read() -> None:
            async for _ in rows:
                first.set()

        task = asyncio.create_task(read())
        await first.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())
    assert con.execute("select 1").fetchall() == [(1,)]


def test_a_stream_counts_one_conversion_and_no_copy(con: onecopy.Connection, tmp_path: pathlib.Path) -> None:
    payload = sum(len(f"text {i}") for i in range(200_000))
    for use in (list, lambda s: s.write_to(tmp_path / f"rows.{s.format}")):  # `read` is tested in test_ledger.py.
        with onecopy.ledger() as ledger:
            use(stream(con, "ndjson", LARGE))
        assert ledger.taken == ledger.converted == payload
        assert ledger.copied == 0
        assert set(ledger.stages) == {"encode"}


def test_a_stream_counts_in_the_scope_that_made_it(con: onecopy.Connection) -> None:
    with onecopy.ledger() as ledger:
        rows = stream(con, "ndjson", "select 'abc' as t")
    thread = threading.Thread(target=rows.read)
    thread.start()
    thread.join()
    assert ledger.taken == 3
