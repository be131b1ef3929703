"""SQLAlchemy engines that use onecopy, for each database.

If SQLAlchemy or pandas is not installed, no test of this folder is collected: some CPythons are
tested without them.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

from tests.conftest import Database

if TYPE_CHECKING:
    from sqlalchemy import Engine

#: Text in many scripts: combining marks, right to left, outside of the BMP, special in SQL and
#: URLs.
SCRIPTS = [
    "Zürich – São Paulo",
    "Ελλάδα",
    "съешь ещё этих булок",
    "東京都の町",
    "서울특별시",
    "हिन्दी ภาษาไทย",
    "שלום مرحبا",
    "😀🚀𝄞𠮷 e\u0301",
    '100 % it\'s "quoted" \\ :name ? %(x)s',
]

missing = [name for name in ("sqlalchemy", "pandas") if importlib.util.find_spec(name) is None]
collect_ignore_glob = ["test_*.py"] if missing else []


def url(backend: str, found: Database) -> Any:
    """The SQLAlchemy URL of a test database for the backend ``backend``."""
    from sqlalchemy import URL

    native = found.native
    parts = {name: native[name] for name in ("host", "port", "database")}
    return URL.create(f"{backend}+onecopy", username=native["user"], password=native["password"], **parts)


@pytest.fixture(params=["sqlite", "postgresql", "mysql", "mariadb"])
def engine(request: pytest.FixtureRequest, tmp_path: Any) -> Iterator[Engine]:
    """An SQLAlchemy engine, for each database that stores rows."""
    from sqlalchemy import URL, create_engine

    if request.param == "sqlite":
        made = create_engine(URL.create("sqlite+onecopy", database=str(tmp_path / "a b%20?.db")))
    else:
        name = {"postgresql": "postgres"}.get(request.param, "mariadb")
        made = create_engine(url(request.param, request.getfixturevalue(name)))
    yield made
    made.dispose()
