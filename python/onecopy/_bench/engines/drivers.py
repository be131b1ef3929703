"""Drivers whose rows are Python objects, each used as its documentation recommends.

A function `connect_…` returns a function that executes SQL and returns a cursor of PEP 249.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple
from urllib.parse import quote

from onecopy._bench.database import Database
from onecopy._bench.engines.encoders import ENCODERS, write_csv, write_json, write_ndjson
from onecopy._bench.engines.job import Job, module
from onecopy._bench.sink import Sink

__all__ = ["connect_mssql_python", "open_job", "without_driver"]

Execute = Callable[[str], Any]


class _Driver(NamedTuple):
    """A connection of one of the compared drivers. ``execute`` executes a query. ``note`` and
    ``variant`` have the same meaning as in `Job`."""

    execute: Execute
    variant: str = ""
    note: str = ""


def open_job(name: str, database: Database, sql: str, way: str, encoder: str) -> Job:
    """Prepare the statement in the driver ``name``, and return it as a `Job`."""
    driver: _Driver = _DRIVERS[name](database)
    execute = driver.execute
    if way == "csv" and name == "psycopg":
        return Job(lambda sink: _copy(execute, sql, sink), driver.variant, "COPY")
    if way in ("json", "ndjson"):
        dumps = ENCODERS[encoder]()
        write = write_json if way == "json" else write_ndjson

        def write_objects(sink: Sink) -> None:
            cursor = execute(sql)
            write(dumps, _names(cursor), cursor, sink)

        return Job(write_objects, driver.variant, driver.note)
    runs: dict[str, Callable[[Sink], Any]] = {
        "rows": lambda sink: _rows(execute(sql)),
        "iterate": lambda sink: _iterate(execute(sql)),
        "csv": lambda sink: _csv(execute(sql), sink),
    }
    return Job(runs[way], driver.variant, driver.note)


def _names(cursor: Any) -> list[str]:
    return [column[0] for column in cursor.description or ()]


def _rows(cursor: Any) -> Any:
    # The names are read before the rows, because apsw has no names after the last row.
    names = _names(cursor)
    return names, cursor.fetchall()


def _iterate(cursor: Any) -> int:
    n_rows = 0
    for _ in cursor:
        n_rows += 1
    return n_rows


def _csv(cursor: Any, sink: Sink) -> None:
    write_csv(_names(cursor), cursor, sink)


def _copy(execute: Execute, sql: str, sink: Sink) -> None:
    # `execute` is the method of a cursor, which also has the method `copy`.
    cursor = execute.__self__  # type: ignore[attr-defined]
    with cursor.copy(f"copy (\n{sql}\n) to stdout (format csv, header)") as copy:
        for chunk in copy:
            sink.write(chunk)


def _returns_cursor(cursor: Any) -> Execute:
    """Return a function that executes SQL on ``cursor`` and then returns ``cursor``. It is needed
    because the method `execute` of some drivers does not return the cursor."""

    def execute(sql: str) -> Any:
        cursor.execute(sql)
        return cursor

    return execute


# SQLite.


def _sqlite3(database: Database) -> _Driver:
    import sqlite3

    return _Driver(sqlite3.connect(f"file:{quote(database.path)}?mode=ro", uri=True).cursor().execute)


class _ApswCursor:
    """A cursor of apsw. For an empty result, `description` is an empty tuple; apsw itself raises an
    error."""

    def __init__(self, cursor: Any, complete: type[Exception]) -> None:
        try:
            self.description = cursor.get_description()
        except complete:
            self.description = ()
        self.fetchall = cursor.fetchall
        self._cursor = cursor

    def __iter__(self) -> Any:
        return self._cursor


def _apsw(database: Database) -> _Driver:
    apsw = module("apsw")
    cursor = apsw.Connection(database.path, flags=apsw.SQLITE_OPEN_READONLY).cursor()
    return _Driver(lambda sql: _ApswCursor(cursor.execute(sql), apsw.ExecutionCompleteError))


# PostgreSQL.


def _psycopg(database: Database) -> _Driver:
    psycopg = module("psycopg")
    keywords: dict[str, Any] = dict(database.keywords)
    connection = psycopg.connect(**keywords)
    connection.read_only = True
    return _Driver(connection.cursor().execute, psycopg.pq.__impl__)


def _psycopg2(database: Database) -> _Driver:
    psycopg2 = module("psycopg2")
    connection = psycopg2.connect(**database.keywords)
    connection.set_session(readonly=True)
    return _Driver(_returns_cursor(connection.cursor()))


class _AsyncpgCursor:
    """A cursor over rows that asyncpg has returned. It has only the methods that the benchmark
    calls."""

    def __init__(self, records: list[Any]) -> None:
        self.description = [(name,) for name in records[0].keys()] if records else []  # noqa: SIM118
        self._records = records

    def fetchall(self) -> list[Any]:
        return self._records

    def __iter__(self) -> Any:
        return iter(self._records)


def _asyncpg(database: Database) -> _Driver:
    import asyncio

    asyncpg = module("asyncpg")
    loop = asyncio.new_event_loop()
    settings = {"default_transaction_read_only": "on"}
    connection = loop.run_until_complete(asyncpg.connect(database.url, server_settings=settings))

    def execute(sql: str) -> _AsyncpgCursor:
        return _AsyncpgCursor(loop.run_until_complete(connection.fetch(sql)))

    return _Driver(execute)


# MariaDB and MySQL.


def _login(database: Database, dbname: str = "database") -> dict[str, Any]:
    known = database.keywords
    login: dict[str, Any] = {key: known[key] for key in ("host", "user", "password") if key in known}
    if "dbname" in known:
        login[dbname] = known["dbname"]
    if "port" in known:
        login["port"] = int(known["port"])
    return login


def _read_only(execute: Execute) -> Execute:
    execute("set session transaction read only")
    return execute


def _mysqlclient(database: Database) -> _Driver:
    connection = module("MySQLdb").connect(**_login(database), charset="utf8mb4")
    return _Driver(_read_only(_returns_cursor(connection.cursor())))


def _pymysql(database: Database) -> _Driver:
    connection = module("pymysql").connect(**_login(database), charset="utf8mb4")
    return _Driver(_read_only(_returns_cursor(connection.cursor())))


def _mysql_connector(database: Database) -> _Driver:
    connector = module("mysql.connector")
    connection = connector.connect(**_login(database), charset="utf8mb4")
    variant = "c" if type(connection).__name__ == "CMySQLConnection" else "python"
    return _Driver(_read_only(_returns_cursor(connection.cursor())), variant)


# ODBC.


def _pyodbc(database: Database) -> _Driver:
    pyodbc = module("pyodbc")
    pyodbc.pooling = False
    connection = pyodbc.connect(database.odbc, readonly=True)
    if database.dialect in ("postgresql", "mysql"):
        # UTF-8 is faster than pyodbc's default, which loses characters with MariaDB's driver.
        connection.setdecoding(pyodbc.SQL_CHAR, encoding="utf-8")
        connection.setdecoding(pyodbc.SQL_WCHAR, encoding="utf-8", ctype=pyodbc.SQL_CHAR)
        connection.setencoding(encoding="utf-8")
    return _Driver(connection.cursor().execute)


def _turbodbc(database: Database) -> _Driver:
    turbodbc = module("turbodbc")
    options = turbodbc.make_options(prefer_unicode=database.dialect == "mssql", use_async_io=False)
    connection = turbodbc.connect(connection_string=database.odbc, turbodbc_options=options)
    return _Driver(_returns_cursor(connection.cursor()))


def without_driver(odbc: str) -> str:
    """Return an ODBC connection string without the keyword for the driver, since mssql-python uses
    its own driver."""
    return ";".join(part for part in odbc.split(";") if not part.strip().lower().startswith("driver="))


def connect_mssql_python(database: Database) -> Any:
    """Connect to the database with mssql-python, and return a cursor."""
    known = database.keywords
    if database.odbc:
        text = without_driver(database.odbc)
    else:
        server = known.get("host", "localhost") + (f",{known['port']}" if "port" in known else "")
        named = {"Server": server, "Database": "dbname", "Uid": "user", "Pwd": "password"}
        pairs = {key: server if key == "Server" else known.get(name, "") for key, name in named.items()}
        others = {k: v for k, v in known.items() if k not in ("host", "port", "user", "password", "dbname")}
        text = ";".join(f"{key}={{{value.replace('}', '}}')}}}" for key, value in (pairs | others).items() if value)
    return module("mssql_python").connect(text).cursor()


def _mssql_python(database: Database) -> _Driver:
    return _Driver(_returns_cursor(connect_mssql_python(database)))


_DRIVERS: dict[str, Callable[[Database], _Driver]] = {
    "sqlite3": _sqlite3,
    "apsw": _apsw,
    "psycopg": _psycopg,
    "psycopg2": _psycopg2,
    "asyncpg": _asyncpg,
    "mysqlclient": _mysqlclient,
    "PyMySQL": _pymysql,
    "mysql-connector": _mysql_connector,
    "pyodbc": _pyodbc,
    "turbodbc": _turbodbc,
    "mssql-python": _mssql_python,
}
