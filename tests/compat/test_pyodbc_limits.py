"""`onecopy.compat.pyodbc`: calls that cannot succeed, and decimals that are not finite, behave as
with pyodbc."""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest

import onecopy
from onecopy.compat import pyodbc
from tests.conftest import Database


@pytest.mark.parametrize(
    "call",
    [
        lambda cur, name: cur.tables(name),
        lambda cur, name: cur.columns(table=name),
        lambda cur, name: cur.statistics(name),
        lambda cur, name: cur.primaryKeys(name),
        lambda cur, name: cur.tablePrivileges(name),
        lambda cur, name: cur.procedures(name),
    ],
)
def test_names_for_the_catalog_are_checked_before_anything_else(call: Callable[[Any, str], Any]) -> None:
    con = pyodbc.connect("sqlite::memory:")
    cur = con.cursor()
    for name, error in (
        ("x" * 32_768, ValueError),
        ("\U0001f600" * 16_384, ValueError),
        ("t\ud800", UnicodeEncodeError),
    ):
        with pytest.raises(error):
            call(cur, name)
    cur.close()
    with pytest.raises(pyodbc.ProgrammingError, match="closed cursor"):
        call(cur, "t")
    with pytest.raises(pyodbc.ProgrammingError, match="closed cursor"):
        cur.getTypeInfo()
    con.close()


def test_attributes_that_do_not_fit_are_refused() -> None:
    for key in (2**31, -(2**31) - 1, 2**40 + 102, 2**64):
        with pytest.raises(OverflowError):
            pyodbc.connect("sqlite::memory:", attrs_before={key: 1})
    with pytest.raises(UnicodeEncodeError):
        pyodbc.connect("sqlite::memory:", encoding="\udcff")
    con = pyodbc.connect("sqlite::memory:")
    with pytest.raises(UnicodeEncodeError):
        con.set_attr(pyodbc.SQL_ATTR_CURRENT_CATALOG, "\ud800")
    with pytest.raises(OverflowError):
        con.set_attr(pyodbc.SQL_ATTR_CURRENT_CATALOG, 2**100)
    assert con.searchescape == "\\"
    con.close()
    with pytest.raises(pyodbc.ProgrammingError, match="closed connection"):
        con.set_attr(pyodbc.SQL_ATTR_CURRENT_CATALOG, "x")
    with pytest.raises(pyodbc.ProgrammingError, match="closed connection"):
        _ = con.searchescape


@pytest.mark.filterwarnings("ignore::onecopy.DriverWarning")
def test_values_of_attributes_are_integers_bytes_strings_and_sequences_of_them(mariadb: Database) -> None:
    catalog = pyodbc.SQL_ATTR_CURRENT_CATALOG

    class Failing:
        def __len__(self) -> int:
            return 1

        def __getitem__(self, index: int) -> int:
            raise ValueError("not readable")

    for value in (1.5, None, [1.5], {"a": 1}, {1, 2}, [["x"]]):
        for attribute in (catalog, pyodbc.SQL_ATTR_LOGIN_TIMEOUT):
            with pytest.raises(TypeError):
                pyodbc.connect("sqlite::memory:", attrs_before={attribute: value})
    with pytest.raises(TypeError):
        pyodbc.connect("sqlite::memory:", attrs_before={"109": "x"})  # type: ignore[dict-item]
    with pytest.raises(ValueError, match="not readable"):
        pyodbc.connect("sqlite::memory:", attrs_before={catalog: Failing()})
    for found in ("information_schema", b"information_schema", ["onecopy", "information_schema"]):
        before: dict[int, Any] = {catalog: found, pyodbc.SQL_ATTR_LOGIN_TIMEOUT: [1, 9]}
        con = pyodbc.connect(mariadb.odbc, attrs_before=before)
        assert con.execute("select database()").fetchval() == "information_schema"
        con.close()


@pytest.mark.filterwarnings("ignore::onecopy.DriverWarning")
def test_the_current_catalog_can_be_set_and_a_name_is_never_a_statement(mariadb: Database) -> None:
    con = pyodbc.connect(mariadb.odbc)
    con.set_attr(pyodbc.SQL_ATTR_CURRENT_CATALOG, "information_schema")
    assert con.getinfo(pyodbc.SQL_DATABASE_NAME) == "information_schema"
    with pytest.raises(pyodbc.Error, match="Unknown database 'a`b; c'"):
        con.set_attr(pyodbc.SQL_ATTR_CURRENT_CATALOG, "a`b; c")
    with pytest.raises(pyodbc.Error, match="never_there"):
        pyodbc.connect(mariadb.odbc, attrs_before={pyodbc.SQL_ATTR_CURRENT_CATALOG: "never_there"})
    con.close()


@pytest.mark.parametrize("profile", ["postgres_native", "postgres", "sqlite"])
def test_a_catalog_is_ignored_where_a_connection_has_only_one(request: pytest.FixtureRequest, profile: str) -> None:
    target = "sqlite::memory:" if profile == "sqlite" else request.getfixturevalue(profile).odbc
    con = pyodbc.connect(target, attrs_before={pyodbc.SQL_ATTR_CURRENT_CATALOG: "other"})
    before = con.getinfo(pyodbc.SQL_DATABASE_NAME)
    con.set_attr(pyodbc.SQL_ATTR_CURRENT_CATALOG, "another")
    assert con.getinfo(pyodbc.SQL_DATABASE_NAME) == before != "another"
    con.close()


def test_without_an_odbc_driver_onecopy_is_the_driver() -> None:
    con = pyodbc.connect("sqlite::memory:")
    assert con.getinfo(pyodbc.SQL_DRIVER_NAME) == "onecopy"
    own = [int(part) for part in onecopy.__version__.split(".")[:3]]
    assert [int(part) for part in con.getinfo(pyodbc.SQL_DRIVER_VER).split(".")] == own
    con.close()


def test_the_decimal_mode_is_kept_and_its_bools_are_deprecated() -> None:
    con = pyodbc.connect("sqlite::memory:")
    assert con.decimal_mode == "binary"
    for mode in ("text", "locale", "binary"):
        con.decimal_mode = mode
        assert con.decimal_mode == mode
        with pytest.warns(FutureWarning, match="fetch_decimal_as_string"):
            assert con.fetch_decimal_as_string is (mode != "binary")
    wrong: list[tuple[Any, type[Exception]]] = [("strict", ValueError), (1, TypeError), (None, TypeError)]
    for value, error in wrong:
        with pytest.raises(error):
            con.decimal_mode = value
    with pytest.raises(TypeError):
        del con.decimal_mode
    for name in ("decimal_mode", "fetch_decimal_as_string"):
        for on, mode in ((True, "locale"), (False, "binary")):
            with pytest.warns(FutureWarning, match=name):
                setattr(con, name, on)
            assert con.decimal_mode == mode
    con.close()


def test_columns_of_a_row_cannot_be_deleted() -> None:
    con = pyodbc.connect("sqlite::memory:")
    row = con.execute("select 1 as a").fetchone()
    assert row is not None
    with pytest.raises(TypeError):
        del row[0]
    with pytest.raises(TypeError):
        del row.a
    assert row.a == 1
    con.close()


def test_times_and_separators_of_the_module() -> None:
    with pytest.raises(OverflowError):
        pyodbc.TimeFromTicks(2**62)
    pyodbc.setDecimalSeparator(",")
    try:
        assert pyodbc.getDecimalSeparator() == ","
    finally:
        pyodbc.setDecimalSeparator(".")


@pytest.mark.parametrize("many", [False, True])
def test_decimal_nan_and_infinity_work_only_with_postgresql(postgres: Database, many: bool) -> None:
    con = pyodbc.connect(postgres.odbc)
    assert con.decimal_mode == "text"
    cur = con.execute("create temporary table special (n numeric, i integer)")
    values = [Decimal("NaN"), Decimal("Infinity"), Decimal("-Infinity"), Decimal("1.50"), Decimal(10) ** 60]
    if many:
        cur.executemany("insert into special values (?, ?)", [(value, i) for i, value in enumerate(values)])
    else:
        for i, value in enumerate(values):
            cur.execute("insert into special values (?, ?)", value, i)
    assert [row.n for row in cur.execute("select n::text as n from special order by i")] == [
        str(v) for v in values[:4]
    ] + ["1" + "0" * 60]
    found = [row.n for row in cur.execute("select n from special order by i")]
    assert all(type(value) is Decimal for value in found) and found[1:] == values[1:] and math.isnan(found[0])
    with pytest.raises(pyodbc.ProgrammingError):
        cur.execute("insert into special values (?, 1)", Decimal("sNaN"))
    con.close()


TOO_LARGE = ["1" * 39, "1E+38", "-1E+40", "12." + "1" * 37, "1E-39", "NaN", "-Infinity", "sNaN"]
#: Values that the struct can hold, at its limits.
FITTING = ["9" * 38, "1E+37", "-1E-38", "0." + "1" * 38, "1." + "0" * 50, "0E-60", "0E+60", "1.50"]


def test_fast_executemany_refuses_decimals_that_do_not_fit_in_the_struct(postgres: Database) -> None:
    con = pyodbc.connect(postgres.odbc)
    cur = con.execute("create temporary table struct (n numeric)")
    con.commit()
    cur.fast_executemany = True
    for text in TOO_LARGE:
        for rows in ([(Decimal(text),)], [(Decimal("1.5"),), (None,), (Decimal(text),)]):
            with pytest.raises(pyodbc.ProgrammingError) as caught:
                cur.executemany("insert into struct values (?)", rows)
            assert caught.value.args[0] == "HY000" and "fast_executemany" in caught.value.args[1]
            con.rollback()
    assert cur.execute("select count(*) from struct").fetchval() == 0
    cur.executemany("insert into struct values (?)", [(Decimal(text),) for text in FITTING])
    assert [row.n for row in cur.execute("select n from struct")] == [Decimal(text) for text in FITTING]
    cur.fast_executemany = False
    cur.executemany("insert into struct values (?)", [(Decimal(text),) for text in TOO_LARGE[:-1]])
    assert cur.execute("select count(*) from struct").fetchval() == len(FITTING + TOO_LARGE[:-1])
    con.close()


def test_an_adapter_of_the_program_is_used_with_fast_executemany(postgres: Database) -> None:
    con = pyodbc.connect(postgres.odbc)
    cur = con.execute("create temporary table adapted (n text)")
    con.onecopy.adapters[Decimal] = lambda value: f"<{value}>"
    cur.fast_executemany = True
    cur.executemany("insert into adapted values (?)", [(Decimal("NaN"),)])
    assert cur.execute("select n from adapted").fetchval() == "<NaN>"
    con.close()


def test_the_mode_binary_refuses_decimals_of_more_than_128_bits(postgres: Database) -> None:
    con = pyodbc.connect(postgres.odbc)
    largest = 2**128 - 1
    for mode in ("text", "locale", "binary", "text"):
        con.decimal_mode = mode
        for text in (f"{largest}", f"-{largest}", f"0.{largest:040}", "1e38", "0.00"):
            assert con.execute(f"select '{text}'::numeric").fetchval() == Decimal(text)
        assert math.isnan(con.execute("select 'NaN'::numeric").fetchval())
        for text in (f"{largest + 1}", f"-{largest + 1}.5", "1e39", f"0.{largest + 1:040}"):
            cur = con.execute(f"select 1, '{text}'::numeric")
            if mode == "binary":
                with pytest.raises(pyodbc.DataError, match="does not fit") as caught:
                    cur.fetchone()
                assert caught.value.sqlstate == "22003"
            else:
                assert cur.fetchall()[0][1] == Decimal(text)
    con.decimal_mode = "binary"
    con.add_output_converter(pyodbc.SQL_NUMERIC, len)
    con.decimal_mode = "binary"
    assert con.execute("select 1e50::numeric").fetchval() == 51
    con.remove_output_converter(pyodbc.SQL_NUMERIC)
    with pytest.raises(pyodbc.DataError):
        con.execute("select 1e50::numeric").fetchval()
    con.close()
