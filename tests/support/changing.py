"""A program that reads a buffer while a writer changes it: `python changing.py READER ENCODING
thread|process ROUNDS`.

The writer does not need the GIL: it is a thread in `os.preadv`, or another process that writes to
shared memory. The program prints how many reads returned a result. It fails if a resulting str is
not in CPython's canonical form, or if a byte next to a destination has changed.
"""

from __future__ import annotations

import array
import contextlib
import io
import mmap
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

import onecopy
from onecopy import bson, json, text

#: Bytes of the buffer.
N = 24_576
#: Bytes on both sides of a destination, which are never written to.
GUARD = 64
_LETTERS = ("a", "\xe9", "\u0436", "\u6771", "\U0001f600")
#: A multiple of the lengths of all characters: texts change at these offsets, so some mixtures are
#: well-formed.
_ALIGNED = 12
#: Lengths of texts: short ones are read by other code than long ones.
_SIZES = (N, 8192, 1000, N, 200, 17)
#: Encodings for the readers of text.
ENCODINGS = ("utf-8", "utf-16-le", "utf-16-be", "utf-32-le", "latin-1", "ascii", "shift_jis", "utf-8-sig")
_ERRORS = ("strict", "replace", "surrogatepass", "ignore", "backslashreplace", "surrogateescape")

Buffer = Any
#: Reads the buffer, and yields the resulting texts.
Read = Callable[[Buffer, int], Iterator[str]]


def _of_length(unit: bytes) -> bytes:
    return (unit * (N // len(unit) + 1))[: N // len(unit) * len(unit)].ljust(N, b"\0")


def _texts(encoding: str) -> list[bytes]:
    units = [letter.encode(encoding, "replace") for letter in _LETTERS]
    return [*map(_of_length, units), _of_length(b"\xff\xfe\xfd"), os.urandom(N)]


def _json(*parts: str) -> list[bytes]:
    """JSON documents with the same parts: between the parts, each document repeats another
    character."""
    fixed = [part.rjust(-(-len(part) // _ALIGNED) * _ALIGNED) for part in parts]
    units = [letter * (_ALIGNED // len(letter.encode())) for letter in (*_LETTERS, "\\u00e9", "\\n")]
    return [(unit * 100).join(fixed).encode().ljust(N) for unit in units]


def _bson() -> list[bytes]:
    def document(value: str, filler: int) -> bytes:
        parts = {"a": value, "b": [value[: len(value) // 2]] * 3, "c": {"d": "e" * 99}, "z": b"\0" * filler}
        return bson.encode(parts)

    values = [letter * (4800 // len(letter.encode())) for letter in _LETTERS]
    return [document(value, N - len(document(value, 0))) for value in values]


def _strings(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from (key, *_strings(item))
    elif isinstance(value, list):
        for item in value:
            yield from _strings(item)


class _File(io.RawIOBase):
    """A readable file whose first `read` returns the whole buffer, without a copy."""

    def __init__(self, buffer: Buffer) -> None:
        self.pieces = [buffer]

    def read(self, n: int = -1) -> Any:
        return self.pieces.pop() if self.pieces else b""

    def readable(self) -> bool:
        return True


def _decode(encoding: str) -> Read:
    def read(buffer: Buffer, turn: int) -> Iterator[str]:
        part = buffer if turn % 2 else memoryview(buffer)[: _SIZES[turn % len(_SIZES)]]
        yield text.decode(part, encoding, _ERRORS[turn // 2 % len(_ERRORS)])

    return read


def _decoder(encoding: str) -> Read:
    def read(buffer: Buffer, turn: int) -> Iterator[str]:
        decoder = text.Decoder(encoding, _ERRORS[1 + turn % 5])
        yield decoder.decode(buffer)
        yield decoder.decode(memoryview(buffer)[: _SIZES[turn % len(_SIZES)]], True)

    return read


def _look(encoding: str) -> Read:
    def read(buffer: Buffer, turn: int) -> Iterator[str]:
        yield str(text.is_valid(buffer, encoding))
        yield text.detect(buffer).reason
        found = text.find_invalid(buffer, encoding)
        yield found.reason if found else "none"

    return read


def _transcode(encoding: str) -> Read:
    def read(buffer: Buffer, turn: int) -> Iterator[str]:
        out = io.BytesIO()
        text.transcode(buffer, out, encoding, "utf-8", errors="replace")
        yield out.getvalue().decode()
        place = bytearray(b"#" * (6 * N + 2 * GUARD))
        text.transcode(buffer, memoryview(place)[GUARD:-GUARD], encoding, "utf-8", errors="replace")
        assert place[:GUARD] == place[-GUARD:] == b"#" * GUARD

    return read


def _column(encoding: str) -> Read:
    stride = 96
    whole = array.array("q", [turn % 4 * 24 - (turn % 9 == 8) for turn in range(N // stride)])

    def read(buffer: Buffer, turn: int) -> Iterator[str]:
        # The actual lengths, and those that appear in the buffer.
        lengths: Any = whole if turn % 3 else memoryview(buffer)[:800].cast("q")
        yield from filter(None, text.decode_column(buffer, lengths, stride, encoding, _ERRORS[turn // 3 % 5]))

    return read


def _column_texts(encoding: str) -> list[bytes]:
    counts = [(i * 8).to_bytes(8, "little") * 100 for i in range(1, len(_LETTERS) + 1)]
    return [count + body[len(count) :] for count, body in zip(counts, _texts(encoding), strict=False)]


def _loads(buffer: Buffer, turn: int) -> Iterator[str]:
    try:
        yield from _strings(json.loads(buffer))
    except json.JSONDecodeError as error:
        yield error.doc
        raise
    yield from _strings(json.load(_File(buffer)))


def _lines(buffer: Buffer, turn: int) -> Iterator[str]:
    for value in json.loads_lines(buffer):
        yield from _strings(value)


def _fragment(buffer: Buffer, turn: int) -> Iterator[str]:
    fragment = json.Fragment(buffer)
    yield json.dumps([fragment, 1]).decode()
    yield json.dumps_str([fragment, 1])


def _bson_decode(buffer: Buffer, turn: int) -> Iterator[str]:
    ways: tuple[Callable[[], Any], ...] = (
        lambda: bson.decode(buffer, errors="replace"),
        lambda: bson.decode(buffer),
        lambda: bson.decode_all(buffer),
        lambda: list(bson.decode_iter(buffer)),
        lambda: list(bson.decode_iter([buffer])),
        lambda: list(bson.decode_iter(_File(buffer))),
        lambda: bson.to_json(buffer).decode(),
        lambda: bson.to_json_lines(buffer).decode(),
        lambda: bson.validate(buffer),
    )
    yield from _strings(ways[turn % len(ways)]())


def _raw_document(buffer: Buffer, turn: int) -> Iterator[str]:
    for raw in (bson.RawDocument(buffer), *bson.decode_all(buffer, document_class=bson.RawDocument)):
        yield from raw
        yield from _strings(raw["a"])
        # Equal each time, since the copied content no longer changes.
        assert raw["a"] == raw["a"]
        yield raw["c"]["d"]


def _from_json(buffer: Buffer, turn: int) -> Iterator[str]:
    made = bson.from_json(buffer)
    yield from _strings(bson.decode(made))
    for document in bson.decode_all(bson.from_json_lines(buffer)):
        yield from _strings(document)


def _write_bson(buffer: Buffer, turn: int) -> Iterator[str]:
    for value in (buffer, memoryview(buffer)):
        if not isinstance(value, mmap.mmap):
            made = bson.decode(bson.encode({"a": value, "b": "c"}))
            assert len(made["a"]) == N
            yield made["b"]


def _parameters() -> Read:
    con = onecopy.connect("sqlite::memory:")
    cur = con.cursor()
    cur.execute("create table t (a blob)")

    def read(buffer: Buffer, turn: int) -> Iterator[str]:
        views = [memoryview(buffer)[:n] for n in (N, 100, 1)]
        cur.execute("select ?, ?, ?", views)
        assert [*map(len, cur.fetchone() or ())] == [N, 100, 1]
        cur.executemany("insert into t values (?)", [(view,) for view in views])
        cur.execute("select a from t")
        assert [len(row[0]) for row in cur.fetchall()] == [N, 100, 1]
        cur.execute("delete from t")
        yield ""

    return read


def _arrow() -> Read:
    import pyarrow as pa

    con = onecopy.connect("sqlite::memory:")
    cur = con.cursor()
    cur.execute("create table t (a)")

    def read(buffer: Buffer, turn: int) -> Iterator[str]:
        # Ends of texts and their bytes in one buffer, both of which change.
        memory = pa.py_buffer(memoryview(buffer))
        body, ends = memory.slice(0, N - 404), memory.slice(N - 404)
        if turn % 2:
            ends = pa.py_buffer(array.array("i", range(0, 101 * 96, 96)))
        made = pa.Array.from_buffers(pa.string(), 100, [None, ends, body])
        try:
            cur.insert_arrow("t", pa.table({"a": made}))
            cur.execute("select a from t")
            yield from (row[0] for row in cur.fetchall())
        finally:
            cur.execute("delete from t")

    return read


def _arrow_texts() -> list[bytes]:
    ends = [b"".join((i * n).to_bytes(4, "little") for i in range(101)) for n in (0, 12, 96, 204, 240)]
    bodies = (letter.encode() for letter in _LETTERS)
    return [_of_length(body)[: N - 404] + end for end, body in zip(ends, bodies, strict=True)]


def _outputs(buffer: Buffer, turn: int) -> Iterator[str]:
    """Writes encoded text and documents to a buffer that another thread changes meanwhile.

    The resulting content is undefined; the bytes before and after the destination must be
    unchanged.
    """
    place = memoryview(buffer)[GUARD:-GUARD]
    string = _LETTERS[turn % len(_LETTERS)] * (turn * 37 % 5000)
    encoding = ("utf-8", "utf-16-le", "utf-32-be", "shift_jis")[turn % 4]
    writes: tuple[Callable[[], object], ...] = (
        lambda: text.encode_into(string, place, 0, encoding, "replace"),
        lambda: json.dumps_into([string, {string[:9]: 1}], place),
        lambda: bson.encode_into({"a": string, "b": [string]}, place),
        lambda: text.transcode(string.encode(), place, "utf-8", encoding, errors="replace"),
    )
    for write in writes:
        with contextlib.suppress(ValueError, BufferError):
            write()
    assert bytes(buffer[:GUARD]) == bytes(buffer[-GUARD:]) == b"#" * GUARD
    yield ""


_BY_ENCODING: dict[str, Callable[[str], Read]] = {
    "text.decode": _decode,
    "text.Decoder": _decoder,
    "text.is_valid": _look,
    "text.transcode": _transcode,
    "text.decode_column": _column,
}
_OTHERS: dict[str, tuple[Callable[[], Read], Callable[[], list[bytes]]]] = {
    "json.loads": (lambda: _loads, lambda: _json('["', '", {"key": [1.5, "', '"], "', '": 22222}]')),
    "json.loads_lines": (lambda: _lines, lambda: _json('["', '"]\n{"a": "', '"}\n\n1\n["', '"]\n')),
    "json.Fragment": (lambda: _fragment, lambda: _json('["', '", {"', '": null}]')),
    "bson.decode": (lambda: _bson_decode, _bson),
    "bson.RawDocument": (lambda: _raw_document, _bson),
    "bson.from_json": (lambda: _from_json, lambda: _json('{"a": "', '", "b": ["', '"]}')),
    "bson.encode": (lambda: _write_bson, lambda: _texts("utf-8")),
    "parameters": (_parameters, lambda: _texts("utf-8")),
    "insert_arrow": (_arrow, _arrow_texts),
    "outputs": (lambda: _outputs, lambda: [b"#" * GUARD + v[GUARD:-GUARD] + b"#" * GUARD for v in _texts("utf-8")]),
}


def _check(string: str) -> None:
    rebuilt = "".join(map(chr, map(ord, string)))
    assert rebuilt == string and hash(rebuilt) == hash(string)
    # Of equal length in memory: the same kind, and the same ASCII flag.
    assert sys.getsizeof(rebuilt) == sys.getsizeof(string), (sys.getsizeof(rebuilt), sys.getsizeof(string))
    assert rebuilt.isascii() == string.isascii()


def attempt(read: Read, buffer: Buffer, turn: int) -> bool:
    """Reads the buffer once and checks each resulting text; returns false if the reader raised."""
    try:
        found = list(read(buffer, turn))
    except (ValueError, BufferError, onecopy.Error):
        return False
    for string in found[turn % 5 :: 5] if len(found) > 5 else found:
        _check(string)
    return True


def first_change(variants: list[bytes]) -> int:
    """The first offset at which the first two variants differ."""
    pairs = zip(variants[0], variants[1], strict=True)
    return next(at for at, (one, other) in enumerate(pairs) if one != other)


@contextlib.contextmanager
def writing(buffer: bytearray, variants: list[bytes], first: int) -> Iterator[None]:
    """While the context is active, a thread copies parts of the variants to the buffer.

    Each part is copied to the offset that it has in its variant. No part begins before ``first``.
    """
    file = os.memfd_create("variants")
    for variant in variants:
        os.write(file, variant)
    done = threading.Event()

    def write() -> None:
        n = 0
        while not done.is_set():
            n += 1
            start = first + n * 83 * _ALIGNED % (N - first)
            os.preadv(file, [memoryview(buffer)[start:]], n % len(variants) * N + start)

    writer = threading.Thread(target=write)
    writer.start()
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        yield
    finally:
        sys.setswitchinterval(interval)
        done.set()
        writer.join()
        os.close(file)


def _by_thread(read: Read, variants: list[bytes], rounds: int) -> int:
    buffer = bytearray(variants[0])
    with writing(buffer, variants, first_change(variants)):
        return sum(attempt(read, buffer, turn) for turn in range(rounds))


def _by_process(read: Read, variants: list[bytes], rounds: int) -> int:
    file = os.memfd_create("shared")
    os.ftruncate(file, N)
    shared = mmap.mmap(file, N)
    shared[:] = variants[0]
    first = first_change(variants)
    parent = os.getpid()
    child = os.fork()
    if not child:
        n = 0
        while os.getppid() == parent:
            n += 1
            start = first + n * 83 * _ALIGNED % (N - first)
            shared[start:] = variants[n % len(variants)][start:]
        os._exit(0)
    try:
        return sum(attempt(read, shared, turn) for turn in range(rounds))
    finally:
        os.kill(child, 9)
        os.waitpid(child, 0)


def run(reader: str, encoding: str, writer: str, rounds: int) -> None:
    """Runs this program in a child process, since a defect may crash it; ``rounds`` is the number
    of reads."""
    done = subprocess.run(
        [sys.executable, "-X", "faulthandler", __file__, reader, encoding, writer, str(rounds)],
        capture_output=True,
        text=True,
        env={"PYTHONMALLOC": "debug", "PATH": ""},
        check=False,
    )
    assert done.returncode == 0, f"{done.returncode}: {done.stderr[-3000:]}"
    assert 0 <= int(done.stdout) <= rounds


def readers() -> list[tuple[str, str]]:
    """The pairs of reader and encoding; the encoding is empty for a reader that has none."""
    pairs = [(reader, encoding) for reader in _BY_ENCODING for encoding in ENCODINGS]
    return pairs + [(reader, "") for reader in _OTHERS]


def prepare(reader: str, encoding: str) -> tuple[Read, list[bytes]]:
    """The reader with that name, and the variants of the buffer for it, each ``N`` bytes long."""
    if reader in _BY_ENCODING:
        read = _BY_ENCODING[reader](encoding)
        texts = (_column_texts if reader == "text.decode_column" else _texts)(encoding)
    else:
        made, of_reader = _OTHERS[reader]
        read, texts = made(), of_reader()
    assert {*map(len, texts)} == {N}, [*map(len, texts)]
    return read, texts


def _main() -> None:
    reader, encoding, writer, rounds = sys.argv[1:]
    race = _by_thread if writer == "thread" else _by_process
    print(race(*prepare(reader, encoding), int(rounds)))


if __name__ == "__main__":
    _main()
