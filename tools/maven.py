"""`make java`: builds and tests the Java artifact with Maven; if there is also a JDK below 22, runs
the tests once more with that JDK, in pure Java.

    python3 tools/maven.py [--required] [MAVEN ARGUMENTS …]

The native library requires a JDK of 22 or newer, which is searched for in JAVA_HOME, on the PATH
and in /usr/lib/jvm. Without such a JDK, or without Maven, nothing is run and the reason is printed.
The exit code is then 1 with `--required` or under `CI=true`.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree

import rust
from house import PROFILE, ROOT, in_ci, main, say

#: The first version with the final foreign function interface.
NATIVE = 22
#: The first version that the artifact supports.
OLDEST = 17
_JVMS = Path("/usr/lib/jvm")


class Jdk(NamedTuple):
    """A JDK: its path, its major version, and its full version."""

    home: Path
    version: int
    full: str


def _places(environment: Mapping[str, str], jvms: Path) -> Iterator[Path]:
    """Folders that may contain a JDK, in the order of preference.

    They are named by the user, on the PATH, or installed by distributions.
    """
    if environment.get("JAVA_HOME"):
        yield Path(environment["JAVA_HOME"])
    compiler = shutil.which("javac", path=environment.get("PATH", ""))
    if compiler is not None:
        yield Path(compiler).resolve().parent.parent
    if jvms.is_dir():
        yield from sorted(jvms.iterdir(), reverse=True)


def _jdk(home: Path) -> Jdk | None:
    """The JDK in a folder, as described by its file `release`; None if the folder has no compiler
    (a JRE)."""
    release = home / "release"
    if not (home / "bin" / "javac").is_file() or not (home / "bin" / "java").is_file() or not release.is_file():
        return None
    found = re.search(r'^JAVA_VERSION="((\d+)[^"]*)"', release.read_text(encoding="utf-8", errors="replace"), re.M)
    return Jdk(home.resolve(), int(found[2]), found[1]) if found else None


def found(environment: Mapping[str, str] = os.environ, jvms: Path = _JVMS) -> list[Jdk]:
    """The JDKs of this machine in the order of preference, without duplicates."""
    jdks: dict[Path, Jdk] = {}
    for place in _places(environment, jvms):
        jdk = _jdk(place)
        if jdk is not None:
            jdks.setdefault(jdk.home, jdk)
    return list(jdks.values())


def native(jdks: list[Jdk]) -> Jdk | None:
    """The first JDK that has the foreign function interface, which the native library needs."""
    return next((jdk for jdk in jdks if jdk.version >= NATIVE), None)


def pure(jdks: list[Jdk]) -> Jdk | None:
    """The oldest supported JDK that lacks the foreign function interface."""
    older = [jdk for jdk in jdks if OLDEST <= jdk.version < NATIVE]
    return min(older, key=lambda jdk: jdk.version, default=None)


def missing(environment: Mapping[str, str] = os.environ, jvms: Path = _JVMS) -> list[tuple[str, str]]:
    """The missing requirements of the Java tests, each with its remedy."""
    absent = []
    jdks = found(environment, jvms)
    if native(jdks) is None:
        seen = ", ".join(f"JDK {jdk.full}" for jdk in jdks) or "no JDK"
        what = f"a JDK of {NATIVE} or newer (JAVA_HOME, PATH and {jvms} have {seen})"
        absent.append((what, _install_jdk()))
    if shutil.which("mvn", path=environment.get("PATH", "")) is None:
        absent.append(("Maven (`mvn`)", "sudo apt-get install -y maven"))
    return absent


def _install_jdk() -> str:
    """The remedy for a missing JDK: the distribution's package if it is new enough, otherwise a
    download."""
    if shutil.which("apt-cache") is not None:
        listed = subprocess.run(
            ["apt-cache", "search", "--names-only", r"^openjdk-[0-9]+-jdk-headless$"],
            capture_output=True,
            text=True,
            check=False,
        ).stdout
        versions = [int(number) for number in re.findall(r"^openjdk-(\d+)-", listed, re.M)]
        if versions and max(versions) >= NATIVE:
            return f"sudo apt-get install -y openjdk-{max(versions)}-jdk-headless"
    return "https://adoptium.net has one for every system; JAVA_HOME=the folder it is unpacked into"


class Counts(NamedTuple):
    """The number of tests that ran, and the reasons for skipped ones."""

    ran: int
    skipped: list[str]


def counts(reports: Path) -> Counts:
    """The results of the tests in Surefire's reports."""
    ran, skipped = 0, list[str]()
    for path in sorted(reports.glob("TEST-*.xml")):
        for case in ElementTree.parse(path).getroot().iter("testcase"):
            left_out = case.find("skipped")
            if left_out is None:
                ran += 1
            else:
                name = f"{case.get('classname', '').rpartition('.')[2]}.{case.get('name')}"
                skipped.append(f"{name}: {left_out.get('message') or 'no reason'}")
    return Counts(ran, skipped)


def _verify(jdk: Jdk, directory: Path, arguments: list[str]) -> bool:
    """Builds and tests with one JDK in a directory; returns true if it succeeds.

    Maven's output is shown if it fails.
    """
    reports = directory / "onecopy-tests" / "surefire-reports"
    shutil.rmtree(reports, ignore_errors=True)
    environment = rust.environment() | {"JAVA_HOME": str(jdk.home)}
    command = ["mvn", "-f", "java", "--batch-mode", "--no-transfer-progress", "verify"]
    places = [f"-DbuildDirectory={directory}", f"-Donecopy.python={sys.executable}"]
    begun = time.monotonic()
    done = subprocess.run(
        [*command, *places, *arguments],
        cwd=ROOT,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        check=False,
    )
    seconds = time.monotonic() - begun
    if done.returncode != 0:
        say(done.stdout)
        say(f"FAILED with JDK {jdk.full} ({seconds:.0f} s)")
        return False
    result = counts(reports)
    say(f"{result.ran} tests passed with JDK {jdk.full}, {len(result.skipped)} skipped ({seconds:.0f} s)")
    for reason in result.skipped:
        say(f"   skipped: {reason}")
    if result.ran == 0:
        say("no test was run: that is no pass")
    return result.ran > 0 and not (in_ci() and result.skipped)


def _main() -> int:
    arguments = sys.argv[1:]
    required = "--required" in arguments or in_ci()
    arguments = [argument for argument in arguments if argument != "--required"]
    absent = missing()
    if absent:
        for what, remedy in absent:
            say(f"{'missing' if required else 'skipped'}: {what}\n             {remedy}")
        return 1 if required else 0
    jdks = found()
    newest, older = native(jdks), pure(jdks)
    assert newest is not None, "`missing` has found one"
    good = _verify(newest, ROOT / "target" / "java", [f"-Donecopy.profile={PROFILE}", *arguments])
    if older is not None:
        # The library of the first run is not built again.
        library = f"-Donecopy.nativeFile={ROOT / 'target' / PROFILE / 'libonecopy.so'}"
        good &= _verify(older, ROOT / "target" / f"java{older.version}", [library, *arguments])
    else:
        say(f"without a JDK from {OLDEST} to {NATIVE - 1} the tests are not run in pure Java")
    return 0 if good else 1


if __name__ == "__main__":
    main(_main)
