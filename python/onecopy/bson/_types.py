"""BSON types without an equivalent in Python.

The classes have the names, attributes and `_type_marker` values of the classes in pymongo's `bson`,
so pymongo can encode their instances.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Mapping
from functools import total_ordering
from typing import TYPE_CHECKING, Any, ClassVar, Literal
from uuid import UUID

from onecopy._core import ObjectId
from onecopy.bson._decimal128 import Decimal128

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer
    from typing_extensions import disjoint_base

    _UuidForm = Literal["standard", "python_legacy", "java_legacy", "csharp_legacy"]
else:

    def disjoint_base(cls: type) -> type:
        """Decorates a class, for type checkers only: they report an error if a class inherits both
        from the decorated class and from another subclass of `bytes`."""
        return cls


__all__ = [
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
]

#: Subtypes of binary values for UUIDs: the standard one, and the legacy one, whose byte order
#: depends on the driver.
UUID_SUBTYPE, LEGACY_UUID_SUBTYPE = 4, 3

_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc)
_MILLISECOND = datetime.timedelta(milliseconds=1)


def _marker(value: object) -> object:
    """Return the `_type_marker` of `value` if it is an instance of a BSON type (one of pymongo or of
    this module), otherwise `None`."""
    return getattr(type(value), "_type_marker", None)


@disjoint_base
class Binary(bytes):
    """Bytes with a BSON subtype (0 to 255). Binary values of subtype 0 are decoded as plain
    `bytes`, not as `Binary`.

    `Binary(data, subtype=0)` accepts any contiguous buffer. Copies: one.

    A `Binary` is equal to a `Binary`, also of pymongo, with the same subtype and bytes. With
    subtype 0 it is also equal to `bytes` with the same contents.
    """

    _type_marker: ClassVar[int] = 5
    #: The subtype, 0 to 255: 0 generic, 3 and 4 UUID, 5 MD5, 9 vector, from 128 on user-defined.
    subtype: int

    def __new__(cls, data: ReadableBuffer, subtype: int = 0) -> Binary:
        if not isinstance(subtype, int):
            raise TypeError("`subtype` must be an int")
        if not 0 <= subtype <= 255:
            raise ValueError("`subtype` must be 0 to 255")
        self = super().__new__(cls, memoryview(data))
        self.subtype = subtype
        return self

    @classmethod
    def from_uuid(cls, uuid: UUID, uuid_representation: _UuidForm = "standard") -> Binary:
        """Create a value from a UUID, in the byte order that ``uuid_representation`` names."""
        if not isinstance(uuid, UUID):
            raise TypeError("`uuid` must be a uuid.UUID")
        subtype = UUID_SUBTYPE if uuid_representation == "standard" else LEGACY_UUID_SUBTYPE
        return cls(_reordered(uuid.bytes, uuid_representation), subtype)

    def as_uuid(self, uuid_representation: _UuidForm = "standard") -> UUID:
        """Convert the 16 bytes to a UUID. Raises `ValueError` if the value does not have 16 bytes,
        or if it does not have the subtype that ``uuid_representation`` requires."""
        subtype = UUID_SUBTYPE if uuid_representation == "standard" else LEGACY_UUID_SUBTYPE
        if self.subtype != subtype or len(self) != 16:
            raise ValueError(
                f"binary of subtype {self.subtype} and {len(self)} bytes is not a UUID in `{uuid_representation}` form"
            )
        return UUID(bytes=_reordered(bytes(self), uuid_representation))

    def __eq__(self, other: object) -> bool:
        if _marker(other) == 5:
            same_bytes = bytes(self) == bytes(other)  # type: ignore[call-overload]
            return same_bytes and self.subtype == getattr(other, "subtype", None)
        return self.subtype == 0 and type(other) is bytes and bytes(self) == other

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return super().__hash__() ^ hash(self.subtype)

    def __getnewargs__(self) -> tuple[bytes, int]:  # type: ignore[override]
        return bytes(self), self.subtype

    def __repr__(self) -> str:
        return f"{type(self).__name__}({bytes(self)!r}, {self.subtype})"


def _reordered(data: bytes, representation: str) -> bytes:
    """Convert a UUID's 16 bytes from the standard byte order to that of ``representation``, or
    back: both directions are the same operation."""
    if representation in ("standard", "python_legacy"):
        return data
    if representation == "java_legacy":
        return data[7::-1] + data[:7:-1]
    if representation == "csharp_legacy":
        return data[3::-1] + data[5:3:-1] + data[7:5:-1] + data[8:]
    raise ValueError("`uuid_representation` must be one of standard, python_legacy, java_legacy, csharp_legacy")


class Int64(int):
    """An integer that is encoded with 64 bits even if 32 would suffice."""

    _type_marker: ClassVar[int] = 18
    __slots__ = ()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({int(self)})"

    def __str__(self) -> str:
        return int.__repr__(self)

    def __getnewargs__(self) -> tuple[int]:
        return (int(self),)


class _Value:
    """The base class of immutable values, which store their attributes in ``__slots__``."""

    __slots__: tuple[str, ...] = ()

    def _parts(self) -> tuple[Any, ...]:
        return tuple(getattr(self, name) for name in self.__slots__)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"a {type(self).__name__} cannot be changed")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"a {type(self).__name__} cannot be changed")

    def __reduce__(self) -> tuple[type[_Value], tuple[Any, ...]]:
        return self.__class__, self._parts()

    def __copy__(self) -> _Value:
        return self

    def __hash__(self) -> int:
        return hash(self._parts())

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(map(repr, self._parts()))})"

    def _set(self, **values: object) -> None:
        for name, value in values.items():
            object.__setattr__(self, name, value)


@total_ordering
class DatetimeMS(_Value):
    """A time as a 64-bit number of milliseconds since 1970 in UTC; the range exceeds that of
    `datetime`.

    `DatetimeMS(value)` accepts an `int`, or a `datetime` (UTC if naive), which is floored to
    milliseconds. Raises `OverflowError` for a value that does not fit into 64 bits.
    """

    _type_marker: ClassVar[int] = 9
    __slots__ = ("_value",)
    _value: int

    def __init__(self, value: int | datetime.datetime) -> None:
        if isinstance(value, datetime.datetime):
            if value.utcoffset() is None:
                value = value.replace(tzinfo=datetime.timezone.utc)
            value = (value - _EPOCH) // _MILLISECOND
        if not isinstance(value, int):
            raise TypeError("`value` must be an int or a datetime")
        if not -(1 << 63) <= value < 1 << 63:
            raise OverflowError("milliseconds must fit in 64 bits")
        self._set(_value=int(value))

    def as_datetime(self, tz_aware: bool = True) -> datetime.datetime:
        """Convert to a `datetime` in UTC. Raises `OverflowError` outside of the years 1 to 9999."""
        made = _EPOCH + self._value * _MILLISECOND
        return made if tz_aware else made.replace(tzinfo=None)

    def __int__(self) -> int:
        return self._value

    def __eq__(self, other: object) -> bool:
        return _marker(other) == 9 and self._value == int(other)  # type: ignore[call-overload]

    def __lt__(self, other: Any) -> bool:
        if _marker(other) != 9 and not isinstance(other, int):
            return NotImplemented
        return self._value < int(other)

    __hash__ = _Value.__hash__


@total_ordering
class Timestamp(_Value):
    """MongoDB's internal timestamp: seconds since 1970 and a counter, each an unsigned 32-bit
    integer.

    `Timestamp(time, inc)` accepts seconds, or a `datetime` (UTC if naive). Raises `ValueError` for
    a value that does not fit into 32 bits.
    """

    _type_marker: ClassVar[int] = 17
    __slots__ = ("time", "inc")  # noqa: RUF023 - the order of the arguments
    #: Seconds since 1970.
    time: int
    #: The number of the timestamp within that second.
    inc: int

    def __init__(self, time: int | datetime.datetime, inc: int) -> None:
        if isinstance(time, datetime.datetime):
            time = int(DatetimeMS(time)) // 1000
        for name, value in (("time", time), ("inc", inc)):
            if not isinstance(value, int):
                raise TypeError(f"`{name}` must be an int")
            if not 0 <= value < 1 << 32:
                raise ValueError(f"`{name}` must fit in 32 bits")
        self._set(time=int(time), inc=int(inc))

    def as_datetime(self) -> datetime.datetime:
        """Convert the seconds to a `datetime` in UTC."""
        return datetime.datetime.fromtimestamp(self.time, datetime.timezone.utc)

    def __eq__(self, other: object) -> bool:
        return _marker(other) == 17 and (self.time, self.inc) == (
            getattr(other, "time", None),
            getattr(other, "inc", None),
        )

    def __lt__(self, other: Any) -> bool:
        if _marker(other) != 17:
            return NotImplemented
        return bool((self.time, self.inc) < (other.time, other.inc))

    __hash__ = _Value.__hash__


#: Regex options, and the corresponding flags of Python's `re`.
_FLAGS = {"i": re.I, "l": re.L, "m": re.M, "s": re.S, "u": re.U, "x": re.X}


class Regex(_Value):
    """A regular expression. It is not compiled, because BSON uses the syntax of PCRE, parts of
    which Python's `re` does not support.

    `Regex(pattern, options="")`: `options` are letters (`ilmsux` are defined), stored in
    alphabetical order as BSON requires, or flags of `re`. Raises `ValueError` if the pattern or the
    options contain NUL.
    """

    _type_marker: ClassVar[int] = 11
    __slots__ = ("pattern", "options")  # noqa: RUF023 - the order of the arguments
    pattern: str
    #: The letters of the options, in alphabetical order.
    options: str

    def __init__(self, pattern: str | bytes, options: str | int = "") -> None:
        if isinstance(pattern, bytes):
            pattern = pattern.decode()
        if isinstance(options, int):
            options = "".join(letter for letter, flag in _FLAGS.items() if options & flag)
        if not isinstance(pattern, str) or not isinstance(options, str):
            raise TypeError("`pattern` and `options` must be str")
        if "\0" in pattern or "\0" in options:
            raise ValueError("a regex in BSON must not contain NUL")
        self._set(pattern=pattern, options="".join(sorted(options)))

    @classmethod
    def from_native(cls, regex: re.Pattern[Any]) -> Regex:
        """Create a value from a compiled pattern, including its flags."""
        return cls(regex.pattern, regex.flags)

    @property
    def flags(self) -> int:
        """The options as flags of `re`; options for which `re` has no flag are omitted."""
        return int(sum(flag for letter, flag in _FLAGS.items() if letter in self.options))

    def try_compile(self) -> re.Pattern[str]:
        """Compile the pattern with Python's `re`. Raises `re.error` if Python does not support the
        syntax."""
        return re.compile(self.pattern, self.flags)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Regex):
            return self._parts() == other._parts()
        return _marker(other) == 11 and (self.pattern, self.flags) == (
            getattr(other, "pattern", None),
            getattr(other, "flags", None),
        )

    __hash__ = _Value.__hash__


class Code(str):
    """JavaScript code with an optional scope, which is a mapping from names to values.

    `Code(code, scope=None)`. A value is equal only to code with the same text and an equal scope.
    """

    _type_marker: ClassVar[int] = 13
    #: The scope: the variables of the code and their values; `None` for code without a scope.
    scope: Mapping[str, Any] | None

    def __new__(cls, code: str, scope: Mapping[str, Any] | None = None) -> Code:
        if not isinstance(code, str):
            raise TypeError("`code` must be a str")
        if scope is not None and not isinstance(scope, Mapping):
            raise TypeError("`scope` must be a mapping")
        self = super().__new__(cls, code)
        self.scope = scope
        return self

    def __eq__(self, other: object) -> bool:
        return _marker(other) == 13 and str(self) == str(other) and self.scope == getattr(other, "scope", None)

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = str.__hash__

    def __getnewargs__(self) -> tuple[str, Mapping[str, Any] | None]:  # type: ignore[override]
        return str(self), self.scope

    def __repr__(self) -> str:
        return f"{type(self).__name__}({str(self)!r}{'' if self.scope is None else f', {self.scope!r}'})"


class Symbol(str):
    """A `str` that is encoded as BSON's deprecated type symbol."""

    _type_marker: ClassVar[int] = 14
    __slots__ = ()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({str.__repr__(self)})"


class _Single(_Value):
    """The base class of types that have only one value: `MinKey`, `MaxKey`, `Undefined`."""

    __slots__ = ()
    _type_marker: ClassVar[int]

    def __eq__(self, other: object) -> bool:
        return _marker(other) == self._type_marker

    def __hash__(self) -> int:
        return hash(self._type_marker)


class MinKey(_Single):
    """The BSON value that MongoDB sorts before every other value."""

    _type_marker: ClassVar[int] = 255
    __slots__ = ()

    def __lt__(self, other: object) -> bool:
        return not self == other

    def __le__(self, other: object) -> bool:
        return True

    def __gt__(self, other: object) -> bool:
        return False

    def __ge__(self, other: object) -> bool:
        return self == other


class MaxKey(_Single):
    """The BSON value that MongoDB sorts after every other value."""

    _type_marker: ClassVar[int] = 127
    __slots__ = ()

    def __lt__(self, other: object) -> bool:
        return False

    def __le__(self, other: object) -> bool:
        return self == other

    def __gt__(self, other: object) -> bool:
        return not self == other

    def __ge__(self, other: object) -> bool:
        return True


class Undefined(_Single):
    """The value of BSON's deprecated type undefined."""

    _type_marker: ClassVar[int] = 6
    __slots__ = ()

    def __bool__(self) -> bool:
        return False


class DBPointer(_Value):
    """BSON's deprecated pointer to a document: `DBPointer(collection, id)`, a `str` and an
    `ObjectId`."""

    _type_marker: ClassVar[int] = 12
    __slots__ = ("collection", "id")
    #: The collection that contains the document: `database.collection`.
    collection: str
    #: The `_id` of the document that is pointed to.
    id: ObjectId

    def __init__(self, collection: str, id: ObjectId) -> None:
        if not isinstance(collection, str):
            raise TypeError("`collection` must be a str")
        if _marker(id) != 7:
            raise TypeError("`id` must be an ObjectId")
        self._set(collection=collection, id=id)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DBPointer) and self._parts() == other._parts()

    __hash__ = _Value.__hash__
