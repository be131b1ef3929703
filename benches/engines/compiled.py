"""Peers that are written in C and compiled for the running interpreter."""

from __future__ import annotations

import importlib.util
import subprocess
import sysconfig
from pathlib import Path
from types import ModuleType

HERE = Path(__file__).resolve().parents[1]


def peer(name: str) -> ModuleType:
    """The extension module that is compiled from `peers/NAME.c`."""
    source = HERE / "peers" / f"{name}.c"
    built = HERE / ".data" / f"{name}{sysconfig.get_config_var('EXT_SUFFIX')}"
    built.parent.mkdir(exist_ok=True)
    if not built.exists() or built.stat().st_mtime < source.stat().st_mtime:
        include = sysconfig.get_path("include")
        subprocess.run(["cc", "-O3", "-shared", "-fPIC", f"-I{include}", str(source), "-o", str(built)], check=True)
    spec = importlib.util.spec_from_file_location(name, built)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
