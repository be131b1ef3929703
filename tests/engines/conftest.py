"""The engines are large: `make engines` installs them in an environment of their own and runs these
tests there. Without them only the tests of parts are collected."""

from __future__ import annotations

import importlib.util

_NEEDED = {
    "test_ray.py": ("ray", "pyarrow"),
    "test_spark.py": ("pyspark", "pysail"),
    "test_writing.py": ("pyarrow",),
    "test_reading.py": ("pyarrow",),
}
collect_ignore_glob = [
    file for file, names in _NEEDED.items() if not all(importlib.util.find_spec(name) for name in names)
]
