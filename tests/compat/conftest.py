"""The libraries with which the compat tests compare, for the CPython that runs the tests.

A library is excluded only by the CPython's version; one that is missing otherwise is an error.
"""

import sys

#: pyodbc 5.5 has no release for 3.10.
collect_ignore = ["test_pyodbc.py", "test_pyodbc_catalog.py"] if sys.version_info < (3, 11) else []
