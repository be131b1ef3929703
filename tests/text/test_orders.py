"""Text in each byte order, at any memory address, and of lengths around the block sizes."""

from __future__ import annotations

import pytest

import onecopy
from onecopy import text

ENCODINGS = ["utf-16-le", "utf-16-be", "utf-16", "utf-32-le", "utf-32-be", "utf-32"]
SCRIPTS = ["a", "aé", "Жa", "東京", "😀", "a😀Ж"]


@pytest.mark.parametrize("encoding", ENCODINGS)
@pytest.mark.parametrize("script", SCRIPTS)
def test_text_of_every_byte_order_and_alignment_matches_cpython(encoding: str, script: str) -> None:
    for n in (1, 2, 3, 31, 32, 33, 63, 64, 65, 129, 2047, 2048, 2049, 5000):
        string = (script * n)[:n]
        encoded = string.encode(encoding)
        assert text.encode(string, encoding) == encoded
        assert text.encoded_length(string, encoding) == len(encoded)
        for shift in (0, 1, 2, 3):
            view = memoryview(b"\xa5" * shift + encoded)[shift:]
            made = text.decode(view, encoding)
            assert made == encoded.decode(encoding)
            assert made.isascii() == string.isascii()
            place = bytearray(b"\xa5" * (shift + len(encoded) + 1))
            assert text.encode_into(string, place, shift, encoding) == len(encoded)
            assert place == b"\xa5" * shift + encoded + b"\xa5"


@pytest.mark.parametrize("encoding", ENCODINGS)
@pytest.mark.parametrize("script", SCRIPTS)
def test_an_invalid_unit_is_reported_at_every_position(encoding: str, script: str) -> None:
    for n in (3, 70, 2100):
        for at in (0, 1, n // 2, n - 1):
            string = (script * n)[:at] + "\udead" + (script * n)[at + 1 : n]
            encoded = string.encode(encoding, "surrogatepass")
            with pytest.raises(UnicodeDecodeError) as ours:
                text.decode(encoded, encoding)
            with pytest.raises(UnicodeDecodeError) as theirs:
                encoded.decode(encoding)
            assert (ours.value.start, ours.value.end) == (theirs.value.start, theirs.value.end)
            place = bytearray(b"\xa5" * (len(encoded) + 8))
            with pytest.raises(UnicodeEncodeError) as back:
                text.encode(string, encoding)
            assert back.value.start == at
            with pytest.raises(UnicodeEncodeError) as back:
                text.encode_into(string, place, 0, encoding)
            assert back.value.start == at
            assert place == b"\xa5" * len(place)


@pytest.mark.parametrize("encoding", ["utf-16-be", "utf-32-le", "utf-32-be"])
@pytest.mark.parametrize("script", SCRIPTS)
def test_no_byte_order_costs_a_copy(encoding: str, script: str) -> None:
    string = (script * 3000)[:3000]
    encoded = string.encode(encoding)
    with onecopy.ledger() as ledger:
        text.decode(encoded, encoding)
    is_kind = encoding == "utf-32-le" and not string.isascii() and max(string) > "\uffff"
    assert (ledger.taken, ledger.copied) == (len(encoded), len(encoded) if is_kind else 0)
    assert ledger.converted == len(encoded) - ledger.copied


def test_ascii_is_distinguished_from_similar_text_at_every_position() -> None:
    for n in (1, 2, 100, 5000, 100_000):
        good = b"x" * n
        assert text.ascii_decode(good) == good.decode()
        assert text.ascii_encode(good.decode()) == good
        assert text.latin_1_encode(good.decode()) == good
        bad = good[:-1] + b"\xe9"
        with pytest.raises(UnicodeDecodeError) as error:
            text.ascii_decode(bad)
        assert (error.value.start, error.value.end) == (n - 1, n)
        with pytest.raises(UnicodeEncodeError):
            text.ascii_encode(bad.decode("latin-1"))
        assert text.latin_1_encode(bad.decode("latin-1")) == bad
