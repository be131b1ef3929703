"""Code that type checkers must accept: `mypy --strict` checks this file, which is never
executed."""

from __future__ import annotations

import io
import pathlib
import socket
from typing import Any

from typing_extensions import assert_type

import onecopy
from onecopy import json
from onecopy.compat import orjson, ujson


def connections() -> None:
    con = onecopy.connect("sqlite::memory:", read_only=True, autocommit=False, connect_timeout=3, errors="replace")
    assert_type(con, onecopy.Connection)
    con.autocommit = True
    assert_type(con.autocommit, bool)
    with con as entered:
        assert_type(entered, onecopy.Connection)
    assert_type(con.execute("select ?", (1,)), onecopy.Cursor)
    assert_type(con.executemany("insert", ([i] for i in range(3))), onecopy.Cursor)
    try:
        con.commit()
    except con.IntegrityError as error:
        assert_type(error, onecopy.IntegrityError)
        assert_type(error.sqlstate, str)
        assert_type(error.column, tuple[int, str] | None)


def cursors(cur: onecopy.Cursor) -> None:
    # Rows have the type of the row factory's result.
    assert_type(cur.fetchone(), Any)
    assert_type(cur.fetchmany(3), list[Any])
    assert_type(cur.fetchall(), list[Any])
    cur.execute("select :a", {"a": 1})
    cur.row_factory = onecopy.rows.dict_row
    cur.converters["a"] = int
    assert_type(cur.nextset(), bool | None)
    assert_type(cur.callproc("name", [1, None]), list[Any])
    assert_type(cur.execute("select body", defer=["body", 1]).defer("note"), onecopy.Cursor)
    assert_type(cur.open_text("body"), io.TextIOBase | None)
    assert_type(cur.open_binary(0), io.BufferedReader | None)
    cur.setinputsizes([None, onecopy.NUMBER, "decimal", str, 20, ("decimal", 10, 2)])
    assert_type(cur.query_timeout, float | None)
    assert_type(cur.connection.dbms_version, str)
    if cur.description is not None:
        assert_type(cur.description[0][0], str)
        assert_type(cur.description[0][1] == onecopy.NUMBER, bool)
    assert_type(cur.lastrowid, int | None)


async def streams(cur: onecopy.Cursor) -> None:
    for chunk in cur.json():
        assert_type(chunk, bytes)
    async for chunk in cur.ndjson():
        assert_type(chunk, bytes)
    assert_type(cur.csv().read(), bytes)
    assert_type(cur.bson(decimals="text", datetimes="text", max_bytes=16 << 20).read(), bytes)
    assert_type(cur.csv().write_to(pathlib.Path("x")), int)
    assert_type(cur.csv().write_to("x"), int)
    cur.csv().write_to(io.BytesIO())
    cur.csv().write_to(open("x", "wb"))  # noqa: SIM115
    cur.csv().write_to(socket.socket())


def json_values(file: io.BytesIO) -> None:
    assert_type(json.dumps({"a": 1}, default=str, sort_keys=True, indent=2, nan="null", passthrough=["uuid"]), bytes)
    assert_type(json.dumps_str([], ensure_ascii=True, errors="backslashreplace", big_ints="text53"), str)
    assert_type(json.dumps_into((), bytearray(9), 3), int)
    assert_type(json.dump([], file), int)
    assert_type(json.dumps_lines(iter([1])), bytes)
    assert_type(json.dumps_rows(["a"], [(1,)]), bytes)
    for chunk in json.iter_chunks((k for k in range(3)), lines=True, chunk_bytes=100):
        assert_type(chunk, bytes)
    assert_type(json.dumps(json.Fragment(b"1")), bytes)
    assert_type(json.loads(memoryview(b"1"), big_ints="float", duplicate_keys="error", object_hook=len), Any)
    try:
        json.loads("")
    except json.JSONDecodeError as error:
        assert_type(error.offset_bytes, int)
        assert_type(error.pos, int)


def compatible() -> None:
    assert_type(orjson.dumps([], str, orjson.OPT_INDENT_2 | orjson.OPT_SORT_KEYS), bytes)
    assert_type(orjson.loads(b"1"), Any)
    assert_type(ujson.dumps([], indent=2, default=str), str)
    ujson.dump([], io.StringIO())
    assert_type(ujson.load(io.BytesIO()), Any)


def ledgers() -> None:
    with onecopy.ledger() as ledger:
        assert_type(ledger, onecopy.Ledger)
    assert_type(ledger.taken, int)
    assert_type(ledger.stages["decode"]["copied"], int)


def folders(folder: pathlib.Path) -> None:
    app = onecopy.files(folder, listing=True, hidden=False, precompressed=True, cache_control="no-cache")
    assert_type(app.folder, str)
    onecopy.Server(app, "127.0.0.1:0")
