"""The test texts, the promised counts of copies, and the comparison of `onecopy.ledger` with the
copy counter.

The texts are long (two to five thousand bytes), for two reasons. Names, quotes and commas are then
much less than five percent of the payload. A copy of a text is then a call of the C library, which
the copy counter records.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import sysconfig
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
N_ROWS = 2_000
#: The difference that is tolerated between ledger and counter, as a fraction of the payload: names,
#: quotes, numbers, the buffers of a statement and the chunks, which are reused.
TOLERANCE = 0.05

#: Bytes that a statement allocates in addition, however long its payload: the buffer that gathers
#: long values (1 MiB of address space, committed as needed), its chunk, its share of the startup.
ONCE_BYTES = 3 << 19

#: Bytes that the first ODBC connection of a process allocates and frees at once, untouched, so that
#: the C library keeps freed memory from then on (`keep_freed_pages`).
FREED_BYTES = 1 << 19

#: Bytes that prefetching allocates in addition, however long the result: three more blocks, each
#: with a buffer for long values (at most 2 MiB of address space if each fits into one fetch).
AHEAD_BYTES = 3 * ((1 << 19) + (2 << 20))

#: The number of parts of a cell up to 32 KiB if the driver does not report its length: 16 KiB, and
#: the rest.
PARTS = 2

TEXTS = {
    "ascii": "the quick brown fox jumps over a lazy dog, and then it rests for a while. ",
    "latin1": "Die Bäckerin aus Köln trägt süße Brötchen über die Straße nach Düren. ",
    "cyrillic": "съешь же ещё этих мягких французских булок да выпей же чаю. ",
    "cjk": "在古老的城市里每个人都有自己的名字和故事春夏秋冬四季分明。",
    "astral": "𠮷野家 😀 ab 🚀 𝄞 съешь 東京 ",
}


def cell(kind: str, row: int) -> str:
    """The text in row ``row`` (from 0) of the table of a kind."""
    return f"{row}: " + TEXTS[kind] * (24 + row % 5)


def payload(kind: str, encoding: str = "utf-8") -> int:
    """The total bytes of text in the table of a kind, in the driver's encoding."""
    return sum(len(cell(kind, k).encode(encoding)) for k in range(N_ROWS))


#: Copied by our own code, which the counter does not see, as it does not see conversions.
BY_KERNEL = "copied by a kernel"


def handled(path: str, kind: str, encoding: str) -> str:
    """The promised operation for each byte of text: ``converted``, ``copied`` or ``copied by a
    kernel``.

    Each byte is handled once. A `str` whose code units are those of the driver is a plain copy,
    made by the kernel that validates the units. CSV, BSON and Arrow are copied from UTF-8 by the C
    library. JSON is always converted, since each byte is checked for escapes.
    """
    form = path.split()[0]
    if form == "str":
        same = kind == "ascii" if encoding == "utf-8" else kind in ("cyrillic", "cjk")
        return BY_KERNEL if same else "converted"
    return "copied" if form in ("csv", "bson", "arrow") and encoding == "utf-8" else "converted"


class Counted(NamedTuple):
    """The counts of one run: those of the ledger, in total and by stage, and those of the copy
    counter."""

    ledger: dict[str, int]
    stages: dict[str, dict[str, int]]
    counter: dict[str, int]


def check_ledger(
    counted: Counted, size: int, how: str, n_texts: int = N_ROWS, parts: int = 1, *, around: int = 0
) -> None:
    """Checks the promise with the ledger: each byte is handled exactly once.

    Bytes may be copied a second time only when a buffer grew.

    ``size``: the bytes of text. ``how``: the result of `handled`. ``parts``: the largest number of
    parts of a long value, each of which is one conversion. ``around``: bytes that the ledger counts
    in addition to the texts (heads of HTTP responses), which are copied once.
    """
    ledger = counted.ledger
    assert ledger["taken"] == size + around, counted
    assert ledger["converted"] == (size if how == "converted" else 0), counted
    once = n_texts if how == "converted" else 0
    assert once <= ledger["conversions"] <= once * parts, counted
    again = ledger["copied"] - around - (0 if how == "converted" else size)
    # PostgreSQL sends 8 KiB at a time; a row that is received in part is moved. The rows have 3 KB.
    received = counted.stages.get("fetch", {}).get("copied", 0)
    assert 0 <= again - received <= TOLERANCE * size, counted
    assert received <= size / 4, counted


def agree(counted: Counted, size: int, statements: int = 1, freed: int = 0, how: str = "copied") -> bool:
    """Returns true if the copy counter confirms the ledger: no further bytes were copied.

    Memory that was allocated counts too: a second conversion, or a copy by onecopy's own code,
    needs a buffer for its result. The buffers for output exist already (a chunk that is reused) or
    belong to Python (a `str`, a `bytes`).

    ``statements``: the number of executed statements. ``freed``: bytes that only the start of the
    process allocates.
    """
    ledger, counter = counted.ledger, counted.counter
    tolerance = TOLERANCE * size
    copied = counter["copied_bytes"] + counter["moved_bytes"]
    allocated = counter["allocated_bytes"] + counter["mapped_bytes"] - freed
    expected = ledger["copied"] - (size if how == BY_KERNEL else 0)
    return abs(copied - expected) <= tolerance and allocated <= tolerance + ONCE_BYTES * statements


def check(counted: Counted, size: int, how: str, n_texts: int = N_ROWS, parts: int = 1, freed: int = 0) -> None:
    """Checks the promise with the ledger, and that ledger and copy counter agree."""
    check_ledger(counted, size, how, n_texts, parts)
    assert agree(counted, size, freed=freed, how=how), counted


def check_red(counted: Counted, size: int, how: str, n_texts: int = N_ROWS, parts: int = 1) -> None:
    """Checks that the copy counter detects a planted fault, which the ledger does not count."""
    check_ledger(counted, size, how, n_texts, parts)
    assert not agree(counted, size, how=how), counted


def sqlite_code(module: str) -> str:
    """The address range of SQLite's code in the module, as START-END in hexadecimal.

    The copy counter excludes it, since SQLite's internal copies are not onecopy's.
    """
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
    """Runs processes with the copy counter.

    They load the installed extension module, or a build with planted faults of which one is active.
    """

    def __init__(self, counter: Path, module: str | None = None, fault: str = "") -> None:
        import onecopy._core

        self.module = module or onecopy._core.__file__
        self._exclude = sqlite_code(self.module)
        self._counter = counter
        self._fault = fault

    def with_fault(self, fault: str) -> Setting:
        """The same setting with another active fault."""
        return Setting(self._counter, self.module, fault)

    def environment(self, dump: Path | None = None) -> dict[str, str]:
        """The environment variables of a process with the copy counter.

        The process and its children write their counts into the directory ``dump`` when they exit.
        """
        environment = os.environ | {
            "LD_PRELOAD": str(self._counter),
            "COPY_COUNTER_MODULE": Path(self.module).name,
            "COPY_COUNTER_EXCLUDE": self._exclude,
            "PYTHONPATH": f"{Path(self.module).parents[1]}:{ROOT}",
            "PYTHONWARNINGS": "ignore",  # Drivers' notices at connect are not tested here.
            "ONECOPY_PLANTED": self._fault,
        }
        if not sysconfig.get_config_var("Py_GIL_DISABLED"):
            # A free-threaded interpreter has only its own allocator.
            environment["PYTHONMALLOC"] = "malloc"
        if dump is not None:
            environment["COPY_COUNTER_DUMP"] = str(dump)
        return environment

    def count(self, path: str, target: str, sql: str) -> Counted:
        """Runs one path of `tests.copies.paths` in a process with the copy counter; returns the
        counts."""
        return self.run("tests.copies.paths", path, target, sql)

    def run(self, module: str, *arguments: str) -> Counted:
        """Runs a module that prints its counts, in a process with the copy counter; returns the
        counts."""
        command = [sys.executable, "-m", module, *arguments]
        done = subprocess.run(
            command, env=self.environment(), cwd=ROOT, capture_output=True, text=True, check=False, timeout=120
        )
        assert done.returncode == 0, done.stderr
        return Counted(**json.loads(done.stdout))


def dumped(directory: Path) -> dict[str, int]:
    """The sum of the counts that all processes have written into ``directory``."""
    total: dict[str, int] = {}
    files: Iterable[Path] = directory.glob("*.json")
    for file in files:
        for name, n in json.loads(file.read_text(encoding="ascii")).items():
            total[name] = total.get(name, 0) + n
    assert total, "no process has left its counts"
    return total


def printed_ledger(stderr: str) -> tuple[dict[str, int], dict[str, dict[str, int]]]:
    """Parses the table that `--ledger` prints: returns its total, and the counts of each stage."""
    rows: dict[str, Any] = {}
    for name, *counts in re.findall(r"^(\w+) +(\d+) +(\d+) +(\d+) +(\d+)$", stderr, re.M):
        rows[name] = dict(zip(("taken", "converted", "copied", "conversions"), map(int, counts), strict=True))
    assert "total" in rows, stderr
    return rows.pop("total"), rows
