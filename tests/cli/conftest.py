"""Excludes the tests that read Arrow and Parquet files if pyarrow is not installed, as for the
tests of CPythons other than the one of the development environment."""

from __future__ import annotations

import importlib.util

collect_ignore = [] if importlib.util.find_spec("pyarrow") else ["test_export.py"]
