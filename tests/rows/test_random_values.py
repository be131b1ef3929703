"""Random values of each column type of each database, compared with an independent client in
results of several lengths."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator

import pytest

from tests.conftest import Database
from tests.support import random_values
from tests.support.properties import scaled
from tests.support.random_values import ROW_COUNTS
from tests.support.random_values.clients import NAMES, WRITERS, Pair, compare_written, connect
from tests.support.random_values.readers import READERS, Tally, compare_as_parameters, compare_read

pytestmark = pytest.mark.filterwarnings("ignore::onecopy.DriverWarning")

#: Other CPythons are tested without consumers of Arrow streams.
_READERS = [name for name in READERS if name != "arrow" or importlib.util.find_spec("pyarrow")]


def _connected(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Pair:
    if request.param == "sqlite":
        file = str(tmp_path_factory.mktemp("random") / "values.db")
        return connect("sqlite", f"sqlite:{file}", {"database": file})
    database: Database = request.getfixturevalue(request.param)
    return connect(request.param, database.odbc, database.native)


@pytest.fixture(scope="module", params=NAMES)
def pair(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    """Both clients of each database; the independent client has filled the table
    `random_theirs`."""
    both = _connected(request, tmp_path_factory)
    both.fill("random_theirs", random_values.rows(both.columns, max(ROW_COUNTS)))
    yield both
    both.drop()
    both.con.close()
    both.client.close()


def passes(tally: Tally) -> None:
    """Checks that some cells were compared and that all were equal."""
    assert tally.compared.total() > 0
    assert not tally.wrong, tally.examples[:5]


@pytest.mark.parametrize("n_rows", ROW_COUNTS)
@pytest.mark.parametrize("reader", _READERS)
def test_values_are_read_as_by_the_independent_client(pair: Pair, reader: str, n_rows: int) -> None:
    tally = Tally()
    compare_read(
        tally,
        pair.con,
        pair.columns,
        lambda of: pair.read("random_theirs", n_rows, of=of),
        reader,
    )
    passes(tally)


def test_a_value_equals_its_column_in_the_database(pair: Pair) -> None:
    tally = Tally()
    compare_as_parameters(tally, pair.con, pair.columns, pair.read("random_theirs", 100))
    passes(tally)


@pytest.mark.parametrize("n_rows", [1, 3, 1000])
@pytest.mark.parametrize("writer", WRITERS)
def test_written_values_are_read_back_by_the_independent_client(pair: Pair, writer: str, n_rows: int) -> None:
    tally = Tally()
    compare_written(tally, pair, random_values.rows(pair.columns, n_rows), writer)
    passes(tally)


def test_a_thousand_rows_repeated_a_hundred_times_match(pair: Pair) -> None:
    expected = [repr(row) for row in pair.read("random_theirs", 1000)]
    n = scaled(100)
    repeats = f"with recursive s (k) as (select 1 union all select k + 1 from s where k < {n}) "
    cur = pair.con.execute(f"{repeats} select random_theirs.* from random_theirs cross join s order by k, i")
    for _ in range(n):
        assert [repr(row) for row in cur.fetchmany(1000)] == expected
    assert cur.fetchone() is None
