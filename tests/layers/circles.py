"""Detects circular imports between the source files of a crate.

A file imports another if its code names an item that the other file defines: in a `use`, or in a
path such as `super::frame::write(…)`. The rules:
* A name that is imported through a re-export (`pub use` in `mod.rs` or `lib.rs`, or any other
  `use`) counts as an import of the file that *defines* it, not of the file that re-exports it.
* `mod x;` and a re-export are not imports. An imported module counts only if a name inside it is
  used.
* After a glob import (`use super::*`), the names of that module which occur in the file count.
* Code under `#[cfg(test)]` or `#[cfg(all(test, …))]`, and the files of such modules, are ignored.
* Method calls are not followed: they need types, and the import of the type is counted already.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

Names = tuple[str, ...]

_ITEM = re.compile(
    r"\b(?:fn|struct|enum|union|trait|type|const|static|macro_rules\s*!|mod)\s+(?:mut\s+)?([A-Za-z_]\w*)"
)
_MODULE = re.compile(r"\bmod\s+(\w+)\s*([;{])")
_USE = re.compile(r"\b(?:pub(?:\s*\([^)]*\))?\s+)?use\s+([^;]+);")
_PATH = re.compile(r"(?<![\w:.$])(?:\$?[A-Za-z_]\w*\s*::\s*)+[A-Za-z_]\w*")
_TEST = re.compile(r"#\s*\[\s*cfg\s*\(\s*(?:all\s*\(\s*)?test\b[^\]]*\]")
_NOT_CODE = re.compile(
    r"""//[^\n]* | /\*.*?\*/ | b?r(\#*)".*?"\1 | b?"(?:\\.|[^"\\])*" | b?'(?:\\(?:x..|u\{[^}]*\}|.)|[^'\\])'""",
    re.S | re.X,
)


@dataclass
class Module:
    """A module of a crate: its file, and the names that its own code defines and uses."""

    file: str
    items: set[str] = field(default_factory=set)
    uses: dict[str, Names] = field(default_factory=dict)
    globs: list[Names] = field(default_factory=list)
    code: str = ""


@dataclass(frozen=True)
class Import:
    """The use of a name by the file ``source``; the file ``target`` defines it."""

    source: str
    target: str
    name: str


def _end_of_block(code: str, start: int) -> int:
    """The position after the item that begins at `start`: after its `;` or its closing brace."""
    depth = 0
    for position in range(start, len(code)):
        character = code[position]
        if character in "([{":
            depth += 1
        elif character in ")]}":
            depth -= 1
            if depth == 0 and character == "}":
                return position + 1
        elif character == ";" and depth == 0:
            return position + 1
    return len(code)


def without_tests(code: str) -> str:
    """The code without items under `#[cfg(test)]`.

    A test module's declaration is removed too, so that its file is not read.
    """
    while match := _TEST.search(code):
        code = code[: match.start()] + code[_end_of_block(code, match.end()) :]
    return code


def use_paths(tree: str) -> Iterator[tuple[Names, str]]:
    """The paths in the tree of a `use` item, each with the name under which it is imported.

    The name of a glob import is `*`.
    """
    tree = tree.strip()
    if "{" not in tree:
        path, _, alias = tree.partition(" as ")
        names = tuple(part.strip() for part in path.split("::") if part.strip())
        if names and names[-1] == "self":
            names = names[:-1]
        if names:
            yield names, alias.strip() or names[-1]
        return
    head, _, rest = tree.partition("{")
    prefix = tuple(part.strip() for part in head.split("::") if part.strip())
    depth, start, inside = 0, 0, rest[: rest.rindex("}")]
    for position, character in enumerate(inside + ","):
        if character == "," and depth == 0:
            for names, alias in use_paths(inside[start:position]) if inside[start:position].strip() else ():
                yield prefix + names, alias
            if inside[start:position].strip() == "self":
                yield prefix, prefix[-1]
            start = position + 1
        depth += {"{": 1, "}": -1}.get(character, 0)


class Crate:
    """The modules of a crate, and the imports between its source files."""

    def __init__(self, src: Path) -> None:
        self.src = src
        self.modules: dict[Names, Module] = {}
        for root in ("lib.rs", "main.rs"):
            if (src / root).is_file():
                self._add_file((), src / root, src)

    def _add_file(self, path: Names, file: Path, folder: Path) -> None:
        code = _NOT_CODE.sub(lambda match: "\n" * match[0].count("\n"), file.read_text(encoding="utf-8"))
        self._add_module(path, without_tests(code), file.relative_to(self.src).as_posix(), folder)

    def _add_module(self, path: Names, code: str, file: str, folder: Path) -> None:
        position = 0
        own = ""
        while match := _MODULE.search(code, position):
            name = match[1]
            own += code[position : match.start()]
            position = match.end()
            if match[2] == "{":
                position = _end_of_block(code, match.start())
                self._add_module((*path, name), code[match.end() : position - 1], file, folder / name)
                continue
            for child in (folder / f"{name}.rs", folder / name / "mod.rs"):
                if child.is_file():
                    self._add_file((*path, name), child, folder / name)
        own += code[position:]
        module = self.modules.setdefault(path, Module(file))
        for use in _USE.finditer(own):
            for names, alias in use_paths(use[1]):
                if alias == "*":
                    module.globs.append(names[:-1])
                elif alias != "_":
                    module.uses[alias] = names
        module.code += _USE.sub(";", own)
        module.items |= {item[1] for item in _ITEM.finditer(module.code)}

    def _find_in_glob(self, glob: Names, at: Names, name: str, seen: tuple[tuple[Names, str], ...]) -> str | None:
        target = self._module_of(at, glob)
        return self._definer(target, name, seen) if target is not None else None

    def _module_of(self, at: Names, names: Names, seen: tuple[tuple[Names, str], ...] = ()) -> Names | None:
        """The module that the path ``names`` refers to in module ``at``, also through
        re-exports."""
        head = names[0].lstrip("$")
        current: Names
        if head in ("crate", "self", "super"):
            current = {"crate": (), "self": at, "super": at[:-1]}[head]
            names = names[1:]
        else:
            current = at
        for name in names:
            if name == "super":
                current = current[:-1]
            elif (*current, name) in self.modules:
                current = (*current, name)
            elif current in self.modules and (used := self.modules[current].uses.get(name)) and used != (name,):
                if (current, name) in seen:
                    return None
                target = self._module_of(current, used, (*seen, (current, name)))
                if target is None or target == current:
                    return None
                current = target
            else:
                return None
        return current

    def _definer(self, at: Names, name: str, seen: tuple[tuple[Names, str], ...] = ()) -> str | None:
        """The file that defines `name` of module `at`, also if the module only re-exports it."""
        if (at, name) in seen or at not in self.modules:
            return None
        seen = (*seen, (at, name))
        module = self.modules[at]
        if child := self.modules.get((*at, name)):
            return child.file
        if name in module.items:
            return module.file
        if name in module.uses:
            return self._resolve(at, module.uses[name], seen)
        for glob in module.globs:
            if found := self._find_in_glob(glob, at, name, seen):
                return found
        return None

    def _resolve(self, at: Names, names: Names, seen: tuple[tuple[Names, str], ...] = ()) -> str | None:
        """The file that defines the item to which the path ``names`` in module ``at`` refers.

        `None` if the path refers to a module or to another crate.
        """
        if names[0].lstrip("$") not in ("crate", "self", "super"):
            module = self.modules[at]
            if (*at, names[0]) not in self.modules and names[0] not in module.items | set(module.uses):
                for glob in module.globs:
                    target = self._module_of(at, glob)
                    if target is not None and self._find_in_glob(glob, at, names[0], seen):
                        return self._resolve(target, names, seen) if target != at else None
                return None
        # The longest prefix that is a module; the name after it is the item.
        for length in range(len(names), 0, -1):
            target = self._module_of(at, names[:length])
            if target is not None:
                return self._definer(target, names[length], seen) if length < len(names) else None
        return self._definer(at, names[0], seen)

    def imports(self) -> set[Import]:
        """All imports between two different files of the crate."""
        found = set()
        for path, module in self.modules.items():
            words = set(re.findall(r"[A-Za-z_]\w*", module.code))
            named = [names for alias, names in module.uses.items() if alias in words]
            named += [tuple(re.split(r"\s*::\s*", match[0])) for match in _PATH.finditer(module.code)]
            for names in named:
                target = self._resolve(path, names)
                if target is not None and target != module.file:
                    found.add(Import(module.file, target, "::".join(names)))
            for glob in module.globs:
                origin = self._module_of(path, glob)
                if origin is None:
                    continue
                exported = self.modules[origin].items | set(self.modules[origin].uses)
                for name in words & exported - module.items - set(module.uses):
                    target = self._definer(origin, name)
                    if target is not None and target != module.file:
                        found.add(Import(module.file, target, "::".join((*glob, name))))
        return found


def circles(imports: set[Import]) -> list[list[str]]:
    """The groups of files that import each other in a circle, the largest group first.

    They are the strongly connected components of more than one file (Tarjan's algorithm).
    """
    graph: dict[str, set[str]] = {}
    for arrow in imports:
        graph.setdefault(arrow.source, set()).add(arrow.target)
        graph.setdefault(arrow.target, set())
    order: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    found: list[list[str]] = []

    def visit(file: str) -> None:
        order[file] = low[file] = len(order)
        stack.append(file)
        for target in sorted(graph[file]):
            if target not in order:
                visit(target)
                low[file] = min(low[file], low[target])
            elif target in stack:
                low[file] = min(low[file], order[target])
        if low[file] == order[file]:
            at = stack.index(file)
            component = sorted(stack[at:])
            del stack[at:]
            if len(component) > 1:
                found.append(component)

    for file in sorted(graph):
        if file not in order:
            visit(file)
    return sorted(found, key=lambda files: (-len(files), files))


def describe(files: list[str], imports: set[Import]) -> str:
    """A text that describes a circle: its files and the imports between them."""
    lines = [f"{len(files)} files import each other in a circle: {', '.join(files)}"]
    inside: dict[tuple[str, str], list[str]] = {}
    for arrow in imports:
        if arrow.source in files and arrow.target in files:
            inside.setdefault((arrow.source, arrow.target), []).append(arrow.name)
    lines += [
        f"  {source} -> {target}: {', '.join(sorted(names))}" for (source, target), names in sorted(inside.items())
    ]
    return "\n".join(lines)
