"""The interpreter exits while daemon threads are in calls of onecopy."""

import subprocess
import sys

import pytest

CODE = """
import sys, threading
import onecopy, onecopy.json
QUERY = "with recursive t(n) as (select 1 union all select n + 1 from t where n < 100000) select count(*), 'x' from t"
DOCUMENTS = [{"n": n, "text": "text"} for n in range(1000)]
started = threading.Barrier(5)

def rows():
    cursor = onecopy.connect("sqlite::memory:").cursor()
    started.wait()
    while True:
        cursor.execute(QUERY).fetchall()

def stream():
    cursor = onecopy.connect("sqlite::memory:").cursor()
    started.wait()
    while True:
        b"".join(cursor.execute(QUERY).json())

def callback():
    started.wait()
    while True:
        onecopy.json.dumps([object()] * 1000, default=lambda other: "other")

def dumps():
    started.wait()
    while True:
        onecopy.json.dumps(DOCUMENTS)

for work in (rows, stream, callback, dumps):
    threading.Thread(target=work, daemon=True).start()
started.wait()
"""


@pytest.mark.parametrize("attempt", range(5))
def test_the_process_exits_while_daemon_threads_are_inside_of_calls(attempt: int) -> None:
    done = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stderr) == (0, "")
