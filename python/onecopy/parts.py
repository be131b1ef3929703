"""A query divided into parts that several processes or machines read at the same time.

| name | contents |
|---|---|
| `plan` | divides a query, and returns a `Plan` |
| `Plan` | the parts of a query, and the properties of the division |
| `PartSpec` | one part: SQL and values, without a connection string |

>>> import onecopy
>>> from onecopy import parts
>>> con = onecopy.connect("sqlite::memory:")
>>> _ = con.execute("create table city (id integer primary key, name text)")
>>> _ = con.execute("insert into city values (1, 'Zürich'), (2, '東京'), (3, 'Tromsø'), (4, 'Bari')")
>>> for part in parts.plan(con, "select * from city", parts=2).parts:
...     print(part.condition, part.execute(con).fetchall())
city."id" < 3 [(1, 'Zürich'), (2, '東京')]
city."id" >= 3 [(3, 'Tromsø'), (4, 'Bari')]
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from onecopy import _core
from onecopy._core import Connection, Cursor
from onecopy.errors import ProgrammingError

__all__ = ["PartSpec", "Plan", "plan"]

_VERSION = 1
#: The members of a part in JSON that are strings, and those that are integers.
_STRINGS = ("plan", "statement", "schema", "condition", "sql")
_COUNTS = ("part", "parts")
#: The members of a plan that are strings.
_PLAN_STRINGS = ("sql", "key_kind", "position", "index", "snapshot")


@dataclass(frozen=True)
class PartSpec:
    """One part of a query, with everything that is needed to read it except a connection.

    A part can be pickled, hashed and compared. It contains the values of the query's parameters,
    but no connection string and no password.
    """

    plan: str
    """A hash of the plan. Only all parts with the same hash together form the result of the
    query."""
    statement: str
    """A hash of the planned SQL, its values and the columns of the result."""
    schema: str
    """A hash of the names and types of the columns."""
    part: int
    """The number of the part, from 1."""
    parts: int
    """The number of parts of the plan."""
    rows: int | None
    """The estimated number of rows; `None` if unknown."""
    key: tuple[str, ...]
    """The columns by which the query is divided."""
    condition: str
    """The condition that selects the rows of the part, as text for people."""
    sql: str
    """The SQL of the part, with ``?`` for each value."""
    values: tuple[tuple[str, str | None], ...]
    """The type and the text of each value of ``sql``; the text of NULL is `None`."""
    snapshot: str | None
    """The name of the snapshot of PostgreSQL that the part reads; `None` if there is none."""

    def execute(self, connection: Connection) -> Cursor:
        """Execute the part, and return a cursor with its rows.

        If the part has a snapshot, the method begins a transaction with this snapshot; the
        connection must not be in a transaction. Raises `ProgrammingError` if the columns of the
        result are not those of the plan, because the tables have changed. Raises the error of the
        database if the snapshot has ended or the statement fails.
        """
        return _core.execute_part(connection, self.to_json())

    def to_json(self) -> str:
        """Return the part as JSON, on one line, as `onecopy plan` writes it."""
        return json.dumps({**vars(self), "values": _values_json(self.values)}, ensure_ascii=False)

    @classmethod
    def from_json(cls, text: str | bytes) -> PartSpec:
        """Read a part from the JSON of `to_json`, or from a member of ``parts`` of a plan.

        Raises `ValueError` for any other text.
        """
        return cls._from_members(_parsed(text))

    @classmethod
    def _from_members(cls, members: Any) -> PartSpec:
        try:
            rows, snapshot = members["rows"], members["snapshot"]
            spec = cls(
                **{name: _of_type(str, members[name]) for name in _STRINGS},
                **{name: _of_type(int, members[name]) for name in _COUNTS},
                rows=None if rows is None else _of_type(int, rows),
                key=tuple(_of_type(str, name) for name in members["key"]),
                values=tuple(_value(member) for member in members["values"]),
                snapshot=None if snapshot is None else _of_type(str, snapshot),
            )
        except (KeyError, TypeError) as error:
            raise ValueError("this is not a part of a plan in JSON") from error
        if not 1 <= spec.part <= spec.parts:
            raise ValueError("this is not a part of a plan in JSON")
        return spec


@dataclass(frozen=True)
class Plan:
    """The parts of a query, and the properties of the division.

    Every row of the result is in exactly one part. This is true even if the boundaries between the
    parts are inaccurate estimates.
    """

    sql: str
    """The SQL of the planned query, with ``?`` for each value."""
    values: tuple[tuple[str, str | None], ...]
    """The type and the text of each value, as in `PartSpec`."""
    parts: tuple[PartSpec, ...]
    """The parts, in their order."""
    columns: tuple[tuple[str, str], ...]
    """The name and the database's type of each column of the result."""
    key_kind: str
    """The kind of the columns by which the query is divided, such as ``primary key``."""
    position: str
    """The position of the condition in the statement, as `onecopy plan` names it."""
    index: str
    """A sentence that states if the condition can use an index."""
    snapshot: str
    """A sentence that states if the parts read the same state of the database."""
    notes: tuple[str, ...]
    """Further sentences about the plan, for people."""

    def to_json(self) -> str:
        """Return the plan as JSON, which `from_json` and the command `onecopy` accept."""
        head = {
            "version": _VERSION,
            "sql": self.sql,
            "values": _values_json(self.values),
            "key_kind": self.key_kind,
            "position": self.position,
            "index": self.index,
            "snapshot": self.snapshot,
            "notes": self.notes,
            "columns": [{"name": name, "type": kind} for name, kind in self.columns],
        }
        lines = ",\n".join(f"    {part.to_json()}" for part in self.parts)
        return f'{json.dumps(head, ensure_ascii=False)[:-1]}, "parts": [\n{lines}\n]}}\n'

    @classmethod
    def from_json(cls, text: str | bytes) -> Plan:
        """Read a plan from the JSON of `to_json` or of `onecopy plan`.

        Raises `ValueError` for any other text, and for a plan whose parts are incomplete or belong
        to different plans.
        """
        members = _parsed(text)
        try:
            if members["version"] != _VERSION:
                raise ValueError("the plan is of another version of onecopy\nmake a new plan")
            plan = cls(
                values=tuple(_value(member) for member in members["values"]),
                parts=tuple(PartSpec._from_members(part) for part in members["parts"]),
                columns=tuple(
                    (_of_type(str, column["name"]), _of_type(str, column["type"])) for column in members["columns"]
                ),
                notes=tuple(_of_type(str, note) for note in members["notes"]),
                **{name: _of_type(str, members[name]) for name in _PLAN_STRINGS},
            )
        except (KeyError, TypeError) as error:
            raise ValueError("the text is not a plan") from error
        count = len(plan.parts)
        numbers = [(part.part, part.parts) for part in plan.parts]
        same = len({(part.plan, part.statement, part.schema) for part in plan.parts}) <= 1
        if numbers != [(number, count) for number in range(1, count + 1)] or not same:
            raise ValueError("parts of the plan are missing or were changed\nmake a new plan")
        return plan


def plan(
    database: Connection | str,
    sql: str,
    parameters: Iterable[Any] | Mapping[str, Any] = (),
    *,
    parts: int,
    key: Iterable[str] = (),
    sample_rows: int | None = None,
    hold: bool = False,
) -> Plan:
    """Divide the rows of a query into parts with similar numbers of rows.

    ``database`` is a connection, or a connection string, with which a connection is opened for the
    duration of the call. ``parts`` is the number of parts; one more part is added for the rows
    whose key is NULL. ``key`` names the columns to divide by; without it, the key of the table is
    used, which requires a statement ``select COLUMNS from TABLE [where …]``. In any other statement
    ``{part}`` marks the position of the condition; without ``{part}`` the statement becomes a
    derived table. ``sample_rows`` is the number of rows of a large table from which the boundaries
    are estimated.

    With ``hold`` (only PostgreSQL), ``database`` must be a connection. Its transaction exports a
    snapshot, which all parts can read as long as this transaction is open.

    Raises `ProgrammingError`, with the reason, if the statement cannot be divided, and
    `NotSupportedError` for ``hold`` if the database cannot share a snapshot.
    """
    names = [key] if isinstance(key, str) else list(key)
    if not isinstance(database, str):
        return Plan.from_json(_core.plan_query(database, sql, parameters, parts, names, sample_rows, hold))
    if hold:
        raise ProgrammingError("`hold` needs a connection, whose transaction keeps the snapshot\npass a connection")
    connection = _core.connect(database)
    try:
        return Plan.from_json(_core.plan_query(connection, sql, parameters, parts, names, sample_rows, hold))
    finally:
        connection.close()


def _parsed(text: str | bytes) -> Any:
    try:
        return json.loads(text)
    except ValueError as error:
        raise ValueError("the plan is not valid JSON") from error


def _of_type(kind: type, value: Any) -> Any:
    """Return the value if it has exactly this type; a `bool` is not accepted as an `int`."""
    if type(value) is not kind:
        raise TypeError(f"{value!r} is not of type `{kind.__name__}`")
    return value


def _values_json(values: Iterable[tuple[str, str | None]]) -> list[dict[str, str]]:
    return [{"type": kind} if text is None else {"type": kind, "value": text} for kind, text in values]


def _value(member: Any) -> tuple[str, str | None]:
    kind = _of_type(str, member["type"])
    return kind, None if kind == "null" else _of_type(str, member["value"])
