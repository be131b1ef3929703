"""Generates Python objects of every kind that the JSON encoder supports, from the fuzzer's bytes.

A byte selects the kind of object, and the following bytes its contents. After the end of the input,
zeros are read; a zero generates `None`.
"""

from __future__ import annotations

import collections
import ctypes
import dataclasses
import datetime
import decimal
import enum
import math
import struct
import sys
import uuid
from collections.abc import Callable, Iterator
from typing import Any, ClassVar, NamedTuple

from onecopy import json

#: The largest number of objects for one input, and the largest depth of nesting.
MOST_OBJECTS = 400
MOST_DEPTH = 12
#: The largest number of characters of a text, which is more than two blocks of 4,096 units.
MOST_CHARS = 9_000


class Source:
    """Reads the fuzzer's bytes one after another; zeros follow the end."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.at = 0

    def byte(self) -> int:
        self.at += 1
        return self.data[self.at - 1] if self.at <= len(self.data) else 0

    def below(self, n: int) -> int:
        return self.byte() % n

    def pick(self, choices: Any) -> Any:
        return choices[self.byte() % len(choices)]

    def take(self, n: int) -> bytes:
        taken = self.data[self.at : self.at + n]
        self.at += n
        return taken


class Strange:
    """An object without a JSON form; `default` replaces it by the result of `act`."""

    def __init__(self, act: Callable[[], Any], changes: bool = False) -> None:
        self.act = act
        self.changes = changes


class Text(str):
    pass


class Whole(int):
    pass


class Real(float):
    pass


class Items(list):  # type: ignore[type-arg]
    pass


class Pair(NamedTuple):
    one: Any
    other: Any


class Turned(dict):  # type: ignore[type-arg]
    """A dict whose `items` returns the members in reverse order."""

    def items(self) -> Any:
        return list(super().items())[::-1]


class Color(enum.Enum):
    RED = "red"
    ΚΌΚΚΙΝΟ = "κόκκινο"
    NUMBER = 7
    FLOAT = 0.5
    NONE = None
    LIST = (1, "a")
    LONE = "\udc80"


class Count(enum.IntEnum):
    ONE = 1
    MANY = 1 << 70


class Word(str, enum.Enum):
    A = "a"
    É = "é"


@dataclasses.dataclass
class Plain:
    shared: ClassVar[int] = 1
    one: Any
    _other: Any


@dataclasses.dataclass(frozen=True)
class Slotted:
    __slots__ = ("größe", "zwei")
    größe: Any
    zwei: Any


class Holder:
    """A class whose instances share the keys of their `__dict__` with each other."""

    def __init__(self, b: Any, a: Any, ü: Any) -> None:
        self.b, self.a, self.ü = b, a, ü


_FLOATS = [0.0, -0.0, 1.0, 0.1, 1e15, 1e16, 1e17, 1e-4, 1e-5, 9.999e-5, 1e-6, 1e22, 5e-324, 2.2250738585072014e-308]
_FLOATS += [1.7976931348623157e308, 123456789.125, 2.0**52, 2.0**53 + 2, 1 / 3, math.nan, math.inf, -math.inf]
_FRAGMENTS = [b"[1, 2]", '"é"', b'{"a":\n1}', bytearray(b"null"), memoryview(b"-0.50"), '"\\ud800"']
_DECIMALS = ["NaN", "sNaN", "-NaN", "NaN123", "Infinity", "-Infinity", "0E-20", "-0", "1E+5", "1.10", "1E-7"]
_OTHERS = [b"bytes", {1}, 1j, object(), ..., int, range(3)]
# Most texts are short: the fuzzer tries more of them in its time.
_TIMES = [1, 1, 1, 1, 2, 5, 1, 1, 1, 1, 1, 1, 2, 40, 1, 300]
_UNIT_BYTES = [1, 1, 1, 2, 3, 2]

# CPython's own look at a `str`, where it shows it.
_check_str = getattr(ctypes.pythonapi, "_PyUnicode_CheckConsistency", lambda string, content: 1)
_check_str.argtypes = [ctypes.py_object, ctypes.c_int]
_utf8_cache = ctypes.pythonapi.PyUnicode_AsUTF8AndSize
_utf8_cache.argtypes = [ctypes.py_object, ctypes.c_void_p]
_utf8_cache.restype = ctypes.c_void_p


def check_text(ours: str, theirs: str) -> None:
    """Asserts that `ours` is the text `theirs`, in CPython's smallest storage kind, without cached
    UTF-8, and with a correct hash."""
    assert type(ours) is str and ours == theirs, f"{ours!r} for {theirs!r}"
    assert sys.getsizeof(ours) == sys.getsizeof(theirs), f"the size of {ours!r}"
    assert hash(ours) == hash(theirs)
    _check_str(ours, 1)


class Maker:
    """Generates objects from a source, and records all of them."""

    def __init__(self, source: Source) -> None:
        self.source = source
        #: All objects that were made, containers that are not filled yet too: what is given again
        #: from here holds itself.
        self.made: list[Any] = []
        #: True if a `default` changes the object that is being written.
        self.changes = False

    def value(self, depth: int = 0) -> Any:
        """An object of any kind, generated from one or more bytes."""
        if len(self.made) > MOST_OBJECTS or depth > MOST_DEPTH:
            return None
        kind = self.source.byte()
        # More often than others: texts and containers.
        makers = self._MANY if kind & 0x80 else self._ALL
        value = makers[kind % len(makers)](self, depth)
        if not isinstance(value, (type(None), bool, type(...))):
            self.made.append(value)
        return value

    def _none(self, depth: int) -> Any:
        return None

    def _bool(self, depth: int) -> Any:
        return self.source.pick((True, False))

    def _small_int(self, depth: int) -> Any:
        return self.source.byte() - 128

    def _int(self, depth: int) -> Any:
        return int.from_bytes(self.source.take(self.source.below(12)), "little", signed=True)

    def _edge_int(self, depth: int) -> Any:
        bits = self.source.byte()
        # Past 640 digits, where another algorithm writes them.
        power = 1 << bits if bits < 200 else 10 ** (bits * bits // 16)
        return self.source.pick((1, -1)) * (power + self.source.below(3) - 1)

    def _float(self, depth: int) -> Any:
        return struct.unpack("<d", self.source.take(8).ljust(8, b"\0"))[0]

    def _usual_float(self, depth: int) -> Any:
        if self.source.below(2):
            # An object of its own, whose references can be counted.
            return self.source.pick(_FLOATS) * 1.0
        digits = int.from_bytes(self.source.take(self.source.below(7)), "little")
        return digits / 10 ** self.source.below(12)

    def text(self, depth: int = 0) -> str:
        """A text of any storage kind (PEP 393), possibly with characters to escape and lone
        surrogates."""
        head = self.source.byte()
        kind, times = head % 6, _TIMES[head // 6 % 16]
        raw = self.source.take(self.source.below(70) * _UNIT_BYTES[kind])
        if kind <= 1:
            text = bytes(b & 0x7F for b in raw).decode()
        elif kind == 2:
            text = raw.decode("latin-1")
        elif kind == 3:
            text = "".join(map(chr, struct.unpack(f"<{len(raw) // 2}H", raw[: len(raw) & ~1])))
        elif kind == 4:
            units = (int.from_bytes(raw[i : i + 3], "little") % 0x110000 for i in range(0, len(raw), 3))
            text = "".join(map(chr, units))
        else:
            # Of one script, as most texts are: nothing there is a surrogate.
            text = "".join(chr(0x400 + (c & 0x3FF)) if c & 0x8000 else chr(c & 0x7F) for c in _wide(raw))
        text = (text * times)[:MOST_CHARS]
        if head >= 0xF0 and text.isprintable() and not text.isascii():
            _utf8_cache(text, None)
        return text

    def _text(self, depth: int) -> Any:
        return self.text()

    def _again(self, depth: int) -> Any:
        # Any earlier object, even one that contains this one.
        return self.source.pick(self.made) if self.made else None

    def _items(self, depth: int) -> Iterator[Any]:
        for _ in range(self.source.below(9)):
            yield self.value(depth + 1)

    def _list(self, depth: int) -> Any:
        made: list[Any] = []
        self.made.append(made)
        made.extend(self._items(depth))
        return made

    def _grown_list(self, depth: int) -> Any:
        made: list[Any] = []
        self.made.append(made)
        for item in self._items(depth):
            made.append(item)
        if self.source.below(2):
            made *= self.source.below(40)
        return made

    def _list_subclass(self, depth: int) -> Any:
        made = Items()
        self.made.append(made)
        made.extend(self._items(depth))
        return made

    def _tuple(self, depth: int) -> Any:
        return tuple(self._items(depth))

    def _named_tuple(self, depth: int) -> Any:
        return Pair(self.value(depth + 1), self.value(depth + 1))

    def key(self) -> Any:
        """A key: usually a short text, and often one that was used before."""
        kind = self.source.byte()
        if kind < 96:
            return self.source.pick(("a", "id", "name", "größe", "имя", "名前", "long " * 7 + "key", ""))
        if kind < 128:
            # An equal one that is another object.
            return "".join([self.source.pick("abé名"), self.source.pick("αβ12")])
        if kind < 192:
            return self.text()
        if kind < 224 and self.made:
            again = self.source.pick(self.made)
            return again if type(again) in (str, int, float) else "a"
        if kind < 232:
            return Text(self.text())
        makers = (Maker._none, Maker._bool, Maker._edge_int, Maker._usual_float, Maker._time, Maker._uuid)
        makers += (Maker._decimal, Maker._enum, Maker._strange, Maker._subclass)
        key = self.source.pick(makers)(self, MOST_DEPTH)
        if isinstance(key, decimal.Decimal) and key.is_snan():
            return "sNaN"
        self.made.append(key)
        return key

    def _dict(self, depth: int) -> Any:
        made: dict[Any, Any] = {}
        self.made.append(made)
        for _ in range(self.source.below(10)):
            made[self.key()] = self.value(depth + 1)
        return made

    def _odd_dict(self, depth: int) -> Any:
        """A dict with deleted entries, with keys of any type, or of a subclass."""
        how = self.source.below(7)
        made: dict[Any, Any] = {}
        if how >= 3:
            made = (Turned, collections.OrderedDict, collections.Counter, _defaultdict)[how - 3]()
        self.made.append(made)
        if how == 1:
            made[0] = self.value(depth + 1)
        for _ in range(self.source.below(10)):
            key = self.key()
            made[key] = self.value(depth + 1)
            if how in (0, 3) and self.source.below(3) == 0:
                del made[key]
        if how == 1:
            del made[0]
        return made.copy() if how == 2 else made

    def _holder_dict(self, depth: int) -> Any:
        holder = Holder(*(self.value(depth + 1) for _ in range(3)))
        self.made.append(holder)
        made = vars(holder)
        if self.source.below(3) == 0:
            del holder.a
        return made

    def _deep(self, depth: int) -> Any:
        value = self.value(depth + 1)
        how = self.source.below(4)
        for i in range(self.source.pick((1, 2, 3, 4, 6, 7, 8, 9, 10, 16, 17, 20, 40, 70, 999, 1000))):
            form = how if how < 3 else i % 3
            value = [value] if form == 0 else {"a": value} if form == 1 else (value,)
        return value

    def _rows(self, depth: int) -> Any:
        """A list of dicts with the same keys."""
        keys = [self.key() for _ in range(self.source.below(5))]
        columns = [[self.value(depth + 2) for _ in range(3)] for _ in keys]
        rows: list[Any] = [
            {key: column[i % 3] for key, column in zip(keys, columns, strict=True)}
            for i in range(self.source.pick((1, 2, 3, 20)))
        ]
        self.made.extend(rows)
        return rows

    def _decimal(self, depth: int) -> Any:
        if self.source.below(3) == 0:
            return decimal.Decimal(self.source.pick(_DECIMALS))
        digits = tuple(b % 10 for b in self.source.take(self.source.below(40)))
        return decimal.Decimal((self.source.below(2), digits or (0,), self.source.byte() - 128))

    def _zone(self) -> datetime.tzinfo | None:
        how = self.source.below(4)
        if how == 0:
            return None
        if how == 1:
            return datetime.timezone.utc
        seconds = int.from_bytes(self.source.take(3), "little") % 172_798 - 86_399
        return datetime.timezone(datetime.timedelta(seconds=seconds if how == 2 else int(seconds / 60) * 60))

    def _time(self, depth: int) -> Any:
        how = self.source.below(3)
        day = datetime.date.fromordinal(1 + int.from_bytes(self.source.take(3), "little") % 3_652_059)
        if how == 0:
            return day
        second = int.from_bytes(self.source.take(3), "little") % 86_400
        micros = self.source.pick((0, 1, 600, 120_000, 999_999))
        zone = self._zone()
        time = datetime.time(second // 3600, second // 60 % 60, second % 60, micros, zone)
        return time if how == 1 else datetime.datetime.combine(day, time)

    def _uuid(self, depth: int) -> Any:
        return uuid.UUID(bytes=self.source.take(16).ljust(16, b"\0"))

    def _enum(self, depth: int) -> Any:
        return self.source.pick([*Color, *Count, *Word])

    def _subclass(self, depth: int) -> Any:
        how = self.source.below(3)
        if how == 0:
            return Text(self.text())
        return Whole(self._edge_int(depth)) if how == 1 else Real(self._usual_float(depth))

    def _dataclass(self, depth: int) -> Any:
        kind = self.source.pick((Plain, Slotted))
        return kind(self.value(depth + 1), self.value(depth + 1))

    def _fragment(self, depth: int) -> Any:
        return json.Fragment(self.source.pick(_FRAGMENTS))

    def _other(self, depth: int) -> Any:
        return self.source.pick(_OTHERS)

    def _strange(self, depth: int) -> Any:
        """An object that `default` replaces; or `default` raises, or changes a container
        meanwhile."""
        how = self.source.below(8)
        if how == 0:
            return Strange(_raise)
        if how == 1:
            return Strange(self._change(), changes=True)
        instead = self.value(depth + 1)
        return Strange(lambda: instead)

    def _change(self) -> Callable[[], Any]:
        self.changes = True
        at, how, more = self.source.byte(), self.source.below(8), self.source.byte()
        changed = [one for one in self.made if isinstance(one, (list, dict))]
        return lambda: change(changed[at % len(changed)], how, more) if changed else None

    _ALL = (_none, _bool, _small_int, _int, _edge_int, _float, _usual_float, _text, _again, _list, _grown_list)
    _ALL += (_list_subclass, _tuple, _named_tuple, _dict, _odd_dict, _holder_dict, _rows, _decimal, _time, _uuid)
    _ALL += (_enum, _subclass, _dataclass, _fragment, _other, _strange, _deep)
    _MANY = (_text, _dict, _list, _usual_float, _int, _odd_dict, _rows, _text)


def _defaultdict() -> dict[Any, Any]:
    return collections.defaultdict(list)


class Raised(Exception):
    """The exception that `default` raises for some objects."""


def _raise() -> Any:
    raise Raised


def _wide(raw: bytes) -> Any:
    return struct.unpack(f"<{len(raw) // 2}H", raw[: len(raw) & ~1])


def change(container: Any, how: int, more: int) -> Any:
    """Changes a list or dict while it is encoded; returns a new object.

    The number of items is limited, since repeated changes would let the container grow endlessly.
    """
    new = "new " * 9
    if isinstance(container, list):
        if how == 0:
            container.clear()
        elif how == 1:
            del container[more % 7 :]
        elif how == 2 and len(container) < 500:
            container.extend([new + str(more)] * more)
        elif how == 3:
            container[:] = [new + str(i) for i in range(len(container))]
        elif container:
            container[more % len(container)] = [new] * 3
    elif how == 0:
        container.clear()
    elif how == 1 and container:
        container.popitem()
    elif how == 2 and len(container) < 500:
        container.update({f"{new}{i}": i for i in range(more)})
    elif how == 3 and container:
        # As many as before.
        container.popitem()
        container[new] = more
    elif how == 4 and container:
        container.pop(next(iter(container)))
        container[more] = {new: new}
    else:
        for key in list(container):
            container[key] = [new] * 3
    return [new, more]
