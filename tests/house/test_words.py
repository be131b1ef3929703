"""Idioms that the glossary in CONTRIBUTING.md replaces, counted by directory; no count may
increase.

`python tests/house/test_words.py` prints the current counts, and `--list` prints each line.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SUFFIXES = (".rs", ".py", ".pyi", ".java", ".h", ".md", ".toml")

#: Words of space for time or order, verbs of people for things, metaphors.
IDIOMS = re.compile(
    r"\b(behind|in front|stands?|stood|tells?|told|asked|alone|of late|mend(s|ed|ing)?|beside|broken off"
    r"|where there (is|are|was)|turned round|for ever|twins?|witness(es)?|rooms?|a place of its own|in place of)\b"
    r"|\b(is|are|that is) no [a-z]*(JSON|BSON|text|number|UUID|date|name|address|document)\b"
    r"|\bno (JSON|BSON|UTF-8)\b"
    r"|(^|[\s/*#!]|\. )(What|Whether|Who)\b(?![^.\n]*\?)"
)

#: Literal meanings, which are removed from a line before it is counted.
LITERAL = re.compile(
    r"\.tell\(|\btell\(\)|`tell`|\bdef tell\b"  # The position of a file.
    r"|ONECOPY_NO_ROOM"
)

#: Directory or file -> the largest allowed number of idioms, and of lines over 120 columns.
MOST = {
    "clippy.toml": (0, 1),
    "crates/capi": (0, 1),
    "crates/cli": (0, 7),
    "crates/files": (0, 1),
    "crates/gateway": (0, 3),
    "crates/py": (3, 0),
    "crates/rows": (0, 5),
    "crates/serve": (0, 4),
    "crates/transfer": (0, 4),
    "crates/wire": (0, 17),
    "docs/guide": (2, 6),
    "docs/reference": (0, 1),
    "tests": (0, 1),
}


def _files() -> list[str]:
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True)
    skipped = ("fuzz/", "benches/record", "tests/house/test_words.py", "crates/cli/tests/snapshots/")
    return [name for name in listed.stdout.splitlines() if name.endswith(SUFFIXES) and not name.startswith(skipped)]


def group(name: str) -> str:
    """The directory whose count includes the file ``name``."""
    parts = name.split("/")
    return "/".join(parts[:2]) if parts[0] in ("crates", "docs") and len(parts) > 2 else parts[0]


def idioms(line: str) -> int:
    """The number of idioms in a line; quoted literals are not counted."""
    return len(IDIOMS.findall(LITERAL.sub("", line)))


def is_long(line: str) -> bool:
    """Returns true for a line of more than 120 columns that is not a row of a table."""
    return len(line) > 120 and not line.lstrip().startswith("|")


def counts() -> dict[str, list[int]]:
    """The numbers of idioms and of long lines, by directory."""
    found: dict[str, list[int]] = {}
    for name in _files():
        file = ROOT / name
        if not file.is_file():
            continue
        here = found.setdefault(group(name), [0, 0])
        for line in file.read_text(encoding="utf-8").splitlines():
            here[0] += idioms(line)
            here[1] += is_long(line)
    return found


def test_no_directory_has_more_idioms_or_long_lines_than_before() -> None:
    found = counts()
    assert len(found) > 20
    more = {
        name: here
        for name, here in found.items()
        if any(n > most for n, most in zip(here, MOST.get(name, (0, 0)), strict=True))
    }
    assert more == {}, "see the glossary in CONTRIBUTING.md; `python tests/house/test_words.py --list` shows each line"


def test_each_idiom_is_counted_and_literal_meanings_are_not() -> None:
    assert idioms("/// What stands behind the room is told.") == 5
    assert idioms("the text is no JSON; mend it in place of that") == 3
    assert idioms("file.tell() returns the position; `tell` does too") == 0
    assert idioms("What is this?") == 0
    assert is_long("x" * 121)
    assert not is_long("| " + "x" * 121)


def _main(arguments: list[str]) -> None:
    if arguments == ["--list"]:
        for name in _files():
            for number, line in enumerate((ROOT / name).read_text(encoding="utf-8").splitlines(), 1):
                if idioms(line):
                    print(f"{name}:{number}: {line.strip()[:140]}")
        return
    for name, (n_idioms, n_long) in sorted(counts().items()):
        print(f'    "{name}": ({n_idioms}, {n_long}),')


if __name__ == "__main__":
    _main(sys.argv[1:])
