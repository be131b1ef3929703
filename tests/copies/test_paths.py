"""For each path: what the ledger says is within the promise, and the witness agrees with it.

The payload is long cells of one text column, so that names, quotes and commas are far below five percent of it.
"""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.copies.paths import PATHS

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
N_ROWS = 2_000
#: Where the ledger and the witness may differ, as a part of the payload.
TOLERANCE = 0.05

_TEXTS = {
    "ascii": "the quick brown fox jumps over a lazy dog, and then it rests for a while. ",
    "latin1": "Die Bäckerin aus Köln trägt süße Brötchen über die Straße nach Düren. ",
    "cyrillic": "съешь же ещё этих мягких французских булок да выпей же чаю. ",
    "cjk": "在古老的城市里每个人都有自己的名字和故事春夏秋冬四季分明。",
}


def _cell(text: str, row: int) -> str:
    return f"{row}: " + text * (24 + row % 5)


class Counted(NamedTuple):
    """What a run of one path counted."""

    ledger: dict[str, int]
    witness: dict[str, int]


@pytest.fixture(scope="session")
def witness(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The witness, compiled."""
    out = tmp_path_factory.mktemp("witness") / "witness.so"
    command = ["cc", "-O2", "-fPIC", "-shared", "-o", str(out), str(HERE / "witness.c"), "-ldl"]
    subprocess.run(command, check=True)
    return out


@pytest.fixture(scope="session")
def texts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A SQLite database with a table of long cells for each kind of text."""
    file = tmp_path_factory.mktemp("copies") / "texts.db"
    con = sqlite3.connect(file)
    for name, text in _TEXTS.items():
        con.execute(f"create table {name} (x text)")
        con.executemany(f"insert into {name} values (?)", ((_cell(text, k),) for k in range(N_ROWS)))
    con.commit()
    con.close()
    return file


@pytest.fixture(scope="session")
def planted_module(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A build of the extension that makes one copy too many on each path, beside the package's Python files."""
    import onecopy._core

    cargo = ["cargo", "build", "--release", "--locked", "-p", "onecopy-py", "--features", "planted-copy"]
    command = [sys.executable, "tools/rust.py", "env", f"PYO3_PYTHON={sys.executable}", *cargo, "--message-format=json"]
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True)
    artifacts = (json.loads(line) for line in done.stdout.splitlines() if line.startswith("{"))
    library = [a["filenames"][0] for a in artifacts if a.get("target", {}).get("name") == "_core"][-1]
    package = Path(onecopy.__file__).parent
    planted = tmp_path_factory.mktemp("planted") / "onecopy"
    shutil.copytree(package, planted, ignore=shutil.ignore_patterns("*.so", "__pycache__"))
    return str(shutil.copy(library, planted / Path(onecopy._core.__file__).name))


def payload(kind: str, encoding: str = "utf-8") -> int:
    """Bytes of text in the table of a kind, as a driver holds it."""
    return sum(len(_cell(_TEXTS[kind], k).encode(encoding)) for k in range(N_ROWS))


def sqlite_code(module: str) -> str:
    """The part of the module that is SQLite, as START-END: its inner copies are a database's, not ours."""
    lines = subprocess.run(["nm", "--defined-only", "-n", module], capture_output=True, text=True, check=True).stdout
    symbols = [
        (int(line.split()[0], 16), line.split()[2]) for line in lines.splitlines() if line[17:19] in ("T ", "t ")
    ]
    inside = [k for k, (_, name) in enumerate(symbols) if name.startswith("sqlite3")]
    assert inside, "no SQLite in the module: is it stripped?"
    first, last = inside[0], inside[-1]
    strangers = [name for _, name in symbols[first:last] if name.startswith("_ZN")]
    assert not strangers, f"our own code inside SQLite's range: {strangers[:3]}"
    return f"{symbols[first][0]:x}-{symbols[last + 1][0]:x}"


def count(witness: Path, path: str, target: str, sql: str, module: str | None = None) -> Counted:
    """Run one path in a process with the witness."""
    import onecopy._core

    module = module or onecopy._core.__file__
    environment = os.environ | {
        "LD_PRELOAD": str(witness),
        "WITNESS_MODULE": Path(module).name,
        "WITNESS_EXCLUDE": sqlite_code(module),
        "PYTHONPATH": f"{Path(module).parents[1]}:{ROOT}",
        "PYTHONMALLOC": "malloc",
        "PYTHONWARNINGS": "ignore",  # A driver's notices at connect are not what is tested here.
    }
    command = [sys.executable, "-m", "tests.copies.paths", path, target, sql]
    done = subprocess.run(command, env=environment, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return Counted(**json.loads(done.stdout))


def check(counted: Counted, size: int) -> None:
    """The promise, and the agreement of the two meters."""
    ledger, witness = counted.ledger, counted.witness
    assert ledger["taken"] == size
    assert ledger["converted"] <= size
    assert ledger["copied"] <= size
    assert ledger["converted"] + ledger["copied"] <= size
    assert ledger["conversions"] <= N_ROWS
    assert abs(witness["copied_bytes"] - ledger["copied"]) <= TOLERANCE * size, counted


@pytest.mark.parametrize("kind", _TEXTS)
@pytest.mark.parametrize("path", PATHS)
def test_ledger_and_witness_agree_on_sqlite(witness: Path, texts: Path, path: str, kind: str) -> None:
    check(count(witness, path, f"sqlite:{texts}?mode=ro", f"select x from {kind}"), payload(kind))


def _literal_rows(kind: str) -> str:
    """SQL that makes the same cells in PostgreSQL and MariaDB: repeat and modulo are in both."""
    text = _TEXTS[kind].replace("'", "''")
    return f"concat(k, ': ', repeat('{text}', 24 + mod(k, 5)))"


@pytest.mark.parametrize("kind", ["ascii", "cyrillic"])
@pytest.mark.parametrize("path", ["str by fetchall", "json in memory", "ndjson to a socket", "csv to a file"])
def test_ledger_and_witness_agree_on_postgres(witness: Path, postgres: Any, path: str, kind: str) -> None:
    sql = f"select cast({_literal_rows(kind)} as varchar(4000)) as x from generate_series(0, {N_ROWS - 1}) as g(k)"
    check(count(witness, path, postgres.odbc, sql), payload(kind))


@pytest.mark.parametrize("path", ["str by fetchall", "json in memory"])
def test_ledger_and_witness_agree_on_mariadb(witness: Path, mariadb: Any, path: str) -> None:
    sql = f"select {_literal_rows('cyrillic')} as x from (select seq as k from seq_0_to_{N_ROWS - 1}) s"
    check(count(witness, path, mariadb.odbc, sql), payload("cyrillic"))


@pytest.mark.parametrize("path", PATHS)
def test_planted_copy_turns_the_path_red(witness: Path, texts: Path, planted_module: str, path: str) -> None:
    counted = count(witness, path, f"sqlite:{texts}?mode=ro", "select x from cyrillic", planted_module)
    with pytest.raises(AssertionError):
        check(counted, payload("cyrillic"))
