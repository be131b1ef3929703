"""`onecopy run --workers`: processes that the supervisor replaces when they die, and that end when
it ends."""

from __future__ import annotations

import contextlib
import http.client
import os
import resource
import signal
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.supervised import Folder, Supervised, running, wait_for_end

#: A client's errors when a worker dies: the connection ends, or is reset.
BROKEN = (ConnectionError, http.client.HTTPException)


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path)


@contextlib.contextmanager
def _stopped(pid: int) -> Iterator[None]:
    """Suspends a worker (SIGSTOP) while the context is active, so that other workers accept
    connections."""
    os.kill(pid, signal.SIGSTOP)
    try:
        # One of its threads may still be running.
        while any(
            file.read_text().rpartition(")")[2].split()[0] != "T" for file in Path(f"/proc/{pid}/task").glob("*/stat")
        ):
            pass
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


def _two_workers(supervised: Supervised) -> list[int]:
    """The process IDs of two workers that respond.

    The first worker is suspended meanwhile, since the kernel may assign it all connections.
    """
    one = int(supervised.ask()[1])
    with _stopped(one):
        return sorted((one, int(supervised.ask()[1])))


def test_several_processes_respond_and_are_logged(folder: Folder) -> None:
    with running(folder, "--workers", "2", "--pid", "pid") as supervised:
        supervised.serves()
        pids = _two_workers(supervised)
        assert supervised.process.pid not in pids
        assert (folder.path / "pid").read_text() == f"{supervised.process.pid}\n"
        assert supervised.ask()[2] == "True"
        supervised.send(signal.SIGTERM)
        code, said = supervised.ends()
    assert code == 0 and "with 2 workers of 8 threads" in said and len(said.splitlines()) == 1
    assert not (folder.path / "pid").exists()


def test_without_workers_it_is_one_process(folder: Folder) -> None:
    with running(folder) as supervised:
        _, pid, multiprocess, _ = supervised.serves().ask()
        assert int(pid) == supervised.process.pid and multiprocess == "False"
        supervised.send(signal.SIGTERM)
        assert supervised.ends()[0] == 0


def test_a_worker_that_dies_in_a_request_aborts_only_that_one(folder: Folder) -> None:
    with running(folder, "--workers", "2") as supervised:
        victim, other = _two_workers(supervised.serves())
        with contextlib.ExitStack() as stack:
            lines: dict[int, http.client.HTTPConnection] = {}
            for pid in (victim, other):  # A connection to each of them, kept open.
                with _stopped(other if pid == victim else victim):
                    lines[pid] = stack.enter_context(contextlib.closing(supervised.connect()))
                    lines[pid].request("GET", "/")
                    assert int(lines[pid].getresponse().read().split()[1]) == pid
            lines[victim].request("GET", "/die")
            with pytest.raises(BROKEN):
                lines[victim].getresponse()
            lines[other].request("GET", "/")
            assert int(lines[other].getresponse().read().split()[1]) == other
        supervised.until(f"worker {victim} died by SIGKILL .* were aborted; it is replaced")
        assert victim not in _two_workers(supervised)


def test_an_aborted_stream_is_detected_by_the_client(folder: Folder) -> None:
    with running(folder, "--workers", "1") as supervised, contextlib.closing(supervised.serves().connect()) as line:
        line.request("GET", "/begun")
        answer = line.getresponse()
        os.kill(int(answer.read1()), signal.SIGKILL)
        with pytest.raises(BROKEN):
            answer.read()
        # New connections wait for the next worker.
        assert supervised.ask()[0] == "1"


def test_a_worker_that_exits_is_replaced(folder: Folder) -> None:
    with running(folder, "--workers", "1") as supervised:
        with pytest.raises(BROKEN):
            supervised.serves().ask("/exit")
        assert supervised.ask()[0] == "1"
        supervised.until("ended with exit code 3; its active requests were aborted; it is replaced")


def test_workers_that_die_repeatedly_are_given_up(folder: Folder) -> None:
    with running(folder, "--workers", "1") as supervised:
        supervised.serves()
        for _ in range(11):
            with pytest.raises(BROKEN):
                supervised.ask("/die")
        code, said = supervised.ends()
    assert code == 1 and said.count("died by SIGKILL") == 11
    assert "more than 10 workers died within 60 s: given up" in said


@pytest.mark.parametrize(
    ("broken", "code", "says"),
    [
        ("raise RuntimeError('at import')", 1, "RuntimeError: at import"),
        ("this is no Python", 1, "SyntaxError"),
        ("del app", 2, "`application` has no attribute `app`"),
        ("app = 5", 2, "not callable"),
        ("sys.exit(7)", 7, ""),
        ("os.kill(os.getpid(), signal.SIGKILL)", 1, "died by SIGKILL"),
    ],
)
@pytest.mark.parametrize("n_workers", ["1", "3"])
def test_an_application_that_does_not_load_ends_it_once(
    folder: Folder, broken: str, code: int, says: str, n_workers: str
) -> None:
    folder.write("1", broken)
    with running(folder, "--workers", n_workers) as supervised:
        ended, said = supervised.ends()
    assert ended == code and said.count(says or "nothing is said") == (1 if says else 0), said
    assert "http://" not in said


def test_a_missing_module_is_reported(folder: Folder) -> None:
    (folder.path / "application.py").unlink()
    with running(folder, "--workers", "2") as supervised:
        code, said = supervised.ends()
    assert code == 2 and "there is no module `application`" in said


@pytest.mark.parametrize("number", ["0", "-1", "x", "1.5", ""])
def test_an_invalid_number_of_workers_is_refused(folder: Folder, number: str) -> None:
    with running(folder, f"--workers={number}") as supervised:
        code, said = supervised.ends()
    assert code == 2 and f"`{number}` is not a number of processes" in said
    assert "write 1 or more" in said


@pytest.mark.parametrize("workers", [[], ["--workers", "2"]])
def test_a_closed_descriptor_is_reported(folder: Folder, workers: list[str]) -> None:
    with running(folder, "--bind", "fd://987", *workers) as supervised:
        code, said = supervised.ends()
    assert code == 1 and "Bad file descriptor" in said


def _refused(port: int) -> None:
    """Waits until no process listens on the port."""
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=60).close()
        except ConnectionRefusedError:
            return
        except ConnectionResetError:
            pass


@pytest.mark.parametrize("how", ["to it", "to its group"])
def test_active_requests_are_finished_at_a_stop(folder: Folder, how: str) -> None:
    with running(folder, "--workers", "2") as supervised:
        with contextlib.closing(supervised.serves().connect()) as line:
            line.request("GET", "/gate")
            gate = folder.enter()
            if how == "to it":
                supervised.send(signal.SIGTERM)
            else:  # As a terminal does for Ctrl-C: it counts once.
                os.killpg(supervised.process.pid, signal.SIGINT)
            _refused(supervised.port)
            os.close(gate)
            assert line.getresponse().read().startswith(b"1 ")
        code, said = supervised.ends()
    assert code == 0 and len(said.splitlines()) == 1


def test_a_second_signal_aborts_them(folder: Folder) -> None:
    with running(folder, "--workers", "2") as supervised:
        with contextlib.closing(supervised.serves().connect()) as line:
            line.request("GET", "/gate")
            gate = folder.enter()
            supervised.send(signal.SIGTERM)
            _refused(supervised.port)
            supervised.send(signal.SIGTERM)
            with pytest.raises(BROKEN):
                line.getresponse()
        os.close(gate)
        code, _ = supervised.ends()
    assert code == 0


def test_a_stop_while_the_application_is_loaded_ends_it(folder: Folder) -> None:
    folder.write("1", "open(os.environ['GATE']).read()")
    with running(folder, "--workers", "2") as supervised:
        gate = folder.enter()
        supervised.send(signal.SIGINT)
        assert supervised.ends() == (0, "")
        os.close(gate)


def test_workers_end_with_their_supervisor(folder: Folder) -> None:
    with running(folder, "--workers", "2") as supervised:
        pids = _two_workers(supervised.serves())
        supervised.send(signal.SIGKILL)
        for pid in pids:
            wait_for_end(pid)
        _, said = supervised.ends()
    assert said.count("the supervisor of worker") == 2


def test_a_worker_without_descriptors_reports_it_and_others_serve(folder: Folder) -> None:
    with running(folder, "--workers", "2") as supervised, contextlib.ExitStack() as stack:
        poor, rich = _two_workers(supervised.serves())
        _, hard = resource.prlimit(poor, resource.RLIMIT_NOFILE)
        resource.prlimit(poor, resource.RLIMIT_NOFILE, (3, hard))  # Only the standard streams.
        with _stopped(rich):
            lines = [stack.enter_context(contextlib.closing(supervised.connect())) for _ in range(50)]
            for line in lines:
                line.request("GET", "/")
            supervised.until(f"process {poor} takes no connections now: Too many open files")
        answered = [int(line.getresponse().read().split()[1]) for line in lines]
        assert answered == [rich] * 50
        resource.prlimit(poor, resource.RLIMIT_NOFILE, (hard, hard))


def test_running_out_of_descriptors_is_reported(folder: Folder) -> None:
    with running(folder, "--workers", "1") as supervised:
        pid = int(supervised.serves().ask()[1])
        soft, hard = resource.prlimit(pid, resource.RLIMIT_NOFILE)
        resource.prlimit(pid, resource.RLIMIT_NOFILE, (3, hard))
        with contextlib.closing(supervised.connect()) as line:
            line.request("GET", "/")
            supervised.until(f"process {pid} takes no connections now: Too many open files")
            supervised.until("ulimit -n")
            resource.prlimit(pid, resource.RLIMIT_NOFILE, (soft, hard))
            # It has waited, and gets a response.
            assert line.getresponse().status == 200


def test_workers_share_an_access_log_and_their_counters(folder: Folder) -> None:
    log, old = folder.path / "log", folder.path / "old"
    n_asked = 0

    def scrape() -> float:
        with contextlib.closing(http.client.HTTPConnection("127.0.0.1", port, timeout=60)) as line:
            line.request("GET", "/metrics")
            text = line.getresponse().read().decode()
        counted = [line for line in text.splitlines() if line.startswith("onecopy_http_requests_total{")]
        return sum(float(line.split()[-1]) for line in counted)

    with running(folder, "--workers", "2", "--access-log", "log", "--metrics", "127.0.0.1:0") as supervised:
        port = int(supervised.until(r"metrics are served at http://127\.0\.0\.1:(\d+)/metrics")[1])
        supervised.serves()
        for _ in range(2):
            found: set[int] = set()
            while len(found) < 2:
                found.add(int(supervised.ask()[1]))
                n_asked += 1
            # A response is counted when its last byte was sent, which may be after the client
            # received it.
            assert any(scrape() == n_asked for _ in range(1000)), (scrape(), n_asked)
            # The counters of a dead worker are kept.
            os.kill(min(found), signal.SIGKILL)
            supervised.until(f"worker {min(found)} died by SIGKILL")
        assert scrape() == n_asked
        # Lines are written in batches: those of the last requests may still follow, in either file.
        while not log.read_text():
            supervised.ask()
        log.rename(old)
        supervised.send(signal.SIGUSR1)
        while not (log.exists() and log.read_text()):
            supervised.ask()
        supervised.send(signal.SIGTERM)
        assert supervised.ends()[0] == 0
    for file in (old, log):
        lines = file.read_text().splitlines()
        assert lines and all('"GET / HTTP/1.1" 200 ' in line for line in lines)
