"""Random instances of custom and standard-library classes, encoded as by orjson with all
options."""

from __future__ import annotations

import dataclasses
import itertools
import random
from collections.abc import Callable
from typing import Any

import orjson as theirs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from onecopy import json
from onecopy.compat import orjson as ours
from tests.compat import orjson_values as values
from tests.support.properties import tried

#: All options except that for NumPy, which has separate tests.
OPTIONS = [
    name for name in dir(theirs) if name.startswith("OPT_") and name != "OPT_SERIALIZE_NUMPY" and getattr(theirs, name)
]
PAIRS = list(itertools.combinations(OPTIONS, 2))
DEFAULTS: list[Callable[[Any], Any] | None] = [
    None,
    lambda value: type(value).__name__,
    lambda value: [type(value).__name__, {"a": (1, None)}],
]


def outcome(module: Any, value: Any, default: Any, option: int) -> Any:
    try:
        return module.dumps(value, default, option)
    except TypeError:
        return TypeError


def same(seed: int, default: Any, option: int) -> None:
    """Asserts that both libraries encode the values of a seed alike.

    Each library gets instances of its own, since orjson creates their `__dict__` if it is missing.
    """
    mine = outcome(ours, values.Maker(seed, ours.Fragment).value(), default, option)
    wanted = outcome(theirs, values.Maker(seed, theirs.Fragment).value(), default, option)
    assert mine == wanted, (seed, option)


@tried(1500)
@given(seed=st.integers(0, 2**32 - 1))
def test_random_values_are_written_as_by_orjson_with_each_option_and_pair(seed: int) -> None:
    rng = random.Random(seed)
    for names in [(), *((name,) for name in rng.sample(OPTIONS, 2)), *rng.sample(PAIRS, 2)]:
        same(seed, rng.choice(DEFAULTS), sum(getattr(theirs, name) for name in names))


@pytest.mark.parametrize("names", [(), *((name,) for name in OPTIONS), *PAIRS], ids="|".join)
def test_values_of_each_class_are_written_as_by_orjson(names: tuple[str, ...]) -> None:
    option = sum(getattr(theirs, name) for name in names)
    makers: list[Callable[[], Any]] = [
        *(lambda v=value: v for value in [*values.OTHERS, *values.ENUMS]),
        lambda: values.Person("a", tags={"b": 1, "a": 2}),
        lambda: values.Employee("a"),
        lambda: values.Slotted(1, 2),
        lambda: values.Unslotted(1, 2),
        lambda: values.Late(1),
        *(lambda seed=seed: values.Maker(seed, bytes)._changed(values.Person(seed)) for seed in range(12)),
    ]
    for make, default in itertools.product(makers, DEFAULTS):
        for wrap in (lambda v: v, lambda v: [v, {"k": v}, v], lambda v: values.Frozen(v, [v])):
            mine, wanted = outcome(ours, wrap(make()), default, option), outcome(theirs, wrap(make()), default, option)
            assert mine == wanted, (make(), option)


def test_fields_keep_their_order_if_keys_are_sorted() -> None:
    value = {"k": values.Employee("a", tags={"b": 1, "a": [values.Slotted(1, 2)]}), "a": 1}
    for module in (ours, theirs):
        made = module.dumps(value, option=theirs.OPT_SORT_KEYS)
        assert made == b'{"a":1,"k":{"name":"a","tags":{"a":[{"b":1,"a":2}],"b":1},"z":1,"a":2}}'
    # `onecopy.json` sorts them, so that equal values give equal bytes.
    assert json.dumps(values.Slotted(1, 2), sort_keys=True) == b'{"_hidden":1,"a":2,"b":1}'


def test_attributes_that_change_after_the_first_instance_are_found() -> None:
    @dataclasses.dataclass
    class Changing:
        a: int = 1
        b: int = 2

    untyped: Any = Changing
    instances: list[Any] = [untyped() for _ in range(6)]
    instances[1].extra = 3
    del instances[2].b
    instances[3].__dict__["more"] = 4
    del instances[4].a
    instances[4].a = 5
    vars(instances[5])
    expected = [dict(vars(instance)) for instance in instances]
    for wrap in (lambda v: v, lambda v: [v], lambda v: [[v], v]):
        for instance, members in zip(instances, expected, strict=True):
            assert ours.dumps(wrap(instance)) == theirs.dumps(wrap(members)) == theirs.dumps(wrap(instance))
    assert ours.dumps(instances) == theirs.dumps(instances) == theirs.dumps(expected)


@pytest.mark.parametrize(
    "option", [1 << 12, 1 << 20, (1 << 12) - 1 + (1 << 13), -1, 1 << 31, 1 << 64, True, False, 1.0, "x", b"", []]
)
def test_unknown_options_are_refused(option: Any) -> None:
    with pytest.raises(ours.JSONEncodeError, match="Invalid opts"):
        ours.dumps([], option=option)
    # orjson reads only the lowest 30 bits.
    if not isinstance(option, int) or option & ((1 << 30) - 1) or option is False:
        with pytest.raises(theirs.JSONEncodeError, match="Invalid opts"):
            theirs.dumps([], option=option)
