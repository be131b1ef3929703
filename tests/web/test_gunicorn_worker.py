"""`gunicorn -k onecopy.gunicorn.Worker`: gunicorn manages the processes, onecopy's server handles
requests."""

from __future__ import annotations

import contextlib
import http.client
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.supervised import Folder, Supervised, of_command

WORKER = "onecopy.gunicorn.Worker"


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path)


@contextlib.contextmanager
def _gunicorn(folder: Folder, *options: str, name: str = WORKER) -> Iterator[Supervised]:
    words = ["--no-control-socket", "--graceful-timeout", "20", "--bind", "127.0.0.1:0", *options, "application:app"]
    with of_command(folder, ["-m", "gunicorn", "-k", name, *words]) as supervised:
        yield supervised


def _ask(port: int, *fields: tuple[str, str]) -> tuple[list[str], http.client.HTTPMessage]:
    with contextlib.closing(http.client.HTTPConnection("127.0.0.1", port, timeout=60)) as line:
        line.request("GET", "/", headers=dict(fields))
        with line.getresponse() as answer:
            return answer.read().decode().split(), answer.headers


def test_it_responds_and_stops(folder: Folder) -> None:
    with _gunicorn(folder, "--threads", "4") as supervised:
        version, pid, multiprocess, scheme = supervised.serves().ask()
        assert (version, multiprocess, scheme) == ("1", "False", "http") and int(pid) != supervised.process.pid
        # gunicorn's own server sends its name.
        assert "gunicorn" not in str(_ask(supervised.port)[1])
        supervised.send(signal.SIGTERM)
        code, said = supervised.ends()
    assert code == 0 and f"Using worker: {WORKER}" in said and "Traceback" not in said


def test_the_short_name_is_known_if_the_configuration_imports_it(folder: Folder) -> None:
    (folder.path / "gunicorn.conf.py").write_text("import onecopy.gunicorn\n")
    with _gunicorn(folder, name="onecopy") as supervised:
        assert supervised.serves().ask()[0] == "1"
        supervised.until("Using worker: onecopy$")


def test_onecopy_does_not_import_gunicorn() -> None:
    code = "import sys, onecopy, onecopy._run; onecopy.Server; assert not {m for m in sys.modules if 'gunicorn' in m}"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


def test_all_its_sockets_are_served(folder: Folder) -> None:
    with socket.create_server(("127.0.0.1", 0)) as reserved:
        second = reserved.getsockname()[1]
    with _gunicorn(folder, "--bind", f"127.0.0.1:{second}", "--workers", "2") as supervised:
        supervised.until(r"http://127\.0\.0\.1:\d+")
        port = int(supervised.lines[-1].split("http://127.0.0.1:")[1].split(",")[0].split()[0])
        supervised.until("Booting worker")
        for each in {port, second}:
            assert _ask(each)[0][2] == "True"


def test_an_active_request_is_finished_at_a_stop(folder: Folder) -> None:
    with _gunicorn(folder) as supervised:
        with contextlib.closing(supervised.serves().connect()) as line:
            line.request("GET", "/gate")
            gate = folder.enter()
            supervised.send(signal.SIGTERM)
            supervised.until("Handling signal: term")
            os.close(gate)
            assert line.getresponse().read().startswith(b"1 ")
        assert supervised.ends()[0] == 0


def test_a_reload_serves_the_current_files(folder: Folder) -> None:
    with _gunicorn(folder) as supervised:
        assert supervised.serves().ask()[0] == "1"
        folder.write("2")
        supervised.send(signal.SIGHUP)
        supervised.until("Handling signal: hup")
        while supervised.ask()[0] != "2":
            pass
        supervised.send(signal.SIGTERM)
        assert supervised.ends()[0] == 0


def test_a_worker_exits_after_max_requests(folder: Folder) -> None:
    with _gunicorn(folder, "--max-requests", "3") as supervised:
        first = supervised.serves().ask()[1]
        while supervised.ask()[1] == first:
            pass
        supervised.until("Autorestarting worker")
        supervised.send(signal.SIGTERM)
        assert supervised.ends()[0] == 0


def test_a_worker_that_dies_is_replaced(folder: Folder) -> None:
    with _gunicorn(folder) as supervised:
        first = supervised.serves().ask()[1]
        os.kill(int(first), signal.SIGKILL)
        assert supervised.ask()[1] != first


def test_a_worker_that_receives_sigquit_ends_at_once(folder: Folder) -> None:
    with _gunicorn(folder) as supervised:
        with contextlib.closing(supervised.serves().connect()) as line:
            line.request("GET", "/gate")
            gate = folder.enter()
            supervised.send(signal.SIGINT)
            with pytest.raises((ConnectionError, http.client.HTTPException)):
                line.getresponse()
        supervised.ends()
        os.close(gate)


@pytest.mark.parametrize(
    ("allowed", "fields", "scheme"),
    [
        ("127.0.0.1", [("X-Forwarded-Proto", "https")], "https"),
        ("127.0.0.0/8", [("X-Forwarded-Ssl", "on")], "https"),
        ("*", [("X-Forwarded-Proto", "https")], "https"),
        ("127.0.0.1", [("X-Forwarded-Proto", "http")], "http"),
        ("127.0.0.1", [("X-Forwarded-Proto", "https"), ("X-Forwarded-Ssl", "off")], "http"),
        ("127.0.0.1", [], "http"),
        ("10.0.0.1", [("X-Forwarded-Proto", "https")], "http"),
    ],
)
def test_a_trusted_proxy_sets_the_scheme(
    folder: Folder, allowed: str, fields: list[tuple[str, str]], scheme: str
) -> None:
    with _gunicorn(folder, "--forwarded-allow-ips", allowed) as supervised:
        assert _ask(supervised.serves().port, *fields)[0][3] == scheme


@pytest.mark.parametrize(
    ("broken", "says"), [("raise RuntimeError('at import')", "RuntimeError: at import"), ("no Python", "SyntaxError")]
)
def test_an_application_that_does_not_load_ends_gunicorn(folder: Folder, broken: str, says: str) -> None:
    folder.write("1", broken)
    with _gunicorn(folder) as supervised:
        code, said = supervised.ends()
    assert code == 3 and says in said


def test_unsupported_settings_are_reported(folder: Folder) -> None:
    certificate = folder.path / "certificate"
    certificate.touch()
    with _gunicorn(folder, "--certfile", str(certificate), "--keyfile", str(certificate)) as supervised:
        code, said = supervised.ends()
    assert code == 3 and "onecopy's worker does not support TLS" in said
    with _gunicorn(folder, "--access-logfile", "-") as supervised:
        supervised.until("does not write gunicorn.s access log")
