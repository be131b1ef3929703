"""The data source on Sail, which executes it without a JVM."""

from __future__ import annotations

import datetime
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from pysail.spark import SparkConnectServer
from pyspark.sql import SparkSession

import onecopy
from onecopy.spark import OnecopyDataSource

N_ROWS = 40_000
pytestmark = pytest.mark.filterwarnings("ignore")  # PySpark's own warnings about pandas.


@pytest.fixture(scope="module")
def spark() -> Iterator[Any]:
    server = SparkConnectServer()
    server.start()
    address = server.listening_address
    assert address is not None
    session = SparkSession.builder.remote(f"sc://localhost:{address[1]}").getOrCreate()
    session.dataSource.register(OnecopyDataSource)
    yield session
    session.stop()
    server.stop()


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The connection string of a database with the table `item` of 40,000 rows."""
    target = f"sqlite:{tmp_path_factory.mktemp('spark') / 'source.db'}"
    con = onecopy.connect(target)
    con.execute("create table item (id integer primary key, name text, price real)")
    rows = ([i, f"名{i}" if i % 10 else None, i / 4] for i in range(N_ROWS))
    con.executemany("insert into item values (?, ?, ?)", rows)
    con.commit()
    con.close()
    return target


@pytest.fixture
def written(tmp_path: Path) -> str:
    """The connection string of a database with an empty table `written`."""
    target = f"sqlite:{tmp_path / 'target.db'}"
    con = onecopy.connect(target)
    con.execute("create table written (id integer, name text, price real)")
    con.commit()
    con.close()
    return target


def _load(spark: Any, **options: str) -> Any:
    return spark.read.format("onecopy").options(**options).load()


def test_a_table_is_read_in_parts(spark: Any, source: str) -> None:
    frame = _load(spark, database=source, dbtable="item", parts="4")
    assert frame.count() == N_ROWS
    assert sorted(row.id for row in frame.select("id").collect()) == list(range(N_ROWS))


@pytest.mark.parametrize("options", [{"dbtable": "item"}, {"query": "select * from item", "key": "id"}])
def test_filters_choose_the_same_rows_in_the_database(spark: Any, source: str, options: dict[str, str]) -> None:
    frame = _load(spark, database=source, parts="3", **options)
    for filter, expected in {
        "id < 3": [0, 1, 2],
        "id in (5, 7, 50000)": [5, 7],
        "name = '名7'": [7],
        "name is null and id <= 20": [0, 10, 20],
        "not (id < 39998) and name is not null": [39998, 39999],
        "price >= 9999.5": [39998, 39999],
        "name like '名3999_'": list(range(39991, 40000)),
    }.items():
        assert sorted(row.id for row in frame.filter(filter).collect()) == expected, filter


def test_types_of_postgres(spark: Any, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHOP", request.getfixturevalue("_running").database("postgres_native").odbc)
    query = (
        "select 1::int2 a, 1.5::numeric b, 1.5::numeric(10,2) c, timestamptz '2020-01-02 03:04:05+02' d,"
        " timestamp '2020-01-02 03:04:05' e, time '03:04' f, date '2020-01-02' g, '{1,2}'::int[] h, null i, 1::oid j"
    )
    frame = _load(spark, database="env:SHOP", query=query, key="a")
    row = frame.filter("d > timestamp '2020-01-01 00:00:00' and g = date '2020-01-02' and c = 1.5").collect()[0]
    assert (row.a, row.b, row.c) == (1, Decimal("1.5"), Decimal("1.5"))
    assert row.e == datetime.datetime(2020, 1, 2, 3, 4, 5) and row.g == datetime.date(2020, 1, 2)
    assert (row.f[:8], row.h, row.i, row.j) == ("03:04:00", [1, 2], None, 1)


def test_rows_are_appended_and_replaced(spark: Any, source: str, written: str) -> None:
    frame = _load(spark, database=source, dbtable="item", parts="4")
    for mode, expected in (("append", N_ROWS), ("append", 2 * N_ROWS), ("overwrite", N_ROWS)):
        frame.write.format("onecopy").options(database=written, dbtable="written").mode(mode).save()
        query = "select count(*), count(distinct id), count(name) from written"
        assert onecopy.connect(written).execute(query).fetchone() == (expected, N_ROWS, expected - expected // 10)


def test_a_job_of_a_killed_server_is_repeated_without_duplicates(source: str, written: str, tmp_path: Path) -> None:
    marker = tmp_path / "killed"
    command = [sys.executable, "-W", "ignore", "-m", "tests.engines.sail_job", source, written, "copy-1", str(marker)]
    root = Path(__file__).resolve().parents[2]
    codes = [subprocess.run(command, cwd=root, env=dict(os.environ), check=False).returncode for _ in range(3)]
    # The second run completes the job, the third one finds it committed.
    assert codes == [-signal.SIGKILL, 0, 0]
    query = "select count(*), count(distinct id) from written"
    assert onecopy.connect(written).execute(query).fetchone() == (N_ROWS, N_ROWS)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"database": "postgresql://ann:s3cr3t@db/shop", "dbtable": "t"}, "env:NAME"),
        ({"dbtable": "t"}, "`database` is missing"),
        ({"database": "sqlite::memory:"}, "exactly one of the options"),
        ({"database": "sqlite::memory:", "dbtable": "t", "part": "3"}, "unknown option: `part`"),
        ({"database": "sqlite::memory:", "dbtable": "t", "parts": "x"}, "positive integer"),
        ({"database": "env:NOT_SET", "dbtable": "t"}, "on each worker"),
    ],
)
def test_wrong_options_are_refused(options: dict[str, str], words: str) -> None:
    with pytest.raises(onecopy.Error, match=words) as caught:
        OnecopyDataSource(options).schema()
    assert "s3cr3t" not in str(caught.value)


def test_a_schema_is_converted_by_the_function_of_spark_4_0(monkeypatch: pytest.MonkeyPatch) -> None:
    from pyspark.sql.pandas import types
    from pyspark.sql.types import LongType, StructField, StructType, TimestampType

    from onecopy import spark

    schema = StructType([StructField("id", LongType()), StructField("at", TimestampType())])
    expected = spark._arrow_schema(schema)
    convert = types.to_arrow_schema

    def of_4_0(schema: Any, error_on_duplicated_field_names_in_struct: bool = False, timestamp_utc: bool = True) -> Any:
        return convert(schema, timezone="UTC" if timestamp_utc else None)

    monkeypatch.setattr(types, "to_arrow_schema", of_4_0)
    assert spark._arrow_schema(schema) == expected
