"""BSON: how each library is called, and what it is given.

Values that are no documents (lists of texts, of rows) are the member `v` of one. Strings are fresh in each round, as from a
database.
"""

from __future__ import annotations

import importlib
import json
import random
from collections.abc import Callable
from typing import Any

import bson
import bsonjs
from bson.raw_bson import RawBSONDocument

from benches.corpora import arrays, values

Call = Callable[[Any], Any]


def _wrapped(encode: Call) -> Call:
    return lambda value: encode({"v": value})


def _each(encode: Call) -> Call:
    """A call for each row, as a driver makes it: what came of one is gone before the next. (Kept, both pay the same for new pages.)"""
    return lambda rows: sum(map(len, map(encode, rows)))


def _field(document: Call) -> Call:
    return lambda data: [document(each)["f20"] for each in data]


ENCODE: dict[str, Call] = {"pymongo": _wrapped(bson.encode)}
DECODE: dict[str, Call] = {"pymongo": bson.decode}
PEERS: dict[str, dict[str, Call]] = {
    "encode": ENCODE,
    "encode_each": {"pymongo": _each(bson.encode)},
    "encode_numpy": {"pymongo": lambda array: bson.encode({"v": array.tolist()})},
    "iter_chunks": {},
    "decode": DECODE,
    "decode_all": {"pymongo": bson.decode_all},
    "to_json": {"python-bsonjs": lambda data: [bsonjs.dumps(each, mode=bsonjs.RELAXED) for each in data]},
    "raw_field": {"pymongo": _field(RawBSONDocument)},
}
#: The peer that ratios are taken to.
BASE = "pymongo"


def ours(way: str) -> Call | None:
    """onecopy's; None where it has no such function yet."""
    module = importlib.import_module("onecopy.bson")
    name = {
        "encode": "encode",
        "encode_each": "encode",
        "encode_numpy": "encode",
        "iter_chunks": "encode_many",
        "decode": "decode",
        "decode_all": "decode_all",
        "to_json": "to_json",
        "raw_field": "RawDocument",
    }[way]
    found = getattr(module, name, None)
    if found is None:
        return None
    call: Call = found
    if way in ("encode", "encode_numpy"):
        return _wrapped(call)
    if way == "encode_each":
        return _each(call)
    if way == "decode":
        # As pymongo gives it: naive datetimes.
        return lambda data: call(data, tz_aware=False)
    if way == "to_json":
        return lambda data: [call(each) for each in data]
    if way == "raw_field":
        return _field(call)
    return call


def plain_of(way: str) -> Callable[[Any], str]:
    """How answers are compared: whole, and of JSON as what it says."""
    return (lambda answer: repr([json.loads(each) for each in answer])) if way == "to_json" else repr


def nested() -> list[dict[str, Any]]:
    """1,500 trees of documents: five levels, two branches each, short keys, numbers and texts."""
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
    """2,000 documents of 40 members."""
    draw = random.Random(42)
    texts = values.ascii_short()
    return [
        {f"f{i}": draw.choice((draw.randrange(1 << 40), draw.random(), draw.choice(texts), None)) for i in range(40)}
        for _ in range(2000)
    ]


def rows() -> list[dict[str, Any]]:
    """The rows of the JSON bench."""
    return values.rows_mixed()


def _made(corpus: str) -> Any:
    own = {"nested": nested, "wide": wide, "rows": rows}
    return own[corpus]() if corpus in own else getattr(values, corpus)()


def given(corpus: str, way: str) -> tuple[Any, Any]:
    """What peers are given, and what ours is."""
    made = getattr(arrays, corpus)() if way == "encode_numpy" else _made(corpus)
    if way in ("encode", "encode_each", "encode_numpy"):
        return made, made
    if way == "decode_all":
        data: Any = b"".join(map(bson.encode, made))
    elif way in ("to_json", "raw_field"):
        data = [bson.encode(each) for each in made]
    else:
        data = bson.encode({"v": made})
    return data, data
