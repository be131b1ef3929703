"""`bson.RawDocument`, whose fields are decoded when they are accessed."""

from __future__ import annotations

import array
import copy
import gc
import pickle
import threading
import weakref
from collections.abc import Mapping
from typing import Any

import bson as pymongo
import pytest
from hypothesis import given

from onecopy import bson
from tests.bson.decoding import AS_PYMONGO, OPTIONS, document, documents, element, same, string, untyped
from tests.support.properties import tried

VALUE: dict[str, Any] = {
    "a": 1,
    "ключ": "東京",
    "inner": {"b": {"c": [10, {"d": [[], [{"e": "deep"}]]}]}, "": "empty"},
    "list": [1, "two", {"three": 3}],
    "nothing": None,
    "code": pymongo.Code("f()", {"x": {"y": 1}}),
}
DATA = pymongo.encode(VALUE)


def test_it_is_a_mapping_of_its_fields() -> None:
    doc = bson.RawDocument(DATA)
    assert isinstance(doc, Mapping)
    assert doc["a"] == 1 and doc["ключ"] == "東京" and doc["nothing"] is None
    assert list(doc) == list(VALUE) == list(doc.keys()) and len(doc) == len(VALUE)
    assert doc.keys() & {"a", "z"} == {"a"}
    assert "a" in doc and "ключ" in doc and "nothing" in doc
    for missing in ("z", "", "A", "a\0", "кл", "\ud800", 5, None, b"a"):
        assert missing not in doc
        assert untyped.RawDocument(DATA).get(missing) is None and untyped.RawDocument(DATA).get(missing, 7) == 7
        with pytest.raises(KeyError) as raised:
            untyped.RawDocument(DATA)[missing]
        assert raised.value.args == (missing,)
    assert dict(doc.items()) == dict(zip(doc.keys(), doc.values(), strict=True)) == doc.decode() == bson.decode(DATA)
    assert bson.RawDocument(b"\x05\0\0\0\0") == {} and list(bson.RawDocument(b"\x05\0\0\0\0")) == []


def test_nested_documents_stay_raw_until_they_are_accessed() -> None:
    doc = bson.RawDocument(DATA)
    inner = doc["inner"]
    assert type(inner) is bson.RawDocument and type(inner["b"]) is bson.RawDocument
    assert inner["b"]["c"][1]["d"][1][0]["e"] == "deep"
    assert [type(value) for value in doc["list"]] == [int, str, bson.RawDocument]
    assert type(doc["inner"]["b"]["c"][1]["d"][1][0]) is bson.RawDocument
    assert doc["code"].scope == {"x": {"y": 1}}
    assert type(doc.decode()["inner"]) is dict
    assert bytes(inner.raw) == pymongo.encode(VALUE["inner"])
    assert inner.raw.obj is DATA


def test_paths_select_nested_values() -> None:
    doc = bson.RawDocument(DATA)
    assert doc.lookup("a") == 1
    assert doc.lookup("ключ") == "東京"
    assert doc.lookup("inner.b.c.0") == 10
    assert doc.lookup("inner.b.c.1.d.1.0.e") == "deep"
    assert doc.lookup("inner.") == "empty"
    assert doc.lookup("inner.b") == VALUE["inner"]["b"]
    assert doc.lookup("list.2.three") == 3
    for missing in (
        "",
        "z",
        "a.b",
        "inner.z",
        "inner.b.c.2",
        "inner.b.c.-1",
        "inner.b.c.x",
        "inner.b.c.",
        "list.+1",
        "\ud800",
    ):
        assert doc.lookup(missing) is None and doc.lookup(missing, 5) == 5
    assert doc.lookup("list.99999999999999999999999") is None
    with pytest.raises(TypeError):
        untyped.RawDocument(DATA).lookup(5)


def test_fields_that_are_not_accessed_are_not_parsed() -> None:
    bad = element(0x03, document(element(0x08, b"\5")), b"bad")
    doc = bson.RawDocument(document(element(0x0A, b"", b"a"), bad, element(0x02, string(b"\xff"), b"text")))
    assert doc["a"] is None and "text" in doc
    with pytest.raises(bson.BSONDecodeError) as raised:
        doc["text"]
    assert raised.value.offset_bytes == 31
    with pytest.raises(bson.BSONDecodeError) as raised:
        doc["bad"]["a"]
    assert raised.value.offset_bytes == 19
    with pytest.raises(bson.BSONDecodeError) as raised:
        doc.lookup("bad.a")
    assert raised.value.offset_bytes == 19


def test_options_apply_to_nested_documents() -> None:
    odd = document(element(0x03, document(element(0x02, string(b"\xff")), element(0x12, bytes(8), b"\xff"))))
    doc = bson.RawDocument(odd, errors="replace", compat="pymongo")
    assert doc["a"]["a"] == "\ufffd" and list(doc["a"]) == ["a", "\ufffd"]
    assert type(dict(doc["a"].items())["\ufffd"]) is pymongo.Int64
    assert type(bson.decode(odd, document_class=bson.RawDocument, errors="replace")["a"]) is bson.RawDocument
    for options in ({"compat": "x"}, {"datetime_range": 5}):
        with pytest.raises(ValueError, match="must be one of"):
            untyped.RawDocument(odd, **options)
    for name in ("document_class", "codec_options"):
        with pytest.raises(TypeError, match="unexpected"):
            untyped.RawDocument(odd, **{name: dict})


def test_equality_compares_bytes_or_decoded_values() -> None:
    doc = bson.RawDocument(DATA)
    assert doc == bson.RawDocument(bytearray(DATA)) and doc == bson.decode(DATA) and bson.decode(DATA) == doc
    assert doc != bson.RawDocument(pymongo.encode({"a": 1})) and doc != {"a": 1} and doc != 5
    with pytest.raises(TypeError, match="unhashable"):
        hash(doc)


def test_it_is_printed_pickled_and_copied() -> None:
    doc = bson.RawDocument(memoryview(DATA))
    assert eval(repr(doc), {"RawDocument": bson.RawDocument}) == doc
    odd = bson.RawDocument(document(element(0x02, string(b"\xff"))), errors="ignore", tz_aware=False, max_depth=7)
    for given_doc in (doc, doc["inner"], odd):
        for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1):
            again = pickle.loads(pickle.dumps(given_doc, protocol))
            assert type(again) is bson.RawDocument and again == given_doc and bytes(again.raw) == bytes(given_doc.raw)
        assert copy.deepcopy(given_doc) == given_doc == copy.copy(given_doc)
    assert pickle.loads(pickle.dumps(odd))["a"] == ""


def test_it_copies_a_mutable_buffer() -> None:
    buffer = bytearray(DATA)
    doc = bson.RawDocument(buffer)
    inner = doc["inner"]
    buffer[:] = bytes(len(buffer))
    buffer.append(0)
    assert inner == VALUE["inner"] and type(inner.raw.obj) is bytes

    owner = array.array("B", DATA)
    gone = weakref.ref(owner)
    doc = bson.RawDocument(owner)
    del owner
    gc.collect()
    assert gone() is None
    assert doc["a"] == 1


def test_it_keeps_an_immutable_buffer_alive() -> None:
    data = bytes(bytearray(DATA))
    inner = bson.RawDocument(data)["inner"]
    assert inner.raw.obj is data


def test_pymongo_encodes_it_as_a_mapping() -> None:
    doc = bson.RawDocument(DATA)
    assert pymongo.encode({"x": doc["inner"], "y": doc["list"]}) == pymongo.encode(
        {"x": VALUE["inner"], "y": VALUE["list"]}
    )


def test_it_is_encoded_without_a_change() -> None:
    odd = document(element(0x0A, b"", b"b"), element(0x0A, b"", b"a"), element(0x0A, b"", b"b"))
    doc = bson.RawDocument(bytearray(odd))
    assert bson.encode(doc) == odd and bson.encode({"x": doc}) == document(element(0x03, odd, b"x"))


def test_threads_may_share_an_instance() -> None:
    doc = bson.RawDocument(bytearray(DATA))
    failed: list[BaseException] = []

    def read() -> None:
        try:
            for _ in range(300):
                assert doc["inner"]["b"]["c"][0] == 10 and doc.lookup("inner.b.c.1.d.1.0.e") == "deep"
                assert doc == VALUE
        except BaseException as e:
            failed.append(e)

    threads = [threading.Thread(target=read) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []


@given(documents)
@tried(200)
def test_each_field_matches_the_decoded_document(value: dict[str, Any]) -> None:
    data = pymongo.encode(value)
    whole = pymongo.decode(data, OPTIONS)
    doc = bson.RawDocument(data, **AS_PYMONGO)

    def decoded(value: Any) -> Any:
        if isinstance(value, bson.RawDocument):
            # A reference is an object only within another document, and pymongo builds it from the
            # fields.
            made = bson.decode_all(pymongo.encode({"x": value.decode()}, codec_options=OPTIONS), **AS_PYMONGO)
            return made[0]["x"]
        if isinstance(value, pymongo.Code) and value.scope is not None:
            return pymongo.Code(str(value), {key: decoded(inner) for key, inner in value.scope.items()})
        return [decoded(item) for item in value] if isinstance(value, list) else value

    assert list(doc) == list(whole) and same(doc.decode(), whole)
    for key, expected in whole.items():
        assert same(decoded(doc[key]), expected)
        assert "." in key or same(decoded(doc.lookup(key)), expected)
