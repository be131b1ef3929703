"""Each row of the conformance table: refused, or answered right; and the server serves on."""

from __future__ import annotations

import pytest

from tests.serve.cases import CASES
from tests.support.cases import Case
from tests.support.serving import Serving


def test_the_table_is_whole() -> None:
    names = [case.name for case in CASES]
    assert len(names) == len(set(names)) == 105


#: Rows that are not as they should be yet, and why.
PENDING = {
    "Expect, app does not read": "bodies are received before the application is called, so each one is asked for",
}


def _marked(case: Case) -> object:
    why = PENDING.get(case.name)
    return pytest.param(case, id=case.name, marks=[pytest.mark.xfail(strict=True, reason=why)] if why else [])


@pytest.mark.parametrize("case", [_marked(case) for case in CASES])
def test_row(case: Case, server: Serving) -> None:
    case.check(server)
