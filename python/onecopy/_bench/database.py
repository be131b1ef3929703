"""`Database`: the DATABASE argument, and the same database as the connection keywords that other
database libraries need.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote, quote_plus, unquote

__all__ = ["Database", "InvalidDatabase", "parse", "read_text"]

#: Maps the schemes of URLs, without the prefix `odbc+`, to the dialect of their database.
_SCHEMES = {
    "postgresql": "postgresql",
    "postgres": "postgresql",
    "mysql": "mysql",
    "mariadb": "mysql",
    "mssql": "mssql",
}
#: Maps parts of the names of ODBC drivers to the dialect of their database.
_DRIVERS = {
    "psqlodbc": "postgresql",
    "postgres": "postgresql",
    "maodbc": "mysql",
    "myodbc": "mysql",
    "mariadb": "mysql",
    "mysql": "mysql",
    "msodbc": "mssql",
    "sql server": "mssql",
    "freetds": "mssql",
    "tdsodbc": "mssql",
    "mssql": "mssql",
    "sqlite": "sqlite",
}
#: Maps keywords of ODBC connection strings, in lower case, to the corresponding keywords of
#: libpq.
_KEYWORDS = {
    "server": "host",
    "servername": "host",
    "host": "host",
    "port": "port",
    "database": "dbname",
    "uid": "user",
    "user": "user",
    "username": "user",
    "pwd": "password",
    "password": "password",
}


class InvalidDatabase(Exception):
    """Raised if the DATABASE argument is not a connection string."""


class Database(NamedTuple):
    """The database that the command line names.

    ``text`` is onecopy's connection string, ``dialect`` one of `sqlite`, `postgresql`, `mysql`,
    `mssql` and `generic`. ``keywords`` has the names of libpq (`host`, `port`, `user`, `password`,
    `dbname` and others), ``path`` is SQLite's file, and ``odbc`` an ODBC connection string.
    """

    text: str
    dialect: str
    keywords: dict[str, str]
    path: str = ""
    odbc: str = ""

    @property
    def url(self) -> str:
        """Return a URL with the scheme `postgresql` or `mysql`, for libraries that accept nothing
        else."""
        known = self.keywords
        hosts = known.get("host", "").split(",")
        ports = known.get("port", "").split(",")
        ports = ports if len(ports) == len(hosts) else ports[:1] * len(hosts)
        # A host that begins with `/` is the folder of a socket; libpq accepts it percent-encoded.
        where = ",".join(
            (host if ":" in host else quote(host, "")) + (f":{port}" if port else "")
            for host, port in zip(hosts, ports, strict=True)
        )
        login = quote(known.get("user", ""), "")
        if "password" in known:
            login += ":" + quote(known["password"], "")
        others = {k: v for k, v in known.items() if k not in ("host", "port", "user", "password", "dbname")}
        query = "&".join(f"{quote(k)}={quote(v, '')}" for k, v in others.items())
        url = f"{self.dialect}://{login}{'@' if login else ''}{where}/{quote(known.get('dbname', ''), '')}"
        return url + (f"?{query}" if query else "")

    @property
    def secrets(self) -> list[str]:
        """Return the passwords and connection strings, which no message may contain, longest
        first."""
        password = self.keywords.get("password", "")
        found = {self.text, self.odbc, password, quote(password, ""), quote(password), quote_plus(password)}
        if self.dialect != "sqlite":
            found.add(self.url)
        else:
            found.clear()
        return sorted((text for text in found if text), key=len, reverse=True)

    def without_secrets(self, message: str) -> str:
        """Return the message, with `…` instead of each connection string and password."""
        for secret in self.secrets:
            message = message.replace(secret, "…")
        return message


def read_text(argument: str, subject: str) -> str:
    """Return the argument; if it is ``@FILE``, return the text of the file instead.

    Raises:
        InvalidDatabase: the file cannot be read.
    """
    if not argument.startswith("@"):
        return argument
    try:
        return Path(argument[1:]).read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise InvalidDatabase(f"{subject} cannot be read from `{argument[1:]}`: {reason}") from None


def parse(argument: str) -> Database:
    """Parse the DATABASE argument, which may be ``@FILE``.

    Raises:
        InvalidDatabase: the argument is empty or not a connection string, or the file cannot be
            read.
    """
    if argument == "-":
        raise InvalidDatabase("the database cannot be read from stdin\nwrite `@FILE`")
    text = read_text(argument, "the database").strip()
    if not text:
        raise InvalidDatabase("the database is empty\nwrite `sqlite:PATH`, `DSN=NAME` or a connection string")
    if not ("=" in text or ":" in text):
        raise InvalidDatabase(
            f"`{text}` is not a connection string\n"
            f"for the SQLite file of that name write `sqlite:{text}`, for a data source `DSN={text}`"
        )
    if text.startswith("sqlite:"):
        path = unquote(text.removeprefix("sqlite:").partition("?")[0])
        if path == ":memory:" or "mode=memory" in text:
            raise InvalidDatabase(
                "each process would have its own database in memory\nwrite the data to a file: `sqlite:PATH`"
            )
        return Database(text, "sqlite", {}, path=str(Path(path).absolute()))
    scheme, separator, rest = text.partition("://")
    scheme = scheme.lower()
    if separator and scheme.removeprefix("odbc+").partition("+")[0] in _SCHEMES:
        return _of_url(text, _SCHEMES[scheme.removeprefix("odbc+").partition("+")[0]], rest)
    if re.match("(postgresql|postgres):", text):
        return Database(text, "postgresql", _pairs(text.partition(":")[2]))
    return _of_odbc(text)


def _of_url(text: str, dialect: str, rest: str) -> Database:
    rest, _, query = rest.partition("?")
    authority, _, dbname = rest.partition("/")
    login, _, hosts = authority.rpartition("@")
    user, colon, password = login.partition(":")
    hosts_and_ports = [re.fullmatch(r"(\[.*\]|[^:]*)(?::(\d*))?", part) for part in hosts.split(",")]
    if not all(hosts_and_ports):
        raise InvalidDatabase(
            "the host of the database's URL is invalid\nwrite `SCHEME://USER:PASSWORD@HOST:PORT/NAME`"
        )
    ports = [match[2] or "" for match in hosts_and_ports if match]
    keywords = {
        "host": ",".join(unquote(match[1]).strip("[]") for match in hosts_and_ports if match),
        "port": ",".join(ports) if any(ports) else "",
        "user": unquote(user),
        "password": unquote(password) if colon else "",
        "dbname": unquote(dbname),
    }
    for pair in filter(None, query.split("&")):
        key, _, value = pair.partition("=")
        keywords[unquote(key)] = unquote(value)
    return Database(text, dialect, {key: value for key, value in keywords.items() if value})


def _pairs(text: str) -> dict[str, str]:
    """Parse a libpq connection string ``key = 'value' …``; return its keywords with the unquoted
    values."""
    found = {}
    for key, quoted, bare in re.findall(r"(\w+)\s*=\s*(?:'((?:[^'\\]|\\.)*)'|((?:[^\s'\\]|\\.)*))", text, re.DOTALL):
        found[key] = re.sub(r"\\(.)", r"\1", quoted or bare, flags=re.DOTALL)
    return found


def _of_odbc(text: str) -> Database:
    pairs = {}
    for key, braced, bare in re.findall(r"([^;={}]+)=(?:\{((?:[^}]|\}\})*)\}|([^;]*))", text):
        pairs[key.strip().lower()] = braced.replace("}}", "}") or bare.strip()
    driver = pairs.get("driver", "").lower()
    dialect = next((name for part, name in _DRIVERS.items() if part in driver), "generic")
    keywords = {_KEYWORDS[key]: value for key, value in pairs.items() if key in _KEYWORDS and value}
    if dialect == "mssql" and "," in keywords.get("host", ""):
        keywords["host"], _, keywords["port"] = keywords["host"].partition(",")
    # For SQLite the keyword `Database` is the file.
    path = str(Path(keywords["dbname"]).absolute()) if dialect == "sqlite" and "dbname" in keywords else ""
    return Database(text, dialect, keywords, path=path, odbc=text)
