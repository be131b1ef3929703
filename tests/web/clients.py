"""Requests to each framework's application through the framework's own test client."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, NamedTuple


class Answer(NamedTuple):
    """The response that a test client received; names of header fields are in lower case."""

    status: int
    fields: dict[str, str]
    body: bytes


def _lower(headers: Any) -> dict[str, str]:
    return {str(name).lower(): str(value) for name, value in headers}


def by_wsgi(path: str, method: str = "GET") -> Answer:
    """Sends a request to the application without a framework, with the checks of
    `wsgiref.validate`."""
    from wsgiref.util import setup_testing_defaults
    from wsgiref.validate import validator

    from tests.web import apps

    environ: dict[str, Any] = {"REQUEST_METHOD": method, "SCRIPT_NAME": "", "PATH_INFO": path, "QUERY_STRING": ""}
    setup_testing_defaults(environ)
    seen: list[Any] = []

    def start_response(status: str, headers: list[tuple[str, str]], exc_info: Any = None) -> Callable[[bytes], object]:
        seen.append((status, headers))
        return seen.append

    chunks = validator(apps.plain)(environ, start_response)
    try:
        body = b"".join(chunks)
    finally:
        chunks.close()  # type: ignore[attr-defined]
    status, headers = seen[0]
    return Answer(int(status.split()[0]), _lower(headers), body)


def by_flask(path: str, method: str = "GET") -> Answer:
    """Sends a request to the Flask application."""
    from tests.web import apps

    apps.flask_app.testing = True
    with apps.flask_app.test_client().open(path, method=method) as answer:
        return Answer(answer.status_code, _lower(answer.headers), answer.data)


def by_django(path: str, method: str = "GET") -> Answer:
    """Sends a request to the Django application under WSGI."""
    from django.test import Client

    import tests.web.apps  # noqa: F401  # Django is set up there.

    answer = Client().generic(method, path)
    try:
        return Answer(answer.status_code, _lower(answer.items()), b"".join(answer.streaming_content))
    finally:
        answer.close()


def by_falcon(path: str, method: str = "GET") -> Answer:
    """Sends a request to the Falcon application under WSGI."""
    from falcon.testing import TestClient

    from tests.web import apps

    return _of_falcon(TestClient(apps.falcon_app).simulate_request(method, path))


def by_falcon_asgi(path: str, method: str = "GET") -> Answer:
    """Sends a request to the Falcon application under ASGI, which uses `onecopy.aio`."""
    from falcon.testing import TestClient

    from tests.web import apps

    return _of_falcon(TestClient(apps.falcon_asgi).simulate_request(method, path))


def _of_falcon(answer: Any) -> Answer:
    return Answer(answer.status_code, _lower(answer.headers.items()), answer.content)


def _by_asgi(app: str, prefix: str = "") -> Callable[..., Answer]:
    def ask(path: str, method: str = "GET") -> Answer:
        import httpx

        from tests.web import apps

        async def get() -> httpx.Response:
            transport = httpx.ASGITransport(getattr(apps, app))
            async with httpx.AsyncClient(transport=transport, base_url="http://test") as client:
                return await client.request(method, prefix + path)

        # Each client has its own event loop, and a pool of asyncio belongs to one.
        apps.aio_pool.cache_clear()
        answer = asyncio.run(get())
        return Answer(answer.status_code, _lower(answer.headers.items()), answer.content)

    return ask


CLIENTS: dict[str, Callable[..., Answer]] = {
    "wsgi": by_wsgi,
    "flask": by_flask,
    "django": by_django,
    "falcon": by_falcon,
    "falcon_asgi": by_falcon_asgi,
    "fastapi": _by_asgi("fastapi_app"),
    "fastapi_async": _by_asgi("fastapi_app", "/async"),
    "starlette": _by_asgi("starlette_app"),
}
