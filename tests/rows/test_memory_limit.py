"""Calls that need more memory than the system grants raise MemoryError, and the process
continues."""

import re
import subprocess
import sys

import pytest

CODE = r"""
import resource, sys
import onecopy, onecopy.bson, onecopy.json, onecopy.text
what, n_bytes = sys.argv[1], int(sys.argv[2]) << 20
QUERY = (
    "with recursive t(n) as (select 1 union all select n + 1 from t where n < 2000000)"
    " select n, n * 1.5, 'text ' || n from t"
)
cursor = onecopy.connect("sqlite::memory:").cursor()
pieces = ["x" * 1000] * 200_000

CALLS = {
    "fetchall": (lambda: None, lambda _: cursor.execute(QUERY).fetchall()),
    "decode": (lambda: b"\xe3\x81\x82" * (60 << 20), onecopy.text.decode),
    "decode, replace": (lambda: b"\xe3\x81\x82\xff" * (60 << 20), lambda d: onecopy.text.decode(d, errors="replace")),
    "decode, bytearray": (lambda: bytearray(b"\xe3\x81\x82" * (60 << 20)), onecopy.text.decode),
    "decode, not contiguous": (lambda: memoryview(bytes(300 << 20))[::2], onecopy.text.decode),
    "decode, euc-jp": (lambda: b"\xa4\xa2" * (60 << 20), lambda d: onecopy.text.decode(d, "euc-jp")),
    "decode, windows-1251": (lambda: b"\xc4" * (120 << 20), lambda d: onecopy.text.decode(d, "windows-1251")),
    "encode": (lambda: "\u3042" * (60 << 20), onecopy.text.encode),
    "encode, euc-jp": (lambda: "\u3042" * (60 << 20), lambda d: onecopy.text.encode(d, "euc-jp")),
    "encode, gb18030": (lambda: "\u3042" * (60 << 20), lambda d: onecopy.text.encode(d, "gb18030")),
    "encode, windows-1251": (lambda: "\u0414" * (120 << 20), lambda d: onecopy.text.encode(d, "windows-1251")),
    "json.loads": (lambda: b"[" + b"1.5," * (20 << 20) + b"1]", onecopy.json.loads),
    "json.loads, bytearray": (lambda: bytearray(b"[" + b"1.5," * (40 << 20) + b"1]"), onecopy.json.loads),
    "json.dumps": (lambda: pieces, onecopy.json.dumps),
    "bson.encode": (lambda: {"a": pieces}, onecopy.bson.encode),
}
prepare, call = CALLS[what]
data = prepare()
used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + n_bytes,) * 2)
try:
    call(data)
except MemoryError:
    print("MemoryError")
# The process goes on.
assert onecopy.json.loads(onecopy.json.dumps({"a": [1]})) == {"a": [1]}
"""

CALLS = re.findall(r'^    "(.+)": \(lambda', CODE, re.MULTILINE)


@pytest.mark.parametrize("what", CALLS)
def test_a_call_without_memory_raises_memory_error(what: str) -> None:
    for n_mib in (10, 25, 40, 55):
        done = subprocess.run([sys.executable, "-c", CODE, what, str(n_mib)], capture_output=True, text=True)
        assert (done.returncode, done.stdout) == (0, "MemoryError\n"), (n_mib, done.stderr[-500:])


STREAM = r"""
import resource
import onecopy
rows = "select 1 as a, x'00' as b union all select 2, zeroblob(150000000)"
stream = onecopy.connect("sqlite::memory:").execute(rows).bson()
used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
# Enough for SQLite's 143 MiB and what else it needs, and not for as many again.
resource.setrlimit(resource.RLIMIT_AS, (used + (220 << 20),) * 2)
try:
    for chunk in stream:
        print(len(chunk))
except onecopy.OperationalError as error:
    print(error.column)
"""


def test_a_stream_without_memory_for_a_row_does_not_end_as_if_it_were_complete() -> None:
    done = subprocess.run([sys.executable, "-c", STREAM], capture_output=True, text=True)
    assert (done.returncode, done.stdout.splitlines()[-1]) == (0, "(1, 'b')"), done.stderr[-500:]
