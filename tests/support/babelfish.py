"""Starts Babelfish for PostgreSQL, a server that speaks TDS and T-SQL, from an archive.

The archive is the file that ``ONECOPY_BABELFISH`` names, by default
``../shared/servers/babelfish-pg.tar.zst`` relative to the checkout.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.support import drivers
from tests.support.process import free_port

_ARCHIVE = drivers.ROOT.parent / "shared" / "servers" / "babelfish-pg.tar.zst"
_LOGIN = "Uid=sa;Pwd=Onecopy12345;Database=master"


def archive() -> Path | None:
    """The path of the archive with the Babelfish server, or ``None`` if no such file exists."""
    path = Path(os.environ.get("ONECOPY_BABELFISH", _ARCHIVE))
    return path if path.is_file() else None


@contextmanager
def running(folder: Path) -> Iterator[int]:
    """Starts a new server, which is stopped at the end; yields its TDS port.

    The archive is unpacked into ``folder``, which every user must be allowed to enter.
    """
    found = archive()
    assert found is not None, f"no archive at {_ARCHIVE}"
    subprocess.run(["tar", "--zstd", "-xf", found, "-C", folder], check=True)
    programs, data, port = folder / "babelfish-pg", folder / "data", free_port()
    start = [str(programs / "start.sh"), str(data), str(port), str(free_port())]
    subprocess.run(start, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        yield port
    finally:
        subprocess.run([programs / "stop.sh", data], check=True, stdout=subprocess.DEVNULL)


def odbc(driver: str, port: int) -> str:
    """The ODBC connection string for the server on ``port``.

    ``driver`` is a key of the table in `tests.support.drivers`.
    """
    path = drivers.find(driver)
    if driver == "freetds":
        return f"Driver={path};Server=127.0.0.1;Port={port};{_LOGIN};TDS_Version=7.4"
    return f"Driver={path};Server=127.0.0.1,{port};{_LOGIN};Encrypt=no;TrustServerCertificate=yes"
