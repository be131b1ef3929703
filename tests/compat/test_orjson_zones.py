"""UTC offsets of the time zones of several libraries, compared with orjson and with
`isoformat()`."""

from __future__ import annotations

import dataclasses
import datetime as dt
import random
import re
import zoneinfo
from typing import Any

import orjson as theirs
import pytest
import pytz
from dateutil import tz

from onecopy import json
from onecopy.compat import orjson as ours

NOON = dt.datetime(2021, 6, 1, 12)
NAMES = [
    "Asia/Shanghai",
    "America/New_York",
    "Europe/Amsterdam",
    "Australia/Lord_Howe",
    "Africa/Monrovia",
    "America/St_Johns",
    "UTC",
]
#: Including times before zones with whole hours, and both sides of changes.
YEARS = [2, 1850, 1883, 1900, 1919, 1937, 1945, 1970, 1999, 2021, 2026, 9998]


def _carried(text: bytes) -> bytes:
    """orjson's output with valid UTC offsets: orjson writes minutes of 60, for example `+07:60`.

    RFC 3339 allows minutes up to 59, so such an offset is changed to the next hour.
    """

    def next_hour(found: re.Match[bytes]) -> bytes:
        hour = int(found[2])
        return found[1] + (b"23:59" if hour == 23 else b"%02d:00" % (hour + 1))

    return re.sub(rb"([+-])(\d\d):60", next_hour, text)


def moments(zone: Any, n: int) -> list[dt.datetime]:
    rng = random.Random(4)
    made = []
    for _ in range(n):
        moment = dt.datetime(
            rng.choice(YEARS), rng.randint(1, 12), rng.randint(1, 28), rng.randint(0, 23), rng.randint(0, 59),
            fold=rng.randint(0, 1)
        )  # fmt: skip
        made.append(moment.replace(tzinfo=zone))
        if hasattr(zone, "localize"):
            made.append(zone.localize(moment))
    return made


def test_each_offset_in_seconds_is_written_as_by_orjson() -> None:
    values = [NOON.replace(tzinfo=dt.timezone(dt.timedelta(seconds=n))) for n in range(-86399, 86400)]
    for option in (0, theirs.OPT_UTC_Z, theirs.OPT_OMIT_MICROSECONDS | theirs.OPT_NAIVE_UTC):
        assert ours.dumps(values, option=option) == _carried(theirs.dumps(values, option=option))
    keys = dict.fromkeys(values[::7], 1)
    assert ours.dumps(keys, option=theirs.OPT_NON_STR_KEYS) == _carried(
        theirs.dumps(keys, option=theirs.OPT_NON_STR_KEYS)
    )
    for micros in (1, 499_999, 500_000, 999_999):
        odd = [NOON.replace(tzinfo=dt.timezone(dt.timedelta(seconds=n, microseconds=micros))) for n in range(-200, 200)]
        assert ours.dumps(odd) == theirs.dumps(odd)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("library", ["pytz", "dateutil", "zoneinfo"])
def test_moments_in_the_zones_of_each_library_are_written_as_by_orjson(library: str, name: str) -> None:
    zone: Any = {"pytz": pytz.timezone, "dateutil": tz.gettz, "zoneinfo": zoneinfo.ZoneInfo}[library](name)
    for value in moments(zone, 300):
        for option in (0, theirs.OPT_UTC_Z, theirs.OPT_OMIT_MICROSECONDS):
            assert ours.dumps(value, option=option) == _carried(theirs.dumps(value, option=option))
            keyed = {"k": [value], value: 1}
            option |= theirs.OPT_NON_STR_KEYS
            assert ours.dumps(keyed, option=option) == _carried(theirs.dumps(keyed, option=option))


def test_an_unnormalized_zone_of_pytz_has_the_offset_of_its_normalized_one() -> None:
    value = NOON.replace(tzinfo=pytz.timezone("Asia/Shanghai"))
    assert ours.dumps(value) == theirs.dumps(value) == b'"2021-06-01T12:00:00+08:00"'
    assert (
        ours.dumps({value: value}, option=ours.OPT_NON_STR_KEYS)
        == b'{"2021-06-01T12:00:00+08:00":"2021-06-01T12:00:00+08:00"}'
    )
    # `onecopy.json` writes the offset that the value itself has.
    assert value.isoformat() == "2021-06-01T12:00:00+08:06"
    assert json.dumps(value) == b'"2021-06-01T12:00:00+08:06"'
    for zone in (pytz.utc, pytz.FixedOffset(-90), tz.tzutc(), tz.tzlocal(), tz.tzoffset("x", 12345)):
        assert ours.dumps(NOON.replace(tzinfo=zone)) == theirs.dumps(NOON.replace(tzinfo=zone))


class Unknown(dt.tzinfo):
    """A time zone whose `utcoffset` returns None."""

    def utcoffset(self, moment: dt.datetime | None, /) -> None:
        return None

    def dst(self, moment: dt.datetime | None, /) -> None:
        return None

    def tzname(self, moment: dt.datetime | None, /) -> str:
        return "?"


class Failing(Unknown):
    def normalize(self, moment: dt.datetime) -> dt.datetime:
        raise KeyError("mine")


def test_zones_without_an_offset_and_zones_that_raise() -> None:
    assert ours.dumps(NOON.replace(tzinfo=Unknown())) == b'"2021-06-01T12:00:00"'
    with pytest.raises(ours.JSONEncodeError) as caught:
        ours.dumps([NOON.replace(tzinfo=Failing())])
    assert isinstance(caught.value.__cause__, KeyError)


def closest(value: dt.datetime) -> str:
    """`isoformat()` with the UTC offset rounded to minutes, the precision of RFC 3339."""
    offset = value.utcoffset()
    assert offset is not None
    micros = offset // dt.timedelta(microseconds=1)
    minutes = min((abs(micros) + 30_000_000) // 60_000_000, 23 * 60 + 59)
    local = value.replace(tzinfo=None).isoformat()
    return f"{local}{'-' if micros < 0 and minutes else '+'}{minutes // 60:02}:{minutes % 60:02}"


@dataclasses.dataclass
class Holder:
    at: dt.datetime


def test_each_offset_is_rounded_to_minutes_in_values_keys_rows_and_fields() -> None:
    offsets = [
        dt.timedelta(seconds=n)
        for n in [*range(-86399, 86400, 13), *range(-95, 96), -86399, -86370, -86369, 86369, 86370, 86399]
    ]
    offsets += [dt.timedelta(seconds=30, microseconds=n) for n in (-1, 1)] + [
        -dt.timedelta(seconds=30, microseconds=n) for n in (-1, 1)
    ]
    values = [NOON.replace(tzinfo=dt.timezone(offset)) for offset in offsets]
    values += [moment for name in NAMES for moment in moments(zoneinfo.ZoneInfo(name), 50)]
    expected = [closest(value) for value in values]
    minute, zero = dt.timedelta(minutes=1), dt.timedelta(0)
    whole = [value.utcoffset() % minute == zero for value in values]  # type: ignore[operator]
    assert 100 < sum(whole) < len(values) - 1000
    assert all(
        text == value.isoformat() for text, value, is_whole in zip(expected, values, whole, strict=True) if is_whole
    )
    assert json.loads(json.dumps(values)) == expected
    assert json.loads(json.dumps(values, indent=1, sort_keys=True)) == expected
    assert json.loads(json.dumps_rows(["at"], [[value] for value in values])) == [{"at": text} for text in expected]
    assert json.loads(json.dumps([Holder(value) for value in values])) == [{"at": text} for text in expected]
    for value, text in zip(values, expected, strict=True):
        assert json.dumps({value: value}, non_str_keys=True) == f'{{"{text}":"{text}"}}'.encode()
    # `Z` replaces `+00:00`.
    nearly = NOON.replace(tzinfo=dt.timezone(dt.timedelta(seconds=-29)))
    assert json.dumps(nearly, utc_z=True) == b'"2021-06-01T12:00:00Z"'
