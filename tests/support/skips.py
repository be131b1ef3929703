"""The one place that decides between a skip and a failure."""

from __future__ import annotations

import os
from typing import NoReturn

import pytest


def in_ci() -> bool:
    """Whether a skip is a failure."""
    return os.environ.get("CI", "").lower() in ("1", "true", "yes")


def cannot(reason: str) -> NoReturn:
    """Leave a test that lacks something: a skip with its reason, a failure under ``CI=true``."""
    if in_ci():
        pytest.fail(f"under CI=true a skip is a failure: {reason}", pytrace=False)
    pytest.skip(reason)


def need(there: object, reason: str) -> None:
    """Go on where ``there`` is true, else ``cannot``."""
    if not there:
        cannot(reason)
