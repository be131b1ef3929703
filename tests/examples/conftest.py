"""Fixtures for tests of the examples, which run as their READMEs describe."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


@pytest.fixture
def video(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The folder of the video example, with its modules importable."""
    folder = EXAMPLES / "video"
    monkeypatch.syspath_prepend(folder)
    before = set(sys.modules)
    yield folder
    for name in set(sys.modules) - before:
        if str(folder) in str(getattr(sys.modules[name], "__file__", None)):
            del sys.modules[name]
