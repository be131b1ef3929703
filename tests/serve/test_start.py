"""The start of `onecopy run`: wrong values of options, applications that are not WSGI, and limits
of open files."""

from __future__ import annotations

import contextlib
import re
import resource
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import onecopy
from onecopy.server import Limits
from tests.support.supervised import Folder, Supervised, of_command, running

LIMITS = {
    "header_timeout": "0",
    "body_timeout": "0",
    "idle_timeout": "-1",
    "write_timeout": "0",
    "stop_timeout": "-0.5",
    "max_header_bytes": "0",
    "max_headers": "0",
    "max_body_bytes": "-1",
    "max_connections": "0",
}


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path)


def _wrong_values() -> Iterator[tuple[str, str]]:
    for name, value in LIMITS.items():
        yield name, value
        yield name, "x"
        if name.endswith("timeout"):
            yield from ((name, value) for value in ("nan", "inf", "1e300"))
        else:
            yield from ((name, value) for value in ("1.5", str(1 << 70)))
    yield from (("threads", value) for value in ("0", "-1", "x", "1.5"))


@pytest.mark.parametrize(("name", "value"), [*_wrong_values()])
def test_a_wrong_value_is_a_usage_error(folder: Folder, name: str, value: str) -> None:
    option = f"--{name.replace('_', '-')}"
    with running(folder, f"{option}={value}") as supervised:
        code, said = supervised.ends()
    assert code == 2 and f"argument {option}: " in said and "Traceback" not in said
    assert "set it to a" in said or "is not a number" in said


@pytest.mark.parametrize(("name", "value"), [*LIMITS.items()])
def test_an_invalid_limit_in_a_program_is_a_value_error_with_the_range(name: str, value: str) -> None:
    wrong: dict[str, Any] = {name: float(value) if name.endswith("timeout") else int(value)}
    limits = Limits()._replace(**wrong)
    with pytest.raises(ValueError, match=rf"`{name}` is {re.escape(value)}.*\nset it to a"):
        onecopy.Server(lambda environ, start: [], "127.0.0.1:0", limits=limits)
    if name.startswith("max_"):
        with pytest.raises(TypeError):
            onecopy.Server(lambda environ, start: [], limits=Limits()._replace(**(wrong | {name: 1.5})))


def _run(folder: Path, *words: str) -> tuple[int, str]:
    """Run `onecopy run` to its end in a folder; return the exit code and stderr."""
    command = [sys.executable, "-m", "onecopy", "run", *words]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False, cwd=folder)
    return ended.returncode, ended.stderr


def test_a_module_is_searched_in_the_folder_of_chdir_which_must_exist(tmp_path: Path) -> None:
    (tmp_path / "application.py").write_text("raise RuntimeError('imported')")
    code, said = _run(tmp_path, "application:app", "--chdir", "/nowhere/there")
    assert code == 2 and "argument --chdir: there is no folder `/nowhere/there`" in said
    code, said = _run(tmp_path, "application:app", "--chdir", "application.py")
    assert code == 2 and "argument --chdir: `application.py` is not a folder" in said
    (tmp_path / "inner").mkdir()
    code, said = _run(tmp_path, "missing:app", "--chdir", "inner")
    assert code == 2 and f"there is no module `missing` in {tmp_path / 'inner'}\n" in said


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("--bind 127.0.0.1:99999", "argument --bind: `127.0.0.1:99999` is not an address"),
        ("--bind 127.0.0.1", "argument --bind: `127.0.0.1` is not an address"),
        ("--metrics 127.0.0.1:x", "argument --metrics: `127.0.0.1:x` is not an address"),
        ("--socket-mode 999", "argument --socket-mode: `999` is not an octal number, such as `660`"),
        ("--socket-mode=-7", "argument --socket-mode: `-7` is not an octal number, such as `660`"),
        ("--certfile nofile", "`nofile` cannot be read: No such file"),
        ("--keyfile nofile", "add its file: `--certfile FILE`"),
        ("--access-log nofolder/x", "the access log `nofolder/x` cannot be opened: No such file"),
        ("--access-log .", "the access log `.` cannot be opened: Is a directory"),
        ("--pid nofolder/x", "No such file or directory: 'nofolder/x'"),
    ],
)
@pytest.mark.parametrize("workers", [(), ("--workers", "1")], ids=["one process", "workers"])
def test_a_wrong_argument_is_named_and_ends_with_code_2(
    tmp_path: Path, words: str, message: str, workers: tuple[str, ...]
) -> None:
    (tmp_path / "application.py").write_text("def app(environ, start): ...")
    bind = () if words.startswith("--bind") else ("--bind", "127.0.0.1:0")
    code, said = _run(tmp_path, "application:app", *bind, *words.split(), *workers)
    assert code == 2 and message in said and "Traceback" not in said


def test_an_address_that_is_not_free_ends_with_code_1(tmp_path: Path) -> None:
    (tmp_path / "application.py").write_text("def app(environ, start): ...")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        bind = f"127.0.0.1:{taken.getsockname()[1]}"
        code, said = _run(tmp_path, "application:app", "--bind", bind)
    assert code == 1 and "is in use by another program" in said and "Traceback" not in said
    code, said = _run(tmp_path, "application:app", "--bind", "nowhere.invalid:80")
    assert code == 1 and "`nowhere.invalid` has no address" in said


def test_a_limit_of_0_is_accepted_where_it_has_a_meaning(folder: Folder) -> None:
    options = ("--idle-timeout", "0", "--stop-timeout", "0", "--max-body-bytes", "0")
    with running(folder, *options) as supervised:
        assert supervised.serves().ask()[0] == "1"


async def _asgi(scope: Any, receive: Any, send: Any) -> None:
    """An ASGI application that is an asynchronous function."""


class _Framework:
    """An ASGI application that is an object with an asynchronous `__call__`, as in Starlette and
    FastAPI."""

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Handles one ASGI connection."""


def _decorated(scope: Any, receive: Any, send: Any) -> Any:
    """An ASGI application that is a normal function which returns a coroutine."""
    return _asgi(scope, receive, send)


@pytest.mark.parametrize("app", [_asgi, _Framework(), _decorated])
def test_an_asgi_application_is_a_type_error_that_names_servers_for_it(app: Any) -> None:
    with pytest.raises(TypeError, match=r"is an ASGI application(.|\n)*uvicorn(.|\n)*a2wsgi\.ASGI"):
        onecopy.Server(app, "127.0.0.1:0")


class _OfClass:
    def __init__(self, environ: Any, start: Any) -> None: ...


class _Method:
    def call(self, environ: Any, start: Any, more: Any = None) -> list[bytes]:
        """A WSGI application whose third parameter has a default."""
        return []


@pytest.mark.parametrize("app", [_OfClass, _Method().call, lambda *args: [], dict])
def test_a_callable_with_two_parameters_is_accepted(app: Callable[..., Any]) -> None:
    onecopy.Server(app, "127.0.0.1:0")


@pytest.mark.parametrize("options", [[], ["--workers", "2"]])
def test_an_asgi_application_is_refused_at_the_start(folder: Folder, options: list[str]) -> None:
    folder.write("1", "async def app(scope, receive, send): ...")
    with running(folder, *options) as supervised:
        code, said = supervised.ends()
    assert code == 2 and said.count("`application:app` is an ASGI application") == 1
    assert "uvicorn application:app" in said and "http://" not in said


@contextlib.contextmanager
def _with_files(folder: Folder, soft: int, hard: int, *options: str) -> Iterator[Supervised]:
    """Starts `onecopy run` with a soft and a hard limit for the number of open files."""
    code = (
        "import os, resource, sys; "
        f"resource.setrlimit(resource.RLIMIT_NOFILE, ({soft}, {hard})); "
        "os.execv(sys.executable, [sys.executable, *sys.argv[1:]])"
    )
    words = ["-m", "onecopy", "run", "application:app", "--bind", "127.0.0.1:0", *options]
    with of_command(folder, ["-c", code, *words]) as supervised:
        yield supervised


@pytest.mark.parametrize("n_files", [32, 40, 50, 66, 80])
@pytest.mark.parametrize("options", [(), ("--workers", "2")])
def test_a_client_that_sends_requests_one_by_one_never_sees_503(
    folder: Folder, n_files: int, options: tuple[str, ...]
) -> None:
    with _with_files(folder, n_files, n_files, *options) as supervised:
        supervised.serves()
        for _ in range(1_000):
            with socket.create_connection(("127.0.0.1", supervised.port), timeout=60) as client:
                client.sendall(b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
                assert client.recv(12) == b"HTTP/1.1 200"


def test_connections_beyond_the_open_files_wait(folder: Folder) -> None:
    with _with_files(folder, 64, 64) as supervised, contextlib.ExitStack() as stack:
        said = supervised.until(r"1:(\d+)/ with 8 threads for up to (\d+) connections")
        supervised.port, n_most = int(said[1]), int(said[2])
        assert n_most < 64 and "permits no more" in supervised.lines[-1]
        lines = []
        for _ in range(n_most + 20):
            line = stack.enter_context(contextlib.closing(supervised.connect()))
            line.request("GET", "/")
            lines.append(line)
        supervised.until("takes no connections now: Too many open files")
        for line in lines:
            answer = line.getresponse()
            assert answer.status == 200
            answer.read()
            line.close()  # A waiting connection is then accepted.


def test_the_soft_limit_is_raised_as_connections_require(folder: Folder) -> None:
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    hard = min(hard, 4_000)
    options = ("--max-connections", "1000", "--workers", "1")
    with _with_files(folder, 100, hard, *options) as supervised:
        said = supervised.until(r"1:(\d+)/ .* each for up to 1000 connections$")
        supervised.port = int(said[1])
        soft, _ = resource.prlimit(int(supervised.ask()[1]), resource.RLIMIT_NOFILE)
        assert 1_000 < soft < hard


def test_a_program_keeps_its_limit_of_open_files() -> None:
    code = (
        "import resource, onecopy; before = resource.getrlimit(resource.RLIMIT_NOFILE); "
        "onecopy.Server(lambda e, s: [], '127.0.0.1:0'); "
        "assert resource.getrlimit(resource.RLIMIT_NOFILE) == before"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
