"""BSON 1.1 (https://bsonspec.org): Python objects to documents and back, converted once.

| function | what it does |
|---|---|
| `decode`, `decode_all` | a document, or all of them, as objects |
| `decode_iter` | one document at a time, of a buffer, a file or pieces |
| `RawDocument` | the fields of a document, each read where it lies |
| `encode` | a document as `bytes` |
| `encode_into` | a document into a buffer that is there |
| `encode_many` | documents one behind the other, in chunks of bounded size |
| `dump_many` | the same, to a file or socket |
| `validate`, `validate_all` | whether bytes are a document, or documents one behind the other |
| `to_json`, `to_json_lines` | documents as MongoDB Extended JSON, with no Python objects in between |
| `from_json`, `from_json_lines` | Extended JSON as documents |

| type | what it stands for |
|---|---|
| `ObjectId`, `Timestamp`, `DatetimeMS` | ids and times that Python has no type for |
| `Decimal128`, `Int64`, `Binary`, `Regex`, `Code` | numbers, bytes and text of a kind that Python does not tell apart |
| `MinKey`, `MaxKey` | what is less, and greater, than all |
| `Symbol`, `Undefined`, `DBPointer` | the deprecated ones |

What has no form in BSON raises `BSONEncodeError` or, for its type, `BSONTypeError`, which is a `TypeError` too; both with the path to it.
What is no BSON raises `BSONDecodeError`, with the byte.

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
