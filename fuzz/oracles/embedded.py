"""For the interpreter in a target's own process: `import onecopy` takes the extension from there, and no other build."""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any


class _Extension(MetaPathFinder, Loader):
    def __init__(self, make: Callable[[], ModuleType]) -> None:
        self._make = make

    def find_spec(self, fullname: str, path: Any, target: ModuleType | None = None) -> ModuleSpec | None:
        return ModuleSpec(fullname, self) if fullname == "onecopy._core" else None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return self._make()

    def exec_module(self, module: ModuleType) -> None:
        """Nothing is left to do."""


def take(make: Callable[[], ModuleType]) -> None:
    """Has `make` give the extension."""
    sys.meta_path.insert(0, _Extension(make))
