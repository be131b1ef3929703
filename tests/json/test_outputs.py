"""Outputs of the JSON encoder (bytes, text, a buffer, a file, a socket, lines, chunks), and inputs
of the decoder."""

from __future__ import annotations

import functools
import io
import json as standard
import socket
import threading
from pathlib import Path
from typing import Any

import pytest

import onecopy
from onecopy import json

VALUE = {"id": 1, "имя": ["東京", "😀", 'a"b'], "x": [1.5, None, True]}
WANTED = standard.dumps(VALUE, ensure_ascii=False, separators=(",", ":"))


def test_into_a_buffer_from_an_offset() -> None:
    n = len(WANTED.encode())
    place = bytearray(b"#" * (n + 20))
    assert json.dumps_into(VALUE, place) == n
    assert place == WANTED.encode() + b"#" * 20
    place = bytearray(b"#" * (n + 20))
    assert json.dumps_into(VALUE, place, 7) == n
    assert place == b"#" * 7 + WANTED.encode() + b"#" * 13
    exact = bytearray(n)
    assert json.dumps_into(VALUE, memoryview(exact)) == n and exact == WANTED.encode()


def test_a_buffer_that_is_too_small_is_an_error_and_never_overrun() -> None:
    n = len(WANTED.encode())
    whole = bytearray(b"#" * (n + 100))
    for space in (0, 1, 10, n - 1):
        with pytest.raises(BufferError, match="too small"):
            json.dumps_into(VALUE, memoryview(whole)[:space])
        assert whole[space:] == b"#" * (n + 100 - space)
    with pytest.raises((ValueError, IndexError, BufferError)):
        json.dumps_into(1, bytearray(3), 4)
    with pytest.raises((ValueError, IndexError, OverflowError)):
        json.dumps_into(1, bytearray(3), -1)
    with pytest.raises((TypeError, BufferError)):
        json.dumps_into(1, b"read-only")


def test_into_a_binary_file_and_a_text_file(tmp_path: Path) -> None:
    memory = io.BytesIO()
    assert json.dump(VALUE, memory) == len(WANTED.encode())
    assert memory.getvalue() == WANTED.encode()
    path = tmp_path / "out.json"
    with open(path, "wb") as file:
        json.dump(VALUE, file)
        json.dump([1], file, indent=2)
    assert path.read_bytes() == WANTED.encode() + b"[\n  1\n]"
    with open(path, "wb", buffering=0) as raw:
        json.dump(VALUE, raw)
    with open(path, "rb") as file:
        assert json.load(file) == VALUE
    with open(path, encoding="utf-8") as text:
        assert json.load(text) == VALUE
    assert json.load(io.BytesIO(b" [1] ")) == [1]


def test_into_a_socket_larger_than_its_buffers() -> None:
    rows = [VALUE] * 20_000
    got = bytearray()
    here, there = socket.socketpair()

    def read() -> None:
        while part := there.recv(1 << 16):
            got.extend(part)

    thread = threading.Thread(target=read)
    thread.start()
    with there:
        with here:
            written = json.dump(rows, here)
        thread.join()
    assert written == len(got) and bytes(got) == json.dumps(rows)


def test_chunks_have_bounded_size_for_any_value() -> None:
    rows = ({"id": k, "text": "я" * (k % 500)} for k in range(5000))
    chunks = list(json.iter_chunks(rows, chunk_bytes=4096))
    assert standard.loads(b"".join(chunks))[4999]["id"] == 4999
    assert all(isinstance(chunk, bytes) for chunk in chunks)
    assert len(chunks) > 100 and max(map(len, chunks)) <= 2 * 4096
    assert b"".join(json.iter_chunks([])) == b"[]"
    assert b"".join(json.iter_chunks([], lines=True)) == b""
    assert b"".join(json.iter_chunks(iter([1, [2]]), lines=True)) == b"1\n[2]\n"


def test_chunks_are_created_on_demand() -> None:
    taken = 0

    def rows() -> Any:
        nonlocal taken
        for k in range(100_000):
            taken += 1
            yield {"id": k, "text": "x" * 100}

    chunks = json.iter_chunks(rows(), chunk_bytes=10_000)
    assert taken <= 1
    first = next(chunks)
    assert first.startswith(b'[{"id":0') and taken < 500
    del chunks


def test_indent_may_be_any_width() -> None:
    assert json.dumps({"a": [1, {}], "b": []}, indent=3) == b'{\n   "a": [\n      1,\n      {}\n   ],\n   "b": []\n}'
    for by in (1, 2, 4, 8, 40):
        assert json.dumps_str(VALUE, indent=by) == standard.dumps(VALUE, indent=by, ensure_ascii=False)


@pytest.mark.parametrize("indent", [0, 2, "\t"])
def test_items_are_not_indented(indent: int | str) -> None:
    calls: list[Any] = [json.dumps_lines, json.iter_chunks, functools.partial(json.iter_chunks, lines=True)]
    for call in calls:
        with pytest.raises(ValueError, match="`indent` is only for a value that is written as a whole"):
            call([VALUE], indent=indent)


def test_a_path_is_no_destination(tmp_path: Path) -> None:
    wrong: list[Any] = [str(tmp_path / "out.json"), tmp_path / "out.json", None]
    for destination in wrong:
        with pytest.raises(TypeError, match=r'cannot write to a `\w+`\ngive a file opened by `open\(path, "wb"\)`'):
            json.dump(VALUE, destination)


def test_sorted_keys_of_each_kind_are_in_code_point_order() -> None:
    keys = ["b", "a", "", "é", "я", "東", "\uffff", "😀", "aa", "\x00", "Z"]
    value = {key: k for k, key in enumerate(keys)}
    assert list(standard.loads(json.dumps(value, sort_keys=True))) == sorted(keys)
    assert list(standard.loads(json.dumps(value))) == keys


def test_datetimes_by_option() -> None:
    import datetime as dt

    assert json.dumps(dt.datetime(2026, 1, 2), naive_utc=True) == b'"2026-01-02T00:00:00+00:00"'


def test_the_ledger_counts_each_text_once() -> None:
    texts = ["я" * 10_000, "東" * 5_000, "é" * 7_000, "a" * 20_000]
    in_memory = 20_000 + 10_000 + 7_000 + 20_000
    with onecopy.ledger() as ledger:
        json.dumps(texts)
    assert (ledger.taken, ledger.converted, ledger.conversions) == (in_memory, in_memory, 4), ledger
    assert ledger.copied <= in_memory * 0.05, ledger
    with onecopy.ledger() as ledger:
        json.loads(json.dumps(texts))
    assert ledger.stages["decode"]["copied"] + ledger.stages["decode"]["converted"] == 69_000, ledger


def test_fragments_are_copied_unchanged() -> None:
    fragment = json.Fragment(b'{"a" :  1}')
    assert json.dumps([fragment, {"k": fragment}], indent=2).count(b'{"a" :  1}') == 2
    with pytest.raises(TypeError):
        json.Fragment(1)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="surrogate"):
        json.Fragment("\ud800")
