"""The legacy encodings of the WHATWG Encoding Standard, compared with CPython's tables.

Only documented differences are allowed.
"""

from __future__ import annotations

import codecs
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from onecopy import text
from tests.support.properties import tried

#: Single-byte encodings, and CPython's name for each.
SINGLE = {
    **{name: name for name in (
        *(f"iso-8859-{n}" for n in (2, 3, 4, 5, 6, 7, 8, 10, 13, 14, 15, 16)), "koi8-r", "koi8-u",
        *(f"windows-125{n}" for n in range(9)),
    )},
    "ibm866": "cp866", "iso-8859-8-i": "iso8859_8", "macintosh": "mac_roman", "x-mac-cyrillic": "mac_cyrillic",
    "windows-874": "cp874",
}  # fmt: skip
MULTI = ("big5", "euc-jp", "euc-kr", "gb18030", "gbk", "iso-2022-jp", "shift_jis")
POLICIES = ("strict", "replace", "ignore", "backslashreplace", "xmlcharrefreplace", "namereplace", "surrogateescape")


def outcome(call: Callable[..., Any], *args: Any) -> Any:
    """The result of a call; if it raises, the details of the error.

    The name of the encoding is omitted, since CPython reports `charmap` for many encodings.
    """
    try:
        return call(*args)
    except (UnicodeDecodeError, UnicodeEncodeError) as e:
        return type(e), e.object, e.start, e.end, e.reason
    except TypeError as e:
        return type(e)  # Until 3.11 CPython wraps its message.


@pytest.mark.parametrize(("name", "theirs"), SINGLE.items())
def test_every_byte_is_as_in_cpython_except_those_it_leaves_undefined(name: str, theirs: str) -> None:
    expected = {"koi8-u": {0xAE: "\u045e", 0xBE: "\u040e"}, "windows-1255": {0xCA: "\u05ba"}}.get(name, {})
    for byte in range(256):
        data = bytes([byte])
        ours, cpython = outcome(text.decode, data, name), outcome(data.decode, theirs)
        if byte in expected:
            assert ours == expected[byte]
        elif name.startswith("windows") and 0x80 <= byte < 0xA0 and not isinstance(cpython, str):
            # The standard maps them to the controls with the same number.
            assert ours == chr(byte)
        else:
            assert ours == cpython, hex(byte)
        if isinstance(ours, str):
            assert text.encode(ours, name) == data


def test_korean_is_as_in_cpython_for_every_pair_of_bytes() -> None:
    for first in range(0x80, 0x100):
        for second in range(0x100):
            data = bytes([first, second])
            theirs = outcome(data.decode, "cp949")
            if isinstance(theirs, str):
                assert outcome(text.decode, data, "euc-kr") == theirs


_letters = st.text("aé€ЖяΩא東京あｱ가😀\n\\~\x81", max_size=30)
_names = st.sampled_from([*SINGLE, *MULTI, "x-user-defined"])


@tried(400)
@given(_letters, _names, st.sampled_from(POLICIES))
def test_text_round_trips_and_errors_match_cpython(string: str, name: str, errors: str) -> None:
    made = outcome(lambda: text.encode(string, name, errors))
    theirs = SINGLE.get(name)
    if theirs is not None and name[:3] in ("iso", "mac", "ibm"):
        assert made == outcome(lambda: string.encode(theirs, errors))
    if isinstance(made, bytes):
        assert text.encoded_length(string, name) == len(made) if errors == "strict" else True
        place = bytearray(len(made))
        assert text.encode_into(string, place, 0, name, errors) == len(made)
        assert place == made
        if errors == "strict" and name in SINGLE:
            assert text.decode(made, name) == string
    else:
        with pytest.raises((UnicodeEncodeError, TypeError)):
            text.encode(string, name, errors)


@tried(400)
@given(
    st.binary(max_size=30),
    st.sampled_from([name for name in SINGLE if name[:3] in ("iso", "mac", "ibm")]),
    st.sampled_from(POLICIES),
)
def test_any_bytes_are_accepted_or_refused_as_by_cpython(data: bytes, name: str, errors: str) -> None:
    expected = outcome(lambda: data.decode(SINGLE[name], errors))
    assert outcome(lambda: text.decode(data, name, errors)) == expected
    strict = outcome(lambda: data.decode(SINGLE[name]))
    assert text.is_valid(data, name) == isinstance(strict, str)
    assert text.find_invalid(data, name) == (None if isinstance(strict, str) else strict[2:])


@pytest.mark.parametrize("name", MULTI)
def test_characters_in_both_tables_have_the_same_bytes(name: str) -> None:
    # CPython has several variants of these tables, each with other additions, some of which assign
    # two
    # codes to a character.
    tables = {
        "euc-kr": ["cp949"], "big5": ["big5", "big5hkscs"], "shift_jis": ["cp932", "shift_jis"],
    }.get(name, [name])  # fmt: skip
    plain = "shift_jis" if name in ("shift_jis", "euc-jp") else tables[0]
    same = 0
    for code in (*range(0x20, 0x7F), *range(0x3041, 0x3097), *range(0x4E00, 0x9FA6), *range(0xAC00, 0xD7A4)):
        char = chr(code)
        ours = outcome(text.encode, char, name)
        theirs = [outcome(char.encode, table) for table in (plain, *tables)]
        if isinstance(ours, bytes) and all(isinstance(bytes_, bytes) for bytes_ in theirs):
            # 仝 has two codes in Big5, and the standard uses the other one.
            assert ours in theirs or (name, char) == ("big5", "仝"), char
            assert text.decode(ours, name) == char
            same += 1
    assert same > 5000


def test_malformed_sequences_are_errors_with_position_and_reason() -> None:
    assert text.find_invalid(b"ab\x81\xff", "shift_jis") == (2, 4, "illegal multibyte sequence")
    assert text.find_invalid(b"ab\x81", "shift_jis") == (2, 3, "incomplete multibyte sequence")
    assert text.find_invalid(b"\x81\x30\x81", "gb18030") == (0, 3, "incomplete multibyte sequence")
    assert text.find_invalid(b"a\x9f", "iso-8859-8") is None
    with pytest.raises(UnicodeDecodeError) as e:
        text.decode(b"a\xa1", "iso-8859-8")
    assert (e.value.encoding, e.value.object, e.value.reason) == (
        "iso-8859-8", b"a\xa1", "character maps to <undefined>",
    )  # fmt: skip
    with pytest.raises(UnicodeEncodeError) as f:
        text.encode("a\udc80\U0001f600b", "koi8-r")
    assert (f.value.encoding, f.value.start, f.value.end) == ("koi8-r", 1, 3)


def test_custom_error_handlers_are_called_and_may_resume_anywhere() -> None:
    def skip_two(error: UnicodeError) -> tuple[str, int]:
        assert isinstance(error, UnicodeDecodeError)
        return f"<{error.start}>", error.start + 2

    codecs.register_error("skip_two", skip_two)
    assert text.decode(b"a\xa1bc\xa1d", "iso-8859-8", "skip_two") == "a<1>c<4>"
    # The state of an encoding with states continues after the malformed sequence.
    broken = b"\x1b$B\x24\x22\xff\x24\x24\x1b(B"
    assert text.decode(broken, "iso-2022-jp", "surrogateescape") == "あ\udcffい"
    assert text.encode("あ😀い", "iso-2022-jp", "namereplace") == "あ\\N{GRINNING FACE}い".encode("iso-2022-jp")


def test_labels_of_the_standard_and_names_of_cpython_are_accepted() -> None:
    assert text.decode(b"\x80", "iso-8859-1") == "\x80"
    assert text.decode(b"\x80", "cp1252") == "€"
    assert text.decode(b"\x80", "windows_1252") == "€"
    assert text.decode(b"\xa4", "latin-9") == "€"
    assert not text.is_valid(b"\x80", "us-ascii")
    for name in ("utf-7", "replacement", "iso-2022-kr", "cp437", "", "ütf-8"):
        with pytest.raises(LookupError, match="unknown encoding"):
            text.decode(b"", name)
