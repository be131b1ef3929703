"""The hooks that SQLAlchemy's test suite requires of a third-party dialect."""

from __future__ import annotations

import subprocess
import sys

import pytest
from sqlalchemy.engine import make_url

from onecopy.sqlalchemy import SQLiteDialectOnecopy


@pytest.mark.parametrize(
    "name", ["SQLiteDialectOnecopy", "PGDialectOnecopy", "MySQLDialectOnecopy", "MSDialectOnecopy"]
)
def test_the_hooks_of_the_suite_are_found_for_each_database(name: str) -> None:
    code = f"""if True:
        from onecopy.sqlalchemy import {name}
        {name}.load_provisioning()
        from sqlalchemy.testing import provision
        assert {{"sqlite", "postgresql", "mariadb"}} <= set(provision.upsert.fns), provision.upsert.fns
    """
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


def test_a_file_is_distinguished_from_a_database_in_memory() -> None:
    for url, is_file in (("///a.db", True), ("//", False), ("///:memory:", False)):
        assert SQLiteDialectOnecopy._is_url_file_db(make_url(f"sqlite+onecopy:{url}")) is is_file
