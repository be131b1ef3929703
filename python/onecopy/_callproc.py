"""The implementation of `Cursor.callproc`. It creates the SQL statement that calls a routine, and
reads the values of the routine's output parameters.

PostgreSQL and MariaDB return the values of output parameters as the last result of the call. This
result is one row with a column for each output parameter. For SQL Server `onecopy._tsql` writes a
batch that returns such a row. The names and modes of the parameters are read by one query of the
database's catalog.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from onecopy import _tsql
from onecopy.errors import NotSupportedError, ProgrammingError

if TYPE_CHECKING:
    from onecopy._core import Cursor

__all__ = ["Call", "call", "catalog_query", "plan"]

#: A part of the name of a routine: plain, or in the quotes of the database.
_NAME = re.compile(r"""(?:\w[\w$]*|"(?:[^"]|"")+"|`(?:[^`]|``)+`)""")


class _Routine(NamedTuple):
    """A procedure or function in the catalog, with the mode and name of each parameter."""

    is_procedure: bool
    modes: str  # of each parameter: i(n), o(ut), b(oth)
    names: tuple[str, ...]
    n_optional: int = 0
    gives_rows: bool = False
    is_variadic: bool = False

    def places(self) -> list[int]:
        """Return the indexes of the output parameters, from 0."""
        return [i for i, mode in enumerate(self.modes) if mode in "ob"]

    def n_inputs(self) -> int:
        return sum(mode != "o" for mode in self.modes)

    def takes(self, n: int) -> bool:
        """Return true if the routine can be called with ``n`` values."""
        least = (len(self.modes) if self.is_procedure else self.n_inputs()) - self.n_optional
        return least <= n and (self.is_variadic or n <= len(self.modes))


def _parts(name: str) -> list[str]:
    """Split the name of a routine at its dots. Raise an error for any text that is not a name,
    because the name is inserted into an SQL statement."""
    parts = []
    at = 0
    while found := _NAME.match(name, at):
        parts.append(found[0])
        at = found.end()
        if at == len(name):
            return parts
        if name[at] != ".":
            break
        at += 1
    raise ProgrammingError(
        f"`{name}` is not the name of a procedure\nwrite `name` or `schema.name`, each plain or quoted as in SQL"
    )


def _plain(part: str, *, fold: bool) -> str:
    """Convert one part of a name, which may be quoted, to the form that the catalog stores. With
    ``fold``, an unquoted name is converted to lower case."""
    if part[0] in '"`':
        return part[1:-1].replace(part[0] * 2, part[0])
    return part.lower() if fold else part


_OF_POSTGRESQL = """
select p.prokind::text, coalesce(array_to_string(p.proargmodes, ''), repeat('i', p.pronargs)),
       coalesce(array_to_string(p.proargnames, chr(10)), ''), p.pronargdefaults, p.proretset
from pg_catalog.pg_proc p join pg_catalog.pg_namespace n on n.oid = p.pronamespace
where p.proname = ? and case when ? = '' then pg_catalog.pg_function_is_visible(p.oid) else n.nspname = ? end
"""

_OF_MARIADB = """
select r.routine_type, p.parameter_mode, p.parameter_name
from information_schema.routines r left join information_schema.parameters p
    on p.specific_schema = r.routine_schema and p.specific_name = r.specific_name
    and p.routine_type = r.routine_type and p.ordinal_position > 0
where r.routine_schema = coalesce(nullif(?, ''), database()) and r.routine_name = ?
order by r.routine_type, p.ordinal_position
"""


def _of_postgresql(rows: list[Any]) -> list[_Routine]:
    found = []
    for kind, modes, names, n_optional, gives_rows in rows:
        # The columns that a table function returns are not parameters. A variadic parameter is an
        # input.
        arguments = [mode for mode in modes if mode != "t"]
        listed = tuple(names.split("\n"))[: len(arguments)] if names else ("",) * len(arguments)
        modes = "".join(arguments)
        is_variadic = "v" in modes
        found.append(_Routine(kind == "p", modes.replace("v", "i"), listed, n_optional, gives_rows, is_variadic))
    return found


def _of_mariadb(rows: list[Any]) -> list[_Routine]:
    # If a procedure and a function have this name, `callproc` calls the procedure.
    kind = "PROCEDURE" if any(row[0] == "PROCEDURE" for row in rows) else "FUNCTION"
    listed = [(mode, parameter) for of, mode, parameter in rows if of == kind and parameter is not None]
    if not rows:
        return []
    modes = "".join({"OUT": "o", "INOUT": "b"}.get(mode, "i") for mode, _ in listed)
    return [_Routine(kind == "PROCEDURE", modes, tuple(parameter for _, parameter in listed))]


class Call(NamedTuple):
    """The SQL statement that calls a routine, and the output parameters of the routine."""

    sql: str
    inputs: Sequence[Any]
    result: list[Any]
    """The list that `callproc` returns: the caller's values, in which output values are
    replaced."""
    places: list[int]
    """The indexes (from 0) in ``result`` of the output parameters."""
    names: list[str]
    """The names of the output parameters; the last result has columns with these names."""


def catalog_query(dialect: str, name: str) -> tuple[str, list[str]]:
    """Return the query that finds the parameters of a routine in PostgreSQL or MariaDB, and the
    values to bind to the query.

    Raises:
        ProgrammingError: ``name`` is not the name of a routine.
        NotSupportedError: the database has no stored procedures.
    """
    if dialect not in {"postgresql", "mysql"}:
        raise NotSupportedError(_REFUSED.get(dialect, _REFUSED["generic"]))
    *schemas, plain = (_plain(part, fold=dialect == "postgresql") for part in _parts(name))
    schema = schemas[-1] if schemas else ""
    return (_OF_POSTGRESQL, [plain, schema, schema]) if dialect == "postgresql" else (_OF_MARIADB, [schema, plain])


def given(dialect: str, parameters: Iterable[Any]) -> list[Any] | dict[str, Any]:
    """Return the caller's values for the parameters of a routine: a list if they are passed by
    position, or a dict if they are passed by name.

    Raises:
        TypeError: they are passed by name, but the database is not PostgreSQL.
    """
    if not isinstance(parameters, Mapping):
        return list(parameters)
    if dialect != "postgresql":
        raise TypeError("parameters by name are supported only with PostgreSQL\npass a list or tuple")
    return dict(parameters)


def plan(dialect: str, name: str, rows: list[Any], parameters: list[Any] | dict[str, Any]) -> Call:
    """Return the statement that calls the routine ``name`` in PostgreSQL or MariaDB. ``rows`` is
    the result of the query that `catalog_query` returned.

    Raises:
        ProgrammingError: no routine of this name accepts the parameters.
    """
    find = _of_postgresql if dialect == "postgresql" else _of_mariadb
    routines, n = find(rows), len(parameters)
    plain = _plain(_parts(name)[-1], fold=dialect == "postgresql")
    if isinstance(parameters, dict):
        fit = [routine for routine in routines if parameters.keys() <= set(routine.names)]
        calls = [_by_name(name, routine, parameters) for routine in fit]
        if not calls:
            raise ProgrammingError(f"`{plain}` has no parameters with the names {', '.join(parameters)}")
    elif not routines:
        return Call(f"call {name}({_marks(n)})", parameters, parameters, [], [])
    else:
        calls = [_by_place(dialect, name, routine, parameters) for routine in routines if routine.takes(n)]
        if not calls:
            counts = ", ".join(sorted({str(len(routine.modes)) for routine in routines}))
            raise ProgrammingError(f"`{plain}` has {counts} parameters, {n} were given", sqlstate="07002")
    if any(other != calls[0] for other in calls[1:]):
        raise ProgrammingError(
            f"`{plain}` has several overloads with {n} parameters, and their modes differ\n"
            "execute `call …` or `select …` with casts instead"
        )
    return calls[0]


def _marks(n: int) -> str:
    return ", ".join("?" * n)


def _by_place(dialect: str, name: str, routine: _Routine, given: list[Any]) -> Call:
    """Return the SQL statement that calls a routine and passes the values ``given`` by position."""
    places = routine.places()
    names = [routine.names[i] for i in places]
    marks = _marks(len(given))
    if routine.is_procedure:
        # Output parameters that were omitted because they have defaults get items too.
        missing = [None] * (max(places, default=-1) + 1 - len(given))
        return Call(f"call {name}({marks})", given, given + missing, places, names)
    if dialect == "mysql":
        return Call(f"select {name}({marks})", given, given, [], [])
    if len(given) > routine.n_inputs() and not (routine.gives_rows or routine.is_variadic):
        # The list also has items for output parameters, which are not passed to the function.
        inputs = [value for value, mode in zip(given, routine.modes, strict=False) if mode != "o"]
        return Call(f"select * from {name}({_marks(len(inputs))})", inputs, given, places, names)
    return Call(f"select * from {name}({marks})", given, given, [], [])


def _by_name(name: str, routine: _Routine, given: dict[str, Any]) -> Call:
    """Return the SQL statement that calls a routine of PostgreSQL and passes the values ``given``
    by name. `Cursor.callproc` returns the values in the order of ``given``."""
    order = list(given)
    modes = dict(zip(routine.names, routine.modes, strict=False))
    outputs = [routine.names[i] for i in routine.places() if routine.names[i] in given]
    passed = [key for key in order if routine.is_procedure or modes[key] != "o"]
    arguments = ", ".join('"{}" => ?'.format(key.replace('"', '""')) for key in passed)
    verb = "call" if routine.is_procedure else "select * from"
    inputs = [given[key] for key in passed]
    return Call(f"{verb} {name}({arguments})", inputs, list(given.values()), [order.index(k) for k in outputs], outputs)


def call(cur: Cursor, name: str, parameters: Iterable[Any]) -> list[Any]:
    """Call a procedure or function on ``cur``; see `Cursor.callproc`.

    Returns:
        A copy of ``parameters`` with the values of the output parameters filled in.

    Raises:
        ProgrammingError: the procedure does not exist, or has other parameters.
        NotSupportedError: the database has no stored procedures, or a parameter's type is not
            supported.
    """
    con = cur.connection
    values = given(con.dialect, parameters)
    if isinstance(values, list) and con.dialect == "mssql":
        result = values
        batch = _tsql.batch(con, name, result)
        planned = Call(batch.sql, batch.inputs, result, batch.places, batch.names)
    else:
        query = catalog_query(con.dialect, name)
        catalog = con.cursor()
        catalog.row_factory = None
        planned = plan(con.dialect, name, catalog.execute(*query).fetchall(), values)
    cur.execute(planned.sql, planned.inputs)
    cur._expect_outputs(planned.result, planned.places, planned.names)
    cur._settle()
    return planned.result


_REFUSED = {
    "sqlite": "SQLite has no stored procedures",
    "generic": "`callproc` does not support this database\n"
    "execute `{call name(?, ?)}`: results are returned by `fetchall` and `nextset`",
}
