"""`onecopy.compat.bson.decode` and its variants compared with pymongo's.

For random bytes and options, both give the same objects or exceptions. Callbacks of the caller are
not called more often than by pymongo.
"""

from __future__ import annotations

import codecs
import collections
import datetime as dt
import io
from collections.abc import Callable
from random import Random
from typing import Any

import bson as pymongo
import pytest
from bson import json_util
from bson.codec_options import CodecOptions, TypeDecoder, TypeRegistry
from bson.raw_bson import RawBSONDocument
from hypothesis import given
from hypothesis import strategies as st

from onecopy import bson
from onecopy.compat import bson as compat
from tests.bson.decoding import document, element, same, string
from tests.bson.random_values import RARE, Own, any_bytes, outcome
from tests.support.properties import tried


class Counted(dict[str, Any]):
    """A document class that counts the items stored in all its instances."""

    n_put = 0

    def __setitem__(self, key: str, value: Any) -> None:
        type(self).n_put += 1
        super().__setitem__(key, value)


class _Handler:
    """A codec error handler that counts its calls."""

    n_calls = 0

    def __call__(self, error: UnicodeError) -> tuple[str, int]:
        type(self).n_calls += 1
        assert isinstance(error, UnicodeDecodeError)
        return "?", error.end


codecs.register_error("onecopy-tests-counted", _Handler())

_HANDLERS = ["strict", "replace", "ignore", "backslashreplace", "surrogateescape", "surrogatepass", "junk"]


class _Moments(TypeDecoder):
    @property
    def bson_type(self) -> Any:
        return dt.datetime

    def transform_bson(self, value: Any) -> Any:
        return str(value)


def _options(draw: Random) -> CodecOptions[Any]:
    is_aware = draw.random() < 0.5
    return CodecOptions(
        document_class=draw.choice(
            [dict, dict, dict, pymongo.SON, collections.OrderedDict, Own, Counted, RawBSONDocument]
        ),
        tz_aware=is_aware,
        tzinfo=dt.timezone(dt.timedelta(hours=2)) if is_aware and draw.random() < 0.2 else None,
        uuid_representation=draw.choice([0, 3, 4, 5, 6]),
        unicode_decode_error_handler=draw.choice([*_HANDLERS, "onecopy-tests-counted"]),
        datetime_conversion=draw.choice([1, 2, 3, 4]),
        type_registry=TypeRegistry([_Moments()]) if draw.random() < 0.1 else None,
    )


def _alike(a: Any, b: Any) -> bool:
    """Returns true if two outcomes are equal, recursively; dicts must have the same class."""
    if isinstance(a, tuple) or isinstance(b, tuple):
        return bool(a == b)
    if isinstance(a, dict):
        return type(a) is type(b) and list(a) == list(b) and all(_alike(a[key], b[key]) for key in a)
    if isinstance(a, list):
        return isinstance(b, list) and len(a) == len(b) and all(map(_alike, a, b))
    return same(a, b)


@given(st.integers(0, 2**40))
@tried(4000)
def test_any_bytes_are_read_or_refused_as_by_pymongo_with_any_options(seed: int) -> None:
    draw = Random(seed)
    data, options = any_bytes(draw), _options(draw)
    for name in ("decode", "decode_all"):
        Counted.n_put = _Handler.n_calls = 0
        expected = outcome(getattr(pymongo, name), data, options)
        n_put, n_calls = Counted.n_put, _Handler.n_calls
        Counted.n_put = _Handler.n_calls = 0
        found = outcome(getattr(compat, name), data, options)
        if isinstance(found, tuple) or not _reaches_past_its_end(data):
            assert _alike(found, expected), (name, data, options, found, expected)
        # Of a duplicate key only the last value is set, while pymongo sets each.
        assert (Counted.n_put, _Handler.n_calls) <= (n_put, n_calls)


def _reaches_past_its_end(data: bytes) -> bool:
    """Returns true if ``data`` is not valid BSON.

    With an invalid length pymongo may read the memory after a document, so that its result is not
    comparable.
    """
    try:
        bson.validate_all(data)
    except bson.BSONDecodeError:
        return True
    return False


@given(st.integers(0, 2**40))
@tried(500)
def test_concatenated_documents_are_read_as_by_pymongo_with_any_options(seed: int) -> None:
    draw = Random(seed)
    options = _options(draw)
    data = b"".join(any_bytes(draw) for _ in range(3))
    expected = outcome(lambda: list(pymongo.decode_iter(data, options)))
    found = outcome(lambda: list(compat.decode_iter(data, options)))
    if isinstance(found, tuple):
        # If ours decodes nothing, the test repeats: pymongo accepts some lengths that exceed their
        # document.
        assert found[0] is pymongo.errors.InvalidBSON
        if not isinstance(expected, tuple):
            with pytest.raises(bson.BSONDecodeError):
                bson.validate_all(data)
        return
    if _reaches_past_its_end(data):
        return
    assert _alike(found, expected)
    assert _alike(list(compat.decode_file_iter(io.BytesIO(data), options)), expected)


def test_deprecated_types_are_those_that_pymongo_reads() -> None:
    data = document(*RARE[:3])
    assert compat.decode(document(RARE[0])) == {"a": None}
    for one in (*RARE[:3], data[4:-1]):
        made = compat.decode(document(one))
        assert _alike(made, pymongo.decode(document(one)))
        assert json_util.dumps(made) == json_util.dumps(pymongo.decode(document(one)))


@pytest.mark.parametrize("document_class", [dict, pymongo.SON])
def test_an_unknown_error_handler_is_no_error_for_well_formed_data(document_class: Any) -> None:
    options: Any = CodecOptions(document_class=document_class, unicode_decode_error_handler="junk")
    good = pymongo.encode({"é": ["東京", {"a": 1}]})
    assert compat.decode(good, options) == pymongo.decode(good, options)
    assert compat.decode_all(good * 2, options) == pymongo.decode_all(good * 2, options)
    assert list(compat.decode_iter(good * 2, options)) == list(pymongo.decode_iter(good * 2, options))
    bad = document(element(0x02, string(b"\xff")))
    assert outcome(compat.decode, bad, options) == outcome(pymongo.decode, bad, options)


def _nested_reads(decode: Callable[..., Any], depth: int) -> tuple[int, type[Exception]]:
    """Decodes with a document class whose `__setitem__` decodes again, until a decode fails at
    ``depth``.

    Returns the number of calls of `__setitem__`, and the class of the exception.
    """
    n = 0

    class Deep(dict[str, Any]):
        def __setitem__(self, key: str, value: Any) -> None:
            nonlocal n
            n += 1
            if n > depth:
                decode(b"\5\0\0\0\1", CodecOptions())
            decode(data, options)

    data = pymongo.encode({"a": 1})
    options: Any = CodecOptions(document_class=Deep)
    found = outcome(decode, data, options)
    return n, found[0]


@pytest.mark.parametrize("depth", [0, 1, 4, 12, 30])
def test_a_document_class_that_decodes_and_fails_is_called_once_at_each_depth(depth: int) -> None:
    expected = (depth + 1, pymongo.errors.InvalidBSON)
    assert _nested_reads(compat.decode, depth) == _nested_reads(pymongo.decode, depth) == expected


def test_an_error_of_a_document_class_is_raised_after_one_call() -> None:
    class Refusing(dict[str, Any]):
        n_calls = 0

        def __setitem__(self, key: str, value: Any) -> None:
            type(self).n_calls += 1
            raise bson.BSONDecodeError("of its own")

    options: Any = CodecOptions(document_class=Refusing)
    for decode in (pymongo.decode, compat.decode):
        with pytest.raises(bson.BSONDecodeError, match="of its own"):
            decode(pymongo.encode({"a": 1}), options)
    assert Refusing.n_calls == 2
