"""Arrow results of each driver: the rows of the table `t1000`, and a value of each column type."""

from __future__ import annotations

import asyncio
import datetime
import uuid
from decimal import Decimal
from typing import Any

import polars as pl
import pyarrow as pa
import pytest

import onecopy
from tests.conftest import Database
from tests.support import table

pytestmark = pytest.mark.filterwarnings("ignore::onecopy.DriverWarning")

EXPECTED = [tuple(row) for row in table.rows(1000)]
TYPES = ["int64", "string", "string", "string", "double", "decimal128(12, 2)", "timestamp[us]", "string"]
UTC = datetime.timezone.utc


@pytest.fixture(
    params=[
        "postgres_native",
        "postgres",
        "postgres_ansi",
        "mariadb",
        "tds_freetds",
        "tds_msodbc",
        "tds_rust",
    ]
)
def database(request: pytest.FixtureRequest) -> Database:
    """A database, for each driver that returns all column types of the table `t1000` correctly."""
    found = request.getfixturevalue(request.param)
    assert isinstance(found, Database)
    return found


def rows(made: pa.Table) -> list[tuple[Any, ...]]:
    return list(zip(*(column.to_pylist() for column in made.columns), strict=True))


def test_the_table_is_read_whole_in_batches_of_any_size(database: Database) -> None:
    con = onecopy.connect(database.odbc)
    for batch_bytes in (1, 40_000, None):
        cur = con.execute("select * from t1000 order by id")
        made = pa.RecordBatchReader.from_stream(cur.arrow(batch_bytes=batch_bytes)).read_all()
        made.validate(full=True)
        assert [str(f.type) for f in made.schema] == TYPES
        assert rows(made) == EXPECTED
    con.close()


def test_polars_has_the_same_rows(database: Database) -> None:
    con = onecopy.connect(database.odbc)
    assert pl.DataFrame(con.execute("select * from t1000 order by id")).rows() == EXPECTED
    con.close()


def one_row(con: onecopy.Connection, sql: str, **types: str) -> dict[str, tuple[str, Any]]:
    """Executes a query with one row; returns each column's Arrow type and value, by column name."""
    made = pa.RecordBatchReader.from_stream(con.execute(sql).arrow(types=types)).read_all()
    made.validate(full=True)
    return {f.name: (str(f.type), made[f.name][0].as_py()) for f in made.schema}


def test_types_of_postgres(postgres: Database) -> None:
    con = onecopy.connect(postgres.odbc)
    sql = """select 1::smallint as i2, -2 as i4, 3::bigint as i8, 4000000000::oid as o,
            1.5::real as f4, 0.1::float8 as f8,
        true as b, '2020-02-29'::date as d, '10:11:12.5'::time as t, '2020-01-01 10:11:12.123'::timestamp(3) as ts3,
        '2020-01-01 10:11:12+02'::timestamptz as tz, '00112233-4455-6677-8899-aabbccddeeff'::uuid as u,
        '\\x00ff'::bytea as x, '{"a": 1}'::json as j, 12.50::numeric(10, 3) as n, 12.5::money as m, null::int as z,
        repeat('é', 20000) as long"""
    assert one_row(con, sql) == {
        "i2": ("int16", 1),
        "i4": ("int32", -2),
        "i8": ("int64", 3),
        "o": ("uint32", 4_000_000_000),
        "f4": ("float", 1.5),
        "f8": ("double", 0.1),
        "b": ("bool", True),
        "d": ("date32[day]", datetime.date(2020, 2, 29)),
        "t": ("time64[us]", datetime.time(10, 11, 12, 500_000)),
        "ts3": ("timestamp[ms]", datetime.datetime(2020, 1, 1, 10, 11, 12, 123_000)),
        "tz": ("timestamp[us, tz=UTC]", datetime.datetime(2020, 1, 1, 8, 11, 12, tzinfo=UTC)),
        "u": ("extension<arrow.uuid>", uuid.UUID("00112233-4455-6677-8899-aabbccddeeff")),
        "x": ("binary", b"\x00\xff"),
        "j": ("string", '{"a": 1}'),
        "n": ("decimal128(10, 3)", Decimal("12.500")),
        "m": ("decimal128(19, 2)", Decimal("12.50")),
        "z": ("int32", None),
        "long": ("string", "é" * 20_000),
    }
    con.close()


def test_decimals_without_digits_have_those_of_the_first_batch(postgres: Database) -> None:
    con = onecopy.connect(postgres.odbc)
    sql = "select avg(x) as a, sum(x) as s from (values (1.25), (2)) as v(x)"
    assert one_row(con, sql) == {
        "a": ("decimal128(38, 16)", Decimal("1.6250000000000000")),
        "s": ("decimal128(38, 2)", Decimal("3.25")),
    }
    assert one_row(con, "select 1e50::numeric + 0.5 as a")["a"][1] == Decimal("1" + "0" * 50 + ".5")
    sql = "select case when k < 20000 then 1.5 else 1.25 end::numeric as a from generate_series(1, 30000) as g(k)"
    with pytest.raises(
        pa.ArrowInvalid, match=r"a decimal has more digits than `decimal128\(38, 1\)` can represent.*row 19999"
    ):
        pa.RecordBatchReader.from_stream(con.execute(sql).arrow(batch_bytes=1000)).read_all()
    made = one_row(con, "select 'NaN'::numeric as a, 2.5::numeric(4, 1) as b", a="double", b="double")
    assert str(made) == "{'a': ('double', nan), 'b': ('double', 2.5)}"
    con.close()


def test_types_of_mariadb(mariadb: Database) -> None:
    con = onecopy.connect(mariadb.odbc)
    sql = """select cast(18446744073709551615 as unsigned) as u8, cast(1.5 as decimal(65, 30)) as d,
            now(6) > '2000-01-01' as b, cast('12:00:00.25' as time(2)) as t,
            cast('2020-01-01 10:11:12.5' as datetime(1)) as ts, cast('-12:00' as time) as n"""
    assert one_row(con, sql, n="string") == {
        "u8": ("uint64", 2**64 - 1),
        "d": ("decimal256(65, 30)", Decimal("1.500000000000000000000000000000")),
        "b": ("int32", 1),
        "t": ("time32[ms]", datetime.time(12, 0, 0, 250_000)),
        "ts": ("timestamp[ms]", datetime.datetime(2020, 1, 1, 10, 11, 12, 500_000)),
        "n": ("string", "-12:00:00"),
    }
    with pytest.raises(
        pa.ArrowInvalid,
        match=r"a span of time does not go into a column of `time32\[s\]` \(column 0 `n`, row 0, driver `",
    ):
        one_row(con, "select cast('-12:00' as time) as n")
    con.close()


@pytest.mark.parametrize("profile", ["tds_msodbc", "tds_freetds", "tds_rust"])
def test_types_of_sql_server(request: pytest.FixtureRequest, profile: str) -> None:
    con = onecopy.connect(request.getfixturevalue(profile).odbc)
    sql = """select cast('200' as tinyint) as i1, cast('1' as bit) as b, cast('2026-11-20' as date) as d,
        cast('2026-11-20 13:05:00.123456' as datetime2(7)) as t7, cast('1.50' as decimal(38, 10)) as n,
        N'東京 😀' as t, 0x00ff as x"""
    assert one_row(con, sql, t7="timestamp[ns]") == {
        "i1": ("uint8", 200),
        "b": ("bool", True),
        "d": ("date32[day]", datetime.date(2026, 11, 20)),
        "t7": ("timestamp[ns]", pa.scalar(1_795_179_900_123_456_000, pa.timestamp("ns")).as_py()),
        "n": ("decimal128(38, 10)", Decimal("1.5000000000")),
        "t": ("string", "東京 😀"),
        "x": ("binary", b"\x00\xff"),
    }
    con.close()


def test_a_timestamp_too_far_for_nanoseconds_is_an_error_with_a_remedy(tds_msodbc: Database) -> None:
    con = onecopy.connect(tds_msodbc.odbc)
    sql = "select cast('9999-12-31 00:00:00' as datetime2(7)) as until"
    with pytest.raises(
        pa.ArrowInvalid, match=r"a timestamp is outside of the range of `timestamp\[ns\]`.*`until`, row 0"
    ):
        one_row(con, sql)
    assert one_row(con, sql, until="timestamp[us]")["until"][1] == datetime.datetime(9999, 12, 31)
    con.close()


def test_utf_16_is_converted_once_and_utf_8_copied_once(tds_msodbc: Database, mariadb: Database) -> None:
    for odbc, stage in [
        (tds_msodbc.odbc, {"taken": 12, "converted": 12, "copied": 0, "conversions": 2}),
        (mariadb.odbc, {"taken": 10, "converted": 0, "copied": 10, "conversions": 0}),
    ]:
        con = onecopy.connect(odbc)
        prefix = "N" if odbc == tds_msodbc.odbc else ""
        with onecopy.ledger() as ledger:
            pa.table(con.execute(f"select {prefix}'abcd' as a, {prefix}'東京' as b, null as c"))
        assert ledger.stages == {"encode": stage}
        con.close()


def test_rows_without_columns_are_counted(postgres_native: Database) -> None:
    sql = "select from generate_series(1, 5000)"
    with onecopy.connect(postgres_native.odbc) as con:
        table = pa.table(con.execute(sql).arrow())
        assert (table.num_rows, table.num_columns) == (5000, 0)
        assert pl.DataFrame(con.execute(sql).arrow()).shape == (5000, 0)

    async def read() -> int:
        async with await onecopy.aio.connect(postgres_native.odbc) as con:
            rows = await (await con.execute(sql)).fetchall()
            assert rows == [()] * 5000
            read_table = await asyncio.to_thread(pa.table, await (await con.execute(sql)).arrow())
            return int(read_table.num_rows)

    assert asyncio.run(read()) == 5000
