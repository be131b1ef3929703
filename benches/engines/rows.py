"""Rows out of a database: each function opens its connection once and returns a job to be timed.

A job runs `select * from t<size>` and returns what it made, so that the answer can be compared and so that freeing it
falls outside the time.
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
        warnings.simplefilter("ignore")  # What a driver cannot do is said at connect; here it is known.
        return onecopy.connect(target["onecopy"])


def onecopy_fetchall(target: dict[str, Any], size: int) -> Job:
    cursor, sql = _onecopy(target).cursor(), _query(size)
    return lambda: cursor.execute(sql).fetchall()


def onecopy_iterate(target: dict[str, Any], size: int) -> Job:
    cursor, sql = _onecopy(target).cursor(), _query(size)

    def job() -> int:
        row = (0,)
        for row in cursor.execute(sql):  # noqa: B007 - the loop alone is what is measured
            pass
        return int(row[0])  # The last id: the number of rows.

    return job


def onecopy_loop_over_fetchall(target: dict[str, Any], size: int) -> Job:
    """What `onecopy_iterate` is held against: the same loop over the same rows, which are freed inside the time too."""
    cursor, sql = _onecopy(target).cursor(), _query(size)

    def job() -> int:
        row = (0,)
        for row in cursor.execute(sql).fetchall():  # noqa: B007
            pass
        return int(row[0])

    return job


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
        # Faster than its default, and with MariaDB the default loses characters.
        connection.setdecoding(pyodbc.SQL_CHAR, encoding="utf-8")
        connection.setdecoding(pyodbc.SQL_WCHAR, encoding="utf-8", ctype=pyodbc.SQL_CHAR)
        connection.setencoding(encoding="utf-8")
    return connection


def pyodbc_fetchall(target: dict[str, Any], size: int) -> Job:
    cursor, sql = _pyodbc(target).cursor(), _query(size)
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
