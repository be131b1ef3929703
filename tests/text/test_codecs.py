"""Each codec compared with CPython's: the same text and bytes, and the same errors at the same
positions."""

from __future__ import annotations

import array
import ctypes
import sys
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from onecopy import text
from tests.support.properties import tried

CODECS = (
    "utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-32-le", "utf-32-be", "latin-1", "ascii",
)  # fmt: skip
POLICIES = ("strict", "replace", "ignore", "surrogatepass", "backslashreplace", "surrogateescape")
DIRECT = {
    "utf-8": (text.utf_8_decode, text.utf_8_encode),
    "utf-16": (text.utf_16_decode, text.utf_16_encode),
    "utf-16-le": (text.utf_16_le_decode, text.utf_16_le_encode),
    "utf-16-be": (text.utf_16_be_decode, text.utf_16_be_encode),
    "utf-32": (text.utf_32_decode, text.utf_32_encode),
    "utf-32-le": (text.utf_32_le_decode, text.utf_32_le_encode),
    "utf-32-be": (text.utf_32_be_decode, text.utf_32_be_encode),
    "latin-1": (text.latin_1_decode, text.latin_1_encode),
    "ascii": (text.ascii_decode, text.ascii_encode),
}

#: The module as `Any`, as used without a type checker.
untyped: Any = text

#: Alphabets of one width and mixtures, to reach each kernel and each change of kinds.
_ALPHABETS = ["ab", "aé", "éÿ\x80", "Жя", "Ж a", "東京", "東a\ud7ff\ue000\uffff", "😀", "😀a", "\U0010ffff\U00010000Ж"]
_runs = st.sampled_from(_ALPHABETS).flatmap(lambda alphabet: st.text(alphabet, max_size=80))
_texts = st.lists(_runs, max_size=4).map("".join)
_long = st.tuples(_texts, st.integers(1, 400), _texts).map(lambda t: t[0] * t[1] + t[2])
_with_surrogates = st.tuples(_texts, st.sampled_from(["\ud800", "\udfff", "\ud83d\ude00"]), _texts).map("".join)
#: Bytes that are almost text: a text in one of the codecs, with some bytes changed, inserted or
#: removed.
_BAD_BYTES = [b"", b"\x00", b"\x80", b"\xc0", b"\xed\xa0\x80", b"\xf4\x90", b"\xff", b"\xd8", b"\x00\xdc"]
_harm = st.tuples(st.integers(0, 500), st.sampled_from(_BAD_BYTES), st.integers(0, 2))


def _harmed(parts: tuple[str, str, list[tuple[int, bytes, int]]]) -> bytes:
    string, codec, harms = parts
    data = string.encode(codec, "replace")
    for at, put, cut in harms:
        data = data[:at] + put + data[at + cut :]
    return data


_nearly = st.tuples(_texts, st.sampled_from(CODECS), st.lists(_harm, max_size=3)).map(_harmed)


def outcome(call: Callable[[], Any]) -> Any:
    """The result of a call; if it raises, the details of the error."""
    try:
        return call()
    except (UnicodeDecodeError, UnicodeEncodeError) as e:
        return type(e), e.encoding, e.object, e.start, e.end, e.reason


@tried(400)
@given(_texts | _long, st.sampled_from(CODECS))
def test_a_text_round_trips_and_is_encoded_as_by_cpython(string: str, codec: str) -> None:
    try:
        data = string.encode(codec)
    except UnicodeEncodeError:
        assert outcome(lambda: text.encode(string, codec)) == outcome(lambda: string.encode(codec))
        return
    assert text.encode(string, codec) == data
    assert text.encoded_length(string, codec) == len(data)
    assert text.is_valid(data, codec)
    back = text.decode(data, codec)
    assert back == string
    # The narrowest storage kind: then the hash is the same, and so is the size.
    assert hash(back) == hash(string)
    assert back.__sizeof__() == data.decode(codec).__sizeof__()
    assert text.decode(bytearray(data), codec) == string
    assert text.decode(memoryview(b"x" + data)[1:], codec) == string
    place = bytearray(b"\xa5" * (len(data) + 5))
    assert text.encode_into(string, place, 3, codec) == len(data)
    assert place == b"\xa5\xa5\xa5" + data + b"\xa5\xa5"
    if codec in DIRECT:
        decode, encode = DIRECT[codec]
        assert (decode(data), encode(string)) == (string, data)


@tried(1500)
@given(_nearly | st.binary(max_size=80), st.sampled_from(CODECS), st.sampled_from(POLICIES))
def test_any_bytes_are_taken_or_refused_as_by_cpython(data: bytes, codec: str, errors: str) -> None:
    expected = outcome(lambda: data.decode(codec, errors))
    assert outcome(lambda: text.decode(data, codec, errors)) == expected
    strict = outcome(lambda: data.decode(codec))
    assert text.is_valid(data, codec) == isinstance(strict, str)
    invalid = text.find_invalid(data, codec)
    assert invalid == (None if isinstance(strict, str) else strict[3:])
    if codec in DIRECT:
        assert outcome(lambda: DIRECT[codec][0](data, errors)) == expected


@tried(600)
@given(_with_surrogates | _texts, st.sampled_from(CODECS), st.sampled_from(POLICIES))
def test_any_str_is_accepted_or_refused_as_by_cpython(string: str, codec: str, errors: str) -> None:
    expected = outcome(lambda: string.encode(codec, errors))
    assert outcome(lambda: text.encode(string, codec, errors)) == expected
    place = bytearray(b"\xa5" * 4000)
    into = outcome(lambda: text.encode_into(string, place, 0, codec, errors))
    if isinstance(expected, bytes):
        assert (into, bytes(place[: len(expected)])) == (len(expected), expected)
    else:
        assert (into, bytes(place)) == (expected, b"\xa5" * 4000)


def test_a_surrogate_pair_in_a_str_is_not_a_character() -> None:
    pair = "\ud83d\ude00"
    with pytest.raises(UnicodeEncodeError) as e:
        text.utf_8_encode(pair)
    assert (e.value.start, e.value.end, e.value.reason) == (0, 2, "surrogates not allowed")


@pytest.mark.parametrize("spelling", ["UTF-8", "utf8", "U8", "utf_8"])
def test_names_are_accepted_in_any_spelling(spelling: str) -> None:
    assert text.decode(b"\xc3\xa9", spelling) == "é"


@pytest.mark.parametrize("name", ["no-such", "utf-8é", "", "cp437"])
def test_an_unknown_encoding_is_named(name: str) -> None:
    with pytest.raises(LookupError, match="unknown encoding"):
        text.decode(b"", name)


def test_an_unknown_handler_is_an_error_only_when_it_is_needed() -> None:
    with pytest.raises(LookupError, match="no-such"):
        text.decode(b"\xff", errors="no-such")


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: untyped.decode("text"), "bytes-like object is required, not 'str'"),
        (lambda: untyped.encode(b"bytes"), "str is required, not 'bytes'"),
        (lambda: untyped.decode(b"", 8), "encoding must be str, not 'int'"),
        (lambda: untyped.decode(b"\xff", "utf-8", 1), "errors must be str, not 'int'"),
        (lambda: untyped.decode(), "missing required argument 'buffer'"),
        (lambda: untyped.decode(b"", "utf-8", "strict", 1), "at most 3 arguments"),
        (lambda: untyped.decode(b"", codec="utf-8"), "unexpected keyword argument 'codec'"),
        (lambda: untyped.decode(b"", buffer=b""), "multiple values for argument 'buffer'"),
        (lambda: untyped.utf8_view(b"x"), "str is required"),
    ],
)
def test_wrong_arguments_are_named(call: Callable[[], object], said: str) -> None:
    with pytest.raises(TypeError, match=said):
        call()


def test_arguments_are_accepted_by_name() -> None:
    assert text.decode(errors="replace", buffer=b"\xff", encoding="utf-8") == "\ufffd"
    assert text.encode_into(string="é", buffer=(place := bytearray(2))) == 2
    assert place == b"\xc3\xa9"


class Chunked:
    """A class written in Python that supports the buffer protocol (PEP 688)."""

    def __buffer__(self, flags: int, /) -> memoryview:
        return memoryview(b"Z\xc3\xbcrich")


def test_any_buffer_is_accepted() -> None:
    every_other = memoryview(b"a_b_c_")[::2]
    assert text.decode(every_other) == "abc"
    assert text.decode(array.array("H", "Ж東".encode("utf-16-le")), "utf-16-le") == "Ж東"
    two = memoryview(bytearray(b"abcdef")).cast("B", (2, 3))
    assert text.decode(two) == "abcdef"
    made: Any = Chunked()
    try:
        memoryview(made)
    except TypeError:
        return  # Before Python 3.12 only C code can provide a buffer.
    assert text.decode(made) == "Zürich"


@pytest.mark.parametrize(
    ("call", "error", "said"),
    [
        (lambda b: text.encode_into("abc", b, 2), ValueError, "3 bytes long, and 2 are left .* offset 2"),
        (lambda b: text.encode_into("é" * 3, b), ValueError, "6 bytes long, and 4 are left"),
        (lambda b: text.encode_into("a", b, 5), IndexError, "offset 5 is after the end of a buffer of 4 bytes"),
        (lambda b: text.encode_into("a", b, -1), IndexError, "offset"),
        (lambda b: text.encode_into("\ud800", b), UnicodeEncodeError, "surrogates"),
        (lambda b: text.encode_into("a", bytes(b)), BufferError, "writable"),
        (lambda b: text.encode_into("a", memoryview(b)[::2]), BufferError, "contiguous"),
    ],
)
def test_a_text_that_does_not_fit_leaves_the_buffer_unchanged(
    call: Callable[[bytearray], object], error: type[Exception], said: str
) -> None:
    place = bytearray(b"kept")
    with pytest.raises(error, match=said):
        call(place)
    assert place == b"kept"


if sys.version_info < (3, 12):  # Later versions have no legacy str (before PEP 393).

    @pytest.mark.filterwarnings("ignore:PyUnicode_FromUnicode:DeprecationWarning")
    @pytest.mark.parametrize("string", ["", "abc", "Zürich", "東京", "a😀", "x\ud800"])
    def test_a_legacy_str_is_accepted(string: str) -> None:
        # From a `wchar_t` array that is filled later: its kind is determined only when it is
        # needed.
        api = ctypes.pythonapi
        api.PyUnicode_FromUnicode.restype = ctypes.py_object
        api.PyUnicode_FromUnicode.argtypes = [ctypes.c_void_p, ctypes.c_ssize_t]
        api.PyUnicode_AsUnicode.restype = ctypes.c_void_p
        api.PyUnicode_AsUnicode.argtypes = [ctypes.py_object]
        units = string.encode("utf-32-le", "surrogatepass")

        def old() -> Any:
            made = api.PyUnicode_FromUnicode(None, len(string))
            if string:
                ctypes.memmove(api.PyUnicode_AsUnicode(made), units, len(units))
            return made

        expected = outcome(lambda: string.encode())
        assert outcome(lambda: text.encode(old())) == expected
        assert outcome(lambda: text.encode_into(old(), bytearray(9))) == (
            len(expected) if isinstance(expected, bytes) else expected
        )
        assert text.encode(old(), "utf-32-le", "surrogatepass") == units


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be"])
@pytest.mark.parametrize("n", [(16 << 20) // 4 - 1, (16 << 20) // 2 + 37])
def test_bytes_larger_than_the_caches_are_widened(encoding: str, n: int) -> None:
    string = ("Stra\xdfe nach Z\xfcrich, \xe0 bient\xf4t. " * (n // 20))[:n]
    assert text.encode(string, encoding) == string.encode(encoding)
    place = bytearray(5 + len(string.encode(encoding)))
    assert text.encode_into(string, place, 5, encoding) == len(place) - 5
    assert place[5:] == string.encode(encoding)
