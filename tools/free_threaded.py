"""Builds free-threaded CPythons ("3.14t") from source, in .cache.

They are built because no distribution that the tests can use has packages of them. The sources are
Debian's copies of CPython's releases. A build needs a C compiler and some ten minutes of processor
time. If development files are missing, the import at the end fails and names the module.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import tarfile
import tempfile
import urllib.request
from pathlib import Path
from typing import NamedTuple

from house import CACHE, give_up, run, step

_POOL = "http://deb.debian.org/debian/pool/main/p"


class _Source(NamedTuple):
    """The source archive of a release: its version in Debian's file name, and its digest."""

    version: str
    sha256: str


#: By version, as the name of the interpreter says it.
_SOURCES = {
    "3.14t": _Source("3.14.7", "3b48dac8fb59f62eaa67ac83c1eb12bda1b7a08406dd286e252c11a66be27f81"),
    "3.15t": _Source("3.15.0~rc2", "8d93af5eaaaea5adfd41bd786a7ba3f03f2ad1ab57c6a65e0b963deab91d5ad7"),
}
VERSIONS = tuple(_SOURCES)


def _download(version: str, folder: Path) -> Path:
    """Downloads and unpacks the source; returns its directory."""
    source = _SOURCES[version]
    name = f"python{version.removesuffix('t')}"
    with urllib.request.urlopen(f"{_POOL}/{name}/{name}_{source.version}.orig.tar.xz", timeout=60) as answer:
        content = answer.read()
    if hashlib.sha256(content).hexdigest() != source.sha256:
        give_up(f"the source of CPython {source.version} has another digest than tools/free_threaded.py states")
    archive = folder / "source.tar.xz"
    archive.write_bytes(content)
    with tarfile.open(archive) as files:
        files.extractall(folder, filter="data")
    (directory,) = (path for path in folder.iterdir() if path.is_dir())
    return directory


def interpreter(version: str) -> str | None:
    """The path of a CPython of ``VERSIONS``, which is built if necessary; None without a C
    compiler."""
    if version not in _SOURCES or shutil.which("cc") is None or shutil.which("make") is None:
        return None
    root = CACHE / "free_threaded" / version
    path = root / "bin" / f"python{version}"
    # Its prefix is absolute: a checkout that was moved builds it again.
    done = root / ".complete"
    expected = f"{root} {_SOURCES[version].sha256}"
    if not done.exists() or done.read_text(encoding="utf-8") != expected:
        with step(f"CPython {version} from source"), tempfile.TemporaryDirectory() as folder:
            shutil.rmtree(root, ignore_errors=True)
            directory = _download(version, Path(folder))
            configure = ["./configure", "-q", "--disable-gil", f"--prefix={root}", "--with-ensurepip=install"]
            for command in (configure, ["make", "-s", f"-j{os.cpu_count()}"], ["make", "-s", "install"]):
                run(command, quiet=True, cwd=directory)
            subprocess.run([str(path), "-c", "import ssl, sqlite3, ctypes, lzma, bz2, zlib"], check=True)
            done.write_text(expected, encoding="utf-8")
    return str(path)
