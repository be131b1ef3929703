"""Row streams as responses of web frameworks. The server sends rows while further rows are read
from the database.

| function | for |
|---|---|
| `response` | the framework that handles the current request |
| `flask`, `django`, `starlette` (FastAPI too) | returns a response |
| `falcon` | sets up Falcon's response object |
| `wsgi` | calls ``start_response`` of a plain WSGI application, and returns its iterable |

Each function fills the first chunk before it creates the response, so the framework's own error
page is shown if the query fails before its first rows. If the query fails later, the server gets
the exception and aborts the response. A server that supports row streams (onecopy's own) gets the
stream object itself.

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
    # A framework is imported only when its function is accessed.
    if name in __all__:
        return getattr(importlib.import_module(f"onecopy.web._{name}"), name)
    raise AttributeError(f"module `onecopy.web` has no attribute `{name}`")
