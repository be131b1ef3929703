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

from benches.parts_simulation import scenarios
from benches.parts_simulation.cluster import Cluster, Export, Faults, NewSink, Result, Server
from benches.parts_simulation.folder import Folder, Rows
from benches.parts_simulation.interleavings import PLANS, Interleaving
from benches.parts_simulation.protocol import (
    MANIFEST,
    MUTATIONS,
    PROTOCOL,
    Entry,
    Kind,
    Manifest,
    Plan,
    Protocol,
    problem,
)
from benches.parts_simulation.rows import Range, difference, ranges_of, split
from benches.parts_simulation.sinks import FolderSink, TableSink

#: Often enough that each kind of failure occurs in an export of 12 parts.
FAULTS = Faults(
    p_death=0.2,
    p_death_at_move=0.5,
    p_stall=0.05,
    stall_s=40,
    p_straggler=0.3,
    kills_slow_attempts=True,
    n_coordinator_deaths=1,
    detection_s=2,
    restart_s=5,
    back_off_s=1,
)


def simulated(new_sink: NewSink, n_seeds: int = 40, faults: Faults = FAULTS) -> list[Result]:
    """Exports of 12 parts of different sizes on 3 workers; a server of 2 processors is saturated."""
    sizes = [100, 1, 0, 250, 100, 70, 100, 30, 100, 100, 5, 100]
    export = Export(
        plan=Plan(1, ranges_of(sizes)),
        work_s=tuple(0.1 + size / 10 for size in sizes),
        estimated=(80,) * 12,
        n_workers=3,
        capacity=2.0,
        most_connections=3,
        step_s={Kind.START: 0.1, Kind.CONNECT: 0.01, Kind.SYNC: 0.01},
        faults=faults,
    )
    results = [Cluster(export, new_sink, seed, 10_000).execute() for seed in range(n_seeds)]
    assert all(result.makespan_s >= export.ideal_s() or result.problems for result in results)
    return results


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
    assert [found for seed in range(400) if (found := Interleaving(seed).execute())] == []


@pytest.mark.parametrize("protocol", MUTATIONS, ids=lambda protocol: protocol.name.replace(" ", "-"))
def test_each_defect_of_a_protocol_is_found(protocol: Protocol) -> None:
    assert any(Interleaving(seed, protocol).execute() for seed in range(1_500))


def test_a_mutation_differs_from_the_protocol_in_its_defect_only() -> None:
    assert len({replace(protocol, name="") for protocol in (PROTOCOL, *MUTATIONS)}) == len(MUTATIONS) + 1


@pytest.mark.parametrize(
    ("contents", "expected"),
    [
        ((Rows((Range(0, 4), Range(4, 8)), 1), Rows((Range(8, 12),), 2)), None),
        ((Rows((Range(0, 4),), 1), Rows((Range(8, 12),), 2)), "4 rows are lost and 0 doubled"),
        ((Rows((Range(0, 8),), 1), Rows((Range(7, 12),), 2)), "0 rows are lost and 1 doubled"),
        ((Rows((Range(0, 12),), 1), None), "the manifest lists b, which is missing or empty"),
    ],
)
def test_the_reader_counts_the_rows_of_the_files(
    contents: tuple[Rows | None, Rows | None], expected: str | None
) -> None:
    folder = Folder()
    for name, rows in zip("ab", contents, strict=True):
        if rows is not None:
            folder.create(name, rows)
    entries = (Entry(name, 0, hash(rows)) for name, rows in zip("ab", contents, strict=True))
    folder.create(MANIFEST, Manifest(1, tuple(entries)))
    assert problem(folder, PLANS) == expected
    folder.create("c", Rows((), 3))
    assert expected is not None or problem(folder, PLANS) == "the manifest does not list c"


@pytest.mark.parametrize("keeps_order", [True, False])
def test_a_power_failure_keeps_what_was_synced_and_a_part_of_the_rest(keeps_order: bool) -> None:
    kept = set()
    for seed in range(60):
        folder = Folder(keeps_order)
        folder.create("synced", Rows((Range(0, 9),), 1), is_synced=True)
        folder.sync_names()
        folder.create("new", Rows((Range(0, 9),), 2))
        folder.rename("synced", "renamed")
        folder.power_failure(random.Random(seed))
        assert (folder.contents("synced") or folder.contents("renamed")) == Rows((Range(0, 9),), 1)
        new = folder.contents("new")
        assert new is None or (isinstance(new, Rows) and new.n_rows < 9)
        kept.add(frozenset(folder.names))
    expected = [["synced"], ["synced", "new"], ["renamed", "new"], *([] if keeps_order else [["renamed"]])]
    assert kept == {frozenset(names) for names in expected}


def test_a_lock_is_shared_or_exclusive_and_lost_if_it_cannot_be_converted() -> None:
    folder = Folder()
    assert folder.lock("a", 1, shared=True) and folder.lock("a", 2, shared=True)
    assert not folder.lock("a", 3)
    assert not folder.lock("a", 1)
    assert folder.lock("a", 2)
    assert not folder.lock("a", 1, shared=True)
    folder.release(2)
    assert folder.lock("a", 3)


def test_reads_share_the_rate_of_the_server_and_slow_ones_have_a_smaller_share() -> None:
    server = Server(capacity=1.05)
    server.start(1, work=1.0, speed=0.1, now=0.0)
    for process in (2, 3):
        server.start(process, work=1.0, speed=1.0, now=0.0)
    # 2.1 units are requested for each second, and 1.05 are done.
    assert server.next_end() == pytest.approx((2.0, 2))
    for process in (2, 3):
        server.stop(process, 2.0)
    # The slow one has done a tenth, and has the server for itself now.
    assert server.next_end() == pytest.approx((11.0, 1))
    server.advance(11.0)
    assert server.work_done == pytest.approx(3.0)


@pytest.mark.parametrize(
    "new_sink", [FolderSink, partial(TableSink, commit="job"), partial(TableSink, commit="part")], ids=range(3)
)
def test_an_export_with_failures_loses_and_doubles_no_row(new_sink: NewSink) -> None:
    results = simulated(new_sink)
    assert {(result.n_lost, result.n_doubled, result.problems) for result in results} == {(0, 0, ())}
    assert sum(result.n_deaths for result in results) > 80
    assert sum(result.n_refused for result in results) > 80 or new_sink is not FolderSink


def test_an_export_without_failures_reads_each_row_once() -> None:
    (result,) = simulated(FolderSink, 1, Faults())
    assert (result.n_attempts, result.n_deaths, result.n_refused) == (12, 0, 0)
    assert result.work == pytest.approx(1)


def test_the_same_seed_has_the_same_result() -> None:
    assert simulated(FolderSink, 3) == simulated(FolderSink, 3)


@pytest.mark.parametrize("protocol", [p for p in MUTATIONS if not (p.manifest_last and p.needs_entry)])
def test_a_defect_is_also_found_in_a_simulated_export(protocol: Protocol) -> None:
    assert any(result.problems for result in simulated(partial(FolderSink, protocol=protocol)))


@pytest.mark.parametrize("commit", ["batches", "transaction", "attempts"])
def test_rows_that_are_appended_again_are_doubled(commit: str) -> None:
    results = simulated(partial(TableSink, commit=commit), faults=replace(FAULTS, n_coordinator_deaths=0))
    assert sum(result.n_doubled for result in results) > 0
    assert {result.n_lost for result in results} == {0}


def test_the_measured_parts_are_the_whole_table() -> None:
    measured = scenarios.read_costs(scenarios.newest_costs())
    for found in measured["databases"].values():
        for scenario in scenarios.SCENARIOS:
            export = scenarios.export_of(scenario, found)
            assert len(export.work_s) == scenario.n_parts
            # The rows of ranges of equal width are rounded.
            assert export.plan.parts[-1].stop / scenarios.SCALE == pytest.approx(measured["rows"], rel=1e-4)
            assert export.ideal_s() >= sum(export.work_s) / export.n_workers
