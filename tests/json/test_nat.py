"""pandas' `NaT` (not a time), whose class is derived from `datetime`."""

from __future__ import annotations

import datetime as dt
from typing import Any

from onecopy import bson, json


class NotATime(dt.datetime):
    """A datetime that is not equal to itself, as `NaT` is; pandas is not installed everywhere."""

    def __eq__(self, other: object) -> bool:
        return False

    def __ne__(self, other: object) -> bool:
        return True

    __hash__ = dt.datetime.__hash__


NAT: Any = NotATime(1, 1, 1)


def test_nat_is_null() -> None:
    assert json.dumps([NAT, {"a": NAT}]) == b'[null,{"a":null}]'
    assert json.dumps_rows(["a"], [(NAT,)]) == b'[{"a":null}]'
    assert bson.decode(bson.encode({"a": NAT, "b": [NAT]})) == {"a": None, "b": [None]}


def test_another_derived_class_is_a_datetime() -> None:
    class Moment(dt.datetime):
        pass

    assert json.dumps([Moment(2020, 1, 1)]) == b'["2020-01-01T00:00:00"]'
    assert bson.decode(bson.encode({"a": Moment(2020, 1, 1)})) == {"a": dt.datetime(2020, 1, 1, tzinfo=dt.timezone.utc)}
