"""Copies a table with Sail; a test runs it as a process that may be killed in the middle.

python -m tests.engines.sail_job SOURCE TARGET JOB [MARKER]   kills itself, unless MARKER exists
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pysail.spark import SparkConnectServer
from pyspark.sql import SparkSession

from onecopy import spark as onecopy_spark
from onecopy._engine import _reading

N_ROWS = 40_000


def _killing(batches: Any, marker: Path) -> Any:
    def read(*arguments: Any, **options: Any) -> Iterator[Any]:
        for number, batch in enumerate(batches(*arguments, **options)):
            if number == 2 and not marker.exists():
                marker.touch()
                os.kill(os.getpid(), signal.SIGKILL)
            yield batch

    return read


def main(source: str, target: str, job: str, marker: str = "") -> None:
    """Copies `item` to `written`."""
    if marker:
        _reading.batches = _killing(_reading.batches, Path(marker))
    server = SparkConnectServer()
    server.start()
    address = server.listening_address
    assert address is not None
    spark = SparkSession.builder.remote(f"sc://localhost:{address[1]}").getOrCreate()
    spark.dataSource.register(onecopy_spark.OnecopyDataSource)
    options = {"database": source, "dbtable": "item", "parts": "2", "batch_bytes": "65536"}
    rows = spark.read.format("onecopy").options(**options).load()
    write = rows.write.format("onecopy").options(database=target, dbtable="written", job=job)
    write.mode("append").save()
    spark.stop()
    server.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
