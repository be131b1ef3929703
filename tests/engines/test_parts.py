"""`onecopy.parts`: plans and parts as Python objects."""

from __future__ import annotations

import json
import pickle
import subprocess
import sys
from pathlib import Path

import pytest

import onecopy
from onecopy import parts
from onecopy._engine import _database


@pytest.fixture
def shop(tmp_path: Path) -> str:
    """The connection string of a database with a table of 1,000 rows."""
    target = f"sqlite:{tmp_path / 'shop.db'}"
    con = onecopy.connect(target)
    con.execute("create table item (id integer primary key, name text)")
    con.executemany("insert into item values (?, ?)", [(i, f"名{i % 7}") for i in range(1000)])
    con.commit()
    con.close()
    return target


def test_the_union_of_the_parts_is_the_whole_result(shop: str) -> None:
    plan = parts.plan(shop, "select * from item where name <> ?", ["名3"], parts=4)
    con = onecopy.connect(shop)
    rows = [row for part in plan.parts for row in part.execute(con)]
    assert rows == con.execute("select * from item where name <> '名3' order by id").fetchall()
    assert len(plan.parts) == 4 and plan.key_kind == "primary key"


def test_a_plan_and_its_parts_are_read_back_from_json_and_pickle(shop: str) -> None:
    plan = parts.plan(shop, "select * from item", parts=3, key="name")
    assert parts.Plan.from_json(plan.to_json()) == plan
    for part in plan.parts:
        assert parts.PartSpec.from_json(part.to_json()) == part
        assert pickle.loads(pickle.dumps(part)) == part
        assert len(pickle.dumps(part)) < 1000 and shop.encode() not in pickle.dumps(part)
    assert len(set(plan.parts)) == len(plan.parts)


def test_the_command_exports_a_plan_of_python_and_python_reads_a_plan_of_the_command(shop: str, tmp_path: Path) -> None:
    sql = "select * from item where name <> ?"
    made = parts.plan(shop, sql, ["名3"], parts=3)
    (tmp_path / "plan.json").write_text(made.to_json(), encoding="utf-8")
    command = [sys.executable, "-m", "onecopy"]
    export = ["export", shop, "--plan", "plan.json", "-o", "out/", "--format", "csv", "--check", "-q"]
    subprocess.run([*command, *export], cwd=tmp_path, check=True)
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_text())
    assert manifest["plan"] == made.parts[0].plan and manifest["query"] == made.sql == sql
    planned = subprocess.run(
        [*command, "plan", shop, sql, "-p", "名3", "--parts", "3", "--format", "json"], capture_output=True, check=True
    )
    assert parts.Plan.from_json(planned.stdout) == made


def test_a_plan_of_one_part_needs_no_key(shop: str) -> None:
    con = onecopy.connect(shop)
    for sql in ["select name, count(*) from item group by name", "select 1", "select max(id) from item where {part}"]:
        (part,) = parts.plan(con, sql, parts=1).parts
        assert part.execute(con).fetchall() == con.execute(sql.replace("{part}", "1 = 1")).fetchall()
        assert part.rows is None
    # A table with a key has an estimate.
    assert parts.plan(con, "select * from item", parts=1).parts[0].rows == 1000


def test_a_plan_that_is_incomplete_or_of_two_plans_is_refused(shop: str) -> None:
    plan = parts.plan(shop, "select * from item", parts=2)
    other = parts.plan(shop, "select id from item", parts=2)
    members = json.loads(plan.to_json())
    wrong = [
        members | {"version": 2},
        members | {"parts": members["parts"][:1]},
        members | {"parts": [members["parts"][0], json.loads(other.parts[1].to_json())]},
        members | {"notes": None},
        [],
    ]
    for value in wrong:
        with pytest.raises(ValueError, match="plan"):
            parts.Plan.from_json(json.dumps(value))
    part = json.loads(plan.parts[0].to_json())
    for name, value in [("part", True), ("part", 3), ("values", [{"type": "int"}]), ("sql", None)]:
        with pytest.raises(ValueError, match="not a part"):
            parts.PartSpec.from_json(json.dumps(part | {name: value}))
    with pytest.raises(ValueError, match="not valid JSON"):
        parts.PartSpec.from_json("{")


def test_a_part_of_a_changed_table_is_refused(shop: str) -> None:
    part = parts.plan(shop, "select * from item", parts=2).parts[0]
    con = onecopy.connect(shop)
    con.execute("alter table item add column price real")
    with pytest.raises(onecopy.Error, match="make a new plan"):
        part.execute(con)


def test_hold_needs_a_connection(shop: str) -> None:
    with pytest.raises(onecopy.ProgrammingError, match="pass a connection"):
        parts.plan(shop, "select * from item", parts=2, hold=True)


@pytest.mark.parametrize(
    "database",
    [
        "postgresql://ann:s3cr3t@db/shop",
        "postgresql://db/shop?user=ann&password=s3cr3t",
        "Driver=psqlodbcw;Server=db;UID=ann;PWD=s3cr3t",
        "Driver=x;Access Token = s3cr3t",
    ],
)
def test_a_connection_string_with_a_password_is_refused(database: str) -> None:
    with pytest.raises(onecopy.ProgrammingError, match="env:NAME") as caught:
        _database.check(database)
    assert "s3cr3t" not in str(caught.value)


def test_the_name_of_a_secret_is_resolved_on_this_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "url").write_text("postgresql://ann:s3cr3t@db/shop\n", encoding="utf-8")
    monkeypatch.setenv("SHOP", "sqlite:shop.db")
    assert _database.connection_string("env:SHOP") == "sqlite:shop.db"
    assert _database.connection_string(f"@{tmp_path / 'url'}") == "postgresql://ann:s3cr3t@db/shop"
    assert _database.connection_string("postgresql://ann@db/shop") == "postgresql://ann@db/shop"
    monkeypatch.delenv("SHOP")
    for name in ("env:SHOP", f"@{tmp_path / 'none'}"):
        with pytest.raises(onecopy.InterfaceError, match="on each worker"):
            _database.connection_string(name)
