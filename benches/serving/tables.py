"""A handler that returns the rows of SQLite's `t31000` as JSON, as the documentation of each side
recommends.

The environment variable `BENCH_DATABASE` has the database's file. Nothing is kept between two
requests: neither side may cache its response.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable
from typing import Any

FILE = os.environ.get("BENCH_DATABASE", "")
QUERY = "select * from t31000"


def _with_orjson() -> bytes:
    """All rows as dicts, then as JSON."""
    import orjson

    connection = sqlite3.connect(FILE)
    try:
        cursor = connection.execute(QUERY)
        names = [column[0] for column in cursor.description]
        return orjson.dumps([dict(zip(names, row)) for row in cursor])
    finally:
        connection.close()


def _with_onecopy() -> Any:
    """A stream of the rows; it keeps its cursor and connection."""
    import onecopy

    return onecopy.connect(f"sqlite:{FILE}?mode=ro").execute(QUERY).json()


def _flask(view: Callable[[Any], Any]) -> Any:
    import flask

    made = flask.Flask("bench")
    made.get("/rows")(lambda: view(flask))
    return made


def flask_orjson() -> Any:
    """Flask, sqlite3 and orjson."""
    return _flask(lambda flask: flask.Response(_with_orjson(), mimetype="application/json"))


def flask_onecopy() -> Any:
    """Flask and a row stream, which passes through unchanged."""
    return _flask(lambda flask: flask.Response(_with_onecopy(), mimetype="application/json", direct_passthrough=True))


def fastapi_orjson() -> Any:
    """FastAPI, sqlite3 and orjson; the handler runs in FastAPI's thread pool, as one that blocks should."""
    import fastapi

    made = fastapi.FastAPI()

    @made.get("/rows", response_class=fastapi.Response)
    def rows() -> fastapi.Response:
        return fastapi.Response(_with_orjson(), media_type="application/json")

    return made


def fastapi_onecopy() -> Any:
    """FastAPI and a row stream, an asynchronous iterable."""
    import fastapi
    from fastapi.responses import StreamingResponse

    made = fastapi.FastAPI()

    @made.get("/rows", response_class=StreamingResponse)
    def rows() -> StreamingResponse:
        return StreamingResponse(_with_onecopy(), media_type="application/json")

    return made


def __getattr__(name: str) -> Any:
    """The applications, created when a server requests one: `tables:flask_orjson_app`."""
    if name.endswith("_app") and name[:-4] in globals():
        return globals()[name[:-4]]()
    raise AttributeError(name)
