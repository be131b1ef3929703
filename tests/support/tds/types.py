"""SQL Server's types, [MS-TDS] 2.2.5.4 and 2.2.5.5: their TYPE_INFO, and the encoding of values."""

from __future__ import annotations

import re
import struct
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from functools import partial
from typing import Any

from tests.support.tds import decode

#: SQL_Latin1_General_CP1_CI_AS: varchar is Windows-1252.
COLLATION = bytes((0x09, 0x04, 0xD0, 0x00, 0x34))
_PLP_NULL = b"\xff" * 8
_PLP_UNKNOWN = b"\xfe" + b"\xff" * 7
#: Long values are sent in chunks of this size, as by a server.
_PIECE = 8_000


@dataclass(frozen=True)
class Kind:
    """A column type: its TYPE_INFO, and a function that encodes a Python value."""

    info: bytes
    encode: Callable[[Any], bytes]


def _sized(size: int, pack: Callable[[Any], bytes]) -> Callable[[Any], bytes]:
    """An encoder for types whose value follows its length in one byte; length 0 is NULL."""
    prefix = bytes((size,))

    def encode(value: Any) -> bytes:
        return b"\0" if value is None else prefix + pack(value)

    return encode


def _fixed(token: int, size: int, layout: str, convert: Callable[[Any], Any]) -> Kind:
    packer = struct.Struct(layout)
    return Kind(bytes((token, size)), _sized(size, lambda value: packer.pack(convert(value))))


def _to_bool(value: Any) -> int:
    return int(bool(int(value)))


def _money(value: Any) -> bytes:
    scaled = int(Decimal(value).scaleb(4).to_integral_value())
    return struct.pack("<iI", scaled >> 32, scaled & 0xFFFF_FFFF)


def decimal(precision: int, scale: int) -> Kind:
    """The type decimal(precision, scale): a sign byte, then the magnitude in 4, 8, 12 or 16 bytes,
    depending on the precision."""
    size = 4 if precision <= 9 else 8 if precision <= 19 else 12 if precision <= 28 else 16

    def pack(value: Any) -> bytes:
        # Not scaleb, which rounds to the context's 28 digits; SQL Server has 38.
        sign, digits, exponent = Decimal(value).as_tuple()
        number = int("".join(map(str, digits)))
        shift = scale + int(exponent)
        number = number * int(10**shift) if shift >= 0 else number // int(10**-shift)
        return bytes((0 if sign else 1,)) + number.to_bytes(size, "little")

    return Kind(bytes((0x6A, size + 1, precision, scale)), _sized(size + 1, pack))


_DAY_1 = date(1, 1, 1).toordinal()


def _days(value: date) -> bytes:
    return (value.toordinal() - _DAY_1).to_bytes(3, "little")


def _time_size(scale: int) -> int:
    return 3 if scale <= 2 else 4 if scale <= 4 else 5


def _ticks(value: datetime | time, scale: int) -> bytes:
    micro = ((value.hour * 60 + value.minute) * 60 + value.second) * 1_000_000 + value.microsecond
    units = micro // 10 ** (6 - scale) if scale <= 6 else micro * 10
    return units.to_bytes(_time_size(scale), "little")


def _parse(cls: type[Any]) -> Callable[[Any], Any]:
    # Before Python 3.11 a fraction must have three or six digits.
    micro = partial(re.compile(r"\.(\d+)").sub, lambda found: f".{found[1]:0<6.6}")
    return lambda value: cls.fromisoformat(micro(value)) if isinstance(value, str) else value


def sql_date() -> Kind:
    """The type date: days since 0001-01-01 in three bytes."""
    parse = _parse(date)
    return Kind(b"\x28", _sized(3, lambda value: _days(parse(value))))


def sql_time(scale: int) -> Kind:
    """The type time(scale): units of 10^-scale seconds since midnight."""
    parse = _parse(time)
    return Kind(bytes((0x29, scale)), _sized(_time_size(scale), lambda value: _ticks(parse(value), scale)))


def datetime2(scale: int) -> Kind:
    """The type datetime2(scale): a time, then a date."""
    parse = _parse(datetime)

    def pack(value: Any) -> bytes:
        moment = parse(value)
        return _ticks(moment, scale) + _days(moment.date())

    return Kind(bytes((0x2A, scale)), _sized(_time_size(scale) + 3, pack))


def datetimeoffset(scale: int) -> Kind:
    """The type datetimeoffset(scale): a time and a date in UTC, then the offset in minutes."""
    parse = _parse(datetime)

    def pack(value: Any) -> bytes:
        moment = parse(value)
        offset = moment.utcoffset() or timedelta()
        utc = moment.replace(tzinfo=None) - offset
        return _ticks(utc, scale) + _days(utc.date()) + struct.pack("<h", int(offset.total_seconds()) // 60)

    return Kind(bytes((0x2B, scale)), _sized(_time_size(scale) + 5, pack))


def _datetime() -> Kind:
    parse = _parse(datetime)

    def pack(value: Any) -> bytes:
        moment = parse(value)
        days = moment.toordinal() - date(1900, 1, 1).toordinal()
        since = timedelta(
            hours=moment.hour, minutes=moment.minute, seconds=moment.second, microseconds=moment.microsecond
        )
        return struct.pack("<iI", days, round(since.total_seconds() * 300))

    return Kind(b"\x6f\x08", _sized(8, pack))


def _as_utf16(value: Any) -> bytes:
    # A lone surrogate is valid data for SQL Server; it is sent unchanged.
    return str(value).encode("utf-16-le", "surrogatepass")


def _as_1252(value: Any) -> bytes:
    return value if isinstance(value, bytes) else str(value).encode("cp1252")


def _variable(token: int, size: int, collation: bytes, convert: Callable[[Any], bytes]) -> Kind:
    def encode(value: Any) -> bytes:
        if value is None:
            return b"\xff\xff"
        data = convert(value)
        return struct.pack("<H", len(data)) + data

    return Kind(struct.pack("<BH", token, size) + collation, encode)


def _unbounded(token: int, collation: bytes, convert: Callable[[Any], bytes]) -> Kind:
    def encode(value: Any) -> bytes:
        if value is None:
            return _PLP_NULL
        data = convert(value)
        pieces = [_PLP_UNKNOWN if len(data) > _PIECE else struct.pack("<Q", len(data))]
        for start in range(0, len(data), _PIECE):
            piece = data[start : start + _PIECE]
            pieces += (struct.pack("<I", len(piece)), piece)
        return b"".join([*pieces, b"\0\0\0\0"])

    return Kind(struct.pack("<BH", token, 0xFFFF) + collation, encode)


def nvarchar(size: int | None) -> Kind:
    """The type nvarchar(size), in UTF-16 units; nvarchar(max) if ``size`` is None."""
    if size is None:
        return _unbounded(0xE7, COLLATION, _as_utf16)
    return _variable(0xE7, size * 2, COLLATION, _as_utf16)


def varchar(size: int | None) -> Kind:
    """The type varchar(size), in bytes of Windows-1252; varchar(max) if ``size`` is None."""
    return _unbounded(0xA7, COLLATION, _as_1252) if size is None else _variable(0xA7, size, COLLATION, _as_1252)


def varbinary(size: int | None) -> Kind:
    """The type varbinary(size), in bytes; varbinary(max) if ``size`` is None."""
    return _unbounded(0xA5, b"", bytes) if size is None else _variable(0xA5, size, b"", bytes)


def _padded(token: int, n: int, collation: bytes, convert: Callable[[Any], bytes], blank: bytes) -> Kind:
    """The type char(n), nchar(n) or binary(n): values are filled to the length n with ``blank``."""
    size = n * len(blank)

    def pad(value: Any) -> bytes:
        data = convert(value)
        return data + blank * ((size - len(data)) // len(blank))

    return _variable(token, size, collation, pad)


def _xml() -> Kind:
    """The type xml without a schema."""
    return Kind(b"\xf1\0", _unbounded(0xE7, COLLATION, _as_utf16).encode)


def _variant() -> Kind:
    """The type sql_variant for an int or nvarchar: its value begins with the type of the
    content."""

    def encode(value: Any) -> bytes:
        if value is None:
            return b"\0\0\0\0"
        if isinstance(value, int):
            body = b"\x38\0" + struct.pack("<i", value)
        else:
            body = b"\xe7\x07" + COLLATION + struct.pack("<H", 8000) + _as_utf16(value)
        return struct.pack("<I", len(body)) + body

    return Kind(b"\x62" + struct.pack("<I", 8009), encode)


def _guid(value: Any) -> bytes:
    return (value if isinstance(value, uuid.UUID) else uuid.UUID(value)).bytes_le


_SIMPLE: dict[str, Callable[[], Kind]] = {
    "bit": lambda: _fixed(0x68, 1, "<B", _to_bool),
    "tinyint": lambda: _fixed(0x26, 1, "<B", int),
    "smallint": lambda: _fixed(0x26, 2, "<h", int),
    "int": lambda: _fixed(0x26, 4, "<i", int),
    "bigint": lambda: _fixed(0x26, 8, "<q", int),
    "real": lambda: _fixed(0x6D, 4, "<f", float),
    "float": lambda: _fixed(0x6D, 8, "<d", float),
    "money": lambda: Kind(b"\x6e\x08", _sized(8, _money)),
    "smallmoney": lambda: _fixed(0x6E, 4, "<i", lambda value: int(Decimal(value).scaleb(4))),
    "datetime": _datetime,
    "date": sql_date,
    "uniqueidentifier": lambda: Kind(b"\x24\x10", _sized(16, _guid)),
    "xml": _xml,
    "sql_variant": _variant,
    "sysname": lambda: nvarchar(128),
    "text": lambda: varchar(None),
}
#: Types of fixed length: token, collation, conversion, and the fill byte.
_PADDED: dict[str, tuple[int, bytes, Callable[[Any], bytes], bytes]] = {
    "char": (0xAF, COLLATION, _as_1252, b" "),
    "nchar": (0xEF, COLLATION, _as_utf16, b" \0"),
    "binary": (0xAD, b"", bytes, b"\0"),
}


def kind(name: str) -> Kind:
    """The type with an SQL name such as ``decimal(38,10)``, ``nvarchar(max)`` or ``datetime2(7)``.

    Raises:
        KeyError: the type is not supported.
    """
    match = re.fullmatch(r"\s*(\w+)\s*(?:\(\s*(\w+)\s*(?:,\s*(\d+)\s*)?\))?\s*", name)
    if match is None:
        raise KeyError(name)
    base, first, second = match[1].lower(), match[2], match[3]
    if base in ("decimal", "numeric"):
        return decimal(int(first or 18), int(second or 0))
    if base in ("time", "datetime2", "datetimeoffset"):
        scale = int(first or 7)
        return {"time": sql_time, "datetime2": datetime2, "datetimeoffset": datetimeoffset}[base](scale)
    if base in ("nvarchar", "varchar", "varbinary"):
        size = None if (first or "").lower() == "max" else int(first or 30)
        return {"nvarchar": nvarchar, "varchar": varchar, "varbinary": varbinary}[base](size)
    if base in _PADDED:
        token, collation, convert, blank = _PADDED[base]
        return _padded(token, int(first or 1), collation, convert, blank)
    return _SIMPLE[base]()


@dataclass(frozen=True)
class Parameter:
    """A parameter of a remote procedure call, in its received encoding: it can be returned to the
    client without decoding."""

    name: str
    info: bytes
    raw: bytes
    is_output: bool = False

    def value(self) -> Any:
        """The parameter's Python value.

        Raises:
            ValueError: the responder cannot decode the type, only return it to the client.
        """
        return decode.value(self.info, self.raw)


def before_2008(info: bytes) -> bytes:
    """The TYPE_INFO of a column for clients of TDS 7.2.

    The types that SQL Server 2008 added (date, time, datetime2, datetimeoffset) become text.
    """
    return _text_before_2008(info).info if info[0] in _SINCE_2008 else info


def as_before_2008(info: bytes, raw: bytes) -> bytes:
    """A value of type ``info`` in the encoding for clients of TDS 7.2: dates and times become
    text."""
    if info[0] not in _SINCE_2008:
        return raw
    found = decode.value(info, raw)
    return _text_before_2008(info).encode(None if found is None else _shown(found, _scale(info)))


#: token -> characters of the text without a fraction.
_SINCE_2008 = {0x28: 10, 0x29: 8, 0x2A: 19, 0x2B: 26}


def _scale(info: bytes) -> int:
    return info[1] if len(info) > 1 else 0


def _text_before_2008(info: bytes) -> Kind:
    return nvarchar(_SINCE_2008[info[0]] + (_scale(info) + 1 if _scale(info) else 0))


def _shown(value: date | datetime | time, scale: int) -> str:
    """A date or time as text, with ``scale`` fractional digits, in SQL Server's format."""
    if not isinstance(value, datetime | time):
        return value.isoformat()
    shown = value.strftime("%H:%M:%S") + (f".{value.microsecond:06d}0"[: scale + 1] if scale else "")
    if isinstance(value, time):
        return shown
    offset = value.strftime("%z")
    return f"{value.date().isoformat()} {shown}" + (f" {offset[:3]}:{offset[3:]}" if offset else "")


def of_info(info: bytes) -> Kind:
    """The type that a TYPE_INFO describes, with which values can be encoded.

    Raises:
        ValueError: the type is not supported.
    """
    token = info[0]
    if token in (0xE7, 0xA7, 0xA5):
        size = struct.unpack_from("<H", info, 1)[0]
        make = {0xE7: nvarchar, 0xA7: varchar, 0xA5: varbinary}[token]
        return make(None if size == 0xFFFF else size // 2 if token == 0xE7 else size)
    if token in (0x6A, 0x6C):
        return Kind(info, decimal(info[2], info[3]).encode)
    if token in (0x29, 0x2A, 0x2B):
        return {0x29: sql_time, 0x2A: datetime2, 0x2B: datetimeoffset}[token](info[1])
    for make_simple in _SIMPLE.values():
        if (simple := make_simple()).info == info:
            return simple
    raise ValueError(f"an output parameter of type 0x{token:02X}")


#: token -> bytes of TYPE_INFO after it, for types whose value starts with a one-byte length.
_BYTE_LENGTH = {
    0x24: 1,
    0x26: 1,
    0x68: 1,
    0x6A: 3,
    0x6C: 3,
    0x6D: 1,
    0x6E: 1,
    0x6F: 1,
    0x28: 0,
    0x29: 1,
    0x2A: 1,
    0x2B: 1,
}
_SHORT_LENGTH = {0xA5: 2, 0xA7: 7, 0xAD: 2, 0xAF: 7, 0xE7: 7, 0xEF: 7}
_LONG_LENGTH = {0x22: 4, 0x23: 9, 0x62: 4, 0x63: 9}
_FIXED = {0x30: 1, 0x32: 1, 0x34: 2, 0x38: 4, 0x3B: 4, 0x3E: 8, 0x7F: 8, 0x3D: 8, 0x3C: 8}


def read_type_and_value(data: bytes, at: int) -> tuple[bytes, bytes, int]:
    """The TYPE_INFO at offset ``at``, the encoded value after it, and the offset after both.

    Raises:
        ValueError: the type is not supported.
    """
    token = data[at]
    extra = 0 if token in _FIXED else _BYTE_LENGTH.get(token, _SHORT_LENGTH.get(token, _LONG_LENGTH.get(token)))
    if extra is None:
        raise ValueError(f"parameter type 0x{token:02X}")
    info = data[at : at + 1 + extra]
    raw, end = read_value(info, data, at + 1 + extra)
    return info, raw, end


def read_value(info: bytes, data: bytes, start: int) -> tuple[bytes, int]:
    """The encoded value of type ``info`` at offset ``start``, and the offset after it."""
    token = info[0]
    if token in _FIXED:
        end = start + _FIXED[token]
    elif token in _BYTE_LENGTH:
        end = start + 1 + data[start]
    elif token in _LONG_LENGTH:
        size = struct.unpack_from("<i", data, start)[0]
        end = start + 4 + max(size, 0)
    elif token == 0xF1 or struct.unpack_from("<H", info, 1)[0] == 0xFFFF:
        end = start + 8
        if data[start:end] != _PLP_NULL:
            while size := struct.unpack_from("<I", data, end)[0]:
                end += 4 + size
            end += 4
    else:
        size = struct.unpack_from("<H", data, start)[0]
        end = start + 2 + (0 if size == 0xFFFF else size)
    return data[start:end], end
