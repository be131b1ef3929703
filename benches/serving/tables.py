"""Handlers that return the rows of SQLite's `t31000` as JSON, written as each side's documentation
recommends.

The environment variable `BENCH_DATABASE` has the database's file. Nothing is stored between two
requests, since neither side may cache its response.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable
from typing import Any

FILE = os.environ.get("BENCH_DATABASE", "")
QUERY = "select * from t31000"


def _with_orjson() -> bytes:
    """All rows as dicts, encoded as JSON by orjson."""
    import orjson

    connection = sqlite3.connect(FILE)
    try:
        cursor = connection.execute(QUERY)
        names = [column[0] for column in cursor.description]
        return orjson.dumps([dict(zip(names, row)) for row in cursor])
    finally:
        connection.close()


def _with_onecopy() -> Any:
    """A row stream as JSON; it owns its cursor and connection."""
    import onecopy

    return onecopy.connect(f"sqlite:{FILE}?mode=ro").execute(QUERY).json()


def _flask(view: Callable[[Any], Any]) -> Any:
    import flask

    made = flask.Flask("bench")
    made.get("/rows")(lambda: view(flask))
    return made


def flask_orjson() -> Any:
    """A Flask application with sqlite3 and orjson."""
    return _flask(lambda flask: flask.Response(_with_orjson(), mimetype="application/json"))


def flask_onecopy() -> Any:
    """A Flask application that returns a row stream, which Flask passes on unchanged."""
    return _flask(lambda flask: flask.Response(_with_onecopy(), mimetype="application/json", direct_passthrough=True))


def fastapi_orjson() -> Any:
    """A FastAPI application with sqlite3 and orjson.

    The handler blocks, so FastAPI runs it in its thread pool.
    """
    import fastapi

    made = fastapi.FastAPI()

    @made.get("/rows", response_class=fastapi.Response)
    def rows() -> fastapi.Response:
        return fastapi.Response(_with_orjson(), media_type="application/json")

    return made


def fastapi_onecopy() -> Any:
    """A FastAPI application that returns a row stream, an asynchronous iterable."""
    import fastapi
    from fastapi.responses import StreamingResponse

    made = fastapi.FastAPI()

    @made.get("/rows", response_class=StreamingResponse)
    def rows() -> StreamingResponse:
        return StreamingResponse(_with_onecopy(), media_type="application/json")

    return made


def __getattr__(name: str) -> Any:
    """Creates the application that a server requests by name, for example
    `tables:flask_orjson_app`."""
    if name.endswith("_app") and name[:-4] in globals():
        return globals()[name[:-4]]()
    raise AttributeError(name)
