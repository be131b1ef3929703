"""All functions that read BSON accept the same bytes: `validate`, `decode` and its variants,
`RawDocument`, `to_json`.

There are two exceptions. A date outside of the years 1 to 9999 is valid BSON, but by default
`decode` refuses it, since `datetime` cannot represent it. If several fields have the same key, a
`RawDocument` reads only the last one.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from random import Random
from typing import Any

import bson as pymongo
import pytest
from bson.binary import UuidRepresentation
from hypothesis import given
from hypothesis import strategies as st

from onecopy import bson
from tests.bson.decoding import binary, document, element, untyped
from tests.bson.random_values import any_bytes
from tests.support.properties import tried

#: The sizes of values with a fixed size; others begin with a length that omits this number of
#: bytes.
_SIZES = {0x01: 8, 0x06: 0, 0x07: 12, 0x08: 1, 0x09: 8, 0x0A: 0, 0x10: 4, 0x11: 8, 0x12: 8, 0x13: 16, 0x7F: 0, 0xFF: 0}
_UNCOUNTED = {0x02: 4, 0x03: 0, 0x04: 0, 0x05: 5, 0x0C: 16, 0x0D: 4, 0x0E: 4, 0x0F: 0}


def _keys(data: bytes) -> Iterator[bytes]:
    """The keys of a document in order, duplicates included; its lengths must be valid."""
    at = 4
    while tag := data[at]:
        end = data.index(0, at + 1)
        yield data[at + 1 : end]
        at = end + 1
        if tag == 0x0B:
            at = data.index(0, data.index(0, at) + 1) + 1
        else:
            at += _SIZES[tag] if tag in _SIZES else struct.unpack_from("<i", data, at)[0] + _UNCOUNTED[tag]


def _read_fields(value: Any) -> bool:
    """Reads all fields of a raw document and of the documents in it, by each method of
    `RawDocument`.

    Returns true if no key occurs twice in a document.
    """
    if isinstance(value, (list, dict)):
        items = value if isinstance(value, list) else value.values()
        # A scope is a dict, which does not show duplicate keys.
        is_all = [_read_fields(item) for item in items]
        return all(is_all) and (isinstance(value, list) or not value)
    if isinstance(value, bson.Code):
        return _read_fields(value.scope)
    if not isinstance(value, bson.RawDocument):
        return True
    keys = list(value)
    assert len(value) == len(keys) and list(value.keys()) == keys
    is_all = [_read_fields(inner) for inner in value.values()]
    if "\ufffd" not in "".join(keys):
        for key in keys:
            _read_fields(value[key])
    return all(is_all) and len(keys) == len(list(_keys(bytes(value.raw))))


def _by_fields(data: bytes, **options: Any) -> bool:
    return _read_fields(untyped.RawDocument(data, datetime_range="auto", **options))


def _readers(**options: Any) -> dict[str, Callable[[bytes], Any]]:
    """Functions that read one document with the given options, by name."""
    auto: dict[str, Any] = {"datetime_range": "auto", **options}
    return {
        "decode": lambda data: bson.decode(data, **auto),
        "decode for pymongo": lambda data: bson.decode(data, compat="pymongo", **auto),
        "decode_all": lambda data: bson.decode_all(data, **auto),
        "decode_iter": lambda data: list(bson.decode_iter(data, **auto)),
        "decode_iter of pieces": lambda data: list(bson.decode_iter([data[:7], data[7:]], **auto)),
        "RawDocument.decode": lambda data: bson.RawDocument(data, **auto).decode(),
        "to_json": lambda data: untyped.to_json(data, **options),
        "to_json, canonical": lambda data: untyped.to_json(data, canonical=True, **options),
    }


def _validators(**options: Any) -> dict[str, Callable[[bytes], Any]]:
    return {
        "validate": lambda data: untyped.validate(data, **options),
        "validate_all": lambda data: untyped.validate_all(data, **options),
    }


def _refusal(call: Callable[[bytes], Any], data: bytes) -> tuple[str, int] | None:
    """The reason and the offset of the error that ``call`` raises for ``data``; `None` if it
    succeeds."""
    try:
        call(data)
    except bson.BSONDecodeError as error:
        return error.reason, error.offset_bytes
    return None


def _agreed(readers: dict[str, Callable[[bytes], Any]], data: bytes, **options: Any) -> tuple[str, int] | None:
    """Checks that all readers accept a document, or refuse it with the same error.

    Returns the reason and the offset of the error, or `None`. The length field of the outer
    document must be valid.
    """
    found = {name: _refusal(call, data) for name, call in readers.items()}
    assert len(set(found.values())) == 1, (data, found)
    one = found["decode"]
    try:
        is_all = _by_fields(data, **options)
    except bson.BSONDecodeError:
        # Nested documents are read after the fields around them here, so another fault may come
        # first.
        assert one is not None, data
    else:
        assert one is None or not is_all, (data, one)
    return one


def _whole(data: bytes) -> bytes:
    """``data`` with a correct length field, so that readers check the contents."""
    return len(data).to_bytes(4, "little") + data[4:] if len(data) >= 5 else document()


@given(st.integers(0, 2**40), st.sampled_from(["any", "strict"]))
@tried(3000)
def test_bytes_that_one_reader_accepts_all_accept(seed: int, array_keys: str) -> None:
    data = _whole(any_bytes(Random(seed)))
    keys = {"array_keys": array_keys}
    refusal = _agreed({**_readers(**keys), **_validators(**keys)}, data, **keys)
    # With the default options, dates out of range are refused in addition.
    default = _refusal(lambda data: untyped.decode(data, **keys), data)
    assert default == refusal or (default is not None and "date outside" in default[0])
    if refusal is None and array_keys == "any":
        # pymongo accepts it too.
        options: Any = pymongo.CodecOptions(datetime_conversion=pymongo.codec_options.DatetimeConversion.DATETIME_MS)
        pymongo.decode(data, options)


@given(st.integers(0, 2**40))
@tried(1500)
def test_bytes_that_one_reader_accepts_with_replacements_all_accept(seed: int) -> None:
    replace = {"errors": "replace"}
    _agreed(_readers(**replace), _whole(any_bytes(Random(seed))), **replace)


@given(st.integers(0, 2**40), st.integers(-4, 4))
@tried(1000)
def test_readers_of_several_documents_accept_the_same_bytes(seed: int, n_cut: int) -> None:
    draw = Random(seed)
    data = b"".join(any_bytes(draw) for _ in range(3))
    data = data[:n_cut] if n_cut < 0 else data + bytes(n_cut)
    readers: dict[str, Callable[[bytes], Any]] = {
        "validate_all": bson.validate_all,
        "decode_all": lambda data: bson.decode_all(data, datetime_range="auto"),
        "decode_iter": lambda data: list(bson.decode_iter(data, datetime_range="auto")),
        "to_json_lines": bson.to_json_lines,
    }
    found = {name: _refusal(call, data) for name, call in readers.items()}
    assert len(set(found.values())) == 1, (data, found)


@pytest.mark.parametrize("subtype", [3, 4])
@pytest.mark.parametrize("n_bytes", [0, 3, 15, 17])
def test_binary_of_the_subtype_of_a_uuid_has_16_bytes_for_all_readers(subtype: int, n_bytes: int) -> None:
    for data in (
        document(element(0x05, binary(bytes(n_bytes), subtype))),
        document(element(0x04, document(element(0x05, binary(bytes(n_bytes), subtype), b"0")))),
    ):
        for representation in ("standard", "java_legacy", "unspecified"):
            with pytest.raises(bson.BSONDecodeError, match="UUID"):
                untyped.decode(data, uuid_representation=representation)
        refusal = _agreed({**_readers(), **_validators()}, data)
        assert refusal is not None and "UUID" in refusal[0]
        # pymongo 4.20 refuses it if the representation is that of the subtype; earlier versions
        # always do.
        owner = UuidRepresentation.STANDARD if subtype == 4 else UuidRepresentation.JAVA_LEGACY
        with pytest.raises(pymongo.errors.InvalidBSON):
            pymongo.decode(data, pymongo.CodecOptions(uuid_representation=owner))
    with pytest.raises(ValueError, match="16 bytes"):
        bson.from_json(f'{{"a":{{"$binary":{{"base64":"YWJj","subType":"0{subtype}"}}}}}}')


@pytest.mark.parametrize("key", [b"\xff", b"0\xff", b"\xed\xa0\x80", "é".encode()[:1]])
def test_keys_of_arrays_are_checked_as_text_by_all_readers(key: bytes) -> None:
    for items in ([element(0x08, b"\1", key)], [element(0x04, document(), b"0"), element(0x08, b"\1", key)]):
        data = document(element(0x04, document(*items)))
        refusal = _agreed({**_readers(), **_validators()}, data)
        assert (
            refusal is not None and "malformed text" in refusal[0] and data[refusal[1] :].startswith(key.lstrip(b"0"))
        )
        assert _agreed(_readers(errors="replace"), data, errors="replace") is None
        assert untyped.decode(data, errors="replace")["a"][-1] is True
    assert bson.decode(document(element(0x04, document(element(0x08, b"\1", "é".encode()))))) == {"a": [True]}
