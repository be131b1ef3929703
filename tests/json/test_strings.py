"""Strings of each storage kind and each length around the vector width, with characters to escape
at each index."""

from __future__ import annotations

import json as standard
import sys

import pytest

from onecopy import json, text
from tests.json.values import ALPHABETS

LENGTHS = (*range(70), *range(124, 133), 191, 192, 193, 255, 256, 257, 511, 512, 513, 1000, 4095, 4097)
#: One character of each width in UTF-8 and each storage kind.
WIDE = ("z", "é", "Ж", "東", "😀")


def _escaped(string: str) -> str:
    """The string as JSON in ASCII, by the standard library, but with U+007F unescaped."""
    return standard.dumps(string).replace("\\u007f", "\x7f")


def _fresh(alphabet: str, n: int) -> str:
    return (alphabet * (n // len(alphabet) + 1))[:n]


@pytest.mark.parametrize("alphabet", ALPHABETS, ids=ascii)
def test_each_length_is_written_and_read(alphabet: str) -> None:
    for n in LENGTHS:
        string = _fresh(alphabet, n)
        plain = standard.dumps(string, ensure_ascii=False)
        assert json.dumps(string) == plain.encode(), n
        assert json.dumps_str(string) == plain, n
        assert json.dumps({string: [string]}) == f"{{{plain}:[{plain}]}}".encode(), n
        escaped = _escaped(string)
        assert json.dumps(string, ensure_ascii=True) == escaped.encode(), n
        assert json.dumps_str(string, ensure_ascii=True) == escaped, n
        for given in (plain, plain.encode(), escaped, escaped.encode()):
            back = json.loads(given)
            assert back == string and sys.getsizeof(back) == sys.getsizeof(string[: n // 2] + string[n // 2 :]), (
                n,
                given,
            )
        assert json.loads(f"{{{plain}:[{escaped}]}}".encode()) == {string: [string]}, n


@pytest.mark.parametrize(
    "put",
    ['"', "\\", "\n", "\x00", "\x1f", "\x7f", "\x80", "é", "Ж", "東", "\ud7ff", "\uffff", "😀"],
    ids=ascii,
)
@pytest.mark.parametrize("around", WIDE)
def test_one_character_at_each_index_of_a_vector(around: str, put: str) -> None:
    for n in (1, 15, 16, 17, 31, 32, 33, 63, 64, 65, 130):
        for at in range(n):
            string = around * at + put + around * (n - at - 1)
            plain = standard.dumps(string, ensure_ascii=False)
            assert json.dumps(string) == plain.encode(), (n, at)
            assert json.dumps(string, ensure_ascii=True).decode() == _escaped(string), (n, at)
            assert json.loads(plain.encode()) == string, (n, at)
            assert json.loads(plain) == string, (n, at)
            assert json.loads(standard.dumps(string).encode()) == string, (n, at)


@pytest.mark.parametrize("around", WIDE)
def test_malformed_utf8_is_found_at_each_index_of_a_vector(around: str) -> None:
    for n in (1, 15, 16, 31, 32, 33, 63, 64, 65, 130):
        for at in range(n):
            before = b'["' + around.encode() * at
            for bad in (b"\xff", b"\x80", b"\xc3(", b"\xed\xa0\x80", b"\xf0\x9f\x98"):
                with pytest.raises(json.JSONDecodeError) as caught:
                    json.loads(before + bad + around.encode() * (n - at) + b'"]')
                assert caught.value.offset_bytes == len(before), (n, at, bad)


def test_every_ascii_character_is_written_as_by_the_standard_library() -> None:
    for c in map(chr, range(0x100)):
        assert json.dumps(c).decode() == standard.dumps(c, ensure_ascii=False)
        assert json.dumps(c, ensure_ascii=True).decode() == _escaped(c)


def test_every_character_of_the_basic_plane_round_trips() -> None:
    every = "".join(chr(c) for c in range(0x10000) if not 0xD800 <= c < 0xE000)
    assert json.loads(json.dumps(every)) == every
    assert json.loads(json.dumps(every, ensure_ascii=True)) == every
    assert json.loads(json.dumps_str(list(every))) == list(every)


@pytest.mark.parametrize("string", ["é" * 20, "Ж" * 20, "東" * 20, "😀" * 20, 'é"\n' * 20, "Ж\\" * 20])
def test_encoding_leaves_no_utf8_cache_on_a_string(string: str) -> None:
    fresh = "".join(list(string))
    size = sys.getsizeof(fresh)
    for options in ({}, {"ensure_ascii": True}, {"indent": 2}, {"sort_keys": True}, {"errors": "replace"}):
        json.dumps([fresh, {fresh: fresh}], **options)
        json.dumps_str([fresh, {fresh: fresh}], **options)
    json.dumps_into(fresh, bytearray(1000))
    json.dumps_lines([fresh])
    json.dumps_rows([fresh], [(fresh,)])
    b"".join(json.iter_chunks([fresh]))
    json.loads(standard.dumps(fresh, ensure_ascii=False))
    document = standard.dumps([fresh], ensure_ascii=False)
    whole = sys.getsizeof(document)
    json.loads(document)
    assert (sys.getsizeof(fresh), sys.getsizeof(document)) == (size, whole)


def test_a_cached_utf8_form_changes_nothing() -> None:
    fresh = 'Ж"я' * 20
    wanted = json.dumps({fresh: [fresh]})
    with pytest.raises(LookupError):
        "é".encode("ascii", fresh)  # CPython creates the cache when C code requests UTF-8.
    assert text.utf8_view(fresh).nbytes == len(fresh.encode())
    assert json.dumps({fresh: [fresh]}) == wanted


def test_a_string_of_a_megabyte_of_each_kind() -> None:
    for alphabet in (*ALPHABETS, "a" * 100_000 + "é", "a" * 100_000 + "東", "é" * 100_000 + "😀"):
        string = _fresh(alphabet, 1_000_003)
        assert json.loads(json.dumps(string)) == string
        assert json.loads(json.dumps_str(string)) == string


def test_the_replacement_of_a_surrogate_is_ascii_with_ensure_ascii() -> None:
    for string in ("\ud800", "é\udfff東", "😀\ud83d"):
        plain = json.dumps([string], errors="replace")
        written = json.dumps([string], errors="replace", ensure_ascii=True)
        assert written.isascii() and standard.loads(written) == standard.loads(plain)
