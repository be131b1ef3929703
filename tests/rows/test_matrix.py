"""The value of each type of each database in Python, JSON, CSV and BSON, compared with
docs/reference/values.md."""

from __future__ import annotations

import datetime
import decimal
import pathlib
import uuid
from collections.abc import Iterator
from typing import Any

import bson
import pytest
from bson.binary import UuidRepresentation
from bson.codec_options import CodecOptions

import onecopy
from tests.conftest import Database
from tests.support import matrix
from tests.support.bson import documents, of_pymongo, of_value
from tests.support.matrix import Refused, Type
from tests.support.values import Value

pytestmark = pytest.mark.filterwarnings("ignore::onecopy.DriverWarning")

DOCUMENT = pathlib.Path(__file__).parents[2] / "docs" / "reference" / "values.md"
NAMES = {"datetime": datetime, "decimal": decimal, "uuid": uuid}


def id_of(value: object) -> str:
    return value.sql if isinstance(value, Type) else f"{value.sql} {value.value}" if isinstance(value, Refused) else ""


def check(con: onecopy.Connection, sql: str, value: Value) -> None:
    """Checks the value of a query with one row and one column ``x`` in Python, JSON, NDJSON, CSV
    and BSON."""
    cur = con.execute(sql)
    ((got,),) = cur.fetchall()
    expected = value.python
    assert type(got) is type(expected)
    # `repr` distinguishes -0.0 from 0.0, and shows a decimal's digits.
    assert (repr(got), got) == (repr(expected), expected)
    if isinstance(expected, datetime.datetime):
        assert got.utcoffset() == expected.utcoffset()
    assert con.execute(sql).json().read() == f'[{{"x":{value.json}}}]'.encode()
    assert con.execute(sql).ndjson().read() == f'{{"x":{value.json}}}\n'.encode()
    assert con.execute(sql).csv().read() == f"x\n{value.in_csv()}\n".encode()
    check_bson(con, sql, value)


UUIDS: CodecOptions[dict[str, Any]] = CodecOptions(uuid_representation=UuidRepresentation.STANDARD)


def check_bson(con: onecopy.Connection, sql: str, value: Value) -> None:
    """Checks the BSON of a one-row query with the reference reader and with pymongo.

    The value as text, with `decimals="text"` and `datetimes="text"`, is checked too.
    """
    expected = of_value(value)
    if expected is None:
        with pytest.raises(onecopy.DataError, match="34 digits") as caught:
            con.execute(sql).bson().read()
        assert (caught.value.column, caught.value.row) == ((0, "x"), 0)
    else:
        data = con.execute(sql).bson().read()
        ((got,),) = (row.values() for row in documents(data))
        assert (repr(got), got) == (repr(expected), expected)
        theirs = bson.decode(data, UUIDS)["x"]
        assert (theirs.to_decimal() if isinstance(theirs, bson.Decimal128) else theirs) == of_pymongo(expected)
    as_text = con.execute(sql).bson(decimals="text", datetimes="text").read()
    ((text,),) = (row.values() for row in documents(as_text))
    if expected is None or expected.type in ("decimal128", "datetime"):
        assert text == ("string", value.json.strip('"'))
    else:
        assert text == expected


def of_type(row: Type) -> Iterator[Value]:
    """The example values of a type; checks that the page names the class and the BSON type of
    each."""
    words = row.python.replace(",", " ").replace(";", " ").replace(":", " ").split()
    for value in row.values:
        name = type(value.python).__name__
        if value.python is not None:
            assert any(word == name or word.endswith(f".{name}") for word in words), row.python
            in_bson = of_value(value)
            assert (in_bson.type if in_bson else "an error") in row.bson, row.bson
        yield value


@pytest.fixture(params=["postgres_native", "postgres", "postgres_ansi"])
def of_postgres(request: pytest.FixtureRequest) -> Iterator[onecopy.Connection]:
    con = onecopy.connect(request.getfixturevalue(request.param).odbc)
    yield con
    con.close()


@pytest.mark.parametrize("row", matrix.POSTGRES, ids=id_of)
def test_each_type_of_postgresql(of_postgres: onecopy.Connection, row: Type) -> None:
    row = matrix.of_postgres("postgres_native" if of_postgres.driver_name == "onecopy" else "postgres", row)
    for value in of_type(row):
        check(of_postgres, f"select cast({value.sql} as {row.sql}) as x", value)
    check(of_postgres, f"select cast(null as {row.sql}) as x", Value("null", None, "null"))


@pytest.mark.parametrize("refused", matrix.POSTGRES_REFUSED, ids=id_of)
def test_values_of_postgresql_without_a_python_form_are_refused(
    of_postgres: onecopy.Connection, refused: Refused
) -> None:
    sql = f"select cast({refused.value} as {refused.sql}) as x"
    with pytest.raises(onecopy.DataError) as caught:
        of_postgres.execute(sql).fetchall()
    assert refused.words in str(caught.value)
    assert (caught.value.column, caught.value.row) == ((0, "x"), 0)
    for form in ("json", "bson"):
        stream = getattr(of_postgres.execute(sql), form)()
        if refused.json is None:
            with pytest.raises(onecopy.DataError):
                stream.read()
        elif form == "json":
            assert stream.read() == f'[{{"x":{refused.json}}}]'.encode()
        else:
            assert documents(stream.read()) == [{"x": ("string", refused.json.strip('"'))}]
    # The remedy in the message.
    ((text,),) = of_postgres.execute(f"select cast(cast({refused.value} as {refused.sql}) as text)").fetchall()
    assert isinstance(text, str)


@pytest.fixture
def of_mariadb(mariadb: Database) -> Iterator[onecopy.Connection]:
    con = onecopy.connect(mariadb.odbc)
    con.execute("set session sql_mode = 'ALLOW_INVALID_DATES'")
    yield con
    con.close()


def in_table(con: onecopy.Connection, sql_type: str, values: list[str]) -> list[str]:
    """Stores the values in a column of the given type; returns a query for each value."""
    con.execute("drop temporary table if exists matrix")
    con.execute(f"create temporary table matrix (i int, x {sql_type} null)")
    for i, value in enumerate(values):
        con.execute(f"insert into matrix values ({i}, {value})")
    return [f"select x from matrix where i = {i}" for i in range(len(values))]


@pytest.mark.parametrize("row", matrix.MARIADB, ids=id_of)
def test_each_type_of_mariadb(of_mariadb: onecopy.Connection, row: Type) -> None:
    values = [*of_type(row), Value("null", None, "null")]
    queries = in_table(of_mariadb, row.sql, [value.sql for value in values])
    for sql, value in zip(queries, values, strict=True):
        check(of_mariadb, sql, value)


@pytest.mark.parametrize("refused", matrix.MARIADB_REFUSED, ids=id_of)
def test_values_of_mariadb_without_a_python_form_are_refused(of_mariadb: onecopy.Connection, refused: Refused) -> None:
    (sql,) = in_table(of_mariadb, refused.sql, [refused.value])
    with pytest.raises(onecopy.DataError, match=refused.words):
        of_mariadb.execute(sql).fetchall()
    for form in ("json", "csv", "bson"):
        with pytest.raises(onecopy.DataError):
            getattr(of_mariadb.execute(sql), form)().read()


ZEROS = {"date": ("0000-00-00", "2026-00-00"), "datetime(3)": ("0000-00-00 00:00:00.000", "2026-00-01 01:02:03.500")}


@pytest.mark.parametrize("sql_type", list(ZEROS))
@pytest.mark.parametrize("zero_dates", ["null", "error", "text"])
def test_zero_dates_follow_the_option_of_the_connection(mariadb: Database, sql_type: str, zero_dates: Any) -> None:
    con = onecopy.connect(mariadb.odbc, zero_dates=zero_dates)
    con.execute("set session sql_mode = 'ALLOW_INVALID_DATES'")
    whole = "2026-11-20" if sql_type == "date" else "2026-11-20 01:02:03.004"
    zero, partial, good = in_table(con, sql_type, [f"'{text}'" for text in (*ZEROS[sql_type], whole)])
    moment = datetime.datetime.fromisoformat(whole)
    assert con.execute(good).fetchone() == (moment.date() if sql_type == "date" else moment,)
    if zero_dates == "null":
        assert con.execute(zero).fetchone() == (None,)
    if zero_dates == "text":
        assert [con.execute(sql).fetchone() for sql in (zero, partial)] == [(text,) for text in ZEROS[sql_type]]
        assert con.execute(zero).json().read() == f'[{{"x":"{ZEROS[sql_type][0]}"}}]'.encode()
    for sql in [] if zero_dates == "text" else [partial] if zero_dates == "null" else [zero, partial]:
        with pytest.raises(onecopy.DataError):
            con.execute(sql).fetchone()
        with pytest.raises(onecopy.DataError):
            con.execute(sql).csv().read()
    con.close()


def test_an_unknown_value_of_the_option_for_zero_dates_is_refused() -> None:
    with pytest.raises(ValueError, match="zero_dates"):
        onecopy.connect("sqlite::memory:", zero_dates="none")  # type: ignore[arg-type]


@pytest.mark.parametrize("profile", ["tds_freetds", "tds_msodbc", "tds_rust"])
@pytest.mark.parametrize("row", matrix.SQL_SERVER, ids=id_of)
def test_each_type_of_sql_server(request: pytest.FixtureRequest, profile: str, row: Type) -> None:
    con = onecopy.connect(request.getfixturevalue(profile).odbc)
    for value in of_type(row):
        check(con, f"select {value.sql} as x", value)
    con.close()


@pytest.mark.parametrize("row", matrix.SQLITE, ids=id_of)
def test_each_storage_class_of_sqlite(con: onecopy.Connection, row: Type) -> None:
    for value in of_type(row):
        check(con, f"select {value.sql} as x", value)


@pytest.mark.parametrize("name", list(matrix.PAGE))
def test_the_page_lists_the_tested_values(name: str) -> None:
    page = DOCUMENT.read_text(encoding="utf-8")
    section = page.split(f"\n## {name}\n", 1)[1].split("\n## ", 1)[0]
    for line in matrix.table(matrix.PAGE[name]).splitlines():
        assert line in section.splitlines(), f"values.md has no row\n{line}"
    rows = [row for row in section.splitlines() if row.startswith("| `")]
    assert len(rows) == len(matrix.PAGE[name]), "values.md has rows that nothing tests"


def test_an_interval_is_a_parameter_if_the_database_has_intervals(request: pytest.FixtureRequest) -> None:
    spans = [datetime.timedelta(0, 1, 500), -datetime.timedelta(hours=30), datetime.timedelta(0)]
    for profile, sql in [
        ("postgres_native", "select cast(? as interval)"),
        ("postgres", "select cast(? as interval)"),
        ("mariadb", "select cast(? as time(6))"),
    ]:
        con = onecopy.connect(request.getfixturevalue(profile).odbc)
        for span in spans:
            ((got,),) = con.execute(sql, [span]).fetchall()
            if isinstance(got, datetime.time):
                got = datetime.datetime.combine(datetime.date.min, got) - datetime.datetime.min
            assert got == span
        con.close()


def test_sqlite_has_no_interval_parameters(con: onecopy.Connection) -> None:
    with pytest.raises(TypeError, match="parameter 1 is a `timedelta`"):
        con.execute("select ?", [datetime.timedelta(1)])
