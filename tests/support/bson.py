"""A reference reader of BSON for the formats of rows.

It returns each value with the name of its BSON type and without conversions. It follows
https://bsonspec.org, shares no code with onecopy's writer, and checks lengths and terminators.
"""

from __future__ import annotations

import struct
import uuid
from datetime import date, datetime, time, timedelta
from decimal import Context, Decimal
from typing import NamedTuple

import onecopy
from tests.support.values import Value

EPOCH = datetime(1970, 1, 1)
MS = timedelta(milliseconds=1)


class Element(NamedTuple):
    """A BSON value: the name of its type in the specification, and its content."""

    type: str
    value: object


_FIXED = {1: ("double", "<d"), 8: ("boolean", "<?"), 9: ("datetime", "<q"), 16: ("int32", "<i"), 18: ("int64", "<q")}
_EXACT = Context(prec=34, Emin=-6143, Emax=6144)


def _decimal128(data: bytes) -> Decimal:
    """A decimal from its 16 bytes: a sign bit, 14 bits of exponent and 113 bits of digits.

    IEEE 754 also defines an encoding with a shorter digit field; an assertion refuses it, since no
    writer produces it.
    """
    bits = int.from_bytes(data, "little")
    sign, special = bits >> 127, bits >> 122 & 31
    if special == 31:
        return Decimal("NaN")
    if special == 30:
        return Decimal("-Infinity" if sign else "Infinity")
    assert bits >> 125 & 3 != 3
    digits = tuple(map(int, str(bits & (1 << 113) - 1)))
    return Decimal((sign, digits, (bits >> 113 & 0x3FFF) - 6176))


def _text(data: bytes, at: int) -> tuple[str, int]:
    (length,) = struct.unpack_from("<i", data, at)
    end = at + 4 + length
    assert length >= 1 and end <= len(data) and data[end - 1] == 0
    return str(data[at + 4 : end - 1], "utf-8"), end


def _value(tag: int, data: bytes, at: int) -> tuple[Element, int]:
    if tag in _FIXED:
        name, form = _FIXED[tag]
        (value,) = struct.unpack_from(form, data, at)
        return Element(name, value), at + struct.calcsize(form)
    match tag:
        case 2:
            text, at = _text(data, at)
            return Element("string", text), at
        case 4:
            (length,) = struct.unpack_from("<i", data, at)
            (row,) = documents(data[at : at + length])
            assert list(row) == [str(i) for i in range(len(row))]
            return Element("array", list(row.values())), at + length
        case 5:
            length, subtype = struct.unpack_from("<iB", data, at)
            end = at + 5 + length
            assert length >= 0 and end <= len(data)
            return Element("binary", (subtype, data[at + 5 : end])), end
        case 10:
            return Element("null", None), at
        case 19:
            return Element("decimal128", _decimal128(data[at : at + 16])), at + 16
    raise AssertionError(f"rows have no value of type {tag}")


def documents(data: bytes) -> list[dict[str, Element]]:
    """The BSON documents that follow one another in ``data``; duplicate keys are an error."""
    found, rest = [], memoryview(data)
    while rest:
        (length,) = struct.unpack_from("<i", rest)
        assert 5 <= length <= len(rest) and rest[length - 1] == 0
        document, rest = bytes(rest[: length - 1]), rest[length:]
        row: dict[str, Element] = {}
        at = 4
        while at < len(document):
            end = document.index(0, at + 1)
            key = str(document[at + 1 : end], "utf-8")
            assert key not in row
            row[key], at = _value(document[at], document, end + 1)
        assert at == len(document)
        found.append(row)
    return found


def fits_decimal128(value: Decimal) -> bool:
    """Returns true if decimal128 (34 digits) represents the value without rounding."""
    return bool(_EXACT.plus(value) == value) or value.is_nan()


def of_value(value: Value) -> Element | None:
    """The expected BSON value for an example value of docs/reference/values.md, derived from its
    Python value.

    Returns ``None`` if BSON cannot represent the value.
    """
    match value.python:
        case None:
            return Element("null", None)
        case bool(it):
            return Element("boolean", it)
        case int(it) if it >= 2**63:
            return Element("decimal128", Decimal(it))
        case int(it):
            return Element("int32" if -(2**31) <= it < 2**31 else "int64", it)
        case float(it):
            return Element("double", it)
        case Decimal() as it:
            return Element("decimal128", it) if fits_decimal128(it) else None
        case str(it):
            return Element("string", it)
        case list(it):
            return Element("array", [of_value(Value("", item, "")) for item in it])
        case bytes(it):
            return Element("binary", (0, it))
        case uuid.UUID() as it:
            return Element("binary", (4, it.bytes))
        case datetime() as it:
            utc = it.replace(tzinfo=None) - (it.utcoffset() or timedelta())
            return Element("datetime", (utc - EPOCH) // MS)
        case date() as it:
            return Element("datetime", (datetime(it.year, it.month, it.day) - EPOCH) // MS)
        case time() | timedelta() | onecopy.Range() | tuple():
            return Element("string", value.json.strip('"'))
    raise AssertionError(f"no form of {value.python!r} is known")


def of_pymongo(element: Element) -> object:
    """The Python value that pymongo decodes from the element, but a `Decimal` for a
    `Decimal128`."""
    match element:
        case Element("datetime", int(it)):
            return EPOCH + it * MS
        case Element("binary", (4, bytes(it))):
            return uuid.UUID(bytes=it)
        case Element("binary", (0, bytes(it))):
            return it
        case Element("array", list(it)):
            return [of_pymongo(item) for item in it]
    return element.value
