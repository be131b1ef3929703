"""`connect(stream=…)`: a result is read incrementally, or completely before its first row."""

from __future__ import annotations

import pytest

import onecopy
from tests.conftest import Database

PSQLODBC = ("postgres", "postgres_ansi")


def _server_cursors(con: onecopy.Connection) -> int:
    """The number of cursors that the server has for this connection while a result is being
    read."""
    reading = con.execute("select * from t1000")
    assert reading.fetchone() is not None
    row = con.execute("select count(*) from pg_cursors").fetchone()
    assert row is not None
    reading.close()
    return int(row[0])


@pytest.mark.parametrize("stream", [None, True, False])
def test_rows_are_read_by_a_server_side_cursor_by_default(psqlodbc: Database, stream: bool | None) -> None:
    with onecopy.connect(psqlodbc.odbc, stream=stream) as con:
        # The cursor of the counting statement is one of them.
        assert _server_cursors(con) == (0 if stream is False else 2)


@pytest.mark.parametrize(("keyword", "stream", "n"), [("0", True, 0), ("1", False, 2)])
def test_a_keyword_of_the_connection_string_takes_precedence(
    psqlodbc: Database, keyword: str, stream: bool, n: int
) -> None:
    with onecopy.connect(f"{psqlodbc.odbc};UseDeclareFetch={keyword}", stream=stream) as con:
        assert _server_cursors(con) == n


def test_a_driver_that_cannot_stream_reports_it(mariadb: Database) -> None:
    with pytest.raises(onecopy.NotSupportedError, match="has no option to stream\nLeave `stream` out"):
        onecopy.connect(mariadb.odbc, stream=True)
    with pytest.warns(onecopy.DriverWarning), onecopy.connect(mariadb.odbc, stream=False) as con:
        assert con.execute("select 1").fetchall() == [(1,)]


@pytest.mark.parametrize("stream", [None, True, False])
def test_sqlite_accepts_both(stream: bool | None) -> None:
    with onecopy.connect("sqlite::memory:", stream=stream) as con:
        assert con.execute("select 1").fetchall() == [(1,)]


def _plans(con: onecopy.Connection) -> int:
    """The number of prepared statements that the server has for this connection."""
    row = con.execute("select count(*) from pg_prepared_statements").fetchone()
    assert row is not None
    return int(row[0])


@pytest.mark.parametrize("stream", [None, True, False])
def test_a_statement_whose_results_are_short_is_prepared_once(psqlodbc: Database, stream: bool | None) -> None:
    with onecopy.connect(psqlodbc.odbc, stream=stream) as con:
        cur = con.cursor()
        seen = []
        for key in range(1, 21):
            cur.execute("select id, note from t1000 where id = ?", [key])
            seen.append(cur.fetchone())
            assert cur.rowcount in (-1, 1)
        assert _plans(con) == (0 if stream else 1)
        # The same for each format, executed in either way.
        assert con.execute("select id, note from t1000 where id <= 20 order by id").fetchall() == seen
        again = con.execute("select id, note from t1000 where id = ?", [7])
        assert again.defer("note").fetchone() == (7, ...)
        note = again.open_text("note")
        assert note is not None and seen[6] is not None and note.read() == seen[6][1]
        assert con.execute("select id, note from t1000 where id = ?", [7]).json().read().startswith(b'[{"id":7,"note":')
        assert cur.execute("select id, note from t1000 where id = :key", {"key": 7}).fetchall() == [seen[6]]


def test_statements_are_closed_before_a_table_is_dropped_if_a_bit_column_was_read(psqlodbc: Database) -> None:
    # psqlodbc 13.02 uses freed memory if they still exist.
    with onecopy.connect(psqlodbc.odbc) as con:
        con.execute("create temporary table bits (id integer, three bit(3))")
        con.execute("create temporary table other (id integer)")
        con.execute("insert into bits values (1, '101'), (2, '010')")
        for _ in range(10):
            assert con.execute("select id from bits where id = ?", [1]).fetchall() == [(1,)]
            assert con.execute("select three from bits where id = ?", [1]).fetchall() == [("101",)]
        reading = con.execute("select id, three from bits order by id")
        assert reading.fetchone() == (1, "101")
        assert _plans(con) == 2
        con.execute("drop table other")
        assert _plans(con) == 0
        with pytest.raises(onecopy.InterfaceError, match="before a table was dropped or altered"):
            reading.fetchall()
        assert con.execute("select three from bits where id = ?", [2]).fetchall() == [("010",)]


def test_results_stay_open_if_no_bit_column_was_read(psqlodbc: Database) -> None:
    with onecopy.connect(psqlodbc.odbc) as con:
        con.execute("create temporary table other (id integer)")
        reading = con.execute("select id from t1000 order by id")
        assert reading.fetchone() == (1,)
        con.execute("drop table other")
        assert len(reading.fetchall()) == 999


@pytest.mark.filterwarnings("ignore::onecopy.DriverWarning")
@pytest.mark.parametrize("end", ["commit", "rollback"])
def test_a_cursor_that_is_ended_in_autocommit_mode_raises(database: Database, end: str) -> None:
    with onecopy.connect(database.odbc, autocommit=True) as con:
        cur = con.execute("select 1 union all select 2")
        getattr(con, end)()
        if database.profile.startswith("tds") or (database.profile in PSQLODBC and end == "rollback"):
            with pytest.raises(onecopy.InterfaceError, match="was ended by a commit or rollback"):
                cur.fetchall()
        else:
            assert cur.fetchall() == [(1,), (2,)]
        assert con.execute("select 1").fetchall() == [(1,)]
