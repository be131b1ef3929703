"""Generates `vectors.jsonl`: BSON documents, and the value or the error that the specification
requires.

python -m tests.vectors.bson.make
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

FILE = Path(__file__).resolve().parent / "vectors.jsonl"
OID = "0123456789abcdef01234567"


class Case(NamedTuple):
    """One test vector, which is a line of the file.

    It has a name, the bytes, and their canonical Extended JSON or the reason of the error.
    """

    name: str
    data: bytes
    json: Any = None
    error: str = ""

    def line(self) -> str:
        """The vector as a line of JSON."""
        said = {"error": self.error} if self.error else {"json": self.json}
        return json.dumps({"name": self.name, "hex": self.data.hex(), **said}, ensure_ascii=False)


def document(*members: bytes) -> bytes:
    """A document: its length, its elements and a NUL."""
    body = b"".join(members)
    return struct.pack("<i", len(body) + 5) + body + b"\0"


def member(tag: int, data: bytes, key: str = "v") -> bytes:
    """An element of a document: its type tag, its key and the bytes of its value."""
    return bytes([tag]) + key.encode() + b"\0" + data


def text(value: str) -> bytes:
    """The bytes of a string value: its length, the text in UTF-8 and a NUL."""
    data = value.encode()
    return struct.pack("<i", len(data) + 1) + data + b"\0"


def binary(data: bytes, subtype: int) -> bytes:
    """The bytes of a binary value: its length, its subtype and the data."""
    return struct.pack("<iB", len(data), subtype) + data


def decimal(digits: int, exponent: int, negative: bool = False) -> bytes:
    """The 16 bytes of a decimal128 value."""
    return (int(negative) << 127 | exponent + 6176 << 113 | digits).to_bytes(16, "little")


def _double(value: float) -> bytes:
    return struct.pack("<d", value)


def _i32(value: int) -> bytes:
    return struct.pack("<i", value)


def _i64(value: int) -> bytes:
    return struct.pack("<q", value)


def _date(ms: int) -> Any:
    return {"$date": {"$numberLong": str(ms)}}


def _single() -> Iterator[tuple[str, int, bytes, Any]]:
    """The valid documents with one element `v`: for each a name, its type tag, the bytes of the
    value, and its Extended JSON."""
    for value, said in (
        (0.0, "0.0"), (-0.0, "-0.0"), (1.5, "1.5"), (-1234567890.125, "-1234567890.125"), (5e-324, "5e-324"),
        (float("inf"), "Infinity"), (float("-inf"), "-Infinity"),
    ):  # fmt: skip
        yield f"double {said}", 1, _double(value), {"$numberDouble": said}
    yield "double NaN", 1, bytes.fromhex("000000000000f87f"), {"$numberDouble": "NaN"}
    for name, said in (
        ("empty", ""), ("ASCII", "abc"), ("Latin-1", "Zürich"), ("Cyrillic", "Привет, мир"), ("CJK", "東京都"),
        ("emoji", "😀 a 😀"), ("NUL", "a\0b"), ("controls", "\x01\n\t\"\\"), ("64 bytes", "x" * 64),
        ("65 bytes", "x" * 65),
        ("long", "я東" * 3000),
    ):  # fmt: skip
        yield f"string {name}", 2, text(said), said
    yield "document empty", 3, document(), {}
    yield "document of one", 3, document(member(16, _i32(1), "a")), {"a": {"$numberInt": "1"}}
    yield "array empty", 4, document(), []
    items = [{"$numberInt": str(i)} for i in range(101)]
    yield "array of 101", 4, document(*(member(16, _i32(i), str(i)) for i in range(101))), items
    for subtype in (0, 1, 3, 4, 5, 9, 128, 255):
        data = bytes(range(16))
        in_base64 = {"base64": "AAECAwQFBgcICQoLDA0ODw==", "subType": f"{subtype:02x}"}
        yield f"binary {subtype}", 5, binary(data, subtype), {"$binary": in_base64}
    yield "binary empty", 5, binary(b"", 0), {"$binary": {"base64": "", "subType": "00"}}
    yield "binary 2", 5, binary(_i32(1) + b"\xff", 2), {"$binary": {"base64": "/w==", "subType": "02"}}
    yield "undefined", 6, b"", {"$undefined": True}
    yield "object id", 7, bytes.fromhex(OID), {"$oid": OID}
    yield "false", 8, b"\0", False
    yield "true", 8, b"\1", True
    for name, ms in (
        ("1970", 0), ("a millisecond before", -1), ("2026", 1_795_132_800_123), ("year 1", -62_135_596_800_000),
        ("end of year 9999", 253_402_300_799_999), ("year 10000", 253_402_300_800_000), ("least", -(1 << 63)),
    ):  # fmt: skip
        yield f"datetime {name}", 9, _i64(ms), _date(ms)
    yield "null", 10, b"", None
    for pattern, options in (("a.*", ""), ("^я", "imx"), ("", "")):
        parts = {"pattern": pattern, "options": options}
        data = pattern.encode() + b"\0" + options.encode() + b"\0"
        yield f"regex {pattern}/{options}", 11, data, {"$regularExpression": parts}
    pointer = {"$dbPointer": {"$ref": "db.c", "$id": {"$oid": OID}}}
    yield "pointer", 12, text("db.c") + bytes.fromhex(OID), pointer
    yield "code", 13, text("f()"), {"$code": "f()"}
    yield "symbol", 14, text("s"), {"$symbol": "s"}
    inner = document(member(16, _i32(1), "x"))
    scoped = text("f()") + inner
    yield "code with scope", 15, _i32(len(scoped) + 4) + scoped, {"$code": "f()", "$scope": {"x": {"$numberInt": "1"}}}
    for number in (0, 1, -1, 2**31 - 1, -(2**31)):
        yield f"int32 {number}", 16, _i32(number), {"$numberInt": str(number)}
    yield "timestamp", 17, struct.pack("<II", 42, 123456789), {"$timestamp": {"t": 123456789, "i": 42}}
    most = 2**32 - 1
    yield "timestamp most", 17, b"\xff" * 8, {"$timestamp": {"t": most, "i": most}}
    for number in (0, 1, 2**31, -(2**31) - 1, 2**53 + 1, 2**63 - 1, -(2**63)):
        yield f"int64 {number}", 18, _i64(number), {"$numberLong": str(number)}
    for name, data in (
        ("1.50", decimal(150, -2)), ("0", decimal(0, 0)), ("-0", decimal(0, 0, True)), ("0E+3", decimal(0, 3)),
        ("1E-6176", decimal(1, -6176)), ("9999999999999999999999999999999999", decimal(10**34 - 1, 0)),
        ("9.999999999999999999999999999999999E+6144", decimal(10**34 - 1, 6111)),
        ("Infinity", bytes(15) + b"\x78"), ("-Infinity", bytes(15) + b"\xf8"), ("NaN", bytes(15) + b"\x7c"),
    ):  # fmt: skip
        yield f"decimal128 {name}", 19, data, {"$numberDecimal": name}
    yield "least key", 255, b"", {"$minKey": 1}
    yield "greatest key", 127, b"", {"$maxKey": 1}


def _wrong() -> Iterator[tuple[str, bytes, str]]:
    """Byte strings that are not valid documents: for each a name, the bytes, and the reason."""
    whole = document(member(2, text("abc")))
    yield "no bytes", b"", "no length"
    yield "half a length", b"\5\0", "no length"
    yield "a length below five", b"\4\0\0\0\0", "the length is less than an empty document has"
    yield "a negative length", b"\xff\xff\xff\xff\0", "the length is less than an empty document has"
    yield "a byte missing", whole[:-1], "the length is more than there is"
    yield "a byte too many", whole + b"\0", "bytes after the document"
    yield "no NUL at the end", document()[:-1] + b"\1", "no NUL where the document ends"
    yield "an unknown tag", document(member(0x20, b"")), "no such type"
    yield "a key without an end", b"\x08\0\0\0\x0aab\0"[:7] + b"b", "no NUL after the key"
    yield "a key that is not UTF-8", document(b"\x0a\xff\0"), "the key is not UTF-8"
    yield "a string that is not UTF-8", document(member(2, _i32(2) + b"\xff\0")), "the string is not UTF-8"
    yield "a string of no length", document(member(2, _i32(0) + b"\0")), "the length of a string counts its NUL"
    yield "a string past the end", document(member(2, _i32(100) + b"abc\0")), "the string is longer than what is left"
    yield "a string without NUL", document(member(2, _i32(3) + b"abc")), "no NUL after the string"
    yield "a boolean of two", document(member(8, b"\2")), "a boolean is 0 or 1"
    yield "binary of negative length", document(member(5, _i32(-1) + b"\0")), "the length is negative"
    yield "binary past the end", document(member(5, _i32(9) + b"\0ab")), "the binary is longer than what is left"
    yield "old binary of another length", document(member(5, _i32(5) + b"\2" + _i32(2) + b"a")), "the lengths differ"
    yield "a document past the end", document(member(3, _i32(50) + b"\0")), "the length is more than there is"
    short = _i32(9) + text("f") + document()
    yield "code with a scope too short", document(member(15, short)), "the length is not that of code and scope"
    yield "half a decimal", document(member(19, bytes(8))), "the decimal is cut"


def cases() -> Iterator[Case]:
    """All test vectors, in the order of the file."""
    yield Case("empty", document(), {})
    for name, tag, data, said in _single():
        yield Case(name, document(member(tag, data)), {"v": said})
    for key in ("", "$a", "a.b", "ключ", "鍵", "😀", "k" * 70):
        yield Case(f"key {key or 'empty'}", document(member(10, b"", key)), {key: None})
    order = document(member(10, b"", "b"), member(10, b"", "_id"), member(10, b"", "a"))
    yield Case("members in their order", order, {"b": None, "_id": None, "a": None})
    deep, said = document(), {}
    for _ in range(50):
        deep, said = document(member(3, deep, "a")), {"a": said}
    yield Case("fifty levels", deep, said)
    for name, data, error in _wrong():
        yield Case(f"wrong: {name}", data, error=error)


def made() -> str:
    """The contents of the whole file."""
    return "".join(f"{case.line()}\n" for case in cases())


if __name__ == "__main__":
    FILE.write_text(made(), encoding="utf-8")
