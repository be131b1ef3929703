"""Source files have fewer than 500 lines, except those that are listed in this file."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
MOST_LINES = 500
#: Suffixes of source files; data, records and lock files may have any length.
SOURCES = {".rs", ".py", ".pyi", ".c", ".h", ".java", ".sh", ".md", ".toml", ".css", ".html"}
#: Longer files that are still to be split. The list may only shrink.
LONGER: set[str] = {
    "python/onecopy/_core.pyi",  # One module has one stub.
}


def sources() -> list[str]:
    """The source files that git tracks, and new ones that it does not ignore."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    return [n for n in listed.stdout.splitlines() if Path(n).suffix in SOURCES and (ROOT / n).exists()]


def too_long(names: list[str]) -> dict[str, int]:
    """The files that exceed the limit, with their number of lines."""
    lines = {
        name: len((ROOT / name).read_text(encoding="utf-8").splitlines()) for name in names if (ROOT / name).exists()
    }
    return {name: n for name, n in lines.items() if n > MOST_LINES}


def test_no_file_is_over_the_limit() -> None:
    names = sources()
    assert len(names) > 200
    assert too_long([name for name in names if name not in LONGER]) == {}


def test_the_exceptions_are_still_needed() -> None:
    assert set(too_long(sorted(LONGER))) == LONGER, "take off the list what was split"


def test_a_long_file_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(globals(), "ROOT", tmp_path)
    (tmp_path / "a.rs").write_text("//\n" * 501)
    (tmp_path / "b.rs").write_text("//\n" * 500)
    assert too_long(["a.rs", "b.rs"]) == {"a.rs": 501}
