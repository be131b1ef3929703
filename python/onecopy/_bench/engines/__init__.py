"""The engines: onecopy and the libraries with which it is compared.

| module | contents |
|---|---|
| `job` | `Job`: a prepared statement of one engine, which the worker runs |
| `peers` | the table of all engines: databases, ways, modules, packages |
| `ours` | onecopy |
| `drivers` | drivers with rows as Python objects (PEP 249) |
| `encoders` | JSON and CSV from such rows |
| `columns` | Arrow tables, data frames and Parquet |
| `psql` | the command `psql` |

A module of this package is imported only by the worker process of its engine.
"""
