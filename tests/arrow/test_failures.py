"""Failures of Arrow streams: an error in the rows raises and is never an apparent end of the
stream; streams can be cancelled, abandoned and used across a fork."""

from __future__ import annotations

import gc
import os
import pathlib
import signal
import subprocess
import sys
import threading
import time

import pyarrow as pa
import pytest

import onecopy
from tests.conftest import Database

ENDLESS = "with recursive c(i) as (select 1 union all select i + 1 from c) select i, 'x' as t from c"
ROOT = pathlib.Path(__file__).parents[2]


def test_an_error_inside_the_rows_reaches_the_reader_again_and_again(con: onecopy.Connection) -> None:
    con.execute("create table t (i integer)")
    con.executemany("insert into t values (?)", [[i] for i in range(5000)])
    stream = con.execute("select i, abs(case i when 4000 then -9223372036854775808 else i end) as x from t").arrow(
        batch_bytes=8000
    )
    reader = pa.RecordBatchReader.from_stream(stream)
    sizes: list[int] = []
    with pytest.raises(OSError, match="integer overflow"):
        sizes.extend(batch.num_rows for batch in reader)
    assert 0 < sum(sizes) < 4001 and sum(sizes) == stream.n_rows
    with pytest.raises((OSError, pa.ArrowInvalid), match="integer overflow"):
        reader.read_next_batch()
    assert isinstance(stream.error, onecopy.Error)
    assert con.execute("select 1").fetchall() == [(1,)]


def test_an_abandoned_stream_ends_its_statement(con: onecopy.Connection) -> None:
    con.execute("create table t (i integer)")
    con.executemany("insert into t values (?)", [[i] for i in range(50_000)])
    con.commit()
    reader = pa.RecordBatchReader.from_stream(con.execute("select * from t").arrow(batch_bytes=1000))
    reader.read_next_batch()
    with pytest.raises(onecopy.Error, match="locked"):
        con.execute("drop table t")
    reader.close()
    del reader
    gc.collect()
    con.execute("drop table t")


def test_a_capsule_that_is_not_consumed_ends_its_statement(con: onecopy.Connection) -> None:
    con.execute("create table t (i integer)")
    con.execute("insert into t values (1), (2)")
    con.commit()
    capsule = con.execute("select * from t").__arrow_c_stream__()
    del capsule
    con.execute("drop table t")


def test_a_stream_keeps_its_connection() -> None:
    reader = pa.RecordBatchReader.from_stream(onecopy.connect("sqlite::memory:").execute("select 7 as x"))
    gc.collect()
    assert reader.read_all().to_pylist() == [{"x": 7}]


def test_a_closed_connection_is_an_error_for_the_reader(con: onecopy.Connection) -> None:
    con.execute("create table t (i integer)")
    con.executemany("insert into t values (?)", [[i] for i in range(50_000)])
    reader = pa.RecordBatchReader.from_stream(con.execute("select * from t").arrow(batch_bytes=1000))
    reader.read_next_batch()
    con.close()
    with pytest.raises(OSError, match="closed"):
        reader.read_all()


def test_cancel_stops_a_stream_from_another_thread(con: onecopy.Connection) -> None:
    stream = con.execute(ENDLESS).arrow(batch_bytes=100_000)
    reader = pa.RecordBatchReader.from_stream(stream)
    reader.read_next_batch()
    timer = threading.Timer(0.05, stream.cancel)
    timer.start()
    with pytest.raises(OSError, match="cancelled"):
        list(reader)
    timer.join()
    assert isinstance(stream.error, onecopy.OperationalError)


def test_other_threads_run_while_a_batch_is_created(con: onecopy.Connection) -> None:
    ticks = []
    done = threading.Event()

    def tick() -> None:
        while not done.is_set():
            ticks.append(time.monotonic())
            time.sleep(0.001)

    ticker = threading.Thread(target=tick)
    ticker.start()
    # The interpreter's lock is released while rows are fetched, if the reader holds it or not.
    stream = con.execute(f"{ENDLESS} where i % 100000 = 1 limit 30").arrow()
    begin = time.monotonic()
    pa.table(stream)
    end = time.monotonic()
    done.set()
    ticker.join()
    inside = [t for t in ticks if begin < t < end]
    assert len(inside) > 20


@pytest.mark.parametrize("reader", ["pa.table({})", "pl.DataFrame({})"])
def test_ctrl_c_ends_a_stream_promptly(reader: str) -> None:
    code = f"""
import onecopy, pyarrow as pa, polars as pl
con = onecopy.connect("sqlite::memory:")
cur = con.execute("{ENDLESS} where i % 1000 = 1")
print("ready", flush=True)
{reader.format("cur")}
"""
    child = subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=ROOT
    )
    assert child.stdout is not None

    def ticks() -> int:
        return int(pathlib.Path(f"/proc/{child.pid}/stat").read_text().rsplit(")", 1)[1].split()[11])

    try:
        assert child.stdout.readline() == "ready\n"
        # From here on the child computes: its processor time shows when it is inside of the stream.
        begin = ticks()
        while ticks() < begin + os.sysconf("SC_CLK_TCK") // 5:
            pass
        child.send_signal(signal.SIGINT)
        _, error = child.communicate(timeout=60)
    finally:
        child.kill()
    # The reader may raise its own error first; Python's handler runs when Python code continues, or
    # at exit.
    assert child.returncode != 0 and ("KeyboardInterrupt" in error or "cancelled" in error), error


def test_a_forked_child_is_refused_and_the_parent_continues(con: onecopy.Connection) -> None:
    con.execute("create table t (i integer)")
    con.executemany("insert into t values (?)", [[i] for i in range(5000)])
    reader = pa.RecordBatchReader.from_stream(con.execute("select * from t").arrow(batch_bytes=1000))
    reader.read_next_batch()
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            reader.read_next_batch()
        except OSError as error:
            code = 0 if "another process" in str(error) else 2
        os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    assert reader.read_all().num_rows > 0


@pytest.mark.filterwarnings("ignore::onecopy.DriverWarning")
def test_a_rollback_ends_a_stream_of_a_server_side_cursor(postgres: Database) -> None:
    con = onecopy.connect(postgres.odbc)
    cur = con.execute("select k, repeat('x', 500) as t from generate_series(1, 200000) as g(k)")
    reader = pa.RecordBatchReader.from_stream(cur.arrow(batch_bytes=100_000))
    reader.read_next_batch()
    con.rollback()
    with pytest.raises(OSError, match="ended by a commit or rollback"):
        reader.read_all()
    con.close()


@pytest.mark.filterwarnings("ignore::onecopy.DriverWarning")
def test_a_session_that_ends_during_the_rows_is_an_error_for_the_reader(postgres: Database) -> None:
    con = onecopy.connect(postgres.odbc)
    [(pid,)] = con.execute("select pg_backend_pid()").fetchall()
    cur = con.execute("select k, repeat('x', 500) as t from generate_series(1, 200000) as g(k)")
    stream = cur.arrow(batch_bytes=100_000)
    reader = pa.RecordBatchReader.from_stream(stream)
    reader.read_next_batch()
    other = onecopy.connect(postgres.odbc, autocommit=True)
    other.execute("select pg_terminate_backend(?)", [pid])
    with pytest.raises(OSError, match=r"terminat|connection"):
        reader.read_all()
    assert isinstance(stream.error, onecopy.OperationalError)
    other.close()
