"""Outputs of BSON encoding: buffers, chunks and files; the ledger; the cached UTF-8 of strings."""

from __future__ import annotations

import array
import gc
import io
import mmap
import pickle
import socket
import sys
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import bson as theirs
import pytest

import onecopy
from onecopy import bson

DOCS = [{"id": i, "имя": "東京" * (i % 40), "more": {"x": [1.5, None, "y" * i]}} for i in range(200)]
DATA = [theirs.encode(doc) for doc in DOCS]


def test_a_document_is_encoded_into_a_given_buffer() -> None:
    for doc, data in zip(DOCS, DATA, strict=True):
        n = len(data)
        for spare in (0, 1, 5, 100, 511, 512, 513, 1000, 5000):
            place = bytearray(b"\xaa" * (n + 7 + spare))
            assert bson.encode_into(doc, place, 7) == n
            assert place[:7] == b"\xaa" * 7
            assert place[7 : 7 + n] == data
        for short in (1, 4, n // 2, n):
            place = bytearray(n - short)
            with pytest.raises(BufferError, match="too small"):
                bson.encode_into(doc, place)
    long = {"a": [DOCS] * 3, "t": "я" * 50_000, "b": bytes(70_000)}
    data = theirs.encode(long)
    for spare in (0, 1, 300, 600, 4096):
        place = bytearray(len(data) + spare)
        assert bson.encode_into(long, place) == len(data)
        assert place[: len(data)] == data
        with pytest.raises(BufferError):
            bson.encode_into(long, bytearray(len(data) - 1 - spare))


def test_every_writable_buffer_is_accepted_and_others_are_refused() -> None:
    data = bson.encode({"a": 1})
    words = array.array("I", [0] * 10)
    assert bson.encode_into({"a": 1}, words, 4) == len(data)
    assert words.tobytes()[4 : 4 + len(data)] == data
    with mmap.mmap(-1, 4096) as mapped:
        bson.encode_into({"a": 1}, mapped, 100)
        assert mapped[100 : 100 + len(data)] == data
    for wrong in (b"bytes", memoryview(b"x" * 50), memoryview(bytearray(100))[::2]):
        with pytest.raises(BufferError):
            bson.encode_into({"a": 1}, wrong)
    with pytest.raises(TypeError):
        bson.encode_into({"a": 1}, "text")  # type: ignore[arg-type]
    for offset in (-1, 101):
        with pytest.raises(IndexError):
            bson.encode_into({"a": 1}, bytearray(100), offset)


@pytest.mark.parametrize("chunk_bytes", [1, 500, 65536])
def test_chunks_hold_whole_documents_and_are_bounded(chunk_bytes: int) -> None:
    longest = max(map(len, DATA))
    chunks = list(bson.encode_many(iter(DOCS), chunk_bytes=chunk_bytes))
    assert b"".join(chunks) == b"".join(DATA)
    for chunk in chunks:
        assert theirs.decode_all(chunk)
        assert len(chunk) <= chunk_bytes + longest
    assert all(len(chunk) >= chunk_bytes for chunk in chunks[:-1])
    assert list(bson.encode_many([])) == []


def test_a_chunk_is_created_on_demand_and_none_after_an_error() -> None:
    requested = []

    def rows() -> Iterator[dict[str, Any]]:
        for i in range(10):
            requested.append(i)
            yield {"a": i if i < 5 else 2**70}

    chunks = bson.encode_many(rows(), chunk_bytes=1)
    assert requested == []
    assert theirs.decode(next(chunks)) == {"a": 0}
    assert requested == [0]
    with pytest.raises(bson.BSONEncodeError):
        list(chunks)
    assert list(chunks) == []
    for wrong in (0, -1):
        with pytest.raises((ValueError, OverflowError)):
            bson.encode_many([], chunk_bytes=wrong)


def test_documents_are_written_to_files_and_sockets(tmp_path: Path) -> None:
    size = sum(map(len, DATA))
    with open(tmp_path / "rows.bson", "wb") as file:
        assert bson.dump_many(iter(DOCS), file) == size
    assert (tmp_path / "rows.bson").read_bytes() == b"".join(DATA)
    memory = io.BytesIO()
    assert bson.dump_many(DOCS, memory) == size
    assert memory.getvalue() == b"".join(DATA)
    one, other = socket.socketpair()
    with one, other:
        assert bson.dump_many(DOCS[:20], one) == len(b"".join(DATA[:20]))
        one.close()
        got = b""
        while part := other.recv(1 << 16):
            got += part
    assert got == b"".join(DATA[:20])


def test_whole_documents_before_an_error_are_in_the_file() -> None:
    file = io.BytesIO()
    with pytest.raises(bson.BSONEncodeError):
        bson.dump_many([*DOCS[:3], {"a": 2**70}], file)
    assert file.getvalue() == b"".join(DATA[:3])

    class Full(io.BytesIO):
        def write(self, data: Any) -> int:
            raise OSError("full")

    with pytest.raises(OSError, match="full"):
        bson.dump_many(DOCS, Full())


def test_the_ledger_counts_each_text_once() -> None:
    with onecopy.ledger() as ledger:
        bson.encode_into({"k": ["я" * 100, "a" * 50]}, bytearray(4096))
    # Cyrillic is converted; the key and other ASCII are copied.
    assert (ledger.taken, ledger.converted, ledger.copied, ledger.conversions) == (251, 200, 51, 1)
    with onecopy.ledger() as ledger:
        bson.encode({"rows": [{"ключ": 1}] * 10})
    assert (ledger.conversions, ledger.converted) == (10, 80)


def test_encoding_leaves_no_utf8_cache_on_strings() -> None:
    texts = pickle.loads(pickle.dumps([c * n for c in "éя東😀" for n in (3, 50, 5000)]))
    before = [sys.getsizeof(text) for text in texts]
    bson.encode({"v": texts, **dict.fromkeys(texts, 1)})
    assert [sys.getsizeof(text) for text in texts] == before


def test_thousands_of_calls_leak_nothing() -> None:
    place = bytearray(1 << 16)

    def run() -> None:
        for doc in DOCS[:20]:
            bson.encode(doc)
            bson.encode_into(doc, place)
            list(bson.encode_many([doc], chunk_bytes=100))
            for bad in ({**doc, "x": object()}, {**doc, "x": "\ud800"}, {**doc, "x": {1: 2}}):
                with pytest.raises(ValueError, match="at `"):
                    bson.encode(bad)

    run()
    tracemalloc.start()
    try:
        run()
        gc.collect()
        before = tracemalloc.get_traced_memory()[0]
        for _ in range(20):
            run()
        gc.collect()
        assert tracemalloc.get_traced_memory()[0] - before < 20_000
    finally:
        tracemalloc.stop()
