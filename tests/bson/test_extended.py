"""BSON to Extended JSON and back: options, inputs, positions of errors, threads, the ledger."""

from __future__ import annotations

import array
import json
import pickle
import struct
import threading
from typing import Any

import bson as pymongo
import pytest
from bson import json_util
from hypothesis import given
from hypothesis import strategies as st

import onecopy
from onecopy import bson
from onecopy.json import JSONDecodeError

DOCUMENT = pymongo.encode({"a": 1, "t": 'Zürich 東京 😀 "x"\n', "f": [1.5, None, True], "d": {"n": 1 << 40}})
TEXT = '{"a":1,"t":"Zürich 東京 😀 \\"x\\"\\n","f":[1.5,null,true],"d":{"n":1099511627776}}'


def test_a_document_round_trips_through_text() -> None:
    assert bson.to_json(DOCUMENT).decode() == TEXT
    assert bson.from_json(bson.to_json(DOCUMENT, canonical=True)) == DOCUMENT
    assert bson.from_json(TEXT) == DOCUMENT
    bson.validate(DOCUMENT)


@pytest.mark.parametrize("make", [bytes, bytearray, memoryview, lambda data: array.array("B", data)])
def test_any_buffer_is_accepted(make: Any) -> None:
    assert bson.to_json(make(DOCUMENT)).decode() == TEXT
    assert bson.from_json(make(TEXT.encode())) == DOCUMENT
    assert bson.validate_all(make(DOCUMENT * 3)) == 3
    strided = memoryview(bytes(b for byte in DOCUMENT for b in (byte, 0)))[::2]
    assert bson.to_json(strided).decode() == TEXT


@pytest.mark.parametrize("text", ["ascii", "é", "東", "😀", "é\\n", "東\\u0041", "😀\\u6771"])
def test_a_str_of_any_width_is_accepted(text: str) -> None:
    source = f'{{"a": "{text}", "{text}": {{"$symbol": "{text}"}}, "b": {{"$numberInt": "5"}}}}'
    assert bson.from_json(source) == bson.from_json(source.encode())
    assert json.loads(bson.to_json(bson.from_json(source))) == json.loads(source) | {"b": 5}


def test_concatenated_documents_become_lines() -> None:
    assert bson.to_json_lines(DOCUMENT * 2).decode() == (TEXT + "\n") * 2
    assert bson.from_json_lines(f"{TEXT}\n{TEXT} \n\n{TEXT}") == DOCUMENT * 3
    assert bson.to_json_lines(b"") == b"" == bson.from_json_lines(" \n") == bson.from_json_lines(b"")
    assert bson.validate_all(b"") == 0
    assert bson.to_json_lines(DOCUMENT, canonical=True) == bson.to_json(DOCUMENT, canonical=True) + b"\n"


def test_options_are_applied() -> None:
    malformed = DOCUMENT.replace("ü".encode(), b"\xc3x")
    checks: list[Any] = [bson.to_json, bson.validate]
    for call in checks:
        with pytest.raises(bson.BSONDecodeError, match="malformed text") as caught:
            call(malformed)
        assert caught.value.offset_bytes == malformed.index(b"\xc3x")
    assert "Z\ufffdxrich" in bson.to_json(malformed, errors="replace").decode()
    odd = pymongo.encode({"a": {"x": 1}}).replace(b"\x03a", b"\x04a")
    assert bson.to_json(odd) == b'{"a":[1]}'
    for call in [*checks, bson.validate_all]:
        with pytest.raises(bson.BSONDecodeError, match="array_keys"):
            call(odd, array_keys="strict")
        with pytest.raises(bson.BSONDecodeError, match="max_depth"):
            call(odd, max_depth=1)
        with pytest.raises(bson.BSONDecodeError, match="max_bytes"):
            call(odd, max_bytes=10)
        with pytest.raises(ValueError, match="array_keys must be one of"):
            call(odd, array_keys="none")
        with pytest.raises(ValueError, match="must not be negative"):
            call(odd, max_depth=-1)
        with pytest.raises(TypeError, match="a bytes-like object is required, not 'str'"):
            call("{}")
    reads: list[Any] = [bson.from_json, bson.from_json_lines]
    for read in reads:
        with pytest.raises(JSONDecodeError, match="lone surrogate"):
            read('{"a": "\ud800"}')
        assert read('{"a": "\ud800"}', errors="replace") == read('{"a": "\ufffd"}')
        assert read('{"a": 18446744073709551616}') == pymongo.encode({"a": 2.0**64})
        with pytest.raises(JSONDecodeError, match="more than 64 bits"):
            read('{"a": 18446744073709551616}', big_ints="error")
        with pytest.raises(JSONDecodeError, match="max_bytes"):
            read('{"a": "0123456789"}', max_bytes=20)
        with pytest.raises(JSONDecodeError, match="max_depth"):
            read('{"a": [[]]}', max_depth=2)
        with pytest.raises(TypeError, match="a str or a bytes-like object, not 'int'"):
            read(1)


def test_corrupted_bytes_are_refused_with_their_offset() -> None:
    for n in range(len(DOCUMENT)):
        calls: list[Any] = [bson.validate, bson.to_json]
        for call in calls:
            with pytest.raises(bson.BSONDecodeError) as caught:
                call(DOCUMENT[:n])
            assert 0 <= caught.value.offset_bytes <= n
    with pytest.raises(bson.BSONDecodeError, match="trailing data after the document") as caught:
        bson.validate(DOCUMENT + b"\0")
    assert caught.value.offset_bytes == len(DOCUMENT)
    with pytest.raises(bson.BSONDecodeError) as caught:
        bson.to_json_lines(DOCUMENT * 2 + DOCUMENT[:-1])
    assert caught.value.offset_bytes == 2 * len(DOCUMENT)
    again = pickle.loads(pickle.dumps(caught.value))
    assert (again.reason, again.offset_bytes, str(again)) == (
        caught.value.reason,
        caught.value.offset_bytes,
        str(caught.value),
    )


def test_a_hundred_thousand_levels_are_an_error_or_text_and_no_crash() -> None:
    depth = 100_000
    heads = (struct.pack("<i", 5 + 8 * level) + b"\x040\0" for level in range(depth, 0, -1))
    deep = b"".join(heads) + b"\x05\0\0\0\0" + bytes(depth)
    calls: list[Any] = [bson.validate, bson.to_json]
    for call in calls:
        with pytest.raises(bson.BSONDecodeError, match="max_depth"):
            call(deep)
    assert bson.to_json(deep, max_depth=depth + 1) == b'{"0":' + b"[" * depth + b"]" * depth + b"}"
    text = '{"a":' * depth
    with pytest.raises(JSONDecodeError, match="max_depth"):
        bson.from_json(text)
    with pytest.raises(JSONDecodeError, match="end of the text"):
        bson.from_json(text, max_depth=depth)


def test_a_wrong_wrapper_is_an_error_with_its_position() -> None:
    with pytest.raises(JSONDecodeError) as caught:
        bson.from_json_lines('{"é": 1}\n{"b": {"$oid": "x"}}')
    error = caught.value
    assert error.msg == "`$oid` must be a string of 24 hexadecimal digits"
    assert (error.lineno, error.colno, error.pos, error.offset_bytes) == (2, 17, 25, 26)


def test_long_conversions_let_other_threads_run() -> None:
    many = DOCUMENT * 20_000
    texts: list[bytes] = []
    threads = [threading.Thread(target=lambda: texts.append(bson.to_json_lines(many))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(texts)) == 1
    assert bson.from_json_lines(texts[0]) == many
    assert bson.validate_all(many) == 20_000
    # A mutable input is converted with the interpreter's lock held.
    assert bson.to_json_lines(bytearray(many)) == texts[0]
    text = texts[0].decode()
    assert bson.from_json_lines(text) == many


def test_the_ledger_counts_one_conversion_and_no_copy() -> None:
    many = DOCUMENT * 5000
    with onecopy.ledger() as ledger:
        text = bson.to_json_lines(many)
    assert (ledger.taken, ledger.converted, ledger.copied) == (len(many), len(many), 0)
    with onecopy.ledger() as ledger:
        bson.from_json_lines(text)
    assert (ledger.taken, ledger.converted, ledger.copied) == (len(text), len(text), 0)


_KEYS = st.text(st.characters(codec="utf-8", exclude_characters="\0$"), max_size=12)
_VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False)
    | st.text(st.characters(codec="utf-8"), max_size=40)
    | st.binary(max_size=20)
    | st.datetimes().map(lambda d: d.replace(microsecond=0))
    | st.uuids().map(pymongo.Binary.from_uuid)
    | st.builds(pymongo.ObjectId)
    | st.builds(pymongo.Timestamp, st.integers(0, 2**32 - 1), st.integers(0, 2**32 - 1)),
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(_KEYS, inner, max_size=5),
    max_leaves=20,
)


@given(st.dictionaries(_KEYS, _VALUES, max_size=6), st.booleans())
def test_text_is_read_and_written_as_by_pymongo(document: dict[str, Any], canonical: bool) -> None:
    data = pymongo.encode(document)
    text = bson.to_json(data, canonical=canonical)
    options = json_util.CANONICAL_JSON_OPTIONS if canonical else json_util.RELAXED_JSON_OPTIONS
    options = options.with_options(tz_aware=False)
    # pymongo parses our text to the same document, and we parse its text.
    theirs = json_util.loads(text.decode(), json_options=options)
    if canonical:
        assert pymongo.encode(theirs) == data
        assert bson.from_json(json_util.dumps(pymongo.decode(data), json_options=options)) == data
        assert bson.from_json(text) == data
    else:
        assert bson.to_json(pymongo.encode(theirs)) == text
        assert bson.to_json(bson.from_json(text)) == text
