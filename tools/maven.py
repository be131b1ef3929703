"""`make java`: the Java artifact, built and tested by Maven; where there is a JDK below 22 as well, its tests once more in pure Java.

    python3 tools/maven.py [--required] [MAVEN ARGUMENTS …]

The native path wants a JDK of 22 or newer, found by JAVA_HOME, on the PATH or in /usr/lib/jvm. Without one, or without Maven, nothing
is run and the reason is told: exit code 1 where it is required, as under `CI=true`.
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
from house import ROOT, in_ci, main, say

#: The first with the final interface to native code.
NATIVE = 22
#: The first that the artifact serves.
OLDEST = 17
_JVMS = Path("/usr/lib/jvm")


class Jdk(NamedTuple):
    """A JDK: its place, its first number, and all of them."""

    home: Path
    version: int
    full: str


def _places(environment: Mapping[str, str], jvms: Path) -> Iterator[Path]:
    """Where a JDK may be, best first: what the person named, what is on the PATH, what distributions install."""
    if environment.get("JAVA_HOME"):
        yield Path(environment["JAVA_HOME"])
    compiler = shutil.which("javac", path=environment.get("PATH", ""))
    if compiler is not None:
        yield Path(compiler).resolve().parent.parent
    if jvms.is_dir():
        yield from sorted(jvms.iterdir(), reverse=True)


def _jdk(home: Path) -> Jdk | None:
    """What a folder's `release` says it is; None where it is no JDK (a JRE has no compiler)."""
    release = home / "release"
    if not (home / "bin" / "javac").is_file() or not (home / "bin" / "java").is_file() or not release.is_file():
        return None
    told = re.search(r'^JAVA_VERSION="((\d+)[^"]*)"', release.read_text(encoding="utf-8", errors="replace"), re.M)
    return Jdk(home.resolve(), int(told[2]), told[1]) if told else None


def found(environment: Mapping[str, str] = os.environ, jvms: Path = _JVMS) -> list[Jdk]:
    """The JDKs of this machine, best first, each once."""
    jdks: dict[Path, Jdk] = {}
    for place in _places(environment, jvms):
        jdk = _jdk(place)
        if jdk is not None:
            jdks.setdefault(jdk.home, jdk)
    return list(jdks.values())


def native(jdks: list[Jdk]) -> Jdk | None:
    """The first that has the interface to native code."""
    return next((jdk for jdk in jdks if jdk.version >= NATIVE), None)


def pure(jdks: list[Jdk]) -> Jdk | None:
    """The oldest that the artifact serves without."""
    older = [jdk for jdk in jdks if OLDEST <= jdk.version < NATIVE]
    return min(older, key=lambda jdk: jdk.version, default=None)


def missing(environment: Mapping[str, str] = os.environ, jvms: Path = _JVMS) -> list[tuple[str, str]]:
    """What the Java tests lack here, each with its remedy."""
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
    """The package of the distribution that is new enough, else where everybody gets one."""
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
    """Tests that ran, and the reasons of those that were skipped."""

    ran: int
    skipped: list[str]


def counts(reports: Path) -> Counts:
    """What Surefire's reports say."""
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
    """Build and test with one JDK, in a directory of its own; what Maven says is shown where it fails."""
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
    told = counts(reports)
    say(f"{told.ran} tests passed with JDK {jdk.full}, {len(told.skipped)} skipped ({seconds:.0f} s)")
    for reason in told.skipped:
        say(f"   skipped: {reason}")
    if told.ran == 0:
        say("no test was run: that is no pass")
    return told.ran > 0 and not (in_ci() and told.skipped)


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
    good = _verify(newest, ROOT / "target" / "java", arguments)
    if older is not None:
        # The library of the first run: no second build of it.
        library = f"-Donecopy.library={ROOT / 'target' / 'release' / 'libonecopy.so'}"
        good &= _verify(older, ROOT / "target" / f"java{older.version}", [library, *arguments])
    else:
        say(f"without a JDK from {OLDEST} to {NATIVE - 1} the tests are not run in pure Java")
    return 0 if good else 1


if __name__ == "__main__":
    main(_main)
