"""Excludes the tests that read or write Arrow and Parquet files if pyarrow is not installed, as for the
tests of CPythons other than the one of the development environment."""

from __future__ import annotations

import importlib.util

collect_ignore = (
    [] if importlib.util.find_spec("pyarrow") else ["test_bench.py", "test_export.py", "test_export_parts.py"]
)
