"""Import of the extension in a fuzz target that embeds a Python interpreter.

`import onecopy` uses the extension module that is linked into the target, and no other build.
"""

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
        """Does nothing: `create_module` has already initialized the module."""


def take(make: Callable[[], ModuleType]) -> None:
    """Makes `import onecopy._core` call `make`, which returns the extension module."""
    sys.meta_path.insert(0, _Extension(make))
