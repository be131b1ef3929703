"""`bson.decode_iter`: one document at a time from buffers, files and chunks, in constant memory."""

from __future__ import annotations

import gzip
import io
import itertools
import threading
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import bson as pymongo
import pytest
from hypothesis import given
from hypothesis import strategies as st

from onecopy import bson
from tests.bson.decoding import document, element, string, untyped
from tests.support.properties import tried

VALUES = [{"id": i, "text": "東京" * (i % 50), "inner": {"list": list(range(i % 7))}} for i in range(300)]
DATA = b"".join(map(pymongo.encode, VALUES))


def test_documents_are_returned_one_by_one_from_each_kind_of_source(tmp_path: Path) -> None:
    source: Any
    path = tmp_path / "dump.bson"
    path.write_bytes(DATA)
    packed = tmp_path / "dump.bson.gz"
    packed.write_bytes(gzip.compress(DATA))
    for source in (DATA, bytearray(DATA), memoryview(DATA), io.BytesIO(DATA), [DATA], (DATA[:7], b"", DATA[7:])):
        assert list(bson.decode_iter(source)) == VALUES
    with path.open("rb") as file, path.open("rb", buffering=0) as raw, gzip.open(packed) as unpacked:
        for source in (file, raw, unpacked):
            assert list(bson.decode_iter(source)) == VALUES
    for empty in (b"", io.BytesIO(), [], [b"", b""]):
        assert list(bson.decode_iter(empty)) == []


@given(st.lists(st.integers(0, len(DATA)), max_size=30).map(sorted))
@tried(150)
def test_chunks_may_be_split_anywhere(cuts: list[int]) -> None:
    places = [0, *cuts, len(DATA)]
    pieces = [DATA[start:end] for start, end in itertools.pairwise(places)]
    assert list(bson.decode_iter(pieces)) == VALUES


def test_a_chunk_may_be_reused_when_the_next_one_is_requested() -> None:
    def pieces() -> Iterator[bytearray]:
        place = bytearray(11)
        for i in range(0, len(DATA), 11):
            part = DATA[i : i + 11]
            place[: len(part)] = part
            yield place if len(part) == 11 else place[: len(part)]

    assert list(bson.decode_iter(pieces())) == VALUES


def test_memory_does_not_grow_with_the_whole() -> None:
    one = pymongo.encode({"text": "x" * 1000})

    def pieces() -> Iterator[bytes]:
        for _ in range(3000):
            yield one * 10 + one[:500]
            yield one[500:]

    tracemalloc.start()
    try:
        n = sum(1 for _ in bson.decode_iter(pieces()))
        assert n == 33_000 and tracemalloc.get_traced_memory()[1] < 200_000
    finally:
        tracemalloc.stop()


def test_options_apply_to_each_document() -> None:
    made = list(bson.decode_iter(io.BytesIO(DATA), document_class=bson.RawDocument))
    assert all(type(doc) is bson.RawDocument for doc in made) and made == VALUES
    assert made[3]["inner"]["list"] == [0, 1, 2]
    odd = document(element(0x02, string(b"\xff"))) * 2
    assert list(bson.decode_iter([odd[:10], odd[10:]], errors="replace")) == [{"a": "\ufffd"}] * 2
    with pytest.raises(ValueError, match="compat"):
        untyped.decode_iter(odd, compat="others")


def test_the_document_after_an_invalid_one_may_be_requested() -> None:
    good, bad = pymongo.encode({"a": 1}), document(element(0x08, b"\5"))
    whole = good + bad + good
    for source in (whole, io.BytesIO(whole), [whole[i : i + 3] for i in range(0, len(whole), 3)]):
        documents = bson.decode_iter(source)
        assert next(documents) == {"a": 1}
        with pytest.raises(bson.BSONDecodeError) as raised:
            next(documents)
        assert raised.value.offset_bytes == len(good) + 7
        assert list(documents) == [{"a": 1}]


def test_exceptions_of_a_source_are_raised() -> None:
    def pieces() -> Iterator[bytes]:
        yield DATA[:1000]
        raise OSError("gone")

    documents = bson.decode_iter(pieces())
    with pytest.raises(OSError, match="gone"):
        list(documents)
    with pytest.raises(TypeError):
        list(untyped.decode_iter(["text"]))
    with pytest.raises(TypeError):
        list(untyped.decode_iter(io.StringIO("text")))
    for wrong in ("text", 5, None):
        with pytest.raises(TypeError):
            untyped.decode_iter(wrong)


def test_a_recursive_call_of_an_iterator_is_an_error() -> None:
    class File:
        def read(self, _: int) -> Any:
            return next(documents)

    documents = untyped.decode_iter(File())
    with pytest.raises(ValueError, match="already"):
        next(documents)


def test_threads_that_share_an_iterator_lose_no_document() -> None:
    documents = bson.decode_iter(DATA)
    found: list[int] = []

    def take() -> None:
        while True:
            try:
                found.append(next(documents)["id"])
            except StopIteration:
                return
            except ValueError:
                continue

    threads = [threading.Thread(target=take) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(found) == list(range(len(VALUES)))
