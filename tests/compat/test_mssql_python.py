"""`onecopy.compat.mssql_python` compared with mssql-python, both with the same driver.

docs/guide/from-mssql-python.md lists the differences.
"""

from __future__ import annotations

import enum
import inspect
import pathlib
import pickle
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import onecopy
from onecopy.compat import mssql_python as ours
from tests.conftest import Database

theirs = pytest.importorskip("mssql_python")

#: Names of mssql-python 1.16 that we do not have: its internals.
LEFT_OUT = {
    "module": {
        "ConnectionStringParseError",
        "ConstantsDDBC",
        "Optional",
        "PoolingManager",
        "ProviderManager",
        "SQLTypes",
        "TokenProvider",
        "create_decimal_separator_functions",
        "driver_logger",
        "get_native_provider_info",
        "logger",
        "setup_logging",
    },
    "Connection": set[str](),
    "Cursor": set[str](),
}


@pytest.fixture
def both(tds_msodbc: Database) -> Iterator[tuple[Any, Any]]:
    """A connection of onecopy and one of mssql-python, both to the TDS responder."""
    _, _, rest = tds_msodbc.odbc.partition(";")
    mine, other = ours.connect(tds_msodbc.odbc), theirs.connect(rest)
    yield mine, other
    mine.close()
    other.close()


def test_every_name_exists() -> None:
    public = {n for n in dir(theirs) if not n.startswith("_") and not inspect.ismodule(getattr(theirs, n))}
    assert public - set(dir(ours)) == LEFT_OUT["module"]
    for name in (n for n in dir(theirs) if n.startswith("SQL_")):
        assert getattr(ours, name) == getattr(theirs, name), name
    for name in ("AuthType", "GetInfoConstants"):
        members: list[dict[str, object]] = [
            {n: m.value for n, m in getattr(of, name).__members__.items()} for of in (ours, theirs)
        ]
        assert members[0] == members[1]
        assert issubclass(getattr(ours, name), enum.Enum)
    assert ours.get_info_constants() == theirs.get_info_constants()
    for name in ("Connection", "Cursor"):
        public = {n for n in dir(getattr(theirs, name)) if not n.startswith("_")}
        assert public - set(dir(getattr(ours, name))) == LEFT_OUT[name]
    for name in ("apilevel", "paramstyle", "threadsafety", "__version__", "lowercase", "native_uuid"):
        assert getattr(ours, name) == getattr(theirs, name)
    for name in (n for n in onecopy.errors.__all__ if n not in ("DriverWarning", "Warning")):
        assert issubclass(getattr(ours, name), getattr(onecopy, name))
        kept = [c.__name__ for c in getattr(theirs, name).__mro__ if c.__module__.startswith("mssql_python")]
        mine = [c.__name__ for c in getattr(ours, name).__mro__ if c.__module__.startswith("onecopy.compat")]
        assert mine == kept


ROW = (
    "select 1 as Id, N'東京' as name, null as n, cast('1.5' as decimal(10,2)) as d, 0x00ff as e, cast(1 as bit) as b, "
)
ROW += "cast('2020-01-02 03:04:05.6 -05:30' as datetimeoffset(7)) as o, "
ROW += "cast('a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11' as uniqueidentifier) as u"

CALLS: list[Callable[[Any], Any]] = [
    lambda con: con.execute(ROW).fetchone(),
    lambda con: str(con.execute(ROW).fetchone()),
    lambda con: [*con.execute(ROW).description],
    lambda con: con.execute(ROW).fetchone().name,
    lambda con: con.execute(ROW).fetchone()["name"],
    lambda con: con.execute(ROW).fetchone()["Name"],
    lambda con: con.execute(ROW).fetchone().id,
    lambda con: con.execute(ROW).fetchone()[0:2],
    lambda con: con.execute(ROW).fetchone() == [1],
    lambda con: dict(con.execute(ROW).fetchone()._mapping),
    lambda con: len(con.execute(ROW).fetchone()._mapping),
    lambda con: hash(con.execute(ROW).fetchone()),
    lambda con: con.execute("select ?", 1).fetchall(),
    lambda con: con.execute("select ?", (1,)).fetchall(),
    lambda con: con.execute("select %(a)s", {"a": 1}).fetchall(),
    lambda con: con.execute("select 7").fetchval(),
    lambda con: (lambda cur: [cur.fetchall(), cur.nextset(), cur.fetchall(), cur.nextset()])(
        con.execute("select 1; select 2")
    ),
    lambda con: (lambda cur: [cur.skip(2), cur.fetchall()])(con.execute("select 1 from repeat(5)")),
    lambda con: (lambda cur: [cur.scroll(2), cur.fetchall()])(con.execute("select 1 from repeat(5)")),
    lambda con: (lambda cur: [cur.fetchone(), cur.rownumber])(con.execute("select 1 from repeat(5)")),
    lambda con: con.batch_execute(["select 1", "select ?"], [None, 5])[0],
    lambda con: con.batch_execute(["select 1"], [None, 5]),
    lambda con: (con.getencoding(), con.getdecoding(theirs.SQL_CHAR), con.searchescape, con.timeout, con.autocommit),
    lambda con: (con.setautocommit(True), con.autocommit),
    lambda con: (con.__exit__(None, None, None), con.closed, con.close()),
    lambda con: (con.close(), con.cursor()),
    lambda con: (con.close(), con.commit()),
    lambda con: (lambda cur: (cur.close(), cur.close(), cur.execute("select 1")))(con.cursor()),
    lambda con: con.cursor().callproc("x"),
    lambda con: con.getinfo(theirs.GetInfoConstants.SQL_DRIVER_NAME.value).startswith("libmsodbcsql"),
    lambda con: (con.add_output_converter(str, bytes.hex), con.execute("select N'xя'").fetchone())[1],
]


@pytest.mark.parametrize("call", CALLS, ids=range(len(CALLS)))
def test_calls_return_the_same(both: tuple[Any, Any], call: Callable[[Any], Any]) -> None:
    outcomes: list[Any] = []
    for con in both:
        try:
            outcomes.append(repr(call(con)))
        except Exception as error:
            outcomes.append(type(error).__name__)
    assert outcomes[0] == outcomes[1]


def test_errors_have_the_same_parts(both: tuple[Any, Any]) -> None:
    caught = []
    for con, module in zip(both, (ours, theirs), strict=True):
        with pytest.raises(module.ProgrammingError) as error:
            con.execute("selec 1")
        caught.append(error.value)
    mine, other = caught
    assert mine.driver_error == other.driver_error
    # mssql-python omits the name of the driver.
    assert mine.ddbc_error.replace("[ODBC Driver 18 for SQL Server]", "") == other.ddbc_error
    assert mine.message == str(mine) == f"Driver Error: {mine.driver_error}; DDBC Error: {mine.ddbc_error}"
    assert isinstance(mine, onecopy.ProgrammingError) and mine.sqlstate == "42000"


def test_a_wrong_password_is_not_shown(tds_msodbc: Database) -> None:
    wrong = tds_msodbc.odbc.replace(f"Pwd={tds_msodbc.password}", "Pwd=s3cr3t-wrong")
    with pytest.raises(ours.OperationalError) as caught:
        ours.connect(wrong)
    assert caught.value.driver_error == "Invalid authorization specification"
    assert "s3cr3t-wrong" not in repr(caught.value) + caught.value.message


def test_a_driver_is_found_if_none_is_named(tds_msodbc: Database) -> None:
    _, _, rest = tds_msodbc.odbc.partition(";")
    head, _, _ = rest.partition("Uid=")
    with ours.connect(
        head, uid=tds_msodbc.native["user"], pwd=tds_msodbc.password, encrypt="no", trustservercertificate="yes"
    ) as con:
        assert con.execute("select N'я'").fetchval() == "я"
    assert con.closed


def test_a_block_commits_or_rolls_back_and_closes(tmp_path: pathlib.Path) -> None:
    target = f"sqlite:{tmp_path / 't.db'}"
    with ours.connect(target) as con:
        con.execute("create table t (a)")

    def fail() -> None:
        with ours.connect(target) as con:
            con.execute("insert into t values (1)")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    with ours.connect(target) as con, con.cursor() as cur:
        cur.executemany("insert into t values (%(a)s)", [{"a": 1}, {"a": 2}])
        assert cur.rowcount == 2
        row: Any = cur.execute("select a from t").fetchone()
        assert pickle.loads(pickle.dumps(row)) == row and row.a == 1
        assert cur.next()[0] == 2
        with pytest.raises(ours.NotSupportedError, match="executemany"):
            cur.bulkcopy("t", [])
    with pytest.raises(ours.NotSupportedError):
        ours.connect(target, token_provider=object())


def test_settings(monkeypatch: pytest.MonkeyPatch, tds_msodbc: Database) -> None:
    monkeypatch.setattr(ours, "lowercase", False)
    monkeypatch.setattr(ours, "native_uuid", True)
    settings = ours.get_settings()
    settings.lowercase, settings.native_uuid = True, False
    assert (ours.lowercase, ours.native_uuid, settings.lowercase, settings.native_uuid) == (True, False, True, False)
    with ours.connect(tds_msodbc.odbc) as con:
        row: Any = con.execute(ROW).fetchone()
        assert (row.id, row.u) == (1, "A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11")
    ours.pooling(10, 60)
    assert (ours.Binary("é"), ours.Binary(bytearray(b"a"))) == (b"\xc3\xa9", b"a")
