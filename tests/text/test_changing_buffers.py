"""Buffers that change while they are read: each result is a canonical `str`, sound objects or an error, and no byte is
written outside of one.

The writers hold no GIL: a thread in `os.preadv`, and another process that writes to shared memory. The readers are child
processes, since what is tested here has ended them.
"""

from __future__ import annotations

import subprocess
import sys

import pytest

#: Texts of one length in bytes that decode to other kinds, numbers of characters and errors.
_SOURCES = r"""
import io, mmap, os, sys, threading
from onecopy import bson, json, text

N = 24_576
units = [c.encode(sys.argv[2]) for c in ("a", "\xe9", "\u0436", "\u6771", "\U0001f600")] if sys.argv[2] != "bytes" else []

def of_length(unit):
    return (unit * (N // len(unit) + 1))[: N // len(unit) * len(unit)].ljust(N, b"\0")

def document(value):
    return bson.encode({"a": value, "b": [value[: len(value) // 2]] * 3, "c": {"d": "e" * (len(value) // 4)}})
"""

#: A reader: makes `variants`, of one length, and `read(buffer)`, which returns the `str`s that it made.
_READERS = {
    "text.decode": r"""
import codecs
variants = [of_length(u) for u in units] + [of_length(b"\xff\xfe\xfd"), os.urandom(N)]
errors = ("strict", "replace", "surrogatepass", "ignore")
turn = 0
def read(buffer):
    global turn
    turn += 1
    return [text.decode(buffer, sys.argv[2], errors[turn % 4])]
""",
    "text.Decoder": r"""
variants = [of_length(u) for u in units] + [os.urandom(N)]
def read(buffer):
    decoder = text.Decoder(sys.argv[2], "replace")
    return [decoder.decode(buffer), decoder.decode(buffer, True)]
""",
    "text.transcode": r"""
variants = [of_length(u) for u in units] + [os.urandom(N)]
def read(buffer):
    out = io.BytesIO()
    text.transcode(buffer, out, sys.argv[2], "utf-8", errors="replace")
    return [out.getvalue().decode(), str(text.is_valid(buffer, sys.argv[2]))]
""",
    "json.loads": r"""
wide = ["\xe9", "\u0436", "\u6771", "\U0001f600", "a", "\\u00e9", "\\n"]
variants = []
for w in wide:
    body = (w * 2000).encode()[:6000].decode(errors="ignore")
    variants.append(('["' + body.ljust(8000)[:8000] + '", {"key' + w + '": [1.5, 22222]}]').encode().ljust(N)[:N])
def strs(value):
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for k, v in value.items():
            yield k
            yield from strs(v)
    elif isinstance(value, list):
        for v in value:
            yield from strs(v)
def read(buffer):
    return [*strs(json.loads(buffer))]
""",
    "bson.decode": r"""
def fit(w):
    value = w * 2000
    while True:
        made = document(value)
        if len(made) <= N:
            break
        value = value[:-50]
    # A binary value brings each to one length.
    return bson.encode({**bson.decode(made), "z": b"\0" * (N - len(made) - 8)})
variants = [fit(w) for w in ("a", "\xe9", "\u0436", "\u6771", "\U0001f600")]
N = max(map(len, variants))
variants = [v.ljust(N, b"\0") for v in variants]
def strs(value):
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for k, v in value.items():
            yield k
            yield from strs(v)
    elif isinstance(value, list):
        for v in value:
            yield from strs(v)
def read(buffer):
    found = [*strs(bson.decode(buffer))]
    found += [bson.to_json(buffer)]
    raw = bson.RawDocument(buffer)
    found += [*strs(raw["a"])]
    return found
""",
}

_CHECK = r"""
import time
assert all(len(v) == N for v in variants), [len(v) for v in variants]

def check(string):
    again = "".join(chr(ord(c)) for c in string[:: max(1, len(string) // 64)])
    rebuilt = "".join(map(chr, map(ord, string)))
    assert rebuilt == string and hash(rebuilt) == hash(string)
    # As long in memory: the same kind, and the same flag of ASCII.
    assert sys.getsizeof(rebuilt) == sys.getsizeof(string), (sys.getsizeof(rebuilt), sys.getsizeof(string))
    assert rebuilt.isascii() == string.isascii()

def race(buffer, rounds):
    good = failed = 0
    for n in range(rounds):
        try:
            found = read(buffer)
        except (ValueError, BufferError):
            failed += 1
            continue
        good += 1
        if n % 8 == 0:
            for string in found:
                check(string)
    return good, failed
"""

_THREAD = r"""
buffer = bytearray(variants[0])
file = os.memfd_create("variants")
for variant in variants:
    os.write(file, variant)
done = False
def write():
    n = 0
    while not done:
        n += 1
        start = n * 997 % N
        # A part of another text, from where it would be.
        os.preadv(file, [memoryview(buffer)[start:]], n % len(variants) * N + start)
writer = threading.Thread(target=write)
writer.start()
sys.setswitchinterval(1e-6)
try:
    print(*race(buffer, 1500))
finally:
    done = True
    writer.join()
"""

_PROCESS = r"""
file = os.memfd_create("shared")
os.ftruncate(file, N)
shared = mmap.mmap(file, N)
shared[:] = variants[0]
child = os.fork()
if not child:
    n = 0
    while os.getppid() != 1:
        n += 1
        start = n * 997 % N
        shared[start:] = variants[n % len(variants)][start:]
        if n > 3_000_000:
            break
    os._exit(0)
try:
    print(*race(shared, 1500))
finally:
    os.kill(child, 9)
    os.waitpid(child, 0)
"""

_ENCODINGS = ("utf-8", "utf-16-le", "utf-16-be", "utf-32-le", "latin-1", "ascii", "shift_jis", "utf-8-sig")
_CASES = [
    *((reader, encoding) for reader in ("text.decode", "text.Decoder", "text.transcode") for encoding in _ENCODINGS),
    ("json.loads", "bytes"),
    ("bson.decode", "bytes"),
]


@pytest.mark.parametrize("writer", [_THREAD, _PROCESS], ids=["thread", "process"])
@pytest.mark.parametrize(("reader", "encoding"), _CASES, ids=lambda value: value)
def test_a_buffer_that_changes_gives_canonical_text_or_an_error(reader: str, encoding: str, writer: str) -> None:
    sources = _SOURCES
    if encoding in ("latin-1", "ascii", "shift_jis"):
        sources = sources.replace(".encode(sys.argv[2])", '.encode(sys.argv[2], "replace")')
    program = sources + _READERS[reader] + _CHECK + writer
    done = subprocess.run(
        [sys.executable, "-X", "faulthandler", "-c", program, reader, encoding],
        capture_output=True,
        text=True,
        env={"PYTHONMALLOC": "debug", "PATH": ""},
        check=False,
    )
    assert done.returncode == 0, f"{done.returncode}: {done.stderr[-3000:]}"
    good, failed = map(int, done.stdout.split())
    assert good + failed == 1500
