"""Fixtures of all tests: databases on loopback, and a skip that is a failure in CI.

A database fixture starts its server where it does not run yet, and stops at the end what it started; `make test` starts
all of them once beforehand. What cannot be had here is a skip with its reason.
"""

from __future__ import annotations

import gc
import signal
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from tests.support import drivers, servers
from tests.support.drivers import Unavailable
from tests.support.skips import cannot, in_ci


def pytest_configure() -> None:
    """Ctrl-C reaches the processes that tests start: a shell starts what it puts in the background deaf to it."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="module", autouse=True)
def _what_was_there_before() -> None:
    """Hides from the collector what came before: `gc.collect()` in a test looks at the test's own objects, not at a million others."""
    gc.collect()
    gc.freeze()


@dataclass(frozen=True)
class Database:
    """A database that runs: how ODBC reaches it, and how a native driver does.

    ``odbc`` is a connection string without a DSN; ``native`` has host, port, user, password and database (SQLite: the
    file). The table ``t1000`` is there. ``password`` stands for what no message may show.
    """

    profile: str
    odbc: str
    native: dict[str, Any]
    password: str = servers.PASSWORD


class _Running:
    """Starts servers as they are asked for, and knows which ones it has to stop."""

    def __init__(self) -> None:
        self.home = servers.Home()
        self.started: list[str] = []
        self._failed: dict[str, str] = {}

    def database(self, profile: str) -> Database:
        server, _ = servers.PROFILES[profile]
        try:
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
def postgres(_running: _Running) -> Database:
    """PostgreSQL through psqlodbc's Unicode driver."""
    return _running.database("postgres")


@pytest.fixture(scope="session")
def postgres_ansi(_running: _Running) -> Database:
    """PostgreSQL through psqlodbc's ANSI driver."""
    return _running.database("postgres_ansi")


@pytest.fixture(scope="session")
def mariadb(_running: _Running) -> Database:
    """MariaDB through its own ODBC driver."""
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
    """Mark what uses a database fixture as `odbc`, before `-m` chooses."""
    databases = {*servers.PROFILES, "any_odbc"}
    for item in items:
        if databases & set(getattr(item, "fixturenames", ())):
            item.add_marker("odbc")


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Name what was skipped where that counts as a failure."""
    if in_ci():
        for report in terminalreporter.stats.get("skipped", []):
            terminalreporter.write_line(f"SKIPPED, a failure under CI=true: {report.nodeid}: {report.longrepr}")


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Under ``CI=true`` any skip, from whatever mark, fails the run."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if in_ci() and reporter is not None and reporter.stats.get("skipped"):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
