"""``onecopy bench``: reads a database with onecopy and with other libraries, and compares them.

| module | contents |
|---|---|
| `options` | the arguments of the command |
| `database` | the DATABASE argument, and the keywords by which the peers connect |
| `statement` | the SQL to measure: the largest table, the limit of rows |
| `engines` | onecopy and its peers |
| `child`, `worker` | the process in which one engine runs |
| `sink`, `digest` | the bytes that an engine writes; digests by which results are compared |
| `process` | starts a worker process, with a time limit |
| `measure` | compares the results, and measures all engines in turns |
| `results` | the figures, and their ratios |
| `text`, `svg` | the report: a table with bars, a picture |
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import sys
import tempfile
from types import FrameType
from typing import TextIO

from onecopy._bench.database import InvalidDatabase, parse, read_text
from onecopy._bench.measure import Benchmark, CannotConnect, CannotMeasure
from onecopy._bench.options import parser
from onecopy._bench.results import Report
from onecopy._bench.svg import svg
from onecopy._bench.text import Style, text

__all__ = ["main"]


def main(arguments: list[str]) -> int:
    """Run ``onecopy bench`` with these arguments; return its exit code (0 ok, 1 failed, 2 usage,
    3 cannot connect, 130 stopped)."""
    given = parser().parse_args(arguments)
    progress = _Progress(sys.stderr, is_shown=not given.quiet)
    signal.signal(signal.SIGTERM, _stop)
    try:
        try:
            database = parse(given.database)
            sql = None if given.sql is None else _sql(given.sql)
            if given.svg is not None and not os.path.isdir(os.path.dirname(given.svg) or "."):
                raise InvalidDatabase(f"the directory of `{given.svg}` does not exist\ncreate it first")
        except InvalidDatabase as error:
            return _fail(str(error), 2)
        try:
            benchmark = Benchmark(database, given.rounds, given.time_limit, progress.show)
            report = benchmark.measure(sql, given.rows, given.ways)
        except CannotConnect as error:
            return _fail(str(error), 3)
        except CannotMeasure as error:
            return _fail(str(error), 1)
        finally:
            progress.clear()
        return _write(report, given.json, given.svg, given.quiet)
    except KeyboardInterrupt:
        if not given.quiet:
            _say("note: stopped")
        return 130
    except BrokenPipeError:
        # The reader has closed the pipe. The interpreter would report this again when it flushes
        # stdout.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141


def _write(report: Report, as_json: bool, picture: str | None, quiet: bool) -> int:
    """Write the report as text or JSON, and as a picture if its path is given; return the exit
    code."""
    if picture is not None:
        try:
            _write_file(picture, svg(report))
        except OSError as error:
            return _fail(f"`{picture}` cannot be written: {error.strerror}", 1)
    if as_json:
        print(json.dumps(report.to_json(), indent=2))
    else:
        print(text(report, _style(sys.stdout)))
    sys.stdout.flush()
    if picture is not None and not quiet:
        _say(f"note: the plot is in `{picture}`")
    return 0 if any(way.ours for way in report.ways) else 1


def _sql(argument: str) -> str:
    sql = sys.stdin.read() if argument == "-" else read_text(argument, "the SQL")
    if not sql.strip():
        raise InvalidDatabase("the SQL is empty\ngive a query, or nothing for the largest table")
    return sql


def _write_file(path: str, contents: str) -> None:
    """Write ``contents`` to a temporary file, and then rename the file to ``path``. A file at
    ``path`` is therefore always complete."""
    with tempfile.NamedTemporaryFile(
        "w", dir=os.path.dirname(path) or ".", prefix=".", suffix=".partial", encoding="utf-8", delete=False
    ) as file:
        try:
            file.write(contents)
            file.flush()
            umask = os.umask(0)
            os.umask(umask)
            os.fchmod(file.fileno(), 0o666 & ~umask)
            os.replace(file.name, path)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(file.name)
            raise


def _style(out: TextIO) -> Style:
    """Return the style of a report that is written to ``out``: the width of its lines, and whether
    it has colours and Unicode. As in the other commands, environment variables such as ``NO_COLOR``
    (https://no-color.org) set the colours and the width."""
    environment = os.environ
    forced = environment.get("CLICOLOR_FORCE", "0") not in ("", "0")
    is_terminal = out.isatty() and environment.get("TERM") != "dumb" and environment.get("CLICOLOR", "1") != "0"
    colour = not environment.get("NO_COLOR") and (forced or is_terminal)
    width = shutil.get_terminal_size((80, 24)).columns
    encoding = (out.encoding or "").lower().replace("-", "")
    return Style(min(max(width, 60), 120), colour, encoding.startswith("utf"))


class _Progress:
    """A line on a terminal that shows the current step of the benchmark."""

    def __init__(self, out: TextIO, *, is_shown: bool) -> None:
        self._out = out
        self._is_shown = is_shown and out.isatty() and os.environ.get("TERM") != "dumb"

    def show(self, step: str) -> None:
        """Replace the progress line with the text ``step``."""
        if self._is_shown:
            columns = shutil.get_terminal_size((80, 24)).columns
            self._out.write(f"\r\x1b[K{step[: columns - 1]}")
            self._out.flush()

    def clear(self) -> None:
        """Remove the line from the terminal."""
        if self._is_shown:
            self._out.write("\r\x1b[K")
            self._out.flush()


def _stop(number: int, frame: FrameType | None) -> None:
    """Handle SIGTERM: end the command as Ctrl-C does, so that the worker processes end too."""
    raise KeyboardInterrupt


def _fail(message: str, code: int) -> int:
    """Write an error message and return the exit code. The first line of the message describes the
    error, and the others the remedy."""
    _say("error: " + message.strip().replace("\n", "\n  "))
    return code


def _say(message: str) -> None:
    # Messages of drivers may have control characters from the database.
    shown = "".join(c if c.isprintable() or c == "\n" else "\ufffd" for c in message)
    with contextlib.suppress(OSError):
        print(shown, file=sys.stderr, flush=True)
