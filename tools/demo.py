"""`make run`: builds onecopy, creates the demo database, and serves it on 127.0.0.1 at PORT; the
gateway prints example URLs."""

from __future__ import annotations

import ctypes
import os
import signal
import socket
import subprocess
import time
import urllib.error
import urllib.request

import cities
import dev
from house import CACHE, ROOT, give_up, main, say, step

_CONFIG = ROOT / "examples" / "cities" / "onecopy.toml"
_FIRST = CACHE / "demo" / "first-run"


def _port() -> int:
    """The port in the variable PORT, after a check that it is free."""
    text = os.environ.get("PORT", "") or "8000"
    if not text.isdigit() or not 0 < int(text) < 65_536:
        give_up(f"`PORT={text}` is not a port\nmake run PORT=8000", 2)
    with socket.socket() as probe:
        # As servers bind: a port whose last connections are in TIME_WAIT is free.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", int(text)))
        except PermissionError:
            give_up(f"port {text} needs root\nmake run PORT=8000")
        except OSError:
            give_up(f"port {text} of 127.0.0.1 is in use by another program\nmake run PORT={_free_port()}")
    return int(text)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _end_with_parent() -> None:
    """In the child: requests SIGTERM if this script is killed, so that no server is left over
    (Linux)."""
    ctypes.CDLL(None).prctl(1, signal.SIGTERM)  # PR_SET_PDEATHSIG


def _until_live(server: subprocess.Popen[bytes], port: int) -> None:
    # Without a sleep the loop would spin, since a refused connect returns at once.
    while True:
        code = server.poll()
        if code is not None:
            give_up(f"`onecopy serve` ended with exit code {code}", code or 1)
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/-/live", timeout=5):
                return
        except (urllib.error.URLError, OSError):
            time.sleep(0.05)


def _tell(seconds: float) -> None:
    """Prints the duration of this start and of the first one, and the source of the data."""
    if _FIRST.exists():
        compared = f"the first run here took {_FIRST.read_text(encoding='ascii')} s"
    else:
        compared = "the first run here, with all it had to fetch and build"
        _FIRST.write_text(f"{seconds:.0f}", encoding="ascii")
    say(f"\nReady after {seconds:.1f} s: {compared}. Each query is there as .json, .ndjson and .csv.")
    say(cities.ATTRIBUTION)


def _main() -> int:
    begun = time.monotonic()
    port = _port()
    python = dev.build()
    if not cities.is_there():
        with step("demo database: the world's cities"):
            cities.make(python)
    # A new session: Ctrl-C of the terminal reaches only this script, which passes it on, once.
    server = subprocess.Popen(
        [str(python.parent / "onecopy"), "serve", str(_CONFIG)],
        cwd=ROOT,
        env=dict(os.environ) | {"PORT": str(port)},  # The configuration binds to it.
        start_new_session=True,
        preexec_fn=_end_with_parent,
    )
    stopped = False

    def stop(_number: int, _frame: object) -> None:
        nonlocal stopped
        stopped = True
        server.terminate()

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, stop)
    _until_live(server, port)
    _tell(time.monotonic() - begun)
    code = server.wait()
    if stopped:
        say(f"stopped ({'cleanly' if code in (0, 130, -signal.SIGTERM) else f'exit code {code}'})")
        return 0
    give_up(f"`onecopy serve` ended by itself with exit code {code}", code or 1)


if __name__ == "__main__":
    main(_main)
