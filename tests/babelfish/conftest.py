"""A Babelfish server for the tests of this folder.

The tests are collected only if the archive with the server exists.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support import babelfish

if babelfish.archive() is None:
    collect_ignore_glob = ["test_*.py"]


@pytest.fixture(scope="session")
def port() -> Iterator[int]:
    """Starts a Babelfish server; yields its TDS port."""
    # Not in pytest's folder, which only its user may enter: the server runs as a different user.
    folder = Path(tempfile.mkdtemp(prefix="onecopy-babelfish-"))
    folder.chmod(0o755)
    try:
        with babelfish.running(folder) as number:
            yield number
    finally:
        shutil.rmtree(folder)
