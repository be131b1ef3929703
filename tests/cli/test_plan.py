"""`onecopy plan`: over each database, each row of a statement is in exactly one part, for keys of each
type and collation; parts of skewed keys are balanced; a held snapshot is what all parts read."""

from __future__ import annotations

import contextlib
import datetime
import itertools
import json
import random
import signal
import subprocess
import sys
import uuid
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import onecopy
from tests.conftest import Database

pytestmark = pytest.mark.filterwarnings("ignore::onecopy.DriverWarning")
COMMAND = [sys.executable, "-m", "onecopy"]
N_ROWS = 400


class Done(NamedTuple):
    """The end of a command."""

    code: int
    out: str
    err: str


def command(*arguments: object) -> Done:
    """Runs the command to its end."""
    done = subprocess.run(
        [*COMMAND, *map(str, arguments)], capture_output=True, text=True, encoding="utf-8", timeout=120, check=False
    )
    assert "panicked" not in done.stderr and "Traceback" not in done.stderr
    return Done(done.returncode, done.stdout, done.stderr)


def plan(target: str, sql: str, n_parts: int, *arguments: object) -> dict[str, Any]:
    """The plan of a statement, which must succeed."""
    done = command("plan", target, sql, "--parts", n_parts, "--format", "json", *arguments)
    assert done.code == 0, done.err
    made: dict[str, Any] = json.loads(done.out)
    assert [(part["part"], part["parts"]) for part in made["parts"]] == [
        (number, len(made["parts"])) for number in range(1, len(made["parts"]) + 1)
    ]
    return made


def value(typed: dict[str, str]) -> Any:
    """The Python value of a parameter in the JSON."""
    kind, text = typed["type"], typed.get("value", "")
    if kind in ("time", "timestamp"):
        # Without the last digits: Python has microseconds.
        assert text.endswith("000") or text[-1] == "m"
    of: dict[str, Callable[[], Any]] = {
        "null": lambda: None,
        "bool": lambda: text == "true",
        "int": lambda: int(text),
        "float": lambda: float(text),
        "decimal": lambda: Decimal(text),
        "text": lambda: text,
        "bytes": lambda: bytes.fromhex(text),
        "date": lambda: datetime.date.fromisoformat(text),
        "time": lambda: datetime.time.fromisoformat(text[:-3]),
        "timestamp": lambda: timestamp(text),
        "uuid": lambda: uuid.UUID(text),
    }
    return of[kind]()


def timestamp(text: str) -> datetime.datetime:
    """The value of a timestamp in the JSON; its offset is in minutes."""
    clock, sign, offset = text[:29], text[29:30], text[30:-1]
    moment = datetime.datetime.fromisoformat(clock[:-3])
    if not sign:
        return moment
    return moment.replace(tzinfo=datetime.timezone(datetime.timedelta(minutes=int(sign + offset))))


def sizes(connection: onecopy.Connection, sql: str, made: dict[str, Any], *values: Any) -> list[int]:
    """The number of rows of each part, after a check that each row is in exactly one of them."""
    whole = sorted(row[0] for row in connection.execute(sql.replace("{part}", "1 = 1"), values).fetchall())
    parts = [
        [row[0] for row in connection.execute(part["sql"], [value(typed) for typed in part["values"]]).fetchall()]
        for part in made["parts"]
    ]
    connection.rollback()
    assert sorted(itertools.chain(*parts)) == whole, made
    return [len(part) for part in parts]


#: Texts that collations order and merge differently.
TEXTS = [
    "",
    " ",
    "a",
    "A",
    "a ",
    "b",
    "B",
    "ä",
    "Ä",
    "e\u0301",
    "\u00e9",
    "ss",
    "ß",
    "z",
    "_",
    "-",
    "10",
    "9",
    "I",
    "ı",
]


def of_kind(kind: str, rng: random.Random) -> Any:
    """A random key of a kind; the values occur several times."""
    n = rng.randrange(60)
    of: dict[str, Callable[[], Any]] = {
        "int": lambda: n * 1_000_000_007 - 30_000_000_000,
        "text": lambda: rng.choice(TEXTS) + rng.choice(TEXTS),
        "uuid": lambda: str(uuid.UUID(int=n * (2**121 + 12345))),
        "date": lambda: datetime.date(1999, 12, 1) + datetime.timedelta(days=n),
        "timestamp": lambda: datetime.datetime(2024, 2, 28, 23) + datetime.timedelta(minutes=37 * n, microseconds=n),
        "decimal": lambda: Decimal(n * 7919 - 200_000) / 100,
        "float": lambda: n / 7,
        "bytes": lambda: bytes([n, 255, 0]),
    }
    return of[kind]()


class Column(NamedTuple):
    """A declaration of a key column, and the kind of its values."""

    declaration: str
    kind: str


SQLITE = [
    Column("integer", "int"),
    Column("text", "text"),
    Column("text collate nocase", "text"),
    Column("text collate rtrim", "text"),
    Column("text", "uuid"),
    Column("date", "date"),
    Column("real", "float"),
    Column("blob", "bytes"),
]
POSTGRES = [
    Column("bigint", "int"),
    Column('text collate "C"', "text"),
    Column('text collate "en-x-icu"', "text"),
    Column("varchar(20) collate plan_ci", "text"),
    Column("char(8)", "text"),
    Column("uuid", "uuid"),
    Column("date", "date"),
    Column("timestamp", "timestamp"),
    Column("timestamptz", "timestamp"),
    Column("numeric(12, 2)", "decimal"),
    Column("double precision", "float"),
]
MARIADB = [
    Column("bigint", "int"),
    Column("varchar(20) character set utf8mb4 collate utf8mb4_bin", "text"),
    Column("varchar(20) character set utf8mb4 collate utf8mb4_general_ci", "text"),
    Column("varchar(20) character set utf8mb4 collate utf8mb4_unicode_ci", "text"),
    Column("varchar(20) character set utf8mb4 collate utf8mb4_nopad_bin", "text"),
    Column("uuid", "uuid"),
    Column("date", "date"),
    Column("datetime(6)", "timestamp"),
    Column("decimal(12, 2)", "decimal"),
    Column("double", "float"),
]
COLUMNS = {
    "sqlite": SQLITE,
    # The driver truncates doubles.
    "sqlite_odbc": [column for column in SQLITE if column.kind not in ("float", "bytes")],
    "postgres_native": POSTGRES,
    "postgres": POSTGRES,
    "mariadb": MARIADB,
}
CASES = [(profile, column) for profile, columns in COLUMNS.items() for column in columns]


@pytest.fixture(scope="module")
def targets(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The connection strings by profile; a database that is missing skips the test."""
    file = tmp_path_factory.mktemp("plan") / "plan.db"

    def target(profile: str) -> str:
        if profile == "sqlite":
            return f"sqlite:{file}"
        # `postgres` has parameters; its module-wide value is requested by the names of the profiles.
        name = {"postgres": "psqlodbc"}.get(profile, profile)
        database: Database = request.getfixturevalue(name)
        return database.odbc

    return target


@contextlib.contextmanager
def table(target: str, profile: str, declarations: str, rows: list[tuple[Any, ...]]) -> Iterator[onecopy.Connection]:
    """A connection to a database that has the table `part_t` with these rows."""
    with contextlib.closing(onecopy.connect(target)) as connection:
        connection.execute("drop table if exists part_t")
        if profile.startswith("postgres"):
            connection.execute("drop collation if exists plan_ci")
            connection.execute(
                "create collation plan_ci (provider = icu, locale = 'und-u-ks-level2', deterministic = false)"
            )
        connection.execute(f"create table part_t ({declarations})")
        marks = ", ".join("?" * len(rows[0]))
        connection.cursor().executemany(f"insert into part_t values ({marks})", rows)
        connection.commit()
        try:
            yield connection
        finally:
            connection.rollback()
            connection.execute("drop table part_t")
            connection.commit()


def keys(column: Column, seed: str) -> list[tuple[Any, ...]]:
    """Rows with an id, a key that can be NULL, and a second key."""
    rng = random.Random(seed)
    null = [None, *range(1, 9)]
    return [(i, None if rng.random() < 0.1 else of_kind(column.kind, rng), rng.choice(null)) for i in range(N_ROWS)]


@pytest.mark.parametrize(("profile", "column"), CASES, ids=[f"{p}-{c.declaration[:36]}" for p, c in CASES])
def test_each_row_is_in_exactly_one_part(profile: str, column: Column, targets: Any) -> None:
    target = targets(profile)
    rows = keys(column, f"{profile} {column}")
    declarations = f"id integer primary key, k {column.declaration}, l integer"
    with table(target, profile, declarations, rows) as connection:
        for sql, key, n_parts in [
            ("select * from part_t", "k", 7),
            ("select id, k, l from part_t where l is null or l > ? -- c", "k,l", 5),
            ("select id, k, abs(id) as a from part_t", "k", 16),
            ("select a.id from part_t a join part_t b on a.id = b.id where {part}", "a.k", 3),
        ]:
            parameters = ["--param", "2"] if "?" in sql else []
            # Without `k` in the result, its quantiles are unknown.
            result = sql.replace("select a.id from", "select a.id, a.k from")
            made = plan(target, result, n_parts, "--key", key, *parameters)
            counts = sizes(connection, result, made, *([2] if parameters else []))
            assert len(counts) <= n_parts + 1
            ranges = counts[:-1]
            assert max(ranges) <= 3 * sum(ranges) / len(ranges), (counts, made["notes"])


@pytest.mark.parametrize("profile", COLUMNS)
def test_the_key_of_a_table_is_its_primary_key(profile: str, targets: Any) -> None:
    target = targets(profile)
    rows = [(i * 3, i % 4, f"text {i}") for i in range(N_ROWS)]
    declarations = "id integer not null, k integer not null, t varchar(20), primary key (k, id)"
    with table(target, profile, declarations, rows) as connection:
        made = plan(target, "select * from part_t", 8)
        assert made["key_kind"] == "primary key"
        # Four values of the first column are too few for eight parts.
        if made["parts"][0]["key"] != ["k", "id"]:
            assert profile.startswith("sqlite"), "only SQLite permits NULL in a primary key"
        assert sizes(connection, "select * from part_t", made) == [50] * 8


@pytest.mark.parametrize("profile", [profile for profile in COLUMNS if profile != "mariadb"])
def test_a_table_without_a_key_is_divided_by_its_physical_addresses(profile: str, targets: Any) -> None:
    target = targets(profile)
    rows = [(i, "x" * 500) for i in range(2000)]
    with table(target, profile, "id integer, t text", rows) as connection:
        sql = "select * from part_t"
        made = plan(target, sql, 8)
        counts = sizes(connection, sql, made)
        assert made["key_kind"] == "physical address"
        assert len(counts) == 8 and max(counts) < 1.3 * 2000 / 8
        assert "reaches" in made["index"] or "can use" in made["index"]


def test_a_table_of_mariadb_without_a_key_needs_one(targets: Any) -> None:
    target = targets("mariadb")
    with table(target, "mariadb", "id integer, e enum('b', 'a')", [(1, "a")]):
        done = command("plan", target, "select * from part_t", "--parts", 4)
        assert done.code == 2 and "no physical addresses" in done.err and "--key NAME" in done.err
        done = command("plan", target, "select * from part_t", "--parts", 4, "--key", "e")
        assert done.code == 2 and "`order by` and `<`" in done.err


@pytest.mark.parametrize("profile", COLUMNS)
def test_sixteen_parts_of_zipf_keys_are_balanced(profile: str, targets: Any) -> None:
    target = targets(profile)
    ranks = [rank for rank in range(1, 200) for _ in range(int(1500 / rank**1.1))]
    random.Random(1).shuffle(ranks)
    rows = list(enumerate(ranks))
    with table(target, profile, "id integer primary key, k integer", rows) as connection:
        made = plan(target, "select * from part_t", 16, "--key", "k")
        counts = sizes(connection, "select * from part_t", made)[:16]
        imbalance = max(counts) * 16 / sum(counts)
        assert imbalance < 1.3, (imbalance, counts)


def test_a_large_table_of_postgres_is_sampled(postgres_native: Database) -> None:
    target = postgres_native.odbc
    with contextlib.closing(onecopy.connect(target)) as connection:
        connection.execute("drop table if exists part_large")
        connection.execute("create table part_large as select n id, md5(n::text) k from generate_series(1, 200000) n")
        connection.commit()
        connection.execute("analyze part_large")
        connection.commit()
        sql = "select * from part_large"
        made = plan(target, sql, 8, "--key", "k", "--sample-rows", 20_000)
        counts = sizes(connection, sql, made)[:8]
        assert max(counts) < 1.3 * 25_000
        estimated = sum(part["rows"] for part in made["parts"])
        assert abs(estimated - 200_000) < 20_000
        connection.execute("drop table part_large")
        connection.commit()


def test_the_sentence_about_the_index_is_that_of_the_database(targets: Any) -> None:
    rows = [(i, i * 7 % 4001, i) for i in range(4000)]
    for profile in ("sqlite", "postgres_native", "mariadb"):
        target = targets(profile)
        with table(target, profile, "id integer primary key, k integer, l integer", rows) as connection:
            connection.execute("create index part_i on part_t (k)")
            connection.commit()
            for sql, key, has_index in [
                ("select * from part_t", "id", True),
                ("select id, l from part_t", "l", False),
                ("select id, l + 0 as n, k + 0 as m from part_t", "m", False),
                ("select id from (select id, k from part_t where {part}) t", "k", True),
            ]:
                result = sql.replace("select id from (", "select id, k from (")
                index = plan(target, result, 20, "--key", key)["index"]
                assert ("reaches no index" not in index) is has_index, (profile, sql, index)


def test_a_part_inside_of_one_value_reads_only_its_own_rows(postgres_native: Database) -> None:
    target = postgres_native.odbc
    with contextlib.closing(onecopy.connect(target)) as connection:
        connection.execute("drop table if exists part_heavy")
        connection.execute(
            "create table part_heavy as select case when n % 10 = 0 then n else 5 end as a, n as b"
            " from generate_series(1, 40000) n"
        )
        connection.execute("alter table part_heavy add primary key (a, b)")
        connection.commit()
        connection.execute("analyze part_heavy")
        connection.commit()
        sql = "select * from part_heavy"
        made = plan(target, sql, 8, "--key", "a,b")
        counts = sizes(connection, sql, made)
        assert sum(counts) == 40_000 and max(counts) < 1.3 * 5000
        connection.execute("set enable_seqscan = off")
        for part in made["parts"]:
            values = [value(typed) for typed in part["values"]]
            lines = connection.execute("explain (analyze) " + part["sql"], values).fetchall()
            assert not any("Rows Removed" in line for (line,) in lines), lines
        connection.execute("drop table part_heavy")
        connection.commit()


def read_plan(process: subprocess.Popen[str]) -> dict[str, Any]:
    """The plan on the stdout of a command that continues."""
    assert process.stdout is not None
    lines = []
    for line in process.stdout:
        lines.append(line)
        if line == "}\n":
            made: dict[str, Any] = json.loads("".join(lines))
            return made
    raise AssertionError("the command ended without a plan")


def test_all_parts_read_the_snapshot_that_is_held(postgres_native: Database) -> None:
    target = postgres_native.odbc
    rows = [(i, i % 7) for i in range(100)]
    with table(target, "postgres_native", "id integer primary key, k integer", rows) as connection:
        arguments = ["plan", target, "select * from part_t", "--parts", "4", "--hold", "--quiet"]
        with subprocess.Popen([*COMMAND, *arguments], stdout=subprocess.PIPE, text=True) as process:
            made = read_plan(process)
            connection.execute("insert into part_t values (1000, 1)")
            connection.execute("delete from part_t where id = 50")
            connection.commit()
            ids = []
            for part in made["parts"]:
                with contextlib.closing(onecopy.connect(target)) as reader:
                    reader.execute("set transaction isolation level repeatable read, read only")
                    reader.execute(f"set transaction snapshot '{part['snapshot']}'")
                    values = [value(typed) for typed in part["values"]]
                    ids += [row[0] for row in reader.execute(part["sql"], values).fetchall()]
            assert sorted(ids) == list(range(100))
            process.send_signal(signal.SIGINT)
            assert process.wait(60) == 0
        with contextlib.closing(onecopy.connect(target)) as reader:
            reader.execute("set transaction isolation level repeatable read, read only")
            with pytest.raises(onecopy.Error):
                reader.execute(f"set transaction snapshot '{made['parts'][0]['snapshot']}'")


@pytest.mark.parametrize(
    ("sql", "arguments", "words"),
    [
        ("select * from t", ["--parts", "0"], "must be 1 to 10000"),
        ("select * from t", ["--parts", "x"], "invalid value"),
        ("select * from t", ["--parts", "2", "--key", "nothing"], "has no column `nothing`"),
        ("select count(*) from t", ["--parts", "2"], "--key NAME"),
        ("delete from t", ["--parts", "2"], "begins with `delete`"),
        ("select * from t", ["--parts", "2", "--hold"], "SQLite has no snapshot"),
        ("select a.id, b.id, a.k + 1 from t a, t b", ["--parts", "2", "--key", "id"], "have the name `id`"),
    ],
)
def test_wrong_arguments_end_with_2_and_a_remedy(sql: str, arguments: list[str], words: str, tmp_path: Path) -> None:
    target = f"sqlite:{tmp_path / 'x.db'}"
    with contextlib.closing(onecopy.connect(target)) as connection:
        connection.execute("create table t (id integer primary key, k integer)")
        connection.commit()
    output = tmp_path / "plan.json"
    done = command("plan", target, sql, *arguments, "--output", output)
    assert (done.code, done.out) == (2, "") and words in done.err, done
    assert not output.exists()


def test_a_plan_is_a_table_for_people_or_json_and_holds_no_secret(postgres_native: Database) -> None:
    target = postgres_native.odbc
    with table(target, "postgres_native", "id integer primary key, k text", [(i, "o'x") for i in range(50)]):
        shown = command("plan", target, "select * from part_t", "--parts", 2, "--format", "table")
        assert shown.code == 0 and shown.err == ""
        lines = shown.out.splitlines()
        assert lines[0] == "part  rows  condition"
        assert lines[1].endswith('part_t."id" < 25') and lines[2].endswith('part_t."id" >= 25')
        for name in ("rows", "key", "index", "snapshot"):
            assert sum(line.startswith(f"{name}: ") for line in lines) == 1
        made = command("plan", target, "select * from part_t", "--parts", 2)
        assert json.loads(made.out)["parts"][0]["snapshot"] is None
        assert postgres_native.password not in made.out + shown.out


@pytest.mark.parametrize("of", ["date", "timestamp", "timestamptz", "money"])
def test_infinite_dates_and_amounts_of_money_are_keys(postgres_native: Database, tmp_path: Path, of: str) -> None:
    value = "n" if of == "money" else "case n % 9 when 0 then '-infinity' when 1 then 'infinity' else '2024-01-01' end"
    with contextlib.closing(onecopy.connect(postgres_native.odbc, autocommit=True)) as con:
        con.execute("drop table if exists part_key")
        con.execute(f"create table part_key as select n, ({value})::{of} as k from generate_series(1, 90) as n")
        sql = "select n from part_key"
        done = command(
            "export", postgres_native.odbc, sql, "-o", tmp_path, "--format", "csv", "--parts", 3, "--key", "k"
        )
        con.execute("drop table part_key")
    assert done.code == 0, done.err
    lines = [line for file in tmp_path.glob("*.csv*") for line in file.read_text().splitlines()]
    assert sorted(int(line) for line in lines if line.isdigit()) == list(range(1, 91))
