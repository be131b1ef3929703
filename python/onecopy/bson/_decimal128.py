"""`Decimal128`: the IEEE 754 decimal128 type."""

from __future__ import annotations

import decimal
import re
from typing import ClassVar

__all__ = ["Decimal128"]

#: The largest number of digits, and the smallest and the largest exponent of the last digit.
_DIGITS, _LEAST_EXPONENT, _MOST_EXPONENT = 34, -6176, 6111
#: The text that is accepted. `decimal.Decimal` also accepts white space, underscores and digits of
#: other scripts.
_NUMBER = re.compile(
    r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)(e[+-]?[0-9]+)?|[+-]?(inf|infinity|s?nan)", re.IGNORECASE | re.ASCII
)
_SIGN, _INFINITY, _NAN, _SIGNALLING_NAN = 1 << 127, 0x78 << 120, 0x7C << 120, 0x7E << 120


class Decimal128:
    """A decimal of up to 34 digits; trailing zeros are significant: `1.50` differs from `1.5`.

    `Decimal128(value)` accepts a `Decimal`, a `str` (ASCII digits with an optional sign, point and
    exponent; `Infinity`, `NaN`), an `int` or another `Decimal128`. Raises `ValueError` for a value
    that would have to be rounded, and for text that is not a decimal.

    Two values are equal if their 16 bytes are equal, even if one of them is an instance of
    pymongo's class. To compare them as numbers, use `to_decimal`.
    """

    _type_marker: ClassVar[int] = 19
    __slots__ = ("bid",)
    #: The 16 bytes in BSON's format: integer significand (BID), little-endian.
    bid: bytes

    def __init__(self, value: decimal.Decimal | str | int | Decimal128) -> None:
        if isinstance(value, Decimal128):
            bid = value.bid
        elif isinstance(value, (decimal.Decimal, str, int)):
            if isinstance(value, str) and not _NUMBER.fullmatch(value):
                raise ValueError(f"`{value}` is not a valid decimal")
            try:
                exact = decimal.Decimal(value)
            except decimal.InvalidOperation:
                raise ValueError(f"`{value}` has an exponent out of range") from None
            bid = _bits(exact).to_bytes(16, "little")
        else:
            raise TypeError("`value` must be a Decimal, a str or an int")
        object.__setattr__(self, "bid", bid)

    @classmethod
    def from_bid(cls, bid: bytes) -> Decimal128:
        """Create a value from the 16 bytes that BSON stores."""
        if not isinstance(bid, bytes):
            raise TypeError("`bid` must be bytes")
        if len(bid) != 16:
            raise ValueError("`bid` must have 16 bytes")
        made = object.__new__(cls)
        object.__setattr__(made, "bid", bytes(bid))
        return made

    def to_decimal(self) -> decimal.Decimal:
        """Convert to a `Decimal` with the same digits, including trailing zeros."""
        bits = int.from_bytes(self.bid, "little")
        sign = "-" if bits & _SIGN else ""
        if bits & _NAN == _NAN:
            return decimal.Decimal(f"{sign}{'s' if bits & _SIGNALLING_NAN == _SIGNALLING_NAN else ''}NaN")
        if bits & _NAN == _INFINITY:
            return decimal.Decimal(f"{sign}Infinity")
        exponent, digits = bits >> 113 & 0x3FFF, bits & (1 << 113) - 1
        if bits >> 125 & 3 == 3:
            # This encoding is for significands above 113 bits, which have more than 34 digits. IEEE
            # 754 requires that they are read as 0.
            exponent, digits = bits >> 111 & 0x3FFF, 0
        if digits >= 10**_DIGITS:
            digits = 0
        return decimal.Decimal(f"{sign}{digits}E{exponent + _LEAST_EXPONENT}")

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError("a Decimal128 cannot be changed")

    def __delattr__(self, name: str) -> None:
        raise AttributeError("a Decimal128 cannot be changed")

    def __reduce__(self) -> tuple[object, tuple[bytes]]:
        return type(self).from_bid, (self.bid,)

    def __copy__(self) -> Decimal128:
        return self

    def __eq__(self, other: object) -> bool:
        return getattr(type(other), "_type_marker", None) == 19 and self.bid == getattr(other, "bid", None)

    def __hash__(self) -> int:
        return hash(self.bid)

    def __str__(self) -> str:
        return str(self.to_decimal())

    def __repr__(self) -> str:
        value = self.to_decimal()
        if _bits(value).to_bytes(16, "little") == self.bid:
            return f"{type(self).__name__}('{value}')"
        return f"{type(self).__name__}.from_bid({self.bid!r})"


def _bits(value: decimal.Decimal) -> int:
    """Return the 128 bits that encode a decimal. Raises `ValueError` if the value would have to be
    rounded."""
    negative, figures, exponent = value.as_tuple()
    sign = _SIGN if negative else 0
    if isinstance(exponent, str):
        if figures and exponent != "F" and any(figures):
            raise ValueError("a NaN with a payload cannot be represented in 128 bits")
        return sign | {"F": _INFINITY, "n": _NAN, "N": _SIGNALLING_NAN}[exponent]
    if not any(figures):
        digits, last = 0, min(max(exponent, _LEAST_EXPONENT), _MOST_EXPONENT)
    else:
        # `n_off` zeros are dropped (too many digits, or too small an exponent); `n_on` zeros are
        # appended.
        n_off = max(len(figures) - _DIGITS, _LEAST_EXPONENT - exponent, 0)
        n_kept = max(len(figures) - n_off, 0)
        n_on = max(exponent + n_off - _MOST_EXPONENT, 0)
        if any(figures[n_kept:]) or n_kept + n_on > _DIGITS:
            raise ValueError(f"`{value}` has more than {_DIGITS} digits, or too large or small an exponent")
        digits = int("".join(map(str, figures[:n_kept]))) * 10**n_on
        last = exponent + n_off - n_on
    return sign | last - _LEAST_EXPONENT << 113 | digits
