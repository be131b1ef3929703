"""SQL Server's drivers with a real TDS server (Babelfish): arrays of parameters in one call, and
several results in order."""

from __future__ import annotations

import pytest

import onecopy
from tests.support import babelfish

DRIVERS = ["msodbc", "freetds"]


def connect(driver: str, port: int, *, autocommit: bool = False) -> onecopy.Connection:
    return onecopy.connect(babelfish.odbc(driver, port), autocommit=autocommit)


@pytest.mark.parametrize("autocommit", [False, True])
@pytest.mark.parametrize("driver", DRIVERS)
def test_answers_belong_to_their_statements(driver: str, autocommit: bool, port: int) -> None:
    con = connect(driver, port, autocommit=autocommit)
    for n in range(5):
        assert con.execute(f"select {n} as n").fetchall() == [(n,)]
    con.rollback()
    con.close()


def test_a_driver_that_returns_the_rows_of_another_statement_is_refused(port: int) -> None:
    for autocommit in (True, False):
        with pytest.raises(onecopy.OperationalError) as raised:
            connect("mssqlrs", port, autocommit=autocommit)
        message = str(raised.value)
        assert "returns the rows of another statement" in message
        assert "driver `" in message and "FreeTDS" in message and "Onecopy12345" not in message


@pytest.mark.parametrize("autocommit", [False, True])
@pytest.mark.parametrize("driver", DRIVERS)
def test_all_rows_of_parameters_arrive_and_are_counted(driver: str, autocommit: bool, port: int) -> None:
    con = connect(driver, port, autocommit=autocommit)
    cur = con.cursor()
    cur.execute("create table #many (i int, t nvarchar(40), f float, d nvarchar(20))")
    rows = [(i, f"näme 日 {i}", i / 8, None if i % 7 == 0 else str(i)) for i in range(3000)]
    cur.executemany("insert into #many values (?, ?, ?, ?)", rows)
    assert cur.execute("select i, t, f, d from #many order by i").fetchall() == rows
    cur.executemany("update #many set d = ? where i < ?", [("a", 10), ("b", 0), ("c", 5), ("d", 1)])
    assert cur.rowcount == 16
    cur.executemany("delete from #many where i = ?", [[i] for i in range(0, 100, 2)])
    assert cur.rowcount == 50
    con.close()


@pytest.mark.parametrize("autocommit", [False, True])
@pytest.mark.parametrize("driver", DRIVERS)
def test_a_row_that_fails_is_named_and_those_before_it_stay(driver: str, autocommit: bool, port: int) -> None:
    con = connect(driver, port, autocommit=autocommit)
    cur = con.cursor()
    cur.execute("create table #keyed (i int primary key, t nvarchar(10))")
    cur.execute("insert into #keyed values (50, N'x')")
    with pytest.raises(onecopy.IntegrityError) as raised:
        cur.executemany("insert into #keyed values (?, ?)", [(i, str(i)) for i in range(100)])
    assert raised.value.row == 50
    assert cur.execute("select count(*) from #keyed where t <> N'x'").fetchall() == [(50,)]
    con.close()
