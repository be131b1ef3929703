"""Fixtures for all tests: databases on loopback, and hooks that make skips fail in CI.

A database fixture starts its server unless it runs already, and stops it at the end of the session;
`make test` starts all servers beforehand. If a server is not available, the test is skipped with
the reason.
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
    """Restores the default action of SIGINT for child processes: shells start background jobs with
    SIGINT ignored."""
    config.stash[_STDERR] = os.dup(2)
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """Ends the process, with the stacks of all threads, if a test still runs a minute after its
    time limit.

    The time limit of pytest-timeout is an exception in the main thread. It does not end a call that
    never returns, nor the exit from `with Popen(…)`, which waits for the child.
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
    """Runs a first Hypothesis property before the first `gc.freeze()`.

    Hypothesis's `register_random` searches for the owner of its random generator with
    `gc.get_referrers`, which does not find frozen objects, and warns if there is no owner. Before
    CPython 3.14 the owner, a `dict`, was tracked by the collector from the moment when it contained
    the generator; since 3.14 it is tracked, and therefore frozen, from the beginning.
    """
    given(st.none())(lambda _: None)()


@pytest.fixture(scope="module", autouse=True)
def _what_was_there_before() -> None:
    """Hides all existing objects from the garbage collector.

    A `gc.collect()` in a test then visits only objects that the tests have created.
    """
    gc.collect()
    gc.freeze()


@dataclass(frozen=True)
class Database:
    """A running test database: how onecopy connects to it, and how a native driver does.

    ``odbc`` is onecopy's connection string: an ODBC string without a DSN, or a URL. ``native`` has
    host, port, user, password and database (for SQLite: the file). The table ``t1000`` exists. No
    message may contain ``password``.
    """

    profile: str
    odbc: str
    native: dict[str, Any]
    password: str = servers.PASSWORD


class _Running:
    """Starts servers when a test needs them, and records which ones to stop at the end."""

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
    """PostgreSQL; each test that uses this fixture runs twice, see `pytest_generate_tests`.

    The clients are the native protocol and psqlodbc's Unicode driver. `getfixturevalue("postgres")`
    returns the latter.
    """
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
    """Runs each test with the fixture `postgres` by the native protocol and through psqlodbc."""
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
    """SQLite through its ODBC driver."""
    return _running.database("sqlite_odbc")


@pytest.fixture(scope="session")
def tds_freetds(_running: _Running) -> Database:
    """The TDS responder (`tests/support/tds`) through FreeTDS."""
    return _running.database("tds_freetds")


@pytest.fixture(scope="session")
def tds_msodbc(_running: _Running) -> Database:
    """The TDS responder (`tests/support/tds`) through Microsoft's ODBC driver 18."""
    return _running.database("tds_msodbc")


@pytest.fixture(scope="session")
def tds_rust(_running: _Running) -> Database:
    """The TDS responder (`tests/support/tds`) through Microsoft's driver written in Rust."""
    return _running.database("tds_rust")


@pytest.fixture(scope="session", params=list(servers.PROFILES))
def any_odbc(request: pytest.FixtureRequest, _running: _Running) -> Database:
    """A database for each ODBC profile; each test runs once per profile."""
    return _running.database(request.param)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Adds the mark `odbc` to tests that use a database fixture, before `-m` selects tests."""
    databases = {*servers.PROFILES, "psqlodbc", "any_odbc"}
    for item in items:
        if databases & set(getattr(item, "fixturenames", ())):
            item.add_marker("odbc")


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Prints the skipped tests if a skip counts as a failure."""
    if in_ci():
        for report in terminalreporter.stats.get("skipped", []):
            terminalreporter.write_line(f"SKIPPED, a failure under CI=true: {report.nodeid}: {report.longrepr}")


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Makes the run fail under ``CI=true`` if a test was skipped."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if in_ci() and reporter is not None and reporter.stats.get("skipped"):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
