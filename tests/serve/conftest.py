"""A fixture with one running server, which tests without special requirements share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.serving import Serving


@pytest.fixture(scope="session")
def _serving() -> Iterator[list[Serving]]:
    running = [Serving("--threads", "4")]
    yield running
    running[0].stop()


@pytest.fixture
def server(_serving: list[Serving]) -> Iterator[Serving]:
    """A running server, which must be alive and respond after the test.

    If it does not, the test fails and the next test gets a new server.
    """
    yield _serving[0]
    try:
        _serving[0].must_serve()
    except (AssertionError, OSError):
        _serving[0].stop()
        _serving[0] = Serving("--threads", "4")
        raise
