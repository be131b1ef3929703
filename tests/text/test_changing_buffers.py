"""Buffers that change while they are read or written: each result is a canonical `str`, a valid
object or an error.

No byte outside of a destination is written.
"""

from __future__ import annotations

import pytest

from tests.support import changing
from tests.support.properties import scaled

# Arrow's buffers are tested with `insert_arrow`.
_READERS = [pair for pair in changing.readers() if pair[0] != "insert_arrow"]


@pytest.mark.parametrize("writer", ["thread", "process"])
@pytest.mark.parametrize(("reader", "encoding"), _READERS)
def test_a_buffer_that_changes_gives_canonical_text_or_an_error(reader: str, encoding: str, writer: str) -> None:
    changing.run(reader, encoding, writer, scaled(200))
