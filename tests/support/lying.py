"""Wrong results of an ODBC driver ("lies"), and the outcome when onecopy reads them.

``lying_odbc.c`` is a driver manager that returns the wrong results which its connection string
describes. Run as a program, this module tests the lies that its arguments name. It prints a line of
JSON for each combination of a lie, a way of binding buffers, and a way of reading rows.
"""

from __future__ import annotations

import faulthandler
import json
import os
import resource
import struct
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent

#: Names of the driver, which decide how it is read, and `SQL_GETDATA_EXTENSIONS`: UTF-16 text row
#: by row, UTF-8 text row by row, and UTF-16 text in blocks.
MANNERS = {"liar.so": 0, "libmaodbc.so": 3, "libmsodbcsql-18.so": 15}

#: SQL type, size and a correct value of columns.
TYPES: dict[str, tuple[int, int, bytes]] = {
    "text": (-9, 40, b"honest"),
    "open text": (-10, 0, b"honest"),
    "binary": (-3, 40, b"honest"),
    "open binary": (-4, 0, b"honest"),
    "decimal": (3, 20, b"12.50"),
    "integer": (-5, 19, struct.pack("=q", 7)),
    "double": (8, 15, struct.pack("=d", 1.5)),
    "bit": (-7, 1, b"\1"),
    "date": (91, 10, struct.pack("=hHH", 2026, 11, 25)),
    "time": (92, 8, b"01:02:03"),
    "timestamp": (93, 26, struct.pack("=hHHHHHI", 2026, 11, 25, 1, 2, 3, 0)),
    "offset": (-155, 34, struct.pack("=hHHHHHIhh", 2026, 11, 25, 1, 2, 3, 0, 1, 30)),
    "uuid": (-11, 36, bytes(range(16))),
    "interval": (110, 20, b"01:02:03"),
}

#: The number of bytes after which a stream is considered endless.
ENOUGH = 8 << 20
#: Seconds after which a reader is considered to hang.
HANGS_S = 60
#: Bytes that a process may map beyond its initial size.
MEMORY = 128 << 20

GIB_100 = 100 << 30
MOST = 2**63 - 1
LEAST = -(2**63) + 1
FOREVER = 10**12

DATA = frozenset({"DataError"})
OPERATIONAL = frozenset({"OperationalError"})
EITHER = DATA | OPERATIONAL


@dataclass(frozen=True)
class Lie:
    """A lie: wrong results of a driver, and the permitted outcomes of a read.

    ``outcomes`` has names of error classes; ``value`` if the read may succeed; ``stream`` if a
    reader of chunks may receive data without end. If ``column`` is true, an error must name the
    column. If ``bound`` is true, the lie concerns a buffer to which the driver writes in
    `SQLFetch`.
    """

    type: str
    orders: dict[str, int | str] = field(default_factory=dict)
    bad: bytes | None = None
    outcomes: frozenset[str] = DATA
    column: bool = True
    bound: bool = False
    manners: tuple[str, ...] = tuple(MANNERS)

    def is_honest(self, manner: str, reader: str) -> bool:
        """Returns true if the lie has no effect: it concerns a bound buffer, and this reader binds
        none."""
        is_open = self.type.startswith("open")
        unbound = manner == "liar.so" or reader == "deferred" or (is_open and manner == "libmaodbc.so")
        return self.bound and unbound and self.type != "decimal"


def _whole(orders: dict[str, int | str], bound: bool = False, manners: tuple[str, ...] = tuple(MANNERS)) -> Lie:
    """A lie that concerns the whole result, not one column."""
    return Lie("text", orders, None, OPERATIONAL, False, bound, manners)


def _table() -> Iterator[tuple[str, Lie]]:
    harmless = EITHER | {"value"}
    for n in (LEAST, -(2**40), -1_000_003, -1_000_001, -1_000_000, -99, -7, -5, -3, -2):
        for kind in ("text", "decimal", "open text", "open binary"):
            yield f"{kind}: an indicator of {n}", Lie(kind, {"ind": n, "gdind": n, "gdrc": 0, "gdn": 8})
        yield f"integer: an indicator of {n}", Lie("integer", {"ind": n}, outcomes=harmless)
    for n in (5000, GIB_100, 2**62, MOST - 1, MOST):
        for kind in ("text", "decimal", "open binary", "open text"):
            name = f"{kind}: an indicator of {n}, and a short value"
            yield name, Lie(kind, {"ind": n, "gdn": 4, "gdrc": 0, "gdind": 4}, outcomes=EITHER, bound=True)
    for n in (GIB_100,):
        for kind in ("decimal", "open binary", "open text"):
            yield f"{kind}: {n} bytes that come", Lie(kind, {"len": n}, outcomes=EITHER | {"stream"})
    for n in (0, 7, 9, 2**40, MOST):
        yield f"date: an indicator of {n}", Lie("date", {"ind": n}, outcomes=harmless)
    for kind in ("text", "open text"):
        yield (
            f"{kind}: half of a UTF-16 unit",
            Lie(kind, {"ind": 5, "gdn": 4, "gdind": 5, "gdrc": 0}, outcomes=DATA | {"value"}),
        )

    def got(**orders: int | str) -> dict[str, int | str]:
        return {"ind": 5000, **orders}

    for kind in ("open text", "open binary"):
        parts = EITHER | {"stream"}
        yield f"{kind}: more and more without a total", Lie(kind, got(gdn=-1, gdind=-4, gdrc=1), outcomes=parts)
        yield f"{kind}: the same total without an end", Lie(kind, got(gdn=-1, gdind=MOST, gdrc=1), outcomes=parts)
        yield (
            f"{kind}: more is reported, and nothing comes",
            Lie(kind, got(gdn=0, gdind=10**6, gdrc=1), outcomes=parts | {"value"}),
        )
        yield f"{kind}: nothing is written", Lie(kind, got(gdn=0, gdind=-4, gdrc=1), outcomes=parts)
        yield f"{kind}: a total of 2^63-1, then the end", Lie(kind, got(gdn=-1, gdind=MOST, gdtimes=1), outcomes=EITHER)
        yield f"{kind}: no data at all", Lie(kind, got(gdn=0, gdind=0, gdrc=100), bound=True)
        for code in (-1, -2, 2, 99, 12345, -32768):
            name = f"{kind}: SQLGetData returns {code}"
            yield name, Lie(kind, got(gdn=0, gdind=0, gdrc=code), outcomes=OPERATIONAL)
    yield "open text: pieces of ten bytes without a length", Lie("open text", got(gdn=10, gdind=-4, gdrc=1))
    yield "open binary: a value without a length", Lie("open binary", got(gdn=8, gdind=-4, gdrc=0))
    yield (
        "open text: diagnostics without an end",
        Lie("open text", got(gdn=0, gdrc=-1, diag=FOREVER, state="HY000", diaglen=32767), outcomes=OPERATIONAL),
    )

    for text in (
        b"",
        b" ",
        b"1_0",
        b" 12",
        b"1,5",
        b"12.5.1",
        b"abc",
        b"--1",
        b"1e",
        b"0x10",
        b"\xff9",
        b"+",
        b".",
        b"1\x009",
    ):
        yield f"decimal: {text!r}", Lie("decimal", bad=text)
    for year, month, day in (
        (2026, 13, 1),
        (2026, 0, 1),
        (2026, 1, 0),
        (2026, 2, 30),
        (2026, 257, 1),
        (2026, 1, 65535),
        (2026, 65535, 1),
    ):
        date = struct.pack("=hHH", year, month, day)
        yield f"date: {year}-{month}-{day}", Lie("date", bad=date)
        clock = struct.pack("=HHHI", 1, 2, 3, 0)
        yield f"timestamp: {year}-{month}-{day}", Lie("timestamp", bad=date + clock)
        yield f"offset: {year}-{month}-{day}", Lie("offset", bad=date + clock + struct.pack("=hh", 1, 0))
    for fields in (
        (25, 0, 0, 0),
        (281, 0, 0, 0),
        (1, 60, 0, 0),
        (1, 2, 61, 0),
        (1, 2, 3, 10**9),
        (1, 2, 3, 2**32 - 1),
        (65535,) * 3 + (0,),
    ):
        yield (
            f"timestamp: {fields}",
            Lie("timestamp", bad=struct.pack("=hHH", 2026, 11, 25) + struct.pack("=HHHI", *fields)),
        )
    for offset in ((24, 0), (546, 8), (32767, 32767), (-32768, -32768), (0, 32767)):
        moment = struct.pack("=hHHHHHI", 2026, 11, 25, 1, 2, 3, 0)
        yield f"offset: {offset}", Lie("offset", bad=moment + struct.pack("=hh", *offset))
    for text in (b"25:61:99", b"", b"-", b"99999999999999999999:00:00"):
        yield f"time: {text!r}", Lie("time", bad=text, outcomes=harmless)
        yield f"interval: {text!r}", Lie("interval", bad=text, outcomes=harmless)
    yield "bit: 7", Lie("bit", bad=b"\7", outcomes=harmless)

    for n in (-1, -32768):
        yield f"{n} columns", _whole({"cols": n})
    yield (
        "32,767 columns",
        Lie("text", {"cols": 32767}, outcomes=harmless | {"NotSupportedError"}, column=False, manners=("liar.so",)),
    )
    yield "names without an end", Lie("text", {"fill": 1}, outcomes=harmless | {"ProgrammingError"}, column=False)
    for n in (-1, MOST, 4097, 2**32 + 1):
        for kind in ("text", "open text", "binary", "decimal", "timestamp"):
            yield f"{kind}: a size of {n}", Lie(kind, {"size": n, "digits": 32767}, outcomes=harmless)
    yield "decimal: a negative scale", Lie("decimal", {"size": 0, "digits": -32768}, outcomes=harmless)
    for n in (0, 9999, -9999, 32767):
        yield f"a type {n}", Lie("text", {"type": n}, outcomes=harmless)
    yield "a type that changes", Lie("text", {"later": 4}, outcomes=harmless)
    yield "neither nullable nor not", Lie("text", {"nullable": 7}, outcomes=harmless)
    for n in (4, 1000, 2**40, -1):
        yield f"{n} rows in a block", _whole({"fetched": n, "rows": 2})
    yield "success without rows", Lie("text", {"fetched": 0}, outcomes=OPERATIONAL | {"value"}, column=False)
    for n in (3, 5):
        yield f"a row's status {n} with success", _whole({"status": n})
    yield "a row's status of 999", Lie("text", {"status": 999}, outcomes=harmless)
    for code in (-1, -2, 2, 99, 12345, -32768):
        yield f"SQLFetch returns {code}", _whole({"fetch": code})
        yield f"SQLExecDirect returns {code}", _whole({"exec": code})
    for call in ("describe", "bind", "attr"):
        yield f"{call} fails", _whole({call: -1}, bound=call == "bind")
    yield "SQLSetPos fails", Lie("open text", got(setpos=-1, gdn=4, gdrc=0, gdind=5000), outcomes=EITHER, bound=True)
    yield (
        "an error in the information of a fetch, without an end",
        _whole({"fetch": 1, "diag": FOREVER, "state": "HY000"}),
    )
    yield (
        "warnings without an end",
        Lie("text", {"fetch": 1, "exec": 1, "diag": FOREVER, "state": "01004"}, outcomes=harmless),
    )
    yield "results without an end", _whole({"cols": 0, "more": FOREVER}, manners=("liar.so",))
    yield (
        "rows changed beyond 64 bits",
        Lie("text", {"cols": 0, "more": 5, "count": MOST}, outcomes=frozenset({"ProgrammingError"})),
    )
    further = harmless | {"NotSupportedError"}
    yield "results with rows without an end", Lie("text", {"more": FOREVER}, outcomes=further, column=False)


TABLE = dict(_table())


def compile_manager(folder: Path) -> Path:
    """Compiles ``lying_odbc.c`` with `cc` into ``folder``; returns the path of the shared
    object."""
    manager = folder / "liar.so"
    command = ["cc", "-O1", "-shared", "-fPIC", "-o", str(manager), str(HERE / "lying_odbc.c")]
    subprocess.run(command, check=True)
    return manager


def outcomes(manager: Path) -> dict[tuple[str, str, str], dict[str, Any]]:
    """The outcome of each read, keyed by the lie, the way of binding and the reader.

    All lies are tested in one process. After a lie that crashes or blocks it, a new process
    continues with the next lie.
    """
    found: dict[tuple[str, str, str], dict[str, Any]] = {}
    left = list(TABLE)
    while left:
        command = [sys.executable, "-m", "tests.support.lying", *left]
        # One arena of the C library, since each reserves 128 MiB of address space, which the limit
        # counts.
        environment = {**os.environ, "ONECOPY_ODBC_MANAGER": str(manager), "MALLOC_ARENA_MAX": "1"}
        with subprocess.Popen(
            command, env=environment, stdout=subprocess.PIPE, cwd=HERE.parents[1], text=True
        ) as child:
            assert child.stdout is not None
            for line in child.stdout:
                found_line = json.loads(line)
                if "begun" in found_line:
                    left.remove(found_line["begun"])
                else:
                    found[found_line["lie"], found_line["manner"], found_line["reader"]] = found_line
    return found


def _text(con: Any) -> object:
    cur = con.cursor()
    cur.execute("lie", defer=["value"])
    n = 0
    while cur.fetchone() is not None:
        opened = cur.open_text("value") if cur.description[1][1] == "text" else cur.open_binary("value")
        while opened is not None and (part := opened.read(1 << 16)):
            n += len(part)
            if n > ENOUGH:
                raise _UnendedError
    return n


class _UnendedError(Exception):
    pass


def _chunks(stream: Any) -> object:
    n = 0
    with stream:
        for chunk in stream:
            n += len(chunk)
            if n > ENOUGH:
                raise _UnendedError
    return n


def _arrow(con: Any) -> object:
    import onecopy

    stream = con.execute("lie").arrow()
    into = onecopy.connect("sqlite::memory:")
    into.execute("create table t (c00001 any, value any)")
    try:
        into.cursor().insert_arrow("t", stream)
    except onecopy.Error:
        if stream.error is not None:
            raise stream.error from None
    return stream.n_rows


def _again(con: Any) -> object:
    con.execute("lie").fetchone()
    return con.execute("lie").fetchall()


READERS: dict[str, Callable[[Any], object]] = {
    "fetchall": lambda con: con.execute("lie").fetchall(),
    "iteration": lambda con: list(con.execute("lie")),
    "twice": _again,
    "json": lambda con: _chunks(con.execute("lie").json()),
    "ndjson": lambda con: _chunks(con.execute("lie").ndjson()),
    "csv": lambda con: _chunks(con.execute("lie").csv()),
    "bson": lambda con: _chunks(con.execute("lie").bson()),
    "columns": lambda con: con.execute("lie").fetch_columns(),
    "arrow": _arrow,
    "deferred": _text,
}


def readers(lie: Lie) -> list[str]:
    """The names of the readers that support the type of the lie's column.

    Only text and binary values can be read as deferred values.
    """
    defers = lie.type in ("text", "open text", "binary", "open binary")
    return [name for name in READERS if name != "deferred" or defers]


def target(lie: Lie, manner: str) -> str:
    """The connection string that makes the driver manager return the lie's results."""
    kind, size, good = TYPES[lie.type]
    orders: dict[str, int | str] = {
        "type": kind,
        "size": size,
        "ext": MANNERS[manner],
        "name": manner,
        "good": good.hex(),
    }
    if lie.bad is not None:
        orders["bad"] = lie.bad.hex()
    orders |= lie.orders
    return "Driver=liar;" + ";".join(f"{name}={value}" for name, value in orders.items())


def _read(lie: Lie, manner: str, reader: str) -> dict[str, Any]:
    import onecopy

    con = None
    try:
        con = onecopy.connect(target(lie, manner))
        READERS[reader](con)
    except _UnendedError:
        return {"outcome": "stream"}
    except onecopy.Error as error:
        column = error.column[0] if error.column else None
        return {"outcome": type(error).__name__, "message": str(error), "column": column}
    except BaseException as error:
        return {"outcome": type(error).__name__, "message": repr(error), "column": None}
    finally:
        if con is not None:
            con.close()
    return {"outcome": "value"}


def _main() -> None:
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + MEMORY,) * 2)
    for name in sys.argv[1:]:
        lie = TABLE[name]
        faulthandler.dump_traceback_later(HANGS_S, exit=True)
        print(json.dumps({"begun": name}), flush=True)
        for manner in lie.manners:
            for reader in readers(lie):
                outcome = _read(lie, manner, reader)
                print(json.dumps({"lie": name, "manner": manner, "reader": reader, **outcome}), flush=True)


if __name__ == "__main__":
    _main()
