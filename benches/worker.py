"""Runs one engine in a separate process: reads commands from stdin, and answers each with a line of
JSON.

    {"do": "time"}           run the job once: wall and CPU seconds
    {"do": "answer"}         run the job once: a digest of its result, comparable between engines
    {"do": "memory"}         run the job once: growth of the peak resident set since the import
    {"do": "memory, idle"}   the same since a job with few rows, whose code and connection are loaded

Memory is in bytes.
"""

from __future__ import annotations

import csv
import hashlib
import importlib
import io
import json
import sys
import time
from decimal import Decimal
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))


def plain(value: Any) -> Any:
    """A value in a form that all engines share: decimals and timestamps as JSON writers format
    them."""
    if isinstance(value, Decimal):
        return float(value)
    return value if value is None or isinstance(value, (int, float, str)) else value.isoformat()


def typed(row: list[str]) -> list[Any]:
    """A row of CSV with the table's types; a row without numbers is the header and is returned as
    text."""
    if row[0] == "id":
        return list(row)
    return [int(row[0]), *row[1:4], float(row[4]), float(row[5]), row[6], row[7] or None]


def digest(made: Any) -> str:
    """A digest of a result's rows; it does not depend on the engine or the form of the result."""
    if isinstance(made, int):
        return f"{made} rows"
    if hasattr(made, "tobytes"):  # NumPy's: a column of numbers
        return f"{len(made)} rows {hashlib.sha256(made.tobytes()).hexdigest()[:16]}"
    if hasattr(made, "to_pylist"):  # pyarrow's table
        made = zip(*(column.to_pylist() for column in made.columns), strict=True)
        # ADBC returns decimals as text.
        made = [[*row[:5], float(row[5]), *row[6:]] for row in made]
    if isinstance(made, list) and made and isinstance(made[0], bytes):
        made = b"".join(made)
    if isinstance(made, bytes) and made.startswith(b"id,"):
        rows = [typed(row) for row in csv.reader(io.StringIO(made.decode(), newline=""))][1:]
    elif isinstance(made, bytes):
        rows = [[plain(value) for value in row.values()] for row in json.loads(made)]
    else:
        rows = [[plain(value) for value in row] for row in made]
    for row in rows:  # "2003-01-02 03:04:05.5" of SQLite, "…T…500000" of isoformat: one form
        row[6] = row[6].replace(" ", "T").ljust(26, "0") if "." in row[6] else row[6].replace(" ", "T") + ".000000"
    return f"{len(rows)} rows {hashlib.sha256(json.dumps(rows).encode()).hexdigest()[:16]}"


def peak() -> int:
    """The peak of the process's resident set since the last reset, in bytes."""
    with open("/proc/self/status", encoding="ascii") as status:
        return next(int(line.split()[1]) * 1024 for line in status if line.startswith("VmHWM"))


def reset_peak() -> int:
    """Resets the peak to the current resident set, which is returned in bytes."""
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
    return peak()


def main() -> None:
    """Runs one engine; the arguments are module, function, target (JSON) and number of rows."""
    module, function, target, size = sys.argv[1:]
    engine = getattr(importlib.import_module(f"benches.engines.{module}"), function)
    importlib.import_module("onecopy")
    before = reset_peak()
    job = engine(json.loads(target), int(size))
    # Restores the state outside of the time, for example by deleting inserted rows.
    before_each = getattr(job, "before", lambda: None)
    for line in sys.stdin:
        match json.loads(line)["do"]:
            case "time":
                before_each()
                wall, cpu = time.perf_counter(), time.process_time()
                made = job()
                answer: dict[str, Any] = {"wall": time.perf_counter() - wall, "cpu": time.process_time() - cpu}
                del made
            case "answer":
                before_each()
                answer = {"answer": digest(job())}
            case "memory":
                job()
                answer = {"growth": peak() - before}
            case "memory, idle":
                engine(json.loads(target), 1000)()
                before = reset_peak()
                job()
                answer = {"growth": peak() - before}
            case other:
                answer = {"error": f"unknown command {other}"}
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
