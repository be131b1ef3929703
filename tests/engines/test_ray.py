"""Ray Data on two workers, of which one is killed in the middle."""

from __future__ import annotations

import os
import signal
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import ray

import onecopy
import onecopy.ray
from onecopy import parts

N_ROWS = 40_000
pytestmark = pytest.mark.filterwarnings("ignore")  # Ray's own warnings.


@pytest.fixture(scope="module", autouse=True)
def _cluster() -> Iterator[None]:
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level="ERROR")
    context = ray.data.DataContext.get_current()
    context.enable_progress_bars = False
    # Several blocks for each task, some of which exist when the worker is killed.
    context.target_max_block_size = 64 << 10
    yield
    ray.shutdown()


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The connection string of a database with the table `item` of 40,000 rows."""
    target = f"sqlite:{tmp_path_factory.mktemp('ray') / 'source.db'}"
    con = onecopy.connect(target)
    con.execute("create table item (id integer primary key, name text)")
    con.executemany("insert into item values (?, ?)", ([i, f"名{i}"] for i in range(N_ROWS)))
    con.commit()
    con.close()
    return target


@pytest.fixture
def written(tmp_path: Path) -> str:
    """The connection string of a database with an empty table `written`."""
    target = f"sqlite:{tmp_path / 'target.db'}"
    con = onecopy.connect(target)
    con.execute("create table written (id integer, name text)")
    con.commit()
    con.close()
    return target


def _kill_once(marker: Path) -> Any:
    """A function for `map_batches` that kills its worker once, after some batches."""

    def function(batch: Any) -> Any:
        ids = batch.column("id").to_pylist()
        if any(N_ROWS // 2 + 5000 <= i < N_ROWS // 2 + 6000 for i in ids):
            try:
                os.close(os.open(marker, os.O_CREAT | os.O_EXCL))
            except FileExistsError:
                return batch
            os.kill(os.getpid(), signal.SIGKILL)
        return batch

    return function


def test_a_dataset_is_complete_although_a_worker_is_killed(source: str, tmp_path: Path) -> None:
    marker = tmp_path / "killed"
    dataset = onecopy.ray.read_sql(source, "select * from item", parts=4)
    rows = dataset.map_batches(_kill_once(marker), batch_format="pyarrow", batch_size=1000).take_all()
    assert marker.exists()
    assert sorted(row["id"] for row in rows) == list(range(N_ROWS))
    assert all(row["name"] == f"名{row['id']}" for row in rows)


@pytest.mark.parametrize("commit", ["job", "part"])
def test_rows_are_written_once_although_a_worker_is_killed(
    source: str, written: str, tmp_path: Path, commit: Any
) -> None:
    marker = tmp_path / "killed"
    dataset = onecopy.ray.read_sql(source, "select * from item", parts=4)
    dataset = dataset.map_batches(_kill_once(marker), batch_format="pyarrow", batch_size=1000)
    dataset.write_datasink(onecopy.ray.OnecopyDatasink(written, "written", commit=commit))
    assert marker.exists()
    counts = Counter(onecopy.connect(written).execute("select id from written").fetchall())
    assert counts == Counter({(i,): 1 for i in range(N_ROWS)})


def test_a_task_reads_at_most_the_rows_of_its_limit(source: str) -> None:
    tasks = onecopy.ray.OnecopyDatasource(source, "select * from item", parts=4).get_read_tasks(1, 10)
    assert [task.per_task_row_limit for task in tasks] == [10] * 4
    # The function itself ends, not only Ray's slices of its blocks.
    assert [sum(block.num_rows for block in task.read_fn()) for task in tasks] == [10] * 4
    assert len(onecopy.ray.read_sql(source, "select * from item").limit(7).take_all()) == 7


def test_a_plan_is_read_and_rows_are_counted_not_estimated(source: str) -> None:
    plan = parts.plan(source, "select * from item", parts=3)
    con = onecopy.connect(source)
    con.execute("insert into item values (?, 'late')", [N_ROWS])
    con.commit()
    try:
        dataset = onecopy.ray.read_sql(source, plan)
        assert dataset.count() == N_ROWS + 1
        assert all(
            task.metadata.num_rows is None for task in onecopy.ray.OnecopyDatasource(source, plan).get_read_tasks(1)
        )
    finally:
        con.execute("delete from item where id = ?", [N_ROWS])
        con.commit()


def test_a_datasink_writes_one_dataset(written: str) -> None:
    sink = onecopy.ray.OnecopyDatasink(written, "written")
    ray.data.from_items([{"id": 1, "name": "a"}]).write_datasink(sink)
    with pytest.raises(Exception, match="a datasink writes one dataset"):
        ray.data.from_items([{"id": 1, "name": "a"}]).write_datasink(sink)
    assert onecopy.connect(written).execute("select id from written").fetchall() == [(1,)]


def test_a_password_is_refused() -> None:
    with pytest.raises(onecopy.ProgrammingError, match="env:NAME"):
        onecopy.ray.read_sql("postgresql://ann:s3cr3t@db/shop", "select 1")
