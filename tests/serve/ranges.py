"""A reference implementation of the header `Range` (RFC 9110, section 14), with sets of byte
offsets."""

from __future__ import annotations

import random
import re

#: The largest number of ranges in a request; more are refused.
MOST_RANGES = 16


def requested_parts(value: str, n_bytes: int) -> list[tuple[int, int]] | None:
    """The parts of a file of ``n_bytes`` that a `Range` value requests, as pairs of first and last
    offset.

    The result is empty if the range is refused (416), and `None` if the whole file is sent (200).
    """
    unit, equals, text = value.partition("=")
    if unit.lower() != "bytes" or not equals:
        return None
    specs = [spec for spec in (part.strip(" \t") for part in text.split(",")) if spec]
    sets: list[set[int]] = []
    for spec in specs:
        match = re.fullmatch(r"([0-9]*)-([0-9]*)", spec)
        if match is None or spec == "-":
            return None
        first, last = (int(digits) if digits else None for digits in match.groups())
        if first is None:
            assert last is not None
            sets.append({at for at in range(n_bytes) if n_bytes - at <= last})
        elif last is not None and last < first:
            return None
        else:
            sets.append({at for at in range(n_bytes) if first <= at and (last is None or at <= last)})
    if not specs:
        return None
    if len(specs) > MOST_RANGES:
        return []
    if n_bytes == 0 and any(re.fullmatch("-0*[1-9][0-9]*", spec) for spec in specs):
        return None
    if sum(any(i != j and a & b for j, b in enumerate(sets)) for i, a in enumerate(sets)) > 2:
        return []
    everything = set().union(*sets)
    parts: list[tuple[int, int]] = []
    for each in sets:
        if each:
            first = last = min(each)
            while first - 1 in everything:
                first -= 1
            while last + 1 in everything:
                last += 1
            if (first, last) not in parts:
                parts.append((first, last))
    return parts


#: Malformed and malicious values.
HOSTILE = [
    *("", "bytes", "bytes=", "bytes=,", "bytes=-", "bytes=--1", "bytes=1", "bytes=5-2", "bytes=0-1;2-3", "bytes=a-b"),
    *("bytes= 0-1", "bytes=0 -1", "bytes =0-1", "bytes=0-1,x", "bytes=0x0-1", "bytes=+1-2", "bytes=-+1", "bytes=0-1-2"),
    *("bits=0-1", "bytes:0-1", "bytes=1.0-2", "bytes=0-0,", ",bytes=0-0", "bytes=,,0-0", "BYTES=0-0", "bytes=00-01"),
    *("bytes=0-", "bytes=-0", "bytes=-1", "bytes=-99999", "bytes=50-", "bytes=49-", "bytes=49-50", "bytes=60-70"),
    *(
        "bytes=0-18446744073709551615",
        "bytes=0-18446744073709551616",
        "bytes=18446744073709551616-",
        "bytes=-" + "9" * 300,
    ),
    *("bytes=" + "9" * 300 + "-", "bytes=9223372036854775808-9223372036854775809", "bytes=0-9223372036854775807"),
    *("bytes=0-,0-", "bytes=0-,0-,0-", "bytes=0-9,5-14", "bytes=0-9,5-14,10-19", "bytes=0-9,10-19", "bytes=10-19,0-9"),
    "bytes=" + ",".join(["0-"] * 1000),
    "bytes=" + ",".join(f"{2 * k}-{2 * k}" for k in range(16)),
    "bytes=" + ",".join(f"{2 * k}-{2 * k}" for k in range(17)),
    "bytes=" + "," * 2000 + "0-0",
    "bytes=" + ",".join(f"{k}-{k}" for k in reversed(range(10))),
]


def by_chance(seed: int, n: int) -> list[str]:
    """``n`` random `Range` values, some of them malformed; the same seed gives the same values."""
    chance = random.Random(seed)

    def spec() -> str:
        first, last = (chance.choice([str(chance.randrange(60))] * 3 + ["", "007", "9" * 25]) for _ in range(2))
        before, after = (chance.choice(["", "", "", " ", "\t"]) for _ in range(2))
        return f"{before}{first}{chance.choice('-----=')}{last}{after}"

    values = []
    for _ in range(n):
        specs = [spec() for _ in range(chance.randrange(1, 6))]
        values.append(chance.choice(["bytes", "bytes", "Bytes", "bit"]) + "=" + ",".join(specs))
    return values
