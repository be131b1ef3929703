"""`Job`: one statement in one engine, which is prepared once and run many times."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any, NamedTuple

from onecopy._bench.sink import Sink

__all__ = ["Job", "Missing", "module"]


class Job(NamedTuple):
    """One statement in an engine that is connected to the database.

    ``run`` executes the statement. A result in the form of bytes (JSON, CSV, Parquet) is written to
    the sink; any other result is returned. ``variant`` is a part of the engine's name (`c`,
    `binary`), ``note`` is a remark on the measurement for the report, and ``pid`` is the child
    process that does the work, if there is one.
    """

    run: Callable[[Sink], Any]
    variant: str = ""
    note: str = ""
    pid: int | None = None


class Missing(Exception):
    """Raised if the engine is installed, but a module or extension that it requires is not."""


def module(name: str) -> Any:
    """Import a module that is not a dependency of onecopy."""
    return importlib.import_module(name)
