"""Keys that are not `str`, fragments and results of `default`: the same bytes as from orjson."""

from __future__ import annotations

import collections
import datetime as dt
import enum
import random
import uuid
from typing import Any

import orjson
import pytest

from onecopy import json
from onecopy.compat import orjson as compat


class Colour(enum.Enum):
    """Values of several types."""

    RED = "réd\n"
    ONE = 1
    HALF = 0.5
    DAY = dt.date(2026, 11, 28)
    NONE = None


class Whole(int):
    """A subclass of `int`."""


class Text(str):
    """A subclass of `str`."""


ZONES = [None, dt.timezone.utc, dt.timezone(dt.timedelta(hours=5, minutes=45))]


def _key(draw: random.Random) -> Any:
    kind = draw.randrange(12)
    moment = dt.datetime(1970, 1, 1) + dt.timedelta(microseconds=draw.randrange(10**16))
    return [
        draw.choice([0, -1, 7, draw.randrange(-(2**63), 2**63), 2**64 - 1, -(2**63)]),
        draw.choice([0.0, -0.0, 1.5, draw.random() * 10 ** draw.randrange(-20, 30), float("nan"), float("inf")]),
        draw.choice([True, False]),
        None,
        moment.replace(microsecond=draw.choice([0, 123456]), tzinfo=draw.choice(ZONES)),
        moment.date(),
        moment.time().replace(microsecond=draw.choice([0, 654321])),
        uuid.UUID(int=draw.getrandbits(128)),
        draw.choice(list(Colour)),
        Whole(draw.randrange(100)),
        Text(f"t{draw.randrange(1000)}"),
        draw.choice(["", "a", "é", "я", "a\n", "x" * 300]),
    ][kind]


@pytest.mark.parametrize("seed", range(40))
def test_keys_are_those_of_orjson(seed: int) -> None:
    draw = random.Random(seed)
    value = [{_key(draw): draw.choice([1, "v", [1], {}]) for _ in range(draw.randrange(8))} for _ in range(50)]
    for options in (0, orjson.OPT_INDENT_2, orjson.OPT_SORT_KEYS, orjson.OPT_UTC_Z | orjson.OPT_NAIVE_UTC):
        option = orjson.OPT_NON_STR_KEYS | options
        if options == orjson.OPT_SORT_KEYS:
            value = [{key: item for key, item in each.items() if _is_sortable(key)} for each in value]
        assert compat.dumps(value, option=option) == orjson.dumps(value, option=option)


def _is_sortable(key: Any) -> bool:
    """Several keys of one text have no defined order."""
    return isinstance(key, (dt.date, uuid.UUID))


@pytest.mark.parametrize("seed", range(20))
def test_a_key_has_the_text_of_its_value(seed: int) -> None:
    draw = random.Random(1000 + seed)
    for _ in range(200):
        key = _key(draw)
        if key in (Colour.DAY,) or (isinstance(key, float) and key - key != 0):
            continue
        text = json.dumps_str(key)
        quoted = text if text.startswith('"') else f'"{text}"'
        assert json.dumps_str({key: 1}, non_str_keys=True) == f"{{{quoted}:1}}"
        assert json.dumps({"é": {key: [1]}}, non_str_keys=True) == f'{{"é":{{{quoted}:[1]}}}}'.encode()


@pytest.mark.parametrize("big_ints", ["text53", "error53"])
def test_integer_keys_have_all_digits_with_every_option(big_ints: Any) -> None:
    keys = [1, 2**53, -(2**60), 2**64, 10**40]
    expected = "{" + ",".join(f'"{key}":1' for key in keys) + "}"
    assert json.dumps_str(dict.fromkeys(keys, 1), non_str_keys=True, big_ints=big_ints) == expected


@pytest.mark.parametrize("text", ["1", '{"a":[1, 2]}', '"é"', '"я"', '"😀"', '"' + "x" * 5000 + '"'])
def test_a_fragment_is_written_unchanged(text: str) -> None:
    ours, theirs = compat.Fragment(text), orjson.Fragment(text)
    shapes: list[Any] = [lambda f: f, lambda f: [f] * 300, lambda f: {"a": f, "é": [f]}, lambda f: ["я", f, "ß", f]]
    for shape in shapes:
        for option in (0, orjson.OPT_INDENT_2, orjson.OPT_SORT_KEYS):
            assert compat.dumps(shape(ours), option=option) == orjson.dumps(shape(theirs), option=option)
        assert json.dumps_str(shape(ours)).encode() == orjson.dumps(shape(theirs))


RESULTS = [
    1,
    -(2**63),
    2**64 - 1,
    1.5,
    True,
    None,
    "a",
    "é\n",
    "x" * 5000,
    [1, [2]],
    (),
    {},
    {"a": 1},
    dt.date(1, 2, 3),
]


@pytest.mark.parametrize("result", RESULTS, ids=lambda result: repr(result)[:20])
def test_results_of_default_are_those_of_orjson(result: Any) -> None:
    value = {"a": [object(), {1, 2}, "b", object()], "b": object()}
    assert compat.dumps(value, default=lambda _: result) == orjson.dumps(value, default=lambda _: result)
    assert json.dumps_str(value, default=lambda _: result).encode() == orjson.dumps(value, default=lambda _: result)


class Moved(collections.OrderedDict):  # type: ignore[type-arg]
    """A class derived from `OrderedDict`."""


@pytest.mark.parametrize("cls", [collections.OrderedDict, Moved])
def test_an_ordered_dict_has_its_own_order(cls: Any) -> None:
    draw = random.Random(5)
    for _ in range(300):
        value = cls()
        for _ in range(draw.randrange(12)):
            key = f"k{draw.randrange(8)}"
            match draw.randrange(6):
                case 0 if value:
                    value.move_to_end(draw.choice(list(value)), last=draw.random() < 0.5)
                case 1 if value:
                    value.popitem(last=draw.random() < 0.5)
                case 2 if value:
                    del value[draw.choice(list(value))]
                case _:
                    value[key] = draw.randrange(10)
        pairs = [f'"{key}":{item}' for key, item in value.items()]
        assert json.dumps_str([value, value]) == "[" + ",".join(["{" + ",".join(pairs) + "}"] * 2) + "]"


def test_an_ordered_dict_that_dict_has_changed_has_the_items_of_its_list() -> None:
    value = collections.OrderedDict(a=1, b=2)
    dict.__setitem__(value, "c", 3)
    assert json.dumps(value) == b'{"a":1,"b":2}'
