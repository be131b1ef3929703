"""Babelfish for PostgreSQL: a server that speaks TDS and T-SQL, from an archive next to the
checkout.

The archive is ``../shared/servers/babelfish-pg.tar.zst``, or the file named by
``ONECOPY_BABELFISH``.
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
    """The server's archive, if there is one."""
    path = Path(os.environ.get("ONECOPY_BABELFISH", _ARCHIVE))
    return path if path.is_file() else None


@contextmanager
def running(folder: Path) -> Iterator[int]:
    """A new server with its files in ``folder``, which every user may enter; returns its TDS
    port."""
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
    """The connection string for a driver of `tests.support.drivers`."""
    path = drivers.find(driver)
    if driver == "freetds":
        return f"Driver={path};Server=127.0.0.1;Port={port};{_LOGIN};TDS_Version=7.4"
    return f"Driver={path};Server=127.0.0.1,{port};{_LOGIN};Encrypt=no;TrustServerCertificate=yes"
