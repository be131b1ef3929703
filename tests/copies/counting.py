"""The text that is counted, what is promised of it, and how the two meters are read and compared.

A cell is long (two to five thousand bytes): names, quotes and commas are then far below five percent of the payload, and
a copy of it is a call of the C library's, which the witness sees.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
N_ROWS = 2_000
#: Where the ledger and the witness may differ, as a part of the payload: names, quotes, numbers, the buffers of a
#: statement and the chunks, which are reused.
TOLERANCE = 0.05

#: Bytes that a statement takes besides, however long its payload: the place where long values are gathered (address
#: space of 1 MiB, filled as far as it is needed), its chunk, its share of a start.
ONCE_BYTES = 3 << 19

#: What the first connection of a process through a driver allocates and frees at once, untouched, so that the C library
#: keeps freed memory from then on (`keep_freed_pages`).
FREED_BYTES = 1 << 19

#: What reading ahead takes besides, however long the result: three more blocks, each with a place for long values (2 MiB of
#: address space at most where each fits into one fetch).
AHEAD_BYTES = 3 * ((1 << 19) + (2 << 20))

#: Parts in which a cell of up to 32 KiB may come, where the driver does not tell how long it is: 16 KiB, and the rest.
PARTS = 2

TEXTS = {
    "ascii": "the quick brown fox jumps over a lazy dog, and then it rests for a while. ",
    "latin1": "Die Bäckerin aus Köln trägt süße Brötchen über die Straße nach Düren. ",
    "cyrillic": "съешь же ещё этих мягких французских булок да выпей же чаю. ",
    "cjk": "在古老的城市里每个人都有自己的名字和故事春夏秋冬四季分明。",
    "astral": "𠮷野家 😀 ab 🚀 𝄞 съешь 東京 ",
}


def cell(kind: str, row: int) -> str:
    """The text of a row (from 0)."""
    return f"{row}: " + TEXTS[kind] * (24 + row % 5)


def payload(kind: str, encoding: str = "utf-8") -> int:
    """Bytes of text in the table of a kind, as a driver holds it."""
    return sum(len(cell(kind, k).encode(encoding)) for k in range(N_ROWS))


#: Copied, by code that the witness does not see, as it does not see conversions.
BY_KERNEL = "copied by a kernel"


def handled(path: str, kind: str, encoding: str) -> str:
    """What is promised to happen to each byte, once: ``converted``, ``copied`` or ``copied by a kernel``.

    A `str` of text whose units are the driver's already is a plain copy, by the kernel that checks the units; so are CSV, BSON and Arrow's of
    UTF-8, by the C library. JSON is always converted: each byte is looked at for escapes on its way.
    """
    form = path.split()[0]
    if form == "str":
        same = kind == "ascii" if encoding == "utf-8" else kind in ("cyrillic", "cjk")
        return BY_KERNEL if same else "converted"
    return "copied" if form in ("csv", "bson", "arrow") and encoding == "utf-8" else "converted"


class Counted(NamedTuple):
    """What a run of one path counted."""

    ledger: dict[str, int]
    stages: dict[str, dict[str, int]]
    witness: dict[str, int]


def check_ledger(
    counted: Counted, size: int, how: str, n_texts: int = N_ROWS, parts: int = 1, *, around: int = 0
) -> None:
    """The promise, by the ledger: each byte once, exactly; and nothing a second time but what a place that grew moved.

    ``parts``: how many parts a long cell may come in, each of which is a conversion. ``around``: bytes that the ledger
    counts besides the payload (the heads of HTTP answers), copied once.
    """
    ledger = counted.ledger
    assert ledger["taken"] == size + around, counted
    assert ledger["converted"] == (size if how == "converted" else 0), counted
    once = n_texts if how == "converted" else 0
    assert once <= ledger["conversions"] <= once * parts, counted
    again = ledger["copied"] - around - (0 if how == "converted" else size)
    assert 0 <= again <= TOLERANCE * size, counted


def agree(counted: Counted, size: int, statements: int = 1, freed: int = 0, how: str = "copied") -> bool:
    """Whether the witness saw what the ledger says, and no more.

    A second conversion, or a copy by code of its own, needs a place to put its result; the outgoing places are there
    already (a chunk that is reused) or are Python's (a `str`, a `bytes`). ``statements``: how many were executed. ``freed``: bytes allocated by
    the process's start alone.
    """
    ledger, witness = counted.ledger, counted.witness
    room = TOLERANCE * size
    copied = witness["copied_bytes"] + witness["moved_bytes"]
    taken = witness["allocated_bytes"] + witness["mapped_bytes"] - freed
    expected = ledger["copied"] - (size if how == BY_KERNEL else 0)
    return abs(copied - expected) <= room and taken <= room + ONCE_BYTES * statements


def check(counted: Counted, size: int, how: str, n_texts: int = N_ROWS, parts: int = 1, freed: int = 0) -> None:
    """The promise, and the agreement of the two meters."""
    check_ledger(counted, size, how, n_texts, parts)
    assert agree(counted, size, freed=freed, how=how), counted


def check_red(counted: Counted, size: int, how: str, n_texts: int = N_ROWS, parts: int = 1) -> None:
    """The ledger knows nothing of a planted fault, and the witness shows it."""
    check_ledger(counted, size, how, n_texts, parts)
    assert not agree(counted, size, how=how), counted


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


class Setting:
    """Processes that run with the witness: with the module under test, or with a planted one and its fault."""

    def __init__(self, witness: Path, module: str | None = None, fault: str = "") -> None:
        import onecopy._core

        self.module = module or onecopy._core.__file__
        self._exclude = sqlite_code(self.module)
        self._witness = witness
        self._fault = fault

    def with_fault(self, fault: str) -> Setting:
        """The same with another fault."""
        return Setting(self._witness, self.module, fault)

    def environment(self, dump: Path | None = None) -> dict[str, str]:
        """The environment of such a process; ``dump`` is where it and its children leave their counts."""
        environment = os.environ | {
            "LD_PRELOAD": str(self._witness),
            "WITNESS_MODULE": Path(self.module).name,
            "WITNESS_EXCLUDE": self._exclude,
            "PYTHONPATH": f"{Path(self.module).parents[1]}:{ROOT}",
            "PYTHONMALLOC": "malloc",
            "PYTHONWARNINGS": "ignore",  # A driver's notices at connect are not what is tested here.
            "ONECOPY_PLANTED": self._fault,
        }
        if dump is not None:
            environment["WITNESS_DUMP"] = str(dump)
        return environment

    def count(self, path: str, target: str, sql: str) -> Counted:
        """Run one path of Python in a process with the witness."""
        return self.run("tests.copies.paths", path, target, sql)

    def run(self, module: str, *arguments: str) -> Counted:
        """Run a module that prints what was counted in a process with the witness."""
        command = [sys.executable, "-m", module, *arguments]
        done = subprocess.run(
            command, env=self.environment(), cwd=ROOT, capture_output=True, text=True, check=False, timeout=120
        )
        assert done.returncode == 0, done.stderr
        return Counted(**json.loads(done.stdout))


def dumped(directory: Path) -> dict[str, int]:
    """The counts that the processes left, added up."""
    total: dict[str, int] = {}
    files: Iterable[Path] = directory.glob("*.json")
    for file in files:
        for name, n in json.loads(file.read_text(encoding="ascii")).items():
            total[name] = total.get(name, 0) + n
    assert total, "no process has left its counts"
    return total


def told(stderr: str) -> tuple[dict[str, int], dict[str, dict[str, int]]]:
    """The ledger's table as `--ledger` prints it: the total, and the stages."""
    rows: dict[str, Any] = {}
    for name, *counts in re.findall(r"^(\w+) +(\d+) +(\d+) +(\d+) +(\d+)$", stderr, re.M):
        rows[name] = dict(zip(("taken", "converted", "copied", "conversions"), map(int, counts), strict=True))
    assert "total" in rows, stderr
    return rows.pop("total"), rows
