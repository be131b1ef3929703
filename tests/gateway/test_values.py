"""The values of a table are the same bytes from Python, from the command and over HTTP, for each
driver and locale."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import Database
from tests.support import table, values
from tests.support.gateway import Start

ROOT = Path(__file__).resolve().parents[2]
PROFILES = list(values.VALUES)
LOCALES = ["C", "C.UTF-8"]
FORMS = {"json": values.as_json, "ndjson": values.as_ndjson, "csv": values.as_csv}


@pytest.fixture(params=PROFILES)
def database(request: pytest.FixtureRequest) -> Database:
    """A database for each ODBC driver."""
    found: Database = request.getfixturevalue(request.param)
    return found


@pytest.fixture(params=LOCALES, autouse=True)
def locale(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Sets the locale of the processes that a test starts."""
    for name in [name for name in os.environ if name.startswith(("LC_", "LANG"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("LC_ALL", request.param)
    return str(request.param)


FROM_PYTHON = """
import sys, warnings, onecopy
from tests.support import values
warnings.simplefilter("ignore", onecopy.DriverWarning)
of = values.VALUES[sys.argv[1]]
con = onecopy.connect(sys.argv[2])
(row,) = con.execute(values.select(of)).fetchall()
assert values.differences(row, of) == [], ascii(values.differences(row, of))
(row,) = iter(con.execute(values.select(of)))
assert values.differences(row, of) == [], ascii(values.differences(row, of))
for form, expected in (("json", values.as_json), ("ndjson", values.as_ndjson), ("csv", values.as_csv)):
    got = getattr(con.execute(values.select(of)), form)().read()
    assert got == expected(of).encode("utf-8"), (form, got)
"""


def test_every_type_from_python(database: Database) -> None:
    done = subprocess.run(
        [sys.executable, "-c", FROM_PYTHON, database.profile, database.odbc],
        env=os.environ | {"PYTHONUTF8": "0", "PYTHONPATH": str(ROOT)},
        cwd=ROOT, capture_output=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr.decode("utf-8", "replace")


def test_every_type_from_the_command(database: Database, command: str) -> None:
    of = values.VALUES[database.profile]
    for form, expected in FORMS.items():
        done = subprocess.run(
            [command, "query", "--quiet", database.odbc, values.select(of), "--format", form],
            capture_output=True, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr.decode()
        assert done.stdout.decode("utf-8") == expected(of)


def test_every_type_over_http(database: Database, serve: Start) -> None:
    of = values.VALUES[database.profile]
    sql = json.dumps(values.select(of), ensure_ascii=False)  # A JSON string is a valid TOML string.
    with serve(database, f"[queries.values]\nsql = {sql}\n") as gateway:
        for form, expected in FORMS.items():
            status, body = gateway.get(f"/values.{form}")
            assert (status, body.decode("utf-8")) == (200, expected(of))


def _row_of_sqlite(row: table.Row) -> dict[str, object]:
    """The values of a row as SQLite stores them, with doubles as SQLite's ODBC driver returns
    them."""
    price, amount = float(f"{row.price:.15g}"), float(row.amount)
    return {**row._asdict(), "price": price, "amount": amount, "created": str(row.created)}


def test_the_table_through_sqlites_odbc_driver(sqlite_odbc: Database, serve: Start, command: str) -> None:
    sql = "select * from t1000 order by id"
    expected = [_row_of_sqlite(row) for row in table.rows(1000)]
    script = (
        "import sys, json, warnings, onecopy\n"
        "with warnings.catch_warnings(record=True) as caught:\n"
        "    warnings.simplefilter('always')\n"
        "    con = onecopy.connect(sys.argv[1])\n"
        "assert any(w.category is onecopy.DriverWarning and 'sqlite:' in str(w.message) for w in caught), caught\n"
        "print(json.dumps(con.execute(sys.argv[2]).fetchall()))\n"
    )
    from_python = subprocess.run(
        [sys.executable, "-c", script, sqlite_odbc.odbc, sql], capture_output=True, text=True, check=True
    )
    assert [dict(zip(table.COLUMNS, row, strict=True)) for row in json.loads(from_python.stdout)] == expected
    done = subprocess.run(
        [command, "query", sqlite_odbc.odbc, sql, "--format", "ndjson"],
        capture_output=True,
        encoding="utf-8",
        check=True,
    )
    assert [json.loads(line) for line in done.stdout.splitlines()] == expected
    assert "sqlite:" in done.stderr
    with serve(sqlite_odbc, f'[queries.all]\nsql = "{sql}"\n') as gateway:
        status, body = gateway.get("/all.ndjson")
    assert (status, body.decode("utf-8")) == (200, done.stdout)
