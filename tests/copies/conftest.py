"""Fixtures: the compiled copy counter, a database of long texts, and a build of onecopy with
planted faults (deliberate additional copies and conversions)."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.copies.counting import HERE, N_ROWS, ROOT, TEXTS, Setting, cell


@pytest.fixture(scope="session")
def copy_counter(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Compiles the copy counter; returns the path of its shared object.

    It is preloaded into a process and counts the bytes that the C library copies, moves and
    allocates.
    """
    out = tmp_path_factory.mktemp("counter") / "copy_counter.so"
    command = ["cc", "-O2", "-fPIC", "-shared", "-o", str(out), str(HERE / "copy_counter.c"), "-ldl"]
    subprocess.run(command, check=True)
    return out


@pytest.fixture(autouse=True)
def one_processor(request: pytest.FixtureRequest) -> Iterator[None]:
    """Restricts the processes of a test to one processor, unless the test has the mark
    `reads_ahead`.

    On one processor there is no prefetching, which needs additional memory.
    """
    before = os.sched_getaffinity(0)
    if "reads_ahead" not in request.keywords:
        os.sched_setaffinity(0, {min(before)})
    yield
    os.sched_setaffinity(0, before)


@pytest.fixture(scope="session")
def setting(copy_counter: Path) -> Setting:
    """A `Setting` that runs the installed extension module with the copy counter."""
    return Setting(copy_counter)


@pytest.fixture(scope="session")
def texts(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The connection string of a SQLite database with a table of long texts for each kind of
    text."""
    file = tmp_path_factory.mktemp("copies") / "texts.db"
    con = sqlite3.connect(file)
    for name in TEXTS:
        con.execute(f"create table {name} (x text)")
        con.executemany(f"insert into {name} values (?)", ((cell(name, k),) for k in range(N_ROWS)))
    con.commit()
    con.close()
    return f"sqlite:{file}?mode=ro"


@pytest.fixture(scope="session")
def planted(copy_counter: Path, tmp_path_factory: pytest.TempPathFactory) -> Setting:
    """A build of the extension module with planted faults, next to a copy of the package's Python
    files.

    A planted fault is a deliberate additional copy or conversion, which the ledger does not count.
    Builds with the profile `quick` contain the faults: if .venv has one, as in CI, nothing is
    compiled.
    """
    import onecopy._core

    folder = tmp_path_factory.mktemp("planted")
    # Built as all wheels are, since the interpreter's path is part of the build's cache key.
    command = [sys.executable, "tools/wheel.py", "--profile", "quick", "--out", str(folder)]
    subprocess.run(command, cwd=ROOT, check=True)
    (wheel,) = folder.glob("*.whl")
    library = f"onecopy/{Path(onecopy._core.__file__).name}"
    package = Path(onecopy.__file__).parent
    shutil.copytree(package, folder / "onecopy", ignore=shutil.ignore_patterns("*.so", "__pycache__"))
    with zipfile.ZipFile(wheel) as archive:
        return Setting(copy_counter, archive.extract(library, folder))


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Moves the tests with planted faults to the end.

    They may wait for a build, which takes minutes on a busy machine.
    """
    items.sort(key=lambda item: "planted" in getattr(item, "fixturenames", ()))
    for item in items:
        if "planted" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.builds)
            item.add_marker(pytest.mark.timeout(2400))
