"""The grammar of RFC 8259: valid texts are accepted, others are refused with position and
reason."""

from __future__ import annotations

import array
import ast
import json as standard
from typing import Any

import pytest

from onecopy import json
from tests.json.values import ACCEPTED, OPEN, REFUSED, NotJson, Refused, oracle, outcome, same

#: Deviations of the standard library from the grammar, and matters of policy.
LAX = ("NaN", "too large", "surrogate")


def _decoded(data: bytes) -> str | None:
    try:
        return data.decode()
    except UnicodeDecodeError:
        return None


def test_the_cases_agree_with_the_standard_library() -> None:
    for data, value in ACCEPTED:
        assert same(standard.loads(data.decode()), value), data
    for case in REFUSED:
        text = _decoded(case.data)
        if text is not None and case.reason not in LAX and case.data != b"-NaN":
            with pytest.raises(ValueError, match=r"."):
                standard.loads(text)
        assert outcome(lambda data=case.data: oracle(data)) is NotJson, case  # type: ignore[misc]


@pytest.mark.parametrize(("data", "value"), ACCEPTED, ids=[repr(data) for data, _ in ACCEPTED])
def test_valid_text_is_accepted_from_every_buffer_and_str(data: bytes, value: Any) -> None:
    views: list[Any] = [memoryview(data), array.array("B", data), memoryview(b"x" + data + b"x")[1:-1]]
    for given in (data, bytearray(data), *views, data.decode()):
        assert same(json.loads(given), value), given


@pytest.mark.parametrize(("data", "value"), ACCEPTED, ids=[repr(data) for data, _ in ACCEPTED])
def test_values_in_arrays_and_objects_may_have_white_space_around_them(data: bytes, value: Any) -> None:
    for blanks in (b"", b" ", b"\n\t\r ", b" " * 70):
        assert same(json.loads(b"[" + blanks + data + blanks + b"," + data + b"]" + blanks), [value, value])
        assert same(json.loads(b'{"k":' + blanks + data + blanks + b"}"), {"k": value})


def _check(error: standard.JSONDecodeError, case: Refused, doc: bytes | str) -> None:
    assert isinstance(error, json.JSONDecodeError) and case.reason in error.msg, error
    assert error.offset_bytes == case.offset, error
    before = case.data[: case.offset].decode("utf-8", "replace")
    assert error.pos == len(before) and error.doc == doc
    assert error.lineno == before.count("\n") + 1
    assert error.colno == len(before) - (before.rindex("\n") if "\n" in before else -1)
    assert f"line {error.lineno} column {error.colno} (char {error.pos})" in str(error)


@pytest.mark.parametrize("case", REFUSED, ids=lambda case: repr(case.data))
def test_invalid_text_is_refused_with_position_and_reason(case: Refused) -> None:
    with pytest.raises(json.JSONDecodeError) as caught:
        json.loads(case.data)
    _check(caught.value, case, caught.value.doc)
    text = _decoded(case.data)
    if text is not None:
        with pytest.raises(json.JSONDecodeError) as caught:
            json.loads(text)
        _check(caught.value, case, text)


def test_the_position_is_counted_in_characters_lines_and_bytes() -> None:
    with pytest.raises(json.JSONDecodeError) as caught:
        json.loads('{"имя": "東京",\n "😀": [1,\n  2 3]}')
    error = caught.value
    assert (error.lineno, error.colno) == (3, 5)
    assert error.pos == len('{"имя": "東京",\n "😀": [1,\n  2 ')
    assert error.offset_bytes == len('{"имя": "東京",\n "😀": [1,\n  2 '.encode())
    with pytest.raises(standard.JSONDecodeError) as oracle_caught:
        standard.loads('{"имя": "東京",\n "😀": [1,\n  2 3]}')
    assert (error.pos, error.lineno, error.colno) == (
        oracle_caught.value.pos,
        oracle_caught.value.lineno,
        oracle_caught.value.colno,
    )


@pytest.mark.parametrize("case", OPEN, ids=[f"{case[0]!r}, {case[1]}" for case in OPEN])
def test_options_decide_what_the_grammar_leaves_open(case: tuple[bytes, dict[str, Any], str]) -> None:
    data, options, wanted = case
    for given in (data, data.decode()):
        if wanted.startswith("! "):
            with pytest.raises(json.JSONDecodeError, match=wanted[2:]):
                json.loads(given, **options)
        else:
            value = eval(wanted, {"float": float}) if "float(" in wanted else ast.literal_eval(wanted)
            assert same(json.loads(given, **options), value)


def test_every_byte_at_every_index_is_accepted_or_refused_as_by_the_oracle() -> None:
    text = b'{"a\\n":[1,-2.5e1,"\xd1\x8f",null]}'
    for at in range(len(text) + 1):
        for byte in range(256):
            for data in (text[:at] + bytes([byte]) + text[at + 1 :], text[:at] + bytes([byte]) + text[at:]):
                ours = outcome(lambda d=data: json.loads(d))  # type: ignore[misc]
                theirs = outcome(lambda d=data: oracle(d))  # type: ignore[misc]
                assert (ours is NotJson) == (theirs is NotJson) and (ours is NotJson or same(ours, theirs)), data


def test_every_prefix_of_a_text_is_refused() -> None:
    text = b'[{"a":"\\ud83d\\ude00\\n\xd1\x8f","b":[true,false,null,-12.5e+3]},"' + b"x" * 100 + b'"]'
    assert same(json.loads(text), oracle(text))
    for n in range(len(text)):
        with pytest.raises(json.JSONDecodeError):
            json.loads(text[:n])


def test_an_object_that_is_neither_buffer_nor_text_is_a_type_error() -> None:
    untyped: Any = json
    for given in (None, 1, ["1"], object()):
        with pytest.raises(TypeError):
            untyped.loads(given)
    with pytest.raises(TypeError):
        untyped.loads()
    with pytest.raises(TypeError):
        untyped.loads(b"1", strict=True)
