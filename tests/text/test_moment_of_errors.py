"""Incremental decoders raise an error in the same part of a stream as CPython's, with the same
message.

All short strings of critical bytes are tested, divided into parts in every way.
"""

from __future__ import annotations

import codecs
import itertools
from collections.abc import Iterator
from typing import Any

import pytest

from onecopy import text

#: The limits of each range in the encodings: continuation bytes, lead bytes, surrogates, byte order
#: marks.
BYTES = b"\x00a\x7f\x80\x8f\x90\x9f\xa0\xbb\xbf\xc1\xc2\xc3\xd8\xdc\xe0\xe1\xed\xef\xf0\xf4\xfe\xff"
FEW = b"\x00a\x80\xa0\xd8\xdc\xed\xfe\xff"
POLICIES = ("strict", "replace", "ignore", "surrogatepass", "surrogateescape", "backslashreplace")


def cuts(data: bytes) -> Iterator[list[bytes]]:
    """Every way to divide the data into parts."""
    for bits in range(1 << max(len(data) - 1, 0)):
        ends = [n + 1 for n in range(len(data) - 1) if bits >> n & 1]
        yield [data[a:b] for a, b in itertools.pairwise([0, *ends, len(data)])]


def outcomes(decoder: Any, parts: list[bytes]) -> list[Any]:
    """The text of each part; the details of the error are the last item if a part is refused."""
    made: list[Any] = []
    for n, part in enumerate([*parts, b""]):
        try:
            made.append(decoder.decode(part, n == len(parts)))
        except UnicodeDecodeError as error:
            return [*made, (error.start, error.end, error.reason, error.object)]
        except UnicodeError:
            return [*made, None]  # It has no byte order mark.
    return made


def _is_allowed(parts: list[bytes], ours: list[Any], theirs: list[Any], encoding: str, errors: str) -> bool:
    """Returns true if the documentation mentions the difference between both outcomes."""
    n = next((n for n, pair in enumerate(zip(ours, theirs, strict=False)) if pair[0] != pair[1]), -1)
    if encoding in ("utf-16", "utf-32"):
        return theirs[-1] is None or (type(theirs[n]) is tuple and "BOM" in theirs[n][2])
    if encoding == "utf-8-sig" and b"".join(parts) in (b"\xef", b"\xef\xbb"):
        return n == len(parts) and theirs[n] == ""
    if errors == "surrogatepass" and encoding.startswith("utf-8") and type(theirs[n]) is tuple:
        start, _, _, data = theirs[n]
        # CPython refuses a surrogate that is split after its second byte.
        return ours[n] != theirs[n] and data[start:] in (bytes([0xED, b]) for b in range(0xA0, 0xC0))
    return False


def check(encoding: str, alphabet: bytes, n_bytes: int, begin: bytes = b"") -> int:
    """Compares all strings of at most ``n_bytes`` bytes of the alphabet, each after the bytes
    ``begin``.

    Returns the number of equal outcomes.
    """
    n_equal = 0
    decode = codecs.getincrementaldecoder(encoding)
    for errors in POLICIES:
        for n in range(n_bytes + 1):
            for characters in itertools.product(alphabet, repeat=n):
                for parts in cuts(bytes(characters)):
                    given = [begin, *parts]
                    ours, theirs = outcomes(text.Decoder(encoding, errors), given), outcomes(decode(errors), given)
                    if ours == theirs:
                        n_equal += 1
                    else:
                        assert _is_allowed(given, ours, theirs, encoding, errors), (given, errors, ours, theirs)
    return n_equal


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "ascii", "latin-1"])
def test_errors_of_bytes_occur_in_the_same_part_as_in_cpython(encoding: str) -> None:
    assert check(encoding, BYTES, 2) > 5000
    assert check(encoding, FEW, 4 if encoding == "utf-8" else 3) > 10_000


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-32-le", "utf-32-be"])
def test_errors_of_units_occur_in_the_same_part_as_in_cpython(encoding: str) -> None:
    marks = (
        [b""] if encoding[-2:] in ("le", "be") else ["\ufeff".encode(f"{encoding}-{order}") for order in ("le", "be")]
    )
    for mark in marks:
        assert check(encoding, b"\x00\x01\xd8\xdc\xff", 4, mark) > 20_000


def test_a_lead_byte_without_continuation_is_an_error_at_once() -> None:
    decoder = text.Decoder("utf-8", "surrogatepass")
    assert decoder.decode(b"\xc3") == ""
    with pytest.raises(UnicodeDecodeError) as caught:
        decoder.decode(b"\xe1")
    assert (caught.value.start, caught.value.end, caught.value.object) == (0, 1, b"\xc3\xe1")
    with pytest.raises(UnicodeDecodeError) as caught:
        decoder.decode(b"\xed\xa0")
    assert (caught.value.start, caught.value.end, caught.value.object) == (0, 1, b"\xc3\xed\xa0")
    # A surrogate waits for its last byte.
    decoder.reset()
    assert [decoder.decode(part) for part in (b"\xed", b"\xa0", b"\x80")] == ["", "", "\ud800"]
