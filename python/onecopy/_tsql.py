"""Calls SQL Server's procedures and functions with a batch that returns the output parameters.

SQL Server does not return output parameters in a result. The batch declares variables with the
types in the catalog, passes them as output parameters, and selects the variables after the call::

    declare @o2 nvarchar(20), @o3 bigint = ?;
    exec [calls].[mixed] ?, @o2 output, @o3 output;
    select @o2 as [@b], @o3 as [@c]
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from onecopy.errors import NotSupportedError, ProgrammingError

if TYPE_CHECKING:
    from onecopy._core import Connection

__all__ = ["Batch", "Parameter", "batch"]

_PART = re.compile(r"""(?:[\w#][\w@$#]*|"(?:[^"]|"")+"|\[(?:[^]]|\]\])+\])""")


class Batch(NamedTuple):
    """A batch that calls a procedure, its parameters, and the indexes and names of the output
    parameters in its last result."""

    sql: str
    inputs: list[Any]
    places: list[int]
    names: list[str]


class Parameter(NamedTuple):
    """A parameter, as described by `sys.all_parameters` and `sys.types`."""

    name: str
    type_name: str
    type_schema: str
    is_user_defined: bool
    is_table: bool
    #: The system type on which a user-defined type is based; None for a type that is not.
    base_name: str | None
    #: The length in bytes; -1 for `max`.
    max_length: int
    precision: int
    scale: int
    is_output: bool
    is_cursor: bool

    def declared(self) -> str:
        """Return the type in the syntax of a variable's declaration, such as `varchar(20)`."""
        if self.is_user_defined and self.base_name is None:
            return f"{_quoted(self.type_schema)}.{_quoted(self.type_name)}"
        name = self.base_name if self.is_user_defined and self.base_name is not None else self.type_name
        if name in _NO_VARIABLE:
            return _NO_VARIABLE[name]
        if name in {"char", "varchar", "binary", "varbinary"}:
            return f"{name}({'max' if self.max_length < 0 else self.max_length})"
        if name in {"nchar", "nvarchar"}:
            return f"{name}({'max' if self.max_length < 0 else self.max_length // 2})"
        if name in {"decimal", "numeric"}:
            return f"{name}({self.precision}, {self.scale})"
        if name in {"time", "datetime2", "datetimeoffset"}:
            return f"{name}({self.scale})"
        return name


#: Types that a variable cannot have, and those that are used instead (error 2739).
_NO_VARIABLE = {"text": "varchar(max)", "ntext": "nvarchar(max)", "image": "varbinary(max)"}


class _Routine(NamedTuple):
    """A procedure or function in the catalog of SQL Server."""

    kind: str  # sys.all_objects.type
    schema: str
    synonym_of: str | None
    parameters: list[Parameter]


# Parameter 0 is the result of a scalar function. A CLR type (240) is not based on a system type.
_CATALOG = """
select o.type, s.name, y.base_object_name, p.name, t.name, ts.name, t.is_user_defined, t.is_table_type, b.name,
    p.max_length, p.precision, p.scale, p.is_output, p.is_cursor_ref
from {0}sys.all_objects o
join {0}sys.schemas s on s.schema_id = o.schema_id
left join {0}sys.synonyms y on y.object_id = o.object_id
left join {0}sys.all_parameters p on p.object_id = o.object_id and p.parameter_id > 0
left join {0}sys.types t on t.user_type_id = p.user_type_id
left join {0}sys.schemas ts on ts.schema_id = t.schema_id
left join {0}sys.types b on b.user_type_id = p.system_type_id
where o.object_id = object_id(?)
order by p.parameter_id
"""


def _parts(name: str) -> list[str]:
    """Split a name into its parts, without quotes. Raise an error for any text that is not a name,
    because the name is inserted into an SQL statement."""
    parts = []
    at = 0
    while True:
        if found := _PART.match(name, at):
            word = found[0]
            closing = {"[": "]", '"': '"'}.get(word[0])
            parts.append(word[1:-1].replace(closing * 2, closing) if closing else word)
            at = found.end()
            if at == len(name):
                return parts
        elif len(parts) == 1:
            parts.append("")  # `database..name`: the user's default schema.
        else:
            break
        if name[at : at + 1] != ".":
            break
        at += 1
    raise ProgrammingError(
        f"`{name}` is not the name of a procedure\n"
        "write `name`, `schema.name` or `database.schema.name`, each plain or quoted as in SQL"
    )


def _quoted(part: str) -> str:
    return "[" + part.replace("]", "]]") + "]" if part else ""


def _written(parts: Sequence[str]) -> str:
    return ".".join(map(_quoted, parts))


def _ask(con: Connection, parts: list[str]) -> _Routine | None:
    """Query the catalog for the routine with this name, and return its row. For a synonym, this is
    the row of the synonym, not of the routine."""
    *before, schema, plain = ["", *parts] if len(parts) == 1 else parts
    database = before[-1] if before else ""
    if plain.startswith("#"):
        database = "tempdb"
    whole = _written([database, schema, plain] if database else parts)
    rows = con.execute(_CATALOG.format(_quoted(database) + "." if database else ""), [whole]).fetchall()
    if not rows:
        return None
    parameters = [Parameter(*row[3:]) for row in rows if row[3] is not None]
    return _Routine(rows[0][0].strip(), rows[0][1], rows[0][2], parameters)


def _find(con: Connection, parts: list[str]) -> _Routine | None:
    """Return the routine with this name. Synonyms are resolved, and system routines (which exist in
    every database) are found too."""
    routine = _ask(con, parts)
    if routine is not None and routine.synonym_of:
        meant = _local(_parts(routine.synonym_of), routine.synonym_of)
        if len(parts) == 3 and len(meant) < 3:
            meant = [parts[0], *(["", *meant] if len(meant) == 1 else meant)]
        found = _ask(con, meant)
        return found._replace(schema=routine.schema) if found is not None else None
    if routine is None and len(parts) == 1 and parts[0].lower().startswith("sp_"):
        return _ask(con, ["sys", *parts]) or _ask(con, ["master", "dbo", *parts])
    return routine


def _local(parts: list[str], name: str) -> list[str]:
    if len(parts) > 3:
        raise NotSupportedError(
            f"`{name}` is on another server, whose catalog does not list the output parameters\n"
            "execute `declare @out int; exec name ?, @out output; select @out`"
        )
    return parts


def _check(name: str, routine: _Routine, n: int) -> None:
    """Raise an error if the routine cannot be called with ``n`` values."""
    known = routine.parameters
    if n > len(known) and routine.kind != "X":  # Extended procedures have no parameters in the catalog.
        raise ProgrammingError(f"`{name}` has {len(known)} parameters, {n} were given", sqlstate="07002")
    for parameter in known[:n]:
        if parameter.is_table or parameter.is_cursor:
            what = "a table" if parameter.is_table else "a cursor"
            raise NotSupportedError(
                f"`{parameter.name}` of `{name}` is {what}, for which no value can be passed\n"
                "execute a batch that declares it, fills it and calls the procedure"
            )


def batch(con: Connection, name: str, parameters: Sequence[Any]) -> Batch:
    """Return the batch that calls a procedure or function with the given values.

    ``None`` is written as the literal NULL instead of being bound, because no SQL type converts
    implicitly to every other type.

    Raises:
        ProgrammingError: the name is invalid, or there are more values than parameters (07002).
        NotSupportedError: the routine is on another server, or has a table or cursor parameter.
    """
    parts = _local(_parts(name), name)
    routine = _find(con, parts)
    written = _written(parts)
    known: list[Parameter] = []
    if routine is not None:
        _check(name, routine, len(parameters))
        known = routine.parameters
        if routine.kind in _FUNCTIONS:
            if len(parts) == 1:
                written = _written([routine.schema, *parts])  # Scalar functions require the schema.
            marks = ", ".join("NULL" if value is None else "?" for value in parameters)
            inputs = [value for value in parameters if value is not None]
            return Batch(f"select {_FUNCTIONS[routine.kind]}{written}({marks})", inputs, [], [])
    variables, arguments, selected = [], [], []
    into: list[Any] = []
    inputs = []
    places = []
    for place, value in enumerate(parameters):
        mark = "NULL" if value is None else "?"
        if place >= len(known) or not known[place].is_output:
            arguments.append(mark)
            inputs += [] if value is None else [value]
            continue
        parameter, variable = known[place], f"@o{place + 1}"
        variables.append(f"{variable} {parameter.declared()}" + ("" if value is None else " = ?"))
        into += [] if value is None else [value]
        arguments.append(f"{variable} output")
        selected.append(f"{variable} as {_quoted(parameter.name)}")
        places.append(place)
    sql = " ".join(["exec", written, ", ".join(arguments)]).rstrip()
    if selected:
        sql = f"declare {', '.join(variables)}; {sql}; select {', '.join(selected)}"
    return Batch(sql, into + inputs, places, [known[place].name for place in places])


#: The text between `select` and the call of a function, by its `sys.all_objects.type`: none for
#: scalar functions (FN, FS), `* from` for functions that return a table (IF, TF, FT).
_FUNCTIONS = {"FN": "", "FS": "", "IF": "* from ", "TF": "* from ", "FT": "* from "}
