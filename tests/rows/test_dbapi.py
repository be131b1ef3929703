"""The requirements of PEP 249 for the module, its connections and its cursors."""

from __future__ import annotations

import datetime
import pathlib
import sqlite3

import pytest

import onecopy


def test_the_module_has_the_globals_of_pep_249() -> None:
    assert (onecopy.apilevel, onecopy.threadsafety, onecopy.paramstyle) == ("2.0", 1, "qmark")


def test_exceptions_form_the_tree_of_pep_249() -> None:
    assert issubclass(onecopy.Warning, Exception)
    assert issubclass(onecopy.InterfaceError, onecopy.Error)
    for name in ("Data", "Operational", "Integrity", "Internal", "Programming", "NotSupported"):
        assert issubclass(getattr(onecopy, f"{name}Error"), onecopy.DatabaseError)
    assert issubclass(onecopy.DatabaseError, onecopy.Error)


def test_exceptions_are_attributes_of_the_connection(con: onecopy.Connection) -> None:
    names = [n for n in onecopy.errors.__all__ if n != "DriverWarning"]
    assert len(names) == 10
    for name in names:
        assert getattr(con, name) is getattr(onecopy, name)


def test_constructors_return_values_that_parameters_accept() -> None:
    assert onecopy.Date(2026, 11, 20) == datetime.date(2026, 11, 20)
    assert onecopy.Time(1, 2, 3) == datetime.time(1, 2, 3)
    assert onecopy.Timestamp(2026, 11, 20, 1, 2, 3) == datetime.datetime(2026, 11, 20, 1, 2, 3)
    assert onecopy.Binary(b"\0") == b"\0"
    ticks = datetime.datetime(2026, 11, 20, 1, 2, 3).timestamp()
    assert onecopy.DateFromTicks(ticks) == datetime.date(2026, 11, 20)
    assert onecopy.TimeFromTicks(ticks) == datetime.time(1, 2, 3)
    assert onecopy.TimestampFromTicks(ticks) == datetime.datetime(2026, 11, 20, 1, 2, 3)


def test_type_objects_equal_their_type_codes() -> None:
    assert onecopy.STRING == "text"
    assert onecopy.STRING != "integer"
    assert onecopy.NUMBER == "decimal"
    assert "timestamp" == onecopy.DATETIME  # noqa: SIM300, both directions are used
    assert onecopy.BINARY == "binary"
    assert onecopy.ROWID != "integer"
    assert len({onecopy.STRING, onecopy.NUMBER, onecopy.STRING}) == 2
    assert repr(onecopy.STRING) == "onecopy.STRING"


def test_description_names_the_columns_and_is_none_without_rows(con: onecopy.Connection) -> None:
    cur = con.cursor()
    assert cur.description is None
    cur.execute("select 1 as eins, 'x' as zwei")
    assert cur.description is not None
    assert [d[0] for d in cur.description] == ["eins", "zwei"]
    assert all(len(d) == 7 for d in cur.description)
    cur.execute("create table t (a)")
    assert cur.description is None


def test_fetchone_returns_rows_then_none(con: onecopy.Connection) -> None:
    cur = con.execute("select 1 union all select 2")
    assert cur.fetchone() == (1,)
    assert cur.fetchone() == (2,)
    assert cur.fetchone() is None
    assert cur.fetchone() is None


def test_fetchmany_uses_arraysize_by_default(numbers: onecopy.Connection) -> None:
    cur = numbers.execute("select i from n")
    assert cur.arraysize == 1
    assert cur.fetchmany() == [(0,)]
    cur.arraysize = 5
    assert cur.fetchmany() == [(i,) for i in range(1, 6)]
    assert cur.fetchmany(2) == [(6,), (7,)]
    assert cur.fetchmany(size=10_000) == [(i,) for i in range(8, 1000)]
    assert cur.fetchmany() == []
    assert cur.fetchmany(0) == []


def test_arraysize_below_one_is_refused(con: onecopy.Connection) -> None:
    with pytest.raises(ValueError, match="arraysize"):
        con.cursor().arraysize = 0


def test_fetchall_returns_the_remaining_rows(numbers: onecopy.Connection) -> None:
    cur = numbers.execute("select i from n")
    cur.fetchone()
    cur.fetchmany(3)
    assert cur.fetchall() == [(i,) for i in range(4, 1000)]
    assert cur.fetchall() == []


def test_rows_are_plain_tuples(numbers: onecopy.Connection) -> None:
    assert type(numbers.execute("select * from n").fetchone()) is tuple


def test_fetching_without_rows_raises(con: onecopy.Connection) -> None:
    cur = con.cursor()
    for fetch in (cur.fetchone, cur.fetchmany, cur.fetchall, cur.__next__, cur.json):
        with pytest.raises(onecopy.ProgrammingError, match="no rows to fetch"):
            fetch()
    cur.execute("create table t (a)")
    with pytest.raises(onecopy.ProgrammingError, match="no rows to fetch"):
        cur.fetchall()


def test_rowcount_is_the_number_of_changed_rows_and_minus_one_for_queries(numbers: onecopy.Connection) -> None:
    cur = numbers.cursor()
    assert cur.rowcount == -1
    cur.execute("select * from n")
    assert cur.rowcount == -1
    cur.execute("update n set t = 'x' where i < 10")
    assert cur.rowcount == 10
    cur.executemany("delete from n where i = ?", [(1,), (2,), (5000,)])
    assert cur.rowcount == 2


def test_lastrowid_is_that_of_the_insert(con: onecopy.Connection) -> None:
    con.execute("create table t (a integer primary key, b)")
    cur = con.execute("insert into t (b) values (?)", ("x",))
    assert cur.lastrowid == 1
    assert con.execute("insert into t values (41, 'y')").lastrowid == 41
    assert con.execute("select 1").lastrowid is None


def test_execute_returns_the_cursor_and_discards_earlier_rows(numbers: onecopy.Connection) -> None:
    cur = numbers.cursor()
    assert cur.execute("select i from n") is cur
    cur.fetchone()
    assert cur.execute("select 'new'").fetchall() == [("new",)]
    assert cur.executemany("insert into n values (?, ?)", []) is cur


def test_a_failed_execute_discards_earlier_rows(numbers: onecopy.Connection) -> None:
    cur = numbers.execute("select i from n")
    with pytest.raises(onecopy.ProgrammingError):
        cur.execute("selec 1")
    with pytest.raises(onecopy.ProgrammingError, match="no rows"):
        cur.fetchone()
    assert cur.description is None


def test_commit_and_rollback(tmp_path: pathlib.Path) -> None:
    file = tmp_path / "t.db"
    con = onecopy.connect(f"sqlite:{file}")
    other = sqlite3.connect(file)
    con.execute("create table t (a)")
    con.execute("insert into t values (1)")
    con.commit()
    con.execute("insert into t values (2)")
    assert other.execute("select count(*) from t").fetchone() == (1,)
    con.rollback()
    assert con.execute("select a from t").fetchall() == [(1,)]
    con.close()
    other.close()


def test_context_manager_commits_or_rolls_back_and_stays_open(con: onecopy.Connection) -> None:
    with con as entered:
        assert entered is con
        con.execute("create table t (a)")
        con.execute("insert into t values (1)")

    def fail() -> None:
        with con:
            con.execute("insert into t values (2)")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert con.execute("select a from t").fetchall() == [(1,)]


def test_closing_a_connection_rolls_back(tmp_path: pathlib.Path) -> None:
    target = f"sqlite:{tmp_path / 't.db'}"
    con = onecopy.connect(target)
    con.execute("create table t (a)")
    con.commit()
    con.execute("insert into t values (1)")
    con.close()
    con.close()
    again = onecopy.connect(target)
    assert again.execute("select count(*) from t").fetchall() == [(0,)]
    again.close()


def test_autocommit_is_off_and_can_be_turned_on(tmp_path: pathlib.Path) -> None:
    target = f"sqlite:{tmp_path / 't.db'}"
    con = onecopy.connect(target)
    assert con.autocommit is False
    con.autocommit = True
    assert con.autocommit is True
    con.execute("create table t (a)")
    con.execute("insert into t values (1)")
    con.rollback()
    assert con.execute("select a from t").fetchall() == [(1,)]
    con.close()
    with_keyword = onecopy.connect(target, autocommit=True)
    assert with_keyword.autocommit is True
    with_keyword.close()


def test_read_only_refuses_to_write(tmp_path: pathlib.Path) -> None:
    file = tmp_path / "t.db"
    sqlite3.connect(file).execute("create table t (a)").connection.close()
    con = onecopy.connect(f"sqlite:{file}", read_only=True)
    with pytest.raises(onecopy.OperationalError, match="readonly"):
        con.execute("insert into t values (1)")
    con.close()


def test_closed_cursor_and_connection_raise_interface_error(numbers: onecopy.Connection) -> None:
    cur = numbers.execute("select i from n")
    cur.close()
    cur.close()
    for use in (cur.fetchone, cur.fetchmany, cur.fetchall, cur.__next__, cur.json, lambda: cur.execute("select 1")):
        with pytest.raises(onecopy.InterfaceError, match="closed"):
            use()
    open_cursor = numbers.execute("select i from n")
    numbers.close()
    with pytest.raises(onecopy.InterfaceError, match="closed"):
        open_cursor.fetchall()
    for use in (numbers.commit, numbers.rollback, lambda: numbers.execute("select 1")):
        with pytest.raises(onecopy.InterfaceError, match="closed"):
            use()


def test_a_cursor_keeps_its_connection_alive() -> None:
    cur = onecopy.connect("sqlite::memory:").execute("select 1")
    assert cur.fetchall() == [(1,)]
    assert cur.connection.execute("select 2").fetchone() == (2,)


@pytest.mark.parametrize("sql", ["select 1; select 2", ""])
def test_one_statement_per_call(con: onecopy.Connection, sql: str) -> None:
    with pytest.raises(onecopy.ProgrammingError):
        con.execute(sql)


@pytest.mark.parametrize("values", [(), (1,), (1, 2, 3)])
def test_a_wrong_number_of_parameters_is_a_programming_error(con: onecopy.Connection, values: tuple[int, ...]) -> None:
    with pytest.raises(onecopy.ProgrammingError):
        con.execute("select ?, ?", values)


@pytest.mark.parametrize("wrong", ["ab", 5])
def test_parameters_are_a_sequence(con: onecopy.Connection, wrong: object) -> None:
    with pytest.raises(TypeError):
        con.execute("select ?", wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "keywords",
    [{"connect_timeout": 0}, {"connect_timeout": -1.0}, {"connect_timeout": float("nan")}, {"errors": "ignore"}],
)
def test_connect_refuses_invalid_arguments(keywords: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=next(iter(keywords))):
        onecopy.connect("sqlite::memory:", **keywords)  # type: ignore[arg-type]


def test_repr_shows_the_database(con: onecopy.Connection) -> None:
    assert repr(con).startswith("<onecopy.Connection: SQLite 3.")
