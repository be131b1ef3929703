"""Fixtures: the path of the command under test, and a gateway that serves one database."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.conftest import Database
from tests.support.gateway import Gateway, Start
from tests.support.skips import need

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="session")
def command() -> str:
    """The path of the command: the variable ONECOPY_COMMAND, or the one that `make dev` has
    installed."""
    found = os.environ.get("ONECOPY_COMMAND") or shutil.which("onecopy", path=str(ROOT / ".venv" / "bin"))
    need(found, "`onecopy` is not installed in .venv: make dev")
    assert found is not None
    return found


@pytest.fixture
def serve(command: str, tmp_path: Path) -> Start:
    """Returns a function that starts a gateway for a database with named queries (TOML).

    At the end it checks that the gateway's log does not contain the database's password.
    """

    @contextmanager
    def start(database: Database, queries: str) -> Iterator[Gateway]:
        # The secret is in a file, as the reference recommends.
        (tmp_path / "url").write_text(database.odbc, encoding="utf-8")
        config = f'[databases.d]\nurl_file = "url"\nmax_concurrent = 1\n{queries}'
        (tmp_path / "c.toml").write_text(config, encoding="utf-8")
        process = subprocess.Popen(
            [command, "serve", str(tmp_path / "c.toml"), "--port", "0"], stderr=subprocess.PIPE, text=True
        )
        gateway = Gateway(process)
        try:
            yield gateway
        finally:
            code = gateway.stop()
        assert code == 0, gateway.said
        assert database.password not in "".join(gateway.said)

    return start
