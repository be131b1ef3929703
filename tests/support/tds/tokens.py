"""Encoding of the tokens of a response, [MS-TDS] 2.2.7."""

from __future__ import annotations

import struct
from typing import NamedTuple

from tests.support.tds.types import COLLATION

DONE, DONEPROC, DONEINPROC = 0xFD, 0xFE, 0xFF
MORE, ERROR, COUNT, ATTENTION = 0x01, 0x02, 0x10, 0x20
ROW = b"\xd1"
#: The kind of statement in a DONE token; Microsoft's drivers only trust the row count of INSERT and
#: similar ones.
SELECT, INSERT = 0xC1, 0xC3
SERVER = "onecopy-tds"


class Column(NamedTuple):
    """A column of a result: its name and its TYPE_INFO."""

    name: str
    info: bytes
    nullable: bool = True


def _short(text: str) -> bytes:
    """A B_VARCHAR: the length in UTF-16 units in one byte, then the text in UTF-16."""
    data = text.encode("utf-16-le")
    return bytes((len(data) // 2,)) + data


def _long(text: str) -> bytes:
    """A US_VARCHAR: the length in UTF-16 units in two bytes, then the text in UTF-16."""
    data = text.encode("utf-16-le")
    return struct.pack("<H", len(data) // 2) + data


def metadata(columns: list[Column]) -> bytes:
    """A COLMETADATA token, in the form of TDS 7.2 and later."""
    parts = [struct.pack("<BH", 0x81, len(columns))]
    for column in columns:
        parts += (struct.pack("<IH", 0, 0x01 if column.nullable else 0), column.info, _short(column.name))
    return b"".join(parts)


def done(token: int, status: int, n_rows: int = 0, command: int = SELECT) -> bytes:
    """A DONE, DONEPROC or DONEINPROC token for a statement that returned or changed ``n_rows``
    rows."""
    return struct.pack("<BHHQ", token, status | (COUNT if n_rows or status == 0 else 0), command, n_rows)


def message(number: int, text: str, severity: int = 16, state: int = 1) -> bytes:
    """An ERROR token, or an INFO token if ``severity`` is at most 10.

    Severity 20 and above means that the server ends the connection.
    """
    body = (
        struct.pack("<iBB", number, state, severity) + _long(text) + _short(SERVER) + _short("") + struct.pack("<i", 1)
    )
    return struct.pack("<BH", 0xAB if severity <= 10 else 0xAA, len(body)) + body


def return_status(value: int = 0) -> bytes:
    """A RETURNSTATUS token: the return value of a procedure."""
    return struct.pack("<Bi", 0x79, value)


def return_handle(handle: int) -> bytes:
    """A RETURNVALUE token with the handle of a prepared statement, an output parameter of type
    int."""
    return return_value(0, "", b"\x26\x04", struct.pack("<Bi", 4, handle))


def return_value(ordinal: int, name: str, info: bytes, raw: bytes) -> bytes:
    """A RETURNVALUE token with the value of an output parameter."""
    return struct.pack("<BH", 0xAC, ordinal) + _short(name) + struct.pack("<BIH", 1, 0, 0) + info + raw


def _change(kind: int, new: bytes, old: bytes) -> bytes:
    body = bytes((kind,)) + new + old
    return struct.pack("<BH", 0xE3, len(body)) + body


def login_answer(database: str, packet_size: int, version: int) -> bytes:
    """The tokens of a successful login: ENVCHANGE, LOGINACK and DONE."""
    ack = b"\x01" + struct.pack(">I", version) + _short("Microsoft SQL Server") + bytes((16, 0, 0x10, 0))
    return b"".join(
        (
            _change(1, _short(database), _short("master")),
            _change(7, bytes((len(COLLATION),)) + COLLATION, b"\0"),
            _change(4, _short(str(packet_size)), _short("4096")),
            struct.pack("<BH", 0xAD, len(ack)) + ack,
            struct.pack("<BHHQ", DONE, 0, 0, 0),
        )
    )


def transaction_began(descriptor: bytes) -> bytes:
    """An ENVCHANGE token of type 8: a transaction has begun; ``descriptor`` (eight bytes)
    identifies it."""
    return _change(8, b"\x08" + descriptor, b"\0")


def transaction_ended(descriptor: bytes, committed: bool) -> bytes:
    """An ENVCHANGE token of type 9 (committed) or 10 (rolled back)."""
    return _change(9 if committed else 10, b"\0", b"\x08" + descriptor)
