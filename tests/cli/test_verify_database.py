"""`onecopy verify --database`: the number of exported rows against the statement's in the database."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

#: The command, as in the tests of the gateway.
COMMAND = [os.environ["ONECOPY_COMMAND"]] if "ONECOPY_COMMAND" in os.environ else [sys.executable, "-m", "onecopy"]

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Runs the command in a folder with a database of 100 rows; returns exit code, stdout and
    stderr."""
    change(tmp_path, "create table item (id integer primary key, name text)")
    change(
        tmp_path,
        "insert into item with n(i) as (select 1 union all select i + 1 from n where i < 100) select i, 'x' from n",
    )

    def run(*arguments: str) -> tuple[int, str, str]:
        done = subprocess.run([*COMMAND, *arguments], cwd=tmp_path, capture_output=True, text=True, check=False)
        assert "panicked" not in done.stderr
        return done.returncode, done.stdout, done.stderr

    return run


def change(folder: Path, sql: str) -> None:
    """Executes one statement, by an independent client."""
    with contextlib.closing(sqlite3.connect(folder / "shop.db")) as con:
        con.execute(sql)
        con.commit()


def exported(run: Run, output: str, *options: str, sql: str = "select * from item") -> None:
    code, _, err = run("export", "sqlite:shop.db", sql, "-o", output, *options)
    assert code == 0, err


@pytest.mark.parametrize("options", [("--format", "csv"), ("--format", "parquet", "--parts", "3")])
def test_equal_counts_are_reported(run: Run, options: tuple[str, ...]) -> None:
    exported(run, "out/", *options)
    code, out, err = run("verify", "out", "--database", "sqlite:shop.db")
    assert (code, out) == (0, ""), err
    assert "100 rows" in err and "no difference; the statement has 100 rows now" in err
    assert run("verify", "out", "--database", "sqlite:shop.db", "--quiet") == (0, "", "")


def test_rows_that_were_added_since_are_a_difference(run: Run, tmp_path: Path) -> None:
    exported(run, "item.csv")
    change(tmp_path, "insert into item values (101, 'y')")
    assert run("verify", "item.csv")[0] == 0
    code, out, err = run("verify", "item.csv", "--database", "sqlite:shop.db")
    assert (code, out) == (1, "the manifest has 100 rows, and the statement has 101 now\n")
    assert "no difference" not in err


def test_both_differences_are_reported(run: Run, tmp_path: Path) -> None:
    exported(run, "item.csv")
    change(tmp_path, "delete from item where id > 7")
    with (tmp_path / "item.csv").open("a") as file:
        file.write("8,z\n")
    code, out, _ = run("verify", "item.csv", "--database", "sqlite:shop.db")
    assert code == 1
    assert "it has 101 rows, and the manifest 100" in out and "the statement has 7 now" in out


def test_parameters_are_given_again(run: Run) -> None:
    exported(run, "item.csv", "--param", "n=40", sql="select * from item where id <= :n")
    code, _, err = run("verify", "item.csv", "--database", "sqlite:shop.db")
    assert code == 2 and "write --param n=VALUE" in err
    code, out, err = run("verify", "item.csv", "--database", "sqlite:shop.db", "--param", "n=40")
    assert (code, out) == (0, ""), err
    exported(run, "parts/", "--format", "csv", "--parts", "2", "--param", "40", sql="select * from item where id <= ?")
    assert run("verify", "parts", "--database", "sqlite:shop.db", "--param", "40")[0] == 0
    assert run("verify", "parts", "--database", "sqlite:shop.db")[0] == 1


def test_bad_input_is_refused(run: Run, tmp_path: Path) -> None:
    exported(run, "item.csv")
    assert run("verify", "item.csv", "--param", "1")[0] == 2
    code, _, err = run("verify", "item.csv", "--database", "sqlite:absent.db")
    assert code == 3 and "no such file" in err
    assert not (tmp_path / "absent.db").exists()
    change(tmp_path, "drop table item")
    code, _, err = run("verify", "item.csv", "--database", "sqlite:shop.db")
    assert code == 1 and "no such table" in err
