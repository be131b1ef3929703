"""Build and test onecopy on the other CPythons of this machine: those on the PATH, and pyenv's.

python3 tools/pythons.py [3.12 …]     the fast tests of each; exits non-zero where one fails
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import dev
import wheel
from house import CACHE, ROOT, in_ci, main, run, say, step

_WANTED = ("3.10", "3.11", "3.12", "3.13", "3.14")
#: What the fast tests import; the linters are not run again.
_REQUIREMENTS = ROOT / "requirements" / "test.txt"


def _version(interpreter: str) -> str:
    code = "import platform, sys; print(platform.python_implementation(), '%d.%d' % sys.version_info[:2])"
    done = subprocess.run([interpreter, "-c", code], capture_output=True, text=True, check=False)
    return done.stdout.strip()


def found(wanted: tuple[str, ...]) -> dict[str, str]:
    """CPythons by version: pyenv's first (the PATH may hold its shims, which refuse), then the PATH's."""
    result: dict[str, str] = {}
    pyenv = Path(os.environ.get("PYENV_ROOT", "") or Path.home() / ".pyenv") / "versions"
    for version in wanted:
        candidates = sorted(str(path) for path in pyenv.glob(f"{version}.*/bin/python{version}"))
        on_path = shutil.which(f"python{version}")
        for candidate in [*reversed(candidates), *([on_path] if on_path else [])]:
            if _version(candidate) == f"CPython {version}":
                result[version] = candidate
                break
    return result


def _install(version: str, interpreter: str, wheel_file: str) -> str:
    """An environment with the wheel in it; its interpreter."""
    directory = CACHE / f"venv-{version}"
    dev.venv(directory, interpreter, _REQUIREMENTS)
    python = str(directory / "bin" / "python")
    pip = [python, "-m", "pip", "install", "-q", "--disable-pip-version-check"]
    run([*pip, "--force-reinstall", "--no-deps", wheel_file])
    return python


#: The tests in two parts of about one length, so that those of the last version take both processors.
_FIRST = tuple(f"tests/{room}" for room in ("bson", "copies", "json"))
#: These look at the checkout, or at a program without Python, not at the interpreter.
_OTHERS = tuple(f"tests/{room}" for room in ("gateway", "house", "layers", "support", "wheel"))


def _passes(version: str, python: str, part: str) -> bool:
    """Whether a part of the fast tests passes; what they print comes in one piece, since two parts are tested at once."""
    # That planted faults turn the witness red is shown once: each showing is another release build.
    tests = [python, "-m", "pytest", "-q", "-m", "not slow and not odbc", "-k", "not planted"]
    if part == "first":
        tests += _FIRST
    else:
        tests += [*(f"--ignore={room}" for room in (*_FIRST, *_OTHERS)), "tests"]
    # Databases of its own: the tests of two parts use the same tables.
    environment = os.environ | {"ONECOPY_TEST_SERVERS": str(CACHE / f"servers-{version}-{part}")}
    # What a property is about is looked at with the first interpreter; here, that the others are spoken to rightly.
    environment.setdefault("ONECOPY_EXAMPLES", "1/5")
    done = subprocess.run(
        tests, cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
    )
    say(f"-- CPython {version}, {part} part\n{done.stdout.rstrip()}")
    return done.returncode == 0


def _main() -> int:
    own = _version(str(dev.build())).removeprefix("CPython ")
    wanted = tuple(word for word in sys.argv[1:] if re.fullmatch(r"3\.\d+", word)) or _WANTED
    there = {version: path for version, path in found(wanted).items() if version != own}
    say(f".venv is CPython {own}; beside it: {', '.join(there) or 'none found'}")
    if not there and in_ci():
        say("CI=true: another CPython was due")
        return 1
    # The next wheel is built while the tests of those before it run: these wait more than they work.
    with ThreadPoolExecutor(2) as tester:
        passing = {}
        for version, interpreter in there.items():
            with step(f"wheel and environment of CPython {version}"):
                python = _install(version, interpreter, wheel.build(interpreter))
            passing[version] = [tester.submit(_passes, version, python, part) for part in ("first", "second")]
        failed = [version for version, parts in passing.items() if not all(part.result() for part in parts)]
    if failed:
        say(f"failed on CPython {', '.join(failed)}")
    return 1 if failed else 0


if __name__ == "__main__":
    main(_main)
