"""Writes the table of `engines/export.py` to a file, as the documentation of each library
recommends: `python -m benches.engines.export_peers WAY TARGET OUT`."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Any

TABLE = "export_rows"
#: The rows of a row group, for all libraries: DuckDB's default.
GROUP_ROWS = 122_880


def duckdb(target: str, out: str, options: str) -> None:
    """`COPY … TO` over the scanner of the database."""
    import duckdb as library

    kind = "sqlite" if target.startswith("sqlite:") else "postgres"
    package = importlib.import_module(f"duckdb_extension_{kind}_scanner")
    (extension,) = Path(str(package.__file__)).parent.rglob("*.duckdb_extension")
    con = library.connect()
    con.execute(f"load '{extension}'")
    con.execute(f"attach '{target.removeprefix('sqlite:')}' as source (type {kind}, read_only)")
    con.execute(f"copy (select * from source.{TABLE}) to '{out}' ({options})")


def adbc(target: str, out: str) -> None:
    """Arrow batches of the ADBC driver, written by pyarrow as they arrive."""
    import pyarrow.parquet as parquet

    kind = "sqlite" if target.startswith("sqlite:") else "postgresql"
    dbapi: Any = importlib.import_module(f"adbc_driver_{kind}.dbapi")
    with dbapi.connect(target.removeprefix("sqlite:")) as con, con.cursor() as cur:
        cur.execute(f"select * from {TABLE}")
        reader = cur.fetch_record_batch()
        with parquet.ParquetWriter(out, reader.schema, compression="zstd") as writer:
            for batch in reader:
                writer.write_batch(batch, row_group_size=GROUP_ROWS)


WAYS = {
    "duckdb csv": lambda target, out: duckdb(target, out, "format csv, header"),
    "duckdb parquet": lambda target, out: duckdb(target, out, "format parquet, compression zstd"),
    "adbc parquet": adbc,
}

if __name__ == "__main__":
    WAYS[sys.argv[1]](sys.argv[2], sys.argv[3])
