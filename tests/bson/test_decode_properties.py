"""Properties of decoding: random documents and corrupted ones are decoded or refused as by
pymongo."""

from __future__ import annotations

from typing import Any

import bson as pymongo
from hypothesis import example, given
from hypothesis import strategies as st

from onecopy import bson
from tests.bson.decoding import AS_PYMONGO, OPTIONS, document, documents, element, same
from tests.support.properties import tried


@given(documents)
@tried(400)
def test_documents_of_pymongo_are_decoded_as_by_pymongo(value: dict[str, Any]) -> None:
    data = pymongo.encode(value)
    expected = pymongo.decode(data, OPTIONS)
    assert same(bson.decode(data, **AS_PYMONGO), expected)
    assert same(bson.decode_all(data * 3, **AS_PYMONGO), [expected] * 3)
    assert same(list(bson.decode_iter([data[:9], data[9:] + data], **AS_PYMONGO)), [expected] * 2)


@given(documents)
@tried(300)
def test_own_types_are_written_by_pymongo_unchanged(value: dict[str, Any]) -> None:
    data = pymongo.encode(value)
    made = bson.decode(data, datetime_range="auto")
    assert pymongo.encode(made, codec_options=OPTIONS) == data


@given(
    st.lists(
        st.dictionaries(st.sampled_from("abcdefgh"), st.one_of(st.integers(0, 9), st.text(max_size=3))), max_size=60
    )
)
@tried(200)
def test_documents_of_changing_shapes_keep_their_keys(values: list[dict[str, Any]]) -> None:
    data = b"".join(map(pymongo.encode, values))
    assert same(bson.decode_all(data), values)


def _outcome(call: Any, data: bytes) -> Any:
    try:
        return [call(data)]
    except ValueError:
        return None
    except pymongo.errors.InvalidBSON:
        return None


def _harmed(data: bytes, harms: list[tuple[int, int]], is_small: bool) -> bytes:
    harmed = bytearray(data)
    for at, byte in harms:
        at %= len(harmed)
        harmed[at] = (harmed[at] + byte % 3 - 1) % 256 if is_small else byte
    return bytes(harmed)


@given(
    documents, st.lists(st.tuples(st.integers(0, 10**6), st.integers(0, 255)), min_size=1, max_size=3), st.booleans()
)
@example({"a": 1}, [(0, 255)], False)
@tried(600)
def test_corrupted_bytes_are_refused_or_decoded_as_by_pymongo(
    value: dict[str, Any], harms: list[tuple[int, int]], is_small: bool
) -> None:
    data = _harmed(pymongo.encode(value), harms, is_small)
    found = _outcome(lambda data: bson.decode(data, **AS_PYMONGO), data)
    if found is not None:
        assert same(found[0], pymongo.decode(data, OPTIONS))


@given(st.binary(max_size=80))
@tried(300)
def test_any_bytes_are_refused_or_decoded_as_by_pymongo(body: bytes) -> None:
    data = document(body)
    for whole in (data, body, document(element(0x03, data)), document(element(0x04, data))):
        found = _outcome(lambda data: bson.decode(data, **AS_PYMONGO), whole)
        if found is not None:
            assert same(found[0], pymongo.decode(whole, OPTIONS))
