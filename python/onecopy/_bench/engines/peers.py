"""The table of engines: the libraries whose speed the benchmark measures. Each entry has the
engine's module and package, and the databases and output formats that the engine supports."""

from __future__ import annotations

import importlib.util
import shutil
from typing import NamedTuple

from onecopy._bench.database import Database

__all__ = ["ENGINES", "WAYS", "Engine", "Variant", "is_installed", "variants"]

#: The ways to read rows, with their titles.
WAYS = {
    "rows": "rows as Python objects (fetchall)",
    "iterate": "iteration over the cursor",
    "json": "JSON, one array of objects",
    "ndjson": "NDJSON, one object per line",
    "csv": "CSV",
    "arrow": "columns in memory (Arrow table, data frame)",
    "parquet": "Parquet with Zstandard",
}

_ROWS = ("rows", "iterate", "json", "ndjson", "csv")
_NO_ITERATION = ("rows", "json", "ndjson", "csv")


class Engine(NamedTuple):
    """A library whose speed in reading rows is measured.

    ``databases`` lists the supported dialects, and `odbc` if the library needs an ODBC connection
    string. ``module`` is the name of the module to import, or of a command if it begins with `!`.
    ``package`` is the package to install, and ``needs`` lists further modules without which the
    library is not measured. ``opens`` names the function that prepares a statement, as
    `MODULE.FUNCTION` in this package.
    """

    name: str
    databases: tuple[str, ...]
    ways: tuple[str, ...]
    module: str
    package: str
    opens: str
    needs: tuple[str, ...] = ()


OURS = Engine("onecopy", (), tuple(WAYS), "onecopy", "onecopy", "ours.open_job")

_COLUMNS = "columns.open_job"
_DRIVER = "drivers.open_job"
_ARROW = ("pyarrow",)

#: All peers. The first one of a database is its usual driver.
ENGINES = (
    Engine("sqlite3", ("sqlite",), _ROWS, "sqlite3", "", _DRIVER),
    Engine("apsw", ("sqlite",), _ROWS, "apsw", "apsw", _DRIVER),
    Engine("psycopg", ("postgresql",), _ROWS, "psycopg", "psycopg[binary]", _DRIVER),
    Engine("asyncpg", ("postgresql",), _NO_ITERATION, "asyncpg", "asyncpg", _DRIVER),
    Engine("psycopg2", ("postgresql",), _ROWS, "psycopg2", "psycopg2-binary", _DRIVER),
    Engine("psql", ("postgresql",), ("csv",), "!psql", "the package postgresql-client", "psql.open_job"),
    Engine("mysqlclient", ("mysql",), _ROWS, "MySQLdb", "mysqlclient", _DRIVER),
    Engine("PyMySQL", ("mysql",), _ROWS, "pymysql", "PyMySQL", _DRIVER),
    Engine("mysql-connector", ("mysql",), _ROWS, "mysql.connector", "mysql-connector-python", _DRIVER),
    Engine("mssql-python", ("mssql",), _ROWS, "mssql_python", "mssql-python", _DRIVER),
    Engine("pyodbc", ("odbc",), _ROWS, "pyodbc", "pyodbc", _DRIVER),
    Engine("turbodbc", ("odbc",), _ROWS, "turbodbc", "turbodbc", _DRIVER),
    Engine(
        "duckdb", ("sqlite",), ("rows", "ndjson", "csv", "arrow", "parquet"), "duckdb", "duckdb", "columns.open_duckdb"
    ),
    Engine("duckdb", ("postgresql",), ("arrow", "csv", "parquet"), "duckdb", "duckdb", "columns.open_duckdb"),
    Engine(
        "ADBC", ("sqlite",), ("arrow", "csv", "parquet"), "adbc_driver_sqlite", "adbc-driver-sqlite", _COLUMNS, _ARROW
    ),
    Engine(
        "ADBC",
        ("postgresql",),
        ("arrow", "csv", "parquet"),
        "adbc_driver_postgresql",
        "adbc-driver-postgresql",
        _COLUMNS,
        _ARROW,
    ),
    Engine("connectorx", ("sqlite", "postgresql", "mysql"), ("arrow",), "connectorx", "connectorx", _COLUMNS, _ARROW),
    Engine("polars", ("sqlite", "postgresql", "mysql"), ("arrow",), "polars", "polars", _COLUMNS, _ARROW),
    Engine("pandas", ("sqlite",), ("arrow",), "pandas", "pandas", _COLUMNS, _ARROW),
    Engine("arrow-odbc", ("odbc",), ("arrow", "parquet"), "arrow_odbc", "arrow-odbc", _COLUMNS, _ARROW),
    Engine("turbodbc", ("odbc",), ("arrow", "parquet"), "turbodbc", "turbodbc", _COLUMNS, _ARROW),
    Engine("mssql-python", ("mssql",), ("arrow", "parquet"), "mssql_python", "mssql-python", _COLUMNS, _ARROW),
)


class Variant(NamedTuple):
    """A combination that is measured: an engine, which reads the rows, and, if the output is JSON,
    the library that encodes the rows."""

    engine: Engine
    encoder: str = ""

    @property
    def name(self) -> str:
        """The name of the engine in the report, with its encoder if there is one."""
        return f"{self.engine.name} + {self.encoder}" if self.encoder else self.engine.name


def is_installed(name: str) -> bool:
    """Return true if the Python module ``name`` is installed. The module is not imported. If
    ``name`` begins with `!`, the rest of ``name`` is a command, which is searched in PATH."""
    if name.startswith("!"):
        return shutil.which(name[1:]) is not None
    return importlib.util.find_spec(name.partition(".")[0]) is not None


def variants(database: Database, way: str) -> tuple[list[Variant], list[Engine]]:
    """Return two lists of engines that can produce the output ``way`` (such as ``"json"``) from
    ``database``. The first list has the installed engines, beginning with onecopy. The second list
    has the engines that are not installed."""
    kinds = {database.dialect} | ({"odbc"} if database.odbc else set())
    suitable = [engine for engine in ENGINES if way in engine.ways and kinds & set(engine.databases)]
    missing = [e for e in suitable if not all(map(is_installed, (e.module, *e.needs)))]
    found = [Variant(OURS)] if way not in ("arrow", "parquet") or is_installed("pyarrow") else []
    for engine in (engine for engine in suitable if engine not in missing):
        if way not in ("json", "ndjson") or engine.opens != _DRIVER:
            found.append(Variant(engine))
            continue
        fast = is_installed("orjson")
        found += [Variant(engine, "orjson")] if fast else []
        # The encoder of the standard library is measured with the usual driver only.
        found += [Variant(engine, "json")] if not fast or len(found) == 2 else []
    return found, missing
