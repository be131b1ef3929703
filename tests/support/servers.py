"""Starts and stops the test databases on loopback, and prints their connection strings.

    python3 -m tests.support.servers start [NAME ...]     # default: postgres mariadb sqlite tds
    python3 -m tests.support.servers env [NAME ...]       # starts them; prints `export` lines
    python3 -m tests.support.servers json [NAME ...]      # starts them; prints the same as JSON
    python3 -m tests.support.servers load 31000 400000   # tables `t31000`, `t400000`, where running
    python3 -m tests.support.servers status
    python3 -m tests.support.servers stop [NAME ...]

Each server has its own directory and a free port; processes are identified by pid and start time.
Starting a running server does nothing; a server that died is restarted with its data. `--home DIR`
uses a second set of servers (so that a soak run which kills its database does not affect the
tests). A server that cannot be started is reported with the reason and skipped.
"""

from __future__ import annotations

import argparse
import fcntl
import hashlib
import json
import os
import pwd
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from tests.support import drivers, load
from tests.support.drivers import CACHE, ROOT, Unavailable
from tests.support.process import Process, alive, crash, free_port, spawn, stop, stop_forgotten, wait_for_port

USER = "onecopy"
PASSWORD = "1copy-Test"  # Only for test servers on loopback; SQL Server requires upper case, lower case and digits.
DATABASE = "onecopy"

#: Servers by name, in the order in which they are started.
NAMES = ("postgres", "mariadb", "sqlite", "tds")
#: Profile -> the server it needs, and its ODBC driver; None for a native protocol.
PROFILES: dict[str, tuple[str, str | None]] = {
    "postgres_native": ("postgres", None),
    "postgres": ("postgres", "psqlodbcw"),
    "postgres_ansi": ("postgres", "psqlodbca"),
    "mariadb": ("mariadb", "maodbc"),
    "sqlite_odbc": ("sqlite", "sqliteodbc"),
    "tds_freetds": ("tds", "freetds"),
    "tds_msodbc": ("tds", "msodbc"),
    "tds_rust": ("tds", "mssqlrs"),
}


class Home:
    """The state and data directories of one set of servers.

    The default directory is the value of ``ONECOPY_TEST_SERVERS``, otherwise one in the checkout.
    """

    def __init__(self, directory: Path | None = None) -> None:
        self.state_dir = directory or Path(os.environ.get("ONECOPY_TEST_SERVERS") or CACHE / "servers")
        self.state_dir.mkdir(parents=True, exist_ok=True)
        # As root, PostgreSQL runs as a different user, which cannot enter a checkout below /root.
        if os.geteuid() == 0:
            mark = hashlib.sha256(str(self.state_dir.resolve()).encode()).hexdigest()[:10]
            self.data_dir = Path(tempfile.gettempdir()) / f"onecopy-servers-{mark}"
        else:
            self.data_dir = self.state_dir
        self.data_dir.mkdir(exist_ok=True)
        self.data_dir.chmod(0o755)
        self._file = self.state_dir / "state.json"

    @contextmanager
    def state(self) -> Iterator[dict[str, Any]]:
        """Reads the state file of all servers, and writes it at the end of the context.

        The file is locked meanwhile, so that commands run one after another.
        """
        with open(self.state_dir / "lock", "w", encoding="ascii") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            try:
                state = json.loads(self._file.read_text(encoding="utf-8"))
            except (OSError, ValueError):
                state = {}
            try:
                yield state
            finally:
                self._file.write_text(json.dumps(state, indent=1), encoding="utf-8")

    def log(self, name: str) -> Path:
        """The log file of server ``name``."""
        return self.state_dir / f"{name}.log"


def _owner(name: str, directory: Path) -> str | None:
    """The user that runs a server, or ``None`` for the current one.

    If the current user is root, it is the user ``name``, who becomes the owner of ``directory``.
    """
    if os.geteuid() != 0:
        return None
    try:
        entry = pwd.getpwnam(name)
    except KeyError:
        raise Unavailable(f"no user `{name}` to run the server as; it comes with the server's package") from None
    directory.mkdir(exist_ok=True)
    os.chown(directory, entry.pw_uid, entry.pw_gid)
    return name


def _as_user(command: list[str], user: str | None, log: Path) -> None:
    """Runs ``command`` as ``user`` until it ends; its output is written to ``log``."""
    process: dict[str, Any] = {}
    if user is not None:
        entry = pwd.getpwnam(user)
        process = {"user": entry.pw_uid, "group": entry.pw_gid, "extra_groups": []}
    with open(log, "a+b") as out:
        begun = out.seek(0, os.SEEK_END)
        done = subprocess.run(command, stdout=out, stderr=out, cwd="/", check=False, **process)
        out.seek(begun)
        said = out.read().decode(errors="replace")
    if done.returncode != 0:
        # The log stays on the machine that ran it: its beginning names the cause.
        raise RuntimeError(f"`{' '.join(command)}` failed ({done.returncode}); see {log}, it begins:\n{said[:1_000]}")


def _program(*candidates: str) -> str:
    """The path of the first candidate that exists; candidates are program names or glob
    patterns."""
    for candidate in candidates:
        if "*" in candidate:
            found = sorted(Path("/").glob(candidate.lstrip("/")))
            if found:
                return str(found[-1])
        elif (
            path := shutil.which(candidate, path=os.environ.get("PATH", "") + ":/usr/sbin:/usr/local/sbin")
        ) is not None:
            return path
    raise Unavailable(f"`{candidates[-1]}` is not installed")


class Started(NamedTuple):
    """A server that accepts connections; ``fresh`` is true if its data directory was newly
    created."""

    process: Process
    port: int
    fresh: bool


def _port(home: Home, name: str) -> int:
    """A free port: the server's previous one if possible, since clients may have stored its
    number."""
    remembered = home.state_dir / f"{name}.port"
    before = int(remembered.read_text(encoding="ascii")) if remembered.exists() else 0
    port = free_port(before)
    remembered.write_text(str(port), encoding="ascii")
    return port


def _start_postgres(home: Home) -> Started:
    initdb = _program("/usr/lib/postgresql/*/bin/initdb", "initdb")
    postgres = _program("/usr/lib/postgresql/*/bin/postgres", "postgres")
    base, log = home.data_dir / "postgres", home.log("postgres")
    user = _owner("postgres", base)
    base.mkdir(exist_ok=True)
    data, ready = base / "data", home.state_dir / "postgres.ready"
    fresh = not (ready.exists() and data.exists())
    if fresh:
        shutil.rmtree(data, ignore_errors=True)
        secret = base / "password"
        secret.write_text(PASSWORD, encoding="utf-8")
        secret.chmod(0o644)
        command = [initdb, "-D", str(data), "-U", USER, f"--pwfile={secret}", "-A", "scram-sha-256", "--no-sync"]
        _as_user([*command, "-E", "UTF8", "--locale=C.UTF-8"], user, log)
        ready.touch()
    stop_forgotten(data / "postmaster.pid", data, signal.SIGINT)
    port = _port(home, "postgres")
    settings = {
        "port": port,
        "listen_addresses": "127.0.0.1",
        "unix_socket_directories": "",
        "fsync": "off",
        "synchronous_commit": "off",
        "full_page_writes": "off",
        "max_wal_size": "4GB",
        "logging_collector": "off",
    }
    options = [part for key, value in settings.items() for part in ("-c", f"{key}={value}")]
    process = spawn([postgres, "-D", str(data), *options], log, user, cwd=base)
    wait_for_port(port, process, log)
    # After a crash it responds, with errors, while it recovers.
    ready_now = [
        _program("/usr/lib/postgresql/*/bin/pg_isready", "pg_isready"),
        "-q",
        "-h",
        "127.0.0.1",
        "-p",
        str(port),
    ]
    end = time.monotonic() + 120
    while subprocess.run(ready_now, check=False).returncode != 0:
        if not alive(process) or time.monotonic() > end:
            raise RuntimeError(f"PostgreSQL ended while it started, or recovers for two minutes; see {log}")
    return Started(process, port, fresh)


def _start_mariadb(home: Home) -> Started:
    install = _program("mariadb-install-db", "mysql_install_db")
    server = _program("mariadbd", "mysqld")
    base, log = home.data_dir / "mariadb", home.log("mariadb")
    user = _owner("mysql", base)
    base.mkdir(exist_ok=True)
    # A server that starts removes every temporary table in its directory as a leftover of its own:
    # if two servers share the directory, the second removes the first one's.
    temporary = base / "tmp"
    _owner("mysql", temporary)
    temporary.mkdir(exist_ok=True)
    data, ready = base / "data", home.state_dir / "mariadb.ready"
    fresh = not (ready.exists() and data.exists())
    if fresh:
        shutil.rmtree(data, ignore_errors=True)
        command = [install, "--no-defaults", f"--datadir={data}", f"--tmpdir={temporary}", "--skip-test-db"]
        _as_user([*command, "--auth-root-authentication-method=normal"], user, log)
        ready.touch()
    setup = base / "setup.sql"
    setup.write_text(
        f"CREATE DATABASE IF NOT EXISTS {DATABASE} CHARACTER SET utf8mb4;\n"
        f"CREATE USER IF NOT EXISTS '{USER}'@'127.0.0.1' IDENTIFIED BY '{PASSWORD}';\n"
        f"GRANT ALL ON *.* TO '{USER}'@'127.0.0.1';\n",
        encoding="utf-8",
    )
    setup.chmod(0o644)
    stop_forgotten(base / "pid", base, signal.SIGTERM)
    port = _port(home, "mariadb")
    command = [server, "--no-defaults", f"--datadir={data}", f"--tmpdir={temporary}"]
    command += [f"--init-file={setup}", f"--port={port}"]
    # The path of a socket may have 107 bytes: it is in the temporary directory, with a short name.
    mark = hashlib.sha256(str(base).encode()).hexdigest()[:8]
    command += [f"--socket={tempfile.gettempdir()}/onecopy-{mark}.sock", f"--pid-file={base}/pid", "--local-infile=1"]
    command += ["--bind-address=127.0.0.1", "--skip-name-resolve", "--character-set-server=utf8mb4"]
    command += ["--innodb-flush-log-at-trx-commit=0", "--innodb-doublewrite=0", "--innodb-buffer-pool-size=256M"]
    process = spawn(command, log, user, cwd=base)
    wait_for_port(port, process, log)
    return Started(process, port, fresh)


def _start_tds(home: Home) -> Started:
    pid_file = home.state_dir / "tds.pid"
    stop_forgotten(pid_file, home.state_dir, signal.SIGTERM)
    port, log = _port(home, "tds"), home.log("tds")
    command = [sys.executable, "-m", "tests.support.tds", "--port", str(port), "--user", USER, "--password", PASSWORD]
    process = spawn([*command, "--label", str(home.state_dir)], log, cwd=ROOT)
    pid_file.write_text(str(process.pid), encoding="ascii")
    wait_for_port(port, process, log)
    return Started(process, port, fresh=True)


_STARTERS: dict[str, Callable[[Home], Started]] = {
    "postgres": _start_postgres,
    "mariadb": _start_mariadb,
    "tds": _start_tds,
}


def running(known: dict[str, Any]) -> bool:
    """Returns true if the server of this state entry is usable; SQLite needs no process."""
    return "file" in known or ("process" in known and alive(Process(*known["process"])))


def start(names: list[str], home: Home) -> dict[str, str]:
    """Starts each server that is not running; returns the reason for each one that could not
    start."""
    failed: dict[str, str] = {}
    for name in names:
        with home.state() as state:
            known = state.setdefault(name, {})
            try:
                if name == "sqlite":
                    known["file"] = str(home.state_dir / "t.db")
                elif not running(known):
                    started = _STARTERS[name](home)
                    known["process"], known["port"] = started.process, started.port
                    if started.fresh:
                        known["loaded"] = []
                # The smallest table is for the tests; benchmarks request the others.
                load.ensure(name, known, [1_000])
            except (Unavailable, RuntimeError, OSError) as error:
                failed[name] = str(error)
    return failed


def stop_servers(names: list[str], home: Home) -> None:
    """Stops the named servers, if ``home`` has started them."""
    for name in names:
        with home.state() as state:
            # PostgreSQL: SIGINT is the fast shutdown; SIGTERM would wait for every client.
            if "process" in state.get(name, {}):
                process = Process(*state[name].pop("process"))
                stop(process, signal.SIGINT if name == "postgres" else signal.SIGTERM)


def kill_server(name: str, home: Home) -> None:
    """Ends the server's processes with SIGKILL, as a crash would."""
    with home.state() as state:
        crash(Process(*state[name].pop("process")))


def odbc_string(profile: str, home: Home) -> str:
    """onecopy's connection string for a profile whose server runs: an ODBC string without a DSN, or
    a URL if the profile needs no ODBC driver.

    Raises:
        Unavailable: the server or the driver is missing; with the reason.
    """
    server, driver = PROFILES[profile]
    with home.state() as state:
        known = state.get(server, {})
    if not running(known):
        raise Unavailable(f"server `{server}` does not run")
    if driver is None:
        return url(native(server, home))
    path = drivers.find(driver)
    if server == "sqlite":
        return f"Driver={path};Database={known['file']}"
    port = known["port"]
    login = f"Uid={USER};Pwd={PASSWORD}"
    if profile == "tds_freetds":
        return f"Driver={path};Server=127.0.0.1;Port={port};{login};TDS_Version=7.4;ClientCharset=UTF-8"
    if server == "tds":
        return f"Driver={path};Server=127.0.0.1,{port};{login};Encrypt=no;TrustServerCertificate=yes"
    name = "postgres" if server == "postgres" else DATABASE
    return f"Driver={path};Server=127.0.0.1;Port={port};Database={name};{login}"


def native(server: str, home: Home) -> dict[str, Any]:
    """The connection keywords of a native client (psycopg, mysqlclient) for the same database."""
    with home.state() as state:
        known = state[server]
    if server == "sqlite":
        return {"database": known["file"]}
    database = "postgres" if server == "postgres" else DATABASE
    return {"host": "127.0.0.1", "port": known["port"], "user": USER, "password": PASSWORD, "database": database}


def url(reached: dict[str, Any]) -> str:
    """A PostgreSQL URL for the native protocol, from the connection keywords of `native`."""
    login = f"{reached['user']}:{reached['password']}"
    return f"postgresql://{login}@{reached['host']}:{reached['port']}/{reached['database']}"


def environment(names: list[str], home: Home) -> dict[str, str]:
    """The environment variables for the Rust tests: `ONECOPY_TEST_<PROFILE>` for each usable
    profile.

    For a profile that cannot be used, `ONECOPY_TEST_<PROFILE>_MISSING` has the reason.
    """
    result: dict[str, str] = {}
    failed = start(names, home)
    for profile, (server, driver) in PROFILES.items():
        if server not in names:
            continue
        key = f"ONECOPY_TEST_{profile.upper()}"
        try:
            if server in failed:
                raise Unavailable(failed[server])
            if driver is not None:
                drivers.driver_manager()
            result[key] = odbc_string(profile, home)
        except Unavailable as error:
            result[f"{key}_MISSING"] = str(error)
    return result


def main() -> int:
    """Runs the command line of this module; returns the exit status."""
    parser = argparse.ArgumentParser(prog="tests.support.servers", description="Databases of the tests, on loopback.")
    parser.add_argument("--home", type=Path, help="keep this set of servers in DIR")
    parser.add_argument("action", choices=("start", "stop", "status", "env", "json", "load"))
    parser.add_argument("rest", nargs="*", help="servers, or row counts for `load`")
    arguments = parser.parse_args()
    home = Home(arguments.home)
    if arguments.action == "load":
        for name in NAMES:
            with home.state() as state:
                if running(state.get(name, {})):
                    load.ensure(name, state[name], [int(count) for count in arguments.rest])
        return 0
    names = arguments.rest or list(NAMES)
    unknown = set(names) - set(NAMES)
    if unknown:
        parser.error(f"no server {sorted(unknown)}; there are {', '.join(NAMES)}")
    if arguments.action == "stop":
        stop_servers(names, home)
        return 0
    if arguments.action == "json":
        print(json.dumps(environment(names, home)))
        return 0
    if arguments.action == "env":
        for key, value in environment(names, home).items():
            quoted = value.replace("'", "'\\''")
            print(f"export {key}='{quoted}'")
        return 0
    failed = start(names, home) if arguments.action == "start" else {}
    with home.state() as state:
        for name in names:
            known = state.get(name, {})
            if not running(known):
                print(f"{name:9} not running" + (f": {failed[name]}" if name in failed else ""))
            elif "file" in known:
                print(f"{name:9} {known['file']}, tables {known['loaded']}")
            else:
                tables = known.get("loaded", "created on demand")
                print(f"{name:9} running on port {known['port']}, pid {known['process'][0]}, tables {tables}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
