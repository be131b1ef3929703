"""Random values round-trip, and text similar to JSON is accepted or refused, as with the standard
library.

The standard library is made strict for this comparison.
"""

from __future__ import annotations

import json as standard
import re
from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st

from onecopy import json
from tests.json.values import (
    NotJson,
    anything,
    documents,
    floats,
    harmed,
    harms,
    ints,
    oracle,
    outcome,
    rows,
    same,
    texts,
)
from tests.support.properties import tried


def _compact(value: Any, **options: Any) -> str:
    return standard.dumps(value, separators=(",", ":"), **options)


_FLOAT = re.compile(r"-?\d+(?:\.\d+(?:e[+-]?\d+)?|e[+-]?\d+)")


def _plain_numbers(text: str) -> str:
    """``text`` with numbers in one notation: the standard library writes `1e-07` where onecopy
    writes `1e-7`."""
    return _FLOAT.sub(lambda match: repr(float(match[0])), text)


@given(anything)
@tried(400)
def test_encoded_values_decode_to_the_same(value: Any) -> None:
    assert same(oracle(json.dumps(value)), value)
    assert same(json.loads(json.dumps(value)), value)
    assert same(json.loads(json.dumps_str(value)), value)


@given(anything)
@tried(300)
def test_the_bytes_are_those_of_the_standard_library(value: Any) -> None:
    compact = _plain_numbers(_compact(value, ensure_ascii=False))
    assert _plain_numbers(json.dumps(value).decode()) == compact
    assert _plain_numbers(json.dumps_str(value)) == compact
    escaped = json.dumps(value, ensure_ascii=True)
    assert escaped.isascii() and _plain_numbers(escaped.decode()) == _plain_numbers(_compact(value)).replace(
        "\\u007f", "\x7f"
    )


@given(anything, st.sampled_from([1, 2, 3, 4, 7, 17]))
@tried(150)
def test_indented_text_is_that_of_the_standard_library(value: Any, by: int) -> None:
    wanted = standard.dumps(value, indent=by, ensure_ascii=False)
    assert _plain_numbers(json.dumps(value, indent=by).decode()) == _plain_numbers(wanted)


@given(documents)
@tried(150)
def test_sorted_keys_are_in_code_point_order(value: Any) -> None:
    wanted = _compact(value, ensure_ascii=False, sort_keys=True)
    assert _plain_numbers(json.dumps(value, sort_keys=True).decode()) == _plain_numbers(wanted)


@given(anything, st.booleans(), st.sampled_from([None, 2]))
@tried(300)
def test_text_of_the_standard_library_is_read_as_by_the_standard_library(
    value: Any, escaped: bool, by: int | None
) -> None:
    text = standard.dumps(value, ensure_ascii=escaped, indent=by)
    assert same(json.loads(text.encode()), value)
    assert same(json.loads(text), value)


@given(anything, harms)
@example({"a": "я"}, [(4, 1, b"\xff")])
@tried(600)
def test_corrupted_text_is_accepted_or_refused_as_by_the_oracle(value: Any, changes: Any) -> None:
    data = harmed(json.dumps(value), changes)
    ours, theirs = outcome(lambda: json.loads(data)), outcome(lambda: oracle(data))
    assert (ours is NotJson) == (theirs is NotJson)
    assert ours is NotJson or same(ours, theirs)


@given(st.binary(max_size=60))
@tried(500)
def test_any_bytes_are_accepted_or_refused_as_by_the_oracle(data: bytes) -> None:
    ours, theirs = outcome(lambda: json.loads(data)), outcome(lambda: oracle(data))
    assert (ours is NotJson) == (theirs is NotJson)
    assert ours is NotJson or same(ours, theirs)


@given(st.text('[]{}",:\\/0123456789.-+eEtrufalsn \n', max_size=30))
@tried(600)
def test_any_text_of_json_characters_is_accepted_or_refused_as_by_the_oracle(text: str) -> None:
    data = text.encode()
    ours, theirs = outcome(lambda: json.loads(data)), outcome(lambda: oracle(data))
    assert (ours is NotJson) == (theirs is NotJson)
    assert ours is NotJson or same(ours, theirs)
    from_str = outcome(lambda: json.loads(text))
    assert (from_str is NotJson) == (ours is NotJson)


@given(st.text(max_size=80), st.text(st.characters(categories=["Cs"]), max_size=3), texts)
@tried(200)
def test_a_lone_surrogate_is_refused_replaced_or_escaped(before: str, surrogates: str, after: str) -> None:
    text = before + surrogates + after
    lone = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace") != text
    assert lone == any("\ud800" <= c <= "\udfff" for c in text)
    if lone:
        assert outcome(lambda: json.dumps([text])) is NotJson
    replaced = "".join("\ufffd" if "\ud800" <= c <= "\udfff" else c for c in text)
    assert json.loads(json.dumps(text, errors="replace")) == replaced
    ascii_only = json.dumps(text, errors="replace", ensure_ascii=True)
    assert ascii_only.isascii() and json.loads(ascii_only) == replaced
    escaped = json.dumps(text, errors="backslashreplace")
    assert standard.loads(escaped) == standard.loads(standard.dumps(text))


@given(floats)
@tried(500)
def test_a_float_has_the_fewest_digits_and_round_trips(number: float) -> None:
    text = json.dumps(number)
    back = float(text)
    assert same(back, number) and same(json.loads(text), number)
    digits, fewest = (re.sub(r"e.*|[-.]", "", t).strip("0") for t in (text.decode(), repr(number)))
    assert len(digits) <= len(fewest)
    assert any(c in text for c in b".e"), "a float stays one"


@given(ints)
@tried(500)
def test_an_int_of_any_size_round_trips(number: int) -> None:
    text = json.dumps(number)
    assert text == str(number).encode() and same(json.loads(text), number)


@given(rows)
@tried(200)
def test_rows_from_tuples_are_the_bytes_of_the_dicts(made: list[dict[str, Any]]) -> None:
    names = list(made[0]) if made else ["a"]
    tuples = [tuple(row.values()) for row in made]
    assert json.dumps_rows(names, tuples) == json.dumps(made)
    columns = [list(column) for column in zip(*tuples, strict=True)] or [[] for _ in names]
    assert json.dumps_rows(names, columns, columns=True) == json.dumps(made)
    assert json.dumps_rows(names, iter(tuples), sort_keys=True) == json.dumps(made, sort_keys=True)


@given(st.lists(anything, max_size=6))
@tried(200)
def test_lines_are_the_values_each_with_a_line_feed(values: list[Any]) -> None:
    lines = json.dumps_lines(values)
    assert lines == b"".join(json.dumps(value) + b"\n" for value in values)
    assert same(list(json.loads_lines(lines)), values)
    assert same(list(json.loads_lines(lines.decode())), values)


@given(st.lists(anything, max_size=8), st.integers(1, 300), st.booleans())
@tried(200)
def test_chunks_are_the_bytes_of_the_whole(values: list[Any], size: int, lines: bool) -> None:
    chunks = list(json.iter_chunks(iter(values), lines=lines, chunk_bytes=size))
    assert b"".join(chunks) == (json.dumps_lines(values) if lines else json.dumps(values))
    assert all(chunks)
