"""BSON 1.1 (https://bsonspec.org): Python objects to documents and back, converted once.

| function | what it does |
|---|---|
| `encode` | a document as `bytes` |
| `encode_into` | a document into a buffer that is there |
| `encode_many` | documents one behind the other, in chunks of bounded size |
| `dump_many` | the same, to a file or socket |

| type | what it stands for |
|---|---|
| `ObjectId`, `Timestamp`, `DatetimeMS` | ids and times that Python has no type for |
| `Decimal128`, `Int64`, `Binary`, `Regex`, `Code` | numbers, bytes and text of a kind that Python does not tell apart |
| `MinKey`, `MaxKey` | what is less, and greater, than all |
| `Symbol`, `Undefined`, `DBPointer` | the deprecated ones |

What has no form in BSON raises `BSONEncodeError` or, for its type, `BSONTypeError`, which is a `TypeError` too; both with the path to it.

>>> import onecopy.bson
>>> onecopy.bson.encode({"name": "Zürich"})
b'\\x17\\x00\\x00\\x00\\x02name\\x00\\x08\\x00\\x00\\x00Z\\xc3\\xbcrich\\x00\\x00'
"""

from __future__ import annotations

from onecopy._core import BSONChunks
from onecopy._core import bson_dump_many as dump_many
from onecopy._core import bson_encode as encode
from onecopy._core import bson_encode_into as encode_into
from onecopy._core import bson_encode_many as encode_many
from onecopy.bson._errors import BSONDecodeError, BSONEncodeError, BSONError, BSONTypeError
from onecopy.bson._types import (
    Binary,
    Code,
    DatetimeMS,
    DBPointer,
    Decimal128,
    Int64,
    MaxKey,
    MinKey,
    ObjectId,
    Regex,
    Symbol,
    Timestamp,
    Undefined,
)

__all__ = [
    "BSONChunks",
    "BSONDecodeError",
    "BSONEncodeError",
    "BSONError",
    "BSONTypeError",
    "Binary",
    "Code",
    "DBPointer",
    "DatetimeMS",
    "Decimal128",
    "Int64",
    "MaxKey",
    "MinKey",
    "ObjectId",
    "Regex",
    "Symbol",
    "Timestamp",
    "Undefined",
    "dump_many",
    "encode",
    "encode_into",
    "encode_many",
]
