"""Connection strings as pyodbc joins them, and what `odbcinst.ini` and `odbc.ini` list."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

from onecopy import _core
from onecopy.compat.pyodbc import _constants as sql
from onecopy.compat.pyodbc._connection import Connection
from onecopy.compat.pyodbc._errors import NotSupportedError, ProgrammingError, translating

#: What PEP 249 recommends, and what ODBC calls it.
_KEYWORDS = {"host": "server", "user": "uid", "password": "pwd"}


@translating
def connect(
    connstring: str = "",
    *,
    autocommit: bool = False,
    encoding: str = "utf-16le",
    ansi: bool = False,
    timeout: int = 0,
    readonly: bool = False,
    attrs_before: dict[int, Any] | None = None,
    **kwargs: Any,
) -> Connection:
    """Open a connection.

    Args:
        connstring: an ODBC connection string, ``DSN=name``, or one of onecopy's own targets (``sqlite:…``, a URL).
        autocommit: each statement is its own transaction.
        encoding, ansi: accepted; text needs no configuration.
        timeout: seconds to connect; 0: 15.
        readonly: open for reading alone; writes are refused.
        attrs_before: the timeout, the access mode and autocommit are known, the packet size is ignored; others raise.
        kwargs: joined to the string as ``key=value;``; ``host``, ``user`` and ``password`` are ``server``, ``uid``, ``pwd``.

    Raises:
        OperationalError: no connection.
        InterfaceError: no such driver, or the login is refused.
        NotSupportedError: an attribute that cannot be set.

    >>> con = connect("sqlite::memory:")
    >>> con.execute("select ? as name", "Zoë").fetchone().name
    'Zoë'
    """
    options: dict[str, Any] = {"autocommit": autocommit, "timeout": timeout, "readonly": readonly}
    return Connection(opened(connstring, **options, attrs_before=attrs_before, keywords=kwargs))


def opened(
    connstring: str,
    *,
    autocommit: bool,
    timeout: int,
    readonly: bool = False,
    attrs_before: dict[int, Any] | None,
    keywords: dict[str, Any],
) -> _core.Connection:
    """The connection that `connect` asks for."""
    for attribute, value in (attrs_before or {}).items():
        if attribute == sql.SQL_ATTR_LOGIN_TIMEOUT:
            timeout = value
        elif attribute == sql.SQL_ATTR_ACCESS_MODE:
            readonly = bool(value)
        elif attribute == sql.SQL_ATTR_AUTOCOMMIT:
            autocommit = bool(value)
        elif attribute != sql.SQL_PACKET_SIZE:  # A wish: the driver's own size is as good.
            raise NotSupportedError("HYC00", f"[HYC00] connection attribute {attribute} cannot be set")
    target = joined(connstring, keywords)
    return _core.connect(target, autocommit=autocommit, timeout=timeout or 15.0, read_only=readonly)


def joined(connstring: str, keywords: dict[str, Any]) -> str:
    """A connection string with keywords behind it; values that need braces get them."""
    if not keywords:
        return connstring
    if re.match(r"\w+:", connstring):
        raise ProgrammingError("HY000", "[HY000] keywords cannot be joined to a URL\nwrite them into it")
    parts = [connstring.rstrip("; ")] if connstring.strip("; ") else []
    for name, value in keywords.items():
        text = str(value)
        braced = text.startswith("{") and text.endswith("}")
        if not braced and (re.search(r"[;{}\[\](),?*=!@]", text) or text != text.strip()):
            text = "{" + text.replace("}", "}}") + "}"
        parts.append(f"{_KEYWORDS.get(name.lower(), name)}={text}")
    return ";".join(parts) + ";"


def drivers() -> list[str]:
    """Names of the drivers that are registered (`odbcinst.ini`)."""
    system = os.environ.get("ODBCSYSINI", "/etc")
    path = Path(system, os.environ.get("ODBCINSTINI", "odbcinst.ini"))
    return [name for name in _sections(path) if name.lower() not in ("odbc", "odbc drivers")]


def dataSources() -> dict[str, str]:
    """Names of the data sources of the user and of the system (`odbc.ini`), with their drivers."""
    found: dict[str, str] = {}
    for path in (
        Path(os.environ.get("ODBCSYSINI", "/etc"), "odbc.ini"),
        Path(os.environ.get("ODBCINI", "~/.odbc.ini")).expanduser(),
    ):
        for name, keys in _sections(path).items():
            if name.lower() not in ("odbc", "odbc data sources"):
                found[name] = keys.get("driver", "")
    return found


def _sections(path: Path) -> dict[str, dict[str, str]]:
    found: dict[str, dict[str, str]] = {}
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return found
    keys: dict[str, str] = {}
    for line in text.splitlines():
        line = line.strip()
        if line.startswith("[") and line.endswith("]"):
            keys = found.setdefault(line[1:-1], {})
        elif "=" in line and not line.startswith((";", "#")):
            name, _, value = line.partition("=")
            keys[name.strip().lower()] = value.strip()
    return found
