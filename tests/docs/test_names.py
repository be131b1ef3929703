"""Every public name, error kind and gateway setting must appear in the documentation."""

from __future__ import annotations

import importlib
import importlib.util
import re
import types
from pathlib import Path

import pytest

import onecopy

ROOT = Path(__file__).resolve().parents[2]
#: Abbreviations in the pages.
FOLDERS = {
    "t": "tests",
    "c": "crates",
    "j": "java/tests/src/test/java/io/github/onecopy",
    "j22": "java/tests/src/test/java22/io/github/onecopy",
}
_SPAN = re.compile(r"`([^`\n]+)`")


def _sections() -> list[tuple[str, str]]:
    """The sections of docs/reference and docs/guide, as pairs of heading and text.

    The text of a guide's section is only the first column of its tables, without prose.
    """
    sections = []
    for folder in ("reference", "guide"):
        for path in (ROOT / "docs" / folder).glob("*.md"):
            for section in re.split(r"^#+ ", path.read_text(encoding="utf-8"), flags=re.MULTILINE):
                head, _, body = section.partition("\n")
                rows = [re.split(r"(?<!\\)\|", line)[1] for line in body.splitlines() if line.startswith("|")]
                sections.append((head, body if folder == "reference" else "\n".join(rows)))
    return sections


SECTIONS = _sections()


def _is_documented(name: str, value: object, sections: list[tuple[str, str]]) -> bool:
    """Returns true if code in one of the sections (text between backticks) names the object.

    The code must begin with the name. The name of a module or function may be a common word
    (`text`, `files`); it counts only as a part of `onecopy`, for example in `onecopy.text`.
    """
    begins = rf"(?:onecopy\.)?{name}(?!\w)"
    part = rf".*\bonecopy\.{name}(?!\w)"
    is_word = name.islower() and isinstance(value, (types.ModuleType, types.FunctionType, types.BuiltinFunctionType))
    pattern = part if is_word else begins
    return any(
        re.match(pattern, span) or re.match(part, span)
        for head, body in sections
        for span in _SPAN.findall(f"{head}\n{body}")
    )


def test_every_public_name_is_documented() -> None:
    missing = [name for name in onecopy.__all__ if not _is_documented(name, getattr(onecopy, name), SECTIONS)]
    assert missing == []


@pytest.mark.parametrize("name", ["text", "rows", "json", "files", "serve", "connect", "Date", "Error"])
def test_a_name_is_not_documented_by_prose(name: str) -> None:
    words = f"The {name} of it, `other.{name}`, `{name}s` and `a {name}`."
    assert not _is_documented(name, getattr(onecopy, name), [("A heading", words)])
    assert _is_documented(name, getattr(onecopy, name), [(f"`onecopy.{name}(x)`", "")])


#: Names that are documented in a section with another name.
_ELSEWHERE = {
    "Blob": ("Values in place",),
    "Connection": ("SQLite", "Values in place", "Exceptions", "PostgreSQL without a driver"),
    "Cursor": ("PostgreSQL without a driver",),
    "CopyOut": ("PostgreSQL without a driver",),
    "Json": ("PostgreSQL without a driver",),
    "Range": ("PostgreSQL without a driver",),
    "Notification": ("PostgreSQL without a driver",),
    "Ledger": ("`onecopy.ledger() -> Ledger`",),
    "Limits": ("`onecopy.Server(",),
    "Metrics": ("`onecopy.Server(",),
    "PoolStats": ("`onecopy.Pool(",),
}
_OWNERS = (
    onecopy.Connection,
    onecopy.Cursor,
    onecopy.RowStream,
    onecopy.ArrowStream,
    onecopy.Blob,
    onecopy.Column,
    onecopy.Ledger,
    onecopy.Limits,
    onecopy.Metrics,
    onecopy.Pool,
    onecopy.PoolStats,
    onecopy.Server,
)


def _undocumented(owner: type, sections: list[tuple[str, str]]) -> list[str]:
    """The public members of a class that no code mentions in the sections about this class."""
    heads = (f"`{owner.__name__}`", f"`onecopy.{owner.__name__}", *_ELSEWHERE.get(owner.__name__, ()))
    code = [span for head, body in sections if head.startswith(heads) for span in _SPAN.findall(body)]
    words = {word for span in code for word in re.findall(r"\w+", span)}
    return [f"{owner.__name__}.{name}" for name in vars(owner) if not name.startswith("_") and name not in words]


@pytest.mark.parametrize("owner", _OWNERS)
def test_every_public_member_is_documented_with_its_class(owner: type) -> None:
    assert _undocumented(owner, SECTIONS) == []


def test_a_member_is_not_documented_by_prose_or_another_class() -> None:
    words = "| `close()` | as it says |"
    missing = _undocumented(onecopy.RowStream, [("`RowStream`", "It may close, read and begin."), ("`Cursor`", words)])
    assert {"RowStream.close", "RowStream.read", "RowStream.begin"} <= set(missing)
    assert "RowStream.close" not in _undocumented(onecopy.RowStream, [("`RowStream`", words)])


#: Modules, and the additional sections that document their names.
_MODULES = {
    "aio": ("`onecopy.Pool(", "`onecopy.send_file`"),
    "bson": ("In Python",),
    "compat.bson": (),
    "compat.orjson": (),
    "compat.ujson": (),
    "json": (),
    "parts": (),
    "rows": (),
    "sqlalchemy": (),
    "text": (),
    "web": (),
}


#: Other CPythons are tested without SQLAlchemy, which `onecopy.sqlalchemy` imports.
_IMPORTABLE = [name for name in _MODULES if name != "sqlalchemy" or importlib.util.find_spec(name)]


@pytest.mark.parametrize("name", _IMPORTABLE)
def test_every_public_name_of_a_module_is_documented_with_it(name: str) -> None:
    own = f"`onecopy.{name}`"
    code = [
        span
        for head, body in SECTIONS
        if own in head or head.startswith(_MODULES[name] or own)
        for span in _SPAN.findall(body)
    ]
    words = {word for span in code for word in re.findall(r"\w+", span)}
    public = importlib.import_module(f"onecopy.{name}").__all__
    # orjson itself documents its options.
    assert [word for word in public if word not in words and not word.startswith("OPT_")] == []


def test_every_error_kind_is_documented() -> None:
    source = (ROOT / "crates" / "rows" / "src" / "error.rs").read_text(encoding="utf-8")
    body = source.split("pub enum ErrorKind {")[1].split("\n}")[0]
    kinds = re.findall(r"^    (\w+),$", body, re.MULTILINE)
    page = (ROOT / "docs" / "reference" / "errors.md").read_text(encoding="utf-8")
    assert kinds and [kind for kind in kinds if f"`{kind}`" not in page] == []


def test_links_between_pages_are_valid() -> None:
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
