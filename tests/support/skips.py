"""Decides if a test whose requirement is missing is skipped or fails."""

from __future__ import annotations

import os
from typing import NoReturn

import pytest


def in_ci() -> bool:
    """Returns true in continuous integration, where a missing requirement is a failure."""
    return os.environ.get("CI", "").lower() in ("1", "true", "yes")


def cannot(reason: str) -> NoReturn:
    """Ends a test whose requirement is missing: skips it, or fails it under ``CI=true``."""
    if in_ci():
        pytest.fail(f"under CI=true a skip is a failure: {reason}", pytrace=False)
    pytest.skip(reason)


def need(there: object, reason: str) -> None:
    """Continues if ``there`` is true; otherwise skips or fails the test like `cannot`."""
    if not there:
        cannot(reason)
