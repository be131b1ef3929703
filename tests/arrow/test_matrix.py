"""The Arrow value of each type of each database, compared with docs/reference/values.md."""

from __future__ import annotations

import datetime
import re
import struct
import uuid
from typing import Any

import pyarrow as pa
import pytest

import onecopy
from tests.conftest import Database
from tests.support import matrix
from tests.support.matrix import Type
from tests.support.values import Value

pytestmark = pytest.mark.filterwarnings("ignore::onecopy.DriverWarning")

NULL = Value("null", None, "null")


def column(con: onecopy.Connection, sql: str, **types: str) -> tuple[str, Any]:
    """The Arrow type of the only column, in the notation of docs/reference/values.md, and its only
    value."""
    made = pa.RecordBatchReader.from_stream(con.execute(sql).arrow(types=types)).read_all()
    made.validate(full=True)
    (field,) = made.schema
    name = re.sub("^extension<(.*)>$", r"\1", str(field.type).replace("[day]", "").replace("item: ", ""))
    # As nanoseconds, since their `as_py` requires pandas.
    value = made.column(0)[0]
    if value.is_valid and name.endswith(("[ns]", "[ns, tz=UTC]")):
        assert value.value % 1000 == 0
        value = value.cast(re.sub("ns", "us", name) if "tz" not in name else pa.timestamp("us", "UTC"))
    return name, value.as_py()


def check(con: onecopy.Connection, sql: str, row: Type, value: Value) -> None:
    """Checks that the Arrow type and value of a one-row query are those that the page documents."""
    names = re.findall("`([^`]+)`", row.arrow)
    is_span = isinstance(value.python, datetime.timedelta)
    if is_span and "an error" in row.arrow:
        with pytest.raises(pa.ArrowInvalid, match="span of time"):
            column(con, sql)
        assert column(con, sql, x="string") == ("string", value.json.strip('"'))
        return
    name, got = column(con, sql)
    assert name in names or name.split("(")[0] in names, (name, row.arrow)
    expected = value.python
    if name == "float" and expected is not None:
        (expected,) = struct.unpack("f", struct.pack("f", expected))
    elif name == "string" and expected is not None and not isinstance(expected, str):
        expected = value.json.strip('"')
    assert got == expected
    assert type(got) is type(expected) or isinstance(got, uuid.UUID)
    if isinstance(got, datetime.datetime):
        assert (got.utcoffset() is None) == (expected.utcoffset() is None)


@pytest.mark.parametrize("profile", ["postgres_native", "postgres", "postgres_ansi"])
@pytest.mark.parametrize("row", matrix.POSTGRES, ids=lambda row: row.sql)
def test_each_type_of_postgresql(request: pytest.FixtureRequest, profile: str, row: Type) -> None:
    con = onecopy.connect(request.getfixturevalue(profile).odbc)
    row = matrix.of_postgres(profile, row)
    for value in (*row.values, NULL):
        check(con, f"select cast({value.sql} as {row.sql}) as x", row, value)
    con.close()


@pytest.mark.parametrize("row", matrix.MARIADB, ids=lambda row: row.sql)
def test_each_type_of_mariadb(mariadb: Database, row: Type) -> None:
    con = onecopy.connect(mariadb.odbc)
    con.execute(f"create temporary table matrix (i int, x {row.sql} null)")
    for i, value in enumerate((*row.values, NULL)):
        con.execute(f"insert into matrix values ({i}, {value.sql})")
        check(con, f"select x from matrix where i = {i}", row, value)
    con.close()


@pytest.mark.parametrize("profile", ["tds_freetds", "tds_msodbc", "tds_rust"])
@pytest.mark.parametrize("row", matrix.SQL_SERVER, ids=lambda row: row.sql)
def test_each_type_of_sql_server(request: pytest.FixtureRequest, profile: str, row: Type) -> None:
    con = onecopy.connect(request.getfixturevalue(profile).odbc)
    for value in row.values:
        check(con, f"select {value.sql} as x", row, value)
    con.close()


@pytest.mark.parametrize("row", matrix.SQLITE, ids=lambda row: row.sql)
def test_each_storage_class_of_sqlite(con: onecopy.Connection, row: Type) -> None:
    for value in row.values:
        check(con, f"select {value.sql} as x", row, value)
