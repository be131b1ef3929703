"""Files stay short enough to be read as one idea: below 500 lines, but for those named here."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
MOST_LINES = 500
#: Sources by their endings; data, records and lock files are of any length.
SOURCES = {".rs", ".py", ".pyi", ".c", ".h", ".java", ".sh", ".md", ".toml", ".css", ".html"}
#: Longer ones that wait to be split. None is added; what is split leaves the list.
LONGER: set[str] = {
    "python/onecopy/_core.pyi",  # One module has one stub.
}


def sources() -> list[str]:
    """The source files that git tracks or would track."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    return [n for n in listed.stdout.splitlines() if Path(n).suffix in SOURCES and (ROOT / n).exists()]


def too_long(names: list[str]) -> dict[str, int]:
    """Those that have more lines than they may, with their number of lines."""
    lines = {
        name: len((ROOT / name).read_text(encoding="utf-8").splitlines()) for name in names if (ROOT / name).exists()
    }
    return {name: n for name, n in lines.items() if n > MOST_LINES}


def test_no_file_is_longer_than_it_may_be() -> None:
    names = sources()
    assert len(names) > 200
    assert too_long([name for name in names if name not in LONGER]) == {}


def test_the_exceptions_are_still_needed() -> None:
    assert set(too_long(sorted(LONGER))) == LONGER, "take off the list what was split"


def test_a_long_file_is_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(globals(), "ROOT", tmp_path)
    (tmp_path / "a.rs").write_text("//\n" * 501)
    (tmp_path / "b.rs").write_text("//\n" * 500)
    assert too_long(["a.rs", "b.rs"]) == {"a.rs": 501}
