"""Builds and tests onecopy on other CPythons: those on the PATH, and pyenv's.

python3 tools/pythons.py [--whole] [3.12 …]  exits non-zero if one fails

Named versions that are not installed are downloaded from Debian (tools/debian.py), or built from
source if they are free-threaded (3.14t, tools/free_threaded.py); one that is not available is a
failure. The newest version (with --whole, each version) runs all fast tests, the others run those
that depend most on the version.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import free_threaded

import debian
import dev
import wheel
from house import CACHE, ROOT, TEST_GROUPS, in_ci, main, run, say, step, wait_or_abort

_WANTED = ("3.10", "3.11", "3.12", "3.13", "3.14", "3.15")
#: Not dist/: these wheels are only tested.
_WHEELS = ROOT / "target" / "wheels"
#: Packages that the fast tests import; the linters are not run again.
_REQUIREMENTS = ROOT / "requirements" / "test.txt"


def _version(interpreter: str) -> str:
    code = (
        "import platform, sys, sysconfig; t = 't' * bool(sysconfig.get_config_var('Py_GIL_DISABLED'));"
        "print(platform.python_implementation(), '%d.%d%s' % (*sys.version_info[:2], t))"
    )
    done = subprocess.run([interpreter, "-c", code], capture_output=True, text=True, check=False)
    return done.stdout.strip()


def found(wanted: tuple[str, ...]) -> dict[str, str]:
    """The CPythons of this machine by version.

    pyenv's are searched before those on the PATH, which may contain pyenv's shims; these fail.
    """
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


#: Requirements that have no release for free-threaded interpreters, with their replacement.
_NOT_FREE_THREADED = {"psycopg[binary]": "psycopg", "orjson": None, "mssql-python": None}
#: The tests that compare onecopy with one of these.
_THEIR_TESTS = tuple(
    f"--ignore=tests/compat/test_{name}.py"
    for name in ("mssql_python", "orjson", "orjson_classes", "orjson_numpy", "orjson_zones")
)


def _requirements(version: str) -> Path:
    """The path of the requirements file for a version of CPython."""
    if not version.endswith("t"):
        return _REQUIREMENTS
    lines = []
    for line in _REQUIREMENTS.read_text(encoding="utf-8").splitlines():
        name, pinned, rest = line.partition("==")
        replacement = _NOT_FREE_THREADED.get(name, name)
        lines += [replacement + pinned + rest] if replacement is not None else []
    file = CACHE / f"requirements-{version}.txt"
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return file


def _environment(version: str, interpreter: str) -> Path:
    """Creates an environment with the requirements of the tests; returns its directory."""
    directory = CACHE / f"venv-{version}"
    dev.venv(directory, interpreter, _requirements(version))
    return directory


def _install(directory: Path, wheel_file: str) -> str:
    """Installs the wheel in an environment; returns the environment's interpreter."""
    python = str(directory / "bin" / "python")
    pip = [python, "-m", "pip", "install", "-q", "--disable-pip-version-check"]
    run([*pip, "--force-reinstall", "--no-deps", wheel_file])
    return python


#: Tests of code that reads and creates CPython's objects in memory, which depends on the version
#: most.
_IN_PLACE = tuple(f"tests/{folder}" for folder in ("bson", "json", "text"))
#: Tests of the checkout, or of a program without Python, not of the interpreter.
_OTHERS = tuple(f"tests/{folder}" for folder in ("gateway", "house", "layers", "support", "wheel"))
_GROUPS = {name: tuple(file for file in files if file not in _OTHERS) for name, files in TEST_GROUPS.items()}
_GROUPS["rest"] = (
    *(f"--ignore={name}" for name in (*_OTHERS, *(file for files in _GROUPS.values() for file in files))),
    "tests",
)
_SUBSET = "subset"
#: Seconds for one part.
_LIMIT_S = 1200
_PARTS = {_SUBSET: _IN_PLACE, **_GROUPS}


def _passes(version: str, python: str, part: str) -> bool:
    """Runs a part of the fast tests; returns true if it passes.

    Its output is printed at its end in one piece, since parts run in parallel.
    """
    # Tests that build the extension run once.
    tests = [python, "-m", "pytest", "-q", "-m", "not slow and not odbc and not builds", *_PARTS[part]]
    tests += _THEIR_TESTS if version.endswith("t") else ()
    # A separate set of databases, since the tests of all parts use the same tables.
    environment = os.environ | {"ONECOPY_TEST_SERVERS": str(CACHE / f"servers-{version}-{part}")}
    # Properties run with the full number of examples on the first interpreter; here fewer suffice.
    environment.setdefault("ONECOPY_EXAMPLES", "1/5")
    environment["PYTHONFAULTHANDLER"] = "1"
    if version.endswith("t"):
        # Otherwise the import of the module, which needs the GIL, warns; warnings are errors.
        environment["PYTHON_GIL"] = "1"
    # Not a pipe, which a server that is left running would keep open.
    with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as output:
        code, cpu_s = wait_or_abort(
            subprocess.Popen(tests, cwd=ROOT, env=environment, stdout=output, stderr=subprocess.STDOUT, text=True),
            _LIMIT_S,
        )
        output.seek(0)
        say(f"-- CPython {version}, {part} part ({cpu_s:.0f} s of processor time)\n{output.read().rstrip()}")
    return code == 0


def _main() -> int:
    own = _version(str(dev.build())).removeprefix("CPython ")
    named = tuple(word for word in sys.argv[1:] if re.fullmatch(r"3\.\d+t?", word) and word != own)
    there = {version: path for version, path in found(named or _WANTED).items() if version != own}
    for version in named:
        if version not in there and (path := debian.interpreter(version) or free_threaded.interpreter(version)):
            there[version] = path
    # The newest is last: its parts then have both processors.
    there = dict(sorted(there.items(), key=lambda entry: (int(entry[0].rstrip("t").split(".")[1]), entry[0])))
    say(f".venv is CPython {own}; besides: {', '.join(there) or 'none found'}")
    if missing := sorted(set(named) - set(there)):
        say(f"missing: CPython {', '.join(missing)}\n             pyenv install {' '.join(missing)}")
        return 1
    if not there and in_ci():
        say("CI=true: another CPython was due")
        return 1
    whole = list(there) if "--whole" in sys.argv else list(there)[-1:]
    # The environments are downloaded, and the next wheel is built, while the tests of the previous
    # one run.
    with ThreadPoolExecutor(1) as downloader, ThreadPoolExecutor(len(_GROUPS)) as tester:
        environments = {pair[0]: downloader.submit(_environment, *pair) for pair in there.items()}
        passing = {}
        for version, interpreter in there.items():
            with step(f"wheel of CPython {version}"):
                # Without link-time optimisation, which takes most of the time of a release build.
                file = wheel.build(interpreter, _WHEELS, profile="quick")
            python = _install(environments[version].result(), file)
            parts = tuple(_GROUPS) if version in whole else (_SUBSET,)
            passing[version] = [tester.submit(_passes, version, python, part) for part in parts]
        failed = [version for version, parts in passing.items() if not all(part.result() for part in parts)]
    if failed:
        say(f"failed on CPython {', '.join(failed)}")
    return 1 if failed else 0


if __name__ == "__main__":
    main(_main)
