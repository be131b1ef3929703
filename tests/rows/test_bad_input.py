"""Bad input with every driver: the exception has the right class, SQLSTATE, code and message, and
the connection remains usable."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import pytest

import onecopy
from tests.conftest import Database

pytestmark = pytest.mark.filterwarnings("ignore::onecopy.DriverWarning")
#: Types of a table with two columns, a key and a text of five characters.
COLUMNS = {
    "mariadb": "(a int not null primary key, b varchar(5), c decimal(5, 2))",
    "tds": "(a int not null primary key, b nvarchar(5), c decimal(5,2))",
}


@pytest.fixture
def con(database: Database) -> Iterator[onecopy.Connection]:
    """A connection to a database with an empty table ``bad``."""
    connection = onecopy.connect(database.odbc)
    if database.profile.startswith("tds"):
        connection.execute("drop table bad")
    columns = COLUMNS.get(
        database.profile.partition("_")[0], "(a int not null primary key, b varchar(5), c numeric(5, 2))"
    )
    temporary = "" if database.profile.startswith("tds") else "temporary "
    connection.execute(f"create {temporary}table bad {columns}")
    connection.commit()
    yield connection
    connection.close()


def lives(con: onecopy.Connection) -> None:
    """Checks that the connection is usable after a rollback, which some databases require."""
    assert con.usable
    con.rollback()
    assert con.execute("select 1").fetchall() == [(1,)]


@pytest.mark.parametrize("values", [(), (1,), (1, 2, 3)])
def test_a_wrong_number_of_parameters(con: onecopy.Connection, values: tuple[int, ...]) -> None:
    with pytest.raises(onecopy.ProgrammingError) as caught:
        con.execute("select * from bad where a = ? and b = ?", values).fetchall()
    assert caught.value.sqlstate in ("07002", "07001")
    assert "2 parameters" in str(caught.value)
    lives(con)


def test_a_parameter_of_an_unknown_type(con: onecopy.Connection) -> None:
    with pytest.raises(TypeError, match="parameter"):
        con.execute("select ?", [object()])
    lives(con)


@pytest.mark.parametrize(
    ("values", "error"),
    [
        ((99_999_999_999, "x", None), onecopy.DataError),
        ((1, "too long", None), onecopy.DataError),
        ((1, "x", Decimal("12345.67")), onecopy.DataError),
        ((None, "x", None), onecopy.IntegrityError),
        ((0, "x", None), onecopy.IntegrityError),
    ],
    ids=["overflow", "truncation", "decimal overflow", "null", "duplicate"],
)
def test_a_value_that_does_not_fit(
    con: onecopy.Connection, database: Database, values: tuple[Any, ...], error: type[onecopy.Error]
) -> None:
    if database.profile == "sqlite_odbc" and error is onecopy.DataError:
        # SQLite keeps any value in any column, and a decimal as a number or as text.
        values = tuple(str(value) if isinstance(value, Decimal) else value for value in values)
        assert con.execute("insert into bad values (?, ?, ?)", values).rowcount == 1
        return
    con.execute("insert into bad values (0, 'first', null)")
    with pytest.raises(error) as caught:
        con.execute("insert into bad values (?, ?, ?)", values)
    assert caught.value.sqlstate[:2] in ("22", "23", "42", "HY")
    assert (caught.value.native_code != 0) == (database.profile != "postgres_native")
    assert len(str(caught.value)) > 10
    lives(con)


def test_a_text_with_nul_is_kept_or_refused_and_never_truncated(con: onecopy.Connection, database: Database) -> None:
    sql = {"mariadb": "select cast(? as char)", "postgres": "select cast(? as text)"}
    found: Any = None
    refused: onecopy.Error | None = None
    try:
        ((found,),) = con.execute(sql.get(database.profile.partition("_")[0], "select ?"), ["a\0b"]).fetchall()
    except onecopy.Error as error:
        refused = error
    if refused is None:
        assert found == "a\0b"
    else:
        assert isinstance(refused, onecopy.DataError | onecopy.ProgrammingError)
        assert "NUL" in str(refused) or refused.sqlstate
    lives(con)


def test_a_statement_with_nul_is_refused(con: onecopy.Connection) -> None:
    with pytest.raises(onecopy.ProgrammingError, match="NUL"):
        con.execute("select 'a\0b'")
    lives(con)


def test_a_cursor_used_after_close(con: onecopy.Connection) -> None:
    cur = con.execute("select 1")
    cur.close()
    for call in (cur.fetchone, cur.fetchall, lambda: cur.execute("select 1"), cur.nextset, lambda: next(cur)):
        with pytest.raises(onecopy.InterfaceError, match="closed"):
            call()
    lives(con)
    other = con.execute("select 1")
    con.close()
    for call in (other.fetchone, lambda: con.execute("select 1"), con.commit, con.rollback, con.cursor().fetchone):
        with pytest.raises((onecopy.InterfaceError, onecopy.ProgrammingError)):
            call()


def test_a_cursor_shared_by_threads_returns_each_row_once(con: onecopy.Connection, database: Database) -> None:
    cur = con.execute("select id from t1000 order by id")
    got: list[list[Any]] = [[], []]
    failures: list[BaseException] = []

    def take(mine: list[Any]) -> None:
        try:
            while rows := cur.fetchmany(7):
                mine.extend(rows)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=take, args=(mine,)) for mine in got]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert sorted(got[0] + got[1]) == [(i,) for i in range(1, 1001)]
    lives(con)
