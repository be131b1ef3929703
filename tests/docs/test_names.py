"""Every public name, error kind and gateway setting appears in the documentation."""

from __future__ import annotations

import re
from pathlib import Path

import onecopy

ROOT = Path(__file__).resolve().parents[2]
#: What the pages shorten.
FOLDERS = {
    "t": "tests",
    "c": "crates",
    "j": "java/tests/src/test/java/io/github/onecopy",
    "j22": "java/tests/src/test/java22/io/github/onecopy",
}
DOCS = "\n".join(path.read_text(encoding="utf-8") for path in (ROOT / "docs").rglob("*.md"))


def test_every_public_name_is_documented() -> None:
    missing = [name for name in onecopy.__all__ if not re.search(rf"\b{re.escape(name)}\b", DOCS)]
    assert missing == []


def test_every_public_method_is_documented() -> None:
    missing = [
        f"{owner.__name__}.{name}"
        for owner in (
            onecopy.Connection,
            onecopy.Cursor,
            onecopy.RowStream,
            onecopy.ArrowStream,
            onecopy.Column,
            onecopy.Ledger,
        )
        for name in vars(owner)
        if not name.startswith("_") and not re.search(rf"\b{name}\b", DOCS)
    ]
    assert missing == []


def test_every_error_kind_is_documented() -> None:
    source = (ROOT / "crates" / "rows" / "src" / "error.rs").read_text(encoding="utf-8")
    body = source.split("pub enum ErrorKind {")[1].split("\n}")[0]
    kinds = re.findall(r"^    (\w+),$", body, re.MULTILINE)
    page = (ROOT / "docs" / "reference" / "errors.md").read_text(encoding="utf-8")
    assert kinds and [kind for kind in kinds if f"`{kind}`" not in page] == []


def test_links_between_pages_lead_somewhere() -> None:
    broken = []
    for page in [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "benches").glob("*.md")]:
        for target in re.findall(r"\]\((?!https?:|#)([^)#]+)", page.read_text(encoding="utf-8")):
            if not (page.parent / target).exists():
                broken.append(f"{page.relative_to(ROOT)}: {target}")
    assert broken == []


def test_every_test_that_a_page_names_exists() -> None:
    named, missing = 0, []
    for page in [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]:
        text = re.sub(r"`(t|c|j|j22)/", lambda m: f"`{FOLDERS[m[1]]}/", page.read_text(encoding="utf-8"))
        for file, name in re.findall(r"`((?:tests|crates|java)/[\w/]+\.(?:py|rs|java))(?:::(\w+))?`", text):
            named += 1
            source = (ROOT / file).read_text(encoding="utf-8") if (ROOT / file).exists() else ""
            if not source or (name and not re.search(rf"\b(def|fn|void) {name}\(", source)):
                missing.append(f"{page.name}: {file}::{name}")
    assert named > 40 and missing == []
