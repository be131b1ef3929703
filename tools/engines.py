"""`make engines`: tests onecopy.spark and onecopy.ray with Sail and Ray, in .cache/engines.

python3 tools/engines.py [PYTEST ARGUMENTS …]
"""

from __future__ import annotations

import subprocess
import sys

import dev
import rust
from house import CACHE, ROOT, main

_DIRECTORY = CACHE / "engines"
_REQUIREMENTS = ROOT / "requirements" / "engines.txt"
#: The page about engines, whose examples run only if they are installed.
_PAGE = ["tests/docs/test_snippets.py", "-k", "engines"]


def _main() -> int:
    python = str(dev.build(_DIRECTORY, _REQUIREMENTS))
    environment = rust.environment()
    pytest = [python, "-m", "pytest", "-q"]
    suites = [[*pytest, "tests/engines", *sys.argv[1:]], [*pytest, *_PAGE]]
    codes = [subprocess.run(suite, cwd=ROOT, env=environment, check=False).returncode for suite in suites]
    return max(codes)


if __name__ == "__main__":
    main(_main)
