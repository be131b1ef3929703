"""Tests that run on additional CPythons import only packages of `requirements/test.txt`.

Those CPythons have no other packages. An import inside a function is not checked.
"""

from __future__ import annotations

import ast
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
#: `tools/pythons.py` excludes these folders.
NOT_THERE = ("gateway", "house", "layers", "support", "wheel")
#: Distributions whose module has another name.
MODULES = {
    "PyMySQL": "pymysql",
    "pymongo": "bson",
    "mssql-python": "mssql_python",
    "pytest-timeout": "pytest_timeout",
    "prometheus-client": "prometheus_client",
    "python-dateutil": "dateutil",
}


def installed() -> set[str]:
    """The names of the modules that `requirements/test.txt` installs."""
    text = (ROOT / "requirements" / "test.txt").read_text(encoding="utf-8")
    names = re.findall(r"^([A-Za-z][\w-]*)", text, re.M)
    return {MODULES.get(name, name) for name in names}


def imported(source: str) -> set[str]:
    """The modules that a source file imports at its top level, or without which it skips tests
    (`importorskip`)."""
    found = set()
    tree = ast.parse(source)
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Attribute(attr="importorskip"), args=[ast.Constant(value=str(name)), *_]):
                found.add(name.partition(".")[0])
    for node in tree.body:
        if isinstance(node, ast.Import):
            found |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module.partition(".")[0])
    return found


def _collected() -> list[Path]:
    """The test files that pytest collects on an additional CPython.

    A folder is excluded if its `conftest.py` ignores the test files without optional packages.
    """
    files = []
    for file in sorted([*(ROOT / "tests").rglob("test_*.py"), *(ROOT / "tests").rglob("conftest.py")]):
        folder = file.relative_to(ROOT / "tests").parts[0]
        conftest = ROOT / "tests" / folder / "conftest.py"
        leaves_itself_out = conftest.is_file() and "collect_ignore_glob" in conftest.read_text(encoding="utf-8")
        if folder not in NOT_THERE and (file == conftest or not leaves_itself_out):
            files.append(file)
    return files


def test_no_test_imports_packages_missing_on_other_cpythons() -> None:
    known = installed() | sys.stdlib_module_names | {"onecopy", "tests", "benches"}
    files = _collected()
    assert len(files) > 50
    foreign = {str(file.relative_to(ROOT)): imported(file.read_text(encoding="utf-8")) - known for file in files}
    assert {name: modules for name, modules in foreign.items() if modules} == {}


def test_an_external_import_at_the_top_is_found() -> None:
    assert imported("import json\nimport pyarrow.csv\nfrom numpy import array\n") == {"json", "pyarrow", "numpy"}
    assert imported("def f():\n    pytest.importorskip('pyarrow.csv')\n") == {"pyarrow"}
    assert imported("if True:\n    import pyarrow\n\ndef f():\n    import numpy\n") == set()
