"""Run a part of the project that stands in a script of its own, or say honestly that it is not there yet.

python3 tools/later.py WORD SCRIPT ARGUMENTS…
"""

from __future__ import annotations

import os
import sys

import dev
import rust
from house import ROOT, give_up, main


def _main() -> int:
    word, script, arguments = sys.argv[1], sys.argv[2], sys.argv[3:]
    if not (ROOT / script).exists():
        give_up(f"`make {word}`: not there yet (no {script} in this checkout)")
    python = dev.build()
    os.chdir(ROOT)
    # As a module: it may use tests.support.
    module = script.removesuffix(".py").replace("/", ".")
    os.execve(python, [str(python), "-m", module, *arguments], rust.environment())


if __name__ == "__main__":
    main(_main)
