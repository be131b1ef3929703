"""Conversion between BSON 1.1 documents (https://bsonspec.org) and Python objects.

| function | what it does |
|---|---|
| `decode`, `decode_all` | decode one document, or concatenated documents |
| `decode_iter` | decode documents one at a time from a buffer, a file or chunks |
| `RawDocument` | a document whose fields are decoded on access |
| `encode` | encode a document as `bytes` |
| `encode_into` | encode a document into a given buffer |
| `encode_many` | encode documents as chunks of bounded size |
| `dump_many` | encode documents to a file or socket |
| `validate`, `validate_all` | check that bytes are a document, or concatenated documents |
| `to_json`, `to_json_lines` | BSON to MongoDB Extended JSON, without creating Python objects |
| `from_json`, `from_json_lines` | Extended JSON to BSON |

| type | meaning |
|---|---|
| `ObjectId`, `Timestamp`, `DatetimeMS` | ids and times without an equivalent in Python |
| `Decimal128`, `Int64`, `Binary`, `Regex`, `Code` | types that Python does not distinguish |
| `MinKey`, `MaxKey` | the smallest and the largest value in MongoDB's order |
| `Symbol`, `Undefined`, `DBPointer` | deprecated types |

A value that BSON cannot represent raises `BSONEncodeError`; if BSON cannot represent the type of
the value, the error is a `BSONTypeError`, which is a `TypeError` too. Both errors contain the path
to the value. Invalid BSON raises `BSONDecodeError`, which contains the offset in bytes.

>>> import onecopy.bson
>>> onecopy.bson.encode({"name": "Zürich"})
b'\\x17\\x00\\x00\\x00\\x02name\\x00\\x08\\x00\\x00\\x00Z\\xc3\\xbcrich\\x00\\x00'
"""

from __future__ import annotations

from collections.abc import Mapping

from onecopy._core import BSONChunks, BSONDocuments, RawDocument
from onecopy._core import bson_decode as decode
from onecopy._core import bson_decode_all as decode_all
from onecopy._core import bson_decode_iter as decode_iter
from onecopy._core import bson_dump_many as dump_many
from onecopy._core import bson_encode as encode
from onecopy._core import bson_encode_into as encode_into
from onecopy._core import bson_encode_many as encode_many
from onecopy._core import bson_from_json as from_json
from onecopy._core import bson_from_json_lines as from_json_lines
from onecopy._core import bson_to_json as to_json
from onecopy._core import bson_to_json_lines as to_json_lines
from onecopy._core import bson_validate as validate
from onecopy._core import bson_validate_all as validate_all
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
    "BSONDocuments",
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
    "RawDocument",
    "Regex",
    "Symbol",
    "Timestamp",
    "Undefined",
    "decode",
    "decode_all",
    "decode_iter",
    "dump_many",
    "encode",
    "encode_into",
    "encode_many",
    "from_json",
    "from_json_lines",
    "to_json",
    "to_json_lines",
    "validate",
    "validate_all",
]

Mapping.register(RawDocument)
