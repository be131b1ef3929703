"""The decision between a skip and a failure."""

from __future__ import annotations

import os
from typing import NoReturn

import pytest


def in_ci() -> bool:
    """True if a skip is a failure."""
    return os.environ.get("CI", "").lower() in ("1", "true", "yes")


def cannot(reason: str) -> NoReturn:
    """Abort a test that lacks a requirement: a skip with its reason, a failure under
    ``CI=true``."""
    if in_ci():
        pytest.fail(f"under CI=true a skip is a failure: {reason}", pytrace=False)
    pytest.skip(reason)


def need(there: object, reason: str) -> None:
    """Continue if ``there`` is true, otherwise ``cannot``."""
    if not there:
        cannot(reason)
