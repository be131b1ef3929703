"""Ends PostgreSQL connections at random points: each is an error for the caller, without silent
loss of rows.

    python3 -m tests.soak.kills --rounds 1000

A relay passes the server's bytes to the client up to a random point. Then it closes or resets the
connection, or terminates the server's backend. Each round reads a result in one format, or inserts
rows, and compares them with the expected ones.
"""

from __future__ import annotations

import argparse
import random
import select
import socket
import struct
import threading
from collections import Counter
from collections.abc import Callable
from typing import Any

import psycopg

import onecopy
from tests.support import servers

N_ROWS = 20_000
QUERY = f"select n, 'text ' || n as t, n * 1.5 as d from generate_series(1, {N_ROWS}) as n"


def arrow(cur: onecopy.Cursor) -> object:
    """The rows of the result, read through Arrow."""
    import pyarrow

    return pyarrow.table(cur.arrow()).to_pylist()


READERS: dict[str, Callable[[onecopy.Cursor], object]] = {
    "rows": lambda cur: cur.fetchall(),
    "one by one": list,
    "json": lambda cur: b"".join(cur.json()),
    "ndjson": lambda cur: b"".join(cur.ndjson()),
    "csv": lambda cur: b"".join(cur.csv()),
    "bson": lambda cur: b"".join(cur.bson()),
    "arrow": arrow,
}
WAYS = ("close", "reset", "terminate")


class Cutter:
    """A relay for one connection that passes ``point`` bytes of the server and then ends the
    connection."""

    def __init__(self, port: int, point: int, way: str, terminate: Callable[[int], object]) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self.passed = 0
        self._server_port, self._point, self._way, self._terminate = port, point, way, terminate
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        try:
            client = self._listener.accept()[0]
        except OSError:
            return
        with client, socket.create_connection(("127.0.0.1", self._server_port)) as server:
            backend = server.getsockname()[1]
            is_cut = False
            while True:
                for one in select.select([client, server], [], [])[0]:
                    try:
                        data = one.recv(1 << 14)
                        if not data:
                            return
                        if one is client:
                            server.sendall(data)
                            continue
                        left = self._point - self.passed
                        if is_cut or left > len(data):
                            self.passed += len(data)
                            client.sendall(data)
                            continue
                        self.passed += left
                        client.sendall(data[:left])
                        is_cut = True
                        if self._way == "terminate":
                            self._terminate(backend)
                            client.sendall(data[left:])
                            continue
                        if self._way == "reset":
                            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                        return
                    except ConnectionError:
                        return

    def close(self) -> None:
        """Closes the relay and waits for its thread."""
        self._listener.shutdown(socket.SHUT_RDWR)
        self._thread.join()
        self._listener.close()


class Kills:
    """Repeated rounds with one PostgreSQL server."""

    def __init__(self, native: dict[str, Any], seed: int) -> None:
        self._native = native
        self._draw = random.Random(seed)
        login = {"user": native["user"], "password": native["password"], "dbname": native["database"]}
        self._admin = psycopg.connect(host=native["host"], port=native["port"], autocommit=True, **login)
        self._admin.execute("drop table if exists killed")
        self._admin.execute("create table killed (i int, t text)")
        self._whole: dict[str, tuple[object, int]] = {}
        #: Errors and correct results, by format and way.
        self.counts: Counter[str] = Counter()

    def _terminate(self, port: int) -> None:
        sql = "select pg_terminate_backend(pid) from pg_stat_activity where client_port = %s"
        self._admin.execute(sql, [port])

    def _attempt(self, name: str, point: int, way: str) -> tuple[object, int]:
        cutter = Cutter(self._native["port"], point, way, self._terminate)
        try:
            target = servers.url({**self._native, "port": cutter.port}) + "?sslmode=disable"
            try:
                con = onecopy.connect(target)
            except onecopy.OperationalError as error:
                return error, cutter.passed
            try:
                if name == "executemany":
                    return self._insert(con), cutter.passed
                return READERS[name](con.execute(QUERY)), cutter.passed
            except OSError as error:
                # The error of a stream as Arrow's C interface passes it on.
                lost = onecopy.OperationalError(str(error), sqlstate="08006")
                return lost if name == "arrow" else error, cutter.passed
            except onecopy.OperationalError as error:
                is_lost = not con.usable
                return error if is_lost else RuntimeError(f"usable after {error}"), cutter.passed
            finally:
                con.close()
        finally:
            cutter.close()

    def _insert(self, con: onecopy.Connection) -> object:
        con.executemany("insert into killed values (?, ?)", ([i, f"text {i}"] for i in range(5000)))
        con.commit()
        return 5000

    def _n_inserted(self) -> int:
        found = self._admin.execute("select count(*) from killed").fetchone()
        assert found is not None
        self._admin.execute("truncate killed")
        return int(found[0])

    def round(self) -> None:
        """Ends a connection at a random point and checks the outcome.

        Raises:
            AssertionError: rows were lost or duplicated without an error.
        """
        name = self._draw.choice([*READERS, "executemany"])
        if name not in self._whole:
            self._whole[name] = self._attempt(name, 1 << 60, "close")
            assert not isinstance(self._whole[name][0], Exception), self._whole[name]
            self._n_inserted()
        right, n_bytes = self._whole[name]
        way = self._draw.choice(WAYS)
        # Some points are within the login, which is short.
        point = self._draw.randrange(1, 600 if self._draw.random() < 0.2 else n_bytes)
        found, _ = self._attempt(name, point, way)
        is_error = isinstance(found, onecopy.OperationalError)
        # The error is the connection's; it must not look like the user's.
        assert not isinstance(found, onecopy.OperationalError) or found.sqlstate[:2] in ("08", "57"), found
        assert is_error or found == right, (name, way, point)
        # The server may have sent everything before it was terminated.
        assert is_error or way == "terminate", (name, way, point)
        if name == "executemany":
            n_rows = self._n_inserted()
            # After an error at the commit, its outcome is unknown.
            assert n_rows in ((0, 5000) if is_error else (5000,)), (way, point, n_rows)
        self.counts[f"{name}, {way}: {'error' if is_error else 'right'}"] += 1

    def close(self) -> None:
        """Drops the table of the rounds, and closes the connection of the administrator."""
        self._admin.execute("drop table killed")
        self._admin.close()


def main() -> None:
    """Runs the command line of this module."""
    parser = argparse.ArgumentParser(prog="tests.soak.kills", description=__doc__)
    parser.add_argument("--rounds", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    home = servers.Home()
    with home.state() as state:
        runs = servers.running(state.get("postgres", {}))
    servers.start(["postgres"], home)
    kills = Kills(servers.native("postgres", home), arguments.seed)
    try:
        for _ in range(arguments.rounds):
            kills.round()
    finally:
        kills.close()
        if not runs:
            servers.stop_servers(["postgres"], home)
    for what, count in sorted(kills.counts.items()):
        print(f"{count:5} {what}")


if __name__ == "__main__":
    main()
