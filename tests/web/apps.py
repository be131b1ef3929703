"""The same application in each web framework: it streams the results of named queries.

The pool has only one connection, so that a connection that is not returned blocks the next request.
The environment variable `ONECOPY_WEB_DATABASE` has the connection string, since servers import this
module in other processes.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Iterable
from typing import Any

import django
import falcon
import falcon.asgi
import fastapi
import flask
from django.conf import settings
from django.core.asgi import get_asgi_application
from django.core.wsgi import get_wsgi_application
from django.http import HttpRequest, HttpResponse
from django.urls import path
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.routing import Route

import onecopy
from onecopy import aio

#: By the path of the request. The rows of `long` fill many chunks; `late` fails in row 150,000,
#: `atonce` in its first.
QUERIES = {
    "short": "select id, name from city limit 3",
    "long": "select id, name from city",
    "empty": "select id, name from city where 0",
    "atonce": "select cast(x'ff' as text) as t",
    "late": "with recursive c(i) as (select 0 union all select i + 1 from c where i < 199999) "
    "select i, case when i = 150000 then cast(x'ff' as text) else 'text ' || i end as t from c",
    "endless": "with recursive c(i) as (select 1 union all select i + 1 from c) select i from c",
}
#: The file name of each response.
FILENAME = "Städte.json"


@functools.cache
def pool() -> onecopy.Pool:
    """The pool of the WSGI applications, with one connection."""
    return onecopy.Pool(os.environ["ONECOPY_WEB_DATABASE"], max_size=1, timeout=60)


@functools.cache
def aio_pool() -> aio.Pool:
    """The pool of the ASGI applications that use `onecopy.aio`, with one connection."""
    return aio.Pool(os.environ["ONECOPY_WEB_DATABASE"], max_size=1, timeout=60)


def rows(name: str) -> onecopy.RowStream:
    """A row stream with the result of the query ``name``."""
    return pool().stream(QUERIES[name])


def plain(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
    """A WSGI application without a framework; the server handles errors before the response."""
    name = environ["PATH_INFO"].strip("/")
    return onecopy.web.wsgi(start_response, rows(name), filename=FILENAME)


flask_app = flask.Flask(__name__)


@flask_app.get("/<name>")
def _flask(name: str) -> flask.Response:
    made: flask.Response = onecopy.web.response(rows(name), filename=FILENAME)
    return made


@flask_app.post("/upload/<how>")
def _flask_upload(how: str) -> flask.Response:
    """Returns the request's body, or refuses the request without reading it; as in the other
    frameworks."""
    if how == "refused":
        return flask.Response("not wanted", 403)
    return flask.Response(flask.request.get_data())


def _django_upload(request: HttpRequest, how: str) -> Any:
    if how == "refused":
        return HttpResponse(b"not wanted", status=403)
    return HttpResponse(request.body)


def _django(request: HttpRequest, name: str) -> Any:
    return onecopy.web.response(rows(name), filename=FILENAME)


async def _django_async(request: HttpRequest, name: str) -> Any:
    stream = await aio_pool().stream(QUERIES[name])
    await stream.begin()
    return onecopy.web.response(stream, filename=FILENAME)


urlpatterns = [
    path("async/<name>", _django_async),
    path("upload/<how>", _django_upload),
    path("<name>", _django),
]
settings.configure(ROOT_URLCONF=__name__, ALLOWED_HOSTS=["*"], SECRET_KEY="of no use", MIDDLEWARE=[])
django.setup()
django_app = get_wsgi_application()
django_asgi = get_asgi_application()


class _Falcon:
    def on_get(self, req: falcon.Request, resp: falcon.Response, name: str) -> None:
        onecopy.web.response(rows(name), resp, filename=FILENAME)


class _FalconUpload:
    def on_post(self, req: falcon.Request, resp: falcon.Response, how: str) -> None:
        if how == "refused":
            resp.status, resp.data = falcon.HTTP_403, b"not wanted"
        else:
            resp.data = req.bounded_stream.read()


class _FalconAsync:
    async def on_get(self, req: Any, resp: Any, name: str) -> None:
        stream = await aio_pool().stream(QUERIES[name])
        await stream.begin()
        onecopy.web.response(stream, resp, filename=FILENAME)


falcon_app = falcon.App()
falcon_app.add_route("/{name}", _Falcon())
falcon_app.add_route("/upload/{how}", _FalconUpload())
falcon_asgi = falcon.asgi.App()
falcon_asgi.add_route("/{name}", _FalconAsync())

fastapi_app = fastapi.FastAPI()


@fastapi_app.get("/async/{name}")
async def _fastapi_async(name: str) -> fastapi.Response:
    """Responds with a stream of `onecopy.aio`."""
    stream = await aio_pool().stream(QUERIES[name])
    made: fastapi.Response = onecopy.web.response(stream, filename=FILENAME)
    return made


@fastapi_app.get("/{name}")
def _fastapi(name: str) -> fastapi.Response:
    """Responds with a stream of `onecopy`, created in a thread of FastAPI."""
    made: fastapi.Response = onecopy.web.response(rows(name), filename=FILENAME)
    return made


async def _starlette(request: Request) -> Any:
    """Responds with a stream of `onecopy`, created on the event loop."""
    return onecopy.web.response(rows(request.path_params["name"]), filename=FILENAME)


starlette_app = Starlette(routes=[Route("/{name}", _starlette)])


_WSGI = {"wsgi": plain, "flask": flask_app, "django": django_app, "falcon": falcon_app}
_ASGI = {
    "fastapi": (fastapi_app, ""),
    "fastapi_async": (fastapi_app, "/async"),
    "starlette": (starlette_app, ""),
    "django": (django_asgi, ""),
    "django_async": (django_asgi, "/async"),
    "falcon": (falcon_asgi, ""),
}


def all_wsgi(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
    """A WSGI application that passes a request to the application whose name begins the path.

    One server can therefore serve all applications.
    """
    _, name, rest = environ["PATH_INFO"].split("/", 2)
    environ = {**environ, "PATH_INFO": f"/{rest}"}
    app: Callable[..., Iterable[bytes]] = _WSGI[name]
    return app(environ, start_response)


async def all_asgi(scope: Any, receive: Any, send: Any) -> None:
    """An ASGI application that passes a request to the application whose name begins the path."""
    if scope["type"] != "http":
        return
    _, name, rest = scope["path"].split("/", 2)
    app, prefix = _ASGI[name]
    address = f"{prefix}/{rest}"
    # A copy, since Starlette checks the type.
    await app({**scope, "path": address, "raw_path": address.encode()}, receive, send)
