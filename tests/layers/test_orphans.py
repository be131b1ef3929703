"""Each source file in a crate's folder is part of the crate: a `mod`, a `#[path]` or an `include!`
names it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.layers.circles import _NOT_CODE, _end_of_block

ROOT = Path(__file__).resolve().parents[2]
CRATES = sorted(path.parent.name for path in ROOT.glob("crates/*/Cargo.toml"))

_MODULE = re.compile(
    r'(?:#\s*\[\s*path\s*=\s*"([^"]*)"\s*\]\s*(?:#\s*\[[^\]]*\]\s*)*)?'
    r"(?:\bpub(?:\s*\([^)]*\))?\s+)?\bmod\s+(\w+)\s*([;{])"
)
_INCLUDE = re.compile(r'\binclude!\s*\(\s*"([^"]*)"')
_NAMES_A_FILE = re.compile(r"(?:\bpath\s*=|\binclude!\s*\()\s*$")


def _code(file: Path) -> str:
    """The source without comments and strings, but with those strings that name a source file."""
    text = file.read_text(encoding="utf-8")

    def kept(match: re.Match[str]) -> str:
        return match[0] if _NAMES_A_FILE.search(text, max(match.start() - 40, 0), match.start()) else ""

    return _NOT_CODE.sub(kept, text)


def reached(src: Path) -> set[Path]:
    """The source files that are compiled, directly or indirectly, from the root files of a crate or
    of its tests."""
    found: set[Path] = set()

    def add_file(file: Path, folder: Path) -> None:
        if file.is_file() and file.resolve() not in found:
            found.add(file.resolve())
            add_block(_code(file), folder, file)

    def add_block(code: str, folder: Path, file: Path) -> None:
        position = 0
        while match := _MODULE.search(code, position):
            path, name, what = match.groups()
            position = match.end()
            if what == "{":
                position = _end_of_block(code, match.start(3))
                add_block(code[match.end() : position - 1], folder / name, file)
            elif path is not None:
                add_file(file.parent / path, (file.parent / path).parent)
            else:
                add_file(folder / f"{name}.rs", folder / name)
                add_file(folder / name / "mod.rs", folder / name)
        for include in _INCLUDE.findall(code):
            add_file(file.parent / include, file.parent)

    for root in [src / "lib.rs", src / "main.rs", *src.glob("bin/*.rs")]:
        add_file(root, root.parent)
    return found


def orphans(src: Path) -> list[str]:
    """The source files below ``src`` that no other file of the crate names."""
    files = {file.resolve() for file in src.rglob("*.rs")}
    return sorted(file.relative_to(src.resolve()).as_posix() for file in files - reached(src))


@pytest.mark.parametrize("name", CRATES)
def test_each_source_file_is_part_of_its_crate(name: str) -> None:
    src = ROOT / "crates" / name / "src"
    assert reached(src), f"crates/{name}/src has no root"
    assert orphans(src) == []


def test_only_a_planted_orphan_is_found(tmp_path: Path) -> None:
    sources = {
        "lib.rs": 'mod a; pub(crate) mod b { mod c; } #[cfg(test)]\n#[path = "odd.rs"]\nmod tests; // mod orphan;',
        "a.rs": 'mod inner; include!("made.rs"); const TEXT: &str = "mod orphan; }";',
        "a/inner/mod.rs": "mod leaf;",
        "a/inner/leaf.rs": "",
        "b/c.rs": "",
        "odd.rs": "",
        "made.rs": "",
        "orphan.rs": "",
        "a/orphan.rs": "",
    }
    for name, source in sources.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(source, encoding="utf-8")
    assert orphans(tmp_path) == ["a/orphan.rs", "orphan.rs"]
