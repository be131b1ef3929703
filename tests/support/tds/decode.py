"""Decodes the values of parameters that drivers send."""

from __future__ import annotations

import struct
import uuid
from collections.abc import Callable
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal
from typing import Any

_DAY_1 = date(1, 1, 1).toordinal()
_PLP_NULL = b"\xff" * 8
#: Tokens of text types, and the encodings.
_TEXT = {
    0xF1: "utf-16-le",
    0xE7: "utf-16-le",
    0xEF: "utf-16-le",
    0x63: "utf-16-le",
    0xA7: "cp1252",
    0xAF: "cp1252",
    0x23: "cp1252",
}


def value(info: bytes, raw: bytes) -> Any:
    """The Python value for a TYPE_INFO and the encoded value; None for NULL.

    Raises:
        ValueError: the type is not supported.
    """
    token = info[0]
    if token in _FIXED:
        return _FIXED[token](raw)
    if token in (0x23, 0x63, 0x22):
        data = None if raw[:4] == b"\xff" * 4 else raw[4:]
    elif token == 0xF1:
        data = _unbounded(raw)
    elif token == 0x62:
        return _variant(raw)
    elif token in (0xA5, 0xA7, 0xAD, 0xAF, 0xE7, 0xEF):
        data = _unbounded(raw) if struct.unpack_from("<H", info, 1)[0] == 0xFFFF else _sized(raw)
    elif token in _BY_LENGTH:
        return _BY_LENGTH[token](info, raw[1:]) if raw[0] else None
    else:
        raise ValueError(f"a parameter of type 0x{token:02X} is echoed, not read")
    if data is None or token not in _TEXT:
        return data
    return data.decode(_TEXT[token], "surrogatepass" if _TEXT[token] == "utf-16-le" else "strict")


def _variant(raw: bytes) -> Any:
    """The int or str in a value of type sql_variant."""
    if raw[:4] == b"\0\0\0\0":
        return None
    return _integer(raw[6:]) if raw[4] == 0x38 else raw[13:].decode("utf-16-le", "surrogatepass")


def _sized(raw: bytes) -> bytes | None:
    return None if raw[:2] == b"\xff\xff" else raw[2:]


def _unbounded(raw: bytes) -> bytes | None:
    if raw[:8] == _PLP_NULL:
        return None
    data, at = bytearray(), 8
    while size := struct.unpack_from("<I", raw, at)[0]:
        data += raw[at + 4 : at + 4 + size]
        at += 4 + size
    return bytes(data)


def _integer(raw: bytes) -> int:
    # Only tinyint is unsigned.
    return int.from_bytes(raw, "little", signed=len(raw) > 1)


def _float(raw: bytes) -> float:
    found: float = struct.unpack("<f" if len(raw) == 4 else "<d", raw)[0]
    return found


def _money(raw: bytes) -> Decimal:
    if len(raw) == 4:
        return Decimal(struct.unpack("<i", raw)[0]).scaleb(-4)
    high, low = struct.unpack("<iI", raw)
    return Decimal((high << 32) + low).scaleb(-4)


def _datetime(raw: bytes) -> datetime:
    if len(raw) == 4:
        days, minutes = struct.unpack("<HH", raw)
        return datetime(1900, 1, 1) + timedelta(days=days, minutes=minutes)
    days, ticks = struct.unpack("<iI", raw)
    # Units of 1/300 s, which SQL Server rounds to milliseconds.
    return datetime(1900, 1, 1) + timedelta(days=days, milliseconds=round(ticks * 10 / 3))


def _decimal(info: bytes, raw: bytes) -> Decimal:
    digits = str(int.from_bytes(raw[1:], "little"))
    # Not scaleb, which rounds to the context's 28 digits.
    return Decimal((0 if raw[0] else 1, tuple(map(int, digits)), -info[3]))


def _date(raw: bytes) -> date:
    return date.fromordinal(int.from_bytes(raw, "little") + _DAY_1)


def _time(raw: bytes, scale: int) -> time:
    micro = int.from_bytes(raw, "little") * 10 ** (7 - scale) // 10
    return (datetime.min + timedelta(microseconds=micro)).time()


def _datetime2(raw: bytes, scale: int) -> datetime:
    return datetime.combine(_date(raw[-3:]), _time(raw[:-3], scale))


def _offset(raw: bytes, scale: int) -> datetime:
    minutes = struct.unpack("<h", raw[-2:])[0]
    utc = _datetime2(raw[:-2], scale).replace(tzinfo=timezone.utc)
    return utc.astimezone(timezone(timedelta(minutes=minutes)))


_FIXED: dict[int, Callable[[bytes], Any]] = {
    0x30: _integer,
    0x32: lambda raw: raw != b"\0",
    0x34: _integer,
    0x38: _integer,
    0x7F: _integer,
    0x3B: _float,
    0x3E: _float,
    0x3C: _money,
    0x3D: _datetime,
}
_BY_LENGTH: dict[int, Callable[[bytes, bytes], Any]] = {
    0x24: lambda _, raw: uuid.UUID(bytes_le=raw),
    0x26: lambda _, raw: _integer(raw),
    0x68: lambda _, raw: raw != b"\0",
    0x6A: _decimal,
    0x6C: _decimal,
    0x6D: lambda _, raw: _float(raw),
    0x6E: lambda _, raw: _money(raw),
    0x6F: lambda _, raw: _datetime(raw),
    0x28: lambda _, raw: _date(raw),
    0x29: lambda info, raw: _time(raw, info[1]),
    0x2A: lambda info, raw: _datetime2(raw, info[1]),
    0x2B: lambda info, raw: _offset(raw, info[1]),
}
