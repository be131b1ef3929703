"""Fixtures for tests of PostgreSQL's native protocol: servers, and a neutral environment."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from tests.support.drivers import Unavailable
from tests.support.secured import Secured
from tests.support.skips import cannot


@pytest.fixture(scope="session")
def secured() -> Iterator[Secured]:
    """A PostgreSQL server with TLS, and a user for each authentication method."""
    try:
        server = Secured()
    except Unavailable as error:
        cannot(str(error))
    yield server
    server.close()


@pytest.fixture(autouse=True)
def _no_settings_of_this_machine(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Hides the environment variables `PG*` and the configuration files in the user's home
    directory."""
    for name in os.environ:
        if name.startswith("PG"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path_factory.mktemp("home")))
