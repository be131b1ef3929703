"""The setup scripts report each missing requirement and its remedy."""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support import process, servers

ROOT = Path(__file__).resolve().parents[2]


def _run(*command: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=100)


def test_help_lists_every_target() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"^([a-z-]+):(?!=)", makefile, re.M))
    shown = _run("make", "-C", str(ROOT), "--no-print-directory", "help", PATH=os.environ["PATH"]).stdout
    assert {line.split()[1] for line in shown.splitlines()} == targets
    assert {"dev", "run", "check", "test", "test-all", "fuzz", "bench", "bench-save", "docs", "java"} <= targets


def test_everything_missing_is_listed_at_once(tmp_path: Path) -> None:
    done = _run(sys.executable, str(ROOT / "tools" / "preflight.py"), PATH=str(tmp_path), HOME=str(tmp_path))
    assert done.returncode == 1
    for program in ("cc", "c++", "git", "curl"):
        assert f"(`{program}`)" in done.stdout
    assert "sudo apt-get install -y build-essential curl git" in done.stdout


def test_a_busy_port_is_reported_with_the_remedy() -> None:
    with socket.create_server(("127.0.0.1", 0)) as busy:
        port = busy.getsockname()[1]
        done = _run(sys.executable, str(ROOT / "tools" / "demo.py"), PORT=str(port), PATH=os.environ["PATH"])
    assert done.returncode == 1
    assert f"port {port} of 127.0.0.1 is in use" in done.stderr
    assert re.search(r"make run PORT=\d+", done.stderr)


@pytest.mark.parametrize("port", ["0", "65536", "http", "-1"])
def test_an_invalid_port_is_refused(port: str) -> None:
    done = _run(sys.executable, str(ROOT / "tools" / "demo.py"), PORT=port, PATH=os.environ["PATH"])
    assert done.returncode == 2
    assert f"`PORT={port}` is not a port" in done.stderr


def test_a_toolchain_that_cannot_be_fetched_is_an_error_with_the_remedy(tmp_path: Path) -> None:
    checkout = tmp_path / "checkout"
    shutil.copytree(ROOT / "tools", checkout / "tools")
    shutil.copy(ROOT / "Cargo.toml", checkout)
    done = _run(
        sys.executable,
        str(checkout / "tools" / "rust.py"),
        "cargo",
        "--version",
        PATH=str(tmp_path / "nothing"),
        HOME=str(tmp_path),
        PIP_INDEX_URL="http://127.0.0.1:9/",  # The discard port: nothing listens there.
        PIP_RETRIES="0",
        PIP_CONFIG_FILE=os.devnull,
    )
    assert done.returncode == 1
    assert "could not be fetched" in done.stderr
    assert "sh.rustup.rs" in done.stderr
    assert {path.name for path in tmp_path.iterdir()} == {"checkout"}


def test_a_server_that_died_is_restarted(tmp_path: Path) -> None:
    home = servers.Home(tmp_path)
    try:
        assert servers.start(["tds"], home) == {}
        with home.state() as state:
            first = process.Process(*state["tds"]["process"])
        assert servers.start(["tds"], home) == {}
        with home.state() as state:
            assert process.Process(*state["tds"]["process"]) == first
        process.crash(first)
        assert servers.start(["tds"], home) == {}
        with home.state() as state:
            second = process.Process(*state["tds"]["process"])
        assert second != first
        assert process.alive(second)
    finally:
        servers.stop_servers(["tds"], home)
    assert not process.alive(second)
