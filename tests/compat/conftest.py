"""The libraries of the compat tests that this CPython supports; they are excluded by version, never
because they are missing."""

import sys

#: pyodbc 5.5 has no release for 3.10.
collect_ignore = ["test_pyodbc.py", "test_pyodbc_catalog.py"] if sys.version_info < (3, 11) else []
