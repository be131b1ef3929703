"""Fixtures of the tests with consumers of Arrow streams (pyarrow, polars, duckdb, pandas).

If one of these packages is missing, no test of this folder is collected: some CPythons are tested
without them.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator

import pytest

import onecopy

missing = [name for name in ("pyarrow", "polars", "duckdb", "pandas") if importlib.util.find_spec(name) is None]
collect_ignore_glob = ["test_*.py"] if missing else []


@pytest.fixture
def con() -> Iterator[onecopy.Connection]:
    """A connection to an in-memory SQLite database."""
    connection = onecopy.connect("sqlite::memory:")
    yield connection
    connection.close()
