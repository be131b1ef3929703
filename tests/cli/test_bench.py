"""`onecopy bench`: results, refusals and failures of peers. The fake peer is a module with the name
and the interface of apsw or asyncpg."""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple
from xml.etree import ElementTree

import pytest

from onecopy._bench.database import parse
from onecopy._bench.digest import Result, common_form
from onecopy._bench.results import EngineResult, Ratio, WayResult
from onecopy._bench.text import best_peers
from tests.conftest import Database
from tests.support import servers

#: A module with the interface of apsw; `{body}` is executed by `execute`, with `rows` and `self`.
_APSW = """
import os, sqlite3
SQLITE_OPEN_READONLY = 1
class ExecutionCompleteError(Exception): pass
class Cursor:
    def __init__(self, path): self.connection = sqlite3.connect(path)
    def execute(self, sql):
        cursor = self.connection.execute(sql)
        self.names, rows = cursor.description, cursor.fetchall()
        {body}
        self.rows = rows
        return self
    def get_description(self): return self.names
    def fetchall(self): return self.rows
    def __iter__(self): return iter(self.rows)
class Connection:
    def __init__(self, path, flags): self.path = path
    def cursor(self): return Cursor(self.path)
"""


class Done(NamedTuple):
    """The end of a command."""

    code: int
    out: str
    err: str


def command(*arguments: object) -> list[str]:
    return [sys.executable, "-m", "onecopy", "bench", *map(str, arguments)]


def environment(folder: Path) -> dict[str, str]:
    """The environment with the modules of a folder, without the connection strings of test databases."""
    kept = {name: value for name, value in os.environ.items() if servers.PASSWORD not in value}
    return kept | {"PYTHONPATH": str(folder), "COLUMNS": "80", "NO_COLOR": "1"}


def bench(*arguments: object, folder: Path) -> Done:
    done = subprocess.run(
        command(*arguments),
        capture_output=True,
        text=True,
        encoding="utf-8",
        cwd=folder,
        env=environment(folder),
        timeout=110,
        check=False,
    )
    assert "Traceback" not in done.stderr
    return Done(done.returncode, done.stdout, done.stderr)


def figures(*arguments: object, folder: Path) -> dict[str, Any]:
    """The object of `--json`."""
    done = bench(*arguments, "--json", "--rounds", "1", folder=folder)
    assert (done.code, done.err) == (0, "")
    return dict(json.loads(done.out))


def engines(report: dict[str, Any]) -> dict[str, Any]:
    """The engines of the first way, by name."""
    return {engine["name"]: engine for engine in report["ways"][0]["engines"]}


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    """A folder with a SQLite database."""
    with contextlib.closing(sqlite3.connect(tmp_path / "shop.db")) as con:
        con.execute("create table small (id integer primary key)")
        con.execute('create table "the ""items"""(id integer primary key, name text, price real, note text)')
        con.execute("create table item_tag (item, tag, primary key (item, tag)) without rowid")
        con.execute("create view all_items as select * from small, item_tag")
        rows = [(1, "čaj", 2.5, None), (2, "茶", 3.0, "a,b"), (3, 'tea "x"', None, "")]
        con.executemany('insert into "the ""items""" values (?, ?, ?, ?)', rows)
        con.execute("insert into item_tag values (1, 'a'), (2, 'b')")
        con.commit()
    return tmp_path


def fake_apsw(folder: Path, body: str) -> None:
    (folder / "apsw.py").write_text(_APSW.format(body=body), encoding="utf-8")


def test_the_largest_table_is_read_in_each_way(shop: Path) -> None:
    report = figures("sqlite:shop.db", "--ways", "rows,iterate,json,ndjson,csv", folder=shop)
    assert (report["table"], report["rows"], report["rounds"]) == ('the "items"', 3, 1)
    assert report["database"].startswith("SQLite 3.")
    assert [way["way"] for way in report["ways"]] == ["rows", "iterate", "json", "ndjson", "csv"]
    for way in report["ways"]:
        measured = {engine["name"]: engine for engine in way["engines"] if "failure" not in engine}
        assert next(iter(measured)) == "onecopy" and any(name.startswith("sqlite3") for name in measured)
        for name, engine in measured.items():
            assert engine["rows"] == 3 and engine["wall_s"] > 0 and engine["value_differences"] == [], name
            assert ("wall_ratio" in engine) is (name != "onecopy")
        assert way["ledger"]["taken"] == way["ledger"]["converted"] + way["ledger"]["copied"] > 0
    missing = {engine["name"] for engine in report["not_installed"]}
    assert ("apsw" in missing) is (importlib.util.find_spec("apsw") is None)


def test_the_rows_of_a_statement_are_limited(shop: Path) -> None:
    sql = "select tag, item from item_tag order by item; "
    report = figures("sqlite:shop.db", sql, "--rows", "1", "--ways", "csv", folder=shop)
    assert (report["table"], report["rows"], report["limit"]) == ("", 1, 1)
    everything = figures("sqlite:shop.db", sql, "--rows", "all", "--ways", "csv", folder=shop)
    assert (everything["rows"], everything["limit"]) == (2, None)


def test_the_table_fits_a_terminal_and_the_plot_is_a_picture(shop: Path) -> None:
    (shop / "plot.svg").write_text("an older plot")
    arguments = ["sqlite:shop.db", "--ways", "json,rows", "--rounds", "2", "--svg", "plot.svg"]
    done = bench(*arguments, folder=shop)
    assert (done.code, done.err) == (0, "note: the plot is in `plot.svg`\n")
    assert max(map(len, done.out.splitlines())) <= 80
    assert "█" in done.out and "\x1b" not in done.out and "ledger: " in done.out
    picture = ElementTree.parse(shop / "plot.svg").getroot()
    texts = ["".join(element.itertext()) for element in picture.iter("{http://www.w3.org/2000/svg}text")]
    assert {"onecopy", "sqlite3", "rows as Python objects (fetchall)"} <= set(texts)
    assert any('`the "items"`' in text for text in texts)
    assert not list(shop.glob("*.partial"))
    assert bench(*arguments, "--quiet", folder=shop).err == ""


def test_a_peer_that_crashes_is_a_line_of_the_table(shop: Path) -> None:
    fake_apsw(shop, "os.abort()")
    found = engines(figures("sqlite:shop.db", "--ways", "rows", folder=shop))
    assert found["apsw"]["failure"] == "crashed (SIGABRT)"
    assert "failure" not in found["onecopy"] and "failure" not in found["sqlite3"]


def test_a_peer_that_hangs_is_ended_at_the_time_limit(shop: Path) -> None:
    fake_apsw(shop, "import threading; threading.Event().wait()")
    found = engines(figures("sqlite:shop.db", "--ways", "rows", "--time-limit", "8", folder=shop))
    assert found["apsw"]["failure"] == "no answer within 8 s"
    assert "failure" not in found["onecopy"] and "failure" not in found["sqlite3"]


@pytest.mark.parametrize(
    ("body", "member", "expected"),
    [
        ("rows = rows[:-1]", "failure", "returns 2 rows, onecopy 3"),
        ("rows = [r[:3] for r in rows]", "value_differences", ["3 columns instead of 4"]),
        ("rows[0] = (1, 'caj', 2.5, None)", "value_differences", ["`name`"]),
        ("rows = [(str(r[0]), *r[1:]) for r in rows]", "type_differences", ["`id` (str, not int)"]),
        ("rows.reverse()", "value_differences", []),
        ("raise ValueError('no\\nrows')", "failure", "no"),
        ("print('a line on stdout')", "type_differences", []),
    ],
    ids=["rows", "columns", "value", "type", "order", "exception", "print"],
)
def test_a_peer_that_returns_something_else_is_reported(shop: Path, body: str, member: str, expected: object) -> None:
    fake_apsw(shop, body)
    report = figures("sqlite:shop.db", "--ways", "rows", folder=shop)
    assert engines(report)["apsw"][member] == expected
    if member == "value_differences" and expected:
        assert report["ways"][0]["best_peer"] == {"wall": "sqlite3", "cpu": "sqlite3"}


def test_a_peer_that_cannot_be_imported_is_reported(shop: Path) -> None:
    (shop / "apsw.py").write_text("raise ImportError('a library is missing')")
    assert (
        engines(figures("sqlite:shop.db", "--ways", "rows", folder=shop))["apsw"]["failure"] == "a library is missing"
    )


def test_modules_of_the_current_folder_are_not_imported(shop: Path) -> None:
    elsewhere = shop / "modules"
    elsewhere.mkdir()
    (shop / "csv.py").write_text("raise SystemExit(7)")
    done = subprocess.run(
        [
            str(Path(sys.executable).with_name("onecopy")),
            *command("sqlite:shop.db", "--ways", "csv", "--rounds", "1")[3:],
        ],
        capture_output=True,
        cwd=shop,
        env=environment(elsewhere),
        timeout=110,
        check=False,
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("signum", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c_ends_the_workers_and_the_command(shop: Path, signum: int) -> None:
    fifo = shop / "pid"
    os.mkfifo(fifo)
    fake_apsw(shop, f"open({str(fifo)!r}, 'w').write(str(os.getpid())); import threading; threading.Event().wait()")
    with subprocess.Popen(
        command("sqlite:shop.db", "--ways", "rows"), stderr=subprocess.PIPE, cwd=shop, env=environment(shop)
    ) as running:
        # The peer has started to hang when it has written its process id.
        worker = int(fifo.read_text())
        running.send_signal(signum)
        _, err = running.communicate(timeout=60)
    assert (running.returncode, err) == (130, b"note: stopped\n")
    with pytest.raises(ProcessLookupError):
        os.kill(worker, 0)


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["sqlite:none.db"], 3, "error: cannot open the SQLite database `none.db`: there is no such file"),
        (["sqlite::memory:"], 2, "error: each process would have its own database in memory"),
        (["shop.db"], 2, "error: `shop.db` is not a connection string"),
        (["@none.url"], 2, "error: the database cannot be read from `none.url`: No such file or directory"),
        (["sqlite:shop.db", "select * from nowhere"], 1, "error: no such table: nowhere"),
        (["sqlite:shop.db", "delete from small returning *"], 1, "error: "),
        (["sqlite:shop.db", "--ways", "rows,xml"], 2, "`xml` is not a way"),
        (["sqlite:shop.db", "--rounds", "0"], 2, "`0` is not a number from 1 to 1000"),
        (["sqlite:shop.db", "--svg", "none/plot.svg"], 2, "error: the directory of `none/plot.svg` does not exist"),
        (["sqlite:empty.db"], 1, "error: the database has no table"),
    ],
)
def test_a_wrong_argument_is_refused(shop: Path, arguments: list[str], code: int, message: str) -> None:
    (shop / "empty.db").touch()
    done = bench(*arguments, folder=shop)
    assert (done.code, done.out) == (code, "")
    assert message in done.err


def test_a_statement_that_writes_changes_nothing(shop: Path) -> None:
    sql = "delete from item_tag returning item"
    assert bench("sqlite:shop.db", sql, "--rows", "all", folder=shop).code == 1
    with contextlib.closing(sqlite3.connect(shop / "shop.db")) as con:
        assert con.execute("select count(*) from item_tag").fetchone() == (2,)


def test_postgresql_is_measured_and_the_password_is_nowhere(postgres_native: Database, tmp_path: Path) -> None:
    (tmp_path / "database.url").write_text(postgres_native.odbc)
    # It raises an error with the connection string, and saves what other users could see.
    (tmp_path / "asyncpg.py").write_text(
        "async def connect(dsn, server_settings):\n"
        "    import os\n"
        "    seen = [open(f'/proc/{pid}/{name}', 'rb').read() for pid in (os.getpid(), os.getppid())\n"
        "            for name in ('cmdline', 'environ')]\n"
        "    open('seen', 'wb').write(b'\\n'.join(seen))\n"
        "    raise ValueError('cannot connect to ' + dsn)\n"
    )
    sql = "select * from t1000"
    report = figures("@database.url", sql, "--ways", "rows,csv", folder=tmp_path)
    assert report["rows"] == 1000 and report["database"].startswith("PostgreSQL")
    found = engines(report)
    assert found["asyncpg"]["failure"] == "cannot connect to …"
    others = [name for name in found if name.startswith("psycopg (")]
    assert [found[name]["value_differences"] for name in others] == [[]] * len(others)
    csv = {engine["name"]: engine for engine in report["ways"][1]["engines"]}
    if "psql" in csv:
        assert (csv["psql"]["rows"], csv["psql"]["value_differences"]) == (1000, [])
    seen = (tmp_path / "seen").read_bytes()
    assert b"child.py" in seen and b"database.url" in seen
    assert postgres_native.password.encode() not in seen
    assert postgres_native.password not in json.dumps(report)


def test_mariadb_is_measured(mariadb: Database, tmp_path: Path) -> None:
    (tmp_path / "database").write_text(mariadb.odbc)
    report = figures("@database", "select id, note, price from t1000", "--ways", "rows", folder=tmp_path)
    measured = {name: engine for name, engine in engines(report).items() if "failure" not in engine}
    assert {"onecopy", "PyMySQL", "pyodbc"} <= set(measured)
    assert {engine["rows"] for engine in measured.values()} == {1000}
    assert all(engine["value_differences"] == [] for engine in measured.values())


def test_a_spread_that_contains_1_is_parity() -> None:
    assert Ratio.of([2.0, 4.0, 3.0], [1.0, 1.0, 1.0]) == Ratio(3.0, 2.0, 4.0)
    assert Ratio.of([2.0, 4.0], [1.0, 1.0]).verdict == "faster"
    assert Ratio.of([0.9, 1.1], [1.0, 1.0]).verdict == "parity"
    assert Ratio.of([0.5, 0.9], [1.0, 1.0]).verdict == "slower"


def test_the_best_peer_has_the_values_of_onecopy() -> None:
    ours = EngineResult("onecopy", is_ours=True, wall_s=[2.0], cpu_s=[1.0])
    quick = EngineResult("quick", wall_s=[1.0], cpu_s=[1.0], value_differences=["`a`"])
    slow = EngineResult("slow", wall_s=[1.5], cpu_s=[1.0])
    way = WayResult("rows", "rows", [ours, quick, slow])
    way.set_ratios()
    expected = "best peer: slow, wall 0.75 (0.75-0.75): onecopy is slower; CPU 1.00 (1.00-1.00): parity"
    assert best_peers(way) == expected


def test_a_digest_does_not_depend_on_the_order_or_the_type_of_numbers() -> None:
    from decimal import Decimal

    one = Result(3, ["a", "b"], [[1, 2, None], ["x", "y", "z"]])
    other = Result(3, ["a", "b"], [[None, Decimal(2), 1.0], ["z", "y", "x"]])
    assert [c.digest for c in one.digests()] == [c.digest for c in other.digests()]
    changed = Result(3, ["a", "b"], [[1, 2, 0], ["x", "y", "Z"]])
    assert all(a.digest != b.digest for a, b in zip(one.digests(), changed.digests(), strict=True))
    assert Result(1, [], [[[1]]]).digests()[0].digest is None


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("2003-01-02 03:04:05.500", "2003-01-02T03:04:05.5"),
        ("2003-01-02", "2003-01-02T00:00:00"),
        ("03:04:05Z", "03:04:05+00"),
        ("1.10", 1.1),
        ("true", True),
        ("t", "True"),
        ('{"b": 1, "a": 2}', {"a": 2, "b": 1}),
        ("", None),
    ],
)
def test_the_common_form_is_that_of_an_equal_value(one: object, other: object) -> None:
    assert common_form(one) == common_form(other)


@pytest.mark.parametrize(
    ("text", "dialect", "keywords"),
    [
        (
            "postgresql://me:p%40ss@w@host:5433/shop?sslmode=require",
            "postgresql",
            {
                "host": "host",
                "port": "5433",
                "user": "me",
                "password": "p@ss@w",
                "dbname": "shop",
                "sslmode": "require",
            },
        ),
        ("postgres://a,[::1]:2/x", "postgresql", {"host": "a,::1", "port": ",2", "dbname": "x"}),
        ("postgresql:host=h password='a b\\'c'", "postgresql", {"host": "h", "password": "a b'c"}),
        ("mariadb://me@h/x", "mysql", {"host": "h", "user": "me", "dbname": "x"}),
        (
            "Driver=libmsodbcsql-18.so;Server=h,1433;Uid=me;Pwd={a;}}b};Database=x",
            "mssql",
            {"host": "h", "port": "1433", "user": "me", "password": "a;}b", "dbname": "x"},
        ),
        ("DSN=shop", "generic", {}),
    ],
)
def test_a_connection_string_has_keywords(text: str, dialect: str, keywords: dict[str, str]) -> None:
    database = parse(text)
    assert (database.dialect, database.keywords) == (dialect, keywords)
    if password := keywords.get("password"):
        assert password not in database.without_secrets(f"{text} {password} {database.url}")
