"""`onecopy doctor`: its findings for each database, remedies for what is missing, and no passwords
in its output."""

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
    """The exit code and the output of `onecopy doctor`."""

    code: int
    out: str
    err: str

    def findings(self) -> list[dict[str, Any]]:
        """The list of findings in the JSON output."""
        assert self.out, f"no findings: exit code {self.code}, {self.err}"
        found: list[dict[str, Any]] = json.loads(self.out)["findings"]
        return found

    def level(self, subject: str) -> str:
        """The level of the only finding whose subject starts with ``subject``."""
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


#: Known defects of drivers: SQLite ODBC truncates doubles.
BROKEN = {"sqlite_odbc": {"double"}}
BUFFERED = {"mariadb", "sqlite_odbc"}


def test_each_driver_has_the_expected_findings(any_odbc: Database) -> None:
    report = doctor(any_odbc.odbc, "--json")
    broken = {f["subject"] for f in report.findings() if f["area"] == "Database" and f["level"] == "broken"}
    assert broken == BROKEN.get(any_odbc.profile, set())
    assert not any("the query failed" in f["says"] for f in report.findings())
    assert report.level("connected") == "ok"
    if any_odbc.profile != "postgres_native":  # It has no driver.
        in_use = next(f for f in report.findings() if f["subject"].endswith(", in use"))
        assert in_use["level"] == "ok" and "there and back" in in_use["says"]
    assert report.level("text of 1,000,000 characters as a parameter") == "ok"
    assert report.level("integer of 64 bit") == "ok"
    assert report.level("a result of 16 MB") == ("note" if any_odbc.profile in BUFFERED else "ok")
    assert report.code == (1 if any(f["level"] == "broken" for f in report.findings()) else 0)
    assert any_odbc.password not in report.out + report.err


def test_the_page_and_the_json_agree(tmp_path: Path) -> None:
    target = f"sqlite:{tmp_path / 'x.db'}"
    onecopy.connect(target).execute("create table t (a)")
    page, report = doctor(target), doctor(target, "--json")
    assert page.code == report.code
    for finding in report.findings():
        assert finding["subject"].split()[0] in page.out
        assert f"\n  {finding['level']} " in page.out
    # A path has no spaces at which it could be wrapped.
    assert all(len(line) <= 100 or "Driver=" in line for line in page.out.splitlines())
    assert "\x1b" not in page.out and page.err == ""


def test_without_a_driver_manager_the_remedy_is_shown_and_sqlite_works() -> None:
    report = doctor("--json", ONECOPY_ODBC_MANAGER="/nonexistent/libodbc.so.2")
    (manager,) = (f for f in report.findings() if f["area"] == "ODBC driver manager")
    assert (manager["level"], report.code) == ("broken", 1)
    assert "/nonexistent/libodbc.so.2" in manager["facts"]["tried"]
    assert "ONECOPY_ODBC_MANAGER" in manager["remedy"] and "sqlite:" in manager["remedy"]
    assert not any(f["area"] == "ODBC drivers" for f in report.findings())
    assert report.level("SQLite") == "ok"


@pytest.mark.parametrize(
    ("target", "words"),
    [
        ("postgresql://me:hush-7f3a@127.0.0.1:1/none", "127.0.0.1"),
        ("Driver=no-such-driver.so;Uid=me;Pwd=hush-7f3a", "no-such-driver.so"),
        ("oracle://me:hush-7f3a@h/d", "oracle"),
        ("sqlite:no-such-file.db", "there is no such file"),
    ],
)
def test_an_unreachable_database_ends_with_3_and_the_reason(target: str, words: str) -> None:
    report = doctor(target, "--json")
    (finding,) = (f for f in report.findings() if f["area"] == "Database")
    assert (report.code, finding["level"]) == (3, "broken")
    assert words in finding["says"] + finding["remedy"]
    assert "hush" not in report.out + report.err


def test_a_wrong_argument_ends_with_2() -> None:
    report = doctor("cities.db")
    assert (report.code, report.out) == (2, "")
    assert "sqlite:cities.db" in report.err


def test_a_broken_driver_is_found_with_its_reason(tmp_path: Path) -> None:
    (tmp_path / "psqlodbcw.so").write_bytes(b"\x7fELF, and no more")
    report = doctor("--json", ONECOPY_ODBC_DRIVERS=str(tmp_path))
    (finding,) = (f for f in report.findings() if f["facts"].get("Driver=") == str(tmp_path / "psqlodbcw.so"))
    assert (finding["level"], report.code) == ("broken", 1)
    assert finding["facts"]["reason"] and finding["remedy"]


def test_a_forced_kernel_is_reported() -> None:
    report = doctor("--json", ONECOPY_KERNEL="scalar")
    assert report.level("text kernels scalar") == "note"
    assert report.level(f"Python {sys.version_info.major}.{sys.version_info.minor}") == "ok"
