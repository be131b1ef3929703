"""`text.transcode` between buffers and files, and `text.detect`."""

from __future__ import annotations

import array
import io
import mmap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from onecopy import text
from tests.support.properties import tried

#: The module as `Any`, as used without a type checker.
untyped: Any = text
UNITS = ("utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-32-be", "latin-1", "ascii")
POLICIES = ("strict", "replace", "ignore", "surrogatepass", "backslashreplace")


@tried(500)
@given(
    st.binary(max_size=40) | st.text("aé\x80Ж東😀\ufeff", max_size=20).map(str.encode),
    st.sampled_from(UNITS),
    st.sampled_from(UNITS),
    st.sampled_from(POLICIES),
)
def test_any_two_encodings_convert_as_by_cpython(data: bytes, source: str, target: str, errors: str) -> None:
    def failure(call: Callable[[], Any]) -> Any:
        try:
            call()
        except UnicodeDecodeError as e:
            return e.object, e.start, e.end, e.reason
        except UnicodeEncodeError as e:
            return e.object[e.start if len(e.object) > 1 else 0]

    place = bytearray(b"\xa5" * 2000)
    refused = failure(lambda: data.decode(source, errors))
    # A character that cannot be encoded is reported first if it precedes the malformed sequence.
    good = data[: refused[1]] if refused else data
    unwritten = failure(lambda: good.decode(source, errors).encode(target, errors))
    expected = unwritten or refused
    assert failure(lambda: text.transcode(data, place, source, target, errors)) == expected
    if expected is None:
        encoded = data.decode(source, errors).encode(target, errors)
        assert place[: len(encoded)] == encoded
        del place[: len(encoded)]
    assert set(place) == {0xA5}


def test_files_are_converted_in_both_directions_in_any_block_size(tmp_path: Path) -> None:
    string = "Zürich, 東京 😀\r\n" * 40_000
    path = tmp_path / "text"
    path.write_bytes(string.encode("utf-16"))
    out = io.BytesIO()
    with path.open("rb") as file:
        assert text.transcode(file, out, "utf-16", "gb18030") == len(out.getvalue())
    assert out.getvalue().decode("gb18030") == string
    out.seek(0)
    with path.open("wb", buffering=0) as raw:
        text.transcode(out, raw, "gb18030", "utf-8")
    assert path.read_bytes().decode() == string
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as mapped:
        place = array.array("H", bytes(2 * len(string) + 200_000))
        n = text.transcode(mapped, place, "utf-8", "utf-16-le")
        assert place.tobytes()[:n].decode("utf-16-le") == string


def test_a_destination_that_is_too_small_is_an_error_and_unchanged() -> None:
    place = bytearray(b"....")
    with pytest.raises(ValueError, match="the text is 8 bytes long in utf-16-le, and the destination has 4"):
        text.transcode(b"abcd", place, "utf-8", "utf-16-le")
    assert place == b"...."
    big = bytearray(1_000_000)
    with pytest.raises(ValueError, match="the text is 1200000 bytes long"):
        text.transcode("é".encode() * 600_000, big, "utf-8", "utf-16-le")
    assert text.transcode(b"", big, "utf-8", "ascii") == 0
    assert not any(big)


def test_read_only_destinations_are_refused() -> None:
    with pytest.raises(BufferError, match=r"not writable|read-only"):
        untyped.transcode(b"a", b"x", "utf-8", "ascii")
    with pytest.raises(TypeError):
        untyped.transcode(b"a", 5, "utf-8", "ascii")
    with pytest.raises(TypeError, match="binary mode"):
        untyped.transcode(io.StringIO("a"), bytearray(4), "utf-8", "ascii")
    with pytest.raises(ValueError, match='`errors` must be one of "strict", "replace", "ignore"'):
        text.transcode(b"a", bytearray(4), "utf-8", "ascii", "surrogateescape")


def test_an_error_in_a_file_has_its_position_and_the_valid_part_is_written() -> None:
    out = io.BytesIO()
    data = b"a" * 300_000 + b"\xff" + b"b"
    with pytest.raises(UnicodeDecodeError, match="invalid start byte at byte 300000 of the file"):
        text.transcode(io.BytesIO(data), out, "utf-8", "utf-8")
    assert out.getvalue() == b"a" * 300_000
    with pytest.raises(UnicodeEncodeError, match="character maps to <undefined> at byte 2 of the file"):
        text.transcode(io.BytesIO("ab東".encode()), io.BytesIO(), "utf-8", "koi8-r")


def test_a_file_that_would_block_is_an_error() -> None:
    class Busy:
        def read(self, _size: int) -> None:
            return None

        def write(self, _data: bytes) -> int:
            return 0

    with pytest.raises(BlockingIOError):
        untyped.transcode(Busy(), bytearray(4), "utf-8", "utf-8")
    with pytest.raises(BlockingIOError):
        text.transcode(b"a", Busy(), "utf-8", "utf-8")


@pytest.mark.parametrize(
    ("data", "encoding", "certainty"),
    [
        (b"", "utf-8", "certain"),
        (b"plain", "ascii", "certain"),
        ("Zürich".encode(), "utf-8", "certain"),
        ("Zürich".encode("utf-8-sig"), "utf-8-sig", "certain"),
        ("Zürich".encode("utf-16"), "utf-16", "certain"),
        ("Zürich".encode("utf-16-be"), "utf-16-be", "likely"),
        ("Zürich".encode("utf-32-le"), "utf-32-le", "likely"),
        ("Население города растёт.".encode("cp1251"), "windows-1251", "guess"),
        ("東京都は日本の首都です。".encode("euc-jp"), "euc-jp", "guess"),
        (b"\x00\x01\x02\x00\x00\xff", None, "likely"),
    ],
)
def test_the_encoding_of_bytes_is_detected_with_a_reason(data: bytes, encoding: str | None, certainty: str) -> None:
    found = text.detect(data)
    assert (found.encoding, found.certainty) == (encoding, certainty)
    assert found.reason
    if encoding is not None:
        assert text.decode(bytearray(data), encoding) == data.decode(encoding)
