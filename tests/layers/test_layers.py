"""The dependency rules of ARCHITECTURE.md: between crates, on external crates, and for `unsafe`."""

from __future__ import annotations

import ast
import re
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).resolve().parents[2]


class Rules(NamedTuple):
    """The crates on which a crate may depend, and the files or folders of `src` that may use
    `unsafe`."""

    crates: str
    external: str
    unsafe_modules: tuple[str, ...] = ()
    #: Modules of `std` that the crate must not use.
    forbidden_std: str = ""


#: In the order of ARCHITECTURE.md. A new dependency or unsafe module is a decision: change both
#: places.
CRATES = {
    "text": Rules("", "simdutf encoding_rs chardetng", ("arch", "sink.rs", "chunk.rs"), "fs net io process os"),
    "wire": Rules("text", "itoa zmij base64 httpdate", (), "fs net process os"),
    "files": Rules("text", "rustix"),
    "rows": Rules(
        "text wire files",
        "libloading libsqlite3-sys percent-encoding regex itoa libc postgres-protocol bytes sha2 rustix rustls pkcs8 "
        "corosensei tempfile",
        ("odbc", "sqlite", "arrow_c", "fork", "pages", "task", "deadlock"),
    ),
    "export": Rules(
        "text wire files rows",
        "arrow-array arrow-buffer arrow-data arrow-ipc arrow-schema parquet bytes flate2 zstd serde_json"
        " blake3 rustix tempfile",
        ("arrow_array",),
    ),
    "serve": Rules("text wire files", "libc rustls ring httpdate tempfile mime_guess percent-encoding", ("sys",)),
    "transfer": Rules("files", "blake3 rustix rustls ring rcgen"),
    "gateway": Rules("text wire files rows serve", "serde toml percent-encoding"),
    "capi": Rules("text", "", ("abi",)),
    "cli": Rules(
        "text wire files rows export serve transfer gateway", "clap indicatif unicode-width signal-hook console"
    ),
    "py": Rules(
        "text wire files rows export serve transfer gateway cli", "pyo3 pyo3-build-config libc num-bigint", ("raw",)
    ),
}
#: The modules of the Python package; each may import those before it. A new module is added here.
MODULES = [
    "_core",
    "errors",
    "_prefetch",
    "text",
    "json",
    "bson",
    "dbapi",
    "rows",
    "_long_values",
    "_input_sizes",
    "_tsql",
    "_callproc",
    "_pool_core",
    "pool",
    "aio",
    "compat",
    "observe",
    "static",
    "_wsgi",
    "server",
    "_systemd",
    "_supervisor",
    "_run",
    "parts",
    "_engine",
    "spark",
    "ray",
    "gunicorn",
    "web",
    "__init__",
    "sqlalchemy",
    "_bench",
    "__main__",
]
#: The external packages that a file of `onecopy` may import; it is imported only with them.
FOREIGN = {
    "web/_flask.py": "flask",
    "web/_django.py": "django",
    "web/_falcon.py": "falcon",
    "web/_starlette.py": "starlette",
    "gunicorn.py": "gunicorn",
    "compat/_bson_names.py": "bson",
    "_engine/_columns.py": "pyarrow",
    "_engine/_filters.py": "pyarrow pyspark",
    "_engine/_reading.py": "pyarrow",
    "_engine/_writing.py": "pyarrow",
    "ray.py": "pyarrow ray",
    "spark.py": "pyarrow pyspark",
}
#: Imports that a file may have for type checkers only.
TYPING_ONLY = ("from _typeshed import ReadableBuffer", "from typing_extensions import disjoint_base")
_ALL_EXTERNAL = {name for rules in CRATES.values() for name in rules.external.split()}


def code(rust: str) -> str:
    """The Rust source without comments, string and character literals; line numbers are
    unchanged."""
    kept = re.compile(
        r"""//[^\n]* | /\*.*?\*/ | b?r(\#*)".*?"\1 | b?"(?:\\.|[^"\\])*" | b?'(?:\\(?:x..|u\{[^}]*\}|.)|[^'\\])'""",
        re.S | re.X,
    )
    return kept.sub(lambda match: "\n" * match[0].count("\n"), rust)


def dependencies(manifest: str) -> set[str]:
    """The names of the dependencies in a Cargo.toml, also target-specific and build dependencies.

    Dev-dependencies are excluded.
    """
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
    """The crates, onecopy's and external ones, that the paths in a source file name."""
    source = code(rust)
    found = set(re.findall(r"\bonecopy_(\w+)\b", source))
    # One of our modules may have the name of an external crate: `use onecopy_wire::{base64, …}`.
    ours = " ".join(re.findall(r"\buse\s+(?:onecopy_\w+|crate|self|super)::([^;]*);", source))
    for crate in _ALL_EXTERNAL:
        name = crate.replace("-", "_")
        if re.search(rf"(?<![\w:]){name}::", source) and not re.search(rf"\b{name}\b", ours):
            found.add(crate)
    return found


def unsafe_lines(rust: str) -> list[int]:
    """The numbers (from 1) of the lines whose code contains `unsafe`."""
    lines = code(rust).split("\n")
    return [number for number, line in enumerate(lines, 1) if re.search(r"\bunsafe\b", line)]


def io_modules(rust: str) -> set[str]:
    """The modules of `std` that a source file names, also in `use std::{…}`."""
    # An address is a value, not I/O.
    source = re.sub(r"\bstd::net::Ip\w*", "", code(rust))
    found = set(re.findall(r"\bstd::(\w+)", source))
    for group in re.findall(r"\bstd::\{([^;]*)\}\s*;", source):
        found |= set(re.findall(r"(?:^|,)\s*(\w+)", group))
    return found


def undocumented(rust: str) -> list[int]:
    """The numbers (from 1) of the lines with `unsafe` code whose safety is not documented.

    An `unsafe` block, impl or `extern` requires a comment with `SAFETY:` directly above it.
    Attributes may be between them. The comment must not only refer to another comment. An `unsafe
    fn` requires a `# Safety` section, except for a method of a trait, whose declaration has the
    section. clippy is less strict: it accepts the comment above the whole statement, and does not
    check private functions.
    """
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
    """Returns true if `lines` end with a `SAFETY:` comment that does not only refer to another
    comment."""
    comment: list[str] = []
    for line in (line.strip() for line in reversed(lines)):
        if line.startswith("//"):
            comment.insert(0, line.lstrip("/ "))
        elif comment or not re.fullmatch(r"#\[.*\]", line):
            break
    text = " ".join(comment)
    return re.search(r"\bSAFETY: (?!as (above|below)\b)\S", text) is not None


def _in_macro(bare: list[str], at: int) -> bool:
    """Returns true if line `at` is inside a `macro_rules!`.

    Its methods belong to the trait that the macro implements.
    """
    for line in reversed(bare[:at]):
        if re.match(r"macro_rules!", line):
            return True
        if line.startswith("}"):
            return False
    return False


def python_modules_used(source: str) -> set[str]:
    """The modules of the package onecopy that a source file imports, without the prefix
    `onecopy.`."""
    found = set()
    for node in ast.walk(ast.parse(source)):
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module == "onecopy":
            # `from onecopy import text` is the module, `from onecopy import connect` the package
            # itself.
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


def _sources(crate: str) -> list[Path]:
    return sorted((ROOT / "crates" / crate / "src").rglob("*.rs"))


def test_every_crate_has_rules() -> None:
    assert {path.parent.name for path in ROOT.glob("crates/*/Cargo.toml")} == set(CRATES)


@pytest.mark.parametrize("crate", CRATES)
def test_a_crate_has_only_the_dependencies_in_its_rules(crate: str) -> None:
    found = dependencies((ROOT / "crates" / crate / "Cargo.toml").read_text(encoding="utf-8"))
    allowed = {f"onecopy-{other}" for other in CRATES[crate].crates.split()} | set(CRATES[crate].external.split())
    assert found - allowed == set()


@pytest.mark.parametrize("crate", CRATES)
def test_no_source_file_names_a_crate_outside_of_its_rules(crate: str) -> None:
    allowed = {*CRATES[crate].crates.split(), *CRATES[crate].external.split(), crate}
    wrong = {}
    for path in _sources(crate):
        # The unit tests at the end of a file may use other crates as an oracle.
        source = path.read_text(encoding="utf-8").split("#[cfg(test)]\nmod ")[0]
        if not path.name.endswith("tests.rs") and (names := uses(source) & (set(CRATES) | _ALL_EXTERNAL) - allowed):
            wrong[str(path.relative_to(ROOT))] = names
    assert wrong == {}


@pytest.mark.parametrize("crate", CRATES)
def test_unsafe_is_used_only_in_the_listed_modules(crate: str) -> None:
    base = ROOT / "crates" / crate / "src"
    modules = CRATES[crate].unsafe_modules
    outside = {}
    for path in _sources(crate):
        inside = path.relative_to(base).parts[0] in {*modules, *(f"{name}.rs" for name in modules)}
        if not inside and (lines := unsafe_lines(path.read_text(encoding="utf-8"))):
            outside[str(path.relative_to(ROOT))] = lines
    assert outside == {}


@pytest.mark.parametrize("crate", CRATES)
def test_each_crate_denies_unsafe_by_default(crate: str) -> None:
    word = "deny" if CRATES[crate].unsafe_modules else "(?:deny|forbid)"
    if crate == "wire":
        word = "forbid"
    lib = (ROOT / "crates" / crate / "src" / "lib.rs").read_text(encoding="utf-8")
    assert re.search(rf"#!\[{word}\(unsafe_code\)\]", code(lib)), (
        f"crates/{crate}/src/lib.rs does not {word} unsafe code"
    )


@pytest.mark.parametrize("crate", [name for name, rules in CRATES.items() if rules.forbidden_std])
def test_a_crate_does_no_io_that_its_rules_forbid(crate: str) -> None:
    wrong = {}
    for path in _sources(crate):
        source = path.read_text(encoding="utf-8").split("#[cfg(test)]\nmod ")[0]
        if not path.name.endswith("tests.rs") and (
            names := io_modules(source) & set(CRATES[crate].forbidden_std.split())
        ):
            wrong[str(path.relative_to(ROOT))] = names
    assert wrong == {}


@pytest.mark.parametrize("folder", [*(f"crates/{crate}" for crate in CRATES), "fuzz", "tests"])
def test_all_unsafe_code_is_documented(folder: str) -> None:
    wrong = {}
    for path in sorted((ROOT / folder).rglob("*.rs")):
        # Build output of cargo-fuzz.
        if "target" in path.relative_to(ROOT).parts:
            continue
        if lines := undocumented(path.read_text(encoding="utf-8")):
            wrong[str(path.relative_to(ROOT))] = lines
    assert wrong == {}


def test_python_modules_import_only_modules_before_them() -> None:
    wrong = {}
    for path in sorted((ROOT / "python" / "onecopy").rglob("*.py")):
        name = path.relative_to(ROOT / "python" / "onecopy").with_suffix("").parts[0]
        assert name in MODULES, f"`{name}` is not in MODULES\nAdd it there, after the modules that it imports."
        allowed = set(MODULES[: MODULES.index(name)]) | {name}
        if against := python_modules_used(path.read_text(encoding="utf-8")) - allowed:
            wrong[path.name] = against
    assert wrong == {}


def test_the_python_package_imports_only_the_standard_library() -> None:
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
        # Type checkers provide `typing_extensions` and `_typeshed`, so stubs may import them.
        known_here = known | {"typing_extensions", "_typeshed"} if path.suffix == ".pyi" else known
        if path.parent == ROOT / "python" / "onecopy" / "sqlalchemy":
            known_here = known | {"sqlalchemy"}  # These modules are loaded by SQLAlchemy.
        known_here |= set(FOREIGN.get(path.relative_to(ROOT / "python" / "onecopy").as_posix(), "").split())
        if foreign := names - known_here:
            wrong[str(path.relative_to(ROOT))] = foreign
    assert wrong == {}


# The checks above must be able to fail: each is run on an input with a fault.


def test_a_planted_dependency_is_found() -> None:
    manifest = '[package]\nname = "x"\n[dependencies]\npyo3.workspace = true\n[dependencies.tokio]\nversion = "1"\n'
    assert dependencies(manifest + '[dev-dependencies]\nproptest = "1"\n') == {"pyo3", "tokio"}


def test_a_planted_import_is_found_and_a_comment_is_ignored() -> None:
    assert uses('use onecopy_rows::Cell; // onecopy_py\nlet s = "pyo3::x"; libc::read();') == {"rows", "libc"}


def test_a_module_with_the_name_of_an_external_crate_is_not_a_dependency() -> None:
    assert uses("use onecopy_wire::{WriteError, base64};\nlet c = base64::Carry::new();") == {"wire"}
    assert uses("use crate::json;\nlet c = base64::encode(b);") == {"base64"}


def test_a_planted_unsafe_is_found_and_an_attribute_is_ignored() -> None:
    rust = '#![deny(unsafe_code)]\n// unsafe\nlet a = "unsafe";\nlet c = \'"\';\nunsafe { f() }\nunsafe extern "C" {}\n'
    assert unsafe_lines(rust) == [5, 6]


def test_a_planted_undocumented_unsafe_is_found() -> None:
    rust = (
        "fn a() {\n    unsafe { f() }\n}\n\n// SAFETY: fine.\nunsafe impl Send for A {}\n\nunsafe impl Sync for A {}\n"
    )
    assert undocumented(rust) == [2, 8]
    rust = "// SAFETY: x.\nlet a =\n    unsafe { f() };\n"
    rust += "let b =\n    // SAFETY: y,\n    // z.\n    #[a]\n    unsafe { g() };\n"
    assert undocumented(rust) == [3]
    rust = '// SAFETY: as above.\nunsafe { f() };\n\n// Bare.\nunsafe extern "C" {}\n\n'
    rust += "// Safe.\n// SAFETY: x.\nunsafe {}\n"
    assert undocumented(rust) == [2, 5]
    rust = "/// # Safety\n/// None.\npub unsafe fn a() {}\n\n/// Bare.\nunsafe fn b() {}\n"
    assert undocumented(rust) == [6]
    rust = "// SAFETY: x.\nunsafe impl T for A {\n    unsafe fn duty(&self) {}\n}\n\nunsafe fn after() {}\n"
    assert undocumented(rust) == [6]


def test_a_planted_use_of_std_is_found() -> None:
    assert io_modules("use std::{fmt, net::TcpStream};\nlet f = std::fs::read(p); // std::io\n") == {"fmt", "net", "fs"}


def test_a_planted_import_between_python_modules_is_found() -> None:
    source = (
        "import onecopy\nfrom onecopy import web, connect\nfrom onecopy.rows import x\nfrom . import text\nimport os\n"
    )
    assert python_modules_used(source) == {"__init__", "web", "rows", "text"}


@pytest.mark.parametrize(
    ("check", "where", "fault"),
    [
        (
            "a_crate_has_only_the_dependencies_in_its_rules",
            "crates/{}/Cargo.toml",
            "[dependencies]\nonecopy-py.workspace = true\n",
        ),
        ("no_source_file_names_a_crate_outside_of_its_rules", "crates/{}/src/a.rs", "use onecopy_py::x;\n"),
        ("unsafe_is_used_only_in_the_listed_modules", "crates/{}/src/a.rs", "// SAFETY: none.\nunsafe fn f() {}\n"),
        ("all_unsafe_code_is_documented", "crates/{}/src/a.rs", "fn f() { unsafe { g() } }\n"),
        ("a_crate_does_no_io_that_its_rules_forbid", "crates/{}/src/a.rs", "use std::net::TcpStream;\n"),
        ("each_crate_denies_unsafe_by_default", "crates/{}/src/lib.rs", "//! #![forbid(unsafe_code)]\n"),
        ("python_modules_import_only_modules_before_them", "python/onecopy/rows.py", "import onecopy.web\n"),
        (
            "the_python_package_imports_only_the_standard_library",
            "python/onecopy/rows.py",
            "import numpy\n",
        ),
    ],
)
def test_each_check_fails_on_a_tree_with_a_fault(
    check: str, where: str, fault: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for crate in CRATES:
        path = tmp_path / where.format(crate)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(fault, encoding="utf-8")
    monkeypatch.setitem(globals(), "ROOT", tmp_path)
    test = globals()[f"test_{check}"]
    arguments = (
        ["crates/wire" if check == "all_unsafe_code_is_documented" else "wire"] if where.startswith("crates") else []
    )
    with pytest.raises(AssertionError):
        test(*arguments)


def test_a_database_is_one_directory_and_its_registration() -> None:
    """Adding a database changes only two files outside of its directory.

    The in-memory test database in crates/rows/src/memory is the example.
    """
    source = ROOT / "crates" / "rows" / "src"
    assert sum(len(path.read_text(encoding="utf-8").splitlines()) for path in (source / "memory").glob("*.rs")) <= 200
    named = {
        path.relative_to(ROOT).as_posix()
        for crate in CRATES
        for path in (ROOT / "crates" / crate / "src").rglob("*.rs")
        if re.search(r"\bmemory::|=> memory\b|\bmod memory\b|\bMemory => ", code(path.read_text(encoding="utf-8")))
        and "memory" not in path.relative_to(ROOT).parts
        and re.search(r"memory-database", path.read_text(encoding="utf-8"))
    }
    assert named == {"crates/rows/src/connect.rs", "crates/rows/src/lib.rs"}
    # No code matches on a single database, since it would ignore a new one.
    matching = [
        path.relative_to(ROOT).as_posix()
        for crate in CRATES
        for path in (ROOT / "crates" / crate / "src").rglob("*.rs")
        if re.search(r"\bStatement::(?:Sqlite|Odbc)\b", code(path.read_text(encoding="utf-8")))
    ]
    assert matching == [], "code that is generic over databases is a StatementVisitor"
