"""The witness, compiled; a database of long cells; a build with planted faults."""

from __future__ import annotations

import json
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from tests.copies.counting import HERE, N_ROWS, ROOT, TEXTS, Setting, cell


@pytest.fixture(scope="session")
def witness(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The witness, compiled."""
    out = tmp_path_factory.mktemp("witness") / "witness.so"
    command = ["cc", "-O2", "-fPIC", "-shared", "-o", str(out), str(HERE / "witness.c"), "-ldl"]
    subprocess.run(command, check=True)
    return out


@pytest.fixture(scope="session")
def setting(witness: Path) -> Setting:
    """The module under test with the witness."""
    return Setting(witness)


@pytest.fixture(scope="session")
def texts(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A SQLite database with a table of long cells for each kind of text."""
    file = tmp_path_factory.mktemp("copies") / "texts.db"
    con = sqlite3.connect(file)
    for name in TEXTS:
        con.execute(f"create table {name} (x text)")
        con.executemany(f"insert into {name} values (?)", ((cell(name, k),) for k in range(N_ROWS)))
    con.commit()
    con.close()
    return f"sqlite:{file}?mode=ro"


@pytest.fixture(scope="session")
def planted(witness: Path, tmp_path_factory: pytest.TempPathFactory) -> Setting:
    """A build of the extension with planted faults, beside the package's Python files."""
    import onecopy._core

    cargo = ["cargo", "build", "--release", "--locked", "-p", "onecopy-py", "--features", "planted-copy"]
    command = [sys.executable, "tools/rust.py", "env", f"PYO3_PYTHON={sys.executable}", *cargo, "--message-format=json"]
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True)
    artifacts = (json.loads(line) for line in done.stdout.splitlines() if line.startswith("{"))
    library = [a["filenames"][0] for a in artifacts if a.get("target", {}).get("name") == "_core"][-1]
    package = Path(onecopy.__file__).parent
    folder = tmp_path_factory.mktemp("planted") / "onecopy"
    shutil.copytree(package, folder, ignore=shutil.ignore_patterns("*.so", "__pycache__"))
    return Setting(witness, str(shutil.copy(library, folder / Path(onecopy._core.__file__).name)))


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The first test with faults waits for a release build, which on a busy machine takes minutes."""
    for item in items:
        if "planted" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.timeout(1200))
