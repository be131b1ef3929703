"""`make check`: runs all linters, even if one fails; the exit code is 1 if any of them failed."""

from __future__ import annotations

import os
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor

import dev
import rust
from house import ROOT, in_ci, main, say

_PYTHON_FILES = ["python", "tests", "tools", "benches", "fuzz", "examples"]


def _run(name: str, command: list[str], environment: dict[str, str]) -> bool:
    """Runs one linter; returns true if it succeeds. Its output is shown only if it fails."""
    begun = time.monotonic()
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    ok = done.returncode == 0
    lines = [f"{'ok    ' if ok else 'FAILED'} {name} ({time.monotonic() - begun:.1f} s)"]
    say("\n".join(lines if ok else [*lines, done.stdout + done.stderr]))
    return ok


def _main() -> int:
    python = str(dev.build())
    tools = os.path.dirname(python)
    environment = rust.environment(("clippy", "rustfmt")) | {"PYO3_PYTHON": python}
    files = [name for name in _PYTHON_FILES if (ROOT / name).exists()]
    # Finds fuzz targets that no longer compile, without the compiler that fuzzing needs. It reuses
    # clippy's checks of dependencies, and libFuzzer, which is not linked, is not built.
    fuzzing = ["env", "CUSTOM_LIBFUZZER_PATH=/libfuzzer.a", "cargo", "check", "-q", "--locked"]
    fuzzing += ["--target-dir", "target"]
    clippy = ["cargo", "clippy", "--workspace", "--all-targets", "--locked", "-q", "--", "-D", "warnings"]
    of_cargo = {
        "rustfmt": ["cargo", "fmt", "--all", "--check"],
        "clippy": clippy,
        "fuzz targets": [*fuzzing, "--manifest-path", "fuzz/Cargo.toml", "--features", "python"],
        "generated files: Cargo.lock": ["cargo", "metadata", "--locked", "--format-version", "1"],
    }
    stubtest = [python, "-m", "mypy.stubtest", "onecopy", "--concise", "--ignore-unused-allowlist"]
    stubtest += ["--allowlist", "tools/stubtest-allowlist.txt"]
    others = {
        "ruff": [f"{tools}/ruff", "check", *files],
        "ruff format": [f"{tools}/ruff", "format", "--check", *files],
        "mypy": [f"{tools}/mypy"],
        "stubtest": [*stubtest, "--mypy-config-file", "pyproject.toml"],
    }
    if not in_ci():
        # `make test`, the next step in CI, runs these as well.
        header = ["cargo", "test", "-q", "--locked", "-p", "onecopy-capi", "--test", "header"]
        of_cargo["generated files: onecopy.h"] = header
        others["layers"] = [python, "-m", "pytest", "-q", "tests/layers"]
        house = [f"tests/house/test_{of}.py" for of in ("files", "licences", "words")]
        others["house"] = [python, "-m", "pytest", "-q", *house]

    def lane(checks: dict[str, list[str]]) -> list[str]:
        return [name for name, command in checks.items() if not _run(name, command, environment)]

    # Cargo's checks wait for each other's locks; meanwhile Python's linters use the processor.
    with ThreadPoolExecutor(2) as lanes:
        failed = [name for names in lanes.map(lane, (of_cargo, others)) for name in names]
    if failed:
        say(f"\nfailed: {', '.join(failed)}")
    return 1 if failed else 0


if __name__ == "__main__":
    main(_main)
