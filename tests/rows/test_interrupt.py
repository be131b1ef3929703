"""Ctrl-C during a long query raises KeyboardInterrupt promptly, and the connection remains
usable."""

from __future__ import annotations

import pathlib
import signal
import subprocess
import sys

import pytest

# The child reports on stdout when its query runs. A trigger of SQLite would be no use, since no
# Python code runs inside; so the child starts a thread that waits until the main thread has
# computed for so long that it must be inside the call, or until the call has written to the socket
# that nobody reads, and reports.
CHILD = """
import select, signal, socket, sys, threading, time
import onecopy

stalled, reader = socket.socketpair()
con = onecopy.connect("sqlite::memory:")
con.execute("create table t (a)")
con.commit()

def run():
    {run}

def ready():
    clock = time.pthread_getcpuclockid(main)
    start = time.clock_gettime(clock)
    while time.clock_gettime(clock) < start + 0.05 and not select.select([reader], [], [], 0.001)[0]:
        pass
    print("ready", flush=True)

main = threading.get_ident()
{before}
threading.Thread(target=ready, daemon=True).start()
try:
    run()
except BaseException as error:
    con.rollback()
    print(type(error).__name__, flush=True)
else:
    print("it ended", flush=True)
print(con.execute("select count(*) from t").fetchall(), signal.getsignal(signal.SIGINT) is {handler}, flush=True)
"""

ENDLESS = "with recursive c(i) as (select 1 union all select i + 1 from c) select {} from c"


def run_child(run: str, signum: int, before: str = "", handler: str = "signal.default_int_handler") -> list[str]:
    child = subprocess.Popen(
        [sys.executable, "-c", CHILD.format(run=run, before=before, handler=handler)],
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert child.stdout is not None
        assert child.stdout.readline() == "ready\n"
        child.send_signal(signum)
        out, _ = child.communicate(timeout=60)
    finally:
        child.kill()
        child.wait()
    assert child.returncode == 0
    return out.splitlines()


@pytest.mark.parametrize(
    "run",
    [
        pytest.param(f"con.execute({ENDLESS.format('count(*)')!r})", id="execute"),
        pytest.param(
            f"cur = con.execute({ENDLESS.format('i, i || i')!r})\n    while cur.fetchmany(9999): pass", id="fetch"
        ),
        pytest.param(f"for row in con.execute({ENDLESS.format('i')!r}): pass", id="iteration"),
        pytest.param(f"con.execute({'insert into t ' + ENDLESS.format('i')!r})", id="insert"),
        pytest.param(
            f"con.execute({ENDLESS.format('i')!r}).ndjson().write_to(open('/dev/null', 'wb'))", id="write to a file"
        ),
        pytest.param(
            f"con.execute({ENDLESS.format('i')!r}).csv().write_to(stalled)", id="write to a socket that stalls"
        ),
        pytest.param(f"con.execute({ENDLESS.format('count(*)')!r}).json().read()", id="read a stream"),
        pytest.param(f"for chunk in con.execute({ENDLESS.format('i')!r}).json(): pass", id="iterate a stream"),
        pytest.param("con.executemany('insert into t values (?)', iter(lambda: (1,), None))", id="executemany"),
    ],
)
def test_ctrl_c_raises_keyboard_interrupt_and_the_connection_survives(run: str) -> None:
    raised, after = run_child(f"{run}\n", signal.SIGINT)
    assert raised == "KeyboardInterrupt"
    # The rows of executemany so far remain until the rollback; the database undoes a single
    # statement.
    assert after == "[(0,)] True"


def test_ctrl_c_while_a_path_is_written_leaves_no_file_and_a_stream_that_failed(tmp_path: pathlib.Path) -> None:
    before = f"rows = con.execute({ENDLESS.format('i')!r}).json()"
    run = f"try: rows.write_to({str(tmp_path / 'rows.json')!r})\n    except KeyboardInterrupt: rows.read()"
    raised, _ = run_child(run, signal.SIGINT, before)
    assert raised == "InterfaceError"
    assert list(tmp_path.iterdir()) == []


def test_an_interrupted_fetch_never_looks_complete() -> None:
    before = f"cur = con.execute({ENDLESS.format('i')!r})"
    run = "try: cur.fetchall()\n    except KeyboardInterrupt: cur.fetchone()"
    assert run_child(run, signal.SIGINT, before)[0] == "InterfaceError"


def test_a_handler_that_raises_ends_a_fetch() -> None:
    before = "signal.signal(signal.SIGTERM, lambda *_: sys.exit(3))"
    run = f"cur = con.execute({ENDLESS.format('i')!r})\n    while cur.fetchmany(100000): pass"
    assert run_child(run, signal.SIGTERM, before) == ["SystemExit", "[(0,)] True"]


def test_a_handler_that_does_not_raise_lets_the_query_end() -> None:
    before = "handler = lambda *_: print('handled', flush=True)\nsignal.signal(signal.SIGINT, handler)"
    numbers = "with recursive c(i) as (select 1 union all select i + 1 from c where i < 30000000)"
    run = f"con.execute('{numbers} select count(*) from c')"
    assert run_child(run, signal.SIGINT, before, "handler") == ["handled", "it ended", "[(0,)] True"]


def test_ctrl_c_that_interrupts_no_system_call_of_the_writer_still_ends_it() -> None:
    # The signal is handled on another thread: the call that waits for buffer space is not
    # interrupted.
    child = """
import signal, socket, threading
import onecopy

stalled, reader = socket.socketpair()

def interrupt():
    reader.recv(1, socket.MSG_PEEK)
    signal.pthread_kill(threading.get_ident(), signal.SIGINT)

threading.Thread(target=interrupt, daemon=True).start()
try:
    onecopy.connect("sqlite::memory:").execute("{endless}").csv().write_to(stalled)
except KeyboardInterrupt:
    print("it ended")
"""
    code = child.replace("{endless}", ENDLESS.format("i"))
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout == "it ended\n"


def test_ctrl_c_immediately_before_the_call_ends_it() -> None:
    # The parameter is created only by functions in C, so that the interpreter checks for no signal
    # between the signal that is raised there and the call of the database.
    child = """
import ctypes
import signal
import onecopy

con = onecopy.connect("sqlite::memory:")
con.execute("create table t (a)")
con.commit()
send = ctypes.PyDLL(None)["raise"]
sql = "insert into t with recursive c(i) as (select ? union all select i + 1 from c) select i from c"
try:
    con.execute(sql, map(send, [signal.SIGINT]))
except KeyboardInterrupt:
    print("it ended")
"""
    done = subprocess.run([sys.executable, "-c", child], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout == "it ended\n"
