"""A PostgreSQL server that violates the protocol: each outcome is a correct result or an error.

The client never hangs or crashes, and its memory does not grow without limit.
"""

from __future__ import annotations

import random
import socket
import struct
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import onecopy
from tests.support import scripted
from tests.support.scripted import BOUND, DESCRIBED, GREETING, READY, ROWS, Peer, Server, message

RIGHT = [(1,), (2,), (3,)]
FORMATS: dict[str, Callable[[onecopy.Cursor], object]] = {
    "rows": lambda cur: cur.fetchall(),
    "one by one": list,
    "json": lambda cur: b"".join(cur.json()),
    "ndjson": lambda cur: b"".join(cur.ndjson()),
    "csv": lambda cur: b"".join(cur.csv()),
    "bson": lambda cur: b"".join(cur.bson()),
}


def messages(data: bytes) -> list[bytes]:
    """Splits bytes of the server into its messages."""
    found = []
    while data:
        length = struct.unpack(">i", data[1:5])[0] + 1
        found.append(data[:length])
        data = data[length:]
    return found


WHOLE = [messages(part) for part in (GREETING, DESCRIBED, ROWS)]


class Script:
    """Sends all responses of one query at once: to the login, to Parse and Describe, and to Bind
    and Execute.

    Then it disconnects, resets the connection, or stays silent.
    """

    def __init__(self, parts: list[bytes], *, silent: bool = False, reset: bool = False) -> None:
        self.parts, self.silent, self.reset = parts, silent, reset

    def __call__(self, peer: Peer) -> None:
        """Serves one connection of a client."""
        peer.startup()
        # All at once, since a client that expects more of one response would block the script.
        peer.send(b"".join(self.parts))
        if self.silent:
            while peer.sock.recv(1 << 16):
                pass
        elif self.reset:
            peer.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        else:
            peer.sock.shutdown(socket.SHUT_WR)
            # Read the client's last bytes: otherwise the kernel resets the connection and drops
            # unread data.
            while peer.sock.recv(1 << 16):
                pass


class Hostile(Server):
    """A scripted server whose script can be replaced for each connection."""

    def __init__(self) -> None:
        self.script: Callable[[Peer], object] = lambda peer: None
        super().__init__(lambda peer: self.script(peer))

    def outcome(self, script: Callable[[Peer], object], read: Callable[[onecopy.Cursor], object]) -> object:
        """Connects, executes a query and reads its result; returns the result or the error."""
        self.script = script
        try:
            con = onecopy.connect(self.url(), autocommit=True, connect_timeout=20)
        except onecopy.Error as error:
            return AssertionError("the password") if "secret-word" in str(error) else error
        try:
            return read(con.execute("select n from t"))
        except onecopy.Error as error:
            return error
        finally:
            con.close()


def cut(parts: list[bytes], n_bytes: int) -> list[bytes]:
    """The first ``n_bytes`` bytes of the responses, as a list of the truncated responses."""
    kept = []
    for part in parts:
        kept.append(part[:n_bytes])
        if n_bytes < len(part):
            break
        n_bytes -= len(part)
    return kept


@pytest.fixture(scope="module")
def right() -> dict[str, object]:
    """The correct result in each format."""
    with Hostile() as server:
        script = Script([GREETING, DESCRIBED, ROWS])
        return {name: server.outcome(script, read) for name, read in FORMATS.items()}


def test_the_script_itself_is_correct(right: dict[str, object]) -> None:
    assert right["rows"] == right["one by one"] == RIGHT
    assert right["json"] == b'[{"n":1},\n{"n":2},\n{"n":3}]'


@pytest.mark.parametrize("reset", [False, True])
@pytest.mark.parametrize("name", FORMATS)
def test_an_answer_that_is_cut_at_any_byte_is_an_error(name: str, reset: bool, right: dict[str, object]) -> None:
    parts = [GREETING, DESCRIBED, ROWS]
    n_login, n_all = len(GREETING), sum(map(len, parts))
    # The login is the same for all formats.
    first = 0 if name == "rows" else n_login
    with Hostile() as server:
        for n_bytes in range(first, n_all):
            found = server.outcome(Script(cut(parts, n_bytes), reset=reset), FORMATS[name])
            assert isinstance(found, onecopy.OperationalError), (n_bytes, found)
            assert found.sqlstate.startswith("08"), (n_bytes, found)
        assert reset or server.outcome(Script(parts), FORMATS[name]) == right[name]


@pytest.mark.parametrize("name", ["one by one", "rows", "json", "csv"])
@pytest.mark.parametrize("n_together", [1, 2, 3])
def test_messages_that_arrive_apart_are_read_without_those_after_them(name: str, n_together: int) -> None:
    """Each part that arrives ends with a complete message; the client processes it without waiting
    for the next part."""
    sent = threading.Semaphore(0)

    def script(peer: Peer) -> None:
        peer.startup()
        peer.send(GREETING)
        peer.until(b"H")
        peer.send(DESCRIBED)
        peer.until(b"S")
        first, *rest = WHOLE[2]
        # Up to the first row.
        peer.send(first + rest.pop(0))
        while rest:
            sent.acquire()
            peer.send(b"".join(rest[:n_together]))
            del rest[:n_together]

    def read(cur: onecopy.Cursor) -> object:
        if name == "rows":
            sent.release(4)
            return cur.fetchall()
        if name == "one by one":
            rows = []
            while (row := cur.fetchone()) is not None:
                rows.append(row)
                # After the last row, all that ends the answer.
                sent.release(1 if len(rows) < 3 else 2)
            return rows
        sent.release(4)
        return FORMATS[name](cur)

    with Hostile() as server:
        expected = {"json": b'[{"n":1},\n{"n":2},\n{"n":3}]', "csv": b"n\n1\n2\n3\n"}.get(name, RIGHT)
        assert server.outcome(script, read) == expected


LENGTHS = [-1, -(2**31), 0, 3, 4, 5, 2**31 - 1, 2**30, 70 << 20]


def test_wrong_lengths_are_errors() -> None:
    with Hostile() as server:
        for at, part in enumerate(WHOLE):
            for i, whole in enumerate(part):
                own = len(whole) - 1
                for length in {*LENGTHS, own - 1, own + 1, own + 7} - {own}:
                    changed = [*part[:i], whole[:1] + struct.pack(">i", length) + whole[5:], *part[i + 1 :]]
                    parts = [b"".join(changed if j == at else p) for j, p in enumerate(WHOLE)]
                    found = server.outcome(Script(parts), FORMATS["rows"])
                    assert isinstance(found, onecopy.Error), (whole, length, found)


KINDS = [
    *(message(bytes([kind])) for kind in b"0123ABCDEGHIKNRSTVWZcdnstv"),
    scripted.READY,
    scripted.AUTH_OK,
    scripted.row(7),
    scripted.row(7, 8),
    scripted.fields("n"),
    scripted.complete("SELECT 9"),
    scripted.error("XX000", "injected"),
    scripted.error("57P01", "injected", "FATAL"),
    message(b"R", struct.pack(">i", 10) + b"SCRAM-SHA-256\0\0"),
    message(b"G", b"\0\0\0"),
    message(b"H", b"\0\0\0"),
    message(b"d", b"data"),
]


def is_right_or_error(found: object, right: list[tuple[int]], changed: object) -> None:
    """Asserts that the outcome is an error or that no row is missing; added rows ``(7,)`` are
    allowed."""
    if not isinstance(found, onecopy.Error):
        assert isinstance(found, list)
        assert [row for row in found if row != (7,)] == right, (changed, found)


@pytest.mark.parametrize("n", range(len(KINDS)))
def test_messages_at_the_wrong_time(n: int) -> None:
    with Hostile() as server:
        for at, part in enumerate(WHOLE):
            for i in range(len(part) + 1):
                changed = [*part[:i], KINDS[n], *part[i:]]
                parts = [b"".join(changed if j == at else p) for j, p in enumerate(WHOLE)]
                found = server.outcome(Script(parts), FORMATS["rows"])
                # The server itself ended the result.
                if KINDS[n][:1] != b"C" or at < 2:
                    is_right_or_error(found, RIGHT, (at, i))


def test_messages_that_are_missing_or_duplicated() -> None:
    with Hostile() as server:
        for at, part in enumerate(WHOLE):
            for i, whole in enumerate(part):
                if whole[:1] in b"SKD":
                    continue
                for changed in ([*part[:i], *part[i + 1 :]], [*part[:i], whole, whole, *part[i + 1 :]]):
                    parts = [b"".join(changed if j == at else p) for j, p in enumerate(WHOLE)]
                    is_right_or_error(server.outcome(Script(parts), FORMATS["rows"]), RIGHT, changed)


@pytest.mark.parametrize("seed", range(8))
def test_bytes_that_are_changed_at_random(seed: int) -> None:
    draw = random.Random(seed)
    whole = [GREETING, DESCRIBED, ROWS]
    with Hostile() as server:
        for _ in range(100):
            parts = [bytearray(part) for part in whole]
            for _ in range(draw.randint(1, 4)):
                part = draw.choice(parts)
                part[draw.randrange(len(part))] = draw.randrange(256)
            name = draw.choice([*FORMATS])
            # Any outcome but a crash or a hang: the server may have sent a changed value.
            server.outcome(Script([bytes(part) for part in parts]), FORMATS[name])


def test_a_server_that_stops_at_any_message_is_abandoned_at_the_time_limit() -> None:
    whole = [GREETING, DESCRIBED, ROWS]
    boundaries = [0]
    for part in WHOLE:
        for one in part:
            # At the end of a message, and within the next one.
            boundaries += [boundaries[-1] + len(one)]
    points = sorted({n + more for n in boundaries[:-1] for more in (0, 3, 5)})

    def stopped(n_bytes: int) -> object:
        with Server(Script(cut(whole, n_bytes), silent=True)) as server:
            try:
                con = onecopy.connect(server.url(), autocommit=True, connect_timeout=1, query_timeout=0.1)
            except onecopy.Error as error:
                return error
            try:
                return con.execute("select n from t").fetchall()
            except onecopy.Error as error:
                return error
            finally:
                con.close()

    with ThreadPoolExecutor(len(points)) as threads:
        for n_bytes, found in zip(points, threads.map(stopped, points), strict=True):
            assert isinstance(found, onecopy.OperationalError), (n_bytes, found)


def memory() -> int:
    """The resident memory of this process in bytes."""
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * 4096


FLOODS = {
    "parameters": lambda i: scripted.status(f"name{i}", "x" * 1000),
    "notices": lambda i: message(b"N", b"SNOTICE\0C00000\0M" + b"x" * 100_000 + b"\0\0"),
    "notifications": lambda i: message(b"A", struct.pack(">i", 1) + b"channel\0" + b"x" * 100_000 + b"\0"),
}


@pytest.mark.parametrize("name", FLOODS)
def test_asynchronous_messages_do_not_fill_the_memory(name: str) -> None:
    n_bytes = 64 << 20
    one = len(FLOODS[name](0))

    def script(peer: Peer) -> None:
        peer.startup()
        peer.send(GREETING)
        peer.until(b"H")
        peer.send(DESCRIBED)
        peer.until(b"S")
        for i in range(n_bytes // one):
            peer.send(FLOODS[name](i))
        peer.send(ROWS)
        peer.until(b"X")

    with Server(script) as server:
        con = onecopy.connect(server.url(), autocommit=True)
        before = memory()
        assert con.execute("select n from t").fetchall() == RIGHT
        assert memory() - before < 24 << 20
        con.close()


def test_a_length_that_is_only_announced_allocates_no_memory() -> None:
    def script(peer: Peer) -> None:
        peer.startup()
        peer.send(GREETING)
        peer.until(b"H")
        peer.send(DESCRIBED)
        peer.until(b"S")
        peer.send(scripted.BOUND + message(b"D", b"\0\1" + b"x" * 1000, length=1 << 30))
        peer.sock.shutdown(socket.SHUT_WR)

    before = memory()
    with Hostile() as server:
        for _ in range(5):
            assert isinstance(server.outcome(script, FORMATS["rows"]), onecopy.OperationalError)
    assert memory() - before < 24 << 20


def test_a_count_of_iterations_that_would_take_hours_is_refused() -> None:
    def script(peer: Peer) -> None:
        peer.startup()
        peer.send(message(b"R", struct.pack(">i", 10) + b"SCRAM-SHA-256\0\0"))
        first = peer.message()[1]
        nonce = first.split(b"r=", 1)[1]
        peer.send(message(b"R", struct.pack(">i", 11) + b"r=" + nonce + b"x,s=c2FsdA==,i=4294967295"))
        peer.until(b"X")

    with Server(script) as server, pytest.raises(onecopy.OperationalError, match="iteration"):
        onecopy.connect(server.url())


@pytest.mark.parametrize("final", [b"", message(b"R", struct.pack(">i", 12) + b"v=" + b"A" * 43 + b"=")])
def test_scram_without_the_servers_proof_is_refused(final: bytes) -> None:
    def script(peer: Peer) -> None:
        peer.startup()
        peer.send(message(b"R", struct.pack(">i", 10) + b"SCRAM-SHA-256\0\0"))
        first = peer.message()[1]
        nonce = first.split(b"r=", 1)[1]
        peer.send(message(b"R", struct.pack(">i", 11) + b"r=" + nonce + b"x,s=c2FsdA==,i=4096"))
        peer.message()
        peer.send(final + GREETING)
        peer.until(b"X")

    with Server(script) as server, pytest.raises(onecopy.OperationalError, match="SCRAM"):
        onecopy.connect(server.url())


def test_bytes_after_the_response_to_the_request_for_tls_are_not_part_of_the_session() -> None:
    def script(peer: Peer) -> None:
        peer.exactly(8)
        peer.send(b"S" + GREETING)
        peer.sock.recv(1 << 16)

    with Server(script) as server, pytest.raises(onecopy.OperationalError, match="TLS"):
        onecopy.connect(server.url(sslmode="require"))


@pytest.mark.parametrize("n_ignored", [0, 1, 3])
def test_an_ignored_cancel_request_is_repeated(n_ignored: int) -> None:
    """A cancel request is repeated until the statement ends.

    PostgreSQL ignores a request that arrives between two messages of a statement.
    """
    running, obeyed, n_requests = threading.Event(), threading.Event(), iter(range(n_ignored))

    def script(peer: Peer) -> None:
        peer.startup()
        if peer.is_cancel:
            if next(n_requests, None) is None:
                obeyed.set()
            return
        peer.send(GREETING)
        peer.until(b"H")
        peer.send(DESCRIBED)
        peer.until(b"S")
        running.set()
        obeyed.wait()
        peer.send(BOUND + scripted.error("57014", "canceling statement due to user request") + READY)
        peer.answer()

    with Server(script) as server:
        con = onecopy.connect(server.url(), autocommit=True)
        with ThreadPoolExecutor(1) as pool:
            call = pool.submit(lambda: con.execute("select 1").fetchall())
            running.wait()
            con.cancel()
            with pytest.raises(onecopy.OperationalError) as raised:
                call.result()
        assert raised.value.sqlstate == "57014" and con.usable
        assert con.execute("select 2").fetchall() == RIGHT
        con.close()


def by_execute(con: onecopy.Connection) -> object:
    return con.execute("select 1")


def by_executemany(con: onecopy.Connection) -> object:
    return con.executemany("select ?", [(1,), (2,)])


def by_copy_in(con: onecopy.Connection) -> object:
    return con.cursor().copy_in("copy t from stdin", [b"x"])


@pytest.mark.parametrize("call", [by_execute, by_executemany, by_copy_in])
def test_the_error_of_a_server_that_has_closed_the_connection_is_raised(
    call: Callable[[onecopy.Connection], object],
) -> None:
    is_closed = threading.Event()

    def script(peer: Peer) -> None:
        peer.startup()
        peer.send(GREETING + scripted.error("57P05", "idle for too long", "FATAL"))
        peer.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        peer.sock.close()
        is_closed.set()

    with Server(script) as server:
        con = onecopy.connect(server.url(), autocommit=True)
        assert is_closed.wait(100)
        with pytest.raises(onecopy.OperationalError, match="idle for too long") as raised:
            call(con)
        assert raised.value.sqlstate == "57P05" and not con.usable
        con.close()


def test_the_error_of_a_server_that_has_closed_a_copy_is_raised() -> None:
    is_closed = threading.Event()

    def script(peer: Peer) -> None:
        peer.startup()
        peer.send(GREETING)
        peer.until(b"Q")
        peer.send(message(b"G", b"\0\0\0"))
        peer.until(b"d")
        peer.send(scripted.error("57P01", "terminating", "FATAL"))
        peer.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        peer.sock.close()
        is_closed.set()

    def chunks() -> Iterator[bytes]:
        yield bytes(1 << 17)
        assert is_closed.wait(100)
        yield from [bytes(1 << 17)] * 10

    with Server(script) as server:
        con = onecopy.connect(server.url(), autocommit=True)
        with pytest.raises(onecopy.OperationalError, match="terminating") as raised:
            con.cursor().copy_in("copy t from stdin", chunks())
        assert raised.value.sqlstate == "57P01"
        con.close()
