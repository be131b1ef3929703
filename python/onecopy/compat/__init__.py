"""The APIs of other libraries on top of onecopy: to migrate, change one import.

| module | replaces |
|---|---|
| `onecopy.compat.pyodbc` | `import pyodbc` |
| `onecopy.compat.mssql_python` | `import mssql_python` |
| `onecopy.compat.orjson` | `import orjson` |
| `onecopy.compat.ujson` | `import ujson` |
| `onecopy.compat.bson` | `import bson` (pymongo's) |

Names, arguments and exceptions are those of the replaced library. The guides list the differences
(`docs/guide/from-pyodbc.md`, `docs/guide/from-mssql-python.md`, `docs/guide/move-from-orjson.md`,
`docs/guide/move-from-ujson.md`, `docs/guide/move-from-pymongo-bson.md` in the repository).

>>> from onecopy.compat import orjson
>>> orjson.dumps({"имя": 1.5}, option=orjson.OPT_APPEND_NEWLINE).decode()
'{"имя":1.5}\\n'
"""
