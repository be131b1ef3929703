"""Each option has one name in all interfaces, and one row in `docs/reference/options.md` with its
values."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PYTHON = ROOT / "python" / "onecopy"
PAGE = ROOT / "docs" / "reference" / "options.md"
#: Modules whose names are those of other libraries.
FOREIGN = ("compat", "sqlalchemy", "gunicorn.py", "errors.py", "_prefetch.py", "_thread.py", "_event_loop.py")
#: Parts of the extension module that only onecopy's own modules call, and a value with its fields.
INTERNAL = {"run_call", "_renewed", "log", "BSONDecodeError", "BSONEncodeError", "JSONDecodeError", "Range"}
#: Named tuples whose fields are options.
OPTION_TUPLES = {"Limits", "Tls", "AccessLog"}

Options = dict[str, set[str]]


def _literals(annotation: ast.expr | None) -> set[str]:
    """The strings in the `Literal` types of an annotation."""
    found = ast.walk(annotation) if annotation else iter(())
    subscripts = [n for n in found if isinstance(n, ast.Subscript) and ast.unparse(n.value) == "Literal"]
    return {
        c.value for n in subscripts for c in ast.walk(n) if isinstance(c, ast.Constant) and isinstance(c.value, str)
    }


def _parameters(body: list[ast.stmt]) -> Iterator[tuple[str, set[str]]]:
    """The names and the `Literal` values of the optional parameters of public functions and
    methods.

    Positional-only parameters are excluded; fields of the classes in `OPTION_TUPLES` are included.
    """
    for node in body:
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_") and node.name not in INTERNAL:
            yield from _parameters(node.body)
            if node.name in OPTION_TUPLES:
                fields = (n for n in node.body if isinstance(n, ast.AnnAssign))
                yield from ((ast.unparse(f.target), _literals(f.annotation)) for f in fields)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name not in INTERNAL:
            if node.name.startswith("_") and node.name not in ("__init__", "__new__"):
                continue
            defaults = node.args.args[len(node.args.args) - len(node.args.defaults) :] if node.args.defaults else []
            for parameter in (*defaults, *node.args.kwonlyargs):
                yield parameter.arg, _literals(parameter.annotation)


def _of_python() -> Options:
    found: Options = defaultdict(set)
    for path in (PYTHON / "_core.pyi", *sorted(PYTHON.rglob("*.py"))):
        parts = path.relative_to(PYTHON).parts
        is_internal = path.suffix == ".py" and parts[0].startswith("_")
        if not is_internal and parts[0] not in FOREIGN and parts[-1] not in FOREIGN:
            for name, values in _parameters(ast.parse(path.read_text(encoding="utf-8")).body):
                found[name] |= values
    return found


def _of_the_command() -> Options:
    """The flags of the command, with underscores for hyphens, and their values."""
    found: Options = defaultdict(set)
    for path in sorted((ROOT / "crates" / "cli" / "tests" / "snapshots").glob("help_*.txt")):
        name = "help"
        for line in path.read_text(encoding="utf-8").splitlines():
            if flag := re.match(r" {2,6}(?:-., )*--([a-z0-9-]+)", line):
                name = flag[1].replace("-", "_")
                found[name]
            elif value := re.match(r" {10}- ([a-z]+): ", line):
                found[name].add(value[1])
            elif line and not line.startswith(" "):
                name = "help"
    for file in ("_run.py", "_bench/options.py"):
        text = (PYTHON / file).read_text(encoding="utf-8")
        for flag in re.finditer(r'add\(\s*(?:"-.", )?"--([a-z-]+)"|^ {8}\("([a-z_]+)", "', text, re.M):
            found[(flag[1] or flag[2]).replace("-", "_")]
    return {name: values for name, values in found.items() if name not in ("help", "as_worker", "metrics_fd")}


def _of_the_gateway() -> Options:
    """The keys of the gateway's configuration, without the suffix `_s`, which is a unit."""
    text = (ROOT / "docs" / "reference" / "gateway-config.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| ((?:`[a-z_]+`(?:, )?)+) \| .* \|.*\|$", text, re.M)
    return {name.removesuffix("_s"): set() for row in rows for name in re.findall(r"[a-z_]+", row)}


def table() -> dict[str, tuple[str, set[str]]]:
    """The rows of `docs/reference/options.md`: for each option name its meaning and its values."""
    rows = re.findall(r"^\| `([a-z0-9_]+)` \| (.+?) \| (.*?) ?\|$", PAGE.read_text(encoding="utf-8"), re.M)
    assert len({name for name, *_ in rows}) == len(rows), "a name has two rows"
    return {name: (meaning, set(re.findall(r"`([a-z0-9_]+)`", values))) for name, meaning, values in rows}


def used() -> Options:
    """The options of all interfaces, each with its values."""
    found: Options = defaultdict(set)
    for options in (_of_python(), _of_the_command(), _of_the_gateway()):
        for name, values in options.items():
            found[name] |= values
    return found


def test_each_option_is_in_the_table_with_its_values() -> None:
    options, rows = used(), table()
    assert len(options) > 100
    assert sorted(options.keys() ^ rows.keys()) == []
    assert {name: values - rows[name][1] for name, values in options.items() if values - rows[name][1]} == {}


def test_no_meaning_has_two_names() -> None:
    names = defaultdict(list)
    for name, (meaning, _) in table().items():
        names[re.sub(r"\W+", " ", meaning.lower()).strip()].append(name)
    assert [same for same in names.values() if len(same) > 1] == []


if __name__ == "__main__":
    for name, values in sorted(used().items()):
        print(name, *sorted(values))
