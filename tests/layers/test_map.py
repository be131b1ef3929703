"""The code map of ARCHITECTURE.md lists each source file of the crates and of the Python
package."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
#: Files that declare the modules of their directory.
_LISTS = {"mod.rs", "lib.rs", "__init__.py"}

_HEADING = re.compile(r"^### `([^`]+)`(?: and `([^`]+)`)?", re.MULTILINE)
#: An entry is followed by its description, or by another entry; other names are references.
_PATH = re.compile(r"`([\w./]+(?:\.rs|\.pyi?|/))`[:,]")


def mapped(page: str) -> set[str]:
    """The paths in the rows of the code map, relative to the root of the repository."""
    found = set()
    _, _, text = page.partition("\n## The code map\n")
    text, _, _ = text.partition("\n## ")
    sections = _HEADING.split(text)[1:]
    for first, second, body in zip(sections[::3], sections[1::3], sections[2::3], strict=True):
        # A heading of two directories is one of their parent.
        folder = Path(first).parent if second else Path(first)
        for row in body.splitlines():
            if row.startswith("|"):
                found |= {f"{folder}/{name}" for name in _PATH.findall(row)}
    return found


def sources() -> set[str]:
    """The source files that the code map must list: those of the crates and of `python/onecopy`."""
    files = [*ROOT.glob("crates/*/src/**/*.rs"), *ROOT.glob("python/onecopy/**/*.py*")]
    paths = {path.relative_to(ROOT) for path in files if path.suffix in {".rs", ".py", ".pyi"}}
    return {str(path) for path in paths if "tests" not in path.parts and path.name != "tests.rs"}


def missing(names: set[str], entries: set[str]) -> list[str]:
    """The files for which the code map lists neither the file nor one of its directories."""
    folders = tuple(entry for entry in entries if entry.endswith("/"))
    return sorted(
        name for name in names if name not in entries and not name.startswith(folders) and Path(name).name not in _LISTS
    )


PAGE = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")


def test_each_source_file_is_in_the_code_map() -> None:
    assert len(sources()) > 500
    assert missing(sources(), mapped(PAGE)) == []


def test_each_entry_of_the_code_map_exists() -> None:
    assert sorted(entry for entry in mapped(PAGE) if not (ROOT / entry).exists()) == []


def test_a_file_without_an_entry_is_found() -> None:
    page = "\n## The code map\n\n### `a/src`: x\n\n| b | `c.rs`: y; `d/`, `e.rs`: z, not `f.rs` |\n"
    page += "\n## Next\n\n| `f.rs` |\n"
    entries = mapped(page)
    assert entries == {"a/src/c.rs", "a/src/d/", "a/src/e.rs"}
    assert missing({"a/src/c.rs", "a/src/d/g.rs", "a/src/f.rs", "a/src/mod.rs"}, entries) == ["a/src/f.rs"]
