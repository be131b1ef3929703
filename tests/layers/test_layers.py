"""The arrows of ARCHITECTURE.md, held by a test: who uses whom, which crates a room may take, where `unsafe` may stand."""

from __future__ import annotations

import ast
import re
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).resolve().parents[2]


class Room(NamedTuple):
    """What a room may use, and the files or folders of its `src` that may say `unsafe`."""

    rooms: str
    crates: str
    fences: tuple[str, ...] = ()


#: From left to right. A new arrow, crate or fence is a decision: it is made here and in ARCHITECTURE.md together.
ROOMS = {
    "text": Room("", "simdutf encoding_rs chardetng", ("arch", "sink.rs", "chunk.rs")),
    "wire": Room("text", "itoa zmij base64"),
    "files": Room("text", "blake3 libc", ("sys",)),
    "rows": Room(
        "text wire files",
        "libloading libsqlite3-sys percent-encoding itoa libc",
        ("block", "odbc", "sqlite", "arrow.rs"),
    ),
    "serve": Room("text wire files", "libc rustls ring httpdate", ("sys",)),
    "gateway": Room("text wire files rows serve", "serde toml percent-encoding"),
    "cli": Room("text wire files rows serve gateway", "clap indicatif unicode-width libc"),
    "py": Room("text wire files rows serve gateway cli", "pyo3 libc", ("raw",)),
}
_ALL_CRATES = {crate for room in ROOMS.values() for crate in room.crates.split()}


def code(rust: str) -> str:
    """Rust without comments, strings and characters, its lines kept: what the compiler would call code."""
    kept = re.compile(
        r"""//[^\n]* | /\*.*?\*/ | b?r(\#*)".*?"\1 | b?"(?:\\.|[^"\\])*" | b?'(?:\\(?:x..|u\{[^}]*\}|.)|[^'\\])'""",
        re.S | re.X,
    )
    return kept.sub(lambda match: "\n" * match[0].count("\n"), rust)


def dependencies(manifest: str) -> set[str]:
    """The names in `[dependencies]` and `[target.….dependencies]` of a Cargo.toml; not those of tests."""
    names, inside = set(), False
    for line in manifest.splitlines():
        if line.startswith("["):
            table = re.fullmatch(r"\[(?:target\..*\.)?(build-)?dependencies(?:\.([\w-]+))?\]", line.strip())
            inside = table is not None and table[2] is None
            if table is not None and table[2]:
                names.add(table[2])
        elif inside and (match := re.match(r"([\w-]+)\s*[.=]", line)):
            names.add(match[1])
    return names


def uses(rust: str) -> set[str]:
    """The rooms and outside crates that a source file names as paths."""
    found = set(re.findall(r"\bonecopy_(\w+)\b", code(rust)))
    for crate in _ALL_CRATES:
        if re.search(rf"(?<![\w:]){crate.replace('-', '_')}::", code(rust)):
            found.add(crate)
    return found


def unsafe_lines(rust: str) -> list[int]:
    """The lines, from 1, whose code says `unsafe` or declares foreign functions."""
    lines = code(rust).split("\n")
    return [number for number, line in enumerate(lines, 1) if re.search(r"\bunsafe\b", line)]


def _sources(room: str) -> list[Path]:
    return sorted((ROOT / "crates" / room / "src").rglob("*.rs"))


def test_every_crate_is_a_room_with_arrows() -> None:
    assert {path.parent.name for path in ROOT.glob("crates/*/Cargo.toml")} == set(ROOMS)


@pytest.mark.parametrize("room", ROOMS)
def test_a_room_depends_on_nothing_but_its_list(room: str) -> None:
    taken = dependencies((ROOT / "crates" / room / "Cargo.toml").read_text(encoding="utf-8"))
    allowed = {f"onecopy-{other}" for other in ROOMS[room].rooms.split()} | set(ROOMS[room].crates.split())
    assert taken - allowed == set()


@pytest.mark.parametrize("room", ROOMS)
def test_no_source_file_names_a_room_or_crate_against_the_arrows(room: str) -> None:
    allowed = {*ROOMS[room].rooms.split(), *ROOMS[room].crates.split(), room}
    wrong = {}
    for path in _sources(room):
        # A test at the end of a file may compare with an oracle.
        source = path.read_text(encoding="utf-8").split("#[cfg(test)]\nmod ")[0]
        if path.name != "tests.rs" and (names := uses(source) & (set(ROOMS) | _ALL_CRATES) - allowed):
            wrong[str(path.relative_to(ROOT))] = names
    assert wrong == {}


@pytest.mark.parametrize("room", ROOMS)
def test_unsafe_stands_behind_its_fence(room: str) -> None:
    base = ROOT / "crates" / room / "src"
    outside = {}
    for path in _sources(room):
        inside = path.relative_to(base).parts[0] in {*ROOMS[room].fences, *(f"{f}.rs" for f in ROOMS[room].fences)}
        if not inside and (lines := unsafe_lines(path.read_text(encoding="utf-8"))):
            outside[str(path.relative_to(ROOT))] = lines
    assert outside == {}


@pytest.mark.parametrize("room", ROOMS)
def test_a_room_refuses_unsafe_outside_its_fence(room: str) -> None:
    word = "deny" if ROOMS[room].fences else "(?:deny|forbid)"
    if room == "wire":
        word = "forbid"
    lib = (ROOT / "crates" / room / "src" / "lib.rs").read_text(encoding="utf-8")
    assert re.search(rf"#!\[{word}\(unsafe_code\)\]", code(lib)), (
        f"crates/{room}/src/lib.rs does not {word} unsafe code"
    )


def test_the_python_package_imports_nothing_but_itself_and_the_standard_library() -> None:
    known = set(sys.stdlib_module_names) | {"onecopy"}
    wrong = {}
    files = sorted((ROOT / "python").rglob("*.py*"))
    assert files, "python/ has no source"
    for path in (file for file in files if file.suffix in (".py", ".pyi")):
        names = set()
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                names |= {alias.name.split(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
                names.add(node.module.split(".")[0])
        # Type checkers carry `typing_extensions` and `_typeshed` themselves; stubs may name them.
        if foreign := names - known - ({"typing_extensions", "_typeshed"} if path.suffix == ".pyi" else set()):
            wrong[str(path.relative_to(ROOT))] = foreign
    assert wrong == {}


# The tests above must be able to fail: each of their readers is shown a fault.


def test_a_planted_dependency_is_seen() -> None:
    manifest = '[package]\nname = "x"\n[dependencies]\npyo3.workspace = true\n[dependencies.tokio]\nversion = "1"\n'
    assert dependencies(manifest + '[dev-dependencies]\nproptest = "1"\n') == {"pyo3", "tokio"}


def test_a_planted_import_is_seen_and_a_comment_is_not() -> None:
    assert uses('use onecopy_rows::Cell; // onecopy_py\nlet s = "pyo3::x"; libc::read();') == {"rows", "libc"}


def test_a_planted_unsafe_is_seen_and_an_attribute_is_not() -> None:
    rust = '#![deny(unsafe_code)]\n// unsafe\nlet a = "unsafe";\nlet c = \'"\';\nunsafe { f() }\nunsafe extern "C" {}\n'
    assert unsafe_lines(rust) == [5, 6]
