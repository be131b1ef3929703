"""`Connection.usable`: true after an error that leaves the connection intact, false after one that
ends it."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator

import pytest

import onecopy
import onecopy.aio
from tests.conftest import Database

pytestmark = pytest.mark.filterwarnings("ignore::onecopy.DriverWarning")
POSTGRES = ["postgres_native", "postgres", "postgres_ansi"]
TDS = ["tds_freetds", "tds_msodbc", "tds_rust"]
PROFILES = [*POSTGRES, "mariadb", *TDS]


@pytest.fixture(params=PROFILES)
def database(request: pytest.FixtureRequest) -> Database:
    found: Database = request.getfixturevalue(request.param)
    return found


@pytest.fixture
def con(database: Database) -> Iterator[onecopy.Connection]:
    connection = onecopy.connect(database.odbc)
    yield connection
    connection.close()


def end_session(database: Database, con: onecopy.Connection) -> None:
    """Ends the session of `con` on its server, so that the client is not notified in advance."""
    other = onecopy.connect(database.odbc, autocommit=True)
    if database.profile in POSTGRES:
        ((session,),) = con.execute("select pg_backend_pid()").fetchall()
        assert other.execute(f"select pg_terminate_backend({session}, 10000)").fetchall() == [(True,)]
    elif database.profile == "mariadb":
        ((session,),) = con.execute("select connection_id()").fetchall()
        other.execute(f"kill {session}")
        while other.execute(f"select count(*) from information_schema.processlist where id = {session}").fetchone() != (
            0,
        ):
            pass
    else:
        with pytest.raises(onecopy.Error):
            con.execute("select 1 as a from repeat(10) /* drop after 5 */").fetchall()
    other.close()


def is_lost(con: onecopy.Connection) -> None:
    """Asserts that the connection has all properties of a lost connection."""
    assert (con.usable, con.closed) == (False, False)
    calls: list[Callable[[], object]] = [
        con.commit,
        con.rollback,
        lambda: con.execute("select 1"),
        lambda: con.executemany("insert into t values (?)", [(1,)]),
        lambda: setattr(con, "autocommit", True),
    ]
    for call in calls:
        with pytest.raises(onecopy.OperationalError, match="lost") as caught:
            call()
        assert caught.value.sqlstate == "08003"
    con.close()
    assert (con.usable, con.closed) == (False, True)
    con.close()


def test_after_a_statement_found_it_lost(database: Database, con: onecopy.Connection) -> None:
    assert (con.usable, con.closed) == (True, False)
    end_session(database, con)
    with pytest.raises(onecopy.OperationalError):
        con.execute("select 1").fetchall()
    is_lost(con)


@pytest.mark.parametrize("how", ["rollback", "commit"])
def test_committing_on_a_lost_connection_is_an_error(database: Database, con: onecopy.Connection, how: str) -> None:
    # psqlodbc reports this rollback as a success.
    con.execute("select 1").fetchall()
    end_session(database, con)
    with pytest.raises(onecopy.OperationalError) as caught:
        getattr(con, how)()
    assert caught.value.sqlstate
    is_lost(con)


def test_the_error_of_a_rollback_does_not_replace_the_exception_of_the_block(
    database: Database, con: onecopy.Connection
) -> None:
    def block() -> None:
        with con:
            end_session(database, con)
            raise KeyError("of the block")

    async def async_block() -> None:
        async with await onecopy.aio.connect(database.odbc) as other:
            end_session(database, other.sync)
            raise KeyError("of the block")

    with pytest.raises(KeyError, match="of the block"):
        block()
    is_lost(con)
    with pytest.raises(KeyError, match="of the block"):
        asyncio.run(async_block())


@pytest.mark.parametrize(
    "sql", ["select * from nowhere_at_all", "selec 1", "select 1 +", "insert into nowhere_at_all values (1, 2)"]
)
def test_an_error_of_a_statement_leaves_it_usable(database: Database, con: onecopy.Connection, sql: str) -> None:
    with pytest.raises(onecopy.Error):
        con.execute(sql if not (sql.startswith("insert") and database.profile in TDS) else "selec 2")
    assert con.usable
    con.rollback()
    assert con.execute("select 1").fetchall() == [(1,)]


@pytest.mark.parametrize("profile", [*POSTGRES, "mariadb", "tds_freetds", "tds_msodbc"])
def test_a_cancelled_statement_leaves_it_usable(request: pytest.FixtureRequest, profile: str) -> None:
    database: Database = request.getfixturevalue(profile)
    con = onecopy.connect(database.odbc)
    wait = {
        "mariadb": "select sleep(60)",
        "tds_freetds": "waitfor delay '00:01:00'",
        "tds_msodbc": "waitfor delay '00:01:00'",
    }
    done = threading.Event()

    def cancel() -> None:
        # Repeated: a cancel before the driver waits has no effect.
        while not done.wait(0.2):
            con.cancel()

    thread = threading.Thread(target=cancel)
    thread.start()
    try:
        with pytest.raises(onecopy.OperationalError) as caught:
            con.execute(wait.get(profile, "select pg_sleep(60)")).fetchall()
    finally:
        done.set()
        thread.join()
    assert caught.value.sqlstate in ("", "57014", "HY008", "HY018", "HY000", "70100")
    assert con.usable
    con.rollback()
    assert con.execute("select 1").fetchall() == [(1,)]
    con.close()


@pytest.mark.parametrize("profile", TDS)
def test_an_error_that_ends_the_connection_has_the_message_of_the_server(
    request: pytest.FixtureRequest, profile: str
) -> None:
    con = onecopy.connect(request.getfixturevalue(profile).odbc)
    with pytest.raises(onecopy.Error, match="fatal 日本"):
        con.execute("raiserror(N'fatal 日本', 20, 1)")
    with pytest.raises(onecopy.OperationalError):
        con.execute("select 1").fetchall()
    is_lost(con)


def test_a_pool_drops_lost_connections(database: Database) -> None:
    with onecopy.Pool(database.odbc, max_size=1, probe=None) as pool:
        con = pool.acquire()
        end_session(database, con)
        with pytest.raises(onecopy.OperationalError):
            con.execute("select 1").fetchall()
        pool.release(con)
        with pool.connection() as again:
            assert again.execute("select 1").fetchall() == [(1,)]
        assert pool.stats().dropped == 1


def test_sqlite_is_usable_until_it_is_closed() -> None:
    sqlite = onecopy.connect("sqlite::memory:")
    assert (sqlite.usable, sqlite.closed) == (True, False)
    with pytest.raises(onecopy.Error):
        sqlite.execute("selec 1")
    assert sqlite.usable
    sqlite.close()
    assert (sqlite.usable, sqlite.closed) == (False, True)
