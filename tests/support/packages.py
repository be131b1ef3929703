"""The Debian packages that the database tests need, and the command that installs them."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterable

#: Debian package -> the reason why the tests need it.
PACKAGES = {
    "unixodbc": "the ODBC driver manager, loaded at run time",
    "odbcinst": "its registry, used by the driver packages",
    "postgresql": "a PostgreSQL server",
    "pgbouncer": "a pooler between PostgreSQL and its clients",
    "odbc-postgresql": "psqlodbc, Unicode and ANSI",
    "mariadb-server": "a MariaDB server",
    "odbc-mariadb": "MariaDB Connector/ODBC",
    "libsqliteodbc": "SQLite through ODBC",
    "tdsodbc": "FreeTDS, one of three drivers for SQL Server",
    "strace": "system calls of a process, looked at: no payload goes through read and write where none should",
    "libgssapi-krb5-2": "Microsoft's ODBC driver links against it",
    "chromium": "a browser that plays the video of examples/video",
    "chromium-driver": "drives it",
    "ffmpeg": "creates that video, and reports the offsets of its frames",
}


def missing(wanted: Iterable[str] = PACKAGES) -> list[str]:
    """The packages of ``wanted`` that dpkg does not report as installed; an empty list without
    dpkg."""
    wanted = list(wanted)
    if shutil.which("dpkg-query") is None:
        return []
    known = subprocess.run(
        ["dpkg-query", "-W", "-f", "${Package} ${db:Status-Abbrev}\n", *wanted],
        capture_output=True,
        text=True,
        check=False,
    ).stdout
    installed = {line.split()[0] for line in known.splitlines() if line.split()[1:2] == ["ii"]}
    return [name for name in wanted if name not in installed]


def install_line(names: list[str]) -> str:
    """The shell command that installs the packages ``names``, to be shown to a person."""
    return "sudo apt-get update && sudo apt-get install -y --no-install-recommends " + " ".join(names)


def install(names: list[str]) -> bool:
    """Installs the packages ``names`` with apt; needs root.

    Returns False if that is not possible or if apt failed; apt's output is printed.
    """
    if os.geteuid() != 0 or shutil.which("apt-get") is None:
        return False
    # Debian starts a newly installed server; the tests run their own, so a start is prevented
    # unless a policy exists already.
    policy = "/usr/sbin/policy-rc.d"
    ours = not os.path.exists(policy)
    if ours:
        with open(policy, "w", encoding="ascii") as file:
            file.write("#!/bin/sh\nexit 101\n")
        os.chmod(policy, 0o755)
    environment = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
    try:
        for command in (
            ["apt-get", "update", "-q"],
            ["apt-get", "install", "-q", "-y", "--no-install-recommends", *names],
        ):
            if subprocess.run(command, env=environment, stdout=subprocess.DEVNULL, check=False).returncode != 0:
                return False
        return True
    finally:
        if ours:
            os.unlink(policy)
