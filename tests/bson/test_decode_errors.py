"""Invalid BSON: each reader reports the reason and the offset of each fault.

Also: limits, leaks, and buffers that change during a read.
"""

from __future__ import annotations

import contextlib
import copy
import io
import pickle
import struct
import sys
import threading
import tracemalloc
from collections import OrderedDict
from typing import Any

import bson as pymongo
import pytest

from onecopy import bson
from tests.bson.decoding import binary, document, element, string, untyped


def _length(n: int) -> bytes:
    return struct.pack("<i", n)


def _scope(whole: int, code: int, scope: int, end: bytes = b"\0") -> bytes:
    inner = _length(whole) + _length(code) + b"f()\0" + _length(scope) + element(0x0A, b"", b"b") + end
    return document(element(0x0F, inner))


FIRST = element(0x10, b"\1\0\0\0", b"before")  # 12 bytes
AT = 4 + len(FIRST)

#: The fault, its offset, and a word of the reason.
BAD: list[tuple[bytes, int, str]] = [
    (b"", 0, "ends inside"),
    (b"\x05\0\0", 0, "ends inside"),
    (b"\x06\0\0\0\0", 0, "ends inside"),
    (document(FIRST)[:-1], 0, "ends inside"),
    (b"\x04\0\0\0\0", 0, "below 5"),
    (_length(-1) + b"\0", 0, "below 5"),
    (_length(-(2**31)) + b"\0", 0, "below 5"),
    (b"\x05\0\0\0\1", 4, "no zero byte"),
    (document() + b"\0", 5, "trailing data"),
    (document() + document(), 5, "trailing data"),
    (document(FIRST, b"\0"), AT, "before its declared length"),
    (document(FIRST, b"\x0a"), AT + 1, "no zero byte at its end"),
    (document(FIRST, b"\x0akey"), AT + 1, "no zero byte at its end"),
    (document(FIRST, element(0x14)), AT, "0x14"),
    (document(FIRST, element(0x80)), AT, "0x80"),
    (document(FIRST, element(0xFE)), AT, "0xfe"),
    (document(FIRST, element(0x01, bytes(7))), AT + 3, "past the end"),
    (document(FIRST, element(0x07, bytes(11))), AT + 3, "past the end"),
    (document(FIRST, element(0x09, bytes(7))), AT + 3, "past the end"),
    (document(FIRST, element(0x10, bytes(3))), AT + 3, "past the end"),
    (document(FIRST, element(0x11, bytes(3))), AT + 3, "past the end"),
    (document(FIRST, element(0x12, bytes(7))), AT + 3, "past the end"),
    (document(FIRST, element(0x13, bytes(15))), AT + 3, "past the end"),
    (document(FIRST, element(0x08)), AT + 3, "past the end"),
    (document(FIRST, element(0x08, b"\2")), AT + 3, "0x02"),
    (document(FIRST, element(0x08, b"\xff")), AT + 3, "0xff"),
    *(
        case
        for tag in (0x02, 0x0D, 0x0E)
        for case in (
            (document(FIRST, element(tag, b"\1\0\0")), AT + 3, "past the end"),
            (document(FIRST, element(tag, _length(0) + b"\0")), AT + 3, "below 1"),
            (document(FIRST, element(tag, _length(-1) + b"\0")), AT + 3, "below 1"),
            (document(FIRST, element(tag, _length(3) + b"a\0")), AT + 3, "past the end"),
            (document(FIRST, element(tag, _length(2**31 - 1) + b"a\0")), AT + 3, "past the end"),
            (document(FIRST, element(tag, _length(2) + b"ab\0")), AT + 8, "no zero byte at the end of the text"),
            (document(FIRST, element(tag, string(b"ab\xff"))), AT + 9, "invalid start byte"),
        )
    ),
    (document(FIRST, element(0x02, string(b"x" * 2000 + b"\xe6\x9d"))), AT + 2007, "unexpected end"),
    (document(FIRST, element(0x02, string(b"\xed\xa0\x80"))), AT + 7, "invalid continuation"),
    (document(FIRST, element(0x0A, b"", b"ab\xff")), AT + 3, "invalid start byte"),
    *(
        case
        for tag in (0x03, 0x04)
        for case in (
            (document(FIRST, element(tag, b"\5\0\0")), AT + 3, "past the end"),
            (document(FIRST, element(tag, _length(4) + b"\0")), AT + 3, "below 5"),
            (document(FIRST, element(tag, _length(-5) + b"\0")), AT + 3, "below 5"),
            (document(FIRST, element(tag, _length(6) + b"\0")), AT + 3, "past the end"),
            (document(FIRST, element(tag, _length(5) + b"\1")), AT + 7, "no zero byte"),
        )
    ),
    (document(FIRST, element(0x03, document(b"\0"))), AT + 7, "before its declared length"),
    (document(FIRST, element(0x03, document(element(0x02, _length(9) + b"a\0")))), AT + 10, "past the end"),
    (document(FIRST, element(0x05, b"\1\0\0\0")), AT + 7, "past the end"),
    (document(FIRST, element(0x05, _length(2) + b"\0a")), AT + 3, "past the end"),
    (document(FIRST, element(0x05, _length(-1) + b"\0a")), AT + 3, "below 0"),
    (document(FIRST, element(0x05, binary(b"\1\0\0", 2))), AT + 8, "two lengths"),
    (document(FIRST, element(0x05, binary(_length(2) + b"a", 2))), AT + 8, "two lengths"),
    (document(FIRST, element(0x05, binary(_length(0) + b"a", 2))), AT + 8, "two lengths"),
    (document(FIRST, element(0x05, binary(_length(-1), 2))), AT + 8, "two lengths"),
    (document(FIRST, element(0x05, binary(b"x" * 15, 4))), AT + 8, "16 bytes"),
    (document(FIRST, element(0x05, binary(b"x" * 17, 3))), AT + 8, "16 bytes"),
    (document(FIRST, element(0x0B, b"pattern")), AT + 3, "no zero byte at its end"),
    (document(FIRST, element(0x0B, b"pattern\0options")), AT + 11, "no zero byte at its end"),
    (document(FIRST, element(0x0B, b"\xff\0\0")), AT + 3, "invalid start byte"),
    (document(FIRST, element(0x0B, b"ab\0\xff\0")), AT + 6, "invalid start byte"),
    (document(FIRST, element(0x0C, string(b"c") + bytes(11))), AT + 9, "past the end"),
    (document(FIRST, element(0x0C, _length(0) + bytes(12))), AT + 3, "below 1"),
    (_scope(21, 4, 8), 7, "past the end"),
    (_scope(-1, 4, 8), 7, "do not agree"),
    (_scope(19, 4, 8), 19, "do not agree"),
    (_scope(20, 4, 9), 19, "do not agree"),
    (_scope(20, 4, 4), 19, "do not agree"),
    (_scope(20, 0, 8), 11, "below 1"),
    (_scope(20, 99, 8), 11, "past the end"),
    (_scope(20, 3, 8), 17, "no zero byte at the end of the text"),
    (_scope(20, 4, 8, b"\1"), 26, "no zero byte"),
]


@pytest.mark.parametrize(("data", "offset", "word"), BAD)
def test_each_fault_is_reported_with_its_byte(data: bytes, offset: int, word: str) -> None:
    for given in (data, bytearray(data), memoryview(data)):
        with pytest.raises(bson.BSONDecodeError, match=word) as raised:
            bson.decode(given)
        assert raised.value.offset_bytes == offset and word in raised.value.reason
        assert isinstance(raised.value, bson.BSONError) and isinstance(raised.value, ValueError)


@pytest.mark.parametrize(("data", "offset", "word"), [case for case in BAD if case[0] and case[2] != "trailing data"])
def test_each_fault_is_reported_with_its_byte_in_the_whole_input(data: bytes, offset: int, word: str) -> None:
    good = pymongo.encode({"good": [1, {"a": "b"}]})
    whole = good * 3 + data
    with pytest.raises(bson.BSONDecodeError, match=word) as raised:
        bson.decode_all(whole)
    assert raised.value.offset_bytes == 3 * len(good) + offset
    for source in (whole, io.BytesIO(whole), [whole], [whole[i : i + 1] for i in range(len(whole))]):
        documents = bson.decode_iter(source)
        assert [next(documents) for _ in range(3)] == [{"good": [1, {"a": "b"}]}] * 3
        with pytest.raises(bson.BSONDecodeError, match=word) as raised:
            next(documents)
        assert raised.value.offset_bytes == 3 * len(good) + offset
        assert list(documents) == []


@pytest.mark.parametrize(("data", "offset", "word"), BAD)
def test_each_fault_is_reported_by_a_raw_document_on_access(data: bytes, offset: int, word: str) -> None:
    def everything() -> None:
        doc = bson.RawDocument(data)
        for key in doc:
            value = doc[key]
            if isinstance(value, bson.RawDocument):
                value.decode()

    def all_fields() -> None:
        for value in bson.RawDocument(data).values():
            if isinstance(value, bson.RawDocument):
                value.decode()

    for call in (everything, all_fields, lambda: bson.RawDocument(data).decode()):
        with pytest.raises(bson.BSONDecodeError, match=word) as raised:
            call()
        assert raised.value.offset_bytes == offset


def test_a_document_longer_than_the_limit_is_refused_before_it_is_read() -> None:
    data = document(element(0x02, string(b"x" * 100)))
    assert bson.decode(data, max_bytes=len(data)) == {"a": "x" * 100}
    for call in (
        untyped.decode,
        untyped.decode_all,
        untyped.RawDocument,
        lambda data, **options: list(untyped.decode_iter(data, **options)),
        lambda data, **options: list(untyped.decode_iter([data[:9], data[9:]], **options)),
    ):
        with pytest.raises(bson.BSONDecodeError, match="max_bytes") as raised:
            call(data, max_bytes=len(data) - 1)
        assert raised.value.offset_bytes == 0


def test_wrong_lengths_allocate_no_memory() -> None:
    huge = _length(2**31 - 1)
    lies = [
        huge + b"\0",
        document(element(0x02, huge + b"a\0")),
        document(element(0x03, huge + b"\0")),
        document(element(0x05, huge + b"\0a")),
        document(element(0x0F, huge * 3)),
    ]
    tracemalloc.start()
    try:
        for lie in lies:
            for source in (lie, io.BytesIO(lie), [lie[:5], lie[5:]]):
                with pytest.raises(bson.BSONDecodeError):
                    list(bson.decode_iter(source))
        assert tracemalloc.get_traced_memory()[1] < 1 << 20
    finally:
        tracemalloc.stop()


def test_the_error_is_pickled_and_copied() -> None:
    with pytest.raises(bson.BSONDecodeError) as raised:
        bson.decode(b"\x05\0\0\0\1")
    error = raised.value
    for other in (pickle.loads(pickle.dumps(error)), copy.copy(error)):
        assert (type(other), other.reason, other.offset_bytes) == (type(error), error.reason, 4)
        assert str(other) == str(error) and "byte 4" in str(error)


def test_faults_leak_nothing() -> None:
    def run() -> None:
        for data, _, _ in BAD:
            for options in ({}, {"compat": "pymongo"}, {"document_class": OrderedDict}):
                with contextlib.suppress(bson.BSONDecodeError):
                    untyped.decode(data, **options)

    run()
    run()
    before = sys.getallocatedblocks()
    for _ in range(20):
        run()
    assert sys.getallocatedblocks() - before < 100


def test_a_buffer_that_another_thread_writes_to_is_read_or_refused_and_no_crash() -> None:
    data = bytearray(pymongo.encode({"a": [{"b": "東京" * 20, "c": [1, 2, {"d": None}]}] * 50}))
    good = bytes(data)
    stop = threading.Event()

    def harm() -> None:
        at = 0
        while not stop.is_set():
            at = (at * 31 + 17) % len(data)
            data[at] ^= 1 << at % 8
            if at % 64 == 0:
                data[:] = good

    class Fields(dict[str, Any]):
        def __init__(self) -> None:
            # Gives the other thread time between two fields.
            for _ in range(20):
                pass

    thread = threading.Thread(target=harm)
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    thread.start()
    n_read = 0
    try:
        for _ in range(150):
            for call in (
                lambda: bson.decode(data),
                lambda: bson.decode(data, document_class=Fields),
                lambda: bson.RawDocument(data)["a"],
                lambda: list(bson.decode_iter(data, document_class=Fields)),
            ):
                try:
                    call()
                    n_read += 1
                except (bson.BSONDecodeError, KeyError):
                    # Refused, or read while the field had its other name.
                    pass
    finally:
        stop.set()
        thread.join()
        sys.setswitchinterval(interval)
    data[:] = good
    assert bson.decode(data) == pymongo.decode(good)
