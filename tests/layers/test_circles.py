"""Within a crate at most three files import each other in a circle; exceptions are listed here.

`circles.py` defines which uses of a name count as an import.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.layers.circles import Crate, circles, describe

ROOT = Path(__file__).resolve().parents[2]
LARGEST_CIRCLE = 3
#: The number of files of the largest circle, for crates over the limit. The numbers may only
#: shrink.
EXCEPTIONS = {"py": 6}
CRATES = sorted(path.parent.name for path in ROOT.glob("crates/*/Cargo.toml"))


def crate_of(folder: Path, sources: dict[str, str]) -> Crate:
    """Writes source files into ``folder``; returns the crate that they form."""
    for name, source in sources.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(source, encoding="utf-8")
    return Crate(folder)


def edges(crate: Crate) -> set[tuple[str, str]]:
    return {(arrow.source, arrow.target) for arrow in crate.imports()}


def check_circles(name: str) -> None:
    """Prints the import circles of a crate, and fails if the largest one exceeds the limit."""
    imports = Crate(ROOT / "crates" / name / "src").imports()
    assert imports, f"no import was found in crates/{name}/src"
    found = circles(imports)
    for files in found:
        print(describe(files, imports))
    largest = len(found[0]) if found else 0
    limit = EXCEPTIONS.get(name, LARGEST_CIRCLE)
    assert largest <= limit, f"crates/{name}: {describe(found[0], imports)}"
    if name in EXCEPTIONS:
        assert largest == limit, f"crates/{name}: the largest circle has {largest} files now; lower it in EXCEPTIONS"


@pytest.mark.parametrize("name", [name for name in CRATES if name != "capi"])
def test_no_more_than_three_files_import_each_other_in_a_circle(name: str) -> None:
    check_circles(name)


def test_exceptions_are_crates_over_the_limit() -> None:
    assert set(EXCEPTIONS) <= set(CRATES)
    assert min(EXCEPTIONS.values(), default=LARGEST_CIRCLE + 1) > LARGEST_CIRCLE


def test_a_planted_circle_fails_the_check(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = "abcd"
    sources = {
        f"{name}.rs": f"pub fn {name}1() {{ crate::{names[i - 3]}::{names[i - 3]}1() }}\n"
        for i, name in enumerate(names)
    }
    sources["lib.rs"] = "".join(f"mod {name};\n" for name in names)
    crate_of(tmp_path / "crates" / "wire" / "src", sources)
    monkeypatch.setitem(globals(), "ROOT", tmp_path)
    with pytest.raises(AssertionError, match=r"4 files import each other in a circle: a\.rs, b\.rs, c\.rs, d\.rs"):
        check_circles("wire")


def test_a_circle_that_has_become_smaller_must_be_lowered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sources = {"lib.rs": "mod a;\nmod b;\n", "a.rs": "pub fn f() {}\n", "b.rs": "pub fn g() { crate::a::f() }\n"}
    crate_of(tmp_path / "crates" / "wire" / "src", sources)
    monkeypatch.setitem(globals(), "ROOT", tmp_path)
    monkeypatch.setitem(EXCEPTIONS, "wire", 4)
    with pytest.raises(AssertionError, match="the largest circle has 0 files now"):
        check_circles("wire")


@pytest.mark.parametrize(
    "code",
    [
        "use crate::low::f;\nfn g() { f() }",
        "use super::low::f as h;\nfn g() { h() }",
        "use crate::{low::{self}, other};\nfn g() { low::f() }",
        "fn g() { crate::low::f() }",
        "use super::*;\nfn g() { low::f() }",
        "use crate::low::*;\nfn g() { f() }",
        "mod inner { use super::super::low::f; fn g() { f() } }",
        "pub use crate::low::f;\nfn g() { f() }",
        "use crate::f;\nfn g() { f() }",
        "fn g() { crate::facade::f() }",
        "use crate::facade::renamed;\nfn g() { renamed::f() }",
    ],
)
def test_an_import_counts_for_the_file_that_defines_the_name(code: str, tmp_path: Path) -> None:
    crate = crate_of(
        tmp_path,
        {
            "lib.rs": "mod facade;\nmod low;\nmod other;\nmod user;\npub use facade::f;\n",
            "facade.rs": "pub use crate::low as renamed;\npub use crate::low::f;\n",
            "low.rs": "pub fn f() {}\n",
            "other.rs": "",
            "user.rs": code,
        },
    )
    assert edges(crate) == {("user.rs", "low.rs")}


@pytest.mark.parametrize(
    "code",
    [
        "// use crate::low::f;\nfn g() {}",
        'const S: &str = "crate::low::f()";',
        "#[cfg(test)]\nmod tests {\n    use crate::low::f;\n    fn g() { f() }\n}",
        "#[cfg(all(test, unix))]\nuse crate::low::f;\n#[cfg(test)]\nfn g() { f() }",
        "use crate::low;",
        "pub use crate::low::f;",
        "use std::fmt;\nfn g() { fmt::f() }",
    ],
)
def test_comments_tests_and_reexports_are_not_imports(code: str, tmp_path: Path) -> None:
    crate = crate_of(tmp_path, {"lib.rs": "mod low;\nmod user;\n", "low.rs": "pub fn f() {}\n", "user.rs": code + "\n"})
    assert edges(crate) == set()


def test_imports_that_name_each_other_end(tmp_path: Path) -> None:
    sources = {
        "lib.rs": "mod a;\nmod b;\n",
        "a.rs": "use crate::b::f;\n",
        "b.rs": "use crate::a::f;\nfn g() { f::h() }\n",
    }
    assert edges(crate_of(tmp_path, sources)) == set()


def test_files_of_test_modules_are_left_out(tmp_path: Path) -> None:
    crate = crate_of(
        tmp_path,
        {
            "lib.rs": "mod low;\n#[cfg(test)]\nmod tests;\n",
            "low.rs": "pub fn f() {}\n",
            "tests.rs": "use crate::low::f;\nfn g() { f() }\n",
        },
    )
    assert edges(crate) == set()
