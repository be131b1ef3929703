"""Which libraries of the compat tests this CPython can have: what is left out here is left out by its version, never for being absent."""

import sys

#: pyodbc 5.5 has no release for 3.10.
collect_ignore = ["test_pyodbc.py", "test_pyodbc_catalog.py"] if sys.version_info < (3, 11) else []
