"""`Decimal128`: IEEE 754's decimal of 128 bits, bit by bit."""

from __future__ import annotations

import decimal
import re
from typing import ClassVar

__all__ = ["Decimal128"]

#: Digits at most, and the exponents that the last of them can have.
_DIGITS, _LEAST_EXPONENT, _MOST_EXPONENT = 34, -6176, 6111
#: The grammar of a text. `decimal.Decimal` also accepts white space, underscores and digits of other
#: scripts.
_NUMBER = re.compile(
    r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)(e[+-]?[0-9]+)?|[+-]?(inf|infinity|s?nan)", re.IGNORECASE | re.ASCII
)
_SIGN, _INFINITY, _NAN, _SIGNALLING_NAN = 1 << 127, 0x78 << 120, 0x7C << 120, 0x7E << 120


class Decimal128:
    """A decimal of up to 34 digits, with the zeros at its end: `1.50` is not `1.5`.

    `Decimal128(value)` takes a `Decimal`, a `str` (digits of ASCII, with a sign, a point and an exponent as may be; `Infinity`, `NaN`),
    an `int` or another one of these. Raises `ValueError` for what it would have to round, and for what is no decimal.

    Equal to one of the same 16 bytes, pymongo's too: `to_decimal` gives what can be compared as a number.
    """

    _type_marker: ClassVar[int] = 19
    __slots__ = ("bid",)
    #: The 16 bytes as BSON has them: integer significand, little-endian.
    bid: bytes

    def __init__(self, value: decimal.Decimal | str | int | Decimal128) -> None:
        if isinstance(value, Decimal128):
            bid = value.bid
        elif isinstance(value, (decimal.Decimal, str, int)):
            if isinstance(value, str) and not _NUMBER.fullmatch(value):
                raise ValueError(f"`{value}` is no decimal")
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
        """Of the 16 bytes that BSON has."""
        if not isinstance(bid, bytes):
            raise TypeError("`bid` must be bytes")
        if len(bid) != 16:
            raise ValueError("`bid` must have 16 bytes")
        made = object.__new__(cls)
        object.__setattr__(made, "bid", bytes(bid))
        return made

    def to_decimal(self) -> decimal.Decimal:
        """As a `Decimal`, exactly, with its zeros."""
        bits = int.from_bytes(self.bid, "little")
        sign = "-" if bits & _SIGN else ""
        if bits & _NAN == _NAN:
            return decimal.Decimal(f"{sign}{'s' if bits & _SIGNALLING_NAN == _SIGNALLING_NAN else ''}NaN")
        if bits & _NAN == _INFINITY:
            return decimal.Decimal(f"{sign}Infinity")
        exponent, digits = bits >> 113 & 0x3FFF, bits & (1 << 113) - 1
        if bits >> 125 & 3 == 3:
            # IEEE's form for digits past 113 bits, which are more than 34 of them: no digits then, it says.
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
    """The 128 bits of a decimal. Raises `ValueError` where it would have to be rounded."""
    negative, figures, exponent = value.as_tuple()
    sign = _SIGN if negative else 0
    if isinstance(exponent, str):
        if figures and exponent != "F" and any(figures):
            raise ValueError("a NaN that says more in digits has no form in 128 bits")
        return sign | {"F": _INFINITY, "n": _NAN, "N": _SIGNALLING_NAN}[exponent]
    if not any(figures):
        digits, last = 0, min(max(exponent, _LEAST_EXPONENT), _MOST_EXPONENT)
    else:
        # Zeros at the end that have to go, for there are too many digits or they stand for too little; and those that have to come.
        n_off = max(len(figures) - _DIGITS, _LEAST_EXPONENT - exponent, 0)
        n_kept = max(len(figures) - n_off, 0)
        n_on = max(exponent + n_off - _MOST_EXPONENT, 0)
        if any(figures[n_kept:]) or n_kept + n_on > _DIGITS:
            raise ValueError(f"`{value}` has more digits than 128 bits hold")
        digits = int("".join(map(str, figures[:n_kept]))) * 10**n_on
        last = exponent + n_off - n_on
    return sign | last - _LEAST_EXPONENT << 113 | digits
