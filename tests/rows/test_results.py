"""Results of queries: named parameters, row factories, converters, adapters, further results,
messages."""

from __future__ import annotations

import dataclasses
import datetime
import enum
import ipaddress
import json
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from decimal import Decimal
from types import MappingProxyType
from typing import Any

import pytest

import onecopy
from onecopy import rows as factories
from tests.conftest import Database

pytestmark = pytest.mark.filterwarnings("ignore::onecopy.DriverWarning")


# -- named parameters


@pytest.mark.parametrize("style", [":a, :b, :a", "%(a)s, %(b)s, %(a)s", ":a, %(b)s, :a"])
@pytest.mark.parametrize("kind", [dict, OrderedDict, MappingProxyType])
def test_parameters_may_be_named(con: onecopy.Connection, style: str, kind: Callable[[Any], Mapping[str, Any]]) -> None:
    given = kind({"a": 1, "b": "Ж", "not used": object()})
    assert con.execute(f"select {style}", given).fetchone() == (1, "Ж", 1)


def test_strings_comments_and_names_are_not_changed(con: onecopy.Connection) -> None:
    sql = "select ':a', \":a\", /* :a %(a)s */ '%(a)s', :a -- :a\n from (select 5 as \":a\")"
    assert con.execute(sql, {"a": 1}).fetchone() == (":a", 5, "%(a)s", 1)


def test_percent_signs_are_doubled_only_with_the_pyformat_style(con: onecopy.Connection) -> None:
    assert con.execute("select 7 % :a, '%%'", {"a": 4}).fetchone() == (3, "%%")
    assert con.execute("select 7 %% %(a)s, '%%'", {"a": 4}).fetchone() == (3, "%")
    assert con.execute("select 7 % 4, '%(a)s'").fetchone() == (3, "%(a)s")


def test_a_name_without_a_value_is_reported(con: onecopy.Connection) -> None:
    with pytest.raises(onecopy.ProgrammingError, match="`b`"):
        con.execute("select :a, :b", {"a": 1})
    with pytest.raises(onecopy.ProgrammingError, match="the statement has no named ones"):
        con.execute("select ?", {"a": 1})
    with pytest.raises(onecopy.ProgrammingError, match="mixed with named parameters"):
        con.execute("select ?, :a", {"a": 1})
    assert con.execute("select 1", {}).fetchone() == (1,)


class _Failing(dict[str, Any]):
    def __getitem__(self, key: str) -> Any:
        raise LookupError(key)


def test_exceptions_of_a_mapping_are_passed_on(con: onecopy.Connection) -> None:
    class Odd:
        def keys(self) -> list[str]:
            return ["a"]

        def __len__(self) -> int:
            return 1

        def __getitem__(self, key: str) -> Any:
            raise OSError(key)

    with pytest.raises(OSError, match="a"):
        con.execute("select :a", Odd())  # type: ignore[arg-type]


# -- adapters and converters


class Color(enum.Enum):
    RED = "rød"


class Base:
    pass


class Derived(Base):
    pass


def test_adapters_are_found_by_class_and_base(con: onecopy.Connection) -> None:
    con.adapters[Color] = lambda color: color.value
    con.adapters[Base] = lambda base: type(base).__name__
    con.adapters[dict] = json.dumps
    assert con.execute("select ?, ?, ?, ?", [Color.RED, Derived(), {"a": 1}, 5]).fetchone() == (
        "rød",
        "Derived",
        '{"a": 1}',
        5,
    )
    cur = con.cursor()
    cur.execute("create table t (a)")
    cur.executemany("insert into t values (?)", [(Color.RED,), (Derived(),)])
    assert con.execute("select a from t order by 1").fetchall() == [("Derived",), ("rød",)]


def test_an_adapter_that_raises_or_returns_an_unsupported_value(con: onecopy.Connection) -> None:
    con.adapters[Color] = lambda color: 1 / 0
    with pytest.raises(ZeroDivisionError):
        con.execute("select ?", [Color.RED])
    con.adapters[Color] = lambda color: object()
    with pytest.raises(TypeError, match="object"):
        con.execute("select ?", [Color.RED])


def test_converters_by_column_precede_those_by_type(con: onecopy.Connection) -> None:
    con.execute("create table t (a text, b text, c text)")
    con.execute("insert into t values ('1', '2', null)")
    con.converters["any"] = lambda value: ("by type", value)
    cur = con.cursor()
    cur.converters["b"] = int
    cur.converters[2] = lambda value: pytest.fail("NULL is given to no converter")
    assert cur.execute("select a, b, c from t").fetchall() == [(("by type", "1"), 2, None)]
    assert con.execute("select a from t").fetchone() == (("by type", "1"),)
    con.converters.clear()
    assert cur.execute("select a, b, c from t").fetchone() == ("1", 2, None)


def test_a_converter_may_raise_and_may_use_the_cursor(con: onecopy.Connection) -> None:
    cur = con.cursor()
    seen = []

    def convert(value: float) -> float:
        seen.append((cur.rownumber, cur.description is not None))
        return 1 / value

    cur.converters[0] = convert
    cur.execute("select 2 union all select 0 union all select 4")
    assert cur.fetchone() == (0.5,)
    with pytest.raises(ZeroDivisionError):
        cur.fetchone()
    assert cur.fetchone() == (0.25,)
    assert seen == [(1, True), (2, True), (3, True)]


def test_converters_of_types_of_one_database(postgres: Database) -> None:
    con = onecopy.connect(postgres.odbc)
    con.converters["inet"] = ipaddress.ip_address
    con.converters["decimal"] = float
    cur = con.cursor()
    cur.converters["doc"] = json.loads
    made = cur.execute(
        """select '{"a": [1, "é"]}'::jsonb as doc, 1.5::numeric, inet '10.0.0.1', null::inet"""
    ).fetchone()
    assert made == ({"a": [1, "é"]}, 1.5, ipaddress.ip_address("10.0.0.1"), None)
    name = "jsonb" if postgres.profile == "postgres_native" else "unknown"
    assert cur.type_names == [name, "numeric", "inet", "inet"]
    con.close()


# -- row factories


@dataclasses.dataclass
class City:
    name: str
    people: int = 0
    at: list[float] = dataclasses.field(default_factory=list)


SQL = "select 'Zoë' as name, 3 as people union all select '東京', 4"


@pytest.mark.parametrize(
    ("factory", "wanted"),
    [
        (None, [("Zoë", 3), ("東京", 4)]),
        (factories.dict_row, [{"name": "Zoë", "people": 3}, {"name": "東京", "people": 4}]),
        (factories.namedtuple_row, [("Zoë", 3), ("東京", 4)]),
        (factories.dataclass_row(City), [City("Zoë", 3), City("東京", 4)]),
        (factories.class_row(dict), [{"name": "Zoë", "people": 3}, {"name": "東京", "people": 4}]),
        (factories.scalar_row, ["Zoë", "東京"]),
    ],
)
def test_rows_are_made_by_the_factory(con: onecopy.Connection, factory: Any, wanted: list[Any]) -> None:
    con.row_factory = factory
    assert con.execute(SQL).fetchall() == wanted
    assert con.execute(SQL).fetchmany(1) == wanted[:1]
    assert list(con.execute(SQL)) == wanted
    assert con.execute(SQL).fetchone() == wanted[0]
    cur = con.cursor()
    assert cur.row_factory is factory
    cur.row_factory = None
    assert cur.execute(SQL).fetchone() == ("Zoë", 3)


def test_dicts_match_those_of_the_python_function(con: onecopy.Connection) -> None:
    con.row_factory = factories.dict_row
    cur = con.execute(SQL)
    assert cur.fetchone() == factories.dict_row(cur)(("Zoë", 3))


def test_named_tuples_have_field_names(con: onecopy.Connection) -> None:
    con.row_factory = factories.namedtuple_row
    row = con.execute("select 1 as id, 2 as 'not a name', 3 as id").fetchone()
    assert row._fields == ("id", "_1", "_2") and row.id == 1


@pytest.mark.parametrize("factory", [factories.dict_row, factories.class_row(dict), factories.dataclass_row(City)])
def test_duplicate_column_names_are_refused(con: onecopy.Connection, factory: Any) -> None:
    con.row_factory = factory
    with pytest.raises(onecopy.ProgrammingError, match="name"):
        con.execute("select 1 as name, 2 as name")


def test_dataclasses_report_mismatched_columns(con: onecopy.Connection) -> None:
    con.row_factory = factories.dataclass_row(City)
    with pytest.raises(onecopy.ProgrammingError, match="no field for the column `x`"):
        con.execute("select 'a' as name, 1 as x")
    with pytest.raises(onecopy.ProgrammingError, match="no column for the field `name`"):
        con.execute("select 1 as people")
    with pytest.raises(TypeError, match="not a dataclass"):
        factories.dataclass_row(int)


def test_a_factory_may_use_its_cursor_and_raise(con: onecopy.Connection) -> None:
    def factory(cursor: onecopy.Cursor) -> Callable[[tuple[Any, ...]], Any]:
        assert cursor.description is not None
        name = cursor.description[0][0]
        return lambda row: 1 / 0 if row[0] == 2 else (name, *row)

    con.row_factory = factory
    cur = con.execute("select 1 as a union all select 2 union all select 3")
    assert cur.fetchone() == ("a", 1)
    with pytest.raises(ZeroDivisionError):
        cur.fetchone()
    assert cur.fetchone() == ("a", 3)
    con.row_factory = lambda cursor: 1 / 0  # type: ignore[assignment, return-value]
    with pytest.raises(ZeroDivisionError):
        con.execute("select 1")


def test_rows_after_one_that_a_factory_refuses_are_fetched_next(con: onecopy.Connection) -> None:
    def factory(cursor: onecopy.Cursor) -> Callable[[tuple[Any, ...]], Any]:
        return lambda row: 12 / (row[0] - 2)

    con.row_factory = factory
    sql = " union all ".join(f"select {n} as a" for n in range(1, 6))
    cur = con.execute(sql)
    with pytest.raises(ZeroDivisionError):
        cur.fetchall()
    assert (cur.rownumber, cur.fetchall(), cur.fetchall()) == (2, [12, 6, 4], [])
    cur.execute(sql)
    with pytest.raises(ZeroDivisionError):
        cur.fetchmany(3)
    assert (cur.fetchone(), cur.fetchmany(9), cur.rownumber) == (12, [6, 4], 5)


def test_a_factory_that_replaces_its_result_and_raises_does_not_mix_the_rows(con: onecopy.Connection) -> None:
    def factory(cursor: onecopy.Cursor) -> Callable[[tuple[Any, ...]], Any]:
        def make(row: tuple[Any, ...]) -> Any:
            if row[0] == 7:
                return row
            cursor.execute("select 7")
            raise LookupError

        return make

    con.row_factory = factory
    cur = con.execute("select 1 union all select 2")
    with pytest.raises(LookupError):
        cur.fetchall()
    assert (cur.fetchall(), cur.rownumber) == ([(7,)], 1)


def test_connect_accepts_a_factory() -> None:
    con = onecopy.connect("sqlite::memory:", row_factory=factories.dict_row)
    assert con.execute("select 1 as a").fetchone() == {"a": 1}


# -- the position of a cursor


def test_rownumber_and_scroll(numbers: onecopy.Connection) -> None:
    cur = numbers.execute("select i from n order by i")
    assert cur.rownumber == 0
    cur.fetchone()
    cur.fetchmany(9)
    assert cur.rownumber == 10
    cur.scroll(5)
    assert cur.fetchone() == (15,)
    cur.scroll(900, "absolute")
    assert (cur.fetchone(), cur.rownumber) == ((900,), 901)
    with pytest.raises(onecopy.NotSupportedError):
        cur.scroll(-1)
    with pytest.raises(onecopy.NotSupportedError):
        cur.scroll(10, "absolute")
    with pytest.raises(IndexError):
        cur.scroll(100)
    with pytest.raises(ValueError, match="mode"):
        cur.scroll(1, "sideways")  # type: ignore[arg-type]
    assert numbers.cursor().rownumber is None


def test_a_cursor_closes_after_its_block(con: onecopy.Connection) -> None:
    with con.cursor() as cur:
        cur.execute("select 1")
    with pytest.raises(onecopy.InterfaceError, match="closed"):
        cur.fetchone()
    with pytest.raises(LookupError), con.cursor() as cur:
        raise LookupError


# -- several results, and messages of the database


@pytest.fixture(params=["postgres_native", "postgres", "mariadb"])
def several(request: pytest.FixtureRequest) -> Iterator[onecopy.Connection]:
    """A connection to each database that can execute several statements in one SQL text."""
    database: Database = request.getfixturevalue(request.param)
    options = ";OPTION=67108864" if request.param == "mariadb" else ""
    con = onecopy.connect(database.odbc + options)
    con.execute("create temporary table several (n integer)")
    con.commit()
    yield con
    con.close()


TEXT = (
    "select 1 as a union all select 2; insert into several values (7); select 'x' as b, 3.5 as c; select n from several"
)


def test_nextset_moves_from_result_to_result(several: onecopy.Connection) -> None:
    cur = several.execute(TEXT)
    assert sorted(cur.fetchall()) == [(1,), (2,)]
    assert cur.nextset() is True
    assert cur.description is not None
    assert [column[0] for column in cur.description] == ["b", "c"]
    assert cur.rownumber == 0
    assert cur.fetchall() == [("x", Decimal("3.5"))]
    assert cur.nextset() is True
    assert cur.fetchall() == [(7,)]
    assert cur.nextset() is None
    with pytest.raises(onecopy.ProgrammingError):
        cur.fetchall()


def test_nextset_discards_rows_that_were_not_fetched(several: onecopy.Connection) -> None:
    cur = several.execute(TEXT)
    assert cur.nextset() is True
    cur.fetchone()
    assert cur.nextset() is True
    assert cur.fetchone() == (7,)
    assert cur.nextset() is None
    assert several.execute("select count(*) from several").fetchone() == (1,)


def test_results_that_are_not_fetched_still_run(several: onecopy.Connection) -> None:
    several.execute(TEXT).fetchall()
    assert several.execute("select n from several").fetchall() == [(7,)]


def test_a_row_factory_is_called_for_each_result(several: onecopy.Connection) -> None:
    several.row_factory = factories.dict_row
    cur = several.execute(TEXT)
    assert cur.nextset() is True
    assert cur.fetchall() == [{"b": "x", "c": Decimal("3.5")}]


def test_long_values_in_one_result_do_not_disturb_the_next(several: onecopy.Connection) -> None:
    long = "repeat('é', 100000)"
    cur = several.execute(
        f"select {long} as a, 1 as n union all select 'x', 2; select 5 as b, {long} as c; select 6 as d"
    )
    assert sorted(row[1] for row in cur.fetchall()) == [1, 2]
    assert cur.nextset() is True
    assert cur.fetchall() == [(5, "é" * 100_000)]
    assert cur.nextset() is True
    assert cur.fetchall() == [(6,)]


def test_a_stream_of_bytes_refuses_a_second_result(several: onecopy.Connection) -> None:
    stream = several.execute("select 1 as a; select 2 as a").json()
    with pytest.raises(onecopy.NotSupportedError, match="returns rows too"):
        stream.read()


def test_nextset_of_one_result(con: onecopy.Connection) -> None:
    cur = con.cursor()
    assert cur.nextset() is None
    assert cur.execute("select 1").nextset() is None


def test_messages_of_the_database_are_kept(postgres: Database) -> None:
    con = onecopy.connect(postgres.odbc)
    cur = con.execute("do $$ begin raise notice 'héllo %', 'Ж東🍵'; raise warning 'careful'; end $$")
    assert [kind for kind, _ in cur.messages] == [onecopy.Warning] * len(cur.messages)
    said = "\n".join(str(message) for _, message in cur.messages)
    assert "héllo Ж東🍵" in said and "careful" in said
    assert all(len(message.sqlstate) == 5 for _, message in cur.messages)
    cur.execute("select 1")
    assert cur.messages == []
    con.close()


def test_values_keep_their_types_with_a_row_factory(postgres: Database) -> None:
    con = onecopy.connect(postgres.odbc, row_factory=factories.dict_row)
    row = con.execute("select 1.50::numeric as a, date '2026-11-22' as b, true as c").fetchone()
    assert row == {"a": Decimal("1.50"), "b": datetime.date(2026, 11, 22), "c": True}
    con.close()


def test_description_has_the_affinity_of_declared_sqlite_columns(con: onecopy.Connection) -> None:
    con.execute("create table d (a bigint, b varchar(20), c blob, d double precision, e decimal(5, 2), f)")
    cur = con.execute("select a, b, c, d, e, f, a + 1 from d")
    assert cur.description is not None
    codes = [column[1] for column in cur.description]
    assert codes == ["integer", "text", "binary", "double", "any", "any", "any"]
    assert codes[1] == onecopy.STRING and codes[0] == onecopy.NUMBER


@pytest.mark.filterwarnings("ignore::onecopy.DriverWarning")
def test_a_repeated_query_has_the_names_of_a_changed_table(mariadb: Database) -> None:
    con = onecopy.connect(mariadb.odbc)
    for columns in ("a int, b int", "b int, a int"):
        con.execute(f"create or replace temporary table names ({columns})")
        con.execute("insert into names values (1, 2)")
        rows = con.execute("select * from names where a <> ?", [99]).json().read()
        assert rows == (b'[{"a":1,"b":2}]' if columns.startswith("a") else b'[{"b":1,"a":2}]')
    con.close()
