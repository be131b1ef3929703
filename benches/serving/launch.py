"""Starts a server that has no command of its own, or whose command lacks an option.

Its arguments are SERVER MODULE:NAME PORT.
"""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))


def main() -> None:
    """Runs the server until its process is ended."""
    server, app, port = sys.argv[1], sys.argv[2], int(sys.argv[3])
    module, _, name = app.partition(":")
    application = getattr(importlib.import_module(module), name)
    if server == "bjoern":
        import bjoern

        bjoern.run(application, "127.0.0.1", port, listen_backlog=4096)
    elif server == "fastpysgi":
        import fastpysgi

        fastpysgi.server.backlog = 4096
        fastpysgi.run(application, "127.0.0.1", port)
    else:
        raise SystemExit(f"no server `{server}`")


if __name__ == "__main__":
    main()
