"""`connect(stream=…)`: whether a result comes as it is read, or whole before its first row."""

from __future__ import annotations

import pytest

import onecopy
from tests.conftest import Database


def _server_cursors(con: onecopy.Connection) -> int:
    """How many cursors the server has for this connection, while a result is being read."""
    reading = con.execute("select * from t1000")
    assert reading.fetchone() is not None
    row = con.execute("select count(*) from pg_cursors").fetchone()
    assert row is not None
    reading.close()
    return int(row[0])


@pytest.mark.parametrize("stream", [None, True, False])
def test_rows_come_by_a_cursor_on_the_server_unless_a_result_is_to_come_whole(
    postgres: Database, stream: bool | None
) -> None:
    with onecopy.connect(postgres.odbc, stream=stream) as con:
        # That of the counting statement is one of them.
        assert _server_cursors(con) == (0 if stream is False else 2)


@pytest.mark.parametrize(("keyword", "stream", "n"), [("0", True, 0), ("1", False, 2)])
def test_a_keyword_of_the_connection_string_goes_before_it(
    postgres: Database, keyword: str, stream: bool, n: int
) -> None:
    with onecopy.connect(f"{postgres.odbc};UseDeclareFetch={keyword}", stream=stream) as con:
        assert _server_cursors(con) == n


def test_a_driver_that_cannot_stream_says_so(mariadb: Database) -> None:
    with pytest.raises(onecopy.NotSupportedError, match="no option of it streams\nLeave `stream` out"):
        onecopy.connect(mariadb.odbc, stream=True)
    with pytest.warns(onecopy.DriverWarning), onecopy.connect(mariadb.odbc, stream=False) as con:
        assert con.execute("select 1").fetchall() == [(1,)]


@pytest.mark.parametrize("stream", [None, True, False])
def test_sqlite_takes_any(stream: bool | None) -> None:
    with onecopy.connect("sqlite::memory:", stream=stream) as con:
        assert con.execute("select 1").fetchall() == [(1,)]
