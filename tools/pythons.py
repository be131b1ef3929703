"""Build and test onecopy on other CPythons: those on the PATH, and pyenv's.

python3 tools/pythons.py [3.12 …]     exits non-zero where one fails

Versions that are named are downloaded from Debian if they are not here (tools/debian.py), and one that cannot be had is
a failure. The newest gets all fast tests, the others those of what depends on the version most.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import debian
import dev
import wheel
from house import CACHE, ROOT, in_ci, main, run, say, step

_WANTED = ("3.10", "3.11", "3.12", "3.13", "3.14", "3.15")
#: Not dist/: these wheels are only tested.
_WHEELS = ROOT / "target" / "wheels"
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


#: Tests of code that reads and makes CPython's objects in place: it depends on the version most.
_IN_PLACE = tuple(f"tests/{folder}" for folder in ("bson", "json", "text"))
#: The fast tests in two parts of about one length, so that those of the newest version take both processors.
_FIRST = tuple(f"tests/{folder}" for folder in ("bson", "copies", "json"))
#: These look at the checkout, or at a program without Python, not at the interpreter.
_OTHERS = tuple(f"tests/{folder}" for folder in ("gateway", "house", "layers", "support", "wheel"))
_PARTS = {
    "subset": _IN_PLACE,
    "first": _FIRST,
    "second": (*(f"--ignore={folder}" for folder in (*_FIRST, *_OTHERS)), "tests"),
}


def _passes(version: str, python: str, part: str) -> bool:
    """Whether a part of the fast tests passes; what they print comes in one piece, since two parts are tested at once."""
    # That planted faults turn the witness red is shown once: each showing is another release build.
    tests = [python, "-m", "pytest", "-q", "-m", "not slow and not odbc", "-k", "not planted", *_PARTS[part]]
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
    named = tuple(word for word in sys.argv[1:] if re.fullmatch(r"3\.\d+", word) and word != own)
    there = {version: path for version, path in found(named or _WANTED).items() if version != own}
    for version in named:
        if version not in there and (path := debian.interpreter(version)):
            there[version] = path
    # The newest is last: its two parts then have both processors.
    there = dict(sorted(there.items(), key=lambda entry: int(entry[0].split(".")[1])))
    say(f".venv is CPython {own}; besides: {', '.join(there) or 'none found'}")
    if missing := sorted(set(named) - set(there)):
        say(f"missing: CPython {', '.join(missing)}\n             pyenv install {' '.join(missing)}")
        return 1
    if not there and in_ci():
        say("CI=true: another CPython was due")
        return 1
    newest = list(there)[-1:]
    # The next wheel is built while the tests of those before it run: these wait more than they work.
    with ThreadPoolExecutor(2) as tester:
        passing = {}
        for version, interpreter in there.items():
            with step(f"wheel and environment of CPython {version}"):
                # Without link-time optimisation, which takes most of the time of a release build.
                python = _install(version, interpreter, wheel.build(interpreter, _WHEELS, profile="quick"))
            parts = ("first", "second") if [version] == newest else ("subset",)
            passing[version] = [tester.submit(_passes, version, python, part) for part in parts]
        failed = [version for version, parts in passing.items() if not all(part.result() for part in parts)]
    if failed:
        say(f"failed on CPython {', '.join(failed)}")
    return 1 if failed else 0


if __name__ == "__main__":
    main(_main)
