"""`Job`: the work of one engine, prepared to be run many times."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any, NamedTuple

from onecopy._bench.sink import Sink

__all__ = ["Job", "Missing", "module"]


class Job(NamedTuple):
    """One statement in one engine, which is connected.

    ``run`` executes the statement. For a way whose result is bytes, it writes them to the sink; for
    another way it returns the result. ``variant`` is a part of the engine's name (`c`, `binary`),
    ``note`` a peculiarity of the measurement, and ``pid`` a child process that does the work.
    """

    run: Callable[[Sink], Any]
    variant: str = ""
    note: str = ""
    pid: int | None = None


class Missing(Exception):
    """The engine is installed, but a module or extension that it requires is not."""


def module(name: str) -> Any:
    """Import a module that is not a dependency of onecopy."""
    return importlib.import_module(name)
