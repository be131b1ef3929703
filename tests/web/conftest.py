"""Fixtures of the tests with web frameworks and servers.

If one of them is not installed, no test of this folder is collected: some CPythons are tested
without them.
"""

from __future__ import annotations

import importlib.util
import os
import pathlib

import pytest

import onecopy

missing = [
    name
    for name in ("flask", "django", "falcon", "fastapi", "starlette", "httpx", "gunicorn", "uvicorn")
    if importlib.util.find_spec(name) is None
]
collect_ignore_glob = ["test_*.py", "apps.py"] if missing else []


@pytest.fixture(scope="session")
def database(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The file of the database that the applications of `apps` read, in this process and in
    servers."""
    path: pathlib.Path = tmp_path_factory.mktemp("web") / "rows.db"
    con = onecopy.connect(f"sqlite:{path}")
    con.execute("create table city (id integer, name text)")
    con.executemany("insert into city values (?, ?)", ((i, f"Städtchen {i} 東京") for i in range(60_000)))
    con.commit()
    con.close()
    os.environ["ONECOPY_WEB_DATABASE"] = f"sqlite:{path}"
    return f"sqlite:{path}"
