"""`onecopy.json.loads_lines`: decodes newline-delimited JSON, one value per line."""

from __future__ import annotations

import json
import random

import pytest

from onecopy.json import JSONDecodeError, loads_lines

ROWS = [{"id": i, "name": "Zürich"[: i % 7], "x": [i / 7, None], "東": "😀" * (i % 3)} for i in range(300)]


@pytest.mark.parametrize("letters", ["", "é", "東", "😀"])
def test_lines_are_read_from_each_kind_of_input(letters: str) -> None:
    for ensure_ascii in (True, False):
        text = "".join(json.dumps([row, letters], ensure_ascii=ensure_ascii) + "\n" for row in ROWS)
        for given in (text, text.encode(), bytearray(text.encode()), memoryview(text.encode()), text.rstrip("\n")):
            assert list(loads_lines(given)) == [[row, letters] for row in ROWS]


def test_lines_without_a_value_are_skipped() -> None:
    assert list(loads_lines(b"")) == []
    assert list(loads_lines("\n \r\n\t\n")) == []
    assert list(loads_lines(b"\n1\r\n\n  2  \r\n \n3")) == [1, 2, 3]


def test_an_invalid_line_reports_its_position_and_the_next_can_be_read() -> None:
    for text in ('[1]\n{"é": x}\n\n[3]\n', '["東"]\n{"é": x}\n\n[3]\n'):
        lines = loads_lines(text.encode())
        next(lines)
        with pytest.raises(JSONDecodeError) as caught:
            next(lines)
        assert (caught.value.lineno, caught.value.colno) == (2, 7)
        assert caught.value.pos == text.index("x")
        assert caught.value.offset_bytes == len(text[: text.index("x")].encode())
        assert list(lines) == [[3]]


@pytest.mark.parametrize("text", ["1 2\n", "[1,\n2]\n", '"a\nb"', "[1]]\n", "{\n}\n"])
def test_a_line_holds_exactly_one_value(text: str) -> None:
    with pytest.raises(JSONDecodeError):
        list(loads_lines(text))


def test_options_apply_to_each_line() -> None:
    assert list(loads_lines("1.5\n{}\n", parse_float=str, object_hook=list)) == ["1.5", []]
    with pytest.raises(JSONDecodeError, match="max_depth"):
        list(loads_lines("[[1]]\n", max_depth=1))
    with pytest.raises(TypeError, match="bytes-like"):
        loads_lines(1)  # type: ignore[arg-type]


def test_the_lines_are_those_of_the_buffer_at_the_call() -> None:
    data = bytearray(b"1\n2\n3\n")
    lines = loads_lines(data)
    assert next(lines) == 1
    data[2:3] = b"9"
    data.clear()
    assert list(lines) == [2, 3]


def test_a_hook_cannot_advance_the_iterator_that_called_it() -> None:
    lines = loads_lines('{"a": 1}\n2\n', object_hook=lambda _: next(lines))
    with pytest.raises(ValueError, match="read already"):
        next(lines)
    assert next(lines) == 2


def test_any_text_gives_the_values_of_its_lines() -> None:
    rng = random.Random(3)
    for _ in range(300):
        values = [rng.choice([None, rng.random(), "é" * rng.randrange(100), {"k": [1, 2]}]) for _ in range(8)]
        ends = [rng.choice(["\n", "\r\n", "\n\n", " \n"]) for _ in values]
        text = "".join(json.dumps(value) + end for value, end in zip(values, ends, strict=True))
        assert list(loads_lines(text)) == values
