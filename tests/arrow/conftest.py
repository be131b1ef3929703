"""Readers of Arrow's streams. Where one of them is not there, nothing of this folder is collected: other CPythons are tested
without them."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator

import pytest

import onecopy

missing = [name for name in ("pyarrow", "polars", "duckdb", "pandas") if importlib.util.find_spec(name) is None]
collect_ignore_glob = ["test_*.py"] if missing else []


@pytest.fixture
def con() -> Iterator[onecopy.Connection]:
    """A database in memory."""
    connection = onecopy.connect("sqlite::memory:")
    yield connection
    connection.close()
