"""The command: ``onecopy …`` and ``python -m onecopy …`` (see ``onecopy --help``).

This module runs the same program as the standalone binary, inside the Python process.
"""

from __future__ import annotations

import os
import signal
import sys

from onecopy._core import run_command


def _open_standard_descriptors() -> None:
    """Open those of the file descriptors 0, 1 and 2 that are closed, so that the command's sockets
    and files do not get these numbers. Reading from 0 and writing to 1 or 2 still fails."""
    for descriptor, mode in ((0, os.O_WRONLY), (1, os.O_RDONLY), (2, os.O_RDONLY)):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, mode)


def main() -> int:
    """Run the command with ``sys.argv``; return its exit code (0 ok, 1 failed, 2 usage, 3 cannot
    connect, 130 interrupted)."""
    _open_standard_descriptors()
    if sys.argv[1:2] == ["run"]:
        # `run` serves a Python application; `bench` compares libraries of Python. The other
        # commands are written in Rust.
        from onecopy._run import main as run

        return run(sys.argv[2:])
    if sys.argv[1:2] == ["bench"]:
        from onecopy._bench import main as bench

        return bench(sys.argv[2:])
    # The command's own handler cancels a query at the first Ctrl-C; Python's handler would only set
    # a flag that nothing checks. If SIGINT is ignored, Python has installed no handler.
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    arguments = sys.argv[1:]
    # The interpreter, its options, and the script or `-m onecopy`: with these arguments, the
    # command `serve` starts its child process.
    again = sys.orig_argv if sys.orig_argv[len(sys.orig_argv) - len(arguments) :] == arguments else None
    return run_command(["onecopy", *arguments], again)


if __name__ == "__main__":
    sys.exit(main())
