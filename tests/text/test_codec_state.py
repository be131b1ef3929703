"""Incremental decoders and encoders for `codecs`: their state, and text files that use them."""

from __future__ import annotations

import codecs
import io
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from onecopy import text
from tests.support.properties import tried

UNITS = (
    "utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-32-le", "utf-32-be", "latin-1", "ascii",
)  # fmt: skip
LEGACY = ("shift_jis", "euc-jp", "iso-2022-jp", "gb18030", "gbk", "big5", "euc-kr", "windows-1252")
#: Characters of one to four bytes in each of these encodings, in all combinations, and line ends of
#: all kinds.
SAMPLES = {
    "utf-8": "aЖ東😀\n😀東Жa\r\n\u0301é\r😀\n\nz",
    "utf-16": "aЖ東😀\n😀東Жa\r\n\u0301é\r😀\n\nz",
    "utf-32": "aЖ東😀\n😀東Жa\r\n\u0301é\r😀\n\nz",
    "shift_jis": "a東ｱあ\nあｱ東a\r\nソЖ\r東\n\nｱz",
    "gb18030": "a東é😀\n😀é東a\r\n€Ж\r東\n\n😀z",
    "iso-2022-jp": "a東あ\nあ¥東a\r\nソЖ\r東\n\n¥z",
    "utf-8-sig": "aЖ東😀\n\ufeff😀",
    "utf-16-be": "aЖ東😀\n😀\r\nz",
    "utf-32-le": "aЖ東😀\n😀\r\nz",
    "euc-jp": "a東ｱ\nあ\r\nz",
    "big5": "a東\n京\r\nz",
    "euc-kr": "a한\n국\r\nz",
    "windows-1252": "aé€\r\nz",
}


@pytest.fixture(autouse=True)
def registered() -> Iterator[None]:
    """Registers onecopy's codecs, whose names begin with `onecopy-`, during each test."""
    codecs.register(text.find_codec)
    yield
    codecs.unregister(text.find_codec)


def opened(data: bytes, encoding: str, **options: Any) -> io.TextIOWrapper:
    """A text file over ``data`` that decodes the bytes in small parts."""
    file = io.TextIOWrapper(io.BytesIO(data), encoding=encoding, **options)
    file._CHUNK_SIZE = 7  # type: ignore[attr-defined]
    return file


def read_by_character(file: io.TextIOWrapper) -> list[tuple[int, str]]:
    """Reads a file character by character; returns each with the position before it."""
    read = []
    while True:
        at = file.tell()
        character = file.read(1)
        read.append((at, character))
        if not character:
            return read


@pytest.mark.parametrize("newline", ["", None, "\n"])
@pytest.mark.parametrize("encoding", SAMPLES)
def test_a_file_returns_to_each_of_its_characters(encoding: str, newline: str | None) -> None:
    string = SAMPLES[encoding] * 3
    data = string.encode(f"onecopy-{encoding}")
    assert data == text.encode(string, encoding)
    file = opened(data, f"onecopy-{encoding}", newline=newline)
    expected = io.StringIO(string, newline=newline).read()
    read = read_by_character(file)
    assert "".join(character for _, character in read) == expected
    for n, (at, _) in enumerate(read):
        file.seek(at)
        assert file.tell() == at
        assert file.read() == expected[n:]
    file.seek(0)
    assert file.read() == expected


@pytest.mark.parametrize("newline", ["", None])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-be", "utf-32", "utf-32-le"])
def test_positions_in_a_file_are_those_of_cpython(encoding: str, newline: str | None) -> None:
    data = (SAMPLES[encoding] * 3).encode(encoding)
    ours, theirs = opened(data, f"onecopy-{encoding}", newline=newline), opened(data, encoding, newline=newline)
    positions = read_by_character(theirs)
    assert read_by_character(ours) == positions
    for at, _ in positions:
        ours.seek(theirs.seek(at))
        assert ours.readline() == theirs.readline()
        assert ours.tell() == theirs.tell()


@pytest.mark.parametrize("encoding", ["utf-16", "utf-32", "utf-8-sig"])
def test_a_big_endian_file_that_grows_after_its_end_can_be_read_further(encoding: str) -> None:
    marked = encoding if encoding == "utf-8-sig" else f"{encoding}-be"
    for name in (encoding, f"onecopy-{encoding}"):
        raw = io.BytesIO()
        file = io.TextIOWrapper(raw, encoding=name)
        assert file.read() == ""
        raw.write(("東" if encoding == "utf-8-sig" else "\ufeff東").encode(marked))
        raw.seek(0)
        assert file.read() == "東"
        end = raw.seek(0, 2)
        raw.write("京".encode("utf-8" if encoding == "utf-8-sig" else marked))
        raw.seek(end)
        assert file.read() == "京"


@pytest.mark.parametrize("encoding", ["utf-16", "utf-32"])
def test_a_stream_that_ended_inside_its_first_unit_may_begin_with_a_mark_again(encoding: str) -> None:
    ours: Any = text.Decoder(encoding, "replace")
    theirs: Any = codecs.getincrementaldecoder(encoding)("replace")
    for data in (b"", b"a", b"\xfe"):
        assert ours.decode(data, True) == theirs.decode(data, True)
        assert ours.getstate() == theirs.getstate()
    mark_and_text = "\ufeff東".encode(f"{encoding}-be")
    assert ours.decode(mark_and_text, True) == theirs.decode(mark_and_text, True) == "東"
    assert ours.getstate() == theirs.getstate()


def _written(encoding: str, steps: list[tuple[str, Any]], begin: bytes = b"") -> bytes:
    raw = io.BytesIO(begin)
    raw.seek(0, 2)
    file = io.TextIOWrapper(raw, encoding=encoding, newline="")
    for method, argument in steps:
        getattr(file, method)(argument)
        file.flush()
    made = raw.getvalue()
    file.detach()
    return made


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-32"])
def test_files_are_written_with_one_mark_as_by_cpython(encoding: str) -> None:
    steps: list[tuple[str, Any]] = [
        ("write", "a東"), ("write", "😀"), ("seek", 0), ("write", "z"), ("seek", 0), ("truncate", 0), ("write", "é"),
    ]  # fmt: skip
    for n in range(len(steps) + 1):
        for begin in (b"", "x".encode(encoding)):
            assert _written(f"onecopy-{encoding}", steps[:n], begin) == _written(encoding, steps[:n], begin)


def test_a_file_in_iso_2022_jp_is_written_in_parts() -> None:
    made = _written("onecopy-iso-2022-jp", [("write", part) for part in ("a", "東", "京", "¥", "z")])
    # A file does not finalize its encoder.
    assert made == text.encode("a東京¥z", "iso-2022-jp").removesuffix(b"\x1b(B")


def test_a_file_in_iso_2022_jp_that_is_continued_is_written_as_by_cpython() -> None:
    # At a position other than 0, a file does not know the character set, and sets the state 0.
    for begin in (b"", text.encode("a", "iso-2022-jp"), b'\x1b$B$"'):
        for steps in (
            ["a"],
            ["\n", "東"],
            ["東", "a"],
            ["", "¥"],
            ["東", 2, "京"],
            ["東", 5, "z"],
            [3, "z"],
            [0, "z", "東"],
        ):
            calls = [("write" if isinstance(step, str) else "seek", step) for step in steps]
            assert _written("onecopy-iso-2022-jp", calls, begin) == _written("iso2022_jp", calls, begin)


def test_a_part_after_the_state_0_begins_with_the_character_set() -> None:
    ours, theirs = text.Encoder("iso-2022-jp"), codecs.getincrementalencoder("iso2022_jp")()
    for parts in (["a"], ["", "a"], ["東", "a"], ["¥"], [""], []):
        for encoder in (ours, theirs):
            encoder.setstate(0)
        for part in parts:
            assert ours.encode(part) == theirs.encode(part)
        assert ours.encode("", True) == theirs.encode("", True)
        assert ours.encode("z", True) == theirs.encode("z", True) == b"z"


@pytest.mark.parametrize("encoding", [*UNITS, *LEGACY])
@pytest.mark.parametrize("errors", ["replace", "surrogateescape"])
@tried(150)
@given(data=st.data())
def test_a_decoder_with_the_state_of_another_continues_like_it(encoding: str, errors: str, data: Any) -> None:
    sample = SAMPLES.get(encoding, "a").encode(f"onecopy-{encoding}" if encoding in SAMPLES else encoding)
    pieces = st.sampled_from([sample, sample[:5], sample[2:7], b"\x1b$B", b"\x1b(", b"$B!", b"\x1b\x1b(J"])
    parts = data.draw(st.lists(st.binary(max_size=4) | pieces, max_size=5))
    constant, resumed = text.Decoder(encoding, errors), text.Decoder(encoding, errors)
    for n, part in enumerate([*parts, b""]):
        state = resumed.getstate()
        assert type(state) is tuple and type(state[0]) is bytes and type(state[1]) is int
        resumed, waiting = text.Decoder(encoding, errors), text.Decoder(encoding, errors)
        resumed.setstate(state)
        assert resumed.getstate() == state
        # Pending bytes precede the following ones.
        waiting.setstate((b"", state[1]))
        made = [
            outcome(decoder, given, n == len(parts))
            for decoder, given in ((constant, part), (resumed, part), (waiting, state[0] + part))
        ]
        assert made[0] == made[1] == made[2]
        if not isinstance(made[0], str):
            assert resumed.getstate() == constant.getstate() == state
            return


def outcome(decoder: text.Decoder, data: bytes, final: bool) -> Any:
    """The decoded text; if decoding raises, the details of the error."""
    try:
        return decoder.decode(data, final)
    except UnicodeDecodeError as error:
        return (error.start, error.end, error.reason, error.object)
    except ValueError as error:
        return (str(error).partition(" at ")[0],)


@pytest.mark.parametrize(
    "encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-32", "utf-32-be", "latin-1", "ascii"]
)
@tried(200)
@given(parts=st.lists(st.binary(max_size=3) | st.sampled_from(["東", "\ufeff", "😀a"]), max_size=5))
def test_states_are_exchanged_with_the_decoders_of_cpython(encoding: str, parts: list[bytes | str]) -> None:
    ours: Any = text.Decoder(encoding, "replace")
    theirs: Any = codecs.getincrementaldecoder(encoding)("replace")
    for part in parts:
        data = part if isinstance(part, bytes) else part.encode(encoding, "replace")
        try:
            expected = theirs.decode(data)
        except UnicodeError:
            return  # It has no byte order mark.
        assert ours.decode(data) == expected
        assert ours.getstate() == theirs.getstate()
        state = ours.getstate()
        ours.reset()
        theirs.reset()
        ours.setstate(state)
        theirs.setstate(state)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-be", "utf-32", "latin-1"])
def test_states_are_exchanged_with_the_encoders_of_cpython(encoding: str) -> None:
    ours: Any = text.Encoder(encoding)
    theirs: Any = codecs.getincrementalencoder(encoding)()
    for part in ("a", "é", ""):
        assert ours.getstate() == theirs.getstate()
        assert ours.encode(part) == theirs.encode(part)
    assert ours.getstate() == theirs.getstate() == 0
    assert ours.encode("z", True) == theirs.encode("z", True)
    assert ours.encode("z") == theirs.encode("z")
    new = text.Encoder(encoding).getstate()
    for encoder in (ours, theirs):
        encoder.setstate(new)
    assert ours.encode("a") == theirs.encode("a")
    for encoder in (ours, theirs):
        encoder.setstate(0)
    assert ours.encode("a") == theirs.encode("a")


def test_an_encoder_of_iso_2022_jp_continues_in_the_character_set_of_its_state() -> None:
    string = "a東¥京z"
    expected = text.encode(string, "iso-2022-jp")
    for n in range(len(string) + 1):
        encoder, other = text.Encoder("iso-2022-jp"), text.Encoder("iso-2022-jp")
        made = encoder.encode(string[:n])
        with pytest.raises(UnicodeEncodeError):
            encoder.encode("東\U0010ffff")
        other.setstate(encoder.getstate())
        assert made + other.encode(string[n:], True) == expected
        assert other.getstate() == text.Encoder("iso-2022-jp").getstate()


def test_states_that_an_encoding_does_not_have_are_refused() -> None:
    for encoding, number in (("utf-8", 1), ("utf-16", 3), ("iso-2022-jp", 9), ("shift_jis", 1), ("utf-8-sig", 2)):
        decoder = text.Decoder(encoding)
        with pytest.raises(ValueError, match="has no state"):
            decoder.setstate((b"", number))
        with pytest.raises(ValueError, match="has no state"):
            text.Encoder(encoding).setstate(number + (1 if encoding == "utf-8-sig" else 0))
    untyped: Any = text.Decoder("utf-8")
    for wrong in (None, b"", ("", 0), (b"", "0"), 3):
        with pytest.raises(TypeError):
            untyped.setstate(wrong)
    with pytest.raises(TypeError):
        untyped.setstate()


def test_line_ends_are_translated_by_the_decoder_of_io() -> None:
    for encoding in ("utf-8", "utf-16", "shift_jis", "iso-2022-jp"):
        string = SAMPLES[encoding]
        data = text.encode(string, encoding)
        decoder = io.IncrementalNewlineDecoder(text.Decoder(encoding), translate=True)  # type: ignore[arg-type]
        parts = []
        for at in range(len(data)):
            state = decoder.getstate()
            decoder.reset()
            decoder.setstate(state)
            parts.append(decoder.decode(data[at : at + 1]))
        parts.append(decoder.decode(b"", final=True))
        assert "".join(parts) == io.StringIO(string, newline=None).read()


@pytest.mark.parametrize("encoding", SAMPLES)
def test_a_registered_name_is_found_in_any_spelling(encoding: str) -> None:
    # CPython 3.15 passes the hyphens to a search function, which earlier versions replace.
    expected = f"onecopy-{text.Decoder(encoding).encoding}"
    for separator in ("-", "_", " "):
        name = f"onecopy-{encoding}".replace("-", separator).replace("_", separator)
        for written in (name, name.upper()):
            assert codecs.lookup(written).name == expected
            assert "a".encode(written) == text.encode("a", encoding)


def test_a_name_without_the_prefix_or_of_an_unknown_encoding_is_not_found() -> None:
    for name in ("onecopy", "onecopy-", "onecopy-nonsense", "onecopyutf-8", "other-utf-8", ""):
        assert text.find_codec(name) is None
    with pytest.raises(LookupError, match="onecopy-nonsense"):
        codecs.lookup("onecopy-nonsense")


def test_a_registered_encoding_works_for_str_and_bytes() -> None:
    assert codecs.lookup("onecopy-gb18030").name == "onecopy-gb18030"
    assert "😀".encode("onecopy_gb18030") == text.encode("😀", "gb18030")
    assert b"\xff".decode("onecopy-gb18030", "replace") == "\ufffd"
    assert b"".join(codecs.iterencode(["東", "京"], "onecopy-iso-2022-jp")) == text.encode("東京", "iso-2022-jp")
    assert "".join(codecs.iterdecode([b"\x93", b"\x8c"], "onecopy-shift_jis")) == "東"
    with pytest.raises(UnicodeDecodeError):
        b"\xff".decode("onecopy-gb18030")
    with pytest.raises(LookupError, match="unknown encoding"):
        text.codec_info("nonsense")
    assert text.codec_info("latin1", "mine").name == "mine"
