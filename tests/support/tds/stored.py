"""The rows of ``t`` as ROW tokens, encoded once into a file that is mapped and sent in slices of
whole rows."""

from __future__ import annotations

import mmap
import os
import struct
import threading
from array import array
from collections.abc import Iterator
from functools import cache

from tests.support.drivers import CACHE
from tests.support.table import COLUMNS, STORED, VERSION, rows
from tests.support.tds import types
from tests.support.tds.tokens import ROW, Column

_KINDS = (
    types.kind("bigint"),
    types.nvarchar(40),
    types.nvarchar(24),
    # 120 characters, of which the last may be outside the BMP.
    types.nvarchar(124),
    types.kind("float"),
    types.decimal(12, 2),
    types.datetime2(6),
    types.nvarchar(20),
)
#: Columns of ``t``, in order.
T_COLUMNS = [Column(name, kind.info, name != "id") for name, kind in zip(COLUMNS, _KINDS, strict=True)]
#: Rows sent at once: about 150 KB.
ROWS_A_SLICE = 512
#: The id's eight bytes start after the ROW token and the length byte.
_ID_AT = 2
_LOCK = threading.Lock()


class _Stored:
    """The first ``size`` rows of ``t`` in a mapped file, and the offset at which each row ends."""

    def __init__(self, size: int) -> None:
        base = CACHE / "tds"
        base.mkdir(parents=True, exist_ok=True)
        data, index = base / f"t{size}-{VERSION}.rows", base / f"t{size}-{VERSION}.ends"
        if not index.exists():
            ends = array("Q")
            at = 0
            unfinished = data.with_suffix(f".{os.getpid()}")
            with open(unfinished, "wb") as file:
                for row in rows(size):
                    encoded = ROW + b"".join(kind.encode(cell) for kind, cell in zip(_KINDS, row, strict=True))
                    at += file.write(encoded)
                    ends.append(at)
            unfinished.replace(data)
            unfinished.write_bytes(ends.tobytes())
            unfinished.replace(index)
        self.ends = array("Q")
        self.ends.frombytes(index.read_bytes())
        with open(data, "rb") as file:
            self.rows = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))


@cache
def _stored(size: int) -> _Stored:
    return _Stored(size)


def _smallest(n_rows: int) -> _Stored:
    with _LOCK:
        return _stored(next((size for size in STORED if size >= n_rows), STORED[-1]))


def table_rows(n_rows: int, rows_a_slice: int = ROWS_A_SLICE) -> Iterator[tuple[memoryview | bytearray, int]]:
    """The first ``n_rows`` rows of ``t`` in slices; each is bytes of whole rows and their
    number."""
    stored = _smallest(n_rows)
    for first in range(0, n_rows, STORED[-1]):
        here = min(STORED[-1], n_rows - first)
        start = 0
        for row in range(0, here, rows_a_slice):
            stop = min(row + rows_a_slice, here)
            piece = stored.rows[start : stored.ends[stop - 1]]
            yield (_with_later_ids(piece, stored.ends[row:stop], start, row, first) if first else piece), stop - row
            start = stored.ends[stop - 1]


def _with_later_ids(piece: memoryview, ends: array[int], start: int, row: int, first: int) -> bytearray:
    """A copy of ``piece`` with greater ids: rows that follow the stored ones repeat their
    values."""
    copy = bytearray(piece)
    at = start
    for number, end in enumerate(ends, first + row + 1):
        struct.pack_into("<q", copy, at - start + _ID_AT, number)
        at = end
    return copy


def one_row(n_rows: int, row_id: int) -> bytes:
    """The row of ``t`` with the id ``row_id``, or nothing if ``row_id`` is not in 1 to
    ``n_rows``."""
    if not 1 <= row_id <= n_rows:
        return b""
    stored = _smallest(n_rows)
    index = (row_id - 1) % STORED[-1]
    start = stored.ends[index - 1] if index else 0
    row = bytearray(stored.rows[start : stored.ends[index]])
    struct.pack_into("<q", row, _ID_AT, row_id)
    return bytes(row)


def some_columns(n_rows: int, names: list[str]) -> tuple[list[Column], Iterator[bytes]]:
    """The columns ``names`` of ``t``, and its first ``n_rows`` rows with only these columns.

    The rows are encoded when they are requested.

    Raises:
        KeyError: ``t`` has no such column.
    """
    places = []
    for name in names:
        if name not in COLUMNS:
            raise KeyError(name)
        places.append(COLUMNS.index(name))
    encoded = (ROW + b"".join(_KINDS[place].encode(row[place]) for place in places) for row in rows(n_rows))
    return [T_COLUMNS[place] for place in places], encoded
