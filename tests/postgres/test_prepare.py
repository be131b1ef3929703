"""`connect(prepare=…)`: which statements are prepared on the server and reused."""

from __future__ import annotations

from typing import Any, Literal

import pytest

import onecopy
from tests.conftest import Database

COUNT = "select count(*) from pg_prepared_statements where statement like 'select 1, $1%'"


@pytest.mark.parametrize(("prepare", "expected"), [("auto", [0, 1, 1]), ("always", [1, 1, 1]), ("never", [0, 0, 0])])
def test_a_statement_is_prepared_as_the_mode_says(
    postgres_native: Database, prepare: Literal["auto", "always", "never"], expected: list[int]
) -> None:
    with (
        onecopy.connect(postgres_native.odbc, prepare=prepare) as con,
        onecopy.connect(postgres_native.odbc, prepare="never") as other,
    ):
        assert other.execute(COUNT).fetchall() == [(0,)]
        counts = []
        for key in range(3):
            assert con.execute("select 1, ?", [key]).fetchall() == [(1, key)]
            counts.append(con.execute(f"{COUNT} -- {key}").fetchall()[0][0])
        assert counts == expected


def test_another_mode_is_a_value_error(postgres_native: Database) -> None:
    wrong: Any = "sometimes"
    with pytest.raises(ValueError, match='`prepare` is none of "auto", "always", "never"'):
        onecopy.connect(postgres_native.odbc, prepare=wrong)
