"""The report as a picture: an SVG file with a group of bars for each way to read the rows."""

from __future__ import annotations

import textwrap
from html import escape

from onecopy._bench.results import EngineResult, Report, WayResult
from onecopy._bench.text import best_peers, differences, heading, ledger_line, number

__all__ = ["svg"]

_WIDTH = 860
_MARGIN = 24
#: The left end of the bars and their greatest length, in units of the picture.
_LEFT, _LENGTH = 220, 380
_LINE = 24
#: Characters of a line of notes.
_NOTE_COLUMNS = 128

_STYLE = """
  svg { --paper: #ffffff; --ink: #1f2328; --faint: #59636e; --ours: #0969a8; --peer: #9aa4b0; --cpu: #1f2328; }
  @media (prefers-color-scheme: dark) {
    svg { --paper: #0d1117; --ink: #e6edf3; --faint: #9198a1; --ours: #4aa8ec; --peer: #5b6470; --cpu: #e6edf3; }
  }
  text { font: 13px system-ui, "DejaVu Sans", sans-serif; fill: var(--ink); }
  .title { font-size: 15px; font-weight: 600; }
  .way { font-weight: 600; }
  .note { font-size: 11px; fill: var(--faint); }
  .paper { fill: var(--paper); }
  .ours { fill: var(--ours); }
  .peer { fill: var(--peer); }
  .range { stroke: var(--ink); stroke-width: 1.2; }
  .cpu { stroke: var(--cpu); stroke-width: 2; }
"""


class _Drawing:
    """The SVG elements of the picture, which are added from top to bottom."""

    def __init__(self) -> None:
        self.elements: list[str] = []
        self.y = _MARGIN

    def text(self, x: float, text: str, kind: str = "", anchor: str = "start") -> None:
        """Add a text at the current height."""
        attributes = f' class="{kind}"' if kind else ""
        attributes += f' text-anchor="{anchor}"' if anchor != "start" else ""
        self.elements.append(f'<text x="{x:.0f}" y="{self.y:.0f}"{attributes}>{escape(text)}</text>')

    def notes(self, text: str) -> None:
        """Add a text of one or more lines in small letters."""
        for line in textwrap.wrap(text, _NOTE_COLUMNS, subsequent_indent="   ", break_on_hyphens=False):
            self.text(_MARGIN, line, "note")
            self.y += 16


def svg(report: Report) -> str:
    """Return the picture as SVG. Its colours follow the light or dark colour scheme of the
    reader."""
    drawing = _Drawing()
    drawing.y += 8
    drawing.text(_MARGIN, heading(report), "title")
    drawing.y += 20
    drawing.notes(
        "bar: wall time, with the smallest and the largest; vertical mark: CPU time; MB: peak memory; "
        f"onecopy {report.onecopy}, Python {report.python}, {report.machine}"
    )
    for way in report.ways:
        _draw_way(drawing, way)
    height = drawing.y + _MARGIN - 12
    box = f'width="{_WIDTH}" height="{height:.0f}" viewBox="0 0 {_WIDTH} {height:.0f}"'
    title = escape(heading(report))
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" {box} role="img">',
            f"<title>{title}</title>",
            f"<style>{_STYLE}</style>",
            f'<rect class="paper" width="{_WIDTH}" height="{height:.0f}"/>',
            *drawing.elements,
            "</svg>\n",
        ]
    )


def _draw_way(drawing: _Drawing, way: WayResult) -> None:
    drawing.y += 22
    drawing.text(_MARGIN, way.title, "way")
    drawing.y += _LINE
    measured = [engine for engine in way.engines if engine.is_measured]
    longest = max((max(*engine.wall_s, engine.cpu) for engine in measured), default=1.0)
    for engine in way.engines:
        name = engine.name + (" *" if engine.value_differences else "")
        drawing.text(_LEFT - 10, name, "way" if engine.is_ours else "", "end")
        if engine.is_measured:
            _draw_bar(drawing, engine, _LENGTH / longest)
        else:
            drawing.text(_LEFT, engine.failure, "note")
        drawing.y += _LINE
    drawing.y -= 4
    for note in filter(None, (best_peers(way), ledger_line(way), *differences(way))):
        drawing.notes(note)


def _draw_bar(drawing: _Drawing, engine: EngineResult, scale: float) -> None:
    """Draw the bar of one engine, with the range of its wall times, its CPU time, and the figures
    as text."""
    middle = drawing.y - 4.5
    kind = "ours" if engine.is_ours else "peer"
    drawing.elements.append(
        f'<rect class="{kind}" x="{_LEFT}" y="{middle - 7:.1f}" width="{engine.wall * scale:.1f}" height="14" rx="2"/>'
    )
    low, high, cpu = (_LEFT + time * scale for time in (min(engine.wall_s), max(engine.wall_s), engine.cpu))
    drawing.elements.append(
        f'<path class="range" d="M{low:.1f} {middle:.1f}H{high:.1f}M{low:.1f} {middle - 3:.1f}v6'
        f'M{high:.1f} {middle - 3:.1f}v6"/>'
    )
    drawing.elements.append(f'<path class="cpu" d="M{cpu:.1f} {middle - 9:.1f}v18"/>')
    figures = f"{number(engine.wall * 1e3)} ms, CPU {number(engine.cpu * 1e3)} ms"
    if engine.peak_bytes:
        figures += f", {number(engine.peak_bytes / 1e6)} MB"
    drawing.text(max(high, cpu, _LEFT + engine.wall * scale) + 8, figures)
