"""Jobs that read rows from a database: each function connects once and returns a function to be
timed.

A job executes `select * from t<size>` and returns its result, so that results can be compared and
their deallocation is not timed.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Any

Job = Callable[[], Any]


def _query(size: int) -> str:
    return f"select * from t{size}"


def _onecopy(target: dict[str, Any]) -> Any:
    import warnings

    import onecopy

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Drivers' limitations are reported at connect; here they are known.
        return onecopy.connect(target["onecopy"])


def onecopy_fetchall(target: dict[str, Any], size: int) -> Job:
    cursor, sql = _onecopy(target).cursor(), _query(size)
    return lambda: cursor.execute(sql).fetchall()


def onecopy_iterate(target: dict[str, Any], size: int) -> Job:
    cursor, sql = _onecopy(target).cursor(), _query(size)

    def job() -> int:
        row = (0,)
        for row in cursor.execute(sql):  # noqa: B007 - only the loop is measured
            pass
        return int(row[0])  # The last id: the number of rows.

    return job


def onecopy_loop_over_fetchall(target: dict[str, Any], size: int) -> Job:
    """The peer of `onecopy_iterate`: the same loop over the result of `fetchall`.

    The rows are freed within the measured time, as in an iteration.
    """
    cursor, sql = _onecopy(target).cursor(), _query(size)

    def job() -> int:
        row = (0,)
        for row in cursor.execute(sql).fetchall():  # noqa: B007
            pass
        return int(row[0])

    return job


def onecopy_fetchone(target: dict[str, Any], size: int) -> Job:
    cursor, sql = _onecopy(target).cursor(), _query(size)

    def job() -> int:
        fetchone, row, last = cursor.execute(sql).fetchone, (0,), (0,)
        while row is not None:
            last, row = row, fetchone()
        return int(last[0])

    return job


#: Repetitions: 13 times 31,000 rows are 403,000.
TIMES = 13


def onecopy_fetchall_in_parts(target: dict[str, Any], size: int) -> Job:
    """The peer of reading 400,000 rows at once: it reads 31,000 rows thirteen times.

    Each result exists until the next one is read.
    """
    cursor, sql = _onecopy(target).cursor(), _query(min(size, 31_000))

    def job() -> list[Any]:
        rows = cursor.execute(sql).fetchall()
        for _ in range(TIMES - 1 if size > 31_000 else 0):
            rows = cursor.execute(sql).fetchall()
        return list(rows)

    return job


def onecopy_csv(target: dict[str, Any], size: int) -> Job:
    cursor, sql = _onecopy(target).cursor(), _query(size)
    return lambda: b"".join(cursor.execute(sql).csv())


def onecopy_json(target: dict[str, Any], size: int) -> Job:
    cursor, sql = _onecopy(target).cursor(), _query(size)
    return lambda: list(cursor.execute(sql).json())


def onecopy_ndjson(target: dict[str, Any], size: int) -> Job:
    cursor, sql = _onecopy(target).cursor(), _query(size)
    return lambda: sum(map(len, cursor.execute(sql).ndjson()))


def _pyodbc(target: dict[str, Any]) -> Any:
    import pyodbc

    pyodbc.pooling = False
    connection = pyodbc.connect(target["odbc"])
    if target["profile"] in ("postgres", "mariadb"):
        # Faster than its default, which loses characters with MariaDB.
        connection.setdecoding(pyodbc.SQL_CHAR, encoding="utf-8")
        connection.setdecoding(pyodbc.SQL_WCHAR, encoding="utf-8", ctype=pyodbc.SQL_CHAR)
        connection.setencoding(encoding="utf-8")
    return connection


def pyodbc_fetchall(target: dict[str, Any], size: int) -> Job:
    cursor, sql = _pyodbc(target).cursor(), _query(size)
    return lambda: cursor.execute(sql).fetchall()


def _written(names: list[str], rows: Any) -> str:
    import csv
    import io

    out = io.StringIO(newline="")
    writer = csv.writer(out)
    writer.writerow(names)
    writer.writerows(rows)
    return out.getvalue()


def pyodbc_csv(target: dict[str, Any], size: int) -> Job:
    cursor, sql = _pyodbc(target).cursor(), _query(size)

    def job() -> bytes:
        cursor.execute(sql)
        return _written([column[0] for column in cursor.description], cursor.fetchall()).encode()

    return job


def sqlite3_csv(target: dict[str, Any], size: int) -> Job:
    import sqlite3

    cursor, sql = sqlite3.connect(target["file"]).cursor(), _query(size)

    def job() -> bytes:
        cursor.execute(sql)
        return _written([column[0] for column in cursor.description], cursor.fetchall()).encode()

    return job


def mysqlclient_fetchall(target: dict[str, Any], size: int) -> Job:
    import MySQLdb

    cursor, sql = MySQLdb.connect(**target["native"], charset="utf8mb4").cursor(), _query(size)

    def job() -> Any:
        cursor.execute(sql)
        return cursor.fetchall()

    return job


def _mssql_python(target: dict[str, Any]) -> Any:
    import mssql_python

    # It has its own driver.
    return mssql_python.connect(target["odbc"].partition(";")[2])


def mssql_python_fetchall(target: dict[str, Any], size: int) -> Job:
    cursor, sql = _mssql_python(target).cursor(), _query(size)
    return lambda: cursor.execute(sql).fetchall()


def _decimal(value: object) -> float:
    if isinstance(value, Decimal):
        return float(value)
    raise TypeError


def pyodbc_orjson(target: dict[str, Any], size: int) -> Job:
    import orjson

    cursor, sql = _pyodbc(target).cursor(), _query(size)

    def job() -> bytes:
        cursor.execute(sql)
        names = [column[0] for column in cursor.description]
        return orjson.dumps([dict(zip(names, row)) for row in cursor.fetchall()], default=_decimal)

    return job


def sqlite3_fetchall(target: dict[str, Any], size: int) -> Job:
    import sqlite3

    cursor, sql = sqlite3.connect(target["file"]).cursor(), _query(size)
    return lambda: cursor.execute(sql).fetchall()


def sqlite3_orjson(target: dict[str, Any], size: int) -> Job:
    import sqlite3

    import orjson

    cursor, sql = sqlite3.connect(target["file"]).cursor(), _query(size)

    def job() -> bytes:
        cursor.execute(sql)
        names = [column[0] for column in cursor.description]
        return orjson.dumps([dict(zip(names, row)) for row in cursor.fetchall()])

    return job


def apsw_fetchall(target: dict[str, Any], size: int) -> Job:
    import apsw

    cursor, sql = apsw.Connection(target["file"]).cursor(), _query(size)
    return lambda: cursor.execute(sql).fetchall()


def psycopg_fetchall(target: dict[str, Any], size: int) -> Job:
    import psycopg

    native = dict(target["native"])
    native["dbname"] = native.pop("database")
    cursor, sql = psycopg.connect(**native).cursor(), _query(size)
    return lambda: cursor.execute(sql).fetchall()


# Rows as Arrow batches, read into a pyarrow table: all of them have the same memory layout.


def onecopy_arrow(target: dict[str, Any], size: int) -> Job:
    import pyarrow

    cursor, sql = _onecopy(target).cursor(), _query(size)
    return lambda: pyarrow.RecordBatchReader.from_stream(cursor.execute(sql)).read_all()


def arrow_odbc_arrow(target: dict[str, Any], size: int) -> Job:
    import arrow_odbc
    import pyarrow

    sql = _query(size)
    # Narrow text if that is correct and faster: with psqlodbc and MariaDB's driver.
    narrow = target["profile"] in ("postgres", "mariadb")
    encoding = arrow_odbc.TextEncoding.UTF8 if narrow else arrow_odbc.TextEncoding.UTF16
    connection = arrow_odbc.connect(connection_string=target["odbc"])

    def job() -> Any:
        reader = connection.read_arrow_batches(query=sql, payload_text_encoding=encoding, max_text_size=1024)
        return pyarrow.Table.from_batches(list(reader), schema=reader.schema)

    return job


def adbc_arrow(target: dict[str, Any], size: int) -> Job:
    if target["profile"] == "sqlite":
        from adbc_driver_sqlite import dbapi

        cursor = dbapi.connect(target["file"]).cursor()
    else:
        from adbc_driver_postgresql import dbapi

        cursor = dbapi.connect(_url("postgresql", target["native"])).cursor()
    sql = _query(size)

    def job() -> Any:
        cursor.execute(sql)
        return cursor.fetch_arrow_table()

    return job


def _url(scheme: str, native: dict[str, Any]) -> str:
    return "{}://{user}:{password}@{host}:{port}/{database}".format(scheme, **native)


def connectorx_arrow(target: dict[str, Any], size: int) -> Job:
    import connectorx

    sql = _query(size)
    match target["profile"]:
        case "sqlite":
            url = f"sqlite://{target['file']}"
        case "postgres":
            url = _url("postgresql", target["native"])
        case _:
            url = _url("mysql", target["native"])
    return lambda: connectorx.read_sql(url, sql, return_type="arrow")


def mssql_python_arrow(target: dict[str, Any], size: int) -> Job:
    import mssql_python

    # It has its own driver, and refuses a connection string that names one.
    string = ";".join(part for part in target["odbc"].split(";") if not part.lower().startswith("driver="))
    cursor, sql = mssql_python.connect(string).cursor(), _query(size)

    def job() -> Any:
        cursor.execute(sql)
        return cursor.arrow()

    return job


# A column of doubles, `size` of them.


def _doubles(target: dict[str, Any], size: int) -> tuple[Any, str]:
    """A cursor, and a query that returns a column of `size` doubles."""
    if target["profile"] != "sqlite":
        return _onecopy(target).cursor(), f"select k * 0.37::float8 as x from generate_series(1, {size}) as g(k)"
    cursor = _onecopy(target | {"onecopy": "sqlite::memory:"}).cursor()
    cursor.execute("create table d (x real)")
    cursor.executemany("insert into d values (?)", ((i * 0.37,) for i in range(size)))
    return cursor, "select x from d"


def onecopy_doubles(target: dict[str, Any], size: int) -> Job:
    import numpy

    cursor, sql = _doubles(target, size)
    return lambda: numpy.asarray(cursor.execute(sql).fetch_columns()[0])


def onecopy_doubles_by_row(target: dict[str, Any], size: int) -> Job:
    import numpy

    cursor, sql = _doubles(target, size)
    return lambda: numpy.array(cursor.execute(sql).fetchall())
