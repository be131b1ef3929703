"""Code that type checkers must refuse: each line has an error, which `warn_unused_ignores`
verifies."""

from __future__ import annotations

import io

import onecopy
from onecopy import json
from onecopy.compat import orjson, ujson


def refused(con: onecopy.Connection, cur: onecopy.Cursor) -> None:
    onecopy.connect()  # type: ignore[call-arg]
    onecopy.connect("x", True)  # type: ignore[call-arg]
    onecopy.connect("x", errors="ignore")  # type: ignore[arg-type]
    con.execute(b"select 1")  # type: ignore[arg-type]
    con.execute("select ?", 5)  # type: ignore[arg-type]
    con.executemany("insert", [1, 2])  # type: ignore[list-item]
    cur.defer(1.5)  # type: ignore[arg-type]
    onecopy.connect("x", zero_dates="none")  # type: ignore[arg-type]
    cur.fetchmany("3")  # type: ignore[arg-type]
    cur.rowcount = 3  # type: ignore[misc]
    cur.json().write_to(io.StringIO())  # type: ignore[arg-type]


def refused_json() -> None:
    json.dumps([], 2)  # type: ignore[call-arg, arg-type]
    json.dumps([], nan="zero")  # type: ignore[arg-type]
    json.dumps([], passthrough=["str"])  # type: ignore[list-item]
    json.loads(1)  # type: ignore[arg-type]
    json.loads("", duplicate_keys="first")  # type: ignore[arg-type]
    json.dumps_rows("a")  # type: ignore[call-arg]
    orjson.dumps([], option="x")  # type: ignore[arg-type]
    ujson.dump([], 3)  # type: ignore[arg-type]
