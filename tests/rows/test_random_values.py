"""Random values of each column type of each database in results of several lengths, against an independent client."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator

import pytest

from tests.conftest import Database
from tests.support import random_values, servers
from tests.support.random_values import ROW_COUNTS
from tests.support.random_values.clients import NAMES, WRITERS, Pair, compare_written, connect
from tests.support.random_values.readers import READERS, Tally, compare_as_parameters, compare_read

pytestmark = pytest.mark.filterwarnings("ignore::onecopy.DriverWarning")

#: Other CPythons are tested without Arrow's readers.
_READERS = [name for name in READERS if name != "arrow" or importlib.util.find_spec("pyarrow")]


def _connected(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Pair:
    if request.param == "sqlite":
        file = str(tmp_path_factory.mktemp("random") / "values.db")
        return connect("sqlite", f"sqlite:{file}", {"database": file})
    if request.param == "postgres_native":
        reached: Database = request.getfixturevalue("postgres")
        return connect("postgres_native", servers.url(reached.native), reached.native)
    database: Database = request.getfixturevalue(request.param)
    return connect(request.param, database.odbc, database.native)


@pytest.fixture(scope="module", params=NAMES)
def pair(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    """Both clients of each database, with the table `random_theirs` that the independent one filled."""
    both = _connected(request, tmp_path_factory)
    both.fill("random_theirs", random_values.rows(both.columns, max(ROW_COUNTS)))
    yield both
    both.drop()
    both.con.close()
    both.client.close()


def passes(tally: Tally) -> None:
    """Cells were compared and none was wrong."""
    assert tally.compared.total() > 0
    assert not tally.wrong, tally.examples[:5]


@pytest.mark.parametrize("n_rows", ROW_COUNTS)
@pytest.mark.parametrize("reader", _READERS)
def test_what_is_read_is_what_the_independent_client_reads(pair: Pair, reader: str, n_rows: int) -> None:
    tally = Tally()
    compare_read(
        tally,
        pair.con,
        pair.columns,
        lambda of_text: pair.read("random_theirs", n_rows, of_text=of_text),
        reader,
    )
    passes(tally)


def test_a_value_equals_its_column_in_the_database(pair: Pair) -> None:
    tally = Tally()
    compare_as_parameters(tally, pair.con, pair.columns, pair.read("random_theirs", 100))
    passes(tally)


@pytest.mark.parametrize("n_rows", [1, 3, 1000])
@pytest.mark.parametrize("writer", WRITERS)
def test_what_is_written_is_what_the_independent_client_reads(pair: Pair, writer: str, n_rows: int) -> None:
    tally = Tally()
    compare_written(tally, pair, random_values.rows(pair.columns, n_rows), writer)
    passes(tally)


def test_a_hundred_thousand_rows_are_a_hundred_times_a_thousand(pair: Pair) -> None:
    expected = [repr(row) for row in pair.read("random_theirs", 1000)]
    hundred = "with recursive s (k) as (select 1 union all select k + 1 from s where k < 100) "
    cur = pair.con.execute(f"{hundred} select random_theirs.* from random_theirs cross join s order by k, i")
    for _ in range(100):
        assert [repr(row) for row in cur.fetchmany(1000)] == expected
    assert cur.fetchone() is None
