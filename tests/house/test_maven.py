"""tools/maven.py finds the JDKs of the Java tests in the usual directories; for a missing one it
reports the remedy."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def maven(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(ROOT / "tools"))
    import maven

    return maven


def _jdk(home: Path, version: str, compiler: bool = True) -> Path:
    """Creates a folder with the layout of a JDK, or of a JRE if it has no compiler."""
    (home / "bin").mkdir(parents=True)
    for name in ("java", "javac") if compiler else ("java",):
        (home / "bin" / name).write_text("#!/bin/sh\n")
        (home / "bin" / name).chmod(0o755)
    (home / "release").write_text(f'IMPLEMENTOR="nobody"\nJAVA_VERSION="{version}"\nJAVA_VERSION_DATE="2026-01-01"\n')
    return home


def test_the_named_jdk_comes_first_then_the_path_then_the_system_folder(maven: ModuleType, tmp_path: Path) -> None:
    jvms = tmp_path / "jvms"
    _jdk(jvms / "java-17", "17.0.15")
    _jdk(jvms / "java-25", "25.0.3")
    (jvms / "java-25-again").symlink_to(jvms / "java-25")
    _jdk(jvms / "java-26-jre", "26", compiler=False)
    named, path = _jdk(tmp_path / "named", "23.0.1"), _jdk(tmp_path / "path", "24")
    environment = {"JAVA_HOME": str(named), "PATH": str(path / "bin")}
    assert [jdk.full for jdk in maven.found(environment, jvms)] == ["23.0.1", "24", "25.0.3", "17.0.15"]
    assert maven.native(maven.found(environment, jvms)).home == named
    assert maven.pure(maven.found(environment, jvms)).full == "17.0.15"
    # A named JDK that is too old does not hide a newer one.
    environment = {"JAVA_HOME": str(jvms / "java-17"), "PATH": ""}
    assert maven.native(maven.found(environment, jvms)).full == "25.0.3"


def test_a_missing_jdk_is_reported_with_those_found_and_the_remedy(maven: ModuleType, tmp_path: Path) -> None:
    jvms = tmp_path / "jvms"
    _jdk(jvms / "java-21", "21.0.2")
    absent = maven.missing({"PATH": ""}, jvms)
    assert [what.partition(" (")[0] for what, _ in absent] == ["a JDK of 22 or newer", "Maven"]
    assert "JDK 21.0.2" in absent[0][0]
    assert "no JDK" in maven.missing({"PATH": ""}, tmp_path / "nothing")[0][0]
    assert all(remedy for _, remedy in absent)
    (jvms / "maven").write_text("#!/bin/sh\n")
    _jdk(jvms / "java-22", "22")
    (tmp_path / "mvn").write_text("#!/bin/sh\n")
    (tmp_path / "mvn").chmod(0o755)
    assert maven.missing({"PATH": str(tmp_path)}, jvms) == []


@pytest.mark.parametrize(("ci", "code", "word"), [("", 0, "skipped"), ("true", 1, "missing")])
def test_without_maven_the_java_tests_are_skipped_and_in_ci_they_fail(
    ci: str, code: int, word: str, tmp_path: Path
) -> None:
    environment = {"PATH": str(tmp_path), "HOME": str(tmp_path), "CI": ci}
    command = [sys.executable, str(ROOT / "tools" / "maven.py")]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=100)
    assert done.returncode == code
    assert f"{word}: Maven (`mvn`)\n             sudo apt-get install -y maven" in done.stdout
    required = subprocess.run([*command, "--required"], env=environment, capture_output=True, check=False, timeout=100)
    assert required.returncode == 1


def test_tests_that_ran_and_were_skipped_are_counted_with_their_reasons(maven: ModuleType, tmp_path: Path) -> None:
    assert maven.counts(tmp_path) == (0, [])
    (tmp_path / "TEST-a.xml").write_text(
        '<testsuite><testcase classname="io.github.onecopy.ATest" name="runs"/>'
        '<testcase classname="io.github.onecopy.ATest" name="waits">'
        '<skipped message="no library"/></testcase></testsuite>'
    )
    (tmp_path / "TEST-b.xml").write_text('<testsuite><testcase classname="B" name="runs"/></testsuite>')
    assert maven.counts(tmp_path) == (2, ["ATest.waits: no library"])


@pytest.mark.parametrize(
    ("fails", "skips", "ci", "code"),
    [("0", "", "", 0), ("1", "", "", 1), ("0", "<skipped/>", "", 0), ("0", "<skipped/>", "true", 1)],
)
def test_maven_runs_with_the_jdk_that_was_found_and_its_failure_is_passed_on(
    fails: str, skips: str, ci: str, code: int, tmp_path: Path
) -> None:
    home = _jdk(tmp_path / "jdk", "99.1")
    case = (
        f'<testsuite><testcase classname="A" name="a"/><testcase classname="A" name="b">{skips}</testcase></testsuite>'
    )
    maven = tmp_path / "bin" / "mvn"
    maven.parent.mkdir()
    # The fake Maven writes a report into the build folder, as Surefire does, and prints its JDK.
    maven.write_text(
        "#!/bin/sh\n"
        f'echo "$JAVA_HOME" >> "{tmp_path}/homes"\n'
        'for word; do case "$word" in -DbuildDirectory=*) place="${word#*=}" ;; esac; done\n'
        'mkdir -p "$place/onecopy-tests/surefire-reports"\n'
        f"echo '{case}' > \"$place/onecopy-tests/surefire-reports/TEST-a.xml\"\n"
        f"echo printed by maven\nexit {fails}\n"
    )
    maven.chmod(0o755)
    # With a separate checkout, so that this one's build is kept.
    checkout = tmp_path / "checkout"
    (checkout / "tools").mkdir(parents=True)
    (checkout / "tests" / "support").mkdir(parents=True)
    for name in ("house.py", "maven.py", "rust.py"):
        (checkout / "tools" / name).write_bytes((ROOT / "tools" / name).read_bytes())
    (checkout / "Cargo.toml").write_bytes((ROOT / "Cargo.toml").read_bytes())
    environment = os.environ | {"PATH": f"{maven.parent}:{os.environ['PATH']}", "JAVA_HOME": str(home), "CI": ci}
    command = [sys.executable, str(checkout / "tools" / "maven.py")]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=100)
    assert done.returncode == code, done.stdout
    assert (tmp_path / "homes").read_text().splitlines()[0] == str(home)
    assert ("printed by maven" in done.stdout) is (fails == "1")
    if fails == "0":
        assert f"{1 if skips else 2} tests passed with JDK 99.1, {1 if skips else 0} skipped" in done.stdout
