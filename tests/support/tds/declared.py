"""The responder's procedures and functions with declared parameters, and their catalog entries.

    calls.mixed @a int, @b nvarchar(20) output, …  outputs that are computed from the inputs
    calls.rows_first @n int, @b int output         two results with row counts between them
    calls.fails @how nvarchar(10), @b int output   throws, or raises an error and continues,
                                                   before or after rows or a count
    calls.every …                                  an output parameter of each type, unchanged
    calls.add_up(@a int, @b int)                   a scalar function
    calls.many(@n int)                             a function that returns a table

``ROUTINES`` has their definitions, from which the catalog query is answered. The body of a routine
stores the values of output parameters in the dictionary that it receives.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from tests.support.tds import types
from tests.support.tds.results import Affected, Called, Message, Result, Rows, SqlError
from tests.support.tds.tokens import ROW, Column
from tests.support.tds.types import Kind, Parameter

Values = dict[str, Any]
#: The default database and schema.
HERE, SCHEMA = "onecopy", "dbo"
#: User-defined types, and their base types.
_USER_TYPES = {"calls.label": "nvarchar(10)", "calls.list": "table"}


@dataclass(frozen=True)
class Declared:
    """A declared parameter: its name, its system type, and its user-defined type if it has one."""

    name: str
    type_name: str
    is_output: bool = False
    is_optional: bool = False
    default: str = ""
    user_type: str = ""

    def kind(self) -> Kind:
        """The TDS type of the parameter's values."""
        return types.kind(self.type_name)


@dataclass(frozen=True)
class Routine:
    """A procedure or function.

    ``body`` receives a dictionary of the parameters' values. It yields the results, and stores the
    values of output parameters in the dictionary.
    """

    kind: str  # sys.all_objects.type
    database: str
    schema: str
    name: str
    parameters: list[Declared]
    body: Callable[[Values], Iterator[Result]]
    synonym_of: str | None = None

    def run(self, given: list[Parameter]) -> Called:
        """Runs the routine with the arguments ``given``.

        The result has the values of those output parameters that the caller has requested.

        Raises:
            SqlError: an argument is missing or surplus (201, 8144), is requested as output but was
                not declared so (8162), or cannot be converted (257, 8114).
        """
        values = self._bound(given)
        results: list[Result] = []
        error = None
        try:
            results.extend(self.body(values))  # Results before an error are kept.
        except SqlError as failed:
            error = failed
        outputs = []
        for place, (one, actual) in enumerate(zip(self.parameters, given, strict=False)):
            if actual.is_output and error is None:
                kind = one.kind()
                outputs.append((place, Parameter(actual.name, kind.info, kind.encode(values[one.name]))))
        return Called(results, outputs, int(values.get("return", 0)), error)

    def table(self, given: list[Parameter]) -> Rows:
        """Runs a function; returns its table.

        Raises:
            SqlError: as for `run`; or the function has an effect that functions must not have
                (443).
        """
        called = self.run(given)
        match called.results:
            case [Rows() as made] if called.error is None:
                return made
        raise called.error or SqlError(443, "Invalid use of a side-effecting operator within a function.")

    def _bound(self, given: list[Parameter]) -> Values:
        if len(given) > len(self.parameters) and self.kind != "X":
            raise SqlError(8144, f"Procedure or function {self.name} has too many arguments specified.")
        values: Values = {}
        for place, one in enumerate(self.parameters):
            if place >= len(given):
                if not one.is_optional:
                    said = (
                        f"Procedure or function '{self.name}' expects parameter '{one.name}', which was not supplied."
                    )
                    raise SqlError(201, said)
                values[one.name] = converted(one.default, one.type_name)
                continue
            if given[place].is_output and not one.is_output:
                said = f'The formal parameter "{one.name}" was not declared as an OUTPUT parameter'
                raise SqlError(8162, f"{said}, but the actual parameter passed in requested output.")
            values[one.name] = converted(given[place].value(), one.type_name)
        return values


def converted(value: Any, type_name: str) -> Any:
    """``value`` converted to an SQL type; text that is too long is truncated, as in an assignment.

    Raises:
        SqlError: the types have no implicit conversion (257), or the value cannot be converted
            (8114).
    """
    if value is None:
        return None
    size = re.fullmatch(r"n?(?:var)?(?:char|binary)\((\d+)\)", type_name)
    if size is not None:
        value = value[: int(size[1])]
    if type_name.startswith(("varbinary", "binary")) and not isinstance(value, bytes):
        raise SqlError(257, f"Implicit conversion from data type nvarchar to {type_name} is not allowed.")
    try:
        kind = types.kind(type_name)
        return Parameter("", kind.info, kind.encode(value)).value()
    except (ValueError, TypeError, ArithmeticError, OverflowError):
        raise SqlError(8114, f"Error converting data type nvarchar to {type_name}.") from None


def rows(cells: dict[str, tuple[str, Any]], times: int = 1) -> Rows:
    """A result of ``times`` equal rows; ``cells`` maps each column's name to its type and value."""
    kinds = {name: types.kind(type_name) for name, (type_name, _) in cells.items()}
    row = ROW + b"".join(kinds[name].encode(value) for name, (_, value) in cells.items())
    return Rows([Column(name, kind.info) for name, kind in kinds.items()], iter([(row, 1)] * times))


def find(name: str) -> Routine | None:
    """The routine that `object_id` finds for a name, which may have a schema and a database."""
    parts = [part or SCHEMA for part in parts_of(name)]
    database = parts[-3] if len(parts) > 2 else HERE
    schema = parts[-2] if len(parts) > 1 else SCHEMA
    known = (routine for routine in ROUTINES if (routine.database, routine.schema) == (database, schema))
    return next((routine for routine in known if routine.name == parts[-1]), None)


def called(name: str) -> Routine | None:
    """The routine that EXEC finds for a name.

    Unlike `find`, it resolves synonyms, finds names that begin with `#` in tempdb, and names that
    begin with `sp_` among the system procedures.
    """
    last = parts_of(name)[-1]
    found = find(f"tempdb..{name}" if last.startswith("#") else name)
    if found is None and last.startswith("sp_"):
        found = find(f"sys.[{last}]") or find(f"master..[{last}]")
    return find(found.synonym_of) if found is not None and found.synonym_of else found


def parts_of(name: str) -> list[str]:
    """Splits an SQL name into its parts (database, schema, object), without quotes."""
    found = re.findall(r'\[((?:[^\]]|\]\])*)\]|"((?:[^"]|"")*)"|([^.\[\]"]+)|(?<=\.)(?=\.)', name)
    return [(one.replace("]]", "]") or two.replace('""', '"') or bare) for one, two, bare in found]


def catalog(database: str, name: str | None) -> Rows:
    """The response to the catalog query of `onecopy._tsql`: a row for each parameter of routine
    ``name``.

    It has no rows if the catalog of ``database`` does not have the routine.
    """
    routine = find(name) if name is not None else None
    lines: list[Values] = []
    if routine is not None and routine.database == (database or HERE):
        whose = {"type": f"{routine.kind:2}", "schema": routine.schema, "base_object_name": routine.synonym_of}
        lines = [whose | _line(one) for one in routine.parameters] or [whose]
    kinds = {column: types.kind(type_name) for column, type_name in _CATALOG}
    encoded = [ROW + b"".join(kind.encode(line.get(column)) for column, kind in kinds.items()) for line in lines]
    return Rows([Column(column, kind.info) for column, kind in kinds.items()], iter([(row, 1) for row in encoded]))


_CATALOG = [("type", "nchar(2)"), ("schema", "nvarchar(128)"), ("base_object_name", "nvarchar(1035)")]
_CATALOG += [("name", "nvarchar(128)"), ("type_name", "nvarchar(128)"), ("type_schema", "nvarchar(128)")]
_CATALOG += [("is_user_defined", "bit"), ("is_table_type", "bit"), ("base", "nvarchar(128)")]
_CATALOG += [("max_length", "smallint"), ("precision", "tinyint"), ("scale", "tinyint")]
_CATALOG += [("is_output", "bit"), ("is_cursor_ref", "bit")]
#: The sizes of types with a fixed size, in bytes.
_LENGTHS = {"bit": 1, "tinyint": 1, "smallint": 2, "int": 4, "bigint": 8, "real": 4, "float": 8, "money": 8, "xml": -1}
_LENGTHS |= {"uniqueidentifier": 16, "date": 3, "datetime": 8, "sql_variant": 8016, "text": 16, "sysname": 256}


def _line(one: Declared) -> Values:
    """The catalog columns of a parameter, as in sys.all_parameters joined with sys.types."""
    base, _, size = one.type_name.rstrip(")").partition("(")
    first, _, second = size.partition(",")
    length, precision, scale = _LENGTHS.get(base, 0), 0, 0
    if base in ("decimal", "numeric"):
        length, precision, scale = 17, int(first), int(second or 0)
    elif base in ("time", "datetime2", "datetimeoffset"):
        length, scale = 8, int(first)
    elif first:
        length = -1 if first == "max" else int(first) * (2 if base.startswith("n") else 1)
    schema, _, name = one.user_type.rpartition(".")
    line = {"name": one.name, "type_name": name or base, "type_schema": schema or "sys", "is_output": one.is_output}
    line |= {"is_user_defined": bool(name), "is_table_type": base == "table", "is_cursor_ref": base == "cursor"}
    # A table type is not based on a system type.
    line |= {"base": None if base in ("table", "cursor") else base, "max_length": length}
    return line | {"precision": precision, "scale": scale}


def _parameters(text: str) -> list[Declared]:
    """Parses an SQL parameter list such as ``@a int, @b decimal(10,2) = 5 output``."""
    found = []
    for name, type_name, default, words in re.findall(
        r"(@\w+)\s+([\w.]+(?:\([^)]*\))?)(?:\s*=\s*(\w+))?([^,@]*)", text
    ):
        user_type = type_name if type_name in _USER_TYPES else ""
        real = _USER_TYPES.get(type_name, type_name)
        found.append(Declared(name, real, "output" in words, bool(default), default, user_type))
    return found


def _mixed(v: Values) -> Iterator[Result]:
    v["@b"] = f"é {v['@a']}"
    v["@c"] = None if v["@c"] is None else v["@c"] * 2
    v["@d"] = Decimal(v["@a"]) / 4
    v["@e"] = "2026-01-02T03:04:05.000006"
    v["return"] = 7
    yield Message(0, "mixed ran")


def _rows_first(v: Values) -> Iterator[Result]:
    yield Affected(3)
    yield rows({"@b": ("int", v["@n"])})
    yield Affected(1)
    yield Affected(2)
    yield rows({"x": ("int", v["@n"] + 1), "y": ("nvarchar(1)", "y")}, 2)
    yield Affected(1)
    v["@b"] = v["@n"] * 10


def _counts(v: Values) -> Iterator[Result]:
    yield Affected(1)
    yield Affected(2)
    v["@n"] += 1


def _fails(v: Values) -> Iterator[Result]:
    first, _, how = v["@how"].rpartition(" ")
    if first == "rows":
        yield rows({"a": ("int", 1)}, 3)
    elif first == "count":
        yield Affected(2)
    if how == "throw":
        raise SqlError(50_123, "Ошибка: thrown")
    v["@b"] = 5
    yield Message(50_000, "Ошибка: raised", 16)


def _nothing(_: Values) -> Iterator[Result]:
    yield from ()


def _optional(v: Values) -> Iterator[Result]:
    v["@c"] = v["@a"] + v["@b"]
    yield from ()


def _one_more(v: Values) -> Iterator[Result]:
    v["@a"] += 1
    yield from ()


def _add_up(v: Values) -> Iterator[Result]:
    total = None if None in (v["@a"], v["@b"]) else v["@a"] + v["@b"]
    yield rows({"": ("int", total)})


def _many(v: Values) -> Iterator[Result]:
    kind = types.kind("int")
    made = ((ROW + kind.encode(n), 1) for n in range(1, (v["@n"] or 0) + 1))
    yield Rows([Column("n", kind.info)], made)


_EVERY = re.split(
    r"\s+",
    """bit tinyint smallint int bigint real float money decimal(38,10) nvarchar(20) nvarchar(max) varchar(20)
varchar(max) nchar(4) char(4) binary(3) varbinary(20) varbinary(max) date time(3) datetime datetime2(6)
datetimeoffset(6) uniqueidentifier xml sql_variant""",
)


def _routine(name: str, parameters: str, body: Callable[[Values], Iterator[Result]], kind: str = "P") -> Routine:
    parts = parts_of(name)
    return Routine(kind, parts[0] if len(parts) > 2 else HERE, parts[-2], parts[-1], _parameters(parameters), body)


ROUTINES = [
    _routine(
        "calls.mixed",
        "@a int, @b nvarchar(20) output, @c bigint output, @d decimal(10,2) output, @e datetime2(6) output",
        _mixed,
    ),
    _routine("calls.rows_first", "@n int, @b int output", _rows_first),
    _routine("calls.counts", "@n int output", _counts),
    _routine("calls.quiet", "@a int", _nothing),
    _routine("calls.fails", "@how nvarchar(20), @b int output", _fails),
    _routine("calls.optional", "@a int, @b int = 7, @c int = 0 output", _optional),
    _routine("calls.labels", "@a calls.label output, @b text, @c sysname output", _nothing),
    _routine("calls.tables", "@rows calls.list readonly", _nothing),
    _routine("calls.cursors", "@a int, @c cursor varying output", _nothing),
    *(_routine(f"calls.[every {one}]", f"@a {one} output", _nothing) for one in _EVERY),
    _routine("[odd d].[a]]b.c]", "@a int output", _one_more),
    _routine("dbo.plain", "@a int output", _one_more),
    _routine("tempdb.dbo.#passing", "@a int output", _one_more),
    _routine("elsewhere.dbo.far", "@a int output", _one_more),
    _routine("master.dbo.sp_everywhere", "@a int output", _one_more),
    _routine("sys.sp_of_the_system", "@a int output", _one_more),
    _routine("dbo.xp_extended", "", _nothing, "X"),
    Routine("SN", HERE, "calls", "other_name", [], _nothing, "[calls].[mixed]"),
    Routine("SN", HERE, SCHEMA, "sum_of", [], _nothing, "calls.add_up"),
    Routine("SN", HERE, "calls", "beyond", [], _nothing, "[there].[a].[b].[c]"),
    _routine("calls.add_up", "@a int, @b int", _add_up, "FN"),
    _routine("dbo.add_up", "@a int, @b int", _add_up, "FN"),
    _routine("calls.many", "@n int", _many, "TF"),
]
