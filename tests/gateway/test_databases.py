"""`onecopy serve` and `onecopy query` with real databases: values, the guard against writes, time
limits, and no passwords in outputs.

Tests that need no database server are in crates/gateway/tests and crates/cli/tests, with SQLite.
"""

from __future__ import annotations

import http.client
import json
import subprocess
import time
from decimal import Decimal
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from tests.conftest import Database
from tests.support import table
from tests.support.gateway import Start

#: A statement that waits a minute, for each database that has one.
WAIT = {"postgres_native": "select pg_sleep(60)", "postgres": "select pg_sleep(60)", "mariadb": "select sleep(60)"}
#: A query for the number of such statements that are running.
WAITING = {
    "postgres_native": "select count(*) as n from pg_stat_activity where wait_event = 'PgSleep'",
    "postgres": "select count(*) as n from pg_stat_activity where wait_event = 'PgSleep'",
    "mariadb": "select count(*) as n from information_schema.processlist where state = 'User sleep'",
}


def _expect(row: table.Row, got: dict[str, Any]) -> None:
    for column in ("id", "name", "city", "note", "tag"):
        assert got[column] == getattr(row, column), (row.id, column)
    assert Decimal(got["amount"]) == row.amount, row.id
    assert float(got["price"]) == row.price, row.id
    created = row.created.isoformat(timespec="microseconds")
    assert got["created"].replace(" ", "T").ljust(26, "0") == created.ljust(26, "0"), row.id


def _rows(text: str) -> list[dict[str, Any]]:
    # Decimals are JSON numbers with all their digits, not converted through float.
    return [json.loads(line, parse_float=Decimal) for line in text.splitlines()]


@pytest.mark.parametrize(
    "profile",
    [
        "postgres_native",
        "postgres",
        "postgres_ansi",
        "mariadb",
        "tds_freetds",
        "tds_msodbc",
        "tds_rust",
    ],
)
@pytest.mark.parametrize("locale", ["C", "C.UTF-8"])
def test_rows_are_the_same_over_http_and_from_the_command(
    profile: str,
    locale: str,
    request: pytest.FixtureRequest,
    serve: Start,
    command: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    database = request.getfixturevalue(profile)
    monkeypatch.setenv("LC_ALL", locale)
    expected = list(table.rows(1000))
    sql = "select * from t1000 order by id"
    with serve(database, f'[queries.all]\nsql = "{sql}"\n') as gateway:
        status, body = gateway.get("/all.ndjson")
    assert status == 200
    over_http = body.decode("utf-8")
    for row, got in zip(expected, _rows(over_http), strict=True):
        _expect(row, got)
    from_command = subprocess.run(
        [command, "query", "--quiet", database.odbc, sql, "--format", "ndjson"],
        capture_output=True, text=True, encoding="utf-8", check=True,
    )  # fmt: skip
    assert from_command.stdout == over_http
    assert from_command.stderr == ""


@pytest.mark.parametrize("profile", ["postgres_native", "postgres", "mariadb"])
def test_parameters_of_each_type_are_bound(profile: str, request: pytest.FixtureRequest, serve: Start) -> None:
    database = request.getfixturevalue(profile)
    row = next(r for r in table.rows(1000) if "'" in r.name or "\\" in r.name)
    conditions = {"id": ("int", row.id), "name": ("text", row.name), "amount": ("decimal", row.amount)}
    conditions["created"] = ("timestamp", row.created.isoformat())
    where = " and ".join(f"{name} = :{name}" for name in conditions)
    parameters = "".join(f'parameters.{name} = "{kind}"\n' for name, (kind, _) in conditions.items())
    query_string = "&".join(f"{name}={quote(str(value), safe='')}" for name, (_, value) in conditions.items())
    with serve(database, f'[queries.one]\nsql = "select id from t1000 where {where}"\n{parameters}') as gateway:
        status, body = gateway.get(f"/one.json?{query_string}")
        assert (status, json.loads(body)) == (200, [{"id": row.id}]), body
        injection = quote("x' or '1'='1", safe="")
        query_string = query_string.replace(quote(row.name, safe=""), injection)
        assert json.loads(gateway.get(f"/one.json?{query_string}")[1]) == []


@pytest.mark.parametrize("profile", ["postgres_native", "postgres", "mariadb"])
def test_a_statement_that_writes_changes_nothing(profile: str, request: pytest.FixtureRequest, serve: Start) -> None:
    database = request.getfixturevalue(profile)
    queries = (
        '[queries.delete]\nsql = "delete from t1000 where id = 1"\n'
        '[queries.count]\nsql = "select count(*) as n from t1000"\n'
    )
    with serve(database, queries) as gateway:
        problem = gateway.problem("/delete.json", 500)
        assert problem["detail"] == "the statement writes, and the gateway only reads"
        assert problem["sqlstate"] == "25006"
        assert json.loads(gateway.get("/count.json")[1]) == [{"n": 1000}]


@pytest.mark.parametrize("profile", list(WAIT))
def test_the_time_limit_frees_the_slot(profile: str, request: pytest.FixtureRequest, serve: Start) -> None:
    database = request.getfixturevalue(profile)
    queries = (
        f'[queries.wait]\nsql = "{WAIT[profile]} as w"\ntime_limit_s = 1\n[queries.one]\nsql = "select 1 as one"\n'
    )
    with serve(database, queries) as gateway:
        assert "limit of 1 s" in gateway.problem("/wait.json", 504)["detail"]
        # There is only one slot.
        assert gateway.free_slot("/one.json") == b'[{"one":1}]'


@pytest.mark.parametrize("profile", list(WAIT))
def test_a_client_that_leaves_frees_the_slot(
    profile: str, request: pytest.FixtureRequest, serve: Start, command: str
) -> None:
    database = request.getfixturevalue(profile)
    waiting = [command, "query", "--quiet", database.odbc, WAITING[profile], "--format", "csv"]
    queries = f'[queries.wait]\nsql = "{WAIT[profile]} as w"\n[queries.one]\nsql = "select 1 as one"\n'
    with serve(database, queries) as gateway:
        leaving = http.client.HTTPConnection(gateway.address, timeout=60)
        leaving.request("GET", "/wait.json")
        # The database reports that the slot is taken: another query to the gateway could take it
        # first.
        end = time.monotonic() + 60
        while "1" not in subprocess.run(waiting, capture_output=True, text=True, check=True).stdout:
            assert time.monotonic() < end, "the query never came to the database"
        assert gateway.get("/one.json")[0] == 503
        leaving.close()
        assert gateway.free_slot("/one.json") == b'[{"one":1}]'


#: Ends all other sessions of the same user, as a restart of the server would.
END_SESSIONS = (
    "select pg_terminate_backend(pid) from pg_stat_activity where pid <> pg_backend_pid() and usename = current_user"
)


def test_a_connection_that_broke_while_idle_is_replaced(postgres: Database, serve: Start, command: str) -> None:
    with serve(postgres, '[queries.one]\nsql = "select 1 as one"\n') as gateway:
        assert gateway.get("/one.json")[0] == 200
        subprocess.run([command, "query", postgres.odbc, END_SESSIONS], capture_output=True, check=True)
        assert gateway.get("/one.json") == (200, b'[{"one":1}]')


@pytest.mark.parametrize("end", ["json", "ndjson", "csv"])
def test_a_database_that_stops_midway_breaks_the_answer(
    end: str, postgres: Database, serve: Start, command: str
) -> None:
    queries = '[queries.many]\nsql = "select generate_series(1, 100000000) as i, repeat(chr(233), 50) as t"\n'
    with serve(postgres, queries + '[queries.one]\nsql = "select 1 as one"\n') as gateway:
        connection = http.client.HTTPConnection(gateway.address, timeout=60)
        connection.request("GET", f"/many.{end}")
        response = connection.getresponse()
        assert response.status == 200
        first = response.read(100_000)
        assert len(first) == 100_000
        subprocess.run([command, "query", postgres.odbc, END_SESSIONS], capture_output=True, check=True)
        with pytest.raises((http.client.IncompleteRead, ConnectionResetError)):
            response.read()
        connection.close()
        gateway.wait_for(rf"GET /many\.{end} 200 failed")
        # The slot is free again.
        assert gateway.free_slot("/one.json") == b'[{"one":1}]'


@pytest.mark.parametrize("profile", list(WAIT))
def test_the_commands_time_limit_cancels_and_fails(
    profile: str, request: pytest.FixtureRequest, command: str, tmp_path: Path
) -> None:
    database = request.getfixturevalue(profile)
    run = subprocess.run(
        [command, "query", "--quiet", database.odbc, WAIT[profile], "--time-limit", "0.5", "--output",
            str(tmp_path / "a.csv")],
        capture_output=True, text=True, timeout=50, check=False,
    )  # fmt: skip
    assert run.returncode == 1
    assert run.stderr == "error: the query took longer than 0.5 s and was cancelled\n"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("profile", ["postgres_native", "postgres", "mariadb"])
def test_problems_have_the_sqlstate_and_neither_sql_nor_password(
    profile: str, request: pytest.FixtureRequest, serve: Start, command: str
) -> None:
    database = request.getfixturevalue(profile)
    with serve(database, '[queries.wrong]\nsql = "select hush_column from no_such_table"\n') as gateway:
        problem = gateway.problem("/wrong.json", 500)
        assert problem["sqlstate"] in ("42P01", "42S02")
        assert "hush" not in json.dumps(problem)
        gateway.wait_for(r"error query=wrong database=d: Programming sqlstate=42")
    wrong = database.odbc.replace(database.password, "Wrong-hush-7")
    run = subprocess.run([command, "query", wrong, "select 1"], capture_output=True, text=True, check=False)
    assert run.returncode == 3
    assert "hush" not in run.stdout + run.stderr
