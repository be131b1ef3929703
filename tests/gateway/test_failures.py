"""Errors within the rows of a result: the gateway and the command both report a failure, and the
gateway frees the connection slot."""

from __future__ import annotations

import http.client
import json
import subprocess
from pathlib import Path

import pytest

from tests.conftest import Database
from tests.support.gateway import Gateway, Start

TDS = ["tds_freetds", "tds_msodbc", "tds_rust"]
FORMATS = ["json", "ndjson", "csv"]
ONE = '[queries.one]\nsql = "select 1 as one"\n'
#: More rows than fit in the first chunk, so that bytes were sent before the bad row.
MANY = "select N'some text to fill chunks' as t from repeat(200000)"
LONE = "nchar(0xD800) + N'x'"


@pytest.fixture(params=TDS)
def sql_server(request: pytest.FixtureRequest) -> Database:
    """The TDS responder, through each driver of SQL Server."""
    database: Database = request.getfixturevalue(request.param)
    return database


def slot_is_free(gateway: Gateway) -> None:
    """Checks that the gateway's only connection slot becomes free."""
    assert gateway.free_slot("/one.json") == b'[{"one":1}]'


def breaks(gateway: Gateway, path: str) -> bytes:
    """Sends a request whose response has status 200 and is aborted; returns the received bytes."""
    connection = http.client.HTTPConnection(gateway.address, timeout=60)
    connection.request("GET", path)
    response = connection.getresponse()
    assert response.status == 200
    got: list[bytes] = []
    with pytest.raises((http.client.IncompleteRead, ConnectionResetError)):
        got.extend(iter(lambda: response.read1(1 << 16), b""))
    connection.close()
    return b"".join(got)


def queries(sql: dict[str, str]) -> str:
    """The gateway configuration (TOML) of the given named queries and of the query ``one``."""
    return ONE + "".join(f'[queries.{name}]\nsql = "{text}"\n' for name, text in sql.items())


def test_a_lone_surrogate_is_a_problem_first_and_a_broken_answer_later(sql_server: Database, serve: Start) -> None:
    toml = queries({"early": f"select {LONE} as t", "late": f"{MANY} union all select {LONE}"})
    with serve(sql_server, toml) as gateway:
        for form in FORMATS:
            problem = gateway.problem(f"/early.{form}", 500)
            assert "column 0 `t`" in problem["detail"]
            slot_is_free(gateway)
            got = breaks(gateway, f"/late.{form}")
            assert len(got) > 100_000 and not got.endswith(b"]")
            gateway.wait_for(rf"GET /late\.{form} 200 failed")
            slot_is_free(gateway)
        # The remedy is a setting of the configuration.
        assert 'or set `errors = "replace"` for this database' in "".join(gateway.said)


def test_a_lone_surrogate_is_ufffd_if_the_database_has_errors_replace(sql_server: Database, serve: Start) -> None:
    toml = f"errors = 'replace'\n{queries({'q': f'select {LONE} as t'})}"
    with serve(sql_server, toml) as gateway:
        assert gateway.get("/q.json") == (200, '[{"t":"\ufffdx"}]'.encode())


@pytest.mark.parametrize(
    ("how", "detail"), [("error", "failed half-way"), ("drop", "")], ids=["error", "connection that ends"]
)
def test_a_query_that_fails_half_way_is_a_problem_first_and_a_broken_answer_later(
    how: str, detail: str, sql_server: Database, serve: Start
) -> None:
    toml = queries({"early": f"{MANY} /* {how} after 0 */", "late": f"{MANY} /* {how} after 190000 */"})
    with serve(sql_server, toml) as gateway:
        for form in FORMATS:
            problem = gateway.problem(f"/early.{form}", 503 if how == "drop" else 500)
            assert "fill chunks" not in json.dumps(problem)
            slot_is_free(gateway)
            got = breaks(gateway, f"/late.{form}")
            assert len(got) > 100_000 and not got.endswith(b"]")
            said = gateway.wait_for(rf"(.*)GET /late\.{form} 200 failed").string
            slot_is_free(gateway)
            assert "fill chunks" not in said
        assert detail in "".join(gateway.said)


@pytest.mark.parametrize("profile", ["tds_freetds", "tds_msodbc"])
def test_a_database_that_falls_silent_is_abandoned_at_the_time_limit(
    profile: str, request: pytest.FixtureRequest, serve: Start
) -> None:
    toml = queries({"early": f"{MANY} /* stall after 0 */", "late": f"{MANY} /* stall after 190000 */"})
    toml = toml.replace("[queries.early]\n", "[queries.early]\ntime_limit_s = 1\n")
    toml = toml.replace("[queries.late]\n", "[queries.late]\ntime_limit_s = 3\n")
    with serve(request.getfixturevalue(profile), toml) as gateway:
        assert "limit of 1 s" in gateway.problem("/early.json", 504)["detail"]
        slot_is_free(gateway)
        got = breaks(gateway, "/late.ndjson")
        assert len(got) > 100_000
        slot_is_free(gateway)


def test_a_driver_that_ignores_cancel_answers_at_the_time_limit_and_keeps_its_slot(
    tds_rust: Database, serve: Start
) -> None:
    toml = queries({"early": f"{MANY} /* stall after 0 */", "late": f"{MANY} /* stall after 190000 */"})
    early, late = "[queries.early]\n", "[queries.late]\n"
    with serve(tds_rust, toml.replace(early, f"{early}time_limit_s = 1\n")) as gateway:
        assert "limit of 1 s" in gateway.problem("/early.json", 504)["detail"]
        gateway.wait_for(r"held query=early database=d: .* 1 of 1 slots")
        # The driver waits for a silent server and has the only slot; the gateway works, and stops.
        assert gateway.get("/one.json")[0] == 503
        assert gateway.get("/-/live")[0] == 200
    with serve(tds_rust, toml.replace(late, f"{late}time_limit_s = 3\n")) as gateway:
        assert len(breaks(gateway, "/late.ndjson")) > 100_000
        gateway.wait_for(r"held query=late database=d: .* 1 of 1 slots")


@pytest.mark.parametrize(
    ("profile", "sql"),
    # FreeTDS reports 0 columns for a call, the other driver nothing for any statement.
    [("tds_freetds", "exec onecopy_results 1"), ("tds_rust", "select 1 as one")],
    ids=["freetds", "rust"],
)
def test_a_query_that_the_driver_cannot_describe_is_not_an_error(
    profile: str, sql: str, request: pytest.FixtureRequest, command: str, tmp_path: Path
) -> None:
    database: Database = request.getfixturevalue(profile)
    (tmp_path / "url").write_text(database.odbc, encoding="utf-8")
    (tmp_path / "c.toml").write_text(
        f'[databases.d]\nurl_file = "url"\n[queries.one]\nsql = "{sql}"\n', encoding="utf-8"
    )
    checked = subprocess.run(
        [command, "serve", str(tmp_path / "c.toml"), "--check"],
        capture_output=True, text=True, encoding="utf-8", check=False,
    )  # fmt: skip
    assert checked.returncode == 0, checked.stdout + checked.stderr
    assert "d.one" in checked.stdout and "cannot be checked before its execution" in checked.stdout
    assert "1 query can be served" in checked.stdout


def query(command: str, database: Database, sql: str, *more: str) -> subprocess.CompletedProcess[bytes]:
    """Runs `onecopy query`; checks that its output does not contain the database's password."""
    done = subprocess.run(
        [command, "query", "--quiet", database.odbc, sql, *more], capture_output=True, timeout=60, check=False
    )
    assert database.password.encode() not in done.stdout + done.stderr
    return done


@pytest.mark.parametrize(
    ("sql", "said"),
    [
        (f"{MANY} union all select {LONE}", "lone surrogate"),
        (f"{MANY} /* error after 190000 */", "failed half-way"),
        (f"{MANY} /* drop after 190000 */", ""),
        (f"{MANY} /* error after 0 */", "failed half-way"),
        (f"{MANY} /* drop after 0 */", ""),
    ],
    ids=["lone surrogate", "error", "connection that ends", "error at once", "connection that ends at once"],
)
def test_the_command_fails_with_1_and_leaves_no_file(
    sql: str, said: str, sql_server: Database, command: str, tmp_path: Path
) -> None:
    for form in FORMATS:
        done = query(command, sql_server, sql, "--format", form)
        assert done.returncode == 1
        assert not done.stdout.endswith(b"]")
        assert done.stderr.startswith(b"error: ") and said in done.stderr.decode()
    done = query(command, sql_server, sql, "--output", str(tmp_path / "rows.csv"))
    assert done.returncode == 1
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("profile", ["tds_freetds", "tds_msodbc"])
def test_the_command_abandons_a_database_that_falls_silent_at_its_time_limit(
    profile: str, request: pytest.FixtureRequest, command: str
) -> None:
    done = query(
        command,
        request.getfixturevalue(profile),
        f"{MANY} /* stall after 1000 */",
        "--format",
        "csv",
        "--time-limit",
        "1",
    )
    assert done.returncode == 1
    assert done.stderr == b"error: the query took longer than 1 s and was cancelled\n"


@pytest.mark.parametrize("form", FORMATS)
def test_the_command_fails_with_1_if_the_server_ends_its_session(
    form: str, postgres: Database, command: str, tmp_path: Path
) -> None:
    sql = "select generate_series(1, 100000000) as i, repeat(chr(233), 50) as t"
    end = (
        "select pg_terminate_backend(pid) from pg_stat_activity"
        " where pid <> pg_backend_pid() and usename = current_user"
    )
    with subprocess.Popen(
        [command, "query", postgres.odbc, sql, "--format", form], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as running:
        assert running.stdout is not None
        got = running.stdout.read(100_000)
        assert len(got) == 100_000
        assert query(command, postgres, end).returncode == 0
        rest, said = running.communicate(timeout=60)
    assert running.returncode == 1
    assert not (got + rest).endswith(b"]")
    assert b"error: " in said and postgres.password.encode() not in said
