"""Python objects as parameters of statements."""

from __future__ import annotations

import datetime
import decimal
import enum
import uuid
from typing import Any

import pytest

import onecopy


class Colour(enum.IntEnum):
    RED = 3


class Name(str):
    pass


@pytest.mark.parametrize(
    ("value", "stored"),
    [
        (None, None),
        (True, 1),
        (False, 0),
        (-(2**63), -(2**63)),
        (2**63 - 1, 2**63 - 1),
        (1.5, 1.5),
        (float("inf"), float("inf")),
        ("", ""),
        ("Zürich", "Zürich"),
        ("東京😀", "東京😀"),
        (b"", b""),
        (b"\0\xff", b"\0\xff"),
        (bytearray(b"ab"), b"ab"),
        (memoryview(b"abcdef")[1:3], b"bc"),
        (Colour.RED, 3),
        (Name("n"), "n"),
    ],
)
def test_a_parameter_round_trips(con: onecopy.Connection, value: Any, stored: Any) -> None:
    ((got,),) = con.execute("select ?", (value,)).fetchall()
    assert got == stored
    assert type(got) is type(stored)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (datetime.date(2026, 11, 20), "2026-11-20"),
        (datetime.datetime(2026, 11, 20, 1, 2, 3, 4), "2026-11-20 01:02:03.000004"),
        (datetime.time(1, 2, 3), "01:02:03"),
        (uuid.UUID(int=1), "00000000-0000-0000-0000-000000000001"),
    ],
)
def test_types_that_sqlite_lacks_are_stored_as_text(con: onecopy.Connection, value: Any, text: str) -> None:
    assert con.execute("select ?", (value,)).fetchall() == [(text,)]


@pytest.mark.parametrize("value", [object(), [1], {"a": 1}, 1j, datetime.timedelta(1)])
def test_an_unknown_type_is_a_type_error_that_names_the_position(con: onecopy.Connection, value: object) -> None:
    with pytest.raises(TypeError, match=rf"parameter 2 is a `{type(value).__name__}`"):
        con.execute("select ?, ?", (1, value))


def test_a_time_with_a_zone_is_a_type_error(con: onecopy.Connection) -> None:
    with pytest.raises(TypeError, match="time with a zone"):
        con.execute("select ?", (datetime.time(1, tzinfo=datetime.timezone.utc),))


@pytest.mark.parametrize("value", ["NaN", "Infinity"])
def test_a_decimal_nan_is_a_data_error(con: onecopy.Connection, value: str) -> None:
    with pytest.raises(onecopy.DataError, match="parameter 1"):
        con.execute("select ?", (decimal.Decimal(value),))


@pytest.mark.parametrize(("text", "at"), [("\ud800", 0), ("abc\udfffx", 3), ("😀\ud83d\ude00", 1)])
def test_a_lone_surrogate_is_a_data_error_with_its_position(con: onecopy.Connection, text: str, at: int) -> None:
    with pytest.raises(onecopy.DataError, match=rf"parameter 1 has a lone surrogate at character {at}$"):
        con.execute("select ?", (text,))
    with pytest.raises(onecopy.DataError, match="the statement has a lone surrogate"):
        con.execute(f"select '{text}'")


def test_a_datetime_with_an_offset_of_half_minutes_is_stored_in_utc(con: onecopy.Connection) -> None:
    zone = datetime.timezone(datetime.timedelta(seconds=90))
    local = datetime.datetime(2026, 1, 1, tzinfo=zone)
    ((stored,),) = con.execute("select ?", (local,)).fetchall()
    assert datetime.datetime.fromisoformat(stored) == local


def test_executemany_accepts_any_iterable_and_passes_its_exceptions_on(con: onecopy.Connection) -> None:
    con.execute("create table t (a)")
    con.commit()

    def rows() -> Any:
        yield (1,)
        yield [2]
        raise LookupError("out of rows")

    with pytest.raises(LookupError, match="out of rows"):
        con.executemany("insert into t values (?)", rows())
    con.rollback()
    con.executemany("insert into t values (?)", ([i] for i in range(3000)))
    assert con.execute("select count(*), sum(a) from t").fetchall() == [(3000, 4498500)]


def test_executemany_names_the_row_that_failed(con: onecopy.Connection) -> None:
    con.execute("create table t (a unique)")
    with pytest.raises(onecopy.IntegrityError) as caught:
        con.executemany("insert into t values (?)", [(1,), (2,), (1,), (3,)])
    assert caught.value.row == 2


def test_an_iterable_may_read_from_the_same_connection(numbers: onecopy.Connection) -> None:
    numbers.executemany("insert into n values (?, 'again')", numbers.execute("select i + 1000 from n"))
    assert numbers.execute("select count(*), max(i) from n").fetchall() == [(2000, 1999)]


def test_parameters_leave_no_utf8_cache(con: onecopy.Connection) -> None:
    import sys

    for text in ("ä" * 100, "я" * 100, "東" * 100, "😀" * 100):
        fresh = text[:-1] + text[-1]
        before = sys.getsizeof(fresh)
        con.execute("select ?", (fresh,))
        con.execute(f"select '{fresh}' as {fresh}").fetchall()
        assert sys.getsizeof(fresh) == before


def test_a_cached_utf8_form_is_used(con: onecopy.Connection) -> None:
    import ctypes

    text = "я" * 50
    api = ctypes.pythonapi.PyUnicode_AsUTF8
    api.argtypes, api.restype = [ctypes.py_object], ctypes.c_char_p
    api(text)
    with onecopy.ledger() as ledger:
        assert con.execute("select ?", (text,)).fetchall() == [(text,)]
    # The cached UTF-8 was used: 100 bytes, copied and not converted.
    assert ledger.stages["parameters"] == {"taken": 100, "converted": 0, "copied": 100, "conversions": 0}


def test_names_of_sqlite_functions_are_used_as_column_names(con: onecopy.Connection) -> None:
    cur = con.execute("select :a, @b, $c, :a + 1", {"a": 1, "b": 2, "c": 3})
    assert cur.fetchall() == [(1, 2, 3, 2)]
    assert cur.description is not None
    assert [column[0] for column in cur.description] == [":a", "@b", "$c", ":a + 1"]
    con.execute("create table own (x, y)")
    con.executemany("insert into own values ($x, @y)", [{"x": 1, "y": 2}, {"y": 4, "x": 3}])
    assert con.execute("select * from own").fetchall() == [(1, 2), (3, 4)]
    with pytest.raises(onecopy.ProgrammingError, match="mixed with named parameters"):
        con.execute("select ?, :a", {"a": 1})
    with pytest.raises(onecopy.ProgrammingError, match="has no named ones"):
        con.execute("select 1", {"a": 1})
