"""Random values with and without a BSON representation, custom type encoders, and random bytes that
are similar to BSON."""

from __future__ import annotations

import collections
import dataclasses
import datetime as dt
import decimal
import enum
import re
import uuid
from collections.abc import Callable, Iterator, Mapping
from random import Random
from typing import Any

import bson as pymongo
from bson.codec_options import CodecOptions, TypeEncoder, TypeRegistry
from bson.raw_bson import RawBSONDocument

from tests.bson.decoding import binary, document, element, string


class Formless:
    """A class without a BSON representation."""

    def __init__(self, number: int) -> None:
        self.number = number

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.number})"


class A(Formless):
    """A class for which tests register a type encoder."""


class B(Formless):
    """A second class for which tests register a type encoder."""


class C(Formless):
    """A third class for which tests register a type encoder."""


class Large(int):
    """A subclass of `int`; encoders must encode its instances like ints."""


class Text(str):
    """A subclass of `str`; encoders must encode its instances like texts."""

    __slots__ = ()


class Plain(enum.Enum):
    """An enumeration, which pymongo cannot encode."""

    RED = "red"


class Number(enum.IntEnum):
    """An enumeration whose members are instances of `int`."""

    ONE = 1


class Word(str, enum.Enum):
    """An enumeration whose members are instances of `str`."""

    RED = "red"


class Own(dict[str, Any]):
    """A subclass of `dict`, which is encoded as a document."""


class View(Mapping[str, Any]):
    """A mapping that is not a dict; it counts how often its keys are iterated."""

    def __init__(self, members: Mapping[str, Any]) -> None:
        self.members = members
        self.n_read = 0

    def __getitem__(self, key: str) -> Any:
        return self.members[key]

    def __iter__(self) -> Iterator[str]:
        self.n_read += 1
        return iter(self.members)

    def __len__(self) -> int:
        return len(self.members)


@dataclasses.dataclass
class Point:
    """A dataclass, which pymongo cannot encode."""

    x: int


Triple = collections.namedtuple("Triple", "a b c")


def outcome(call: Callable[..., Any], *args: Any) -> Any:
    """The result of a call; if it raises, the class and the message of the exception."""
    try:
        return call(*args)
    except Exception as error:
        return type(error), str(error)


def options_of(encoders: Mapping[type, Callable[[Any], Any]], fallback: Callable[[Any], Any] | None = None) -> Any:
    """pymongo's codec options with these type encoders and this fallback encoder."""

    def codec(of: type, give: Callable[[Any], Any]) -> TypeEncoder:
        members = {"python_type": of, "transform_python": staticmethod(give)}
        made: TypeEncoder = type("Made", (TypeEncoder,), members)()
        return made

    codecs = [codec(of, give) for of, give in encoders.items()]
    return CodecOptions(type_registry=TypeRegistry(codecs, fallback_encoder=fallback))


_ZONES = [None, dt.timezone.utc, *(dt.timezone(dt.timedelta(hours=n)) for n in (-12, 2, 14))]
_TEXTS = ["", "a", "name", "é", "東京", "😀", "x" * 40, "a\0b"]

#: Values with a BSON form.
_GOOD: list[Callable[[Random], Any]] = [
    lambda draw: None,
    lambda draw: draw.random() < 0.5,
    lambda draw: draw.randrange(-(2 ** draw.randrange(64)), 2 ** draw.randrange(64)),
    lambda draw: draw.choice([2**31, -(2**31) - 1, 2**63 - 1, -(2**63), Large(5), Large(2**60), Number.ONE]),
    lambda draw: draw.uniform(-1e9, 1e9),
    lambda draw: draw.choice(_TEXTS),
    lambda draw: draw.choice([Text("own"), Word.RED, Triple(1, "b", None), ()]),
    lambda draw: draw.randbytes(draw.randrange(9)),
    lambda draw: (
        dt.datetime(1, 1, 2, tzinfo=draw.choice(_ZONES))
        + dt.timedelta(days=draw.randrange(3_652_000), microseconds=draw.randrange(10**9))
    ),
    lambda draw: pymongo.Binary(draw.randbytes(draw.randrange(20)), draw.randrange(255)),
    lambda draw: pymongo.ObjectId(draw.randbytes(12)),
    lambda draw: pymongo.DBRef("c", draw.randrange(9), draw.choice([None, "db"])),
    lambda draw: pymongo.Timestamp(draw.randrange(2**32), draw.randrange(2**32)),
    lambda draw: draw.choice(
        [re.compile("a", re.I | re.S), re.compile(b"a"), pymongo.Regex("a", "mi"), pymongo.Code("f")]
    ),
    lambda draw: pymongo.Decimal128(str(draw.randrange(10**6))),
    lambda draw: draw.choice([pymongo.Int64(5), pymongo.DatetimeMS(1 << 60), pymongo.MinKey(), pymongo.MaxKey()]),
    lambda draw: pymongo.Code("f", {"$a.b": draw.randrange(9)}),
    lambda draw: RawBSONDocument(pymongo.encode({"a": draw.randrange(9)})),
]
#: Values without one, and UUIDs, which require an option.
_BAD: list[Callable[[Random], Any]] = [
    lambda draw: draw.choice([2**63, -(2**63) - 1, 2**200, Large(2**70), pymongo.Int64(2**70)]),
    lambda draw: draw.choice(["\ud800", "a\udfff\ud800b", Text("\ud800"), re.compile("a\0"), re.compile("\ud800")]),
    lambda draw: draw.choice([re.compile(b"\xff"), re.compile(b"a\0"), pymongo.Regex("a\0b"), pymongo.Code("\ud800")]),
    lambda draw: draw.choice([decimal.Decimal(1), dt.date(2020, 1, 1), dt.time(1), {1, 2}, object]),
    lambda draw: draw.choice(
        [bytearray(b"a"), memoryview(b"a"), Plain.RED, Point(1), uuid.UUID(int=7), uuid.UUID(int=8)]
    ),
    lambda draw: dt.datetime.max.replace(tzinfo=dt.timezone(dt.timedelta(hours=-12))),
    *[lambda draw: draw.choice([A, B, C])(draw.randrange(4))] * 6,
]
_GOOD_KEYS = ["a", "b", "name", "é", "東京", Text("own"), "k" * 40, "", "a.b", "$a", "_id"]
_BAD_KEYS: list[Any] = ["a\0", "\ud800", "\ud800\0", 1, None, ("a",), b"a"]


def value(draw: Random, bad: float, depth: int = 3) -> Any:
    """A random value; each part lacks a BSON representation with the probability `bad`."""
    if depth and draw.random() < 0.4:
        kind = draw.randrange(9)
        if kind < 2:
            return [value(draw, bad, depth - 1) for _ in range(draw.randrange(5))]
        if kind == 2:
            return tuple(value(draw, bad, depth - 1) for _ in range(draw.randrange(3)))
        if kind == 3:
            return pymongo.Code("f", members(draw, bad, depth - 1))
        return mapping(draw, bad, depth - 1)
    return draw.choice(_BAD if draw.random() < bad else _GOOD)(draw)


def members(draw: Random, bad: float, depth: int = 3) -> dict[Any, Any]:
    """A dict of random values; `bad` is the probability of each part to lack a BSON
    representation."""
    n = draw.choice([0, 1, 2, 3, 3, 4, 6])
    return {
        draw.choice(_BAD_KEYS if draw.random() < bad / 2 else _GOOD_KEYS): value(draw, bad, depth) for _ in range(n)
    }


def mapping(draw: Random, bad: float, depth: int = 3) -> Any:
    """A mapping of random class (dict, subclass or other mapping) with random values."""
    of = draw.choice([dict, dict, dict, Own, View, collections.OrderedDict, pymongo.SON])
    return of(members(draw, bad, depth))


_OID = bytes(range(12))
#: Elements that pymongo never writes.
RARE = [
    element(0x06),
    element(0x0E, string(b"symbol")),
    element(0x0C, string(b"db.c") + _OID),
    element(0x05, binary(b"old", 2).replace(b"\x03", b"\x07", 1).replace(b"old", b"\x03\0\0\0old")),
    element(0x05, binary(b"abc", 4)),
    element(0x05, binary(bytes(range(16)), 3)),
    element(0x05, binary(bytes(range(16)), 4)),
    element(0x04, document(element(0x08, b"\1", b"\xff"))),
    element(0x04, document(element(0x08, b"\1", b"7"), element(0x04, document(), b""), element(0x0A, b"", b"x"))),
    element(
        0x03, document(element(0x02, string(b"c"), b"$ref"), element(0x07, _OID, b"$id"), element(0x0A, b"", b"x"))
    ),
    element(0x03, document(element(0x10, b"\1\0\0\0", b"$ref"), element(0x07, _OID, b"$id"))),
    element(0x02, string(b"a\xffb")),
    element(0x02, string(b"\xed\xa0\x80")),
    element(0x0A, b"", b"k\xff"),
    element(0x0B, b"a\xff\0i\0"),
    element(0x08, b"\2"),
    element(0x09, (1 << 60).to_bytes(8, "little")),
    element(0x09, (-(1 << 60)).to_bytes(8, "little", signed=True)),
    element(0x13, bytes(range(16))),
    element(0x12, b"\1" + bytes(7)),
    element(0x14),
]


def any_bytes(draw: Random) -> bytes:
    """Random bytes: a document that pymongo has encoded, one with elements that pymongo never
    writes, or a corrupted one."""
    data = pymongo.encode(mapping(draw, 0), codec_options=CodecOptions(uuid_representation=4))
    if draw.random() < 0.5:
        rare = draw.choices(RARE, k=draw.randrange(1, 4))
        data = document(data[4:-1], *rare)
        if draw.random() < 0.4:
            data = document(element(draw.choice([0x03, 0x04]), data, b"inner"))
    if draw.random() < 0.3:
        harmed = bytearray(data)
        harmed[draw.randrange(len(harmed))] = draw.choice([0, 1, 2, 3, 4, 5, 0x7F, 0xFF, draw.randrange(256)])
        data = bytes(harmed)
    return data
