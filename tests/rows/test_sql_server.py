"""SQL Server's three drivers with the TDS responder: parameters of every type, many rows, errors,
results, transactions.

FreeTDS is tested with each protocol version from 7.2 (SQL Server 2005) to 7.4 (2012 and later).
"""

from __future__ import annotations

import datetime as dt
import uuid
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import pytest

import onecopy
from tests.conftest import Database

pytestmark = pytest.mark.filterwarnings("ignore::onecopy.DriverWarning")
INDIA = dt.timezone(dt.timedelta(hours=5, minutes=30))


TARGETS = ["tds_freetds", "tds_msodbc", "tds_rust", "7.3", "7.2"]
#: TDS 7.2 is SQL Server 2005, which has no date type, and a time resolution of 1/300 s.
with_dates = pytest.mark.parametrize("target", TARGETS[:-1], indirect=True)


@pytest.fixture(params=TARGETS)
def target(request: pytest.FixtureRequest) -> str:
    """The connection string of each driver, and of FreeTDS with older protocol versions."""
    name = request.param
    database: Database = request.getfixturevalue(name if name.startswith("tds") else "tds_freetds")
    return database.odbc if name.startswith("tds") else database.odbc.replace("TDS_Version=7.4", f"TDS_Version={name}")


@pytest.fixture
def con(target: str) -> Iterator[onecopy.Connection]:
    """A connection to the TDS responder; the table `kept` does not exist."""
    connection = onecopy.connect(target)
    connection.execute("drop table kept")
    connection.commit()
    yield connection
    connection.close()


PARAMETERS = [
    True,
    0,
    -1,
    2**31 - 1,
    2**63 - 1,
    -(2**63),
    1.5,
    0.30000000000000004,
    -1.7976931348623157e308,
    Decimal("1.50"),
    Decimal("-0.01"),
    Decimal("-12345678901234567890123456789012345.678"),
    "x",
    "Zoë 東京 😀",
    "a" * 4000,
    "a" * 4001,
    "é" * 4000,
    "a" * 8000,
    "a" * 8001,
    "я" * 4001,
    "😀" * 50_000,
    b"\x00\xff",
    b"z" * 8000,
    b"\x01" * 100_001,
    uuid.UUID("00112233-4455-6677-8899-aabbccddeeff"),
]


@pytest.mark.parametrize("value", PARAMETERS, ids=lambda v: f"{type(v).__name__} {str(v)[:24]!r}")
def test_a_parameter_round_trips(con: onecopy.Connection, target: str, value: Any) -> None:
    comes_back(con, target, value)


@with_dates
@pytest.mark.parametrize(
    "value", [dt.date(1, 1, 1), dt.date(9999, 12, 31), dt.datetime(2024, 2, 29, 23, 59, 58, 123456)], ids=str
)
def test_a_date_round_trips(con: onecopy.Connection, target: str, value: Any) -> None:
    comes_back(con, target, value)


def comes_back(con: onecopy.Connection, target: str, value: Any) -> None:
    """Checks that a parameter is returned unchanged, also by a statement that is prepared and
    executed again."""
    rows = con.execute("select ? as a, 7 as b", [value]).fetchall()
    if value == dt.date(1, 1, 1) and "libtdsodbc" in target:
        value = "0001-01-01"  # FreeTDS sends dates before 1600 wrong, so this one is sent as text.
    assert rows == [(value, 7)]
    # Microsoft's Rust driver sends a bool as tinyint.
    assert type(rows[0][0]) is type(value) or (value is True and "mssqlodbc" in target)
    # Once more with the prepared statement, and NULL as the value.
    cur = con.cursor()
    for again in (value, None, value):
        cur.execute("select ?", [again])
        assert cur.fetchall() == [(again,)]


@with_dates
@pytest.mark.parametrize("day", [dt.date(1, 1, 1), dt.date(4, 2, 29), dt.date(1582, 10, 4), dt.date(1599, 12, 31)])
def test_early_dates_are_correct(con: onecopy.Connection, target: str, day: dt.date) -> None:
    moment = dt.datetime.combine(day, dt.time(1, 2, 3, 456789))
    con.execute("create table kept (a date, b datetime2(6))")
    con.execute("insert into kept values (?, ?)", [day, moment])
    con.executemany("insert into kept values (?, ?)", [(day, moment)] * 2)
    assert con.execute("select * from kept").fetchall() == [(day, moment)] * 3


@with_dates
def test_a_time_keeps_its_fraction_and_a_timestamp_its_offset(con: onecopy.Connection, target: str) -> None:
    cases: list[tuple[str, Any]] = [
        ("select cast('23:59:59.123456' as time(6))", dt.time(23, 59, 59, 123456)),
        (
            "select cast('2024-02-29T23:59:58.123456+05:30' as datetimeoffset(6))",
            dt.datetime(2024, 2, 29, 23, 59, 58, 123456, INDIA),
        ),
    ]
    for sql, value in cases:
        ((found,),) = con.execute(sql).fetchall()
        assert found == value and type(found) is type(value)
        if isinstance(value, dt.datetime):
            assert found.utcoffset() == value.utcoffset()


def test_types_of_2008_are_text_for_a_client_of_2005(tds_freetds: Database) -> None:
    con = onecopy.connect(tds_freetds.odbc.replace("TDS_Version=7.4", "TDS_Version=7.2"))
    sql = (
        "select cast('2024-02-29' as date), cast('2024-02-29T01:02:03.4' as datetime2(1)), cast('01:02:03' as time(0))"
    )
    assert con.execute(sql).fetchall() == [("2024-02-29", "2024-02-29 01:02:03.4", "01:02:03")]
    assert con.execute("select created from t1000 where id = 1").fetchall()[0][0].startswith("20")
    con.close()


def test_many_rows_arrive_in_order_and_complete(con: onecopy.Connection) -> None:
    con.execute("create table kept (a int not null primary key, b nvarchar(40), c float)")
    rows = [(i, None if i % 7 == 0 else f"näme 東 {i}", i / 3) for i in range(500)]
    assert con.executemany("insert into kept values (?, ?, ?)", rows).rowcount == 500
    assert con.execute("select * from kept").fetchall() == rows


def test_a_row_that_fails_is_named_and_the_ones_before_it_are_kept(con: onecopy.Connection) -> None:
    con.execute("create table kept (a int not null primary key, b nvarchar(5))")
    with pytest.raises(onecopy.DataError, match="would be truncated") as caught:
        con.executemany("insert into kept values (?, ?)", [(1, "ok"), (2, "ok"), (3, "too long"), (4, "ok")])
    assert caught.value.row == 2
    assert caught.value.native_code == 2628
    assert con.usable
    assert con.execute("select * from kept").fetchall() == [(1, "ok"), (2, "ok")]


@pytest.mark.parametrize(
    ("sql", "parameters", "error", "native_code", "words"),
    [
        ("insert into kept values (?, ?)", (99_999_999_999, "x"), onecopy.DataError, 8115, "Arithmetic overflow"),
        ("insert into kept values (?, ?)", (1, "abcdef"), onecopy.DataError, 2628, "would be truncated"),
        ("insert into kept values (?, ?)", ("no number", "x"), onecopy.DataError, 8114, "Error converting"),
        ("insert into kept values (?, ?)", (None, "x"), onecopy.IntegrityError, 515, "does not allow nulls"),
        ("insert into kept values (?, ?)", (0, "x"), onecopy.IntegrityError, 2627, "PRIMARY KEY"),
        ("select * from nowhere", (), onecopy.ProgrammingError, 208, "Invalid object name 'nowhere'"),
        ("frobnicate", (), onecopy.ProgrammingError, 2812, "Could not find stored procedure"),
        ("throw 51234, N'Ошибка: 日本 😀', 1", (), onecopy.ProgrammingError, 51234, "Ошибка: 日本 😀"),
    ],
)
def test_an_error_has_its_class_its_code_and_the_servers_message(
    con: onecopy.Connection, sql: str, parameters: tuple[Any, ...], error: type[Exception], native_code: int, words: str
) -> None:
    con.execute("create table kept (a int not null primary key, b nvarchar(5))")
    con.execute("insert into kept values (0, N'first')")
    with pytest.raises(error) as caught:
        con.execute(sql, parameters).fetchall()
    assert isinstance(caught.value, onecopy.DatabaseError)
    assert (caught.value.native_code, len(caught.value.sqlstate)) == (native_code, 5)
    assert words in str(caught.value)
    assert con.usable
    assert con.execute("select * from kept").fetchall() == [(0, "first")]


def test_several_errors_of_one_statement_are_all_reported(con: onecopy.Connection) -> None:
    with pytest.raises(onecopy.ProgrammingError) as caught:
        con.execute("raiserror(N'первая', 16, 1) raiserror(N'вторая', 14, 2)").fetchall()
    assert "первая" in str(caught.value) and "вторая" in str(caught.value)
    assert con.execute("select 1").fetchall() == [(1,)]


def test_an_error_between_results_is_raised_in_order(con: onecopy.Connection) -> None:
    cur = con.execute("select 1 as a; raiserror(N'middle', 16, 1); select 2 as b")
    assert cur.fetchone() == (1,)
    with pytest.raises(onecopy.ProgrammingError, match="middle"):
        cur.nextset()
    assert con.execute("select 3").fetchall() == [(3,)]


def test_messages_printed_by_a_batch_come_with_its_results(con: onecopy.Connection, target: str) -> None:
    cur = con.execute("print N'до 東'; select 1 as a; print N'после 😀'; select 2 as b, N'é' as c")
    assert [str(message).endswith("до 東") for _, message in cur.messages] == [True]
    assert cur.fetchall() == [(1,)]
    assert cur.nextset() is True
    # FreeTDS drops messages between two results.
    said = [] if "libtdsodbc" in target else [True]
    assert [str(message).endswith("после 😀") for _, message in cur.messages] == said
    assert cur.fetchall() == [(2, "é")]
    assert cur.nextset() is None


def test_a_procedure_returns_its_results_one_after_the_other(con: onecopy.Connection, target: str) -> None:
    cur = con.execute("{call onecopy_results(?)}", [2])
    assert cur.fetchall() == [("é",), ("é",)]
    assert cur.nextset() is True
    assert cur.fetchall() == [(2, 3)]
    assert cur.nextset() is None
    with pytest.raises(onecopy.ProgrammingError, match="failed as requested") as caught:
        con.execute("{call onecopy_fails(?)}", [50_777])
    assert caught.value.native_code == 50_777
    with pytest.raises(onecopy.ProgrammingError, match="onecopy_none"):
        con.execute("{call onecopy_none(?)}", [1])


def test_a_rollback_discards_and_a_commit_keeps(con: onecopy.Connection) -> None:
    con.execute("create table kept (a int)")
    con.commit()
    con.execute("insert into kept values (1)")
    con.rollback()
    assert con.execute("select * from kept").fetchall() == []
    con.execute("insert into kept values (2)")
    con.commit()
    con.rollback()
    assert con.execute("select * from kept").fetchall() == [(2,)]


def test_uncommitted_changes_are_lost_with_the_connection(con: onecopy.Connection, target: str) -> None:
    con.execute("create table kept (a int)")
    con.commit()
    other = onecopy.connect(target)
    other.execute("insert into kept values (1)")
    other.close()
    assert con.execute("select * from kept").fetchall() == []
    auto = onecopy.connect(target, autocommit=True)
    auto.execute("insert into kept values (2)")
    auto.close()
    assert con.execute("select * from kept").fetchall() == [(2,)]


def test_autocommit_can_be_turned_on_and_off(con: onecopy.Connection) -> None:
    con.execute("create table kept (a int)")
    con.commit()
    con.autocommit = True
    con.execute("insert into kept values (1)")
    con.autocommit = False
    con.execute("insert into kept values (2)")
    con.rollback()
    assert con.execute("select * from kept").fetchall() == [(1,)]


@pytest.mark.parametrize("n_units", [32_766, 32_768, 65_536, 140_000])
def test_a_long_statement_is_executed_whole(con: onecopy.Connection, n_units: int) -> None:
    text = "東" * n_units
    assert con.execute(f"select N'{text}' as a, 'end' as b").fetchall() == [(text, "end")]
    assert con.execute(f"select N'{text}' as a, ? as b", ["end"]).fetchall() == [(text, "end")]
