"""The cases of the conformance table: the server refuses each request or responds correctly, and
remains alive."""

from __future__ import annotations

import pytest

from tests.serve.cases import CASES
from tests.support.cases import Case
from tests.support.serving import Serving


def test_the_table_is_complete() -> None:
    names = [case.name for case in CASES]
    assert len(names) == len(set(names)) == 105


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_row(case: Case, server: Serving) -> None:
    case.check(server)
