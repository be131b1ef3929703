"""`make check`: every linter, all of them even when one complains; exit code 1 if any did."""

from __future__ import annotations

import os
import subprocess
import sys
import time

import dev
import rust
from house import ROOT, main, say

_PYTHON_FILES = ["python", "tests", "tools", "benches", "fuzz", "examples"]


def _main() -> int:
    python = str(dev.build())
    tools = os.path.dirname(python)
    environment = rust.environment(("clippy", "rustfmt")) | {"PYO3_PYTHON": python}
    files = [name for name in _PYTHON_FILES if (ROOT / name).exists()]
    # Built as a fuzzer builds them, but for what only its own compiler knows: a target that no longer compiles is found here.
    fuzzing = [
        "env",
        "RUSTFLAGS=--cfg fuzzing",
        "cargo",
        "check",
        "-q",
        "--locked",
        "--target-dir",
        "target/fuzz-check",
    ]
    checks = {
        "rustfmt": ["cargo", "fmt", "--all", "--check"],
        "clippy": ["cargo", "clippy", "--workspace", "--all-targets", "--locked", "-q", "--", "-D", "warnings"],
        "fuzz targets": [*fuzzing, "--manifest-path", "fuzz/Cargo.toml", "--features", "python"],
        "ruff": [f"{tools}/ruff", "check", *files],
        "ruff format": [f"{tools}/ruff", "format", "--check", *files],
        "mypy": [f"{tools}/mypy"],
        "stubtest": [python, "-m", "mypy.stubtest", "onecopy", "--concise", "--mypy-config-file", "pyproject.toml"],
        "layers": [python, "-m", "pytest", "-q", "tests/layers"],
        "house": [python, "-m", "pytest", "-q", "tests/house/test_files.py", "tests/house/test_licences.py"],
        "generated files: onecopy.h": ["cargo", "test", "-q", "--locked", "-p", "onecopy-capi", "--test", "header"],
        "generated files: Cargo.lock": ["cargo", "metadata", "--locked", "--format-version", "1"],
    }
    failed = []
    for name, command in checks.items():
        begun = time.monotonic()
        done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
        say(f"{'ok    ' if done.returncode == 0 else 'FAILED'} {name} ({time.monotonic() - begun:.1f} s)")
        if done.returncode != 0:
            failed.append(name)
            sys.stdout.write(done.stdout + done.stderr)
    if failed:
        say(f"\nfailed: {', '.join(failed)}")
    return 1 if failed else 0


if __name__ == "__main__":
    main(_main)
