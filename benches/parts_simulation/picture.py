"""The plot: makespans of the simulated exports, and measured throughputs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from benches.parts_simulation import costs

_COLOURS = {"csv": "#084594", "ndjson": "#4292c6", "arrow": "#e6550d", "parquet": "#31a354"}


def draw(results: list[dict[str, Any]], measured: dict[str, Any], path: Path) -> bool:
    """Draws the makespans of `results` (median, best and worst) and the throughput of each format by
    the number of connections."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    databases = list(measured["databases"])
    figure = pyplot.figure(figsize=(12, 0.36 * len(results) + 4.2), constrained_layout=True)
    grid = figure.add_gridspec(2, len(databases), height_ratios=[0.36 * len(results), 3])
    axes = figure.add_subplot(grid[0, :])
    for y, result in enumerate(results):
        median, worst, best = (1 / result[name] for name in ("ratio", "ratio_min", "ratio_max"))
        axes.barh(y, median, 0.7, color="#9ecae1")
        axes.plot([best, worst], [y, y], color="#084594", linewidth=1.4)
        axes.text(worst + 0.02, y, f"{median:.2f}", va="center", fontsize=8)
    axes.axvline(1, color="#d7301f", linewidth=1)
    axes.set_yticks(range(len(results)), [result["row"] for result in results], fontsize=8)
    axes.invert_yaxis()
    axes.set_xlabel("simulated makespan / ideal: median, best and worst (red: the ideal)", fontsize=9)
    axes.set_title(f"1,000 parts, costs measured on {measured['machine']}", fontsize=10)
    for i, database in enumerate(databases):
        axes = figure.add_subplot(grid[1, i])
        found = costs.throughputs(measured, database)
        for output_format, colour in _COLOURS.items():
            points = sorted((t.n_connections, t.rows_per_s) for t in found if t.output_format == output_format)
            axes.plot(*zip(*points, strict=True), color=colour, marker="o", markersize=4, label=output_format)
        axes.set_xscale("log", base=2)
        axes.set_xticks([n for n, _ in points], [str(n) for n, _ in points])
        axes.set_ylim(0)
        axes.set_xlabel(f"connections to {database}, loopback, 2 processors for both sides", fontsize=9)
        axes.set_ylabel("rows per second", fontsize=9)
        axes.legend(fontsize=8)
        axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=130)
    pyplot.close(figure)
    return True
