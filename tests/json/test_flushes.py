"""`dump` writes to a file while it encodes: the file may change the objects that are being written."""

from __future__ import annotations

import contextlib
import enum
import gc
from typing import Any

import pytest

import onecopy

json = onecopy.json


class Clearing:
    """A file whose writes remove the objects, and reuse their memory."""

    def __init__(self, data: Any) -> None:
        self.data = data
        self.kept: list[Any] = []
        self.parts: list[bytes] = []

    def write(self, part: bytes) -> int:
        self.parts.append(bytes(part))
        self.data.clear()
        self.kept.append([[0] * 4 for _ in range(200)])
        gc.collect()
        return len(part)


@pytest.mark.parametrize("n_before", range(980, 1100, 7))
@pytest.mark.parametrize("length", [10, 400, 460, 1000, 70_000])
@pytest.mark.parametrize("options", [{}, {"sort_keys": True}, {"indent": 1}])
def test_objects_may_be_removed_while_a_fragment_is_flushed(n_before: int, length: int, options: Any) -> None:
    for made in (
        lambda: ["a" * 64] * n_before + [[json.Fragment("1" * length), 1, 2, 3]],
        lambda: {"k": ["a" * 64] * n_before, "l": {"x": json.Fragment("1" * length), "y": [1]}},
    ):
        data: Any = made()
        file = Clearing(data)
        # The change of a dict is an error.
        with contextlib.suppress(RuntimeError):
            json.dump(data, file, **options)
        assert file.parts


class Colour(enum.Enum):
    """An enumeration whose class is changed."""

    RED = 1


class Changing(str):
    """A text whose release changes the class `Colour`."""

    __slots__ = ()

    def __del__(self) -> None:
        Colour.note = 1  # type: ignore[attr-defined]
        json.dumps(Colour.RED)


def test_a_class_may_change_when_a_result_of_default_is_released() -> None:
    class Unknown:
        pass

    json.dumps([Colour.RED, Changing("")])
    for _ in range(50):
        made = json.dumps([Unknown(), Colour.RED, Colour.RED], default=lambda _: [Colour.RED, Changing("s")])
        assert made == b'[[1,"s"],1,1]'
