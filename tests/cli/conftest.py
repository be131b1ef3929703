"""Excludes the tests that read or write Arrow and Parquet files if pyarrow is not installed, as for the
tests of CPythons other than the one of the development environment."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import Database
from tests.support.copies import Postgres, Sqlite

collect_ignore = (
    [] if importlib.util.find_spec("pyarrow") else ["test_bench.py", "test_export.py", "test_export_parts.py"]
)


@pytest.fixture
def lite(tmp_path: Path) -> Iterator[Sqlite]:
    made = Sqlite(tmp_path)
    yield made
    made.source.close()
    made.target.close()


@pytest.fixture
def pg(postgres_native: Database, tmp_path: Path) -> Iterator[Postgres]:
    made = Postgres(postgres_native, tmp_path)
    yield made
    made.con.execute("drop schema copied_from cascade; drop schema copied_to cascade")
    made.con.close()
