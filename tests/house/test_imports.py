"""The other CPythons are tested with what `requirements/test.txt` installs: what their tests import at the top stands there."""

from __future__ import annotations

import ast
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
#: `tools/pythons.py` leaves these out.
NOT_THERE = ("gateway", "house", "layers", "support", "wheel")
#: Distributions whose module is called otherwise.
MODULES = {
    "PyMySQL": "pymysql",
    "pymongo": "bson",
    "mssql-python": "mssql_python",
    "pytest-timeout": "pytest_timeout",
    "prometheus-client": "prometheus_client",
    "python-dateutil": "dateutil",
}


def installed() -> set[str]:
    """The modules that `requirements/test.txt` brings."""
    text = (ROOT / "requirements" / "test.txt").read_text(encoding="utf-8")
    names = re.findall(r"^([A-Za-z][\w-]*)", text, re.M)
    return {MODULES.get(name, name) for name in names}


def imported(source: str) -> set[str]:
    """The modules that are imported wherever the file is, conditional imports left out."""
    found = set()
    for node in ast.parse(source).body:
        if isinstance(node, ast.Import):
            found |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module.partition(".")[0])
    return found


def _collected() -> list[Path]:
    """What another CPython collects: a folder may leave itself out by its own `conftest.py`."""
    files = []
    for file in sorted([*(ROOT / "tests").rglob("test_*.py"), *(ROOT / "tests").rglob("conftest.py")]):
        room = file.relative_to(ROOT / "tests").parts[0]
        conftest = ROOT / "tests" / room / "conftest.py"
        leaves_itself_out = conftest.is_file() and "collect_ignore_glob" in conftest.read_text(encoding="utf-8")
        if room not in NOT_THERE and (file == conftest or not leaves_itself_out):
            files.append(file)
    return files


def test_no_test_imports_what_the_other_cpythons_have_not() -> None:
    known = installed() | sys.stdlib_module_names | {"onecopy", "tests"}
    files = _collected()
    assert len(files) > 50
    foreign = {str(file.relative_to(ROOT)): imported(file.read_text(encoding="utf-8")) - known for file in files}
    assert {name: modules for name, modules in foreign.items() if modules} == {}


def test_a_foreign_import_at_the_top_is_seen() -> None:
    assert imported("import json\nimport pyarrow.csv\nfrom numpy import array\n") == {"json", "pyarrow", "numpy"}
    assert imported("if True:\n    import pyarrow\n\ndef f():\n    import numpy\n") == set()
