"""The BSON functions of each library, and their arguments.

Data that is not a document (a list of texts or rows) is encoded as the field `v` of a document.
Strings are new objects in each round, as from a database.
"""

from __future__ import annotations

import dataclasses
import datetime as dt
import json
import random
from collections.abc import Callable
from typing import Any

import bson
import bsonjs
from bson import tz_util
from bson.binary import UuidRepresentation
from bson.codec_options import CodecOptions, TypeRegistry
from bson.raw_bson import RawBSONDocument

import onecopy.bson
from benches.corpora import arrays, values
from onecopy.compat import bson as compat

Call = Callable[[Any], Any]

#: pymongo's options for aware datetimes and for native UUIDs.
AWARE: CodecOptions[Any] = CodecOptions(tz_aware=True, uuid_representation=UuidRepresentation.STANDARD)


def _value_of(member: Any) -> Any:
    """The value of a member of an enumeration: the function that a library calls for each
    member."""
    return member.value


BY_FUNCTION: CodecOptions[Any] = CodecOptions(type_registry=TypeRegistry(fallback_encoder=_value_of))


def _wrapped(encode: Call, **options: Any) -> Call:
    return lambda value: encode({"v": value}, **options)


def _each(encode: Call) -> Call:
    """Encodes the rows one by one, as a driver does; each result is freed before the next call.

    If the results were kept, both sides would spend the same time on new memory pages.
    """
    return lambda rows: sum(map(len, map(encode, rows)))


def _field(document: Call) -> Call:
    return lambda data: [document(each)["f20"] for each in data]


def _with(decode: Call, *positional: Any, **options: Any) -> Call:
    return lambda data: decode(data, *positional, **options)


def _as_dicts(of: Call) -> Call:
    """Encodes instances of a dataclass with pymongo, after `of` has converted each to a dict.

    pymongo cannot encode dataclasses.
    """
    return lambda instances: bson.encode({"v": [of(each) for each in instances]})


ENCODE: dict[str, Call] = {"pymongo": _wrapped(bson.encode)}
DECODE: dict[str, Call] = {"pymongo": bson.decode}
PEERS: dict[str, dict[str, Call]] = {
    "encode": ENCODE,
    "encode_standard": {"pymongo": _wrapped(bson.encode, codec_options=AWARE)},
    "encode_fields": {"pymongo": _as_dicts(vars), "pymongo, asdict": _as_dicts(dataclasses.asdict)},
    "encode_by_function": {"pymongo": _wrapped(bson.encode, codec_options=BY_FUNCTION)},
    "encode_members": {"pymongo": _wrapped(bson.encode, codec_options=BY_FUNCTION)},
    "encode_each": {"pymongo": _each(bson.encode)},
    "encode_each_compat": {"pymongo": _each(bson.encode)},
    "encode_numpy": {"pymongo": lambda array: bson.encode({"v": array.tolist()})},
    "iter_chunks": {},
    "decode": DECODE,
    "decode_aware": {"pymongo": _with(bson.decode, AWARE)},
    "decode_all": {"pymongo": bson.decode_all},
    "decode_each_compat": {"pymongo": lambda data: [bson.decode(each) for each in data]},
    "to_json": {"python-bsonjs": lambda data: [bsonjs.dumps(each, mode=bsonjs.RELAXED) for each in data]},
    "raw_field": {"pymongo": _field(RawBSONDocument)},
}
#: The peer that is the base of ratios.
BASE = "pymongo"

_OURS: dict[str, Call] = {
    "encode": _wrapped(onecopy.bson.encode),
    "encode_numpy": _wrapped(onecopy.bson.encode),
    "encode_standard": _wrapped(onecopy.bson.encode),
    "encode_fields": _wrapped(onecopy.bson.encode),
    "encode_by_function": _wrapped(onecopy.bson.encode, default=_value_of, passthrough=("enum",)),
    "encode_members": _wrapped(onecopy.bson.encode),
    "encode_each": _each(onecopy.bson.encode),
    "encode_each_compat": _each(compat.encode),
    "iter_chunks": onecopy.bson.encode_many,
    # As pymongo returns it: naive datetimes.
    "decode": _with(onecopy.bson.decode, tz_aware=False),
    "decode_aware": onecopy.bson.decode,
    "decode_all": _with(onecopy.bson.decode_all, tz_aware=False),
    "decode_each_compat": lambda data: [compat.decode(each) for each in data],
    "to_json": lambda data: [onecopy.bson.to_json(each) for each in data],
    "raw_field": _field(onecopy.bson.RawDocument),
}


def ours(way: str) -> Call:
    """onecopy's function for the operation `way`."""
    return _OURS[way]


def plain_of(way: str) -> Callable[[Any], str]:
    """The function that converts results of the operation `way` to a comparable text.

    JSON is compared by value. For aware datetimes pymongo's own name of UTC is replaced.
    """
    if way == "to_json":
        return lambda answer: repr([json.loads(each) for each in answer])
    if way == "decode_aware":
        return lambda answer: repr(answer).replace(repr(tz_util.utc), repr(dt.timezone.utc))
    return repr


def nested() -> list[dict[str, Any]]:
    """1,500 nested documents: five levels with two branches each, short keys, numbers and texts."""
    draw = random.Random(41)
    names = [f"key_{i}" for i in range(12)]

    def make(levels: int) -> dict[str, Any]:
        made: dict[str, Any] = {
            "id": draw.randrange(1 << 40),
            "name": f"n{draw.randrange(10**6)}",
            "on": bool(levels % 2),
        }
        if levels:
            for name in draw.sample(names, 2):
                made[name] = make(levels - 1)
        return made

    return [make(4) for _ in range(1500)]


def wide() -> list[dict[str, Any]]:
    """2,000 documents with 40 members."""
    draw = random.Random(42)
    texts = values.ascii_short()
    return [
        {f"f{i}": draw.choice((draw.randrange(1 << 40), draw.random(), draw.choice(texts), None)) for i in range(40)}
        for _ in range(2000)
    ]


def rows() -> list[dict[str, Any]]:
    """The rows of the JSON benchmarks."""
    return values.rows_mixed()


def object_ids(of: Any = bson) -> list[Any]:
    """ObjectIds of pymongo's or onecopy's class, depending on the module `of`."""
    draw = random.Random(43)
    return [of.ObjectId(draw.randbytes(12)) for _ in range(values.N_VALUES)]


def decimals128(of: Any = bson) -> list[Any]:
    """Prices as Decimal128 of pymongo's or onecopy's class, depending on the module `of`."""
    return [of.Decimal128(f"{price:.2f}") for price in values.decimals()[: values.N_VALUES]]


def int64s(of: Any = bson) -> list[Any]:
    """Integers of more than 32 bits as Int64 of pymongo's or onecopy's class, depending on the
    module `of`."""
    draw = random.Random(44)
    return [of.Int64(draw.randrange(1 << 33, 1 << 62)) for _ in range(values.N_VALUES)]


def _of_type(make: Callable[[Any, random.Random], Any]) -> Callable[..., list[Any]]:
    def made(of: Any = bson) -> list[Any]:
        draw = random.Random(45)
        return [make(of, draw) for _ in range(values.N_VALUES)]

    return made


#: Values of BSON types: each library gets instances of its own classes, except for a corpus `… of
#: pymongo`.
_TYPES: dict[str, Callable[..., list[Any]]] = {
    "object_ids": object_ids,
    "decimals128": decimals128,
    "int64s": int64s,
    "binaries": _of_type(lambda of, draw: of.Binary(draw.randbytes(16), 5)),
    "codes": _of_type(lambda of, draw: of.Code(f"f({draw.random()})")),
    "moments": _of_type(lambda of, draw: of.DatetimeMS(draw.randrange(10**12))),
    "patterns": _of_type(lambda of, draw: of.Regex(f"^{draw.random()}$", "i")),
    "stamps": _of_type(lambda of, draw: of.Timestamp(draw.randrange(2**32), draw.randrange(2**32))),
}


def _made(corpus: str) -> Any:
    own = {"nested": nested, "wide": wide, "rows": rows, **_TYPES}
    return own[corpus]() if corpus in own else getattr(values, corpus)()


def given(corpus: str, way: str) -> tuple[Any, Any]:
    """The arguments of the peers' functions, and those of onecopy's."""
    if way == "encode_numpy":
        made = getattr(arrays, corpus)()
        return made, made
    name, is_theirs, _ = corpus.partition(" of pymongo")
    made = _made(name)
    if way.startswith("encode"):
        return made, _TYPES[name](onecopy.bson) if name in _TYPES and not is_theirs else made
    if way == "decode_all":
        data: Any = b"".join(map(bson.encode, made))
    elif way in ("to_json", "raw_field", "decode_each_compat"):
        data = [bson.encode(each) for each in made]
    else:
        data = bson.encode({"v": made}, codec_options=AWARE)
    return data, data
