"""Everything that is linked into the wheel and the command has a licence that permits distribution
under onecopy's licences.

The licence of every crate is known.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
#: Licences that require only their text (SPDX names). One that requires more is a decision, made
#: here.
ALLOWED = {
    "MIT",
    "Apache-2.0",
    "Apache-2.0 WITH LLVM-exception",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "ISC",
    "Unicode-3.0",
    "Zlib",  # A binary needs no text.
    "CC0-1.0",  # Requires nothing.
}


def allowed(expression: str) -> bool:
    """Returns true if the allowed licences satisfy an SPDX expression; `/` is the old form of
    `OR`."""
    words = re.findall(r"\(|\)|[^\s()]+", expression.replace("/", " OR "))

    def one() -> bool:
        if words[0] == "(":
            words.pop(0)
            met = either()
            words.pop(0)
            return met
        name = words.pop(0)
        if words[:1] == ["WITH"]:
            name = f"{name} {words.pop(0)} {words.pop(0)}"
        return name in ALLOWED

    def both() -> bool:
        met = one()
        while words[:1] == ["AND"]:
            words.pop(0)
            met &= one()
        return met

    def either() -> bool:
        met = both()
        while words[:1] == ["OR"]:
            words.pop(0)
            met |= both()
        return met

    return either() and not words


def given_away(nodes: list[dict[str, Any]], members: set[str]) -> set[str]:
    """The packages that are linked into the artifacts or used to build them, not those of tests
    only."""
    needs = {
        node["id"]: [
            other["pkg"] for other in node["deps"] if any(kind["kind"] != "dev" for kind in other["dep_kinds"])
        ]
        for node in nodes
    }
    found: set[str] = set()
    waiting = list(members)
    while waiting:
        package = waiting.pop()
        if package not in found:
            found.add(package)
            waiting += needs[package]
    return found


def test_test_dependencies_are_not_distributed() -> None:
    def node(name: str, **needs: str | None) -> dict[str, Any]:
        return {"id": name, "deps": [{"pkg": other, "dep_kinds": [{"kind": kind}]} for other, kind in needs.items()]}

    nodes = [
        node("ours", a=None, b="build", c="dev"),
        node("a", d=None),
        node("b"),
        node("c", e=None),
        node("d"),
        node("e"),
    ]
    assert given_away(nodes, {"ours"}) == {"ours", "a", "b", "d"}


def test_every_crate_has_a_licence_that_permits_distribution() -> None:
    command = ["cargo", "metadata", "--locked", "--format-version", "1"]
    target = ["--filter-platform", "x86_64-unknown-linux-gnu"]
    listed = subprocess.run(
        [sys.executable, "tools/rust.py", *command, *target], cwd=ROOT, capture_output=True, text=True, check=True
    )
    metadata = json.loads(listed.stdout)
    given = given_away(metadata["resolve"]["nodes"], set(metadata["workspace_members"]))
    crates = [package for package in metadata["packages"] if package["source"] and package["id"] in given]
    assert len(crates) > 30
    wrong = {crate["name"]: crate["license"] for crate in crates if not allowed(crate["license"] or "none")}
    assert wrong == {}


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("MIT", True),
        ("GPL-3.0 OR MIT", True),
        ("MIT/GPL-3.0", True),
        ("(MIT OR GPL-3.0) AND Unicode-3.0", True),
        ("Apache-2.0 WITH LLVM-exception", True),
        ("MIT AND GPL-3.0", False),
        ("GPL-3.0", False),
        ("GPL-2.0 WITH Classpath-exception-2.0 OR MPL-2.0", False),
        ("none", False),
    ],
)
def test_an_expression_is_satisfied_or_not(expression: str, expected: bool) -> None:
    assert allowed(expression) is expected
