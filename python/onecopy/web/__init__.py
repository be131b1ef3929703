"""Row streams as answers of web frameworks: what a handler returns, and the server sends as it is read from the database.

| function | for |
|---|---|
| `response` | whichever framework's request it is called in |
| `flask`, `django`, `starlette` (FastAPI too) | a response to return |
| `falcon` | sets the response that Falcon gives the responder |
| `wsgi` | calls ``start_response`` of a plain WSGI application, and gives its iterable |

Each fills the first chunk before there is an answer, so that a query that fails becomes the framework's own error page; a
failure behind it is raised to the server, which breaks the answer off. The stream itself reaches a server that knows it.

>>> import onecopy
>>> def application(environ, start_response):
...     con = onecopy.connect("sqlite::memory:")
...     return onecopy.web.wsgi(start_response, con.execute("select 1 as id").json(), filename="ids.json")
>>> b"".join(application({}, lambda status, headers: print(status, headers[1])))
200 OK ('Content-Disposition', 'attachment; filename="ids.json"')
b'[{"id":1}]'
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from onecopy.web._response import response
from onecopy.web._wsgi import wsgi

if TYPE_CHECKING:
    from onecopy.web._django import django
    from onecopy.web._falcon import falcon
    from onecopy.web._flask import flask
    from onecopy.web._starlette import starlette

__all__ = ["django", "falcon", "flask", "response", "starlette", "wsgi"]


def __getattr__(name: str) -> Any:
    # A framework is imported when its function is asked for.
    if name in __all__:
        return getattr(importlib.import_module(f"onecopy.web._{name}"), name)
    raise AttributeError(f"module `onecopy.web` has no attribute `{name}`")
