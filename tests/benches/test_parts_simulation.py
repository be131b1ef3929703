"""The simulation of an export in parts: the protocol loses and doubles no row, and each defect of a
protocol is found."""

from __future__ import annotations

import random
from dataclasses import replace
from functools import partial
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benches.parts_simulation import costs, reader, scenarios
from benches.parts_simulation.cluster import Cluster, Export
from benches.parts_simulation.faults import Faults, Policy
from benches.parts_simulation.folder import MANIFEST, Entry, Folder, Manifest, Rows, digest
from benches.parts_simulation.interleavings import PLANS, Interleaving, each_kill
from benches.parts_simulation.peers import Append, append_batches, append_transaction
from benches.parts_simulation.protocol import MUTATIONS, PROTOCOL, Plan, Protocol
from benches.parts_simulation.rows import Range, difference, ranges_of, split
from benches.parts_simulation.server import Server
from benches.parts_simulation.sinks import FolderSink, NewSink, TableSink, count_steps

#: Often enough that each kind of failure occurs in an export of 12 parts.
FAULTS = Faults(
    p_death=0.2,
    p_stall=0.05,
    stall_s=40,
    p_straggler=0.3,
    n_coordinator_deaths=1,
    p_death_at_finish=0.5,
    n_power_failures=1,
    detection_s=2,
    restart_s=5,
    power_failure_s=10,
    back_off_s=1,
)


def small_export(new_sink: NewSink, faults: Faults = FAULTS, slow_attempts: str = "duplicate") -> Export:
    """An export of 12 parts of different sizes on 3 workers."""
    sizes = [100, 1, 0, 250, 100, 70, 100, 30, 100, 100, 5, 100]
    plan = Plan(1, tuple(ranges_of(sizes)))
    return Export(
        plan=plan,
        work_s=tuple(0.1 + size / 10 for size in sizes),
        estimated=(80,) * 12,
        n_workers=3,
        capacity=2.0,
        most_connections=3,
        start_s=0.1,
        connect_s=0.01,
        sync_s=0.01,
        n_steps=count_steps(new_sink, plan),
        faults=faults,
        policy=Policy(slow_attempts=slow_attempts, slow_check_s=1),
    )


@given(st.lists(st.tuples(st.integers(0, 30), st.integers(0, 8)), max_size=12), st.integers(0, 30))
def test_difference_matches_a_count_of_each_row(found: list[tuple[int, int]], n_rows: int) -> None:
    ranges = [Range(start, start + size) for start, size in found]
    rows = [row for start, stop in ranges for row in range(start, stop)]
    distinct = {row for row in rows if row < n_rows}
    assert difference(ranges, n_rows) == (n_rows - len(distinct), len(rows) - len(distinct))


@given(st.integers(0, 50), st.integers(0, 50), st.integers(1, 9))
def test_pieces_of_a_range_are_the_range(start: int, size: int, n: int) -> None:
    pieces = split(Range(start, start + size), n)
    assert pieces[0].start == start and pieces[-1].stop == start + size
    assert all(a.stop == b.start for a, b in pairwise(pieces))


def test_the_protocol_shows_no_wrong_state_in_any_order_of_steps() -> None:
    assert [found for seed in range(300) if (found := Interleaving(seed).execute())] == []


def test_the_protocol_recovers_from_a_kill_at_each_step_and_at_each_step_of_the_recovery() -> None:
    n_executions, problems = each_kill(plan=PLANS[2])
    assert n_executions > 1_000 and problems == []


def test_the_protocol_recovers_from_a_power_failure_at_each_step() -> None:
    n_executions, problems = each_kill(power_failure_seed=3, plan=PLANS[2])
    assert n_executions > 1_000 and problems == []


@pytest.mark.parametrize("protocol", MUTATIONS, ids=lambda protocol: protocol.name.replace(" ", "-"))
def test_each_defect_of_a_protocol_is_found(protocol: Protocol) -> None:
    assert any(Interleaving(seed, protocol).execute() for seed in range(1_200))


def test_a_mutation_differs_from_the_protocol_in_its_defect_only() -> None:
    assert len({replace(protocol, name="") for protocol in (PROTOCOL, *MUTATIONS)}) == len(MUTATIONS) + 1


@pytest.mark.parametrize(
    ("contents", "problem"),
    [
        ((Rows((Range(0, 4), Range(4, 8)), 1), Rows((Range(8, 12),), 2)), None),
        ((Rows((Range(0, 4),), 1), Rows((Range(8, 12),), 2)), "4 rows are lost and 0 doubled"),
        ((Rows((Range(0, 8),), 1), Rows((Range(7, 12),), 2)), "0 rows are lost and 1 doubled"),
        ((Rows((Range(0, 12),), 1), None), "the manifest lists b, which is missing or empty"),
    ],
)
def test_the_reader_counts_the_rows_of_the_files(
    contents: tuple[Rows | None, Rows | None], problem: str | None
) -> None:
    folder = Folder()
    for name, rows in zip("ab", contents, strict=True):
        folder.create(name, rows)
    entries = (Entry(name, 0, digest(rows)) for name, rows in zip("ab", contents, strict=True))
    folder.create(MANIFEST, Manifest(1, tuple(entries)))
    assert reader.problem(folder, PLANS) == problem
    folder.create("c", Rows((), 3))
    assert problem is not None or reader.problem(folder, PLANS) == "the manifest does not list c"


def test_a_power_failure_keeps_what_was_synced_and_any_part_of_the_rest() -> None:
    kept = set()
    for seed in range(40):
        folder = Folder()
        folder.create("synced", Rows((Range(0, 9),), 1)).is_synced = True
        folder.sync_names()
        folder.create("new", Rows((Range(0, 9),), 2))
        folder.rename("synced", "renamed")
        folder.power_failure(random.Random(seed))
        whole = folder.contents("synced") or folder.contents("renamed")
        assert isinstance(whole, Rows) and whole.is_whole
        new = folder.contents("new")
        assert new is None or (isinstance(new, Rows) and not new.is_whole and new.n_rows < 9)
        kept.add(frozenset(folder.names))
    assert kept == {frozenset(names) for names in (["synced"], ["renamed"], ["synced", "new"], ["renamed", "new"])}


def test_a_lock_is_shared_or_exclusive_and_ends_with_its_owner() -> None:
    folder = Folder()
    assert folder.lock("a", 1, shared=True) and folder.lock("a", 2, shared=True)
    assert not folder.lock("a", 3)
    folder.release(1)
    assert not folder.lock("a", 3)
    folder.release(2, by_kill=True)
    assert folder.lock("a", 3) and not folder.lock("a", 4, shared=True)


def test_connections_share_the_rate_of_the_server_and_slow_ones_leave_their_share() -> None:
    server = Server(capacity=2.0, most_connections=3)
    assert [server.connect() for _ in range(4)] == [True, True, True, False]
    slow = server.start(work=1.0, speed=0.1, now=0.0)
    fast = [server.start(work=1.9, speed=1.0, now=0.0) for _ in range(2)]
    # 0.1 for the slow one, and 0.95 for each of the others.
    end_s, number = server.next_end()
    assert end_s == pytest.approx(2.0) and number == fast[0]
    for number in fast:
        server.stop(number, 2.0)
    end_s, number = server.next_end()
    assert end_s == pytest.approx(10.0) and number == slow
    server.advance(10.0)
    assert server.work_done == pytest.approx(1.9 * 2 + 1.0)


@pytest.mark.parametrize("slow_attempts", ["wait", "duplicate", "terminate"])
def test_an_export_with_failures_loses_and_doubles_no_row(slow_attempts: str) -> None:
    new_sink = partial(FolderSink, protocol=PROTOCOL)
    export = small_export(new_sink, slow_attempts=slow_attempts)
    results = [Cluster(export, new_sink, seed, 10_000).execute() for seed in range(40)]
    assert {(result.n_lost, result.n_doubled, result.problems) for result in results} == {(0, 0, ())}
    assert min(result.makespan_s for result in results) >= export.ideal_s()
    assert sum(result.n_deaths for result in results) > 100
    assert sum(result.n_refused for result in results) > 100


def test_an_export_without_failures_reads_each_row_once() -> None:
    new_sink = partial(FolderSink, protocol=PROTOCOL)
    result = Cluster(small_export(new_sink, Faults(), "wait"), new_sink, 0).execute()
    assert (result.n_attempts, result.n_deaths, result.n_refused) == (12, 0, 0)
    assert result.work == pytest.approx(1)


def test_the_same_seed_has_the_same_result() -> None:
    new_sink = partial(FolderSink, protocol=PROTOCOL)
    export = small_export(new_sink)
    assert Cluster(export, new_sink, 5).execute() == Cluster(export, new_sink, 5).execute()


@pytest.mark.parametrize("protocol", [p for p in MUTATIONS if not p.manifest_last or not p.file_before_entry])
def test_a_defect_is_also_found_in_a_simulated_export(protocol: Protocol) -> None:
    new_sink = partial(FolderSink, protocol=protocol)
    export = small_export(new_sink)
    assert any(Cluster(export, new_sink, seed, 10_000).execute().problems for seed in range(40))


@pytest.mark.parametrize("append", [append_batches, append_transaction])
def test_rows_that_are_appended_again_are_doubled(append: Append) -> None:
    new_sink = partial(TableSink, append=append)
    faults = replace(FAULTS, n_power_failures=0, n_coordinator_deaths=0)
    export = small_export(new_sink, faults)
    results = [Cluster(export, new_sink, seed, 10_000).execute() for seed in range(40)]
    assert sum(result.n_doubled for result in results) > 0
    assert {result.n_lost for result in results} == {0}


def test_the_measured_parts_are_the_whole_table() -> None:
    measured = costs.read(costs.newest())
    for database in measured["databases"]:
        for key in ("key", "id"):
            found = costs.costs_of(measured, database, key)
            assert sum(part.n_rows for part in found.parts) == measured["rows"]
            export = scenarios.export_of(scenarios.SCENARIOS[0], found, scale=1)
            assert export.ideal_s() >= sum(export.work_s) / export.n_workers
        assert len(costs.throughputs(measured, database)) == 16
