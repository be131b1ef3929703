"""The results of a benchmark: of one engine, of one way to read rows, and of the whole command."""

from __future__ import annotations

import statistics
from dataclasses import dataclass, field
from typing import Any, NamedTuple

__all__ = ["EngineResult", "Ratio", "Report", "WayResult"]


class Ratio(NamedTuple):
    """The time of a peer divided by the time of onecopy in the same round: the median, the smallest
    and the largest ratio. A ratio above 1 means that onecopy is faster."""

    median: float
    low: float
    high: float

    @classmethod
    def of(cls, peer: list[float], ours: list[float]) -> Ratio:
        """Divide the time of a peer by the time of onecopy for each round, and return the median,
        the smallest and the largest ratio."""
        ratios = [theirs / max(own, 1e-9) for theirs, own in zip(peer, ours, strict=True)]
        return cls(statistics.median(ratios), min(ratios), max(ratios))

    @property
    def verdict(self) -> str:
        """`parity` if 1 is between the smallest and the largest ratio. Otherwise `faster` if
        onecopy is faster than the peer, or `slower`."""
        if self.low <= 1 <= self.high:
            return "parity"
        return "faster" if self.low > 1 else "slower"


@dataclass
class EngineResult:
    """The figures of one engine for one way to read rows. If the measurement was not completed,
    ``failure`` is the reason; otherwise it is empty."""

    name: str
    is_ours: bool = False
    version: str = ""
    note: str = ""
    failure: str = ""
    #: Differences from the values of onecopy: by type only, or by value.
    type_differences: list[str] = field(default_factory=list)
    value_differences: list[str] = field(default_factory=list)
    n_rows: int | None = None
    n_bytes: int = 0
    peak_bytes: int = 0
    wall_s: list[float] = field(default_factory=list)
    cpu_s: list[float] = field(default_factory=list)
    wall_ratio: Ratio | None = None
    cpu_ratio: Ratio | None = None

    @property
    def is_measured(self) -> bool:
        """True if the engine has not failed and at least one round was measured."""
        return not self.failure and bool(self.wall_s)

    @property
    def wall(self) -> float:
        """The median of the wall times, in seconds."""
        return statistics.median(self.wall_s)

    @property
    def cpu(self) -> float:
        """The median of the CPU times, in seconds."""
        return statistics.median(self.cpu_s)

    def to_json(self) -> dict[str, Any]:
        """Return the JSON object that represents this engine in the output of `--json`."""
        members: dict[str, Any] = {"name": self.name, "version": self.version, "note": self.note}
        if self.failure:
            return members | {"failure": self.failure}
        members |= {
            "rows": self.n_rows,
            "bytes": self.n_bytes,
            "peak_bytes": self.peak_bytes,
            "wall_s": self.wall,
            "cpu_s": self.cpu,
            "rounds_wall_s": self.wall_s,
            "rounds_cpu_s": self.cpu_s,
            "type_differences": self.type_differences,
            "value_differences": self.value_differences,
        }
        for name, ratio in (("wall_ratio", self.wall_ratio), ("cpu_ratio", self.cpu_ratio)):
            if ratio is not None:
                members[name] = ratio._asdict() | {"verdict": ratio.verdict}
        return members


@dataclass
class WayResult:
    """The figures of all engines for one way to read rows. ``ledger`` has the counts of copies that
    `onecopy.ledger()` returned for one run of onecopy."""

    way: str
    title: str
    engines: list[EngineResult] = field(default_factory=list)
    ledger: dict[str, Any] | None = None

    @property
    def ours(self) -> EngineResult | None:
        """The figures of onecopy, if it was measured."""
        return next((engine for engine in self.engines if engine.is_ours and engine.is_measured), None)

    def best_peer(self, by: str) -> EngineResult | None:
        """Return the peer with the smallest median time, of those that were measured and returned
        the same values as onecopy. ``by`` selects the time: `wall` or `cpu`."""
        peers = [e for e in self.engines if e.is_measured and not e.is_ours and not e.value_differences]
        return min(peers, key=lambda engine: float(getattr(engine, by)), default=None)

    def set_ratios(self) -> None:
        """Compute and store the ratio of each peer's times to those of onecopy."""
        ours = self.ours
        for engine in self.engines:
            if ours is not None and engine.is_measured and not engine.is_ours:
                engine.wall_ratio = Ratio.of(engine.wall_s, ours.wall_s)
                engine.cpu_ratio = Ratio.of(engine.cpu_s, ours.cpu_s)

    def to_json(self) -> dict[str, Any]:
        """Return the JSON object that describes this way to read rows, for the output of
        `--json`."""
        best = {by: self.best_peer(by) for by in ("wall", "cpu")}
        return {
            "way": self.way,
            "engines": [engine.to_json() for engine in self.engines],
            "best_peer": {by: engine.name for by, engine in best.items() if engine is not None},
            "ledger": self.ledger,
        }


@dataclass
class Report:
    """The measurements and other data that `onecopy bench` reports.

    ``missing`` maps each engine that is not installed to the package to install. ``incomplete``
    maps each engine that is installed only in part to the reason.
    """

    onecopy: str
    python: str
    machine: str
    database: str
    driver: str
    table: str
    sql: str
    limit: int | None
    rounds: int
    n_rows: int = 0
    csv_bytes: int = 0
    ways: list[WayResult] = field(default_factory=list)
    missing: dict[str, str] = field(default_factory=dict)
    incomplete: dict[str, str] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """Return the object that `--json` prints."""
        return {
            "bench": 1,
            "onecopy": self.onecopy,
            "python": self.python,
            "machine": self.machine,
            "database": self.database,
            "driver": self.driver,
            "table": self.table,
            "sql": self.sql,
            "limit": self.limit,
            "rounds": self.rounds,
            "rows": self.n_rows,
            "csv_bytes": self.csv_bytes,
            "ways": [way.to_json() for way in self.ways],
            "not_installed": [{"name": name, "package": package} for name, package in self.missing.items()],
            "incomplete": [{"name": name, "reason": reason} for name, reason in self.incomplete.items()],
        }
