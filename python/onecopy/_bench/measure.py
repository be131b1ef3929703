"""Measures all engines, each in its own process, in alternating order, after their rows were
compared."""

from __future__ import annotations

import contextlib
import math
import os
import platform
import sys
from collections.abc import Callable, Iterator
from typing import Any

from onecopy import __version__
from onecopy._bench.database import Database
from onecopy._bench.engines.peers import OURS, WAYS, Variant, variants
from onecopy._bench.process import EngineFailed, WorkerProcess
from onecopy._bench.results import EngineResult, Report, WayResult

__all__ = ["Benchmark", "CannotConnect", "CannotMeasure"]

#: The least duration of a measurement, in seconds. A shorter run is repeated and the mean is
#: taken, because the clock is not exact enough for it.
_SHORTEST_S = 0.02


class CannotConnect(Exception):
    """Raised if onecopy cannot connect to the database."""


class CannotMeasure(Exception):
    """Raised if there is no table, or if onecopy cannot execute the statement."""


class _Running:
    """A worker process whose engine is measured, and the figures of this engine."""

    def __init__(self, process: WorkerProcess, result: EngineResult) -> None:
        self.process = process
        self.result = result
        self.times = 1
        self.columns: list[dict[str, Any]] = []


class Benchmark:
    """The measurement of one statement. ``progress`` is called with a description of each step
    before the step begins."""

    def __init__(self, database: Database, rounds: int, time_limit_s: float, progress: Callable[[str], None]) -> None:
        self._database = database
        self._rounds = rounds
        self._time_limit_s = time_limit_s
        self._progress = progress
        self._core = _core()
        self._sql = ""

    def measure(self, sql: str | None, n_rows: int | None, ways: list[str]) -> Report:
        """Measure the statement, or the largest table if ``sql`` is None.

        Raises:
            CannotConnect: onecopy cannot connect.
            CannotMeasure: there is no table, or onecopy cannot execute the statement.
        """
        self._progress("connecting")
        try:
            with self._start() as process:
                described = process.call("describe", sql=sql, n_rows=n_rows)
        except EngineFailed as error:
            kind = CannotConnect if error.answer.get("cannot_connect") else CannotMeasure
            raise kind(self._database.without_secrets(str(error))) from None
        self._sql = described["sql"]
        self._database = self._database._replace(dialect=described["dialect"])
        report = Report(
            onecopy=__version__,
            python=platform.python_version(),
            machine=f"{_processor()}, {os.cpu_count()} cores",
            database=described["version"],
            driver=described["driver"],
            table=described["table"],
            sql=self._sql,
            limit=n_rows,
            rounds=self._rounds,
        )
        self._measure_size(report)
        for way in ways:
            self._measure_way(way, report)
        return report

    def _start(self) -> WorkerProcess:
        return WorkerProcess(self._database._asdict(), self._core, self._time_limit_s)

    def _measure_size(self, report: Report) -> None:
        """Read the rows once as CSV. All figures in MB/s are computed from the size of this CSV in
        bytes."""
        self._progress("reading the rows")
        try:
            with self._start() as process:
                self._open(process, Variant(OURS), "csv")
                checked = process.call("check", way="csv", common=[])
        except EngineFailed as error:
            raise CannotMeasure(str(error)) from None
        report.n_rows, report.csv_bytes = checked["n_rows"], checked["n_bytes"]

    def _open(self, process: WorkerProcess, variant: Variant, way: str) -> dict[str, Any]:
        engine = variant.engine
        package = engine.package.partition("[")[0]
        return process.call(
            "open",
            opens=engine.opens,
            name=engine.name,
            is_named=engine.opens in ("drivers.open_job", "columns.open_job"),
            package="" if " " in package else package,
            sql=self._sql,
            way=way,
            encoder=variant.encoder,
        )

    def _measure_way(self, way: str, report: Report) -> None:
        found, missing = variants(self._database, way)
        report.missing |= {engine.name: engine.package for engine in missing}
        if not any(variant.engine is OURS for variant in found):
            report.missing["pyarrow"] = "pyarrow"
        result = WayResult(way, WAYS[way])
        with contextlib.ExitStack() as stack:
            running = [self._begin(variant, way, result, report, stack) for variant in found]
            ready = [one for one in running if one is not None]
            self._compare(ready, way)
            self._take_turns([one for one in ready if not one.result.failure], way)
            self._read_ledger(ready, way, result)
        result.set_ratios()
        if result.engines:
            report.ways.append(result)

    def _begin(
        self, variant: Variant, way: str, way_result: WayResult, report: Report, stack: contextlib.ExitStack
    ) -> _Running | None:
        """Start an engine and run it once; return None if it failed."""
        self._progress(f"{way}: starting {variant.name}")
        result = EngineResult(variant.name, is_ours=variant.engine is OURS)
        one = _Running(stack.enter_context(self._start()), result)
        try:
            opened = self._open(one.process, variant, way)
        except EngineFailed as error:
            if error.kind == "missing":
                report.incomplete[variant.engine.name] = str(error)
                return None
            result.failure = _first_line(error)
        way_result.engines.append(result)
        if result.failure:
            return None
        if opened["variant"]:
            named = f"{variant.engine.name} ({opened['variant']})"
            result.name = variant.name.replace(variant.engine.name, named)
        result.version, result.note = opened["version"], opened["note"]
        with self._failures(one):
            warmed = one.process.call("warm")
            result.peak_bytes = warmed["peak_bytes"]
            one.times = max(1, min(1000, math.ceil(_SHORTEST_S / max(warmed["wall_s"], 1e-6))))
        return None if result.failure else one

    @contextlib.contextmanager
    def _failures(self, one: _Running) -> Iterator[None]:
        """Record the failure of an engine if the `with` block raises `EngineFailed`."""
        try:
            yield
        except EngineFailed as error:
            one.result.failure = _first_line(error)

    def _compare(self, running: list[_Running], way: str) -> None:
        """Compare the rows that each other engine returns with the rows that onecopy returns."""
        self._progress(f"{way}: comparing the rows")
        for one in running:
            with self._failures(one):
                checked = one.process.call("check", way=way, common=[])
                one.result.n_rows, one.result.n_bytes = checked["n_rows"], checked["n_bytes"]
                one.columns = checked["columns"]
        ours = next((one for one in running if one.result.is_ours and not one.result.failure), None)
        if ours is None:
            return
        for one in running:
            if one is not ours and not one.result.failure:
                with self._failures(one), self._failures(ours):
                    self._compare_with_ours(one, ours, way)

    def _compare_with_ours(self, one: _Running, ours: _Running, way: str) -> None:
        result = one.result
        if result.n_rows != ours.result.n_rows:
            result.failure = f"returns {result.n_rows:,} rows, onecopy {ours.result.n_rows:,}"
            return
        if len(one.columns) != len(ours.columns):
            result.value_differences.append(f"{len(one.columns)} columns instead of {len(ours.columns)}")
            return
        differing = [
            k
            for k, (theirs, own) in enumerate(zip(one.columns, ours.columns, strict=True))
            if theirs["digest"] is None or theirs["digest"] != own["digest"]
        ]
        common: list[list[int]] = [[], []]
        if differing:
            for k, engine in enumerate((one, ours)):
                common[k] = engine.process.call("check", way=way, common=differing)["common"]
        equal = [k for k, theirs, own in zip(differing, *common, strict=True) if theirs == own]
        for k, (theirs, own) in enumerate(zip(one.columns, ours.columns, strict=True)):
            name = own["name"]
            types = f"{_listed(theirs['types'])}, not {_listed(own['types'])}"
            if k in differing and k not in equal:
                result.value_differences.append(
                    f"`{name}`" + ("" if theirs["types"] == own["types"] else f" ({types})")
                )
            elif k in equal and theirs["types"] != own["types"]:
                result.type_differences.append(f"`{name}` ({types})")

    def _take_turns(self, running: list[_Running], way: str) -> None:
        """Run all rounds of the measurement. Each round runs all engines, and begins with a
        different engine than the previous round."""
        for k in range(self._rounds):
            self._progress(f"{way}: round {k + 1} of {self._rounds}")
            first = k % len(running) if running else 0
            for one in running[first:] + running[:first]:
                if not one.result.failure:
                    with self._failures(one):
                        timed = one.process.call("time", times=one.times)
                        one.result.wall_s.append(timed["wall_s"])
                        one.result.cpu_s.append(timed["cpu_s"])

    def _read_ledger(self, running: list[_Running], way: str, result: WayResult) -> None:
        """Count the bytes of text that one run of onecopy converts and copies. Parquet is omitted,
        because `onecopy export` writes the Parquet file and has no ledger."""
        for one in running:
            if one.result.is_ours and not one.result.failure and way != "parquet":
                with self._failures(one):
                    result.ledger = one.process.call("ledger")


def _first_line(error: EngineFailed) -> str:
    return str(error).partition("\n")[0]


def _listed(types: list[str]) -> str:
    return " or ".join(types) or "NULL"


def _core() -> int | None:
    """Return the number of the core on which the engines run: the last core that this process may
    use."""
    if sys.platform != "linux":
        return None
    return max(os.sched_getaffinity(0))


def _processor() -> str:
    """Return the name of the processor, or the architecture if the name is not known."""
    with contextlib.suppress(OSError), open("/proc/cpuinfo", encoding="utf-8") as file:
        for line in file:
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.machine()
