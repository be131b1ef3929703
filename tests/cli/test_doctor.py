"""`onecopy doctor`: what it finds of each database, what it says of what is missing, and what it never shows."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import onecopy
from tests.conftest import Database


class Told(NamedTuple):
    """What the command said."""

    code: int
    out: str
    err: str

    def findings(self) -> list[dict[str, Any]]:
        """The findings, of JSON."""
        found: list[dict[str, Any]] = json.loads(self.out)["findings"]
        return found

    def level(self, subject: str) -> str:
        """The level of the only finding whose subject begins so."""
        (found,) = (f for f in self.findings() if f["subject"].startswith(subject))
        return str(found["level"])


def doctor(*arguments: str, **environment: str) -> Told:
    known = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "CLICOLOR_FORCE")}
    done = subprocess.run(
        [sys.executable, "-m", "onecopy", "doctor", *arguments],
        capture_output=True,
        text=True,
        encoding="utf-8",
        env=known | environment,
        timeout=120,
        check=False,
    )
    assert "Traceback" not in done.stderr
    return Told(done.returncode, done.stdout, done.stderr)


#: What drivers are known to change: SQLite ODBC cuts doubles.
BROKEN = {"sqlite_odbc": {"double"}}
BUFFERED = {"mariadb", "sqlite_odbc"}


def test_of_each_driver_it_finds_what_is_right_and_what_is_wrong(any_odbc: Database) -> None:
    told = doctor(any_odbc.odbc, "--json")
    broken = {f["subject"] for f in told.findings() if f["area"] == "Database" and f["level"] == "broken"}
    assert broken == BROKEN.get(any_odbc.profile, set())
    assert not any("could not be asked" in f["says"] for f in told.findings())
    assert told.level("connected") == "ok"
    in_use = next(f for f in told.findings() if f["subject"].endswith(", in use"))
    assert in_use["level"] == "ok" and "there and back" in in_use["says"]
    assert told.level("text of 1,000,000 characters as a parameter") == "ok"
    assert told.level("integer of 64 bit") == "ok"
    assert told.level("a result of 16 MB") == ("note" if any_odbc.profile in BUFFERED else "ok")
    assert told.code == (1 if any(f["level"] == "broken" for f in told.findings()) else 0)
    assert any_odbc.password not in told.out + told.err


def test_the_page_says_the_same_as_the_json(tmp_path: Path) -> None:
    target = f"sqlite:{tmp_path / 'x.db'}"
    onecopy.connect(target).execute("create table t (a)")
    page, told = doctor(target), doctor(target, "--json")
    assert page.code == told.code
    for finding in told.findings():
        assert finding["subject"].split()[0] in page.out
        assert f"\n  {finding['level']} " in page.out
    # A path has no place to be broken at.
    assert all(len(line) <= 100 or "Driver=" in line for line in page.out.splitlines())
    assert "\x1b" not in page.out and page.err == ""


def test_without_a_driver_manager_it_says_what_to_install_and_that_sqlite_works() -> None:
    told = doctor("--json", ONECOPY_ODBC_MANAGER="/nonexistent/libodbc.so.2")
    (manager,) = (f for f in told.findings() if f["area"] == "ODBC driver manager")
    assert (manager["level"], told.code) == ("broken", 1)
    assert "/nonexistent/libodbc.so.2" in manager["facts"]["tried"]
    assert "ONECOPY_ODBC_MANAGER" in manager["remedy"] and "sqlite:" in manager["remedy"]
    assert not any(f["area"] == "ODBC drivers" for f in told.findings())
    assert told.level("SQLite") == "ok"


@pytest.mark.parametrize(
    ("target", "words"),
    [
        ("postgresql://me:hush-7f3a@127.0.0.1:1/none", "127.0.0.1"),
        ("Driver=no-such-driver.so;Uid=me;Pwd=hush-7f3a", "no-such-driver.so"),
        ("oracle://me:hush-7f3a@h/d", "oracle"),
        ("sqlite:no-such-file.db", "there is no such file"),
    ],
)
def test_a_database_that_is_not_reached_ends_with_3_and_its_reason(target: str, words: str) -> None:
    told = doctor(target, "--json")
    (finding,) = (f for f in told.findings() if f["area"] == "Database")
    assert (told.code, finding["level"]) == (3, "broken")
    assert words in finding["says"] + finding["remedy"]
    assert "hush" not in told.out + told.err


def test_a_slip_on_the_command_line_ends_with_2() -> None:
    told = doctor("cities.db")
    assert (told.code, told.out) == (2, "")
    assert "sqlite:cities.db" in told.err


def test_a_broken_driver_is_found_with_its_reason(tmp_path: Path) -> None:
    (tmp_path / "psqlodbcw.so").write_bytes(b"\x7fELF, and no more")
    told = doctor("--json", ONECOPY_ODBC_DRIVERS=str(tmp_path))
    (finding,) = (f for f in told.findings() if f["facts"].get("Driver=") == str(tmp_path / "psqlodbcw.so"))
    assert (finding["level"], told.code) == ("broken", 1)
    assert finding["facts"]["reason"] and finding["remedy"]


def test_a_forced_kernel_is_told() -> None:
    told = doctor("--json", ONECOPY_KERNEL="scalar")
    assert told.level("text kernels scalar") == "note"
    assert told.level(f"Python {sys.version_info.major}.{sys.version_info.minor}") == "ok"
