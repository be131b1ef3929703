"""`onecopy.compat.bson.encode` with type encoders and fallback encoders.

Each encoder is called as often as by pymongo and with the same values, and the outcome is the same.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from random import Random
from typing import Any

import bson as pymongo
import pytest
from hypothesis import given
from hypothesis import strategies as st

import onecopy.bson
from onecopy.compat import bson as compat
from tests.bson.random_values import A, B, C, Formless, Large, Point, Text, View, mapping, options_of, outcome, value
from tests.support.properties import tried

Encode = Callable[..., Any]


def _without_prefix(found: Any) -> Any:
    """The outcome without the prefix "Invalid document: ", which pymongo omits for values of
    `_id`."""
    return (found[0], found[1].replace("Invalid document: ", "")) if isinstance(found, tuple) else found


#: Seeds of random values, and the probability of each part to lack a BSON form.
_SEEDS = st.tuples(st.integers(0, 2**40), st.sampled_from([0, 0.02, 0.1]))


@given(_SEEDS, st.booleans(), st.sampled_from([0, 3, 4, 5, 6]))
@tried(2000)
def test_any_document_is_written_or_refused_as_by_pymongo(
    seed: tuple[int, float], check_keys: bool, representation: int
) -> None:
    document = mapping(Random(seed[0]), seed[1])
    options: Any = pymongo.CodecOptions(uuid_representation=representation)
    expected = outcome(pymongo.encode, document, check_keys, options)
    found = outcome(compat.encode, document, check_keys, options)
    assert _without_prefix(found) == _without_prefix(expected), document


@pytest.mark.parametrize(
    "value", [None, 5, "a", [], (), {1}, A(1), pymongo.DBRef("c", 1), pymongo.Code("f", {}), Point(1)]
)
def test_an_object_that_is_not_a_mapping_is_refused_as_by_pymongo(value: Any) -> None:
    expected = outcome(pymongo.encode, value)
    assert expected[0] is TypeError
    options = options_of({A: lambda _: {}}, lambda _: {})
    assert outcome(compat.encode, value) == outcome(compat.encode, value, False, options) == expected


class _Program:
    """Type encoders whose results are given by a table.

    The table has a list of results for each class, and for the fallback encoder. A result is
    selected by the number of the value that is encoded.
    """

    def __init__(self, table: Mapping[str, list[Any]]) -> None:
        self.table = table
        self.calls: list[str] = []

    def options(self) -> Any:
        """Codec options whose encoders return the results of the table and record their calls."""

        def give(of: str) -> Callable[[Any], Any]:
            def encoder(value: Any) -> Any:
                self.calls.append(f"{of} {value!r}")
                results = self.table[of]
                result = results[getattr(value, "number", 0) % len(results)]
                if isinstance(result, Exception):
                    raise result
                return result

            return encoder

        encoders: dict[type, Callable[[Any], Any]] = {
            of: give(of.__name__) for of in (A, B, C) if of.__name__ in self.table
        }
        return options_of(encoders, give("fallback") if "fallback" in self.table else None)


def _results(draw: Random) -> list[Any]:
    """Random results of one encoder; an exception among them is raised."""
    raised = [RuntimeError("r"), ValueError("v"), pymongo.errors.InvalidDocument("i"), RecursionError("deep")]
    raised.append(onecopy.bson.BSONEncodeError("own", kind="text"))
    made: list[Callable[[], Any]] = [
        lambda: value(draw, 0.1),
        lambda: A(draw.randrange(4)),
        lambda: draw.choice([B, C])(draw.randrange(4)),
    ]
    made.extend([lambda: draw.choice(raised), lambda: draw.choice([2**70, "text", [A(0)], {"b": B(1)}])])
    return [draw.choice(made)() for _ in range(draw.randrange(1, 4))]


@given(st.integers(0, 2**40), st.booleans())
@tried(3000)
def test_encoders_are_called_as_often_as_by_pymongo_with_the_same_values(seed: int, check_keys: bool) -> None:
    draw = Random(seed)
    document = mapping(draw, 0.1)
    table = {name: _results(draw) for name in ("A", "B", "C", "fallback") if draw.random() < 0.6}
    theirs, ours = _Program(table), _Program(table)
    expected = outcome(pymongo.encode, document, check_keys, theirs.options())
    if len(theirs.calls) > 100:
        return  # Endless recursion of encoders, up to the depth of the stack.
    found = outcome(compat.encode, document, check_keys, ours.options())
    assert _without_prefix(found) == _without_prefix(expected), (document, table)
    assert ours.calls == theirs.calls


def _nested(encode: Encode, depth: int) -> tuple[int, Any]:
    """Encodes with a fallback encoder that encodes again, until it raises at ``depth``.

    Returns the number of its calls, and the outcome.
    """
    n_calls = 0

    def fallback(value: A) -> bytes:
        nonlocal n_calls
        n_calls += 1
        if value.number == 0:
            raise RuntimeError("at the bottom")
        made: bytes = encode({"v": A(value.number - 1)}, False, options)
        return made

    options = options_of({}, fallback)
    found = outcome(encode, {"v": A(depth)}, False, options)
    return n_calls, found


@pytest.mark.parametrize("depth", [0, 1, 4, 12, 40])
def test_an_encoder_that_encodes_and_fails_is_called_once_at_each_depth(depth: int) -> None:
    assert (
        _nested(compat.encode, depth) == _nested(pymongo.encode, depth) == (depth + 1, (RuntimeError, "at the bottom"))
    )


def test_a_mapping_that_encodes_and_fails_is_read_once_at_each_depth() -> None:
    def n_read(encode: Encode, expected: type[Exception]) -> int:
        n = 0

        class Deep(View):
            def __getitem__(self, key: str) -> Any:
                nonlocal n
                n += 1
                if n > 12:
                    raise RuntimeError("at the bottom")
                return encode({"v": Deep({"a": 1})})

        with pytest.raises(expected):
            encode({"v": Deep({"a": 1})})
        return n

    # pymongo raises a KeyError, whatever `__getitem__` raises.
    assert n_read(compat.encode, RuntimeError) == n_read(pymongo.encode, KeyError) == 13


def test_endless_recursion_of_an_encoder_is_a_recursion_error() -> None:
    def n_calls(encode: Encode) -> int:
        n = 0

        def fallback(value: A) -> bytes:
            nonlocal n
            n += 1
            made: bytes = encode({"v": value}, False, options)
            return made

        options = options_of({}, fallback)
        with pytest.raises(RecursionError):
            encode({"v": A(0)}, False, options)
        return n

    assert n_calls(compat.encode) < 1000
    assert n_calls(pymongo.encode) < 1000


@pytest.mark.parametrize("value", [2**63, -(2**70), Large(2**64)])
def test_the_fallback_is_called_once_for_an_int_past_64_bits(value: int) -> None:
    calls: list[Any] = []

    def same(value: Any) -> Any:
        calls.append(value)
        return value

    for encode in (pymongo.encode, compat.encode):
        found = outcome(encode, {"v": [value]}, False, options_of({}, same))
        assert found == (OverflowError, "MongoDB can only handle up to 8-byte ints")
    assert calls == [value, value]
    assert all(given is value for given in calls)
    text = options_of({}, str)
    assert compat.encode({"v": value}, codec_options=text) == pymongo.encode({"v": value}, codec_options=text)


def test_the_result_of_a_type_encoder_is_not_passed_to_a_type_encoder() -> None:
    calls: list[str] = []

    def of(name: str, result: Any) -> Callable[[Any], Any]:
        def encoder(value: Any) -> Any:
            calls.append(name)
            return result

        return encoder

    chained = options_of({A: of("a", B(1)), B: of("b", 5)})
    for encode in (pymongo.encode, compat.encode):
        error, message = outcome(encode, {"v": A(0)}, False, chained)
        assert error is pymongo.errors.InvalidDocument
        assert message == f"Invalid document: cannot encode object: B(1), of type: {B!r}"
    assert calls == ["a", "a"]
    # A result of the fallback is, and so are values nested in a result.
    for options in (options_of({B: of("b", 5)}, of("f", B(1))), options_of({A: of("a", [B(1)]), B: of("b", 5)})):
        assert compat.encode({"v": A(0)}, codec_options=options) == pymongo.encode({"v": A(0)}, codec_options=options)


def test_encoders_that_alternate_endlessly_are_a_recursion_error() -> None:
    turns = options_of({A: lambda _: B(0)}, lambda _: A(0))
    for encode in (pymongo.encode, compat.encode):
        with pytest.raises(RecursionError):
            encode({"v": A(0)}, False, turns)


def test_our_exception_raised_by_an_encoder_is_raised_unchanged() -> None:
    def fallback(value: Formless) -> Any:
        return onecopy.bson.encode({"v": "\ud800"})

    with pytest.raises(onecopy.bson.BSONEncodeError, match=r"at `\$\.v`"):
        compat.encode({"v": A(0)}, codec_options=options_of({}, fallback))


def test_the_exception_holds_the_refused_document() -> None:
    for document in ({"v": A(0)}, {"v": {"a": {1: 2}}}, {"k\0": 1}):
        for encode in (pymongo.encode, compat.encode):
            with pytest.raises(pymongo.errors.InvalidDocument) as caught:
                encode(document)
            assert caught.value.document is document


def test_id_comes_first_for_any_mapping() -> None:
    documents: list[Mapping[str, Any]] = [View({"b": 1, "_id": 2}), {Text("b"): 1, Text("_id"): 2}]
    for document in documents:
        assert compat.encode(document) == pymongo.encode(document) == pymongo.encode({"_id": 2, "b": 1})


def test_pymongo_is_not_called(monkeypatch: pytest.MonkeyPatch) -> None:
    refused = [{"v": A(0)}, {"v": 2**70}, {"v": "\ud800"}, {1: 2}, {"k\0": 1}, [], 5]
    expected = [outcome(pymongo.encode, document) for document in refused]
    monkeypatch.setattr(pymongo, "encode", None)
    assert [outcome(compat.encode, document) for document in refused] == expected
