"""Buffers that change while they are read or written to: each result is a canonical `str`, sound objects or an error, and no
byte is written outside of one.
"""

from __future__ import annotations

import pytest

from tests.support import changing

_ENCODINGS = ("utf-8", "utf-16-le", "utf-16-be", "utf-32-le", "latin-1", "ascii", "shift_jis", "utf-8-sig")
_BY_ENCODING = ("text.decode", "text.Decoder", "text.is_valid", "text.transcode", "text.decode_column")
_OTHERS = (
    "json.loads",
    "json.loads_lines",
    "json.Fragment",
    "bson.decode",
    "bson.RawDocument",
    "bson.from_json",
    "bson.encode",
    "parameters",
    "outputs",
)


@pytest.mark.parametrize("writer", ["thread", "process"])
@pytest.mark.parametrize("encoding", _ENCODINGS)
@pytest.mark.parametrize("reader", _BY_ENCODING)
def test_a_text_that_changes_gives_canonical_text_or_an_error(reader: str, encoding: str, writer: str) -> None:
    changing.run(reader, encoding, writer)


@pytest.mark.parametrize("writer", ["thread", "process"])
@pytest.mark.parametrize("reader", _OTHERS)
def test_another_buffer_that_changes_gives_canonical_text_or_an_error(reader: str, writer: str) -> None:
    changing.run(reader, "", writer)
