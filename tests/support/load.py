"""Loads the test table ``t`` into databases, in several sizes."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.support.table import COLUMNS, REPEATED, STORED, VERSION, rows

_TYPES = {
    "postgres": (
        "bigint primary key, varchar(40), varchar(24), text, double precision, numeric(12,2), timestamp(6), varchar(20)"
    ),
    "mariadb": "bigint primary key, varchar(40), varchar(24), text, double, decimal(12,2), datetime(6), varchar(20)",
    # SQLite has no decimal and no timestamp type: REAL and TEXT, as is usual.
    "sqlite": "integer primary key, text, text, text, real, real, text, text",
}


def ensure(server: str, known: dict[str, Any], sizes: list[int]) -> None:
    """Loads the table ``t`` into a running server, once for each number of rows in ``sizes``.

    Tables that are already loaded are left unchanged. The table of 4,000,000 rows is a view.

    ``known`` is the server's entry in the state file, which records the loaded tables.
    """
    if server == "tds":
        return  # The TDS responder generates any number of rows.
    if known.get("version") != VERSION:
        known["version"], known["loaded"] = VERSION, []
    loaded = known.setdefault("loaded", [])
    wanted = sorted({min(size, STORED[-1]) for size in sizes} | set(sizes))
    for size in wanted:
        if size in loaded:
            continue
        if size not in (*STORED, REPEATED):
            raise ValueError(f"no table of {size} rows; there are {[*STORED, REPEATED]}")
        _LOADERS[server](known, size)
        loaded.append(size)


def create(server: str, table: str) -> str:
    """The CREATE TABLE statement of ``table``, which has the columns of ``t``."""
    columns = ", ".join(f"{name} {kind}" for name, kind in zip(COLUMNS, _split(_TYPES[server]), strict=True))
    return f"create table {table} ({columns})"


def _split(types: str) -> list[str]:
    """Splits a list of column types at its commas, except those inside parentheses."""
    return types.replace("(12,2)", "(12;2)").replace(", ", "\n").replace(";", ",").split("\n")


def _view(server: str) -> str:
    repeat = {
        "postgres": "generate_series(0, 9) as r(k)",
        "mariadb": "(select seq as k from seq_0_to_9) r",
        "sqlite": "(values (0),(1),(2),(3),(4),(5),(6),(7),(8),(9)) r",
    }[server]
    k = "r.column1" if server == "sqlite" else "r.k"
    rest = ", ".join(COLUMNS[1:])
    ids = f"t.id + {k} * {STORED[-1]} as id"
    return f"create view t{REPEATED} as select {ids}, {rest} from {repeat} cross join t{STORED[-1]} t"


def _tsv(size: int) -> Iterator[str]:
    """The first ``size`` rows of ``t`` in the text format of COPY and LOAD DATA.

    Fields are separated by tabs, NULL is `\\N`, and a backslash precedes special characters.
    """
    for row in rows(size):
        cells = ("\\N" if cell is None else str(cell).replace("\\", "\\\\") for cell in row)
        yield "\t".join(cells) + "\n"


def _tsv_file(size: int) -> Path:
    with tempfile.NamedTemporaryFile("w", suffix=".tsv", delete=False, encoding="utf-8") as file:
        file.writelines(_tsv(size))
    return Path(file.name)


def _run(command: list[str], password: dict[str, str], text: str) -> None:
    done = subprocess.run(
        command, input=text, text=True, capture_output=True, env=os.environ | password, check=False, encoding="utf-8"
    )
    if done.returncode != 0:
        raise RuntimeError(f"`{command[0]}` could not load the table:\n{done.stderr}")


def _load_postgres(known: dict[str, Any], size: int) -> None:
    from tests.support.servers import PASSWORD, USER

    command = ["psql", "-X", "-q", "-v", "ON_ERROR_STOP=1", "-h", "127.0.0.1", "-p", str(known["port"]), "-U", USER]
    command += ["postgres"]
    if size == REPEATED:
        _run(command, {"PGPASSWORD": PASSWORD}, f"drop view if exists t{size}; {_view('postgres')};")
        return
    path = _tsv_file(size)
    try:
        text = f"drop table if exists t{size} cascade;\n{create('postgres', f't{size}')};\n"
        text += f"\\copy t{size} from '{path}'\nanalyze t{size};\nvacuum t{size};\n"
        _run(command, {"PGPASSWORD": PASSWORD, "PGCLIENTENCODING": "UTF8"}, text)
    finally:
        path.unlink()


def _load_mariadb(known: dict[str, Any], size: int) -> None:
    from tests.support.servers import DATABASE, PASSWORD, USER

    command = ["mariadb", "--no-defaults", "-h", "127.0.0.1", "-P", str(known["port"]), "-u", USER, "--local-infile=1"]
    command += ["--default-character-set=utf8mb4", DATABASE]
    if size == REPEATED:
        _run(command, {"MYSQL_PWD": PASSWORD}, f"create or replace {_view('mariadb').removeprefix('create ')};")
        return
    path = _tsv_file(size)
    try:
        text = f"drop table if exists t{size};\n{create('mariadb', f't{size}')} character set utf8mb4;\n"
        text += f"load data local infile '{path}' into table t{size} character set utf8mb4;\nanalyze table t{size};\n"
        _run(command, {"MYSQL_PWD": PASSWORD}, text)
    finally:
        path.unlink()


def _load_sqlite(known: dict[str, Any], size: int) -> None:
    with sqlite3.connect(known["file"]) as connection:
        if size == REPEATED:
            connection.execute(f"drop view if exists t{size}")
            connection.execute(_view("sqlite"))
            return
        connection.execute(f"drop table if exists t{size}")
        connection.execute(create("sqlite", f"t{size}"))
        places = ",".join("?" * len(COLUMNS))
        connection.executemany(
            f"insert into t{size} values ({places})",
            (
                row._replace(amount=float(row.amount), created=str(row.created))  # type: ignore[arg-type]
                for row in rows(size)
            ),
        )
    connection.close()


_LOADERS = {"postgres": _load_postgres, "mariadb": _load_mariadb, "sqlite": _load_sqlite}
