"""Connections of workers. Each worker looks up the connection string by the name of a secret."""

from __future__ import annotations

import os
import re
from pathlib import Path
from urllib.parse import urlsplit

from onecopy import _core
from onecopy._core import Connection
from onecopy.errors import InterfaceError, ProgrammingError

__all__ = ["check", "connect", "connection_string"]

#: A keyword of a connection string whose value is secret: `password=`, `Pwd=`, `access_token=`.
_SECRET = re.compile(
    r"(?:^|[;?&\s{])[\w \-]*(?:pwd|passw|token|secret|api_?key|private_?key|credential|passphrase)[\w \-]*=\s*[^\s;&]",
    re.IGNORECASE,
)
_REMEDY = (
    "set it on each worker in an environment variable, and pass `env:NAME`, or in a file, and pass `@/path/to/file`"
)


def check(database: str) -> None:
    """Raise `ProgrammingError` if the text is a connection string with a password.

    The text is sent to the workers and may appear in the plans and logs of the engine.
    """
    if not isinstance(database, str) or not database:
        raise ProgrammingError(f"`database` must be the name of a secret or a connection string\n{_REMEDY}")
    if database.startswith(("env:", "@")):
        return
    try:
        has_password = bool(urlsplit(database).password)
    except ValueError:
        has_password = False
    if has_password or _SECRET.search(database):
        raise ProgrammingError(
            f"the connection string has a password, which would be sent with the plan of the query\n{_REMEDY}"
        )


def connection_string(database: str) -> str:
    """Return the connection string that ``env:NAME`` or ``@/path/to/file`` names on this machine.

    Any other text is returned unchanged. Raises `InterfaceError` if the environment variable or the
    file does not exist; the message never contains a connection string.
    """
    check(database)
    if database.startswith("env:"):
        name = database[len("env:") :]
        value = os.environ.get(name, "")
        where = f"the environment variable `{name}`"
    elif database.startswith("@"):
        name = database[1:]
        try:
            value = Path(name).read_text(encoding="utf-8").strip()
        except OSError as error:
            raise InterfaceError(f"the file `{name}` cannot be read: {error.strerror}\n{_REMEDY}") from None
        where = f"the file `{name}`"
    else:
        return database
    if not value:
        raise InterfaceError(f"{where} is empty or not set in this process\n{_REMEDY}")
    return value


def connect(database: str) -> Connection:
    """Open a connection to ``database``, whose connection string `connection_string` returns."""
    return _core.connect(connection_string(database))
