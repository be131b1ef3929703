"""Opens connections with pyodbc's arguments, and lists the entries of `odbcinst.ini` and
`odbc.ini`."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any, TypeVar

from onecopy import _core
from onecopy.compat.pyodbc import _constants as sql
from onecopy.compat.pyodbc._connection import Connection
from onecopy.compat.pyodbc._errors import NotSupportedError, ProgrammingError, translating

C = TypeVar("C", bound=Connection)

#: The classes that the value of a connection attribute may have.
_VALUES = (int, bytes, bytearray, str)
#: The keywords that PEP 249 recommends, and ODBC's names for them.
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
        connstring: an ODBC connection string, ``DSN=name``, or one of onecopy's own targets
            (``sqlite:…``, a URL).
        autocommit: each statement is its own transaction.
        encoding, ansi: accepted without effect; text needs no configuration.
        timeout: the time limit for connecting in seconds; 0 means 15 seconds.
        readonly: open the database in read-only mode, in which writes are rejected.
        attrs_before: the connection attributes to set. The timeout, the access mode, autocommit and
            the current catalog are supported, and the packet size is ignored. Any other attribute
            raises an error. If a value is a sequence, its items are set one after another.
        kwargs: appended to the string as ``key=value;``; ``host``, ``user`` and ``password`` become
            ``server``, ``uid`` and ``pwd``.

    Raises:
        OperationalError: the connection failed.
        OverflowError: an attribute is not a 32-bit integer.
        InterfaceError: the driver does not exist, or the login was refused.
        NotSupportedError: an attribute cannot be set.
        TypeError: an attribute's value is not an integer, bytes, a string, or a sequence of these.

    >>> con = connect("sqlite::memory:")
    >>> con.execute("select ? as name", "Zoë").fetchone().name
    'Zoë'
    """
    encoding.encode()  # Raises for a name with lone surrogates, as pyodbc does.
    options: dict[str, Any] = {"autocommit": autocommit, "timeout": timeout, "readonly": readonly}
    return connected(Connection, connstring, **options, attrs_before=attrs_before, keywords=kwargs)


def connected(
    of: type[C],
    connstring: str,
    *,
    autocommit: bool,
    timeout: int,
    readonly: bool = False,
    attrs_before: dict[int, Any] | None,
    keywords: dict[str, Any],
) -> C:
    """Open a connection, and return it as an instance of the class ``of``. `connect` calls this
    function."""
    catalog = None
    for attribute, value in _attributes(attrs_before or {}):
        if attribute == sql.SQL_ATTR_LOGIN_TIMEOUT:
            timeout = value
        elif attribute == sql.SQL_ATTR_ACCESS_MODE:
            readonly = bool(value)
        elif attribute == sql.SQL_ATTR_AUTOCOMMIT:
            autocommit = bool(value)
        elif attribute == sql.SQL_ATTR_CURRENT_CATALOG:
            catalog = value
        elif attribute != sql.SQL_PACKET_SIZE:  # Only a hint: the driver's default is used.
            raise NotSupportedError("HYC00", f"[HYC00] connection attribute {attribute} cannot be set")
    target = joined(connstring, keywords)
    con = of(_core.connect(target, autocommit=autocommit, connect_timeout=timeout or 15.0, read_only=readonly))
    if catalog is not None:
        try:
            con.set_attr(sql.SQL_ATTR_CURRENT_CATALOG, catalog)
        except BaseException:
            con.close()
            raise
    return con


def _attributes(attrs_before: dict[int, Any]) -> list[tuple[int, Any]]:
    """Return pairs of attribute and value. An attribute whose value is a sequence has a pair for
    each item."""
    found = []
    for attribute, value in attrs_before.items():
        if not isinstance(attribute, int):
            raise TypeError("the keys of attrs_before are not integers")
        if not -(2**31) <= attribute < 2**31:
            raise OverflowError(f"connection attribute {attribute} is not a 32-bit integer")
        is_one = isinstance(value, (*_VALUES, dict)) or not hasattr(value, "__getitem__")
        for item in [value] if is_one else [value[i] for i in range(len(value))]:
            if not isinstance(item, _VALUES):
                raise TypeError(f"connection attribute {attribute} cannot be a `{type(item).__name__}`")
            found.append((attribute, item))
    return found


def joined(connstring: str, keywords: dict[str, Any]) -> str:
    """Append keywords to a connection string and return the result; values are put in braces if
    necessary."""
    if not keywords:
        return connstring
    if re.match(r"\w+:", connstring):
        raise ProgrammingError("HY000", "[HY000] keywords cannot be joined to a URL\nwrite them as options of the URL")
    parts = [connstring.rstrip("; ")] if connstring.strip("; ") else []
    for name, value in keywords.items():
        text = str(value)
        braced = text.startswith("{") and text.endswith("}")
        if not braced and (re.search(r"[;{}\[\](),?*=!@]", text) or text != text.strip()):
            text = "{" + text.replace("}", "}}") + "}"
        parts.append(f"{_KEYWORDS.get(name.lower(), name)}={text}")
    return ";".join(parts) + ";"


def drivers() -> list[str]:
    """Return the names of the registered drivers (`odbcinst.ini`)."""
    system = os.environ.get("ODBCSYSINI", "/etc")
    path = Path(system, os.environ.get("ODBCINSTINI", "odbcinst.ini"))
    return [name for name in _sections(path) if name.lower() not in ("odbc", "odbc drivers")]


def dataSources() -> dict[str, str]:
    """Return a dict from the names of the user's and the system's data sources (`odbc.ini`) to
    their drivers."""
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
