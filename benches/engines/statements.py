"""Jobs with statements instead of rows: many short queries, and inserts.

Each function prepares a job and returns it, as in `rows.py`. A job that inserts has a function
`before`, which removes the rows of the previous round and is not timed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from benches.engines.rows import _onecopy, _pyodbc
from tests.support.load import create
from tests.support.table import COLUMNS, rows

Job = Callable[[], Any]

POINT = "select name, note from t1000 where id = {}"


def _keys(size: int) -> Iterator[int]:
    return (1 + k * 7 % 1000 for k in range(size))


def _points(execute: Callable[[str, tuple[int]], Any], mark: str, size: int) -> Job:
    sql = POINT.format(mark)

    def job() -> int:
        found = 0
        for key in _keys(size):
            found += execute(sql, (key,)).fetchone() is not None
        return found

    return job


def onecopy_points(target: dict[str, Any], size: int) -> Job:
    return _points(_onecopy(target).cursor().execute, "?", size)


def pyodbc_points(target: dict[str, Any], size: int) -> Job:
    return _points(_pyodbc(target).cursor().execute, "?", size)


def sqlite3_points(target: dict[str, Any], size: int) -> Job:
    import sqlite3

    return _points(sqlite3.connect(target["file"]).cursor().execute, "?", size)


def psycopg_points(target: dict[str, Any], size: int) -> Job:
    return _points(_psycopg(target).cursor().execute, "%s", size)


def _psycopg(target: dict[str, Any]) -> Any:
    import psycopg

    native = dict(target["native"])
    native["dbname"] = native.pop("database")
    return psycopg.connect(**native)


def _create(server: str, name: str) -> str:
    """The statement that creates the table."""
    sql = create(server, name)
    if server == "postgres":
        return sql.replace("create table", "create unlogged table", 1)
    return sql + " character set utf8mb4" if server == "mariadb" else sql


class _Inserts:
    """A job that inserts the first columns of rows into an empty table.

    Its transaction is rolled back before the next round. In PostgreSQL the table is also truncated,
    since rows that were rolled back remain in the table and its index. There the table is also
    unlogged: with a log, the time of the server's writes to a shared disk, which is the same for
    all clients, varied by a factor of two between rounds.
    """

    def __init__(
        self, connection: Any, cursor: Any, profile: str, mark: str, size: int, n_columns: int = len(COLUMNS)
    ) -> None:
        self._connection, self._cursor = connection, cursor
        name = f"inserted_{type(connection).__module__.partition('.')[0]}"
        cursor.execute(f"drop table if exists {name}")
        server = profile.partition("_")[0]
        cursor.execute(_create(server, name))
        connection.commit()
        self._select = f"select * from {name} order by id"
        columns = ", ".join(COLUMNS[:n_columns])
        self._sql = f"insert into {name} ({columns}) values ({', '.join([mark] * n_columns)})"
        self._truncate = f"truncate {name}" if server == "postgres" else ""
        self._rows = [tuple(row[:n_columns]) for row in rows(size)]
        self._answers = size == 1000

    def before(self) -> None:
        self._connection.rollback()
        if self._truncate:
            self._cursor.execute(self._truncate)
            self._connection.commit()

    def __call__(self) -> Any:
        self._cursor.executemany(self._sql, self._rows)
        if not self._answers:
            return len(self._rows)
        self._cursor.execute(self._select)
        return list(self._cursor.fetchall())


def onecopy_inserts(target: dict[str, Any], size: int) -> Job:
    connection = _onecopy(target)
    return _Inserts(connection, connection.cursor(), target["profile"], "?", size)


def onecopy_inserts_of_4(target: dict[str, Any], size: int) -> Job:
    connection = _onecopy(target)
    return _Inserts(connection, connection.cursor(), target["profile"], "?", size, 4)


def pyodbc_inserts(target: dict[str, Any], size: int) -> Job:
    connection = _pyodbc(target)
    cursor = connection.cursor()
    # MariaDB's driver does not use its parameter arrays, to save memory.
    cursor.fast_executemany = target["profile"] == "postgres"
    return _Inserts(connection, cursor, target["profile"], "?", size)


def psycopg_inserts(target: dict[str, Any], size: int) -> Job:
    connection = _psycopg(target)
    return _Inserts(connection, connection.cursor(), target["profile"], "%s", size)


def psycopg_inserts_of_4(target: dict[str, Any], size: int) -> Job:
    connection = _psycopg(target)
    return _Inserts(connection, connection.cursor(), target["profile"], "%s", size, 4)


def mysqlclient_inserts(target: dict[str, Any], size: int) -> Job:
    import MySQLdb

    connection = MySQLdb.connect(**target["native"], charset="utf8mb4")
    return _Inserts(connection, connection.cursor(), target["profile"], "%s", size)
