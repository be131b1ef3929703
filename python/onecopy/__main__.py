"""The command: ``onecopy …`` and ``python -m onecopy …`` (see ``onecopy --help``).

It is the same program as the one that needs no Python, run inside this process.
"""

from __future__ import annotations

import signal
import sys

from onecopy._core import run_command


def main() -> int:
    """Run the command with ``sys.argv``; return its exit code (0 ok, 1 failed, 2 usage, 3 cannot connect, 130 stopped)."""
    # The command's own handler stops a query at the first Ctrl-C; Python's would only set a flag that nobody looks at.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    return run_command(["onecopy", *sys.argv[1:]])


if __name__ == "__main__":
    sys.exit(main())
