"""Compares millions of random cells of a database with those of an independent client.

    python -m tests.support.random_values --database mariadb --cells 10000000 --seed 7

Each round creates a table with a seed of its own. It has 1, 2, 3, 1,000 or 100,000 rows; tables of
100,000 rows have only some of the columns, other ones in each round. The independent client fills
the table. onecopy reads it with each of its fetch methods, sends its values as parameters, and
writes them to a second table, which the independent client reads. The output is the number of cells
created, compared and wrong, by SQL type and by method. The exit status is 1 if a cell was wrong.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import onecopy
from tests.support import servers

from . import clients
from .clients import Pair
from .column import SEED, Column, Row, rows
from .readers import READERS, Tally, compare_as_parameters, compare_read

#: The methods of reading, of comparing in the database, and of writing.
WAYS = (*READERS, "parameter", *clients.WRITERS)
_MANY = 100_000
#: The number of columns of the tables with the most rows.
_WIDTH = 16


def _rounds(columns: Sequence[Column], most_rows: int) -> Iterator[tuple[int, Sequence[Column]]]:
    """An endless sequence of rounds: the number of rows of each, and its columns."""
    begin = 0
    while True:
        yield most_rows, columns[begin : begin + _WIDTH]
        begin = begin + _WIDTH if begin + _WIDTH < len(columns) else 0
        for n_rows in (1, 2, 3) * 5 + (1000,) * 10:
            yield n_rows, columns


def _round(tally: Tally, pair: Pair, n_rows: int, seed: int, ways: Sequence[str]) -> None:
    made = rows(pair.columns, n_rows, seed)
    pair.fill("random_theirs", made)
    found: dict[str, list[Row]] = {"value": pair.read("random_theirs", n_rows)}

    def expected(of: str) -> list[Row]:
        if of not in found:
            found[of] = pair.read("random_theirs", n_rows, of=of)
        return found[of]

    for name in ways:
        if name in READERS:
            compare_read(tally, pair.con, pair.columns, expected, name)
        elif name in clients.WRITERS:
            clients.compare_written(tally, pair, made, name)
        else:
            compare_as_parameters(tally, pair.con, pair.columns, expected("value"))
    pair.drop()


def _report(tally: Tally, n_cells: int, n_rounds: int, seed: int, minutes: float) -> None:
    ways = [way for way in WAYS if any(way == compared for compared, _ in tally.compared)]
    types = dict.fromkeys(sql for _, sql in tally.compared)
    print(f"{'compared':28}" + "".join(f"{way:>12}" for way in ways))
    for sql in types:
        counts = [tally.compared[way, sql] for way in ways]
        print(f"{sql or '(none)':28}" + "".join(f"{count:12,}" for count in counts))
    for (way, sql), count in tally.wrong.items():
        print(f"WRONG {count:,} of {tally.compared[way, sql]:,} {way}, {sql}")
    for wrong in tally.examples[:40]:
        print(f"  {wrong}"[:400])
    compared, wrong_cells = tally.compared.total(), tally.wrong.total()
    print(
        f"{n_cells:,} cells of {len(types)} types, seeds {seed} to {seed + n_rounds - 1}, "
        f"{minutes:.1f} min: {compared:,} comparisons, {wrong_cells:,} wrong",
        flush=True,
    )


def _reached(name: str, directory: Path) -> tuple[str, dict[str, Any]]:
    """Starts a database; returns onecopy's connection string and the independent client's
    keywords."""
    if name == "sqlite":
        file = str(directory / "values.db")
        return f"sqlite:{file}", {"database": file}
    home = servers.Home()
    server, _ = servers.PROFILES[name]
    if failed := servers.start([server], home):
        sys.exit(f"`{name}` does not start: {failed[server]}")
    return servers.odbc_string(name, home), servers.native(server, home)


def main() -> int:
    """Runs the command line; returns the exit status."""
    about = (__doc__ or "").partition("\n")[0]
    parser = argparse.ArgumentParser(prog="tests.support.random_values", description=about)
    parser.add_argument("--database", choices=clients.NAMES, required=True)
    parser.add_argument("--cells", type=int, default=1_000_000, help="random cells to be made")
    parser.add_argument("--seed", type=int, default=SEED, help="that of the first round")
    parser.add_argument("--rows", type=int, default=_MANY, help="rows of the longest tables")
    parser.add_argument("--ways", nargs="+", choices=WAYS, default=WAYS)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore", onecopy.DriverWarning)
    tally, n_cells, n_rounds, begun = Tally(), 0, 0, time.monotonic()
    with tempfile.TemporaryDirectory() as directory:
        odbc, native = _reached(arguments.database, Path(directory))
        pair = clients.connect(arguments.database, odbc, native)
        for n_rows, columns in _rounds(pair.columns, arguments.rows):
            seed = arguments.seed + n_rounds
            try:
                _round(tally, pair._replace(columns=columns), n_rows, seed, arguments.ways)
            except BaseException:
                print(f"in the round of seed {seed}, {n_rows} rows", file=sys.stderr)
                raise
            n_cells += n_rows * len(columns)
            n_rounds += 1
            if n_cells >= arguments.cells:
                break
        pair.con.close()
        pair.client.close()
    minutes = (time.monotonic() - begun) / 60
    _report(tally, n_cells, n_rounds, arguments.seed, minutes)
    return 1 if tally.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
