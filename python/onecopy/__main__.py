"""The command: ``onecopy …`` and ``python -m onecopy …`` (see ``onecopy --help``).

It is the same program as the one that needs no Python, run inside this process.
"""

from __future__ import annotations

import signal
import sys

from onecopy._core import run_command


def main() -> int:
    """Run the command with ``sys.argv``; return its exit code (0 ok, 1 failed, 2 usage, 3 cannot connect, 130 stopped)."""
    if sys.argv[1:2] == ["run"]:
        # The one command that is Python's: it runs an application of Python's.
        from onecopy.run import main as run

        return run(sys.argv[2:])
    # The command's own handler stops a query at the first Ctrl-C; Python's would only set a flag that nobody looks at.
    # Where the signal is ignored, Python has set none.
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    arguments = sys.argv[1:]
    # Interpreter, its options, and the script or `-m onecopy`: what `serve` starts its second process by.
    again = sys.orig_argv if sys.orig_argv[len(sys.orig_argv) - len(arguments) :] == arguments else None
    return run_command(["onecopy", *arguments], again)


if __name__ == "__main__":
    sys.exit(main())
