"""Formats the report as text: a table and bars for each way to read rows, and the counts of the
ledger."""

from __future__ import annotations

import textwrap
from typing import NamedTuple

from onecopy._bench.results import EngineResult, Ratio, Report, WayResult

__all__ = ["Style", "best_peers", "differences", "heading", "ledger_line", "number", "text"]

#: Eighths of a block, for the ends of bars.
_EIGHTHS = "▏▎▍▌▋▊▉█"


class Style(NamedTuple):
    """The style of the report: its width in columns, whether it has colours, and whether bars use
    Unicode."""

    width: int
    colour: bool
    unicode: bool

    def bold(self, line: str) -> str:
        """Return the line in bold, if the style has colours."""
        return f"\x1b[1m{line}\x1b[0m" if self.colour else line

    def ours(self, line: str) -> str:
        """Return a line about onecopy in cyan, or unchanged if the style has no colours."""
        return f"\x1b[36m{line}\x1b[0m" if self.colour else line


def text(report: Report, style: Style) -> str:
    """Return the report as text."""
    lines = [style.bold(line) for line in _wrapped(heading(report), style)]
    for way in report.ways:
        lines += ["", *_way(way, report, style)]
    lines += ["", *_footer(report, style)]
    return "\n".join(lines)


def heading(report: Report) -> str:
    """Return one line about the rows that were measured."""
    rows = f"{report.n_rows:,} row{'' if report.n_rows == 1 else 's'}"
    if report.limit == report.n_rows:
        rows = f"the first {rows}"
    subject = f"`{report.table}`" if report.table else "the statement"
    size = f"{number(report.csv_bytes / 1e6)} MB as CSV"
    return f"{report.database}: {rows} of {subject}, {size}; the median of {_rounds(report)}"


def _rounds(report: Report) -> str:
    return "1 round" if report.rounds == 1 else f"{report.rounds} rounds"


def number(value: float) -> str:
    """Return a number with three significant digits, and at most three decimals."""
    if value < 0.0005:
        return "0"
    if value >= 99.95:
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 9.995 else f"{value:.2f}" if value >= 0.9995 else f"{value:.3f}"


def _compact(value: float) -> str:
    """Return a rate with three significant digits and a unit."""
    for unit, name in ((1e6, "M"), (1e3, "k")):
        if value >= unit:
            return f"{number(value / unit)} {name}"
    return number(value)


def _way(way: WayResult, report: Report, style: Style) -> list[str]:
    lines = [style.bold(way.title)]
    names = [_name(engine) for engine in way.engines]
    # Names are at most as wide as the figures permit.
    n_name = max(len(name) for name in [*names, "engine"])
    header = f"{'wall ms':>9}{'CPU ms':>9}{'rows/s':>8}{'MB/s':>7}{'peak MB':>9}  ratio of wall"
    # Without their ranges, the ratios fit on a narrow terminal.
    has_ranges = n_name + len(header) + 3 <= style.width
    lines.append(f"{'':{n_name}}{header if has_ranges else header.removesuffix(' of wall')}")
    for engine, name in zip(way.engines, names, strict=True):
        if not engine.is_measured:
            lines += textwrap.wrap(
                f"{name:{n_name}}  {engine.failure}", style.width, subsequent_indent=" " * (n_name + 2)
            )
            continue
        line = f"{name:{n_name}}{_figures(engine, report)}"
        if engine.wall_ratio is not None:
            line += f"  {_ratio(engine.wall_ratio) if has_ranges else f'{engine.wall_ratio.median:.2f}'}"
        lines.append(style.ours(line) if engine.is_ours else line)
    lines += _bars(way, names, n_name, style)
    for note in filter(None, (best_peers(way), ledger_line(way), *differences(way))):
        lines += _wrapped(note, style)
    return lines


def _name(engine: EngineResult) -> str:
    return engine.name + (" *" if engine.value_differences else "")


def _figures(engine: EngineResult, report: Report) -> str:
    rows_s, mb_s = report.n_rows / engine.wall, report.csv_bytes / 1e6 / engine.wall
    wall, cpu, peak = number(engine.wall * 1e3), number(engine.cpu * 1e3), number(engine.peak_bytes / 1e6)
    return f"{wall:>9}{cpu:>9}{_compact(rows_s):>8}{number(mb_s):>7}{peak:>9}"


def _ratio(ratio: Ratio) -> str:
    return f"{ratio.median:.2f} ({ratio.low:.2f}-{ratio.high:.2f})"


def _bars(way: WayResult, names: list[str], n_name: int, style: Style) -> list[str]:
    """Return a line for each measured engine, with a bar that shows its wall time. If only one
    engine was measured, return no line."""
    measured = [(engine, name) for engine, name in zip(way.engines, names, strict=True) if engine.is_measured]
    if len(measured) < 2:
        return []
    longest = max(engine.wall for engine, _ in measured)
    space = max(style.width - n_name - 14, 10)
    lines = []
    for engine, name in measured:
        bar = _bar(engine.wall / longest * space, style)
        line = f"{name:{n_name}}  {bar} {number(engine.wall * 1e3)} ms"
        lines.append(style.ours(line) if engine.is_ours else line)
    return lines


def _bar(length: float, style: Style) -> str:
    """Return a bar with a length of ``length`` columns."""
    if not style.unicode:
        return "#" * max(round(length), 1)
    eighths = max(round(length * 8), 1)
    return "█" * (eighths // 8) + (_EIGHTHS[eighths % 8 - 1] if eighths % 8 else "")


def best_peers(way: WayResult) -> str:
    """Return a sentence about the peers with the lowest wall time and CPU time; empty if no peer
    was measured."""
    wall, cpu = way.best_peer("wall"), way.best_peer("cpu")
    if wall is None or cpu is None or wall.wall_ratio is None or cpu.cpu_ratio is None:
        return ""
    parts = [f"wall {_ratio(wall.wall_ratio)}", f"CPU {_ratio(cpu.cpu_ratio)}"]
    verdicts = [_VERDICTS[ratio.verdict] for ratio in (wall.wall_ratio, cpu.cpu_ratio)]
    if wall is not cpu:
        parts = [f"{wall.name}, {parts[0]}", f"{cpu.name}, {parts[1]}"]
    elif verdicts[0] == verdicts[1]:
        return f"best peer: {wall.name}, {parts[0]}, {parts[1]}: {verdicts[0]}"
    else:
        parts[0] = f"{wall.name}, {parts[0]}"
    return f"best peer: {parts[0]}: {verdicts[0]}; {parts[1]}: {verdicts[1]}"


#: A verdict, as the report words it.
_VERDICTS = {"parity": "parity", "faster": "onecopy is faster", "slower": "onecopy is slower"}


def ledger_line(way: WayResult) -> str:
    """Return a sentence about the counts of the ledger; empty if the ledger was not read."""
    if way.ledger is None:
        return ""
    taken, converted, copied = (way.ledger[name] for name in ("taken", "converted", "copied"))
    if not taken:
        return "ledger: no text"
    shares = ", ".join(f"{n / taken:.2f} of it {verb}" for n, verb in ((converted, "converted"), (copied, "copied")))
    return f"ledger: {number(taken / 1e6)} MB of text, {shares}, in {way.ledger['conversions']:,} conversions"


def differences(way: WayResult) -> list[str]:
    """Return a sentence for each peer whose values or types differ from those of onecopy."""
    found = []
    for engine in way.engines:
        if engine.value_differences:
            found.append(f"* {engine.name} returns other values: {', '.join(engine.value_differences)}")
        if engine.type_differences:
            found.append(f"{engine.name} returns other types: {', '.join(engine.type_differences)}")
        if engine.note:
            found.append(f"{engine.name}: {engine.note}")
    return found


def _wrapped(line: str, style: Style) -> list[str]:
    return textwrap.wrap(line, style.width, subsequent_indent="  ", break_on_hyphens=False)


def _footer(report: Report, style: Style) -> list[str]:
    versions = {
        engine.name.partition(" ")[0]: engine.version for way in report.ways for engine in way.engines if engine.version
    }
    named = ", ".join(f"{name} {version}" for name, version in versions.items() if name != "onecopy")
    lines = [
        "ratio: the time of the engine divided by that of onecopy in the same round, with the smallest and the "
        "largest; MB/s: the rows as CSV; peak MB: resident memory beyond that of the idle process",
        f"onecopy {report.onecopy}, Python {report.python}{', ' if named else ''}{named}; {report.machine}; "
        "each engine in a process of its own, all on one core",
    ]
    if report.incomplete:
        reasons = "; ".join(f"{name}: {reason}" for name, reason in report.incomplete.items())
        lines.append(f"not measured: {reasons}")
    if report.missing:
        packages = " ".join(package for package in report.missing.values() if " " not in package)
        commands = [package for package in report.missing.values() if " " in package]
        install = "; ".join([*([f"pip install {packages}"] if packages else []), *commands])
        lines.append(f"not installed: {', '.join(report.missing)} ({install})")
    return [part for line in lines for part in _wrapped(line, style)]
