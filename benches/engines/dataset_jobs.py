"""Reads the table of `engines/datasets.py` with Ray Data and Spark (on Sail), by onecopy's adapters and
by the ways that the documentation of the engines recommends.

python -m benches.engines.dataset_jobs ENGINE SQLITE_FILE POSTGRES_URL ROUNDS

Prints a line of JSON for each row: its name, and the seconds of both ways in each round. It is run by
the interpreter that has the engines.
"""

from __future__ import annotations

import json
import logging
import os
import sqlite3
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

N_ROWS = 1_000_000
TABLE = "dataset_rows"
SQL = f"select * from {TABLE}"
#: The parts of the data sources of Spark; Ray's have their defaults.
PARTS = 4

Way = Callable[[], int]


def measure(row: str, ours: Way, theirs: Way, rounds: int) -> None:
    """Measures both ways in turns; the first round warms up."""
    seconds = []
    for number in range(rounds + 1):
        taken = {}
        for way in (ours, theirs) if number % 2 else (theirs, ours):
            begun = time.perf_counter()
            n_rows = way()
            taken[way] = time.perf_counter() - begun
            if n_rows != N_ROWS:
                raise RuntimeError(f"{row}: {n_rows} rows of {N_ROWS}")
        if number:
            seconds.append([taken[ours], taken[theirs]])
    print(json.dumps({"row": row, "seconds": seconds}), flush=True)


def ray(file: str, url: str, rounds: int) -> None:
    """`onecopy.ray.read_sql` and `ray.data.read_sql`, each with its defaults."""
    import psycopg
    import ray as engine

    import onecopy.ray

    # The workers inherit it.
    os.environ["DATASET_URL"] = url
    engine.init(num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level="ERROR")
    engine.data.DataContext.get_current().enable_progress_bars = False
    logging.disable(logging.INFO)

    def count(dataset: Any) -> int:
        batches = dataset.iter_batches(batch_size=None, batch_format="pyarrow")
        return sum(batch.num_rows for batch in batches)

    for database, target, connect in (
        ("SQLite", f"sqlite:{file}", lambda: sqlite3.connect(file)),
        ("PostgreSQL", "env:DATASET_URL", lambda: psycopg.connect(url)),
    ):
        measure(
            f"Ray, {database}",
            lambda target=target: count(onecopy.ray.read_sql(target, SQL)),  # type: ignore[misc]
            lambda connect=connect: count(engine.data.read_sql(SQL, connect)),  # type: ignore[misc]
            rounds,
        )
    engine.shutdown()


def sail(file: str, _url: str, rounds: int) -> None:
    """`onecopy.spark` and a data source of Python that reads with pandas."""
    from pysail.spark import SparkConnectServer
    from pyspark.sql import SparkSession
    from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition

    from onecopy.spark import OnecopyDataSource

    class Reader(DataSourceReader):
        def partitions(self) -> list[InputPartition]:
            bounds = [(i * N_ROWS // PARTS, (i + 1) * N_ROWS // PARTS) for i in range(PARTS)]
            return [InputPartition(bound) for bound in bounds]

        def read(self, partition: InputPartition) -> Iterator[Any]:
            import pandas
            import pyarrow

            kinds = {"id": "int64", "name": "string", "price": "float64", "note": "string"}
            schema = pyarrow.schema(list(kinds.items()))
            con = sqlite3.connect(file, check_same_thread=False)
            sql = f"{SQL} where id >= ? and id < ?"
            for frame in pandas.read_sql(sql, con, params=partition.value, chunksize=1 << 16):
                yield pyarrow.RecordBatch.from_pandas(frame, schema=schema, preserve_index=False)

    class PandasSource(DataSource):
        @classmethod
        def name(cls) -> str:
            return "pandas_sql"

        def schema(self) -> str:
            return "id bigint, name string, price double, note string"

        def reader(self, schema: Any) -> Reader:
            return Reader()

    def total(frame: Any) -> int:
        columns = ("count(*) as n", "sum(length(name))", "sum(price)", "max(note)")
        return int(frame.selectExpr(*columns).collect()[0].n)

    server = SparkConnectServer()
    server.start()
    spark = SparkSession.builder.remote(f"sc://localhost:{server.listening_address[1]}").getOrCreate()
    for source in (OnecopyDataSource, PandasSource):
        spark.dataSource.register(source)
    options = {"database": f"sqlite:{file}", "dbtable": TABLE, "parts": str(PARTS)}
    measure(
        "Spark on Sail, SQLite",
        lambda: total(spark.read.format("onecopy").options(**options).load()),
        lambda: total(spark.read.format("pandas_sql").load()),
        rounds,
    )
    spark.stop()
    server.stop()


if __name__ == "__main__":
    {"ray": ray, "sail": sail}[sys.argv[1]](sys.argv[2], sys.argv[3], int(sys.argv[4]))
