"""Seeds and findings of those fuzz targets whose oracle is written in Python, checked without a
fuzzer."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

FUZZ = Path(__file__).resolve().parents[2] / "fuzz"
TARGETS = ("python_bson", "python_changing", "python_dumps", "python_loads")


def _inputs() -> Iterator[object]:
    for name in TARGETS:
        for kind in ("seeds", "regressions"):
            for path in sorted((FUZZ / kind / name).glob("*")):
                yield pytest.param(name, path, id=f"{name}-{path.name}")


@pytest.fixture
def judge(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str, bytes], None]]:
    """Returns the function that checks an input of a fuzz target and raises if the result is wrong.

    At the end the interpreter's limits are restored.
    """
    depth, digits = sys.getrecursionlimit(), sys.get_int_max_str_digits()
    monkeypatch.syspath_prepend(FUZZ / "oracles")
    yield lambda name, data: importlib.import_module(name).check(data)
    sys.setrecursionlimit(depth)
    sys.set_int_max_str_digits(digits)
    for name in ("objects", *TARGETS):
        sys.modules.pop(name, None)


@pytest.mark.parametrize(("name", "path"), list(_inputs()))
def test_an_input_of_the_fuzzer_matches_its_oracle(name: str, path: Path, judge: Callable[[str, bytes], None]) -> None:
    judge(name, path.read_bytes())


def test_each_target_has_inputs() -> None:
    assert all(any((FUZZ / "seeds" / name).iterdir()) for name in TARGETS)
