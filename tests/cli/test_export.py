"""`onecopy export` and `onecopy verify`: files in every format, read by independent readers, and
failures that leave no file."""

from __future__ import annotations

import contextlib
import csv
import gzip
import json
import os
import resource
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.conftest import Database
from tests.copies.counting import printed_ledger
from tests.support.bson import documents

TEXT = ["json", "ndjson", "csv", "tsv", "bson"]
COLUMNS = ["arrow", "parquet"]
ENDINGS = {"none": "", "gzip": ".gz", "zstd": ".zst"}
N_ROWS = 20_000
SQL = "select id, name, price, note from item order by id"


class Done(NamedTuple):
    """The end of a command."""

    code: int
    out: bytes
    err: str


def onecopy(*arguments: object, folder: Path | None = None, **options: Any) -> Done:
    """Runs the command to its end."""
    done = subprocess.run(
        [sys.executable, "-m", "onecopy", *map(str, arguments)],
        capture_output=True,
        cwd=folder,
        timeout=120,
        check=False,
        **options,
    )
    err = done.stderr.decode()
    assert "panicked" not in err and "Traceback" not in err
    return Done(done.returncode, done.stdout, err)


def export(folder: Path, *arguments: object, sql: str = SQL, database: str = "sqlite:shop.db", **options: Any) -> Done:
    """Exports, and checks that it succeeds."""
    done = onecopy("export", database, sql, *arguments, folder=folder, **options)
    assert done.code == 0, done.err
    return done


@pytest.fixture(scope="session")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a SQLite database of many rows; tests only read it."""
    folder = tmp_path_factory.mktemp("shop")
    with contextlib.closing(sqlite3.connect(folder / "shop.db")) as con:
        con.execute("create table item (id integer primary key, name text, price double, note text)")
        notes = [None, "", 'a "quote", a comma\tand a tab', "two\r\nlines", "ΐ 🦀 \\"]
        rows = ((i, f"näme {i}", i / 8, notes[i % 5]) for i in range(N_ROWS))
        con.executemany("insert into item values (?, ?, ?, ?)", rows)
        con.commit()
    return folder


@pytest.fixture
def here(shop: Path, tmp_path: Path) -> Path:
    """An empty folder with a link to the database."""
    (tmp_path / "shop.db").symlink_to(shop / "shop.db")
    return tmp_path


def expected(shop: Path) -> list[tuple[Any, ...]]:
    with contextlib.closing(sqlite3.connect(shop / "shop.db")) as con:
        return con.execute(SQL).fetchall()


def bytes_of(path: Path) -> bytes:
    import pyarrow

    if path.suffix == ".gz":
        return gzip.decompress(path.read_bytes())
    if path.suffix == ".zst":
        with pyarrow.input_stream(path, compression="zstd") as file:
            return bytes(file.read())
    return path.read_bytes()


def rows_of(path: Path, format: str) -> list[dict[str, Any]]:
    """The rows of a file, by a reader that is not onecopy's."""
    import pyarrow
    import pyarrow.parquet

    if format == "parquet":
        rows: list[dict[str, Any]] = pyarrow.parquet.read_table(path).to_pylist()
        return rows
    if format == "arrow":
        with pyarrow.OSFile(str(path)) as file, pyarrow.ipc.open_file(file) as reader:
            for n in range(reader.num_record_batches):
                reader.get_batch(n).validate(full=True)
            rows = reader.read_all().to_pylist()
            return rows
    data = bytes_of(path)
    if format == "json":
        rows = json.loads(data)
        return rows
    if format == "ndjson":
        return [json.loads(line) for line in data.decode().splitlines()]
    if format == "bson":
        return [{name: cell.value for name, cell in row.items()} for row in documents(data)]
    text = data.decode().splitlines(keepends=True)
    return list(csv.DictReader(text, delimiter="\t" if format == "tsv" else ",", strict=True))


def same(rows: list[dict[str, Any]], shop: Path, format: str) -> bool:
    """True if the rows are those of the database."""
    found = [tuple(row.values()) for row in rows]
    if format in ("csv", "tsv"):
        # Each field is text, and `csv` reads NULL as the empty text.
        found = [(int(i), name, float(price), note) for i, name, price, note in found]
        return found == [(*row, note or "") for *row, note in expected(shop)]
    return found == expected(shop)


@pytest.mark.parametrize("compression", ENDINGS)
@pytest.mark.parametrize("format", TEXT)
def test_each_text_format_is_read_with_each_compression(here: Path, shop: Path, format: str, compression: str) -> None:
    path = here / f"item.{format}{ENDINGS[compression]}"
    export(here, "-o", path.name)
    assert same(rows_of(path, format), shop, format)
    manifest = json.loads((here / f"{path.name}.manifest.json").read_text())
    assert manifest["rows"] == N_ROWS and manifest["bytes"] == path.stat().st_size
    assert (manifest["format"], manifest["compression"]) == (format, compression)
    assert onecopy("verify", path).code == 0


@pytest.mark.parametrize("compression", ["none", "zstd"])
@pytest.mark.parametrize("format", COLUMNS)
def test_each_columnar_format_is_read_with_each_compression(
    here: Path, shop: Path, format: str, compression: str
) -> None:
    path = here / f"item.{format}"
    export(here, "-o", path, "--compression", compression)
    assert same(rows_of(path, format), shop, format)
    assert onecopy("verify", path).code == 0
    other = here / f"other.{format}"
    export(here, "-o", other, "--compression", "none" if compression == "zstd" else "zstd")
    assert (path.stat().st_size < other.stat().st_size) is (compression == "zstd")


@pytest.mark.parametrize("format", TEXT + COLUMNS)
def test_no_rows_are_a_valid_file(here: Path, format: str) -> None:
    export(here, "-o", f"none.{format}", sql="select id, name from item where 0")
    assert rows_of(here / f"none.{format}", format) == []
    assert onecopy("verify", here / f"none.{format}").code == 0


@pytest.mark.parametrize("format", TEXT + COLUMNS)
def test_stdout_gets_the_same_bytes_as_a_file_and_no_manifest(here: Path, format: str) -> None:
    export(here, "-o", f"item.{format}")
    names = set(os.listdir(here))
    assert export(here, "-o", "-", "--format", format).out == (here / f"item.{format}").read_bytes()
    assert set(os.listdir(here)) == names


def test_a_manifest_describes_its_file_and_has_no_secret(here: Path) -> None:
    sql = "select id, price from item where id = :wanted"
    export(here, "-o", "one.csv", "--param", "wanted=7", sql=sql)
    text = (here / "one.csv.manifest.json").read_text()
    manifest = json.loads(text)
    (file,) = manifest.pop("files")
    assert manifest.pop("onecopy")
    assert manifest == {
        "manifest": 1,
        "query": sql,
        "snapshot": None,
        "plan": None,
        "format": "csv",
        "compression": "none",
        "rows": 1,
        "bytes": 17,
        "columns": [
            {"name": "id", "type": "int64", "database_type": "INTEGER"},
            {"name": "price", "type": "double", "database_type": "double"},
        ],
    }
    assert (here / "one.csv").read_bytes() == b"id,price\n7,0.875\n"
    assert (file["name"], file["rows"], file["bytes"], len(file["blake3"])) == ("one.csv", 1, 17, 64)
    assert "shop.db" not in text
    export(here, "-o", "no.csv", "--no-manifest")
    assert not (here / "no.csv.manifest.json").exists()


def test_a_folder_has_parts_and_a_manifest(here: Path, shop: Path) -> None:
    export(here, "-o", "out/", "--format", "parquet")
    assert sorted(os.listdir(here / "out")) == ["manifest.json", "part-00000.parquet"]
    assert same(rows_of(here / "out" / "part-00000.parquet", "parquet"), shop, "parquet")
    refused = onecopy("export", "sqlite:shop.db", SQL, "-o", "out", "--format", "csv", folder=here)
    assert refused.code == 1 and "exists" in refused.err and "--overwrite" in refused.err
    export(here, "-o", "out", "--format", "csv", "--compression", "gzip", "--overwrite")
    assert sorted(os.listdir(here / "out")) == ["manifest.json", "part-00000.csv.gz"]
    assert onecopy("verify", here / "out").code == 0
    (here / "out" / "notes.txt").write_text("mine")
    refused = onecopy("export", "sqlite:shop.db", SQL, "-o", "out", "--format", "csv", "--overwrite", folder=here)
    assert refused.code == 1 and "notes.txt" in refused.err
    assert "notes.txt: it is not in the manifest" in onecopy("verify", here / "out").out.decode()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["-o", "x.xlsx"], "not the ending of an output format"),
        (["-o", "x"], "or give `--format`"),
        (["-o", "x.csv.bz2"], "not the ending of an output format"),
        (["-o", "x.parquet.gz"], "not compressed as a whole"),
        (["-o", "x.parquet", "--compression", "gzip"], "not compressed with gzip"),
        (["-o", "x.csv", "--format", "json"], "that of a csv file"),
        (["-o", "x.csv", "--compression", "gzip"], "that of a csv file with the compression `none`"),
        (["-o", "-"], "the format of a folder or of stdout"),
        (["-o", "out/"], "the format of a folder or of stdout"),
        (["-o", "out/", "--format", "csv", "--no-manifest"], "always has a manifest"),
        (["-o", "x.parquet", "--types", "id=int"], "not a column and an Arrow type"),
        (["-o", "x.parquet", "--types", "id"], "not a column and an Arrow type"),
    ],
)
def test_wrong_options_are_refused_before_anything_is_written(here: Path, arguments: list[str], message: str) -> None:
    done = onecopy("export", "sqlite:shop.db", SQL, *arguments, folder=here)
    assert done.code == 2 and message in done.err, done.err
    assert os.listdir(here) == ["shop.db"]


def test_a_file_that_exists_is_replaced_only_on_request(here: Path) -> None:
    export(here, "-o", "item.csv")
    before = (here / "item.csv").read_bytes()
    done = onecopy("export", "sqlite:shop.db", "select 1 as a", "-o", "item.csv", folder=here)
    assert done.code == 1 and "exists" in done.err and (here / "item.csv").read_bytes() == before
    (here / "item.csv").unlink()
    done = onecopy("export", "sqlite:shop.db", "select 1 as a", "-o", "item.csv", folder=here)
    assert done.code == 1 and "item.csv.manifest.json` exists" in done.err
    export(here, "-o", "item.csv", "--overwrite", sql="select 1 as a")
    assert (here / "item.csv").read_bytes() == b"a\n1\n"
    assert onecopy("verify", here / "item.csv").code == 0
    # Without a manifest, that of the old file does not remain.
    export(here, "-o", "item.csv", "--overwrite", "--no-manifest", sql="select 2 as a")
    assert not (here / "item.csv.manifest.json").exists()


def test_equal_column_names_are_refused_by_formats_of_objects(here: Path) -> None:
    for format in ["json", "ndjson", "bson", "parquet"]:
        done = onecopy("export", "sqlite:shop.db", "select 1 as a, 2 as a", "-o", f"x.{format}", folder=here)
        assert done.code == 1 and "`a`" in done.err, done.err
    for format in ["csv", "tsv", "arrow"]:
        export(here, "-o", f"x.{format}", sql="select 1 as a, 2 as a")


def test_a_value_that_a_format_cannot_represent_is_an_error_with_its_row(here: Path) -> None:
    sql = "select id, case id when 9000 then 9e999 else id end as n from item order by id"
    done = onecopy("export", "sqlite:shop.db", sql, "-o", "x.json", folder=here)
    assert done.code == 1 and "`n`" in done.err and "9000" in done.err
    mixed = "select case id when 19000 then 'text' else id end as n from item order by id"
    done = onecopy("export", "sqlite:shop.db", mixed, "-o", "x.parquet", folder=here)
    assert done.code == 1 and "`n`" in done.err and "types" in done.err
    assert os.listdir(here) == ["shop.db"]
    export(here, "-o", "x.parquet", "--types", "n=string", sql=mixed)
    assert rows_of(here / "x.parquet", "parquet")[19000] == {"n": "text"}


def test_a_statement_without_rows_and_a_write_are_refused(here: Path, tmp_path: Path) -> None:
    for sql in ["create table x (a)", "insert into item values (-1, '', 0, '') returning id"]:
        done = onecopy("export", "sqlite:shop.db", sql, "-o", "x.csv", folder=here)
        assert done.code in (1, 2) and os.listdir(here) == ["shop.db"], done.err


def test_progress_is_json_with_the_result_or_the_error(here: Path) -> None:
    done = export(here, "-o", "item.parquet", "--progress", "json")
    events = [json.loads(line) for line in done.err.splitlines()]
    assert [event["event"] for event in events][-1] == "done"
    assert events[-1]["rows"] == N_ROWS and events[-1]["bytes"] == (here / "item.parquet").stat().st_size
    assert events[-1]["files"] == ["item.parquet"] and events[-1]["manifest"] == "item.parquet.manifest.json"
    failed = onecopy("export", "sqlite:shop.db", "selec", "-o", "x.csv", "--progress", "json", folder=here)
    (event,) = [json.loads(line) for line in failed.err.splitlines()]
    assert event["event"] == "error" and event["exit_code"] == failed.code == 1 and "syntax" in event["message"]


ENDLESS = "with recursive c(i) as (select 1 union all select i + 1 from c) select i, 'some text' as t from c"


def started(folder: Path, *arguments: str) -> subprocess.Popen[bytes]:
    """Starts an export without an end, and waits until it has written a part of its file."""
    process = subprocess.Popen(
        [sys.executable, "-m", "onecopy", "export", "sqlite::memory:", ENDLESS, *arguments, "--progress", "json"],
        cwd=folder,
        stderr=subprocess.PIPE,
    )
    assert process.stderr is not None
    event = json.loads(process.stderr.readline())
    assert event["event"] == "progress" and event["rows"] > 0, event
    return process


@pytest.mark.parametrize("format", ["csv", "ndjson.zst", "parquet", "arrow"])
@pytest.mark.parametrize("name", ["SIGKILL", "SIGINT", "SIGTERM"])
def test_an_export_that_is_killed_leaves_no_file_of_the_name(tmp_path: Path, name: str, format: str) -> None:
    with started(tmp_path, "-o", f"x.{format}") as process:
        process.send_signal(getattr(signal, name))
        process.communicate(timeout=60)
    left = os.listdir(tmp_path)
    if name == "SIGKILL":
        assert all(file.startswith(".x.") and file.endswith(".partial") for file in left)
    else:
        assert (process.returncode, left) == (130, [])


def test_a_second_exporter_into_a_folder_is_refused_and_one_that_was_killed_is_cleaned_up(tmp_path: Path) -> None:
    def second(*arguments: str) -> Done:
        return onecopy(
            "export", "sqlite::memory:", "select 1 as a", "-o", "out/", "--format", "csv", *arguments, folder=tmp_path
        )

    with started(tmp_path, "-o", "out/", "--format", "csv") as process:
        for arguments in ([], ["--overwrite"]):
            done = second(*arguments)
            assert done.code == 1 and "another process exports into the folder" in done.err
        process.kill()
        process.communicate(timeout=60)
    (left,) = os.listdir(tmp_path / "out")
    assert left.startswith(".part-00000.csv.")
    assert second().code == 0
    assert sorted(os.listdir(tmp_path / "out")) == ["manifest.json", "part-00000.csv"]


@pytest.mark.parametrize("format", ["csv", "csv.gz", "csv.zst", "parquet", "arrow"])
def test_a_full_disk_is_an_error_that_leaves_no_file(here: Path, format: str) -> None:
    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (30_000, 30_000))

    sql = "select id, hex(randomblob(50)) as t from item"
    done = onecopy("export", "sqlite:shop.db", sql, "-o", f"x.{format}", folder=here, preexec_fn=limit)
    assert done.code == 1 and f"cannot write `x.{format}`" in done.err and "free some space" in done.err, done.err
    assert os.listdir(here) == ["shop.db"]


def test_a_folder_that_is_missing_or_read_only_is_an_error(here: Path) -> None:
    done = onecopy("export", "sqlite:shop.db", SQL, "-o", "nowhere/x.csv", folder=here)
    assert done.code == 1 and "the directory `nowhere` does not exist" in done.err
    done = onecopy("export", "sqlite:shop.db", SQL, "-o", "nowhere/out/", "--format", "csv", folder=here)
    assert done.code == 1 and "cannot create the folder" in done.err
    # Not even root may create a file here.
    done = onecopy("export", "sqlite:shop.db", SQL, "-o", "/proc/x.csv", folder=here)
    assert done.code == 1 and "`/proc/x.csv`" in done.err


def test_the_query_command_follows_the_same_endings(here: Path, shop: Path) -> None:
    for name, format in {"q.parquet": "parquet", "q.arrow": "arrow", "q.csv.gz": "csv", "q.tsv": "tsv"}.items():
        done = onecopy("query", "sqlite:shop.db", SQL, "-o", name, folder=here)
        assert done.code == 0 and same(rows_of(here / name, format), shop, format), done.err
    done = onecopy("query", "sqlite:shop.db", SQL, "-o", "q.xlsx", folder=here)
    assert done.code == 2 and ".parquet" in done.err and not (here / "q.xlsx").exists()


def damaged(path: Path) -> Iterator[tuple[str, Callable[[], object]]]:
    """Each damage to a file of an export, with a part of the line that reports it."""
    data = path.read_bytes()
    middle = len(data) // 2
    yield "the file is missing", path.unlink
    yield "BLAKE3", lambda: path.write_bytes(data[:middle] + bytes([data[middle] ^ 1]) + data[middle + 1 :])
    yield "bytes, and the manifest", lambda: path.write_bytes(data[:-1])
    yield "bytes, and the manifest", lambda: path.write_bytes(data + b"\n")


@pytest.mark.parametrize("format", [*TEXT, *COLUMNS, "csv.gz", "ndjson.zst"])
def test_verify_finds_each_damage(here: Path, format: str) -> None:
    export(
        here, "-o", "out/", "--format", format.split(".")[0], *(["--compression", "gzip"] if ".gz" in format else [])
    )
    (part,) = (path for path in (here / "out").iterdir() if path.name != "manifest.json")
    data = part.read_bytes()
    for message, damage in damaged(part):
        damage()
        done = onecopy("verify", "out", folder=here)
        assert done.code == 1 and f"{part.name}: " in done.out.decode() and message in done.out.decode()
        part.write_bytes(data)
    text = (here / "out" / "manifest.json").read_text()
    (here / "out" / "manifest.json").write_text(text.replace(f'"rows": {N_ROWS}', f'"rows": {N_ROWS - 1}'))
    done = onecopy("verify", "out", folder=here)
    assert done.code == 1 and f"it has {N_ROWS} rows, and the manifest {N_ROWS - 1}" in done.out.decode()
    (here / "out" / "manifest.json").write_text(text[:-9])
    done = onecopy("verify", "out", folder=here)
    assert done.code == 1 and "is not valid" in done.err
    (here / "out" / "manifest.json").unlink()
    done = onecopy("verify", "out", folder=here)
    assert done.code == 1 and "manifest.json" in done.err


#: SQL of PostgreSQL, with the value that pyarrow reads from Parquet and Arrow.
TYPES = {
    "true": True,
    "(-32768)::int2": -32768,
    "2147483647::int4": 2147483647,
    "(-9223372036854775808)::int8": -9223372036854775808,
    "1.5::float4": 1.5,
    "'-Infinity'::float8": float("-inf"),
    "123.45::numeric(12, 2)": Decimal("123.45"),
    "1234567890.123456789012345678901234567890::numeric(60, 30)": Decimal("1234567890.123456789012345678901234567890"),
    "0.001::numeric": Decimal("0.001"),
    "'é🦀'::text": "é🦀",
    "'x'::varchar(3)": "x",
    "'\\x00ff'::bytea": b"\x00\xff",
}


def test_values_of_postgresql_are_read_by_pyarrow(tmp_path: Path, postgres: Database) -> None:
    import datetime as dt
    import uuid

    utc = dt.timezone.utc
    types = TYPES | {
        "'0001-01-01'::date": dt.date(1, 1, 1),
        "'23:59:59.999999'::time": dt.time(23, 59, 59, 999999),
        "'12:30'::time(0)": dt.time(12, 30),
        "'2024-02-29 12:00:00.123456'::timestamp": dt.datetime(2024, 2, 29, 12, 0, 0, 123456),
        "'1969-12-31 23:59:59'::timestamp(0)": dt.datetime(1969, 12, 31, 23, 59, 59),
        "'2024-02-29 12:00+02'::timestamptz": dt.datetime(2024, 2, 29, 10, 0, tzinfo=utc),
        "'6ba7b810-9dad-11d1-80b4-00c04fd430c8'::uuid": uuid.UUID("6ba7b810-9dad-11d1-80b4-00c04fd430c8"),
    }
    if postgres.profile == "postgres_native":
        types |= {
            "array[1, null, 3]": [1, None, 3],
            "array['a', 'b']": ["a", "b"],
            "array['2024-01-01 00:00'::timestamp(0)]": [dt.datetime(2024, 1, 1)],
        }
    columns = ", ".join(f"case n when 1 then {value} end as c{i}" for i, value in enumerate(types))
    sql = f"select {columns} from generate_series(1, 2) as n order by n"
    for format in COLUMNS:
        path = tmp_path / f"x.{format}"
        export(tmp_path, "-o", path, sql=sql, database=postgres.odbc)
        first, second = rows_of(path, format)
        found = dict(zip(types, first.values(), strict=True))
        assert found == types
        assert set(second.values()) == {None}
        assert postgres.password not in (tmp_path / f"x.{format}.manifest.json").read_text()


def test_the_types_of_a_parquet_file_are_those_of_the_database(tmp_path: Path, postgres_native: Database) -> None:
    import pyarrow.parquet

    sql = (
        "select 1::int2 as a, '1'::uuid as b, now()::timestamp(0) as c, now() as d, 1.5::numeric(9, 3) as e, "
        "'10:00'::time(0) as f, current_date as g, array[now()::timestamp(0)] as h"
    ).replace("'1'::uuid", "'6ba7b810-9dad-11d1-80b4-00c04fd430c8'::uuid")
    export(tmp_path, "-o", "x.parquet", sql=sql, database=postgres_native.odbc)
    schema = pyarrow.parquet.ParquetFile(tmp_path / "x.parquet").schema
    logical = [str(schema.column(i).logical_type) for i in range(len(schema))]
    assert [name.split("(")[0] for name in logical] == [
        "Int",
        "UUID",
        "Timestamp",
        "Timestamp",
        "Decimal",
        "Time",
        "Date",
        "Timestamp",
    ]
    assert "isAdjustedToUTC=false, timeUnit=milliseconds" in logical[2]
    assert "isAdjustedToUTC=true, timeUnit=microseconds" in logical[3]


def test_a_connection_that_is_lost_is_an_error_that_leaves_no_file(tmp_path: Path, postgres_native: Database) -> None:
    last = "case when i = 500000 then pg_terminate_backend(pg_backend_pid()) end"
    sql = f"select i, {last} from generate_series(1, 1000000) i"
    for format in ["csv.gz", "parquet"]:
        done = onecopy("export", postgres_native.odbc, sql, "-o", f"x.{format}", folder=tmp_path)
        assert done.code == 1 and "terminat" in done.err, done.err
        assert postgres_native.password not in done.err
        assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("format", COLUMNS)
def test_each_text_is_copied_once_into_a_file(here: Path, shop: Path, format: str) -> None:
    done = onecopy("query", "sqlite:shop.db", SQL, "-o", f"item.{format}", "--ledger", folder=here)
    assert done.code == 0, done.err
    n_bytes = sum(len(text.encode()) for row in expected(shop) for text in (row[1], row[3]) if text is not None)
    total, _ = printed_ledger(done.err)
    assert total["converted"] + total["copied"] == n_bytes
