"""Tests of the TDS responder: it responds as SQL Server would, byte for byte where [MS-TDS] is
exact."""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterator

import pytest

from tests.support.table import rows
from tests.support.tds import queries, stored, tokens, types
from tests.support.tds.packets import RPC, SQL_BATCH, Channel


def _all_rows(sql: str) -> bytes:
    result = next(iter(queries.statements(sql, {})))
    assert isinstance(result, queries.Rows)
    return b"".join(bytes(piece) for piece, _ in result.slices)


@pytest.mark.parametrize(
    ("value", "encoded"),
    [
        # The values of [MS-TDS] 2.2.5.5, computed by hand.
        ("cast(1 as bit)", "01 01"),
        ("cast(-2 as bigint)", "08 fe ff ff ff ff ff ff ff"),
        ("cast('1.50' as decimal(5,2))", "05 01 96 00 00 00"),
        ("cast('-1.5' as money)", "08 ff ff ff ff 68 c5 ff ff"),
        ("cast('0001-01-02' as date)", "03 01 00 00"),
        ("cast('00:00:01' as time(0))", "03 01 00 00"),
        ("cast('1900-01-02T00:00:01' as datetime)", "08 01 00 00 00 2c 01 00 00"),
        ("cast('0001-01-01T01:00:00+01:00' as datetimeoffset(0))", "08 00 00 00 00 00 00 3c 00"),
        ("N'é'", "02 00 e9 00"),
        ("'€'", "01 00 80"),
        ("nchar(0xD800)", "02 00 00 d8"),
        ("cast(null as nvarchar(max))", "ff ff ff ff ff ff ff ff"),
        ("cast(N'x' as nvarchar(max))", "02 00 00 00 00 00 00 00 02 00 00 00 78 00 00 00 00 00"),
    ],
)
def test_a_value_is_encoded_as_the_specification_says(value: str, encoded: str) -> None:
    assert _all_rows(f"select {value}") == tokens.ROW + bytes.fromhex(encoded)


def test_a_decimal_keeps_38_digits() -> None:
    digits = "1234567890123456789012345678901234567.8"
    row = _all_rows(f"select cast('{digits}' as decimal(38,1))")
    assert int.from_bytes(row[3:], "little") == int(digits.replace(".", ""))


def test_rows_of_the_table_do_not_depend_on_the_slices() -> None:
    together = b"".join(bytes(piece) for piece, _ in stored.table_rows(1000))
    one_by_one = b"".join(bytes(piece) for piece, _ in stored.table_rows(1000, 1))
    assert together == one_by_one
    assert together == b"".join(stored.one_row(1000, number) for number in range(1, 1001))


def test_a_projection_of_the_table_has_the_values_of_the_generator() -> None:
    _, encoded = stored.some_columns(3, ["id", "note"])
    number, note = types.kind("bigint"), types.nvarchar(124)
    assert list(encoded) == [tokens.ROW + number.encode(row.id) + note.encode(row.note) for row in rows(3)]


@pytest.mark.parametrize(
    "sql", ["select * from nope", "select nope", "frobnicate", "select cast(1 as nope)", "select 'x"]
)
def test_an_unsupported_statement_is_an_error(sql: str) -> None:
    with pytest.raises(queries.SqlError):
        list(queries.statements(sql, {}))


@pytest.fixture
def pair() -> Iterator[tuple[Channel, socket.socket]]:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        yield Channel(ours), theirs


@pytest.mark.parametrize("size", [0, 1, 503, 504, 505, 1008, 5000])
def test_a_message_is_split_into_packets_of_the_negotiated_size(pair: tuple[Channel, socket.socket], size: int) -> None:
    channel, peer = pair
    channel.packet_size = 512
    payload = bytes(index % 251 for index in range(size))
    channel.write(payload)
    channel.end()
    stream, lasts = peer.recv(1 << 20), []
    received = b""
    while stream:
        kind, status, length = struct.unpack_from(">BBH", stream)
        assert kind == 4
        assert length <= 512
        lasts.append(status)
        received, stream = received + stream[8:length], stream[length:]
    assert received == payload
    assert lasts == [0] * (len(lasts) - 1) + [1]


@pytest.mark.parametrize("kind", [SQL_BATCH, RPC])
def test_a_message_in_several_packets_is_reassembled(pair: tuple[Channel, socket.socket], kind: int) -> None:
    channel, peer = pair
    for status, part in ((0, b"abc"), (1, b"def")):
        peer.sendall(struct.pack(">BBH4x", kind, status, 8 + len(part)) + part)
    assert channel.receive() == (kind, b"abcdef")
