"""Prepared statements that the server discards or that become stale, also with PgBouncer in
transaction mode."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

import onecopy
from tests.support import servers
from tests.support.drivers import Unavailable
from tests.support.process import free_port, spawn, stop, wait_for_port
from tests.support.secured import PASSWORD, Secured
from tests.support.skips import cannot

INI = """
[databases]
postgres = host=127.0.0.1 port={server} dbname=postgres
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {port}
unix_socket_dir =
auth_type = plain
auth_file = {users}
pool_mode = transaction
default_pool_size = 2
ignore_startup_parameters = extra_float_digits
logfile =
pidfile =
"""


@pytest.fixture(scope="module")
def pooler(secured: Secured, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Starts PgBouncer with two connections to the server; yields its URL."""
    try:
        program = servers._program("pgbouncer")
    except Unavailable as error:
        cannot(str(error))
    directory: Path = secured.directory / "bouncer"
    directory.mkdir()
    directory.chmod(0o755)
    users = directory / "users.txt"
    users.write_text(f'"password_user" "{PASSWORD}"\n', encoding="utf-8")
    port = free_port()
    ini = directory / "pgbouncer.ini"
    ini.write_text(INI.format(server=secured.port, port=port, users=users), encoding="utf-8")
    log = directory / "log"
    # PgBouncer refuses to run as root.
    process = spawn([program, str(ini)], log, secured.user, cwd=directory)
    wait_for_port(port, process, log)
    yield f"postgresql://password_user:{PASSWORD}@127.0.0.1:{port}/postgres"
    stop(process, signal.SIGINT)


@pytest.mark.parametrize("autocommit", [True, False])
def test_statements_of_several_clients_share_few_sessions(pooler: str, autocommit: bool) -> None:
    wrong: list[object] = []

    def work(i: int) -> None:
        try:
            con = onecopy.connect(pooler, autocommit=autocommit)
            for n in range(40):
                rows = con.execute(f"select ?::int + k from generate_series(1, {1 + n % 5}) as k", [i]).fetchall()
                if rows != [(i + k,) for k in range(1, 2 + n % 5)]:
                    wrong.append(rows)
                if not autocommit:
                    con.commit()
            con.close()
        except Exception as error:
            wrong.append(error)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_rows_of_parameters_through_a_pooler(pooler: str) -> None:
    con, other = onecopy.connect(pooler), onecopy.connect(pooler)
    for one in (con, other, con, other):
        cur = one.executemany("select ?::int", [[i] for i in range(50)])
        assert cur is not None
        one.commit()
    con.close()
    other.close()


@pytest.fixture
def con(secured: Secured) -> Iterator[onecopy.Connection]:
    """A connection to the server without PgBouncer."""
    url = f"postgresql://scram_user:{PASSWORD}@127.0.0.1:{secured.port}/postgres"
    connection = onecopy.connect(url, autocommit=True)
    yield connection
    connection.close()


def repeat(con: onecopy.Connection, times: int = 8) -> None:
    """Executes a statement so often that onecopy prepares it."""
    for i in range(times):
        assert con.execute("select ?::int + 1", [i]).fetchall() == [(i + 1,)]


@pytest.mark.parametrize("discard", ["discard all", "deallocate all", "discard plans"])
@pytest.mark.parametrize("transaction", [False, True])
def test_discarded_statements(con: onecopy.Connection, discard: str, transaction: bool) -> None:
    repeat(con)
    if transaction and discard == "discard all":
        # The server itself refuses it in a transaction.
        con.execute(discard)
        con.autocommit = False
    elif transaction:
        con.autocommit = False
        con.execute(discard)
    else:
        con.execute(discard)
    repeat(con)
    con.rollback()


@pytest.mark.parametrize("transaction", [False, True])
def test_a_table_that_changes_between_two_executions(con: onecopy.Connection, transaction: bool) -> None:
    con.execute("create temporary table changing (a int)")
    con.execute("insert into changing values (1)")
    for _ in range(8):
        assert con.execute("select * from changing").fetchall() == [(1,)]
    con.autocommit = not transaction
    con.execute("alter table changing add b text default 'x'")
    assert con.execute("select * from changing").fetchall() == [(1, "x")]
    con.execute("alter table changing alter a type text")
    assert con.execute("select * from changing").fetchall() == [("1", "x")]
    con.rollback()


def test_a_statement_that_another_session_made_stale_in_a_transaction(secured: Secured) -> None:
    url = f"postgresql://scram_user:{PASSWORD}@127.0.0.1:{secured.port}/postgres"
    con = onecopy.connect(url)
    with secured.admin() as admin:
        admin.execute("create table shared_table (a int)")
        admin.execute("grant all on shared_table to scram_user")
        for _ in range(8):
            assert con.execute("select * from shared_table").fetchall() == []
            con.commit()
        admin.execute("alter table shared_table add b int")
        # Nothing was executed in the transaction, so it is restarted.
        assert con.execute("select * from shared_table").fetchall() == []
        con.commit()
        for _ in range(8):
            con.execute("select * from shared_table").fetchall()
            con.commit()
        con.execute("select 1").fetchall()
        admin.execute("alter table shared_table add c int")
        # The server aborts the transaction, which has executed statements: a retry cannot repair
        # it.
        with pytest.raises(onecopy.Error, match="roll back, and run the transaction again") as raised:
            con.execute("select * from shared_table").fetchall()
        assert raised.value.sqlstate == "0A000"
        con.rollback()
        con.execute("select * from shared_table").fetchall()
        con.rollback()
        admin.execute("drop table shared_table")
    con.close()
