"""A server of ours that runs, one for all tests that ask nothing special of it."""

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
    """The server; after the test it has to live and to answer. One that does not is replaced for the next test."""
    yield _serving[0]
    try:
        _serving[0].must_serve()
    except (AssertionError, OSError):
        _serving[0].stop()
        _serving[0] = Serving("--threads", "4")
        raise
