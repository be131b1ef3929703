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
    #: Modules of `std` that the room keeps out of.
    never: str = ""


#: From left to right. A new arrow, crate or fence is a decision: it is made here and in ARCHITECTURE.md together.
ROOMS = {
    "text": Room("", "simdutf encoding_rs chardetng", ("arch", "sink.rs", "chunk.rs"), "fs net io process os"),
    "wire": Room("text", "itoa zmij base64 httpdate", (), "fs net process os"),
    "files": Room("text", "rustix"),
    "rows": Room(
        "text wire files",
        "libloading libsqlite3-sys percent-encoding regex itoa libc postgres-protocol bytes sha2 rustix rustls",
        ("odbc", "sqlite", "arrow_c", "fork", "pages"),
    ),
    "serve": Room("text wire files", "libc rustls ring httpdate tempfile mime_guess percent-encoding", ("sys",)),
    "transfer": Room("files", "blake3 rustix rustls ring rcgen"),
    "gateway": Room("text wire files rows serve", "serde toml percent-encoding"),
    "capi": Room("text", "", ("abi",)),
    "cli": Room("text wire files rows serve transfer gateway", "clap indicatif unicode-width signal-hook console"),
    "py": Room("text wire files rows serve transfer gateway cli", "pyo3 pyo3-build-config libc num-bigint", ("raw",)),
}
#: The modules of the Python package, each of which may use those before it. Who adds one gives it its place.
MODULES = [
    "_core",
    "errors",
    "ahead",
    "text",
    "json",
    "bson",
    "dbapi",
    "rows",
    "longs",
    "sizes",
    "tsql",
    "procedures",
    "keeper",
    "pool",
    "aio",
    "compat",
    "observe",
    "static",
    "_wsgi",
    "server",
    "systemd",
    "workers",
    "run",
    "gunicorn",
    "web",
    "__init__",
    "sqlalchemy",
    "__main__",
]
#: The one foreign package that a file of `onecopy` may import: each is imported when its framework is there.
FOREIGN = {
    "web/_flask.py": "flask",
    "web/_django.py": "django",
    "web/_falcon.py": "falcon",
    "web/_starlette.py": "starlette",
    "gunicorn.py": "gunicorn",
    "compat/_bson_names.py": "bson",
}
#: What a file may take from type checkers, for them alone.
TYPING_ONLY = ("from _typeshed import ReadableBuffer", "from typing_extensions import disjoint_base")
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
    source = code(rust)
    found = set(re.findall(r"\bonecopy_(\w+)\b", source))
    # A module of ours may have a crate's name: `use onecopy_wire::{base64, …}`.
    ours = " ".join(re.findall(r"\buse\s+(?:onecopy_\w+|crate|self|super)::([^;]*);", source))
    for crate in _ALL_CRATES:
        name = crate.replace("-", "_")
        if re.search(rf"(?<![\w:]){name}::", source) and not re.search(rf"\b{name}\b", ours):
            found.add(crate)
    return found


def unsafe_lines(rust: str) -> list[int]:
    """The lines, from 1, whose code says `unsafe` or declares foreign functions."""
    lines = code(rust).split("\n")
    return [number for number, line in enumerate(lines, 1) if re.search(r"\bunsafe\b", line)]


def io_modules(rust: str) -> set[str]:
    """The modules of `std` that a source file names, also inside `use std::{…}`."""
    # An address as a value is no socket.
    source = re.sub(r"\bstd::net::Ip\w*", "", code(rust))
    found = set(re.findall(r"\bstd::(\w+)", source))
    for group in re.findall(r"\bstd::\{([^;]*)\}\s*;", source):
        found |= set(re.findall(r"(?:^|,)\s*(\w+)", group))
    return found


def undocumented(rust: str) -> list[int]:
    """The lines, from 1, with an `unsafe` block, impl or `extern` that has no comment with `SAFETY:` directly above it
    (attributes may stand between), or one that sends the reader elsewhere; or an `unsafe fn` without a `# Safety` in its
    docs. Methods of a trait are excused: its declaration lists their duties. (clippy lets the comment stand above the
    whole statement, and does not look at functions that are private.)"""
    lines, bare = rust.split("\n"), code(rust).split("\n")
    wrong: list[int] = []
    depth, trait_impls = 0, list[int]()
    for i, line in enumerate(bare):
        above = []
        for j in range(i - 1, max(-1, i - 16), -1):
            if not lines[j].strip():
                break
            above.append(lines[j])
        if re.search(r"\bunsafe\s+(?:extern\s+)?fn\s+[\w$]", line):
            documented = any("# Safety" in other for other in above if other.lstrip().startswith("///"))
            if not documented and not trait_impls and not _in_macro(bare, i):
                wrong.append(i + 1)
        elif re.search(r"\bunsafe\s*(\{|impl\b|extern\s*\{)", line) and not _facts(lines[:i]):
            wrong.append(i + 1)
        if re.match(r"\s*(?:unsafe\s+)?impl\b[^{;]*\bfor\b[^;]*\{", line):
            trait_impls.append(depth)
        depth += line.count("{") - line.count("}")
        while trait_impls and depth <= trait_impls[-1]:
            trait_impls.pop()
    return wrong


def _facts(lines: list[str]) -> bool:
    """Whether `lines` end with a comment that says `SAFETY:` and what the facts are, not where else they stand."""
    comment: list[str] = []
    for line in (line.strip() for line in reversed(lines)):
        if line.startswith("//"):
            comment.insert(0, line.lstrip("/ "))
        elif comment or not re.fullmatch(r"#\[.*\]", line):
            break
    text = " ".join(comment)
    return re.search(r"\bSAFETY: (?!as (above|below)\b)\S", text) is not None


def _in_macro(bare: list[str], at: int) -> bool:
    """Whether line `at` stands in a `macro_rules!`, whose methods belong to the trait it helps to implement."""
    for line in reversed(bare[:at]):
        if re.match(r"macro_rules!", line):
            return True
        if line.startswith("}"):
            return False
    return False


def python_modules_used(source: str) -> set[str]:
    """The modules of the package that a module imports, by their names inside it."""
    found = set()
    for node in ast.walk(ast.parse(source)):
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module == "onecopy":
            # `from onecopy import text` is the module, `from onecopy import connect` the package itself.
            names = [f"onecopy.{alias.name}" if alias.name in MODULES else "onecopy" for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            names = [node.module]
        elif isinstance(node, ast.ImportFrom) and node.level:
            names = [f"onecopy.{node.module}"] if node.module else [f"onecopy.{alias.name}" for alias in node.names]
        for name in names:
            head, _, rest = name.partition(".")
            if head == "onecopy":
                found.add(rest.partition(".")[0] or "__init__")
    return found


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
        if not path.name.endswith("tests.rs") and (names := uses(source) & (set(ROOMS) | _ALL_CRATES) - allowed):
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


@pytest.mark.parametrize("room", [name for name, room in ROOMS.items() if room.never])
def test_a_room_keeps_out_of_the_world_that_is_not_its_own(room: str) -> None:
    wrong = {}
    for path in _sources(room):
        source = path.read_text(encoding="utf-8").split("#[cfg(test)]\nmod ")[0]
        if not path.name.endswith("tests.rs") and (names := io_modules(source) & set(ROOMS[room].never.split())):
            wrong[str(path.relative_to(ROOT))] = names
    assert wrong == {}


@pytest.mark.parametrize("place", [*(f"crates/{room}" for room in ROOMS), "fuzz", "tests"])
def test_every_unsafe_says_what_makes_it_sound(place: str) -> None:
    wrong = {}
    for path in sorted((ROOT / place).rglob("*.rs")):
        # What a build leaves, where cargo-fuzz is run by hand.
        if "target" in path.relative_to(ROOT).parts:
            continue
        if lines := undocumented(path.read_text(encoding="utf-8")):
            wrong[str(path.relative_to(ROOT))] = lines
    assert wrong == {}


def test_python_modules_use_those_before_them() -> None:
    wrong = {}
    for path in sorted((ROOT / "python" / "onecopy").rglob("*.py")):
        name = path.relative_to(ROOT / "python" / "onecopy").with_suffix("").parts[0]
        assert name in MODULES, f"`{name}` has no place among the modules\nGive it one in MODULES of this file."
        allowed = set(MODULES[: MODULES.index(name)]) | {name}
        if against := python_modules_used(path.read_text(encoding="utf-8")) - allowed:
            wrong[path.name] = against
    assert wrong == {}


def test_the_python_package_imports_nothing_but_itself_and_the_standard_library() -> None:
    known = set(sys.stdlib_module_names) | {"onecopy"}
    wrong = {}
    files = sorted((ROOT / "python").rglob("*.py*"))
    assert files, "python/ has no source"
    for path in (file for file in files if file.suffix in (".py", ".pyi")):
        names = set()
        tree = ast.parse(path.read_text(encoding="utf-8"))
        for statement in tree.body:
            if isinstance(statement, ast.If) and ast.unparse(statement.test) == "TYPE_CHECKING":
                statement.body = [stub for stub in statement.body if ast.unparse(stub) not in TYPING_ONLY]
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                names |= {alias.name.split(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
                names.add(node.module.split(".")[0])
        # Type checkers carry `typing_extensions` and `_typeshed` themselves; stubs may name them, and what they alone read.
        known_here = known | {"typing_extensions", "_typeshed"} if path.suffix == ".pyi" else known
        if path.parent == ROOT / "python" / "onecopy" / "sqlalchemy":
            known_here = known | {"sqlalchemy"}  # SQLAlchemy itself loads it.
        known_here |= {FOREIGN.get(path.relative_to(ROOT / "python" / "onecopy").as_posix(), "onecopy")}
        if foreign := names - known_here:
            wrong[str(path.relative_to(ROOT))] = foreign
    assert wrong == {}


# The tests above must be able to fail: each of their readers is shown a fault.


def test_a_planted_dependency_is_seen() -> None:
    manifest = '[package]\nname = "x"\n[dependencies]\npyo3.workspace = true\n[dependencies.tokio]\nversion = "1"\n'
    assert dependencies(manifest + '[dev-dependencies]\nproptest = "1"\n') == {"pyo3", "tokio"}


def test_a_planted_import_is_seen_and_a_comment_is_not() -> None:
    assert uses('use onecopy_rows::Cell; // onecopy_py\nlet s = "pyo3::x"; libc::read();') == {"rows", "libc"}


def test_a_module_of_ours_with_the_name_of_a_crate_is_no_crate() -> None:
    assert uses("use onecopy_wire::{WriteError, base64};\nlet c = base64::Carry::new();") == {"wire"}
    assert uses("use crate::json;\nlet c = base64::encode(b);") == {"base64"}


def test_a_planted_unsafe_is_seen_and_an_attribute_is_not() -> None:
    rust = '#![deny(unsafe_code)]\n// unsafe\nlet a = "unsafe";\nlet c = \'"\';\nunsafe { f() }\nunsafe extern "C" {}\n'
    assert unsafe_lines(rust) == [5, 6]


def test_a_planted_undocumented_unsafe_is_seen() -> None:
    rust = (
        "fn a() {\n    unsafe { f() }\n}\n\n// SAFETY: fine.\nunsafe impl Send for A {}\n\nunsafe impl Sync for A {}\n"
    )
    assert undocumented(rust) == [2, 8]
    rust = "// SAFETY: x.\nlet a =\n    unsafe { f() };\nlet b =\n    // SAFETY: y,\n    // z.\n    #[a]\n    unsafe { g() };\n"
    assert undocumented(rust) == [3]
    rust = '// SAFETY: as above.\nunsafe { f() };\n\n// Bare.\nunsafe extern "C" {}\n\n// Safe.\n// SAFETY: x.\nunsafe {}\n'
    assert undocumented(rust) == [2, 5]
    rust = "/// # Safety\n/// None.\npub unsafe fn a() {}\n\n/// Bare.\nunsafe fn b() {}\n"
    assert undocumented(rust) == [6]
    rust = "// SAFETY: x.\nunsafe impl T for A {\n    unsafe fn duty(&self) {}\n}\n\nunsafe fn after() {}\n"
    assert undocumented(rust) == [6]


def test_a_planted_use_of_std_is_seen() -> None:
    assert io_modules("use std::{fmt, net::TcpStream};\nlet f = std::fs::read(p); // std::io\n") == {"fmt", "net", "fs"}


def test_a_planted_import_between_python_modules_is_seen() -> None:
    source = (
        "import onecopy\nfrom onecopy import web, connect\nfrom onecopy.rows import x\nfrom . import text\nimport os\n"
    )
    assert python_modules_used(source) == {"__init__", "web", "rows", "text"}


@pytest.mark.parametrize(
    ("check", "where", "fault"),
    [
        (
            "a_room_depends_on_nothing_but_its_list",
            "crates/{}/Cargo.toml",
            "[dependencies]\nonecopy-py.workspace = true\n",
        ),
        ("no_source_file_names_a_room_or_crate_against_the_arrows", "crates/{}/src/a.rs", "use onecopy_py::x;\n"),
        ("unsafe_stands_behind_its_fence", "crates/{}/src/a.rs", "// SAFETY: none.\nunsafe fn f() {}\n"),
        ("every_unsafe_says_what_makes_it_sound", "crates/{}/src/a.rs", "fn f() { unsafe { g() } }\n"),
        ("a_room_keeps_out_of_the_world_that_is_not_its_own", "crates/{}/src/a.rs", "use std::net::TcpStream;\n"),
        ("a_room_refuses_unsafe_outside_its_fence", "crates/{}/src/lib.rs", "//! #![forbid(unsafe_code)]\n"),
        ("python_modules_use_those_before_them", "python/onecopy/rows.py", "import onecopy.web\n"),
        (
            "the_python_package_imports_nothing_but_itself_and_the_standard_library",
            "python/onecopy/rows.py",
            "import numpy\n",
        ),
    ],
)
def test_a_tree_with_a_fault_turns_its_test_red(
    check: str, where: str, fault: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for room in ROOMS:
        path = tmp_path / where.format(room)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(fault, encoding="utf-8")
    monkeypatch.setitem(globals(), "ROOT", tmp_path)
    test = globals()[f"test_{check}"]
    arguments = ["crates/wire" if check.startswith("every_unsafe") else "wire"] if where.startswith("crates") else []
    with pytest.raises(AssertionError):
        test(*arguments)


def test_a_database_is_one_directory_and_its_registration() -> None:
    """The database of the tests is what a new one has to write: it is named by two files outside its directory."""
    source = ROOT / "crates" / "rows" / "src"
    assert sum(len(path.read_text(encoding="utf-8").splitlines()) for path in (source / "memory").glob("*.rs")) <= 200
    named = {
        path.relative_to(ROOT).as_posix()
        for room in ROOMS
        for path in (ROOT / "crates" / room / "src").rglob("*.rs")
        if re.search(r"\bmemory::|=> memory\b|\bmod memory\b|\bMemory => ", code(path.read_text(encoding="utf-8")))
        and "memory" not in path.relative_to(ROOT).parts
        and re.search(r"memory-database", path.read_text(encoding="utf-8"))
    }
    assert named == {"crates/rows/src/connect.rs", "crates/rows/src/lib.rs"}
    # No code matches on one database: a new one would be forgotten there.
    matching = [
        path.relative_to(ROOT).as_posix()
        for room in ROOMS
        for path in (ROOT / "crates" / room / "src").rglob("*.rs")
        if re.search(r"\bStatement::(?:Sqlite|Odbc)\b", code(path.read_text(encoding="utf-8")))
    ]
    assert matching == [], "code that is generic over databases is a StatementVisitor"
