"""Libraries that read a database into Arrow tables or data frames, from which Parquet files are
written."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from urllib.parse import quote

from onecopy._bench.database import Database
from onecopy._bench.engines.drivers import connect_mssql_python
from onecopy._bench.engines.job import Job, Missing, module
from onecopy._bench.sink import Sink

__all__ = ["open_duckdb", "open_job"]

Read = Callable[[], Any]

_CONNECTS = "connects in each run"


def open_job(name: str, database: Database, sql: str, way: str, encoder: str) -> Job:
    """Prepare the statement in the library ``name``, and return it as a `Job`."""
    read, note = _READERS[name](database, sql)
    if way == "arrow":
        return Job(lambda sink: read(), note=note)
    if way == "csv":
        write_csv = module("pyarrow.csv").write_csv
        return Job(lambda sink: write_csv(read(), sink), note=", ".join(filter(None, (note, "pyarrow.csv"))))
    write_table = module("pyarrow.parquet").write_table
    return Job(lambda sink: write_table(read(), sink, compression="zstd"), note=note)


def _adbc(database: Database, sql: str) -> tuple[Read, str]:
    if database.dialect == "sqlite":
        cursor = module("adbc_driver_sqlite.dbapi").connect(f"file:{quote(database.path)}?mode=ro").cursor()
    else:
        cursor = module("adbc_driver_postgresql.dbapi").connect(database.url).cursor()
        cursor.execute("set transaction read only")

    def read() -> Any:
        cursor.execute(sql)
        return cursor.fetch_arrow_table()

    return read, ""


def _connectorx(database: Database, sql: str) -> tuple[Read, str]:
    read_sql = module("connectorx").read_sql
    module("pyarrow")
    url = f"sqlite://{quote(database.path)}" if database.dialect == "sqlite" else database.url
    return lambda: read_sql(url, sql, return_type="arrow"), _CONNECTS


def _polars(database: Database, sql: str) -> tuple[Read, str]:
    import importlib.util

    polars = module("polars")
    url = f"sqlite://{quote(database.path)}" if database.dialect == "sqlite" else database.url
    driver = {"sqlite": "adbc_driver_sqlite", "postgresql": "adbc_driver_postgresql"}.get(database.dialect, "")
    if importlib.util.find_spec("connectorx"):
        engine = "connectorx"
    elif driver and importlib.util.find_spec(driver):
        engine = "adbc"
    else:
        raise Missing("it requires connectorx or ADBC")
    module("pyarrow")
    return lambda: polars.read_database_uri(sql, url, engine=engine), f"by {engine}, {_CONNECTS}"


def _pandas(database: Database, sql: str) -> tuple[Read, str]:
    import sqlite3

    pandas = module("pandas")
    connection = sqlite3.connect(f"file:{quote(database.path)}?mode=ro", uri=True)
    return lambda: pandas.read_sql_query(sql, connection), "by sqlite3"


def _arrow_odbc(database: Database, sql: str) -> tuple[Read, str]:
    arrow_odbc, pyarrow = module("arrow_odbc"), module("pyarrow")
    connection = arrow_odbc.connect(connection_string=database.odbc)
    # Text is read as UTF-8 if that is correct and faster: with psqlodbc and with MariaDB's driver.
    narrow = database.dialect in ("postgresql", "mysql")
    encoding = arrow_odbc.TextEncoding.UTF8 if narrow else arrow_odbc.TextEncoding.UTF16

    def read() -> Any:
        reader = connection.read_arrow_batches(query=sql, payload_text_encoding=encoding, max_text_size=4096)
        return pyarrow.Table.from_batches(list(reader), schema=reader.schema)

    return read, "texts of up to 4,096 bytes"


def _turbodbc(database: Database, sql: str) -> tuple[Read, str]:
    turbodbc = module("turbodbc")
    options = turbodbc.make_options(prefer_unicode=database.dialect == "mssql", use_async_io=False)
    cursor = turbodbc.connect(connection_string=database.odbc, turbodbc_options=options).cursor()

    def read() -> Any:
        cursor.execute(sql)
        return cursor.fetchallarrow()

    return read, ""


def _mssql_python(database: Database, sql: str) -> tuple[Read, str]:
    cursor = connect_mssql_python(database)

    def read() -> Any:
        cursor.execute(sql)
        return cursor.arrow()

    return read, ""


_READERS: dict[str, Callable[[Database, str], tuple[Read, str]]] = {
    "ADBC": _adbc,
    "connectorx": _connectorx,
    "polars": _polars,
    "pandas": _pandas,
    "arrow-odbc": _arrow_odbc,
    "turbodbc": _turbodbc,
    "mssql-python": _mssql_python,
}


# DuckDB executes the statement itself; its extensions read SQLite's and PostgreSQL's tables.


def open_duckdb(database: Database, sql: str, way: str, encoder: str) -> Job:
    """Prepare the statement in DuckDB, and return it as a `Job`. DuckDB's extension for the
    database must be installed: nothing is downloaded."""
    duckdb = module("duckdb")
    connection = duckdb.connect(config={"autoinstall_known_extensions": False, "autoload_known_extensions": False})
    extension = {"sqlite": "sqlite", "postgresql": "postgres"}[database.dialect]
    try:
        connection.execute(f"load {extension}")
    except duckdb.Error:
        raise Missing(f"its extension `{extension}` is not installed") from None
    at = database.path if database.dialect == "sqlite" else database.url
    literal = at.replace("'", "''")
    connection.execute(f"attach '{literal}' as source (type {extension}, read_only)")
    connection.execute("use source")
    if way in ("csv", "parquet", "ndjson"):
        options = {"csv": "format csv, header", "parquet": "format parquet, compression zstd", "ndjson": "format json"}

        def copy(sink: Sink) -> None:
            target = sink.path.replace("'", "''")
            connection.execute(f"copy (\n{sql}\n) to '{target}' ({options[way]})")

        return Job(copy, note="COPY")
    if way == "rows":

        def rows(sink: Sink) -> Any:
            result = connection.execute(sql)
            return [column[0] for column in result.description], result.fetchall()

        return Job(rows)
    return Job(lambda sink: connection.execute(sql).to_arrow_table())
