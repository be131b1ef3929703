"""Kills the database at random points of a stream: no reader may mistake the broken response for a
complete one.

    make soak    # 100 rounds per format, over HTTP and from the command line
    python3 -m tests.soak --rounds 5 --formats ndjson

Each round starts a PostgreSQL server that is used for nothing else. Readers receive a random number
of bytes of an export of 400,000 rows. Then the server is killed (SIGKILL), and the end of every
reader is checked:

- curl must exit with an error, Python's `http.client` must raise, and neither may have seen the
  success trailer;
- `onecopy query` must exit with 1, and with `--output` must not leave a file under the final name.

Points are counted in bytes received, never in time.

psqlodbc 13.02 dereferences a null pointer inside SQLFetch when its connection dies in the middle of
a result (about one kill in ten). Every reader sees such a crash as a failure, so the round is
valid; crashes are counted separately. `onecopy query` crashes with the driver. `onecopy serve` must
not: its supervisor starts a new process on the same port, and the rounds continue.
"""

from __future__ import annotations

import argparse
import contextlib
import http.client
import os
import random
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections import Counter
from pathlib import Path
from typing import IO

from tests.support import load, servers
from tests.support.drivers import CACHE
from tests.support.process import free_port

ROOT = Path(__file__).resolve().parents[2]
FORMATS = ("json", "ndjson", "csv")
#: The export's size in bytes depends on the format and is at least this; points are drawn below 3/4
#: of it.
SIZE = 90_000_000
ROWS = 400_000


def read(stream: IO[bytes], n_bytes: int) -> int:
    """Reads ``n_bytes`` bytes, or up to the end of the stream; returns the number of bytes."""
    got = 0
    while got < n_bytes:
        data = stream.read(min(1 << 16, n_bytes - got))
        if not data:
            break
        got += len(data)
    return got


class Gateway:
    """A process of `onecopy serve` with one query of the database that is to be killed."""

    def __init__(self, command: str, url: str, folder: Path) -> None:
        self.port = free_port()
        config = folder / "onecopy.toml"
        config.write_text(
            f"[databases.d]\nurl = {url!r}\n\n[queries.t]\ndatabase = 'd'\ntime_limit_s = 600\n"
            f"sql = 'select * from t{ROWS}'\n",
            encoding="utf-8",
        )
        self.log = open(CACHE / "soak" / "gateway.log", "wb")  # noqa: SIM115 - lives as long as the process
        self.process = subprocess.Popen(
            [command, "serve", str(config), "--port", str(self.port)], stderr=self.log, stdout=self.log
        )
        while self.process.poll() is None:
            with contextlib.suppress(OSError):
                socket.create_connection(("127.0.0.1", self.port)).close()
                return
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(timeout=0.05)
        raise RuntimeError(f"the gateway ended with {self.process.returncode}; see {config.with_name('gateway.log')}")

    def crashes(self) -> int:
        """The number of crashes of the serving process, counted in the log."""
        return Path(self.log.name).read_bytes().count(b" crash: process ")

    def close(self) -> None:
        """Stops the gateway, which must exit with 0."""
        self.process.send_signal(signal.SIGINT)
        code = self.process.wait(timeout=60)
        self.log.close()
        if code != 0:
            raise RuntimeError(f"the gateway ended with {code} after the rounds")


def over_http(gateway: Gateway, fmt: str, point: int, kill: threading.Event, killed: threading.Event) -> list[str]:
    """Runs one round with curl and `http.client` in parallel; returns descriptions of wrong
    results."""
    wrong: list[str] = []
    path = f"/t.{fmt}"
    with tempfile.TemporaryFile() as head:
        curl = subprocess.Popen(
            ["curl", "-sS", "-D", "/dev/fd/" + str(head.fileno()), f"http://127.0.0.1:{gateway.port}{path}"],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            pass_fds=(head.fileno(),),
        )
        client = http.client.HTTPConnection("127.0.0.1", gateway.port)
        client.request("GET", path)
        response = client.getresponse()
        assert curl.stdout is not None
        first = read(curl.stdout, point)
        read(response, point)
        if first < point or response.status != 200:
            wrong.append(f"there was no {fmt} to break: {first} bytes, status {response.status}")
        kill.set()
        killed.wait()
        rest = read(curl.stdout, 1 << 40)
        if curl.wait() == 0:
            wrong.append(f"curl took {first + rest} bytes of {fmt} for a whole answer (killed at {point})")
        try:
            while response.read(1 << 16):
                pass
            wrong.append(f"http.client took {fmt} for a whole answer (killed at {point})")
        except (http.client.HTTPException, OSError):
            pass
        client.close()
        head.seek(0)
        # curl writes trailers to the same file as the head.
        if b"onecopy-status: ok" in head.read().lower():
            wrong.append(f"the success trailer was sent for a broken {fmt} (killed at {point})")
    return wrong


def from_the_command_line(
    command: str,
    url: str,
    fmt: str,
    point: int,
    folder: Path,
    kill: threading.Event,
    killed: threading.Event,
    crashed: Counter[str],
) -> list[str]:
    """Runs one round with two processes of `onecopy query`, one to a pipe and one to a file.

    Returns descriptions of wrong results; adds the number of crashes to ``crashed``.
    """
    wrong: list[str] = []
    target = folder / f"export.{fmt}"
    target.unlink(missing_ok=True)
    query = [command, "query", url, f"select * from t{ROWS}", "--format", fmt]
    pipe = subprocess.Popen(query, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    file = subprocess.Popen([*query, "--output", str(target)], stderr=subprocess.PIPE)
    assert pipe.stdout is not None
    if read(pipe.stdout, point) < point:
        wrong.append(f"there was no {fmt} to break on the command line")
    kill.set()
    killed.wait()
    read(pipe.stdout, 1 << 40)
    _, said = pipe.communicate()
    # -11: the driver itself crashed (see the module's docstring); every caller sees that failure,
    # too.
    if pipe.returncode not in (1, -signal.SIGSEGV):
        wrong.append(f"`onecopy query` ended with {pipe.returncode} for a broken {fmt} (killed at {point})")
    _, file_said = file.communicate()
    crashed["onecopy query"] += [pipe.returncode, file.returncode].count(-signal.SIGSEGV)
    # We do not slow down the reader of the file, so it may have finished before the kill: then it
    # must be complete.
    if file.returncode == 0:
        if not target.exists():
            wrong.append(f"exit code 0 and no file for {fmt}")
    elif target.exists():
        wrong.append(f"a broken {fmt} has its final name (killed at {point})")
    if servers.PASSWORD.encode() in said + file_said:
        wrong.append("the password was printed")
    return wrong


def main() -> int:
    """Runs the command line; returns the exit status."""
    parser = argparse.ArgumentParser(prog="soak", description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=100, help="rounds for each format and way (100)")
    parser.add_argument("--formats", nargs="*", default=FORMATS, choices=FORMATS)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 30))
    parser.add_argument("--command", default=str(ROOT / ".venv" / "bin" / "onecopy"))
    arguments = parser.parse_args()
    print(f"seed {arguments.seed}", flush=True)
    draw = random.Random(arguments.seed)
    home = servers.Home(CACHE / "soak")
    wrong: list[str] = []
    tally: Counter[str] = Counter()
    crashed: Counter[str] = Counter()

    def revive() -> None:
        failed = servers.start(["postgres"], home)
        if failed:
            raise RuntimeError(failed["postgres"])

    def kill_when(kill: threading.Event, killed: threading.Event) -> None:
        kill.wait()
        servers.kill_server("postgres", home)
        killed.set()

    revive()
    with home.state() as state:
        load.ensure("postgres", state["postgres"], [ROWS])
    url = servers.odbc_string("postgres", home)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        os.environ["LC_ALL"] = "C.UTF-8"
        gateway = Gateway(arguments.command, url, folder)
        try:
            for k in range(arguments.rounds):
                for fmt in arguments.formats:
                    for way in ("http", "command"):
                        point = draw.randrange(1, SIZE * 3 // 4) if k % 10 else draw.randrange(1, 100_000)
                        kill, killed = threading.Event(), threading.Event()
                        thread = threading.Thread(target=kill_when, args=(kill, killed))
                        thread.start()
                        try:
                            if way == "http":
                                found = over_http(gateway, fmt, point, kill, killed)
                            else:
                                found = from_the_command_line(
                                    arguments.command, url, fmt, point, folder, kill, killed, crashed
                                )
                        finally:
                            kill.set()
                            thread.join()
                        tally[f"{fmt} over {way}"] += 1
                        if (code := gateway.process.poll()) is not None:
                            raise RuntimeError(f"`onecopy serve` ended with {code}")
                        for line in found:
                            print(f"WRONG: {line}", flush=True)
                        wrong += found
                        revive()
                if (k + 1) % 10 == 0:
                    print(f"{k + 1} of {arguments.rounds} rounds, {len(wrong)} wrong", flush=True)
            crashed["onecopy serve"] = gateway.crashes()
            gateway.close()
        finally:
            if gateway.process.poll() is None:
                gateway.process.kill()
            servers.stop_servers(["postgres"], home)
    for what, count in sorted(tally.items()):
        print(f"{what:24} {count} kills")
    for what in ("onecopy serve", "onecopy query"):
        survived = " that it survived" if what == "onecopy serve" else ""
        print(f"{what:24} {crashed[what]} crashes inside the driver{survived}")
    print(
        f"{sum(tally.values())} passed, {len(wrong)} failed"
        if not wrong
        else f"{len(wrong)} answers looked complete or worse"
    )
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
