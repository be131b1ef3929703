"""The wheel is self-contained: the README's first example runs in an environment that has only the
wheel."""

from __future__ import annotations

import re
import subprocess
import sys
import zipfile
from email.parser import Parser
from pathlib import Path

import pytest

from tests.docs.test_snippets import blocks

ROOT = Path(__file__).resolve().parents[2]

pytestmark = [pytest.mark.builds, pytest.mark.timeout(2400)]


@pytest.fixture(scope="module")
def wheel() -> Path:
    """The path of the wheel for this interpreter, built as by `make wheel`."""
    done = subprocess.run([sys.executable, "tools/wheel.py"], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    found = re.findall(r"^ +(dist/\S+\.whl)$", done.stdout, re.M)
    assert len(found) == 1, done.stdout
    return ROOT / str(found[0])


@pytest.fixture(scope="module")
def environment(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The `bin` folder of an environment in which only the wheel is installed, not even pip."""
    directory = tmp_path_factory.mktemp("empty")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(directory)], check=True)
    pip = [sys.executable, "-m", "pip", "--python", str(directory / "bin" / "python"), "install", "-q", "--no-index"]
    subprocess.run([*pip, str(wheel)], check=True)
    return directory / "bin"


def test_the_wheel_is_for_one_cpython_and_manylinux(wheel: Path) -> None:
    tag = f"cp3{sys.version_info[1]}"
    assert re.fullmatch(rf"onecopy-[\d.]+-{tag}-{tag}t?-manylinux_\d+_\d+_\w+\.whl", wheel.name)


def test_the_wheel_needs_no_package_and_contains_types_and_licences(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        metadata = Parser().parsestr(archive.read(next(n for n in names if n.endswith("/METADATA"))).decode())
    assert metadata.get_all("Requires-Dist") is None
    assert {"onecopy/py.typed", "onecopy/_core.pyi", "onecopy/__init__.py"} <= set(names)
    assert {Path(name).name for name in names if "/licenses/" in name} == {"LICENSE-MIT", "LICENSE-APACHE"}


def test_the_extension_needs_only_libraries_of_the_system(wheel: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        libraries = [name for name in archive.namelist() if ".so" in name]
        assert len(libraries) == 1, libraries
        path = archive.extract(libraries[0], tmp_path)
    shown = subprocess.run(["readelf", "-d", path], capture_output=True, text=True, check=True).stdout
    needed = set(re.findall(r"\(NEEDED\).*\[(.+)\]", shown))
    assert needed <= {
        *("libc.so.6", "libm.so.6", "libgcc_s.so.1", "libstdc++.so.6", "libpthread.so.0", "libdl.so.2"),
        *("ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1"),
    }


def test_the_readmes_first_example_runs_from_the_wheel(environment: Path, tmp_path: Path) -> None:
    first = next(
        block for block in blocks((ROOT / "README.md").read_text(encoding="utf-8")) if block.language == "python"
    )
    done = subprocess.run(
        [str(environment / "python"), "-c", first.text], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    if first.prints is not None:
        assert done.stdout == first.prints


def test_the_wheel_installs_the_command(environment: Path, tmp_path: Path) -> None:
    done = subprocess.run(
        [str(environment / "onecopy"), "query", "sqlite::memory:", "select 1 as one", "--format", "ndjson"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, '{"one":1}\n'), done.stderr
