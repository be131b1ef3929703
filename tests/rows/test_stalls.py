"""A server that becomes silent: each call ends at its time limit, or after Ctrl-C and a grace
period.

The connection is lost afterwards.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator

import pytest

import onecopy
from tests.conftest import Database
from tests.support.relay import Relay

pytestmark = pytest.mark.filterwarnings("ignore::onecopy.DriverWarning")

DRIVERS = ["postgres_native", "postgres", "mariadb", "tds_freetds", "tds_msodbc"]


@pytest.fixture
def silent_port() -> Iterator[int]:
    """A port that accepts connections and never sends anything."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield listener.getsockname()[1]


def through(database: Database, port: int) -> str:
    """The connection string of a database with its port replaced."""
    own = str(database.native["port"])
    assert own in database.odbc
    return database.odbc.replace(own, str(port))


@pytest.mark.parametrize("profile", DRIVERS)
def test_a_connect_to_a_silent_port_ends_at_its_time_limit(
    profile: str, silent_port: int, request: pytest.FixtureRequest
) -> None:
    database: Database = request.getfixturevalue(profile)
    with pytest.raises(onecopy.OperationalError) as raised:
        onecopy.connect(through(database, silent_port), connect_timeout=1)
    assert database.password not in str(raised.value)


CONNECTS = """
import signal, sys
import onecopy
try:
    onecopy.connect(sys.argv[1], connect_timeout=86400)
except KeyboardInterrupt:
    print("KeyboardInterrupt")
"""


@pytest.mark.parametrize("profile", ["postgres_native", "postgres", "mariadb", "tds_freetds"])
def test_ctrl_c_ends_a_connect_to_a_silent_port(profile: str, request: pytest.FixtureRequest) -> None:
    database: Database = request.getfixturevalue(profile)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        target = through(database, listener.getsockname()[1])
        command = [sys.executable, "-c", CONNECTS, target]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child, listener.accept()[0]:
            child.send_signal(signal.SIGINT)
            assert child.communicate()[0] == "KeyboardInterrupt\n"


@pytest.mark.parametrize("profile", DRIVERS)
def test_a_statement_on_a_silent_server_ends_after_its_time_limit_and_the_connection_is_lost(
    profile: str, request: pytest.FixtureRequest
) -> None:
    database: Database = request.getfixturevalue(profile)
    relay = Relay(database.native["port"])
    try:
        con = onecopy.connect(through(database, relay.port), query_timeout=0.5)
        assert con.execute("select 1 as n").fetchall() == [(1,)]
        relay.silence()
        with pytest.raises(onecopy.OperationalError, match=r"time limit of 0\.5 s ran out"):
            con.execute("select 2 as n")
        assert relay.received.is_set()
        assert not con.usable
        with pytest.raises(onecopy.OperationalError, match="the connection was lost"):
            con.execute("select 3 as n")
        con.close()
    finally:
        relay.close()


def test_a_stopped_backend_is_abandoned_at_the_time_limit(postgres: Database) -> None:
    con = onecopy.connect(postgres.odbc, query_timeout=0.5)
    ((backend,),) = con.execute("select pg_backend_pid()").fetchall()
    os.kill(backend, signal.SIGSTOP)
    try:
        with pytest.raises(onecopy.OperationalError, match="time limit"):
            con.execute("select 1")
        assert not con.usable
        con.close()
    finally:
        os.kill(backend, signal.SIGCONT)


WAITS = """
import sys
import onecopy
con = onecopy.connect(sys.argv[1])
cur = con.execute("select 1 as n")
cur.fetchall()
print("ready", flush=True)
sys.stdin.readline()
try:
    {call}
except KeyboardInterrupt:
    print("KeyboardInterrupt", con.usable, flush=True)
con.close()
"""


@pytest.mark.parametrize("call", ['con.execute("select 2 as n")', "con.commit()"])
@pytest.mark.parametrize("profile", ["postgres_native", "postgres", "mariadb", "tds_freetds"])
def test_ctrl_c_ends_a_call_on_a_silent_server(profile: str, call: str, request: pytest.FixtureRequest) -> None:
    database: Database = request.getfixturevalue(profile)
    relay = Relay(database.native["port"])
    command = [sys.executable, "-c", WAITS.format(call=call), through(database, relay.port)]
    pipe = subprocess.PIPE
    try:
        with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) as child:
            assert child.stdout is not None
            assert child.stdout.readline() == "ready\n"
            relay.silence()
            assert child.stdin is not None
            child.stdin.write("\n")
            child.stdin.flush()
            try:
                assert relay.received.wait(60)
                child.send_signal(signal.SIGINT)
                assert child.stdout.read() == "KeyboardInterrupt False\n"
                child.wait(60)
            finally:
                child.kill()
        assert child.returncode == 0
    finally:
        relay.close()


@pytest.mark.parametrize("profile", ["postgres_native", "postgres", "postgres_ansi"])
def test_a_copy_through_the_client_is_refused(profile: str, request: pytest.FixtureRequest) -> None:
    database: Database = request.getfixturevalue(profile)
    con = onecopy.connect(database.odbc)
    for sql in ("copy (select 1) to stdout", "-- all\nCOPY t FROM STDIN", "copy t to /* here */ STDOUT csv"):
        with pytest.raises(onecopy.NotSupportedError, match=r"csv\(\)|copy_out"):
            con.execute(sql)
    # A copy through the client is not an exception: the server refuses it.
    for sql in ("copy (select 'stdout') to '/nonexistent/stdout'", "select 'copy to stdout' as stdout from nothing"):
        with pytest.raises(onecopy.Error) as raised:
            con.execute(sql)
        assert raised.type is not onecopy.NotSupportedError
        con.rollback()
    con.close()


LEAVES = """
import sys
import onecopy
con = onecopy.connect(sys.argv[1])
con.execute("select 1 as n").fetchall()
print("ready", flush=True)
sys.stdin.readline()
{end}
"""


@pytest.mark.parametrize("end", ["con.close()", "del con", "pass"])
@pytest.mark.parametrize("profile", ["postgres_native", "postgres", "mariadb", "tds_freetds"])
def test_a_connection_to_a_silent_server_is_closed_within_a_grace(
    profile: str, end: str, request: pytest.FixtureRequest
) -> None:
    database: Database = request.getfixturevalue(profile)
    relay = Relay(database.native["port"])
    command = [sys.executable, "-c", LEAVES.format(end=end), through(database, relay.port)]
    try:
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as child:
            assert child.stdout is not None
            assert child.stdout.readline() == "ready\n"
            relay.silence()
            try:
                child.communicate("\n", timeout=60)
            finally:
                child.kill()
        assert child.returncode == 0
    finally:
        relay.close()
