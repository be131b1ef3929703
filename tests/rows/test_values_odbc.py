"""Values through each driver, compared cell by cell with those of the database's native driver."""

from __future__ import annotations

import datetime
import json
import math
import os
import pathlib
import signal
import struct
import subprocess
import sys
import threading
import time
import uuid
from decimal import Decimal
from random import Random
from typing import Any

import pytest

import onecopy
from tests.conftest import Database
from tests.support import table

pytestmark = pytest.mark.filterwarnings("ignore::onecopy.DriverWarning")


def same(ours: list[tuple[Any, ...]], theirs: list[tuple[Any, ...]]) -> None:
    """Asserts that two lists of rows have equal values of equal types."""
    assert len(ours) == len(theirs)
    for a, b in zip(ours, theirs, strict=True):
        assert [(type(v), v) for v in a] == [(type(v), v) for v in b]


EXPECTED = [tuple(row) for row in table.rows(1000)]


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


def test_fetchall_returns_the_table(database: Database) -> None:
    con = onecopy.connect(database.odbc)
    same(con.execute("select * from t1000 order by id").fetchall(), EXPECTED)
    con.close()


def test_iteration_and_fetchmany_return_the_table(database: Database) -> None:
    con = onecopy.connect(database.odbc)
    same(list(con.execute("select * from t1000 order by id")), EXPECTED)
    cur = con.execute("select * from t1000 order by id")
    got = []
    while rows := cur.fetchmany(77):
        got += rows
    same(got, EXPECTED)
    con.close()


CHILD = """
import sys, onecopy, warnings
from tests.support import table
warnings.simplefilter("ignore", onecopy.DriverWarning)
rows = onecopy.connect(sys.argv[1]).execute("select * from t1000 order by id").fetchall()
expected = [tuple(row) for row in table.rows(1000)]
assert rows == expected, [(a, b) for a, b in zip(rows, expected) if a != b][:1]
assert all(type(a) is type(b) for r, e in zip(rows, expected) for a, b in zip(r, e))
"""


@pytest.mark.parametrize("locale", ["C", "C.UTF-8", "POSIX"])
def test_values_do_not_depend_on_the_locale(database: Database, locale: str) -> None:
    root = pathlib.Path(__file__).parents[2]
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("LC_", "LANG"))}
    environment |= {"LC_ALL": locale, "PYTHONUTF8": "0", "PYTHONPATH": str(root)}
    done = subprocess.run(
        [sys.executable, "-X", "faulthandler", "-c", CHILD, database.odbc],
        env=environment,
        cwd=root,
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr.decode("utf-8", "replace")


POSTGRES_TYPES = """
select 1::smallint, (-2147483648)::int, 9223372036854775807::bigint, true, false,
       123456789012345678901234567890.12345678::numeric(38, 8), -0.01::numeric, 12345678.90::numeric(18, 2),
       1.5::real, 0.1::real, 0.1::double precision, -1829.3043138126723::double precision,
       'Zürich 東京 😀'::text, ''::varchar(10), 'ab'::char(5), '\\x00ff10'::bytea, ''::bytea,
       date '0001-01-01', date '9999-12-31', time '23:59:59.123456',
       timestamp '2026-11-20 01:02:03.000004', timestamp '1970-01-01 00:00:00',
       'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'::uuid, null::int, null::text
"""


def test_every_type_of_postgresql_is_that_of_psycopg(postgres: Database) -> None:
    psycopg = pytest.importorskip("psycopg")
    native = postgres.native
    with psycopg.connect(
        host=native["host"],
        port=native["port"],
        user=native["user"],
        password=native["password"],
        dbname=native["database"],
    ) as theirs:
        expected = theirs.execute(POSTGRES_TYPES).fetchall()
    con = onecopy.connect(postgres.odbc)
    same(con.execute(POSTGRES_TYPES).fetchall(), expected)
    con.close()


@pytest.mark.parametrize("profile", ["postgres_native", "postgres", "postgres_ansi"])
def test_doubles_of_postgresql_are_the_same_to_the_last_bit(request: pytest.FixtureRequest, profile: str) -> None:
    """Through ODBC doubles are fetched as text, which onecopy parses."""
    random = Random(1)
    doubles = [0.0, -0.0, 0.1, 1e23, 5e-324, 2.2250738585072011e-308, 2.2250738585072014e-308, sys.float_info.max]
    doubles += [float("inf"), float("-inf"), float("nan"), 123456789012345680.0, -1e16, 1e15, 9007199254740993.0]
    patterns = (struct.unpack("<d", random.randbytes(8))[0] for _ in range(3000))
    doubles += [d for d in patterns if not math.isnan(d)]
    con = onecopy.connect(request.getfixturevalue(profile).odbc)
    got = con.execute(f"select unnest('{{{','.join(map(repr, doubles))}}}'::float8[])").fetchall()
    assert [struct.pack("<d", d) for (d,) in got] == [struct.pack("<d", d) for d in doubles]
    # As JSON they round-trip, and values without a JSON form are refused.
    numbers = [d for d in doubles if math.isfinite(d)]
    sql = f"select unnest('{{{','.join(map(repr, numbers))}}}'::float8[]) as x"
    read = [row["x"] for row in json.loads(con.execute(sql).json().read())]
    assert [struct.pack("<d", float(d)) for d in read] == [struct.pack("<d", d) for d in numbers]
    for word in ("NaN", "Infinity", "-Infinity"):
        with pytest.raises(onecopy.DataError):
            con.execute(f"select '{word}'::float8 as x").json().read()
    con.close()


def test_a_timestamp_with_an_offset_is_aware_and_the_same_moment(postgres: Database) -> None:
    con = onecopy.connect(postgres.odbc)
    ((got,),) = con.execute("select timestamptz '2026-11-20 01:02:03.000004+05:30'").fetchall()
    assert got.tzinfo is not None
    assert got == datetime.datetime(2026, 11, 19, 19, 32, 3, 4, tzinfo=datetime.timezone.utc)
    con.close()


MARIADB_TYPES = """
select cast(1 as signed), cast(18446744073709551615 as unsigned), cast(1.50 as decimal(10, 2)),
       cast(-99999999999999999999999999999999999.123 as decimal(38, 3)), cast(0.1 as double),
       _utf8mb4'Zürich 東京 😀', '', cast('ab' as char(5)), x'00ff10',
       date '1000-01-01', timestamp '2026-11-20 01:02:03.000004', null
"""


def test_every_type_of_mariadb_is_that_of_pymysql(mariadb: Database) -> None:
    pymysql = pytest.importorskip("pymysql")
    theirs = pymysql.connect(**mariadb.native, charset="utf8mb4")
    with theirs.cursor() as cur:
        cur.execute(MARIADB_TYPES)
        expected = [*cur.fetchall()]
    theirs.close()
    con = onecopy.connect(mariadb.odbc)
    same(con.execute(MARIADB_TYPES).fetchall(), expected)
    con.close()


PARAMETERS: list[Any] = [
    None,
    True,
    -(2**63),
    2**63 - 1,
    0.1,
    "Zürich 東京 😀",
    "",
    b"\0\xff",
    Decimal("-12345678901234567890.123"),
    datetime.date(2026, 11, 20),
    datetime.datetime(2026, 11, 20, 1, 2, 3, 4),
    uuid.UUID("a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"),
]
TYPES = ["int", "boolean", "bigint", "bigint", "double precision", "text", "text", "bytea", "numeric", "date"]
TYPES += ["timestamp", "uuid"]


def test_parameters_round_trip_through_postgresql(postgres: Database) -> None:
    con = onecopy.connect(postgres.odbc)
    sql = ", ".join(f"cast(? as {t})" for t in TYPES)
    same(con.execute(f"select {sql}", PARAMETERS).fetchall(), [tuple(PARAMETERS)])
    con.close()


@pytest.mark.parametrize(
    ("sql", "error", "sqlstate"),
    [
        ("selec 1", onecopy.ProgrammingError, "42601"),
        ("select * from nowhere", onecopy.ProgrammingError, "42P01"),
        ("select 1 / 0", onecopy.DataError, "22012"),
        ("select 'x'::int", onecopy.DataError, "22P02"),
        ("insert into once values (1)", onecopy.IntegrityError, "23505"),
        ("insert into once values (null)", onecopy.IntegrityError, "23502"),
    ],
)
def test_errors_have_their_class_and_sqlstate(
    postgres: Database, sql: str, error: type[onecopy.Error], sqlstate: str
) -> None:
    con = onecopy.connect(postgres.odbc)
    con.execute("create temporary table once (a int primary key)")
    con.execute("insert into once values (1)")
    con.commit()
    with pytest.raises(error) as caught:
        con.execute(sql).fetchall()
    assert type(caught.value) is error
    assert caught.value.sqlstate == sqlstate
    assert postgres.password not in str(caught.value)
    con.rollback()
    assert con.execute("select count(*) from once").fetchall() == [(1,)]
    con.close()


def test_a_wrong_password_is_an_operational_error_that_does_not_show_it(postgres: Database) -> None:
    wrong = postgres.odbc.replace(postgres.password, "s3cr3t-wrong")
    assert wrong != postgres.odbc
    with pytest.raises(onecopy.OperationalError) as caught:
        onecopy.connect(wrong)
    assert "s3cr3t-wrong" not in f"{caught.value!r} {caught.value} {caught.value.__dict__}"


def test_a_driver_that_holds_the_whole_result_warns_at_connect(mariadb: Database) -> None:
    with pytest.warns(onecopy.DriverWarning):
        onecopy.connect(mariadb.odbc).close()


def test_another_thread_runs_while_the_driver_works(postgres: Database) -> None:
    con = onecopy.connect(postgres.odbc)
    interval = sys.getswitchinterval()
    turns, done = [0], threading.Event()

    def count() -> None:
        while not done.is_set():
            turns[0] += 1
            time.sleep(0)

    thread = threading.Thread(target=count)
    sys.setswitchinterval(1000)
    try:
        thread.start()
        before = turns[0]
        con.execute("select pg_sleep(0.2)").fetchall()
        during = turns[0] - before
    finally:
        done.set()
        sys.setswitchinterval(interval)
        thread.join()
    assert during > 10
    con.close()


INTERRUPTED = """
import sys, threading, onecopy
con = onecopy.connect(sys.argv[1])
watch = onecopy.connect(sys.argv[1], autocommit=True)

def ready():
    # The database itself says that the query runs.
    while not watch.execute("select 1 from pg_stat_activity where query like '%pg_sleep(600)%' "
                            "and pid <> pg_backend_pid() and state = 'active'").fetchall():
        pass
    print("ready", flush=True)

# A daemon: where the query fails at once it never runs, and the process is to end and show why.
threading.Thread(target=ready, daemon=True).start()
try:
    con.execute("select pg_sleep(600) ").fetchall()
except KeyboardInterrupt:
    con.rollback()
    print("KeyboardInterrupt", con.execute("select 1").fetchall(), flush=True)
"""


def test_ctrl_c_in_a_driver_call_cancels_it_and_the_connection_survives(postgres: Database) -> None:
    child = subprocess.Popen(
        [sys.executable, "-W", "ignore", "-c", INTERRUPTED, postgres.odbc], stdout=subprocess.PIPE, text=True
    )
    try:
        assert child.stdout is not None
        assert child.stdout.readline() == "ready\n"
        child.send_signal(signal.SIGINT)
        out, _ = child.communicate(timeout=60)
    finally:
        child.kill()
        child.wait()
    assert out == "KeyboardInterrupt [(1,)]\n"
