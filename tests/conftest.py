"""Fixtures of all tests: databases on loopback, and skips that are failures in CI.

A database fixture starts its server unless it runs already, and at the end stops the servers that
it started; `make test` starts all of them beforehand. If a server is not available, the test is
skipped with the reason.
"""

from __future__ import annotations

import faulthandler
import gc
import os
import signal
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support import drivers, servers
from tests.support.drivers import Unavailable
from tests.support.skips import cannot, in_ci

#: Seconds beyond a test's time limit after which its process ends.
_GRACE_S = 60
#: The original stderr: pytest replaces descriptor 2 while a test runs.
_STDERR = pytest.StashKey[int]()


def pytest_configure(config: pytest.Config) -> None:
    """Makes Ctrl-C reach child processes: a shell starts background jobs with SIGINT ignored."""
    config.stash[_STDERR] = os.dup(2)
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """Ends the process, with the stacks of all threads, if a test is still running a minute after
    its time limit.

    pytest-timeout raises an exception in the main thread: it has no effect on a call that does not
    return, or on an exit from `with Popen(…)`, which waits for the child.
    """
    marker = item.get_closest_marker("timeout")
    limit_s = float(marker.args[0] if marker else item.config.getini("timeout"))
    faulthandler.dump_traceback_later(limit_s + _GRACE_S, file=item.config.stash[_STDERR], exit=True)
    try:
        return (yield)
    finally:
        faulthandler.cancel_dump_traceback_later()


@pytest.fixture(scope="session", autouse=True)
def _hypothesis_has_its_generator() -> None:
    """Runs a first property before the first `gc.freeze()`, which would hide the owner of
    Hypothesis's random generator.

    `register_random` warns about a generator without an owner, and looks for it with
    `gc.get_referrers`, which does not see frozen objects. Before 3.14 the owner, a `dict`, became
    tracked when the generator was put into it; since 3.14 it is tracked, and so frozen, from the
    beginning.
    """
    given(st.none())(lambda _: None)()


@pytest.fixture(scope="module", autouse=True)
def _what_was_there_before() -> None:
    """Hides existing objects from the collector, so that `gc.collect()` in a test only visits the
    test's."""
    gc.collect()
    gc.freeze()


@dataclass(frozen=True)
class Database:
    """A running database: how onecopy reaches it, and how a native driver does.

    ``odbc`` is a connection string without a DSN, or a URL; ``native`` has host, port, user,
    password and database (SQLite: the file). The table ``t1000`` exists. No message may contain
    ``password``.
    """

    profile: str
    odbc: str
    native: dict[str, Any]
    password: str = servers.PASSWORD


class _Running:
    """Starts servers on demand, and records those that it has to stop."""

    def __init__(self) -> None:
        self.home = servers.Home()
        self.started: list[str] = []
        self._failed: dict[str, str] = {}

    def database(self, profile: str) -> Database:
        server, driver = servers.PROFILES[profile]
        try:
            if driver is not None:
                drivers.driver_manager()
            with self.home.state() as state:
                runs = servers.running(state.get(server, {}))
            if not runs and server not in self._failed:
                self._failed |= servers.start([server], self.home)
                self.started.append(server)
            if server in self._failed:
                cannot(f"`{server}` does not start: {self._failed[server]}")
            return Database(profile, servers.odbc_string(profile, self.home), servers.native(server, self.home))
        except Unavailable as error:
            cannot(str(error))


@pytest.fixture(scope="session")
def _running() -> Iterator[_Running]:
    running = _Running()
    yield running
    servers.stop_servers(running.started, running.home)


@pytest.fixture(scope="session")
def postgres(request: pytest.FixtureRequest, _running: _Running) -> Database:
    """PostgreSQL by its native protocol and through psqlodbc's Unicode driver; `getfixturevalue`
    returns the latter."""
    return _running.database(getattr(request, "param", "postgres"))


@pytest.fixture(scope="session")
def psqlodbc(_running: _Running) -> Database:
    """PostgreSQL through psqlodbc's Unicode driver: for tests of that driver."""
    return _running.database("postgres")


@pytest.fixture(scope="session")
def postgres_native(_running: _Running) -> Database:
    """PostgreSQL by its native protocol."""
    return _running.database("postgres_native")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Runs each test with the fixture `postgres` on both clients."""
    if "postgres" in metafunc.fixturenames:
        metafunc.parametrize("postgres", ["postgres_native", "postgres"], indirect=True, scope="session")


@pytest.fixture(scope="session")
def postgres_ansi(_running: _Running) -> Database:
    """PostgreSQL through psqlodbc's ANSI driver."""
    return _running.database("postgres_ansi")


@pytest.fixture(scope="session")
def mariadb(_running: _Running) -> Database:
    """MariaDB through MariaDB's ODBC driver."""
    return _running.database("mariadb")


@pytest.fixture(scope="session")
def sqlite_odbc(_running: _Running) -> Database:
    """SQLite through ODBC."""
    return _running.database("sqlite_odbc")


@pytest.fixture(scope="session")
def tds_freetds(_running: _Running) -> Database:
    """The TDS responder through FreeTDS."""
    return _running.database("tds_freetds")


@pytest.fixture(scope="session")
def tds_msodbc(_running: _Running) -> Database:
    """The TDS responder through Microsoft's ODBC driver 18."""
    return _running.database("tds_msodbc")


@pytest.fixture(scope="session")
def tds_rust(_running: _Running) -> Database:
    """The TDS responder through Microsoft's driver written in Rust."""
    return _running.database("tds_rust")


@pytest.fixture(scope="session", params=list(servers.PROFILES))
def any_odbc(request: pytest.FixtureRequest, _running: _Running) -> Database:
    """Each ODBC profile in turn."""
    return _running.database(request.param)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark tests that use a database fixture as `odbc`, before `-m` selects."""
    databases = {*servers.PROFILES, "psqlodbc", "any_odbc"}
    for item in items:
        if databases & set(getattr(item, "fixturenames", ())):
            item.add_marker("odbc")


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Report skipped tests where they count as failures."""
    if in_ci():
        for report in terminalreporter.stats.get("skipped", []):
            terminalreporter.write_line(f"SKIPPED, a failure under CI=true: {report.nodeid}: {report.longrepr}")


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Under ``CI=true`` any skip fails the run."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if in_ci() and reporter is not None and reporter.stats.get("skipped"):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
