"""The paths of the shared objects of ODBC drivers, or the reasons why drivers cannot be used."""

from __future__ import annotations

import ctypes
import glob
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CACHE = ROOT / ".cache"
#: SQL Server drivers from PyPI, unpacked here so that no environment must contain them.
PYPI = CACHE / "drivers"
PYPI_REQUIREMENTS = ROOT / "tests" / "support" / "drivers.txt"

#: name -> patterns of the shared object, first match wins.
_PATTERNS = {
    "psqlodbcw": ("/usr/lib/*/odbc/psqlodbcw.so", "/usr/lib*/psqlodbcw.so"),
    "psqlodbca": ("/usr/lib/*/odbc/psqlodbca.so", "/usr/lib*/psqlodbca.so"),
    "maodbc": ("/usr/lib/*/odbc/libmaodbc.so", "/usr/lib*/libmaodbc.so"),
    "sqliteodbc": ("/usr/lib/*/odbc/libsqlite3odbc.so", "/usr/lib*/libsqlite3odbc.so"),
    "freetds": ("/usr/lib/*/odbc/libtdsodbc.so", "/usr/lib*/libtdsodbc.so*"),
    "msodbc": (str(PYPI / "mssql_python_odbc/libs/linux/debian_ubuntu/*/lib/libmsodbcsql-*"),),
    "mssqlrs": (str(PYPI / "mssql_py_core/libs/linux/glibc/*/lib/mssqlodbc.so"),),
}


class Unavailable(Exception):
    """A test's requirement is missing on this machine; the message has the reason and the
    remedy."""


def driver_manager() -> None:
    """Checks that the ODBC driver manager can be loaded.

    Raises:
        Unavailable: ``libodbc.so.2`` is missing or not a library.
    """
    try:
        ctypes.CDLL("libodbc.so.2")
    except OSError as error:
        raise Unavailable(f"no ODBC driver manager: {error}\ninstall `unixodbc`") from None


def find(name: str) -> str:
    """The path of the ODBC driver ``name``, which is a key of this module's table.

    Raises:
        Unavailable: the file does not exist.
    """
    if name in ("msodbc", "mssqlrs"):
        fetch_from_pypi()
    for pattern in _PATTERNS[name]:
        found = sorted(path for path in glob.glob(pattern) if os.path.getsize(path) > 0)
        if found:
            return found[0]
    raise Unavailable(f"no ODBC driver `{name}` at {_PATTERNS[name][0]}")


def fetch_from_pypi() -> None:
    """Downloads Microsoft's two drivers and unpacks them into the checkout's cache.

    It does so once for each list of versions.

    Raises:
        Unavailable: pip could not download the drivers.
    """
    stamp = PYPI / "versions.txt"
    wanted = PYPI_REQUIREMENTS.read_text(encoding="utf-8")
    if stamp.exists() and stamp.read_text(encoding="utf-8") == wanted:
        return
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps"]
    command += ["--upgrade", "--target", str(PYPI), "-r", str(PYPI_REQUIREMENTS)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        last = (done.stderr.strip().splitlines() or ["no message"])[-1]
        raise Unavailable(f"Microsoft's ODBC drivers could not be fetched from PyPI: {last}")
    stamp.write_text(wanted, encoding="utf-8")
