"""`onecopy.web`: the owner of a stream and its release, the choice of the framework, and the body
that the server receives."""

from __future__ import annotations

import gc
import subprocess
import sys
import threading
import types
import weakref
from collections.abc import Callable, Iterable
from typing import Any

import falcon
import flask
import pytest
from django.core.signals import request_finished
from django.db import close_old_connections
from django.test import RequestFactory

import onecopy
from onecopy import web
from tests.web import apps


@pytest.fixture(autouse=True)
def _database(database: str) -> None:
    apps.pool.cache_clear()
    apps.aio_pool.cache_clear()


def held(database: str, name: str = "long") -> tuple[onecopy.RowStream, weakref.ref[Any], threading.Event]:
    """A stream that is the only owner of its connection, a weak reference to the connection, and an
    event.

    The event is set when the stream is closed.
    """
    con = onecopy.connect(database)
    rows = con.execute(apps.QUERIES[name]).json()
    gone = threading.Event()
    rows.on_close(gone.set)
    return rows, weakref.ref(con), gone


def environ(path: str = "/", **more: Any) -> dict[str, Any]:
    return {**RequestFactory().get(path).environ, **more}


def start_response(*_: object) -> Callable[[bytes], object]:
    return bytes


# For each framework, the object that a server would iterate and close.


def of_flask(rows: onecopy.RowStream) -> Any:
    return web.flask(rows)(environ(), start_response)


def of_falcon(rows: onecopy.RowStream) -> Any:
    resp = falcon.Response()
    web.falcon(resp, rows)
    return resp.stream


MAKERS: dict[str, Callable[[onecopy.RowStream], Any]] = {
    "wsgi": lambda rows: web.wsgi(start_response, rows),
    "flask": of_flask,
    "django": web.django,
    "falcon": of_falcon,
}
every_maker = pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)


@every_maker
def test_the_response_holds_the_connection_until_it_is_closed(make: Callable[[Any], Any], database: str) -> None:
    rows, con, gone = held(database)
    answer = make(rows)
    del rows
    gc.collect()
    assert con() is not None and not gone.is_set()
    assert next(iter(answer)).startswith(b'[{"id":0,')
    answer.close()
    assert gone.is_set() and con() is None


@every_maker
def test_a_response_that_was_read_has_released_the_connection(make: Callable[[Any], Any], database: str) -> None:
    rows, con, gone = held(database)
    answer = make(rows)
    assert b"".join(answer).endswith(b"]")
    assert gone.is_set() and con() is None


@every_maker
def test_an_error_releases_the_connection(make: Callable[[Any], Any], database: str) -> None:
    rows, con, gone = held(database, "late")
    answer = make(rows)
    with pytest.raises(onecopy.DataError):
        b"".join(answer)
    assert gone.is_set() and con() is None
    rows, con, gone = held(database, "atonce")
    with pytest.raises(onecopy.DataError):
        make(rows)
    assert gone.is_set() and con() is None


@every_maker
def test_a_response_that_is_never_read_releases_the_connection(make: Callable[[Any], Any], database: str) -> None:
    rows, con, gone = held(database)
    answer = make(rows)
    del rows, answer
    gc.collect()
    assert gone.is_set() and con() is None


def test_the_stream_itself_reaches_the_server_from_flask(database: str) -> None:
    rows, _, _ = held(database)
    assert web.flask(rows)(environ(), start_response) is rows


def test_flask_closes_the_stream_of_a_head(database: str) -> None:
    rows, con, gone = held(database)
    answer: Any = web.flask(rows)(environ(REQUEST_METHOD="HEAD"), start_response)
    del rows
    assert list(answer) == []
    answer.close()
    assert gone.is_set() and con() is None


class _Wrapper:
    """A class that looks like the `wsgi.file_wrapper` of onecopy's server, which accepts
    streams."""

    __module__ = "onecopy"

    def __init__(self, filelike: Any, block_size: int = 8192) -> None:
        self.filelike = filelike

    def __iter__(self) -> Any:
        return iter(self.filelike)

    def close(self) -> None:
        self.filelike.close()


class _Foreign(_Wrapper):
    __module__ = "gunicorn.http.wsgi"


def served(path: str, wrapper: Any) -> Iterable[bytes]:
    extra = {"wsgi.file_wrapper": wrapper}
    return apps.django_app(environ(path, **extra), start_response)  # type: ignore[no-any-return]


def test_the_stream_itself_reaches_a_file_wrapper_of_ours_from_django(database: str) -> None:
    finished = []

    def note(**_: object) -> None:
        finished.append(True)

    request_finished.connect(note)
    request_finished.disconnect(close_old_connections)
    try:
        answer: Any = served("/long", _Wrapper)
        assert isinstance(answer, _Wrapper)
        assert isinstance(answer.filelike, onecopy.RowStream)
        next(iter(answer))
        assert not finished and apps.pool().stats().out == 1
        answer.close()
        assert finished == [True] and apps.pool().stats().out == 0
        # Read to its end, the stream is over, and only once.
        answer = served("/long", _Wrapper)
        b"".join(answer)
        answer.close()
        assert finished == [True, True] and apps.pool().stats().out == 0
        # Another wrapper would read blocks of its own size; a short response needs none.
        for path, wrapper in (("/long", _Foreign), ("/short", _Wrapper), ("/long", None)):
            answer = served(path, wrapper)
            assert not isinstance(answer, _Wrapper)
            assert b"".join(answer).startswith(b'[{"id":0,')
            answer.close()
    finally:
        request_finished.disconnect(note)


def test_a_middleware_of_django_that_changes_the_body_is_respected(database: str) -> None:
    rows, _, _ = held(database)
    answer = web.django(rows)
    answer.streaming_content = (part.lower() for part in answer.streaming_content)
    request = RequestFactory().get("/", **{"wsgi.file_wrapper": _Wrapper})
    answer._resource_closers.append(request.close)
    assert answer.file_to_stream is None
    assert b"st\xc3\xa4dtchen 0" in b"".join(answer)


def test_the_stream_itself_reaches_the_server_from_falcon_if_the_server_is_ours(
    database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delitem(sys.modules, "onecopy.server", raising=False)
    rows, _, _ = held(database)
    assert not hasattr(of_falcon(rows), "read")
    monkeypatch.setitem(sys.modules, "onecopy.server", types.ModuleType("onecopy.server"))
    rows, _, _ = held(database)
    assert of_falcon(rows) is rows


def test_status_and_headers_are_the_callers(database: str) -> None:
    options: dict[str, Any] = {"status": 203, "headers": {"Cache-Control": "no-store"}}
    rows = [held(database)[0] for _ in range(5)]
    seen: list[Any] = []
    web.wsgi(lambda *head: seen.append(head), rows[0], **options)
    assert seen[0][0] == "203 Non-Authoritative Information"
    assert ("Cache-Control", "no-store") in seen[0][1]
    for made in (web.flask(rows[1], **options), web.django(rows[2], **options), web.starlette(rows[3], **options)):
        assert (made.status_code, made.headers["cache-control"]) == (203, "no-store")
    resp = falcon.Response()
    web.falcon(resp, rows[4], **options)
    assert (resp.status_code, resp.get_header("Cache-Control")) == (203, "no-store")


def test_without_a_request_the_error_names_the_functions(database: str) -> None:
    from django.urls import set_urlconf

    set_urlconf(None)
    rows, _, _ = held(database)
    with pytest.raises(RuntimeError, match=r"no request of Flask.*\ncall `onecopy.web.flask`"):
        web.response(rows)
    with apps.flask_app.test_request_context():
        assert isinstance(web.response(rows), flask.Response)


def test_an_object_that_is_not_a_row_stream_is_a_type_error(database: str) -> None:
    for make in MAKERS.values():
        with pytest.raises(TypeError, match="`list` is not a row stream"):
            make([b"rows"])  # type: ignore[arg-type]


def test_the_module_imports_no_framework() -> None:
    code = (
        "import onecopy, sys; onecopy.web.response;"
        " print({'flask', 'django', 'falcon', 'starlette', 'asyncio'} & {*sys.modules})"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"
    with pytest.raises(AttributeError, match="no attribute `tornado`"):
        _ = web.tornado
