"""Wrong results of an ODBC driver raise errors that name the driver and the column.

No way of reading crashes, hangs or uses unbounded memory.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.support import lying

_Outcomes = dict[tuple[str, str, str], dict[str, Any]]


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> _Outcomes:
    """The outcome of each way of reading, for each wrong result."""
    folder: Path = tmp_path_factory.mktemp("lying")
    return lying.outcomes(lying.compile_manager(folder))


@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", lying.TABLE)
def test_each_wrong_result_is_an_error_that_names_driver_and_column(outcomes: _Outcomes, name: str) -> None:
    lie = lying.TABLE[name]
    for manner in lie.manners:
        for reader in lying.readers(lie):
            outcome = outcomes.get((name, manner, reader))
            assert outcome is not None, f"{manner}, {reader}: the process ended, or hung"
            if outcome["outcome"] == "value" and lie.is_honest(manner, reader):
                continue
            assert outcome["outcome"] in lie.outcomes, (manner, reader, outcome)
            if outcome["outcome"] in lying.EITHER:
                # If the driver returns an error itself, its message is passed on.
                assert f"driver `{manner} 1.0`" in outcome["message"] or "diag" in lie.orders, (manner, reader, outcome)
                assert outcome["column"] == 1 or not lie.column, (manner, reader, outcome)
